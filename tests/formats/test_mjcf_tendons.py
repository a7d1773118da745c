"""Spatial tendons, their shapes, pulleys, springs and actuators against MuJoCo."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim.dynamics.mass_matrix import mass_matrix
from lgsim.formats import FileError, load_actuators, read_mjcf
from lgsim.identify.actuator_record import from_record, to_record
from lgsim.scenarios.study import load_motion
from tests.cli.machines import lgsim as command

mujoco = pytest.importorskip("mujoco")

POLYNOMIALS = pytest.mark.skipif(int(mujoco.__version__[0]) < 4, reason="polynomial springs are of MuJoCo 4")

MACHINE = """<mujoco><option integrator="RK4" timestep="0.002"/>
<default><geom contype="0" conaffinity="0"/></default><worldbody>
<site name="w" pos="-.3 .1 .5"/><site name="far" pos=".1 .6 .9"/>
<body name="A" pos="0 0 .1"><joint name="a" axis="0 1 0" damping=".1"/><joint name="turn" axis="0 0 1"/>
<geom type="capsule" fromto="0 0 0 0.3 0 0.4" size="0.03"/>
<site name="a1" pos=".1 .05 .2"/><site name="a2" pos=".2 .1 .4"/>
<geom name="ball" type="sphere" pos=".25 .02 .35" size=".08" mass=".1"/><site name="beside" pos=".25 .2 .35"/>
<site name="within" pos=".26 .03 .35"/>
<body name="B" pos="0.3 0 0.4"><joint name="b" type="ball"/><geom type="capsule" fromto="0 0 0 0 0.2 0.3" size="0.02"/>
<geom name="tube" type="cylinder" pos="0 .05 .1" size=".06 .2" euler="30 80 10" mass=".1"/>
<site name="b0" pos=".01 .12 .04"/><site name="b1" pos=".05 .15 .3"/><site name="b2" pos="0 .2 .3"/>
<site name="past" pos=".2 .05 .1"/><site name="in tube" pos="0.01 .05 .1"/>
<body name="C" pos="0 .2 .3"><joint name="c" type="slide" axis="0 0 1" stiffness="4 30" damping="2 5"/>
<geom type="sphere" size=".05"/><site name="c1" pos=".1 0 0"/></body></body></body></worldbody>
<tendon>{tendons}</tendon><actuator>{actuators}</actuator></mujoco>"""

PATHS = {
    "straight": '<site site="w"/><site site="a1"/><site site="b1"/><site site="c1"/>',
    "pulleys": """<site site="w"/><site site="a2"/><pulley divisor="2"/><site site="a2"/><site site="b1"/>
        <pulley divisor="3"/><site site="a1"/><site site="c1"/>""",
    "a sphere": '<site site="a1"/><geom geom="ball"/><site site="b1"/>',
    "a sphere with a side": '<site site="a1"/><geom geom="ball" sidesite="beside"/><site site="b1"/>',
    "through a sphere": '<site site="w"/><geom geom="ball" sidesite="within"/><site site="c1"/>',
    "a cylinder": '<site site="a2"/><geom geom="tube"/><site site="b2"/>',
    "a cylinder with a side": '<site site="a1"/><geom geom="tube" sidesite="past"/><site site="far"/>',
    "through a cylinder": '<site site="a1"/><geom geom="tube" sidesite="in tube"/><site site="c1"/>',
    "several shapes": """<site site="w"/><geom geom="ball"/><site site="b0"/><geom geom="tube" sidesite="past"/>
        <site site="c1"/><geom geom="ball" sidesite="beside"/><site site="far"/>""",
}


def machine(paths=PATHS, actuators="", attributes=""):
    tendons = "".join(f'<spatial name="{name}" {attributes}>{path}</spatial>' for name, path in paths.items())
    motors = actuators or "".join(f'<motor name="{name}" tendon="{name}"/>' for name in paths)
    return MACHINE.format(tendons=tendons, actuators=motors)


def states(theirs, count, seed=0):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        q = rng.uniform(-2.5, 2.5, theirs.nq)
        q[2:6] = rng.normal(size=4)
        q[2:6] /= np.linalg.norm(q[2:6])
        yield q, rng.normal(size=theirs.nv)


@pytest.mark.slow
def test_lengths_and_moments_are_those_of_mujoco():
    """Every kind of path over 300 configurations; each shape is wrapped around and passed by."""
    xml = machine()
    model, theirs = read_mjcf(text=xml)[0], mujoco.MjModel.from_xml_string(xml)
    paths = load_actuators(model, text=xml).terms[0].transmission.paths
    data, both = mujoco.MjData(theirs), jax.jit(lambda q: paths.lengths_and_moments(model, q))
    seen, sided = np.zeros((len(PATHS), 2), int), np.array(["sidesite" in path for path in PATHS.values()])
    loose = np.array(["through" in name for name in PATHS])
    for q, _ in states(theirs, 300):
        data.qpos[:] = q
        mujoco.mj_forward(theirs, data)
        lengths, moments = both(jnp.asarray(q))
        wanted = np.zeros((theirs.ntendon, theirs.nv))
        for i in range(theirs.ntendon):
            part = slice(theirs.ten_J_rowadr[i], theirs.ten_J_rowadr[i] + theirs.ten_J_rownnz[i])
            wanted[i, theirs.ten_J_colind[part]] = data.ten_J[part]
            first, number = data.ten_wrapadr[i], data.ten_wrapnum[i]
            touches = np.any(data.wrap_obj.ravel()[first : first + number] >= 0)
            seen[i, int(touches)] += 1
        if int(mujoco.__version__[0]) < 4:  # went around in more cases of a side
            lengths, moments = (np.where(sided.reshape(-1, *[1] * (np.ndim(x) - 1)), y, x)
                                for x, y in ((lengths, data.ten_length), (moments, wanted)))  # fmt: skip
        # MuJoCo's point on the inside of a shape is found to 1e-6, where the length is stationary
        np.testing.assert_allclose(np.asarray(lengths)[~loose], data.ten_length[~loose], atol=1e-12)
        np.testing.assert_allclose(np.asarray(moments)[~loose], wanted[~loose], atol=1e-9)
        np.testing.assert_allclose(np.asarray(lengths)[loose], data.ten_length[loose], atol=1e-9)
        np.testing.assert_allclose(np.asarray(moments)[loose], wanted[loose], atol=1e-5)
    assert np.all(seen[2:] > 5), seen


@pytest.mark.slow
def test_moments_are_the_slopes_of_lengths():
    """By differences along v, and the slopes of the moments are finite; float32 has the same lengths."""
    xml = machine()
    model, theirs = read_mjcf(text=xml)[0], mujoco.MjModel.from_xml_string(xml)
    paths = load_actuators(model, text=xml).terms[0].transmission.paths
    both, lengths = (jax.jit(lambda q, f=f: f(model, q)) for f in (paths.lengths_and_moments, paths.lengths))
    slopes = jax.jit(jax.jacfwd(lambda q: paths.lengths_and_moments(model, q)[1]))
    single = read_mjcf(text=xml, dtype=jnp.float32)[0]
    short = load_actuators(single, text=xml).terms[0].transmission.paths
    for q, v in states(theirs, 20, 1):
        q, v = jnp.asarray(q), jnp.asarray(v)
        ends = [lengths(model.retract(q, s * 1e-6 * v)) for s in (1, -1)]
        found, moments = both(q)
        np.testing.assert_allclose(moments @ v, (ends[0] - ends[1]) / 2e-6, atol=1e-7)
        assert np.all(np.isfinite(slopes(q)))
        np.testing.assert_allclose(short.lengths(single, q.astype(jnp.float32)), found, atol=3e-5)


SPRINGS = 'stiffness="300 50" springlength=".2 .45" damping="3 2"'


@pytest.mark.slow
def test_motion_is_that_of_mujoco():
    """Springs, dampers, a muscle and a servo on tendons, a nonlinear spring of a joint: 100 Runge-Kutta steps."""
    names = ("straight", "pulleys", "a sphere", "a cylinder with a side")
    actuators = """<motor tendon="straight" gear="-2"/><position tendon="pulleys" kp="40" kv="3" gear="1.5"/>
      <muscle tendon="a sphere" lengthrange=".1 .5" force="50"/><motor joint="c"/>"""
    xml = machine({name: PATHS[name] for name in names}, actuators, SPRINGS)
    # a ball joint turns by other means in MuJoCo's method
    xml = xml.replace('<joint name="b" type="ball"/>', '<joint name="b" axis="1 1 0"/>')
    model, report = read_mjcf(text=xml)
    drive, theirs = load_actuators(model, text=xml), mujoco.MjModel.from_xml_string(xml)
    assert drive.commands == 4 and drive.names == ("actuator0", "actuator1", "actuator2", "actuator3")
    dropped = [str(each) for each in report.ignored if "tendon '" in str(each) or "joint 'c'" in str(each)]
    assert len(dropped) == 5 and all("load_actuators" in text for text in dropped)
    # as a saved fit has them
    record, arrays = to_record(drive)
    drive = from_record(json.loads(json.dumps(record)), arrays)
    data, motion = mujoco.MjData(theirs), []
    q0 = np.array([0.4, -0.3, 0.2, 0.05])
    data.qpos[:] = q0
    ctrl = np.random.default_rng(3).uniform(0, 1, (100, 4))
    for k in range(100):
        data.ctrl[:] = ctrl[k]
        mujoco.mj_step(theirs, data)
        motion.append((data.qpos.copy(), data.qvel.copy()))
    out = lgsim.rollout(
        model, jnp.asarray(q0), jnp.zeros(4), dt=0.002, steps=100, actuators=drive, commands=jnp.asarray(ctrl)
    )
    for wanted, found in zip(zip(*motion, strict=True), (out.q[1:], out.v[1:]), strict=True):
        np.testing.assert_allclose(found, np.stack(wanted), atol=1e-9)


@POLYNOMIALS
def test_springs_alone():
    """A fixed tendon and a joint with polynomials, without any actuator: passive forces of MuJoCo."""
    tendons = """<fixed name="t" stiffness="50 8" damping="2 3" springlength=".1 .3"><joint joint="a" coef=".7"/>
      <joint joint="c" coef="-1.2"/></fixed>"""
    xml = MACHINE.format(tendons=tendons, actuators="")
    model, theirs = read_mjcf(text=xml)[0], mujoco.MjModel.from_xml_string(xml)
    springs, data = load_actuators(model, text=xml), mujoco.MjData(theirs)
    assert springs.commands == 0 and springs.names == ()
    for q, v in states(theirs, 10):
        data.qpos[:], data.qvel[:] = q, v
        mujoco.mj_forward(theirs, data)
        tau, _ = springs.respond(model, jnp.asarray(q), jnp.asarray(v), jnp.zeros(0), jnp.zeros(0))
        own = np.zeros(theirs.nv)
        own[-1] = -4 * q[-1] - 2 * v[-1]
        own[0] = -0.1 * v[0]
        np.testing.assert_allclose(tau + own, data.qfrc_passive, atol=1e-12)


@POLYNOMIALS
def test_what_is_not_represented():
    path = '<site site="a1"/><geom geom="ball" sidesite="past"/><site site="b1"/>'
    xml = machine({"t": path, "u": PATHS["straight"]}, attributes='limited="true" range="0 1"')
    model, report = read_mjcf(text=xml)
    texts = [str(each) for each in report.ignored if "'t'" in str(each) or "'u'" in str(each)]
    assert any(
        "tendon 't' is not represented: its side site 'past' is on another body than the geom" in x for x in texts
    )
    assert any("actuator 't' is not represented: its side site 'past'" in x for x in texts)
    assert any("tendon 'u' has limits, which load_actuators represents with stops=" in x for x in texts)
    assert load_actuators(model, text=xml).names == ("u",)
    worn = '<fixed stiffness="3" springyield="1"><joint joint="a" coef="1"/></fixed>'
    _, report = read_mjcf(text=MACHINE.format(tendons=worn, actuators=""))
    assert "tendon 'tendon0' plasticity of the spring is not represented" in report.dropped
    both = '<fixed armature="2"><joint joint="a" coef="1"/><joint joint="c" coef="1"/></fixed>'
    _, report = read_mjcf(text=MACHINE.format(tendons=both, actuators=""))
    assert "tendon 'tendon0' is represented without armature" in report.dropped


@POLYNOMIALS
def test_dry_friction_and_armature():
    """Friction as joints have it, of MuJoCo's friction loss and velocity; the inertia of a tendon with one joint."""
    more = '<fixed name="one" armature="3"><joint joint="c" coef="-2"/></fixed><spatial name="s" frictionloss="1.5">'
    xml = MACHINE.format(tendons=f"{more}{PATHS['pulleys']}</spatial>", actuators="")
    (model, report), theirs = read_mjcf(text=xml), mujoco.MjModel.from_xml_string(xml)
    assert "armature" not in report.dropped and "load_actuators" in report.dropped
    friction, data = load_actuators(model, text=xml), mujoco.MjData(theirs)
    for q, v in states(theirs, 3):
        data.qpos[:], data.qvel[:] = q, v
        mujoco.mj_forward(theirs, data)
        tau, _ = friction.respond(model, jnp.asarray(q), jnp.asarray(v), jnp.zeros(0), jnp.zeros(0))
        row = slice(theirs.ten_J_rowadr[1], theirs.ten_J_rowadr[1] + theirs.ten_J_rownnz[1])
        wanted = np.zeros(theirs.nv)
        wanted[theirs.ten_J_colind[row]] = -1.5 * np.tanh(data.ten_velocity[1] / 0.1) * data.ten_J[row]
        wanted[-1] -= 30 * q[-1] ** 2 + 5 * v[-1] * abs(v[-1])  # of the joint c
        np.testing.assert_allclose(tau, wanted, atol=1e-12)
        mass = np.zeros((theirs.nv, theirs.nv))
        for column, axis in zip(mass, np.eye(theirs.nv), strict=True):
            mujoco.mj_mulM(theirs, data, column, axis)
        np.testing.assert_allclose(mass_matrix(model, jnp.asarray(q)), mass, atol=1e-12)


@POLYNOMIALS
def test_limits_act_as_those_of_joints():
    """A tendon of one joint has the stop of that joint; coupled and spatial ones the same law along their lengths."""
    tendons = """<fixed name="one" range="-.2 .3"><joint joint="c" coef="1"/></fixed>
      <fixed name="two" range="-.1 .2"><joint joint="a" coef=".7"/><joint joint="c" coef="-1.2"/></fixed>
      <spatial name="path" range=".1 .4">{}</spatial><fixed name="free"><joint joint="a" coef="2"/></fixed>"""
    xml = MACHINE.format(tendons=tendons.format(PATHS["pulleys"]), actuators="").replace(' stiffness="4 30"', "")
    xml = xml.replace(' damping="2 5"', "")
    (model, report), theirs = read_mjcf(text=xml), mujoco.MjModel.from_xml_string(xml)
    assert report.dropped.count("limits") == 1 and "load_actuators represents with stops=" in report.dropped
    with pytest.raises(FileError, match="expected supported actuators, got none"):
        load_actuators(model, text=xml)
    with pytest.raises(ValueError, match=r"stops: expected a positive number of seconds, got 0\.0"):
        load_actuators(model, text=xml, stops=0.0)
    stops, data = load_actuators(model, text=xml, stops=0.03), mujoco.MjData(theirs)
    limited = model.replace(lower=model.lower.at[-1].set(-0.2), upper=model.upper.at[-1].set(0.3))
    limited = lgsim.with_stops(limited, 0.03)
    alone = load_actuators(model, text=xml.replace('range="-.1 .2"', "").replace('range=".1 .4"', ""), stops=0.03)
    mujoco.mj_forward(theirs, data)
    rows = np.zeros((theirs.ntendon, theirs.nv))

    def moments():
        for i in range(theirs.ntendon):
            part = slice(theirs.ten_J_rowadr[i], theirs.ten_J_rowadr[i] + theirs.ten_J_rownnz[i])
            rows[i, theirs.ten_J_colind[part]] = data.ten_J[part]
        return rows

    mass = np.array(mass_matrix(model, jnp.asarray(theirs.qpos0)))
    k = (np.pi / 0.03) ** 2 / np.einsum("ti,ij,tj->t", moments(), np.linalg.inv(mass), rows)
    free = np.zeros(0)
    for q, v in states(theirs, 10):
        data.qpos[:], data.qvel[:] = q, v
        mujoco.mj_forward(theirs, data)
        args = [jnp.asarray(x) for x in (q, v, free, free)]
        joint = lgsim.passive_forces(limited, *args[:2]) - lgsim.passive_forces(model, *args[:2])
        np.testing.assert_allclose(alone.respond(model, *args)[0], joint, rtol=1e-10, atol=1e-8)
        x, speed = data.ten_length[:3], data.ten_velocity[:3]
        low, high = theirs.tendon_range[:3].T
        e = np.maximum(x - high, 0) - np.maximum(low - x, 0)
        # the damping with which a bounce at 1 m/s keeps half the speed
        force = -k[:3] * (e + 1.4327505 * np.abs(e) * speed)
        np.testing.assert_allclose(stops.respond(model, *args)[0], force @ moments()[:3], rtol=1e-6, atol=1e-6)
    slopes = jax.grad(lambda stops: jnp.sum(stops.respond(model, *args)[0] ** 2))(stops)
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(slopes))


def test_a_limit_without_inertia_is_stated():
    """A tether along a hanging pendulum, whose length is stationary there."""
    xml = """<mujoco><worldbody><site name="w" pos="0 0 1"/><body><joint axis="0 1 0"/><site name="s" pos="0 0 -.3"/>
      <geom size=".1" pos="0 0 -.1" contype="0" conaffinity="0"/></body></worldbody>
      <tendon><spatial name="t" range="0 1"><site site="w"/><site site="s"/></spatial></tendon></mujoco>"""
    model, report = read_mjcf(text=xml)
    assert report.dropped == "tendon 't' is represented without limits: its length is stationary at qpos0"
    with pytest.raises(FileError, match="expected supported actuators, got none"):
        load_actuators(model, text=xml, stops=0.02)


def test_a_bounce_at_a_limit_of_a_tendon(tmp_path):
    """A mass on a slide that meets the limit at 1 m/s leaves with half of it after about the contact time."""
    xml = """<mujoco><option gravity="0 0 0"/><worldbody><body><joint name="s" type="slide" axis="1 0 0"/>
      <geom size=".1" mass="3"/></body></worldbody><tendon><fixed range="-9 0"><joint joint="s" coef="-2"/></fixed>
      </tendon><actuator><motor name="m" joint="s"/></actuator></mujoco>"""
    model = read_mjcf(text=xml)[0]
    stops = load_actuators(model, text=xml, stops=0.02)
    # the tendon is twice as fast as the joint
    out = lgsim.rollout(model, jnp.zeros(1), jnp.array([-0.5]), dt=1e-4, steps=400, actuators=stops)
    path = tmp_path / "slide.xml"
    path.write_text(xml)
    words = ("--v", "s=-0.5", "--ctrl", "0", "--stops", "--dt", "1e-4", "--duration", "0.04", "--no-step-check")
    result = command("simulate", path, *words, "--out", path.with_suffix(".npz"))
    assert result.exit_code == 0, result.stderr
    np.testing.assert_allclose(lgsim.Trajectory.load(path.with_suffix(".npz")).v[-1], out.v[-1], rtol=1e-5)
    text = '[machine]\nfile = "slide.xml"\nstops = {}\n[time]\ndt = 1e-4\nduration = 1e-3\n[control]\nlaw = "actuators"'
    for flag, count in (("true", 2), ("false", 1)):
        path.with_suffix(".toml").write_text(text.format(flag))
        drives = load_motion(path.with_suffix(".toml")).rollout.actuators
        assert len(getattr(drives, "terms", (drives,))) == count
    np.testing.assert_allclose(out.v[-1], [0.25], rtol=1e-4)
    beyond = np.flatnonzero(np.asarray(out.q[:, 0]) < 0)
    assert 0.018 < 1e-4 * len(beyond) < 0.026
