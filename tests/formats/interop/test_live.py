"""Accelerations, torques and Jacobians of Pinocchio and MuJoCo, in this process, through the conversions."""

import jax.numpy as jnp
import mujoco
import numpy as np
import pinocchio as pin
import pytest

from lgsim.dynamics.forward_dynamics import forward_dynamics
from lgsim.dynamics.inverse_dynamics import inverse_dynamics
from lgsim.dynamics.jacobians import frame_jacobian
from lgsim.dynamics.kinematics import forward_kinematics
from lgsim.formats import interop, load_urdf
from lgsim.multibody import joints
from lgsim.multibody.builder import ModelBuilder
from tests.multibody.trees import CASES, body, build, pose, state
from tests.multibody.twin import Twin

pytestmark = pytest.mark.oracle

LINK = """<link name="{}"><inertial><origin xyz="0.1 -0.2 0.3" rpy="0.4 -0.5 0.6"/><mass value="1.5"/>
<inertia ixx="0.02" ixy="0.001" ixz="-0.002" iyy="0.03" iyz="0.003" izz="0.025"/></inertial></link>"""
JOINT = """<joint name="{}" type="{}"><parent link="{}"/><child link="{}"/><origin xyz="1 2 3" rpy="0.3 0.2 0.1"/>
<axis xyz="0 0 1"/><limit lower="-1" upper="1" effort="1" velocity="1"/>{}</joint>"""
# Pinocchio sorts siblings by name
JOINTS = [
    ("z", "continuous", "a", "b", ""),
    ("y", "planar", "a", "c", ""),
    ("x", "prismatic", "a", "d", ""),
    ("w", "floating", "b", "e", ""),
    ("v", "revolute", "b", "f", '<mimic joint="x" multiplier="-2" offset="0.5"/>'),
    ("u", "continuous", "c", "g", '<mimic joint="x" multiplier="0.5" offset="-1"/>'),
]


def close(ours, theirs, tolerance=1e-12):
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=tolerance * max(1, np.max(np.abs(theirs))))


def urdf(count):
    links = "".join(LINK.format(name) for name in "abcdefg"[: count + 1])
    return f"<robot name='r'>{links}{''.join(JOINT.format(*joint) for joint in JOINTS[:count])}</robot>"


@pytest.mark.slow
def test_accelerations_of_a_file_are_those_of_pinocchio():
    model, theirs = (
        load_urdf(text=urdf(4), floating_base=True),
        pin.buildModelFromXML(urdf(4), pin.JointModelFreeFlyer()),
    )
    order, tool, (q, v, tau) = list(theirs.names), interop.pinocchio, state(model)
    assert order[1:] != list(model.joint_names)
    x, xv, force = tool.q_to(model, q, order), tool.v_to(model, q, v, order), tool.tau_to(model, q, tau, order)
    assert x.shape == (theirs.nq,)
    a = pin.aba(theirs, theirs.createData(), *map(np.array, (x, xv, force)))
    close(forward_dynamics(model, q, v, tau), tool.a_from(model, q, v, a, order), 1e-11)


def test_joints_that_mimic_have_numbers_in_pinocchio():
    model, theirs = load_urdf(text=urdf(6), floating_base=False), pin.buildModelFromXML(urdf(6))
    order, tool, (q, v, a) = list(theirs.names), interop.pinocchio, state(model)
    x, xv, xa = tool.q_to(model, q, order), tool.v_to(model, q, v, order), tool.a_to(model, q, v, a, order)
    tau = pin.rnea(theirs, theirs.createData(), *map(np.array, (x, xv, xa)))
    close(inverse_dynamics(model, q, v, a), tool.tau_from(model, q, tau, order))
    close(tool.v_from(model, q, xv, order), v)
    J = np.random.default_rng(0).normal(size=(3, theirs.nv))
    close(tool.jacobian_from(model, q, J, order) @ v, J @ xv)


@pytest.mark.slow
def test_accelerations_of_groups_are_those_of_pinocchio():
    kinds = [kind for kind in CASES["groups"][0] if kind != "sphericalangles"]  # Pinocchio has no such joint
    model = build(kinds, CASES["groups"][1][: len(kinds)])
    twin, tool, (q, v, tau) = Twin(model), interop.pinocchio, state(model)
    order = list(twin.pin.names)
    there = tool.q_to(model, q, order), tool.v_to(model, q, v, order), tool.tau_to(model, q, tau, order)
    a = pin.aba(twin.pin, twin.data, *map(np.array, there))
    close(forward_dynamics(model, q, v, tau), tool.a_from(model, q, v, a, order), 1e-11)


def test_inertias_and_frames_are_those_of_pinocchio():
    rng = np.random.default_rng(0)
    values = build(["revolute"], [-1]).inertias[0]
    mass, lever, inertia = interop.pinocchio.inertia_to(values)
    close(pin.Inertia(float(mass), np.array(lever), np.array(inertia)).toDynamicParameters(), values)
    T = pose(rng)
    close(pin.XYZQUATToSE3(np.array(interop.pinocchio.frame_to(jnp.asarray(T)))).homogeneous, T)


def numbers(values):
    return " ".join(repr(float(x)) for x in np.ravel(values))


def inertial(values):
    mass, center, quaternion, moments = map(numbers, interop.mujoco.inertia_to(values))
    return f'<inertial mass="{mass}" pos="{center}" quat="{quaternion}" diaginertia="{moments}"/>'


def placed(T):
    x = interop.mujoco.frame_to(T)
    return f'pos="{numbers(x[:3])}" quat="{numbers(x[3:])}"'


@pytest.fixture(scope="module")
def pair():
    """A free body on a frame apart from the world's, on it a planar and a spherical joint; and the same in MuJoCo."""
    rng = np.random.default_rng(3)
    builder = ModelBuilder()
    for name, parent, kind in (
        ("a", "world", joints.Free()),
        ("b", "a", joints.Planar()),
        ("c", "b", joints.Spherical()),
    ):
        builder.add_body(name, parent, kind, placement=pose(rng), **body(rng))
    model = builder.build()
    _, second, third = (placed(T) for T in model.placements)
    text = f"""<mujoco><worldbody><body name="a"><freejoint/>{inertial(model.inertias[0])}<body name="b" {second}>
        <joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 1 0"/><joint axis="0 0 1"/>
        {inertial(model.inertias[1])}<body name="c" {third}><joint type="ball"/>{inertial(model.inertias[2])}
        </body></body></body></worldbody></mujoco>"""
    return model, mujoco.MjModel.from_xml_string(text)


@pytest.mark.quick
def test_accelerations_are_those_of_mujoco(pair):
    model, theirs = pair
    data, tool, (q, v, tau) = mujoco.MjData(theirs), interop.mujoco, state(model)
    data.qpos[:], data.qvel[:] = tool.q_to(model, q), tool.v_to(model, q, v)
    data.qfrc_applied[:] = tool.tau_to(model, q, tau)
    mujoco.mj_forward(theirs, data)
    close(tool.a_to(model, q, v, forward_dynamics(model, q, v, tau)), data.qacc, 1e-11)


@pytest.mark.slow
def test_jacobians_frames_and_inertias_are_those_of_mujoco(pair):
    model, theirs = pair
    data, tool, (q, v, _) = mujoco.MjData(theirs), interop.mujoco, state(model)
    data.qpos[:], data.qvel[:] = tool.q_to(model, q), tool.v_to(model, q, v)
    mujoco.mj_forward(theirs, data)
    T, J = forward_kinematics(model, q)[2], frame_jacobian(model, q, "c")
    close(tool.frame_from(jnp.asarray([*data.xpos[3], *data.xquat[3]])), T)
    linear, angular = np.zeros((2, 3, theirs.nv))
    mujoco.mj_jacBody(theirs, data, linear, angular, 3)
    columns = tool.twist_to(T, J.T).T
    close(tool.jacobian_to(model, q, columns), np.concatenate([angular, linear]))
    twist = np.zeros(6)
    mujoco.mj_objectVelocity(theirs, data, mujoco.mjtObj.mjOBJ_XBODY, 3, twist, 0)
    close(tool.twist_to(T, J @ v), twist)
    compiled = theirs.body_mass[1:], theirs.body_ipos[1:], theirs.body_iquat[1:], theirs.body_inertia[1:]
    close(tool.inertia_from(*map(jnp.asarray, compiled)), model.inertias)
