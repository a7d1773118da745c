"""Model predictive control in closed loop: disturbed, with an erroneous model, along a moving reference."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim.actions import Translation
from lgsim.optimize import (
    ILQR,
    RESULTS,
    ControlEffort,
    DiscreteDynamics,
    FieldDynamics,
    LeastSquares,
    Problem,
    ShootingMinimizer,
    StateDistance,
    mpc,
    solve,
)
from tests.optimize.problems import ATTITUDE, PLANE, pendulum
from tests.optimize.test_ilqr import linear_problem


@pytest.mark.slow
def test_a_linear_regulator_is_the_feedback_of_each_state():
    """Two iterations at any state give the optimum from there: the plan's first control is that of ``solve``."""
    problem = linear_problem()
    controller = mpc(problem, ILQR(max_iterations=2))
    plan = controller.plan()
    y = jnp.array([-0.4, 0.8])
    u, after = controller.step(plan, y)
    whole = solve(problem.replace(y0=y))
    np.testing.assert_allclose(u, whole.us[0], atol=1e-12)
    np.testing.assert_allclose(after.us[:-1], whole.us[1:], atol=1e-12)
    np.testing.assert_allclose(after.ys[:-1], whole.ys[1:], atol=1e-12)
    np.testing.assert_allclose(after.ys[-1], problem.step(20, whole.ys[-1], whole.us[-1]), atol=1e-12)
    assert float(after.t) == pytest.approx(0.1) and bool(after.result == RESULTS.successful)


@pytest.mark.slow
def test_pendulum_swings_up_from_a_disturbed_state():
    """With bounds, a push in the middle of the way, and a motor that gives a tenth less than the model's; 3 iterations
    at each step, in one scan."""
    top = jnp.array([jnp.pi, 0.0])
    problem = Problem(
        FieldDynamics(PLANE, pendulum, 1, 0.05),
        jnp.zeros(2),
        horizon=40,
        running=ControlEffort(0.01) + StateDistance(PLANE, top, jnp.array([0.5, 0.05])),
        terminal=StateDistance(PLANE, top, jnp.array([100.0, 10.0])),
        lower=-6.0,
        upper=6.0,
    )
    controller = mpc(problem, ILQR(max_iterations=3))

    def step(state, k):
        y, plan = state
        u, plan = controller.step(plan, y)
        y = problem.step(0, y, 0.9 * u) + jnp.where(k == 15, jnp.array([-0.4, 1.0]), 0)
        return (y, plan), (y, u, plan.bad_node)

    start = jnp.array([0.3, -0.5])
    _, (ys, us, places) = jax.lax.scan(step, (start, controller.plan(start)), jnp.arange(120))
    assert np.all(np.asarray(places) == -1)
    assert np.max(np.abs(us)) <= 6 and np.sum(np.abs(np.asarray(us)) == 6) > 3
    assert np.max(np.abs(np.asarray(ys[-10:]) - np.asarray(top))) < 1e-3


@pytest.mark.exhaustive
def test_slew_on_the_rotation_group_with_an_erroneous_model():
    """Over 2.9 rad with moments of inertia that are wrong by 20 to 30 percent; to the attitude, at rest."""
    goal = (lgsim.so3.exp(jnp.array([0.3, -2.9, 0.5])), jnp.zeros(3))

    def body(t, y, torque, J):
        _, w = y
        return jnp.concatenate([w, (torque - jnp.cross(w, J * w)) / J])

    problem = Problem(
        FieldDynamics(ATTITUDE, body, 3, 0.1, lgsim.LieEuler),
        (jnp.eye(3), jnp.zeros(3)),
        horizon=25,
        running=ControlEffort(0.1) + StateDistance(ATTITUDE, goal, 0.3),
        terminal=StateDistance(ATTITUDE, goal, 30.0),
        args=jnp.array([1.0, 2.0, 3.0]),
    )
    controller = mpc(problem, ILQR(max_iterations=2))
    truth = jnp.array([1.3, 1.6, 3.6])

    def step(state, _):
        y, plan = state
        u, plan = controller.step(plan, y)
        y = problem.dynamics.step(0.0, y, u, truth)
        return (y, plan), y

    ((R, w), _), (Rs, _) = jax.lax.scan(step, (problem.y0, controller.plan()), None, length=120)
    assert np.linalg.norm(lgsim.so3.log(goal[0].T @ R)) < 1e-3 and np.linalg.norm(w) < 1e-3
    assert np.max(np.abs(np.asarray(Rs @ Rs.mT) - np.eye(3))) < 1e-12


@pytest.mark.slow
def test_a_moving_reference_is_followed_by_time():
    """The costs see the time of each node, from the plan's on; a batch of controllers in one map."""
    line = Translation(1)

    def gap(t, y, u, args):
        return y - jnp.sin(t)

    problem = Problem(
        DiscreteDynamics(line, lambda t, y, u, args: y + 0.1 * u, 1, 0.1), jnp.zeros(1), horizon=10,
        running=LeastSquares(gap, 100.0) + ControlEffort(1e-4), terminal=LeastSquares(gap, 100.0), t0=0.5,
    )  # fmt: skip
    controller = mpc(problem)

    def step(state, _):
        y, plan = state
        t = plan.t
        u, plan = controller.step(plan, y)
        return (y + 0.1 * u, plan), (t, y)

    def run(y):
        return jax.lax.scan(step, (y, controller.plan(y)), None, length=30)[1]

    ts, ys = jax.jit(jax.vmap(run))(jnp.array([[0.0], [2.0]]))
    np.testing.assert_allclose(ts[0], 0.5 + 0.1 * np.arange(30), atol=1e-12)
    np.testing.assert_allclose(ys[:, 2:, 0], np.sin(ts)[:, 2:], atol=1e-3)


@pytest.mark.parametrize("solver", [None, pytest.param(ShootingMinimizer(max_iterations=5), marks=pytest.mark.slow)])
def test_a_step_that_breaks_down_keeps_the_plan(solver):
    def cost(t, y, u, args):
        return jnp.sum(u * u) + jnp.sum(jnp.where(jnp.abs(y) < 5, y * y, jnp.nan))

    problem = linear_problem(6).replace(running=cost)
    controller = mpc(problem, solver)
    plan = controller.plan()
    u, after = controller.step(plan, jnp.array([9.0, 0.0]))
    assert int(after.bad_node) == 0 and bool(after.result == RESULTS.nonfinite_start)
    np.testing.assert_array_equal(u, plan.us[0])
    np.testing.assert_array_equal(after.us[:-1], plan.us[1:])
    u, again = controller.step(after, problem.y0)
    assert np.all(np.isfinite(u)) and int(again.bad_node) == -1


def test_what_does_not_fit_is_told(without_import_hook):
    controller = mpc(linear_problem(3))
    with pytest.raises(ValueError, match="y: expected a state like the problem's y0"):
        controller.step(controller.plan(), jnp.zeros(3))
    with pytest.raises(TypeError, match="solver: expected a solver such as ILQR"):
        mpc(linear_problem(3), 4)
