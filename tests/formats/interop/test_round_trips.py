"""Every conversion against its inverse, and against what it must keep: power, velocities as derivatives."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lgsim.dynamics.kinematics import forward_kinematics
from lgsim.formats.interop import drake, mujoco, pinocchio
from lgsim.lie import conversions, se3
from lgsim.multibody import joints
from lgsim.multibody.builder import ModelBuilder
from lgsim.multibody.inertia import parameters
from tests.multibody.trees import body, build, pose, state

TOOLS = {"pinocchio": pinocchio, "mujoco": mujoco, "drake": drake}
KINDS = [
    "free", "continuous", "spherical", "helical", "planar", "universal", "cylindrical", "compound", "prismatic",
]  # fmt: skip


def made(kinds):
    model = build(kinds, [-1, 0, 0, 1, 1, 2, 2, 4, 4, 3][: len(kinds)])
    return model, [model.joint_names[i] for i in (3, 0, 7, 9, 2, 1, 8, 4, 6, 5) if i < len(kinds)]


@pytest.fixture(scope="module")
def machine():
    return made(KINDS)


@pytest.fixture(scope="module")
def machines(machine):
    """For each tool a machine whose joints it has: three angles with body rates are Drake's alone."""
    return {"pinocchio": machine, "mujoco": machine, "drake": made([*KINDS, "sphericalangles"])}


def close(ours, theirs, tolerance=1e-12):
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=tolerance * max(1, np.max(np.abs(theirs))))


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("ordered", [False, True])
def test_round_trips(tool, ordered, machines):
    model, order = machines[tool]
    order = order if ordered else None
    tool = TOOLS[tool]
    q, v, a = state(model, batch=(2, 3))
    back = tool.q_from(model, tool.q_to(model, q, order), order)
    for name, part in model.q_slices.items():
        # a quaternion and its negative are the same rotation
        mine, there = q[..., part], back[..., part]
        if isinstance(model.topology.joints[model.joint_names.index(name)], joints.Free | joints.Spherical):
            mine, there = (x * jnp.sign(x[..., -4:-3]) for x in (mine, there))
            mine, there = (x.at[..., :-4].set(y[..., :-4]) for x, y in ((mine, q[..., part]), (there, back[..., part])))
        close(there, mine)
    close(tool.v_from(model, q, tool.v_to(model, q, v, order), order), v)
    close(tool.a_from(model, q, v, tool.a_to(model, q, v, a, order), order), a)
    close(tool.tau_from(model, q, tool.tau_to(model, q, a, order), order), a)
    J = jnp.asarray(np.random.default_rng(1).normal(size=(2, 3, 4, model.nv)))
    close(tool.jacobian_from(model, q, tool.jacobian_to(model, q, J, order), order), J)


@pytest.mark.repeats
@pytest.mark.parametrize("tool", TOOLS)
def test_power_and_derivatives_are_kept(tool, machines):
    model, order = machines[tool]
    tool = TOOLS[tool]
    q, v, a = state(model)
    theirs, rate = jax.jvp(lambda q, v: tool.v_to(model, q, v, order), (q, v), (model.rate(q, v), a))
    close(tool.a_to(model, q, v, a, order), rate)
    tau, J = a + 1, jnp.asarray(np.random.default_rng(1).normal(size=(4, model.nv)))
    close(theirs @ tool.tau_to(model, q, tau, order), v @ tau)
    close(tool.jacobian_to(model, q, J, order) @ theirs, J @ v)


def moving(kind, tool):
    """Their q, its rate and their v of a machine of one joint."""
    model = build([kind], [-1])
    model = model.replace(placements=jnp.eye(4)[None])
    q, v, _ = state(model)
    x, dx = jax.jvp(lambda q: tool.q_to(model, q), (q,), (model.rate(q, v),))
    return x, dx, tool.v_to(model, q, v)


def spin(q, dq):
    """The angular velocity in world axes of a quaternion that moves: ``2 dq conj(q)``."""
    w, x = q[0], q[1:]
    return 2 * (w * dq[1:] - dq[0] * x - jnp.cross(dq[1:], x))


def test_drake_writes_a_floating_base_in_world_axes_angular_first():
    x, dx, v = moving("free", drake)
    close(spin(x[:4], dx[:4]), v[:3])
    close(dx[4:], v[3:])


@pytest.mark.parametrize("kind", ["spherical", "sphericalangles"])
def test_drake_writes_a_ball_in_roll_pitch_yaw_with_the_angular_velocity_of_the_parent(kind):
    x, dx, v = moving(kind, drake)
    roll, pitch, yaw = x
    # of turns about x, then y, then z, all fixed axes: each later turn carries the axes of the earlier ones
    c, s = np.cos, np.sin
    Ry = np.array([[c(pitch), 0, s(pitch)], [0, 1, 0], [-s(pitch), 0, c(pitch)]])
    Rz = np.array([[c(yaw), -s(yaw), 0], [s(yaw), c(yaw), 0], [0, 0, 1]])
    Rx = np.array([[1, 0, 0], [0, c(roll), -s(roll)], [0, s(roll), c(roll)]])
    axes = np.stack([Rz @ Ry[:, 0], Rz[:, 1], np.eye(3)[2]], axis=1)
    close(axes @ np.asarray(dx), v)
    model = build([kind], [-1]).replace(placements=jnp.eye(4)[None])
    close(forward_kinematics(model, state(model)[0])[0, :3, :3], Rz @ Ry @ Rx)


def test_planes_have_the_velocity_of_their_coordinates_but_in_pinocchio():
    for tool in (drake, mujoco):
        _, dx, v = moving("planar", tool)
        close(dx, v)
    x, dx, v = moving("planar", pinocchio)
    c, s = x[2:]
    close(dx, jnp.stack([c * v[0] - s * v[1], s * v[0] + c * v[1], -s * v[2], c * v[2]]))


def test_mujoco_writes_a_free_joint_in_world_axes_and_its_spin_in_the_body():
    x, dx, v = moving("free", mujoco)
    close(dx[:3], v[:3])
    R = conversions.matrix_from_quaternion(x[3:])
    close(spin(x[3:], dx[3:]), R @ v[3:])


@pytest.mark.parametrize("tool", TOOLS)
def test_inertias_frames_and_twists_come_back(tool):
    tool, rng = TOOLS[tool], np.random.default_rng(0)
    values = jnp.stack([parameters(*(jnp.asarray(x, float) for x in body(rng).values())) for _ in range(5)])
    close(tool.inertia_from(*tool.inertia_to(values)), values, 1e-13)
    assert np.all(np.isfinite(np.concatenate([np.ravel(x) for x in tool.inertia_to(jnp.zeros(10))])))
    T = jnp.stack([jnp.asarray(pose(rng)) for _ in range(5)])
    close(tool.frame_from(tool.frame_to(T)), T, 1e-14)
    if tool is not pinocchio:
        V = jnp.asarray(rng.normal(size=(5, 6)))
        world = tool.twist_to(T, V)
        close(tool.twist_from(T, world), V)
        at_origin = T.at[:, :3, 3].set(0)
        close(jnp.roll(world, 3, axis=-1), se3.Ad_action(at_origin, V))


def test_unit_inertia_of_drake_is_about_the_origin():
    values = parameters(jnp.asarray(2.0), jnp.asarray([0.5, 0.0, 0.0]), jnp.diag(jnp.asarray([0.1, 0.2, 0.3])))
    mass, center, unit = drake.inertia_to(values)
    assert (float(mass), center.tolist()) == (2, [0.5, 0, 0])
    close(unit, np.diag([0.05, 0.1 + 0.25, 0.15 + 0.25]))


def test_orders_that_are_none_are_refused(machine):
    model, order = machine
    q, v, _ = state(model)
    with pytest.raises(
        ValueError, match="order: expected the names of the model's joints, each once, got 'elbow'; the"
    ):
        drake.q_to(model, q, [*order, "elbow"])
    with pytest.raises(ValueError, match=f"each once, got '{order[0]}' twice"):
        drake.v_to(model, q, v, [*order, order[0]])
    with pytest.raises(ValueError, match=f"expected all joints of the model, '{order[-1]}' is missing"):
        drake.v_to(model, q, v, order[:-1])
    pinocchio.q_to(model, q, ["universe", *order])
    with pytest.raises(ValueError, match="'universe'"):
        drake.q_to(model, q, ["universe", *order])


def test_other_faults_are_refused(machine):
    model, _ = machine
    q, v, _ = state(model)
    with pytest.raises(ValueError, match=r"q: expected shape \(..., 24\)"):
        pinocchio.q_to(model, v)
    with pytest.raises(ValueError, match=r"x: expected shape \(..., 22\)"):
        pinocchio.v_from(model, q, v[:-1])
    with pytest.raises(TypeError, match="q: expected an array of float32 or float64"):
        drake.q_to(model, np.zeros(model.nq, int))
    inner = ModelBuilder().add_body("a", "world", joints.Revolute()).add_body("b", "a", joints.Free(), mass=1.0).build()
    with pytest.raises(ValueError, match="joint 'b': expected a Free joint with the world as parent, got the parent"):
        mujoco.q_to(inner, inner.neutral())
    angles = ModelBuilder().add_body("a", "world", joints.SphericalAngles(), mass=1.0).build()
    for tool in (pinocchio, mujoco):
        with pytest.raises(
            ValueError, match=r"joint 'a': expected a joint type of the tool, got a SphericalAngles.*Sph"
        ):
            tool.v_to(angles, angles.neutral(), np.zeros(3))
