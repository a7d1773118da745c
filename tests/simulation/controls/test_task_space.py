"""Operational-space control against dense formulas in Pinocchio's matrices."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pinocchio as pin
import pytest

from lgsim import dynamics
from lgsim.lie import quaternion
from lgsim.multibody import ModelBuilder, ModelError, joints
from lgsim.simulation import controls, rollout
from lgsim.systems.biped import biped
from tests.dynamics.machines import close
from tests.multibody.twin import Twin

PLACE, TURN = jnp.array([0.3, -0.2, 0.5]), quaternion.exp(jnp.array([0.4, -0.9, 0.3]))
RATES = jnp.array([[0.1, 0.2, -0.3], [0.5, -0.4, 0.2], [0.3, -0.6, 0.2], [0.2, 0.1, 0.7]])


def at(*place):
    T = np.eye(4)
    T[:3, 3] = place
    return T


def arm():
    """Seven joints about axes in all directions, with rotors and a tool."""
    builder, rng, parent = ModelBuilder(), np.random.default_rng(0), "world"
    for i in range(7):
        G = rng.normal(size=(3, 3))
        builder.add_body(
            f"b{i}", parent, joints.Revolute(), axis=rng.normal(size=3), placement=at(*(0.3 * rng.normal(size=3))),
            mass=1.0 + rng.random(), center=0.1 * rng.normal(size=3), inertia=0.05 * (np.eye(3) + 0.1 * (G @ G.T)),
            armature=0.02,
        )  # fmt: skip
        parent = f"b{i}"
    builder.add_frame("tool", parent, at(0.1, 0.2, 0.05))
    model = builder.build()
    q, v = jnp.asarray(rng.normal(size=7)), jnp.asarray(rng.normal(size=7))
    return model, q, v


def tasks(q):
    place = controls.FramePlace("tool", lambda t: (PLACE, RATES[0], RATES[1]), stiffness=jnp.array([90.0, 80, 70]))
    turn = controls.FrameTurn("tool", lambda t: (TURN, RATES[2], RATES[3]), spin=jnp.array([9.0, 8, 7]))
    return place, turn, controls.Posture(0.5 * q)


def wanted(model, q, v):
    """(M, h, [(J, what J a has to be)]) by Pinocchio and formulas written anew."""
    twin = Twin(model)
    P, D, Q, V = twin.pin, twin.data, twin.q(q), twin.v(v)
    M = pin.crba(P, D, Q)
    M, h = twin.matrix(np.triu(M) + np.triu(M, 1).T), twin.back(pin.nonLinearEffects(P, D, Q, V))
    pin.forwardKinematics(P, D, Q, V, np.zeros(P.nv))
    pin.computeJointJacobians(P, D, Q)
    tool = pin.SE3(np.eye(3), np.array([0.1, 0.2, 0.05]))
    X, j = tool.toActionMatrixInverse(), twin.ids[-1]
    J = X @ pin.getJointJacobian(P, D, j, pin.LOCAL)[:, twin.v_index]
    twist, rate, pose = X @ D.v[j].vector, X @ D.a[j].vector, D.oMi[j] * tool
    R, w = pose.rotation, twist[3:]
    goal, (u_d, a_d, w_d, wdot_d) = np.asarray(PLACE), np.asarray(RATES)
    push = a_d + 20.0 * (u_d - R @ twist[:3]) + np.array([90.0, 80, 70]) * (goal - pose.translation)
    push = push - R @ (rate[:3] + np.cross(w, twist[:3]))
    R_d = pin.Quaternion(*np.asarray(TURN)).toRotationMatrix()
    error = pin.Quaternion(R_d.T @ R)
    e = np.sign(error.w) * np.array([error.x, error.y, error.z])
    w_d, wdot_d = R.T @ R_d @ w_d, R.T @ R_d @ wdot_d
    turn = wdot_d - np.cross(w, w_d) - np.array([9.0, 8, 7]) * (w - w_d) - 200.0 * e - rate[3:]
    posture = -10.0 * np.asarray(v) - 25.0 * 0.5 * np.asarray(q)
    return M, h, [(R @ J[:3], push), (J[3:], turn), (np.eye(7), posture)]


@pytest.mark.slow
def test_is_the_least_acceleration_that_does_the_tasks():
    """Where all tasks can be done: the acceleration of least ``a . M a`` with ``J a = b``, by a linear system."""
    model, q, v = arm()
    found = controls.TaskSpace(tasks(q)[:2], give=0.0).forces(0.0, q, v, model)
    M, h, rows = wanted(model, q, v)
    J, b = np.vstack([rows[0][0], rows[1][0]]), np.concatenate([rows[0][1], rows[1][1]])
    a = np.linalg.solve(np.block([[M, J.T], [J, np.zeros((6, 6))]]), np.concatenate([np.zeros(7), b]))[:7]
    close(found.accelerations, a, 1e-9)
    close(found.tau, M @ a + h, 1e-9)
    assert max(np.abs(missing).max() for missing in found.missing) < 1e-9 * np.abs(b).max()


@pytest.mark.slow
@pytest.mark.parametrize("give", [1e-4, 0.3])
def test_priorities_are_those_of_dense_null_spaces(give):
    model, q, v = arm()
    found = controls.TaskSpace(tasks(q), give=give).forces(0.0, q, v, model)
    M, h, rows = wanted(model, q, v)
    N, tau = np.eye(7), h
    for J, b in rows:
        # forces in the image of N^T, with Khatib's inverses
        A = J @ N @ np.linalg.inv(M) @ J.T
        L = np.linalg.inv(A + give * np.trace(J @ np.linalg.inv(M) @ J.T) / len(J) * np.eye(len(J)))
        tau = tau + N.T @ J.T @ L @ (b - J @ np.linalg.solve(M, tau - h))
        N = N - N @ np.linalg.inv(M) @ J.T @ (2 * L - L @ A @ L) @ J @ N
    close(found.tau, tau, 1e-9)
    for (J, b), missing in zip(rows, found.missing, strict=True):
        np.testing.assert_allclose(missing, b - J @ np.linalg.solve(M, tau - h), atol=1e-8)


def test_a_posture_does_not_disturb_the_tool():
    model, q, v = arm()
    first, _, posture = tasks(q)
    other = controls.Posture(q + 3.0, stiffness=400.0)
    J = dynamics.frame_jacobian(model, q, "tool", dynamics.Reference.WORLD)[:3]
    with_one, with_other = (
        controls.TaskSpace((first, last), give=1e-6).forces(0.0, q, v, model).accelerations for last in (posture, other)
    )
    moved = with_other - with_one
    assert np.abs(J @ moved).max() < 1e-3 * np.abs(moved).max() and np.abs(moved).max() > 10


@pytest.mark.slow
def test_singular_postures_are_finite_as_stated():
    """A stretched arm of two links: nothing along it, all but give across; derivatives are finite."""
    builder = ModelBuilder()
    body = {"mass": 1.0, "center": (0.25, 0, 0), "inertia": np.diag([1e-3, 0.02, 0.02])}
    builder.add_body("upper", "world", joints.Revolute(), axis=(0, 0, 1), **body)
    builder.add_body("lower", "upper", joints.Revolute(), axis=(0, 0, 1), placement=at(0.5, 0, 0), **body)
    model = builder.add_frame("tip", "lower", at(0.5, 0, 0)).build()
    q, v = jnp.zeros(2), jnp.zeros(2)

    def law(goal, give=1e-4):
        return controls.TaskSpace((controls.FramePlace("tip", goal), controls.Posture(q)), give=give)

    along = law(jnp.array([0.7, 0.0, 0.0])).forces(0.0, q, v, model)
    # along the arm and out of its plane nothing can be done, and nothing is
    close(along.missing[0], np.array([-30.0, 0.0, 0.0]), 1e-12)
    assert np.abs(along.accelerations).max() < 1e-10
    across = law(jnp.array([1.0, 0.1, 0.0])).forces(0.0, q, v, model)
    alone = controls.TaskSpace((controls.FramePlace("tip", jnp.array([1.0, 0.1, 0.0])),)).forces(0.0, q, v, model)
    close(alone.missing[0][1], 10.0 * 1e-4 / 3 / (1 + 1e-4 / 3), 1e-9)
    assert abs(across.missing[0][1]) < 2e-3
    slopes = jax.jacrev(lambda q: law(jnp.array([0.7, 0.3, 0.2]))(0.0, q, v, model))(q)
    assert np.all(np.isfinite(slopes))
    assert not np.all(np.isfinite(law(jnp.array([0.7, 0.0, 0.0]), give=0.0)(0.0, q, v, model)))


@pytest.mark.slow
def test_the_tool_arrives_and_gains_are_leaves():
    model, q, _ = arm()
    goal = dynamics.forward_kinematics(model, q + 0.2)[model.frame_names.index("tool"), :3, 3]
    law = controls.TaskSpace((controls.FramePlace("tool", goal), controls.Posture(q)))

    def error(stiffness):
        moved = eqx.tree_at(lambda law: law.tasks[0].stiffness, law, stiffness)
        run = rollout(model, q, jnp.zeros(7), dt=2e-3, steps=500, control=moved, save_every=500)
        end = dynamics.forward_kinematics(model, run.q[-1])[model.frame_names.index("tool"), :3, 3]
        return jnp.linalg.norm(end - goal)

    errors, slopes = jax.jit(jax.vmap(jax.value_and_grad(error)))(jnp.array([30.0, 100.0]))
    start = np.linalg.norm(dynamics.forward_kinematics(model, q)[model.frame_names.index("tool"), :3, 3] - goal)
    # critically damped with 10 1/s: (1 + 10 t) exp(-10 t) of the error is left
    assert abs(errors[1] - 11 * np.exp(-10) * start) < 2e-3 * start
    assert np.all(np.isfinite(slopes)) and slopes[0] < 0


def test_bad_input():
    model, q, v = arm()
    law = controls.TaskSpace
    with pytest.raises(ModelError, match="tasks: expected at least one, got none"):
        law(())(0.0, q, v, model)
    with pytest.raises(TypeError, match="tasks: expected FramePlace, FrameTurn, Posture or another Task, got 3"):
        law((3,))(0.0, q, v, model)
    with pytest.raises(ValueError, match=r"give: expected a number of at least 0, got -1\.0"):
        law((controls.Posture(q),), give=-1.0)(0.0, q, v, model)
    with pytest.raises(ValueError, match=r"frame: expected one of .*, tool, got 'tol'"):
        law((controls.FramePlace("tol", PLACE),))(0.0, q, v, model)
    walker = biped(ground=False)
    with pytest.raises(ModelError, match=r"got one with a floating base; take controls\.Workspace"):
        law((controls.Posture(walker.neutral()),))(0.0, walker.neutral(), jnp.zeros(walker.nv), walker)
