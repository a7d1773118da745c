"""Gravity compensation and forces of a fluid against MuJoCo's passive forces."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lgsim.formats import interop, load_actuators, read_mjcf
from lgsim.formats.actuator_files import read_actuators
from lgsim.identify.actuator_record import from_record, to_record

mujoco = pytest.importorskip("mujoco")
from tests.formats.test_actuator_files import MACHINE as RUNGE_KUTTA  # noqa: E402
from tests.formats.test_actuator_files import both  # noqa: E402

MACHINE = """<mujoco><option {option}/><default><geom contype="0" conaffinity="0"/></default><worldbody>
<body name="base" gravcomp="1" pos="1 0 0"><geom size=".3"/>
<body name="A" pos=".2 0 .1" {a}><joint name="a" axis="0 1 0"/><joint axis="1 0 0" pos=".1 0 0"/>
<geom type="capsule" fromto="0 0 0 .3 0 .4" size=".03" {shape}/>
<body name="fixed" pos=".1 .2 .1" euler="10 20 30" gravcomp=".7"><geom type="box" size=".1 .2 .05" {shape}/></body>
<body name="B" pos=".3 0 .4" {b}><joint name="b" type="ball" pos="0 .1 0"/>
<geom type="cylinder" fromto="0 0 0 0 .2 .3" size=".02" {shape}/><geom type="sphere" size=".1" pos=".1 .1 0" {shape}/>
<body name="C" pos="0 .2 .3"><joint name="c" type="slide" axis="0 0 1"/>
<geom type="ellipsoid" size=".05 .1 .15" {shape}/></body></body></body></body>
<body name="D" gravcomp=".4"><freejoint/><geom type="box" size=".2 .1 .3" pos=".1 0 0" {shape}/></body>
</worldbody></mujoco>"""

ELLIPSOID = 'fluidshape="ellipsoid" fluidcoef=".6 .3 1.4 .9 1.2"'
FLUID = 'density="1.2" viscosity=".3" wind="1 -2 .5"'
CASES = {
    "gravity compensation": ("gravity='1 2 -9'", "gravcomp='1'", "gravcomp='.3'", ""),
    "boxes": (FLUID, "", "", ""),
    "boxes of viscosity": ("viscosity='.7'", "", "", ""),
    "ellipsoids": (FLUID, "", "", ELLIPSOID),
    "ellipsoids of density": ("density='900'", "", "", ELLIPSOID),
    "boxes and ellipsoids": (FLUID, "gravcomp='2'", "", ""),
}


def machine(option, a, b, shape):
    return MACHINE.format(option=option, a=a, b=b, shape=shape)


@pytest.mark.parametrize("case", CASES)
def test_forces_are_those_of_mujoco(case):
    text = machine(*CASES[case])
    if case == "boxes and ellipsoids":
        text = text.replace('size=".05 .1 .15"', f'size=".05 .1 .15" {ELLIPSOID}')
    (model, report), theirs = read_mjcf(text=text), mujoco.MjModel.from_xml_string(text)
    forces, data = load_actuators(model, text=text), mujoco.MjData(theirs)
    assert forces.commands == forces.states == 0
    kinds = {"gravity compensation" if "gravcomp" in text else "", "a fluid" if theirs.opt.viscosity else ""}
    assert all(kind in report.dropped for kind in kinds) and "not represented" not in report.dropped
    # as a saved fit has them
    record, arrays = to_record(forces)
    forces = from_record(json.loads(json.dumps(record)), arrays)
    empty = jnp.zeros(0)
    respond = jax.jit(lambda q, v: forces.respond(model, q, v, empty, empty)[0])
    rng = np.random.default_rng(0)
    for _ in range(3):
        q, v = model.retract(model.neutral(), jnp.asarray(rng.normal(size=model.nv))), rng.normal(size=model.nv)
        data.qpos[:], data.qvel[:] = interop.mujoco.q_to(model, q), interop.mujoco.v_to(model, q, jnp.asarray(v))
        mujoco.mj_forward(theirs, data)
        assert np.linalg.norm(data.qfrc_gravcomp + data.qfrc_fluid) > 1e-3
        found = interop.mujoco.tau_to(model, q, respond(q, jnp.asarray(v)))
        wanted = data.qfrc_gravcomp + data.qfrc_fluid
        np.testing.assert_allclose(found, wanted, atol=1e-12 * max(1, np.max(np.abs(wanted))))


def test_ellipsoids_at_rest_have_no_drag_and_finite_derivatives():
    """The only force at rest is that of the wind, here none; its derivative is the linear drag of the viscosity."""
    text = machine("viscosity='.5' density='3'", "", "", ELLIPSOID)
    model, theirs = read_mjcf(text=text)[0], mujoco.MjModel.from_xml_string(text)
    (term,) = [x for x in load_actuators(model, text=text).terms if hasattr(x, "shapes")]
    q, v, empty = model.neutral(), jnp.zeros(model.nv), jnp.zeros(0)
    assert not np.any(term.respond(model, q, v, empty, empty)[0])
    slope = jax.jit(jax.jacfwd(lambda v: term.respond(model, q, v, empty, empty)[0]))(v)
    data, wanted = mujoco.MjData(theirs), []
    data.qpos[:] = interop.mujoco.q_to(model, q)
    for direction in np.eye(model.nv):
        ends = []
        for sign in (1, -1):
            data.qvel[:] = interop.mujoco.v_to(model, q, jnp.asarray(sign * 1e-7 * direction))
            mujoco.mj_forward(theirs, data)
            ends.append(np.asarray(interop.mujoco.tau_from(model, q, jnp.asarray(data.qfrc_fluid))))
        wanted.append((ends[0] - ends[1]) / 2e-7)
    np.testing.assert_allclose(slope, np.array(wanted).T, atol=1e-6)


@pytest.mark.slow
def test_motion_is_that_of_mujoco():
    """With a motor, over 100 steps of its Runge-Kutta method."""
    rest = '<actuator><motor name="m" joint="b"/></actuator>'
    text = RUNGE_KUTTA.format(option=' density="900" viscosity="2" wind="1 0 1"', joint="", rest=rest)
    text = text.replace('<body name="B"', '<body name="B" gravcomp="1"')
    text = text.replace('fromto="0 0 0 0 0.2', f'{ELLIPSOID} fromto="0 0 0 0 0.2')
    theirs, ours, drive, _ = both(text, np.random.default_rng(0).uniform(-1, 1, (100, 1)), [0.4, -0.3, 0.1])
    assert drive.names == ("m",) and len(drive.terms) == 4
    for wanted, found in zip(theirs, ours, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-12)


def test_what_does_not_act_is_no_force():
    """Fixed bodies, files without gravity, and files without passive forces."""
    fixed = "<body gravcomp='1'><geom size='.1'/></body><body><joint/><geom size='.1'/></body>"
    fixed = f"<mujoco><worldbody>{fixed}</worldbody></mujoco>"
    assert load(fixed) is None
    gravity = machine("", "gravcomp='1'", "", "")
    assert load(gravity.replace("<option />", "<option><flag gravity='disable'/></option>")) is None
    off = "<option viscosity='1'><flag spring='disable' damper='disable'/></option>"
    text = machine("", "gravcomp='1'", "", "").replace("<option />", off)
    theirs = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(theirs)
    data.qvel[:] = 1
    mujoco.mj_forward(theirs, data)
    assert load(text) is None and not np.any(data.qfrc_passive)


def test_a_model_without_a_frame():
    """Forces and tendons of another file say which frame they lack."""
    one = "<body name='{}' gravcomp='1'><joint/><geom size='.1'/><site name='s'/></body>"
    text = f"<mujoco><worldbody>{one.format('a')}<site name='w' pos='1 0 0'/></worldbody>{{}}</mujoco>"
    cord = "<tendon><spatial stiffness='1'><site site='w'/><site site='s'/></spatial></tendon>"
    other = read_mjcf(text=text.format("").replace("'a'", "'b'"))[0]
    for more in ("", cord):
        forces = load(text.format(more))
        forces = forces.terms[0] if more else forces
        with pytest.raises(ValueError, match=r"frame: expected one of b, .*got 'a'"):
            forces.respond(other, other.neutral(), jnp.zeros(1), jnp.zeros(0), jnp.zeros(0))


def load(text):
    return read_actuators(read_mjcf(text=text)[0], text=text)[0]
