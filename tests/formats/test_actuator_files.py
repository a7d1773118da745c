"""Actuators of MJCF files beside MuJoCo's own steps, and transmissions of URDF files."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import lgsim
from lgsim.formats import FileError, read_actuators, read_mjcf

MACHINE = """<mujoco><option integrator="RK4" timestep="0.002"{option}/>
<default><geom contype="0" conaffinity="0"/></default><worldbody>
<body><joint name="a" axis="0 1 0" damping=".1"{joint}/><geom type="capsule" fromto="0 0 0 0.3 0 0.4" size="0.03"/>
<body name="B" pos="0.3 0 0.4"><joint name="b" axis="1 0 0" ref="0.2"/>
<geom type="capsule" fromto="0 0 0 0 0.2 0.3" size="0.02"/>
<body name="C" pos="0 .2 .3"><joint name="c" type="slide" axis="0 0 1"/><geom type="sphere" size=".05"/>
<site name="s" pos=".1 0 0" euler="20 30 0"/></body></body></body></worldbody>{rest}</mujoco>"""

CASES = {
    "motor": """<actuator><motor joint="a" gear="3" ctrlrange="-1 1"/><motor joint="b" forcerange="-.2 .3" gear="-2"/>
        <motor joint="c"/></actuator>""",
    "position": """<actuator><position joint="a" kp="40" kv="3" gear="2" forcerange="-30 30"/>
        <position joint="b" kp="20" dampratio="1"/><position joint="c" kp="100" kv="5" inheritrange="0"/></actuator>""",
    "velocity": """<actuator><velocity joint="a" kv="5"/><velocity joint="b" kv="2" ctrlrange="-1 1"/>
        <intvelocity joint="c" kp="50" kv="4" actrange="-.05 .05"/></actuator>""",
    "general": """<actuator><general joint="a" dyntype="filter" dynprm=".03" gaintype="affine" gainprm="3 .5 -.2"
        biastype="affine" biasprm=".3 -4 -.5" gear="1.5"/><general joint="b" dyntype="integrator" gainprm="5"
        biastype="affine" biasprm="0 -5 -.3" actlimited="true" actrange="-.03 .03"/>
        <damper joint="c" kv="3" ctrlrange="0 2"/></actuator>""",
    "coupled": """<tendon><fixed name="t"><joint joint="a" coef=".7"/><joint joint="b" coef="-1.2"/></fixed></tendon>
        <actuator><position tendon="t" kp="30" kv="2" gear="1.4"/><motor site="s" gear="1 .5 -.3 .1 .2 .3"/>
        <cylinder joint="c" area="3" timeconst=".05" bias=".2 -1 -.1"/></actuator>""",
    "tendon range": """<tendon><fixed name="t" actuatorfrcrange="-2 1"><joint joint="a" coef=".7"/></fixed>
        <fixed name="u" actuatorfrcrange="-1 1"><joint joint="b" coef="1"/></fixed></tendon>
        <actuator><motor tendon="t" gear="-5"/><motor tendon="u" gear="2" forcerange="-.3 .3"/><motor joint="c"/>
        </actuator>""",
    "muscles": """<actuator><muscle joint="a" gear="-.05" lengthrange="-.1 .05" force="300"/><motor joint="c"/>
        <muscle joint="b" gear=".04" lengthrange="-.05 .06" scale="20" lmin=".4" lmax="1.7" vmax="3" fpmax="2"
        fvmax="1.4" timeconst=".02 .07" tausmooth=".3" forcerange="-25 0"/></actuator>""",
    "joint ranges": """<actuator><motor joint="a"/><velocity joint="a" kv="3"/><motor joint="c" gear="-1"/>
        </actuator>""",
}


def both(xml, ctrl, q0, steps=100):
    """(what MuJoCo gives, what lgsim gives) of q, v and activations after each step, from commands (steps, nu)."""
    model, report = read_mjcf(text=xml)
    drive = lgsim.load_actuators(model, text=xml)
    theirs = mujoco.MjModel.from_xml_string(xml)
    data, motion = mujoco.MjData(theirs), []
    data.qpos[:] = q0
    for k in range(steps):
        data.ctrl[:] = ctrl[k]
        mujoco.mj_step(theirs, data)
        motion.append((data.qpos.copy(), data.qvel.copy(), data.act.copy()))
    out = lgsim.rollout(
        model, jnp.asarray(q0, float), jnp.zeros(theirs.nv), dt=theirs.opt.timestep, steps=steps, actuators=drive,
        commands=jnp.asarray(ctrl),
    )  # fmt: skip
    w = out.actuator_states
    act = np.zeros((steps, 0)) if w is None else np.asarray(w)[1:, theirs.actuator_actadr >= 0]
    return [np.stack(x) for x in zip(*motion, strict=True)], (out.q[1:], out.v[1:], act), drive, report


@pytest.mark.parametrize("name", CASES)
def test_motion_is_that_of_mujoco(name):
    """States and activations over 100 steps of its Runge-Kutta method, under random commands that meet the ranges."""
    joint = ' actuatorfrcrange="-3 2"' if name == "joint ranges" else ""
    ctrl = np.random.default_rng(0).uniform(-2, 2, (100, 3))
    ctrl[:60] = np.abs(ctrl[:60])
    xml = MACHINE.format(option="", joint=joint, rest=CASES[name])
    theirs, ours, drive, report = both(xml, ctrl, [0.4, -0.3, 0.1])
    assert drive.commands == 3 and not [finding for finding in report.ignored if "actuator '" in str(finding)]
    for wanted, found in zip(theirs, ours, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-12)
    if name in ("general", "velocity"):
        assert np.isclose(np.abs(theirs[2][:, -1]).max(), 0.03 if name == "general" else 0.05)  # the bound was met


@pytest.mark.slow
def test_rotors_of_a_free_body_act_at_their_sites():
    """A quadrotor's thrusts at four sites, with a moment of drag."""
    rotors = [(0.2, 0.2, 1), (0.2, -0.2, -1), (-0.2, -0.2, 1), (-0.2, 0.2, -1)]
    sites = "".join(f'<site name="r{i}" pos="{x} {y} .01"/>' for i, (x, y, _) in enumerate(rotors))
    motors = "".join(
        f'<motor site="r{i}" gear="0 0 1 0 0 {0.02 * s}" ctrlrange="0 6"/>' for i, (*_, s) in enumerate(rotors)
    )
    xml = f"""<mujoco><option integrator="RK4" timestep="0.005"/><worldbody><body><freejoint/>
    <inertial pos="0 0 .01" mass="1.2" diaginertia=".01 .012 .02"/>{sites}</body></worldbody>
    <actuator>{motors}</actuator></mujoco>"""
    ctrl = 3.0 + 4 * np.random.default_rng(3).normal(size=(4,)) * np.ones((60, 1))
    theirs, ours, drive, _ = both(xml, ctrl, [0, 0, 1, 1, 0, 0, 0], steps=60)
    assert drive.transmission.frames == ("r0", "r1", "r2", "r3")
    # the methods differ on rotations: MuJoCo averages stages in one tangent space, at an order of its own
    np.testing.assert_allclose(ours[0][0], theirs[0][0], atol=1e-6)
    model = read_mjcf(text=xml)[0]
    data = mujoco.MjData(mujoco.MjModel.from_xml_string(xml))
    data.qpos[:], data.qvel[:], data.ctrl[:] = theirs[0][-1], theirs[1][-1], ctrl[-1]
    mujoco.mj_forward(mujoco.MjModel.from_xml_string(xml), data)
    # MuJoCo has velocity and force of a free joint in world axes
    turn = np.asarray(lgsim.quaternion.Ad(jnp.asarray(data.qpos[3:7])))
    v = np.concatenate([turn.T @ data.qvel[:3], data.qvel[3:]])
    tau, _ = drive.respond(model, jnp.asarray(data.qpos), jnp.asarray(v), jnp.zeros(0), jnp.asarray(ctrl[-1]))
    wanted = np.concatenate([turn.T @ data.qfrc_actuator[:3], data.qfrc_actuator[3:]])
    np.testing.assert_allclose(tau, wanted, atol=1e-12)


def test_exact_filter_is_the_equation_of_the_filter():
    """``position`` with a time constant: MuJoCo's last stage has the exponential, so that its steps differ in dt/T."""
    xml = MACHINE.format(option="", joint="", rest='<actuator><position joint="a" kp="20" timeconst=".05"/></actuator>')
    gaps = []
    for dt, steps in ((0.002, 100), (0.001, 200)):
        theirs, ours, *_ = both(xml.replace('"0.002"', f'"{dt}"'), np.full((steps, 1), 0.5), [0.4, -0.3, 0.1], steps)
        gaps.append(np.abs(ours[2][-1] - theirs[2][-1]).max())
    assert gaps[0] < 0.02 and 1.7 < gaps[0] / gaps[1] < 2.3


def test_what_mujoco_reads_is_read():
    """Attributes without a space between are no XML, and fine for MuJoCo."""
    xml = MACHINE.format(option="", joint="", rest='<actuator><motor name="m"joint="a"/></actuator>')
    assert lgsim.load_actuators(read_mjcf(text=xml)[0], text=xml).names == ("m",)


def test_what_is_not_represented_is_said():
    rest = """<tendon><spatial name="w"><site site="s"/><site site="o"/></spatial></tendon><actuator>
    <adhesion name="m" body="B" ctrlrange="0 1"/><motor name="w" tendon="w" gear="2"/><motor name="fine" joint="b"/>
    <position name="p" site="s"/><motor name="twice" site="s" refsite="o"/></actuator>"""
    xml = MACHINE.format(option="", joint="", rest=rest).replace("</worldbody>", '<site name="o"/></worldbody>')
    model, report = read_mjcf(text=xml)
    drive, remarks = read_actuators(model, text=xml)
    assert drive.names == ("w", "fine") and drive.commands == 2
    texts = [str(finding) for finding in report.ignored if "actuator '" in str(finding)]
    assert len(texts) == len(remarks) == 3
    for name, why in (("m", "transmission is not"), ("p", "a length that a site does not have"),
                      ("twice", "between two sites")):  # fmt: skip
        assert any(f"actuator '{name}' is not represented" in text and why in text for text in texts), texts
    with pytest.raises(FileError, match="expected supported actuators, got none"):
        lgsim.load_actuators(model, text=MACHINE.format(option="", joint="", rest=""))
    with pytest.raises(ValueError, match="model: expected that of <text>, got one without the joint 'b'"):
        lgsim.load_actuators(model.lock(["b"], model.neutral()), text=xml)


URDF = """<robot name="r"><link name="base"/><link name="one"><inertial><mass value="1"/><inertia ixx="1" iyy="1"
izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link><link name="two"><inertial><mass value="1"/><inertia ixx="1" iyy="1"
izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="j1" type="continuous"><parent link="base"/><child link="one"/><axis xyz="1 0 0"/></joint>
<joint name="j2" type="continuous"><parent link="one"/><child link="two"/><axis xyz="0 1 0"/></joint>{rest}</robot>"""

SIMPLE = """<transmission name="t{i}"><type>transmission_interface/SimpleTransmission</type><joint name="j{i}">
<hardwareInterface>EffortJointInterface</hardwareInterface></joint><actuator name="m{i}">
<mechanicalReduction>{n}</mechanicalReduction></actuator></transmission>"""


def test_reductions_of_urdf():
    text = URDF.format(rest=SIMPLE.format(i=2, n=50) + SIMPLE.format(i=1, n=-20.5))
    model = lgsim.load_urdf(text=text)
    drive = lgsim.load_actuators(model, text=text)
    assert drive.names == ("m2", "m1")
    np.testing.assert_array_equal(drive.transmission.coupling, [[0, 50], [-20.5, 0]])
    tau, _ = drive.respond(model, jnp.zeros(2), jnp.zeros(2), jnp.zeros(0), jnp.array([0.1, 0.2]))
    np.testing.assert_allclose(tau, [-4.1, 5.0], atol=1e-13)


def test_differential_of_urdf():
    """The equations of ros2_control: ``x_j1 = (x_a1/n_a1 + x_a2/n_a2)/(2 n_j1)``, ``n_j (n_a1 t1 +- n_a2 t2)``."""
    parts = "".join(
        f'<{kind} name="{name}"><role>{kind}{i}</role><mechanical_reduction>{n}</mechanical_reduction></{kind}>'
        for kind, name, i, n in (
            ("actuator", "b", 2, 4),
            ("actuator", "a", 1, 5),
            ("joint", "j1", 1, 2),
            ("joint", "j2", 2, 3),
        )
    )
    kind = "transmission_interface/DifferentialTransmission"
    text = URDF.format(rest=f"<transmission name='w'><type>{kind}</type>{parts}</transmission>")
    model = lgsim.load_urdf(text=text)
    drive = lgsim.load_actuators(model, text=text)
    assert drive.names == ("a", "b")
    x = np.array([0.3, -0.7])
    angle = np.asarray(drive.transmission.shaft(model, jnp.asarray(x), jnp.zeros(2)).angle)
    np.testing.assert_allclose([(angle[0] / 5 + angle[1] / 4) / 4, (angle[0] / 5 - angle[1] / 4) / 6], x, atol=1e-14)
    tau, _ = drive.respond(model, jnp.zeros(2), jnp.zeros(2), jnp.zeros(0), jnp.array([0.5, -0.2]))
    np.testing.assert_allclose(tau, [2 * (5 * 0.5 - 4 * 0.2), 3 * (5 * 0.5 + 4 * 0.2)], atol=1e-13)


def test_transmissions_that_are_not_read(without_import_hook):
    other = "<transmission name='x'><type>transmission_interface/FourBarLinkageTransmission</type></transmission>"
    text = URDF.format(rest=other + SIMPLE.format(i=1, n=3))
    model = lgsim.load_urdf(text=text)
    drive, remarks = read_actuators(model, text=text)
    assert drive.names == ("m1",) and "FourBarLinkageTransmission" in str(remarks[0])
    changes = {
        ("Reduction>3<", "Reduction>0<"): "a finite nonzero number",
        ('joint name="j1"> <hard', 'joint name="j9"> <hard'): "the model has no joint 'j9'",
    }
    for change, message in changes.items():
        broken = text.replace("\n", " ").replace(*change)
        with pytest.raises(FileError, match=message):
            lgsim.load_actuators(model, text=broken)
    with pytest.raises(FileError, match="expected <mujoco> or <robot>, got <sdf>"):
        lgsim.load_actuators(model, text="<sdf/>")


@pytest.mark.slow
def test_stiffness_of_a_file_is_a_number_to_differentiate():
    xml = MACHINE.format(option="", joint="", rest=CASES["position"])
    model = read_mjcf(text=xml)[0]
    drive = lgsim.load_actuators(model, text=xml)

    def end(drive):
        out = lgsim.rollout(model, jnp.array([0.4, -0.3, 0.1]), jnp.zeros(3), dt=0.002, steps=20, actuators=drive)
        return out.q[-1, 0]

    slope = jax.grad(end)(drive).stages[0].bias[0, 1]
    assert np.isfinite(slope) and abs(float(slope)) > 1e-6


def test_motors_by_their_voltage():
    """MuJoCo 4's <dcmotor> without states, over random commands that meet their range; others are stated."""
    if not hasattr(mujoco.mjtGain, "mjGAIN_DCMOTOR"):
        pytest.skip("before MuJoCo 4 there are no such motors")
    rest = """<actuator><dcmotor name="m" joint="a" motorconst=".3" resistance="2" gear="5" ctrlrange="-1 1"/>
      <dcmotor name="n" joint="c" motorconst=".2" resistance=".5" gear="-3"/>{}</actuator>"""
    ctrl = np.random.default_rng(0).uniform(-3, 3, (50, 2))
    theirs, ours, drive, _ = both(MACHINE.format(option="", joint="", rest=rest.format("")), ctrl, [0.4, -0.3, 0.1], 50)
    assert drive.names == ("m", "n")
    for wanted, found in zip(theirs, ours, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-12)
    for more in ('armature=".1"', 'damping="1"', 'input="pos" controller="1 0 0 9 0 0"'):
        motor = f'<dcmotor name="o" joint="b" motorconst=".3" resistance="2" {more}/>'
        xml = MACHINE.format(option="", joint="", rest=rest.format(motor))
        model, report = read_mjcf(text=xml)
        assert lgsim.load_actuators(model, text=xml).names == ("m", "n")
        assert "actuator 'o' is not represented" in report.dropped


def test_several_commands_of_an_actuator():
    """MuJoCo 4: a PID controller has two commands; those after it keep their ranges and gears."""
    if not hasattr(mujoco.MjModel.from_xml_string("<mujoco/>"), "nactuator"):
        pytest.skip("before MuJoCo 4 each actuator has one command")
    xml = """<mujoco><worldbody><body><joint name="ball" type="ball"/><geom size=".1" mass="1" pos="0 0 .2"/>
        <body><joint name="h"/><geom size=".1" mass="1" contype="0" conaffinity="0"/></body></body></worldbody>
        <actuator><pid name="o" joint="h" kp="3"/>
        <motor name="m" joint="h" gear="3" ctrlrange="-1 2"/></actuator></mujoco>"""
    model, report = read_mjcf(text=xml)
    drive, findings = read_actuators(model, text=xml)
    assert drive.names == ("m",) and ["several commands" in str(each) for each in findings] == [True]
    q, v = model.neutral(), jnp.zeros(4)
    force = [drive.respond(model, q, v, jnp.zeros(0), jnp.array([u]))[0][-1] for u in (-5.0, 5.0)]
    np.testing.assert_allclose(force, [-3.0, 6.0])
    assert "several commands" in str([*report])


@pytest.mark.parametrize("attribute", ['stiffness="0 40"', 'damping="0 2"'])
def test_polynomials_of_a_tendon_are_stated(attribute):
    xml = MACHINE.format(
        option="",
        joint="",
        rest=f"""<tendon><fixed name="t" {attribute}><joint joint="a" coef="1"/>
        </fixed></tendon><actuator><motor tendon="t"/></actuator>""",
    )
    try:
        mujoco.MjModel.from_xml_string(xml)
    except ValueError:
        pytest.skip("this version of MuJoCo has no polynomials")
    assert "tendon 't'" in str([*read_mjcf(text=xml)[1]])
