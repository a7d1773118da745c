"""DC motors with several commands and states, and servos of a ball's orientation, against MuJoCo 4."""

import json

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import lgsim
from lgsim.formats import load_actuators, load_keyframes, read_mjcf
from lgsim.identify.actuator_record import from_record, to_record

pytestmark = pytest.mark.skipif(int(mujoco.__version__[0]) < 4, reason="these actuators are of MuJoCo 4")

MACHINE = """<mujoco><option timestep="0.001" integrator="{}"/>
<default><geom contype="0" conaffinity="0"/></default><worldbody>
<body><joint name="a" axis="0 1 0" damping=".1"/><geom type="capsule" fromto="0 0 0 .3 0 .4" size=".03"/>
<body pos=".3 0 .4"><joint name="c" type="slide" axis="0 0 1" damping="1"/><geom size=".05"/></body>
<body name="hand" pos=".1 .2 .3"><joint name="b" type="ball" damping=".02"/><geom size=".05 .08 .1" type="box"/>
</body></body></worldbody>
<actuator>{}</actuator>{}</mujoco>"""

MOTORS = {
    "commands": """<dcmotor name="m" joint="a" motorconst=".3" resistance="2" gear="2" input="pos vel ff"
      controller="4 0 .3 0 0 5" ctrlrange="-1 .8"/><dcmotor name="n" joint="c" motorconst=".2 .4" resistance=".5"
      input="vel voltage" controller="0 0 2 0 0 0"/>""",
    "an integral": """<dcmotor name="m" joint="a" motorconst=".3" resistance="2" input="pos" controller="4 9 .3"/>
      <dcmotor name="n" joint="c" motorconst=".3" resistance="2" input="pos ff" controller="4 30 2 0 .002 0"/>""",
    "a current": """<dcmotor name="m" joint="a" motorconst=".3" resistance="2" inductance=".01" gear="-3"
      saturation=".2 0 0"/><dcmotor name="n" joint="c" motorconst=".2" resistance="1" inductance="0 .03"
      saturation="0 4 20"/>""",
    "heat": """<dcmotor name="m" joint="a" motorconst=".3" resistance=".02" thermal="3 .02 0 .004 20 25"/>
      <dcmotor name="n" joint="c" motorconst=".3" resistance=".02" thermal="2 0 .5 .004 25 60"/>""",
    "friction": """<dcmotor name="m" joint="a" motorconst=".3" resistance="2" lugre="30 .4 .2 .3 .1" gear="2"
      saturation=".1 0 0" cogging=".1 7 .4"/>
      <dcmotor name="n" joint="c" motorconst="0" resistance="1" lugre="50 2 .3 .6 .2" input="none"
      cogging=".05 30 0"/>""",
    "everything": """<dcmotor name="m" joint="a" motorconst=".3" resistance=".2" lugre="30 .4 .2 .3 .1"
      cogging=".1 7 .4" inductance=".005" thermal="3 .02 0 .004 20 25" input="pos vel ff voltage"
      controller="3 2 .4 0 .5 6" saturation=".5 0 50"/>""",
    "several kinds": """<dcmotor name="m" joint="a" motorconst=".3" resistance="2" inductance=".01"/>
      <motor name="x" joint="c"/><dcmotor name="n" joint="a" motorconst=".2" resistance="1"/>
      <position name="y" joint="c" kp="3"/>""",
}


def machine(actuators, integrator="RK4", more=""):
    xml = MACHINE.format(integrator, actuators, more)
    model = read_mjcf(text=xml)[0]
    return xml, model, load_actuators(model, text=xml), mujoco.MjModel.from_xml_string(xml)


@pytest.mark.parametrize("kind", [kind for kind in MOTORS if kind not in ("everything", "several kinds")])
def test_forces_and_rates_are_those_of_mujoco(kind):
    """All motors at random states; MuJoCo's torque is that of the current a step later, by its exact rule."""
    _, model, drive, theirs = machine(MOTORS[kind])
    data, rng = mujoco.MjData(theirs), np.random.default_rng(0)
    respond = jax.jit(lambda q, v, z, u: drive.respond(model, q, v, z, u))
    assert drive.commands == theirs.nu and drive.states == theirs.na
    for _ in range(20):
        data.qpos[:2], data.qvel[:] = rng.normal(size=2), 3 * rng.normal(size=5)
        data.qpos[2:] = [1, 0, 0, 0]
        data.ctrl[:], data.act[:] = rng.normal(size=theirs.nu), 0.1 * rng.normal(size=theirs.na)
        mujoco.mj_forward(theirs, data)
        args = (jnp.asarray(x) for x in (data.qpos, data.qvel, data.act, data.ctrl))
        tau, rate = respond(*args)
        if kind == "an integral":  # MuJoCo stops it beyond its bounds, lgsim bounds it after each step
            inside = np.abs(data.act) < [np.inf, 0.002]
            rate = np.where(inside, rate, data.act_dot)
        np.testing.assert_allclose(rate, data.act_dot, atol=1e-9)
        if kind != "a current":
            np.testing.assert_allclose(tau, data.qfrc_actuator, atol=1e-12)
            continue
        te, h = theirs.actuator_dynprm[:, 0], theirs.opt.timestep
        later = data.act + data.act_dot * te * (1 - np.exp(-h / te))
        force = np.clip(theirs.actuator_gainprm[:, 1] * later, *theirs.actuator_forcerange.T)
        np.testing.assert_allclose(data.actuator_force, force, atol=1e-12)  # as the rule says
        force = np.clip(theirs.actuator_gainprm[:, 1] * data.act, *theirs.actuator_forcerange.T)
        np.testing.assert_allclose(tau[:2], theirs.actuator_gear[:, 0] * force, atol=1e-12)


def test_all_states_of_a_motor():
    """The integral, the current, the temperature and the bristles of one motor, which MuJoCo has in another order."""
    xml, model, drive, theirs = machine(MOTORS["everything"])
    assert drive.names == ("m:pos", "m:vel", "m:ff", "m:voltage")
    data, rng, order = mujoco.MjData(theirs), np.random.default_rng(1), [0, 3, 1, 2]
    theirs.opt.timestep = 1e-12  # the force is that of the current a step later
    for _ in range(10):
        data.qpos[0], data.qvel[:] = rng.normal(), rng.normal(size=5)
        data.ctrl[:], data.act[:] = rng.normal(size=4), rng.normal(size=4) * [0.1, 40, 0.01, 0.5]
        mujoco.mj_forward(theirs, data)
        args = (jnp.asarray(x) for x in (data.qpos, data.qvel, data.act[order], data.ctrl))
        tau, rate = drive.respond(model, *args)
        np.testing.assert_allclose(rate, data.act_dot[order], rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(tau, data.qfrc_actuator, atol=1e-9)
    # as a saved fit has them, and in single precision
    record, arrays = to_record(drive)
    again = from_record(json.loads(json.dumps(record)), arrays)
    args = [jnp.asarray(x) for x in (data.qpos, data.qvel, data.act[order], data.ctrl)]
    np.testing.assert_array_equal(again.respond(model, *args)[0], drive.respond(model, *args)[0])
    single = read_mjcf(text=xml, dtype=jnp.float32)[0]
    short = [x.astype(jnp.float32) for x in args]
    tau, rate = load_actuators(single, text=xml).respond(single, *short)
    assert tau.dtype == rate.dtype == jnp.float32
    np.testing.assert_allclose(tau, drive.respond(model, *args)[0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", ["commands", "heat", "several kinds"])
def test_motion_is_that_of_mujoco(kind):
    _, model, drive, theirs = machine(MOTORS[kind])
    data, motion = mujoco.MjData(theirs), []
    data.qpos[:2] = 0.3, 0.1
    if kind == "several kinds":
        assert drive.names == ("m", "x", "n", "y")
        theirs.opt.timestep = 1e-5  # for the current a step later
    ctrl = np.random.default_rng(3).uniform(-1, 1, (50, theirs.nu))
    for u in ctrl:
        data.ctrl[:] = u
        mujoco.mj_step(theirs, data)
        motion.append((data.qpos[:2].copy(), data.qvel.copy()))
    q0 = jnp.array([0.3, 0.1, 1, 0, 0, 0])
    out = lgsim.rollout(
        model, q0, jnp.zeros(5), dt=theirs.opt.timestep, steps=50, actuators=drive, commands=jnp.asarray(ctrl)
    )
    tolerance = 2e-6 if kind == "several kinds" else 1e-9
    for wanted, found in zip(zip(*motion, strict=True), (out.q[1:, :2], out.v[1:]), strict=True):
        np.testing.assert_allclose(found, np.stack(wanted), atol=tolerance)


def test_bounds_of_an_integral():
    """After a step the integral is within its bounds, as MuJoCo's."""
    _, model, drive, theirs = machine(MOTORS["an integral"])
    assert drive.is_sampled
    data = mujoco.MjData(theirs)
    data.ctrl[:] = 0.5, 3, 0
    for _ in range(5):
        mujoco.mj_step(theirs, data)
    out = lgsim.rollout(
        model, model.neutral(), jnp.zeros(5), dt=1e-3, steps=5, actuators=drive, commands=jnp.asarray(data.ctrl)
    )
    assert data.act[1] == 0.002
    np.testing.assert_allclose(out.actuator_states[-1], data.act, atol=1e-5)


SERVO = """<orientation name="o" joint="b" kp="3" kv=".2" forcerange="0 2" ctrlrange="-2 1"/><motor name="x" joint="c"/>
  <orientation name="p" joint="b" kp="2" dampratio=".5" input="quat"/>"""


def test_servos_of_an_orientation():
    """Both charts, with bounds that act; a rotation by pi, rest and zero commands included."""
    xml, model, drive, theirs = machine(SERVO)
    names = [f"o:r{axis}" for axis in "xyz"] + ["x"] + [f"p:q{axis}" for axis in "wxyz"]
    assert drive.names == tuple(names)
    data, rng = mujoco.MjData(theirs), np.random.default_rng(2)
    respond = jax.jit(lambda q, v, u: drive.respond(model, q, v, jnp.zeros(0), u))
    for k in range(30):
        data.qpos[:], data.qvel[:] = rng.normal(size=6), rng.normal(size=5)
        data.qpos[2:] /= np.linalg.norm(data.qpos[2:])
        data.ctrl[:] = (k % 3) * rng.normal(size=8)
        if k == 1:
            data.qpos[2:], data.qvel[:] = [1, 0, 0, 0], 0
        mujoco.mj_forward(theirs, data)
        tau, _ = respond(*(jnp.asarray(x) for x in (data.qpos, data.qvel, data.ctrl)))
        np.testing.assert_allclose(tau, data.qfrc_actuator, atol=1e-10)
    record, arrays = to_record(drive)
    drive = from_record(json.loads(json.dumps(record)), arrays)
    q, v = model.neutral(), jnp.zeros(5)
    forces = jax.jacfwd(lambda u: respond(q, v, u)[0])(jnp.zeros(8))
    np.testing.assert_allclose(forces[2:, :3], 3 * np.eye(3), atol=1e-12)
    slopes = jax.grad(lambda drive: jnp.sum(drive.respond(model, q, v, jnp.zeros(0), jnp.ones(8))[0] ** 2))(drive)
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(slopes))
    batch = jax.vmap(respond, (None, None, 0))(q, v, jnp.stack([jnp.zeros(8), jnp.ones(8)]))[0]
    np.testing.assert_allclose(batch[1], respond(q, v, jnp.ones(8))[0], atol=1e-12)
    single = read_mjcf(text=xml, dtype=jnp.float32)[0]
    u = jnp.ones(8, jnp.float32)
    tau, _ = load_actuators(single, text=xml).respond(single, single.neutral(), jnp.zeros(5, u.dtype), u[:0], u)
    assert tau.dtype == jnp.float32
    np.testing.assert_allclose(tau, batch[1], rtol=1e-5, atol=1e-6)


def test_keyframes_have_all_commands():
    key = '<keyframe><key name="home" ctrl="1 2 3 4 5 6 7 8 9"/></keyframe>'
    glued = SERVO + '<adhesion body="hand" ctrlrange="0 9" gain="1"/>'
    xml, model, drive, _ = machine(glued, more=key)
    assert drive.commands == 8
    np.testing.assert_array_equal(load_keyframes(model, text=xml)["home"].command, np.arange(1.0, 9))


CURVES = "0 1 -1 200 .5 1.6 1.5 1.3 1.2"
EARLY = f"""dyntype="muscle" gaintype="muscle" biastype="muscle" lengthrange="0 1" actearly="true" gainprm="{CURVES}"
  biasprm="{CURVES}" dynprm=".01 .04 0\""""
STATED = {
    'dcmotor motorconst=".3" resistance="2" input="pos" controller="3 0 0 1 0 0" joint="a"': "slewmax",
    'dcmotor motorconst=".3" resistance="2" lugre="3 0 0 0 0" joint="a"': "its friction is zero",
    'dcmotor motorconst=".3" resistance="2" armature="1" joint="a"': "damping or armature",
    'dcmotor motorconst=".3" resistance="2" input="pos" controller="3 0 0 0 0 0" site="s"': "a site does not have",
    'orientation site="s" refsite="t"': "between two sites",
    'general joint="b" gaintype="so3" biastype="so3" dyntype="integrator" biasprm="0 -1 0"': "integrates its commands",
    'pid joint="a" kp="1"': "several commands",
    'muscle joint="a" lengthrange="0 1" group="3"': "its group is disabled",
    'muscle joint="a" lengthrange="0 1" damping="1"': "damping or armature",
    f'general joint="a" {EARLY}': "(actearly)",
}


@pytest.mark.parametrize("element", STATED)
def test_what_is_not_represented(element):
    xml = MACHINE.format("RK4", f'<{element} name="o"/><motor joint="a"/>', "")
    xml = (
        xml.replace("<option ", '<option actuatorgroupdisable="3" ')
        .replace("</worldbody>", '<site name="t"/></worldbody>')
        .replace('<body name="hand"', '<site name="s"/><body name="hand"')
    )
    model, report = read_mjcf(text=xml)
    found = next(str(each) for each in report.ignored if "actuator 'o'" in str(each))
    assert "actuator 'o' is not represented: " in found and STATED[element] in found
    assert load_actuators(model, text=xml).names == ("actuator1",)


def test_ranges_of_joints_bound_all_kinds_together():
    """A motor of another kind on a joint with a range is stated; on other joints it is not."""
    motors = """<motor name="x" joint="a"/><dcmotor name="m" joint="{}" motorconst=".3" resistance="2"/>
      <motor name="y" joint="a" gear="2"/>"""
    for joint, names in (("a", ("x", "y")), ("c", ("x", "m"))):
        xml = MACHINE.format("RK4", motors.format(joint), "").replace("damping=", 'actuatorfrcrange="-1 1" damping=', 1)
        model, report = read_mjcf(text=xml)
        assert load_actuators(model, text=xml).names == names
        assert "shares a joint with actuatorfrcrange with one of another kind" in report.dropped
