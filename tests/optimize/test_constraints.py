"""Direct shooting against iLQR, and conditions met by an augmented Lagrangian against closed forms."""

import jax.numpy as jnp
import numpy as np
import optax
import pytest

from lgsim.actions import Translation
from lgsim.optimize.augmented_lagrangian import AugmentedLagrangian
from lgsim.optimize.constraints.constraint import EndConstraint, PathConstraint
from lgsim.optimize.constraints.state_bounds import StateBounds
from lgsim.optimize.direct_shooting import DirectShooting
from lgsim.optimize.dynamics import DiscreteDynamics
from lgsim.optimize.ilqr import ILQR
from lgsim.optimize.problem import Problem
from lgsim.optimize.solve import solve
from lgsim.optimize.solver import RESULTS
from lgsim.optimize.standard_costs import ControlEffort, StateDistance

LINE = Translation(2)
GOAL = np.array([1.0, 0.0])


def push(t, y, u, args):
    """A mass of 1 kg, pushed for steps of 0.1 s."""
    return jnp.stack([y[0] + 0.1 * y[1] + 0.005 * u[0], y[1] + 0.1 * u[0]])


def problem_with(*constraints, **more):
    return Problem(DiscreteDynamics(LINE, push, 1, 0.1), jnp.zeros(2), horizon=20, constraints=constraints,
                   **({"running": ControlEffort(1.0)} | more))  # fmt: skip


def at_goal(t, y, args):
    return y - jnp.array(GOAL)


def transfer():
    """(effect of the controls on the end (2, H), on the positions (H, H), on the speeds (H, H))."""
    k = np.arange(20)
    lag = k[:, None] - k[None, :]
    position = np.where(lag >= 0, 0.005 + 0.01 * lag, 0)
    speed = np.where(lag >= 0, 0.1, 0)
    return np.stack([position[-1], speed[-1]]), position, speed


def test_the_least_effort_between_two_states_is_that_of_the_pseudo_inverse():
    result = solve(problem_with(EndConstraint(at_goal)), solver=AugmentedLagrangian(tolerance=1e-9))
    assert result.message == ""
    assert float(result.violation) <= 1e-9
    to_end, _, _ = transfer()
    np.testing.assert_allclose(result.us[:, 0], np.linalg.pinv(to_end) @ GOAL, atol=1e-7)
    np.testing.assert_allclose(result.cost, np.sum(np.asarray(result.us) ** 2) / 2, rtol=1e-12)
    assert float(result.history.feasibility[0]) > 1e-3


def test_the_residuals_of_a_cost_as_a_condition():
    """Its weight counts for nothing."""
    goal = jnp.array(GOAL)
    condition = EndConstraint(StateDistance(LINE, goal, 7.0))
    y = jnp.array([0.3, 0.4])
    np.testing.assert_array_equal(condition.value(0.0, y, None, None), at_goal(0.0, y, None))


@pytest.mark.repeats
@pytest.mark.parametrize(
    "limit",
    [
        StateBounds(np.array([-np.inf, -0.6]), np.array([np.inf, 0.6])),
        StateBounds(np.array([-0.6]), np.array([0.6]), lambda y: y[1:]),
    ],
    ids=["infinite", "coordinates"],
)
def test_a_bound_of_the_state_is_met_and_the_rest_is_optimal(limit):
    """A speed limit, by the conditions of Karush, Kuhn and Tucker with multipliers from least squares."""
    result = solve(problem_with(EndConstraint(at_goal), limit), solver=AugmentedLagrangian(tolerance=1e-8))
    assert result.message == ""
    speeds, us = np.asarray(result.ys[:, 1]), np.asarray(result.us[:, 0])
    assert np.max(speeds) <= 0.6 + 1e-8
    active = np.flatnonzero(speeds[1:] > 0.6 - 1e-6)
    assert active.size > 3
    to_end, _, to_speed = transfer()
    rows = np.vstack([to_end, to_speed[active]])
    multipliers, *_ = np.linalg.lstsq(rows.T, -us, rcond=None)
    np.testing.assert_allclose(rows.T @ multipliers, -us, atol=1e-5)
    assert np.all(multipliers[2:] > -1e-5)


@pytest.mark.slow
def test_a_condition_along_the_way_with_bounds_of_the_controls():
    """Equal pushes in pairs of two controls, of which the first is bounded."""

    def both(t, y, u, args):
        return push(t, y, u[:1] + u[1:], args)

    same = PathConstraint(lambda t, y, u, args: u[:1] - u[1:])
    problem = Problem(
        DiscreteDynamics(LINE, both, 2, 0.1), jnp.zeros(2), horizon=20, running=ControlEffort(1.0),
        constraints=(same, EndConstraint(at_goal)), lower=jnp.array([-0.6, -jnp.inf]), upper=jnp.array([0.6, jnp.inf]),
    )  # fmt: skip
    result = solve(problem, solver=AugmentedLagrangian())
    assert result.message == ""
    us = np.asarray(result.us)
    assert np.max(np.abs(us[:, 0])) <= 0.6 and np.max(np.abs(us[:, 0] - us[:, 1])) < 1e-6
    np.testing.assert_allclose(result.ys[-1], GOAL, atol=1e-6)


def test_conditions_that_contradict_each_other_are_told():
    away = EndConstraint(lambda t, y, args: y + 1.0)
    result = solve(problem_with(EndConstraint(at_goal), away), solver=AugmentedLagrangian(max_iterations=4))
    assert result.result == RESULTS.infeasible
    # half of the gap of two in the place, which is the larger one
    assert float(result.violation) == pytest.approx(1.0, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    "optimizer, iterations, upper",
    [(optax.adam(0.05), 2000, 0.7), (optax.lbfgs(), 100, None)],
    ids=["adam with a bound", "lbfgs"],
)
def test_direct_shooting_finds_what_ilqr_finds(optimizer, iterations, upper):
    problem = problem_with(terminal=lambda t, y, args: 20 * jnp.sum((y - jnp.array(GOAL)) ** 2), upper=upper)
    wanted = solve(problem)
    result = solve(problem, solver=DirectShooting(optimizer, iterations, 1e-5))
    assert result.message == "" and wanted.message == ""
    assert int(result.iterations) < iterations
    np.testing.assert_allclose(result.us, wanted.us, atol=1e-4)
    np.testing.assert_allclose(result.history.gradient[result.iterations - 1], result.gradient)


def test_the_augmented_lagrangian_takes_any_solver():
    solver = AugmentedLagrangian(DirectShooting(optax.lbfgs(), 200, 1e-8), tolerance=1e-6)
    result = solve(problem_with(EndConstraint(at_goal)), solver=solver)
    assert result.message == ""
    to_end, _, _ = transfer()
    np.testing.assert_allclose(result.us[:, 0], np.linalg.pinv(to_end) @ GOAL, atol=1e-5)


def test_ilqr_alone_refuses_conditions():
    with pytest.raises(ValueError, match="use AugmentedLagrangian"):
        solve(problem_with(EndConstraint(at_goal)), solver=ILQR())


@pytest.mark.parametrize("rows", [0, pytest.param(1, marks=pytest.mark.repeats)])
def test_a_condition_without_rows_changes_nothing(rows):
    none = PathConstraint(lambda t, y, u, args: 0 * u[:rows])
    result = solve(problem_with(none, running=lambda t, y, u, args: (u[0] - 1) ** 2))
    assert result.message == "" and int(result.constraints.violated.constraint) == -1
    np.testing.assert_allclose(result.us, 1.0, rtol=1e-9)
