"""Constraints that may be broken at a price, against closed forms and quadratic programs with slacks."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize

from lgsim.actions import Translation
from lgsim.optimize import (
    RESULTS,
    ControlEffort,
    DiscreteDynamics,
    EndConstraint,
    PathConstraint,
    Problem,
    Soft,
    StateBounds,
    solve,
)

LINE = Translation(2)


def push(t, y, u, args):
    """A mass of 1 kg, pushed for steps of 0.1 s."""
    return jnp.stack([y[0] + 0.1 * y[1] + 0.005 * u[0], y[1] + 0.1 * u[0]])


def carried(*constraints, y0=(0.0, 0.0)):
    goal = EndConstraint(lambda t, y, args: y - jnp.array([1.0, 0.0]))
    return Problem(DiscreteDynamics(LINE, push, 1, 0.1), jnp.array(y0), horizon=20, running=ControlEffort(1.0),
                   constraints=(goal, *constraints))  # fmt: skip


def alone(linear, quadratic, equality, unit=1.0):
    """min u^2 / 2 + linear s + quadratic s^2 / 2 of the violation s of 1 - u <= 0 or = 0, in units of the row."""
    row = PathConstraint(lambda t, y, u, args: unit * (1 - u), equality=equality)
    return Problem(
        DiscreteDynamics(Translation(1), lambda t, y, u, args: y + u, 1), jnp.zeros(1), horizon=1,
        running=ControlEffort(1.0), constraints=(Soft(row, linear / unit, quadratic / unit**2),),
    )  # fmt: skip


@pytest.mark.parametrize("equality", [False, pytest.param(True, marks=pytest.mark.repeats)])
def test_one_control_and_one_row_in_closed_form(equality):
    """u = min((w + q) / (1 + q), 1): exact from w = 1 on, in any unit of the row; the multiplier is never above w."""
    prices = jnp.array([(0.3, 0.0), (0.999, 0.0), (2.0, 0.0), (0.0, 1.0), (0.0, 1e4), (0.5, 1.0), (1.5, 3.0)])

    def run(price, unit):
        found = solve(alone(price[0], price[1], equality, unit))
        return found.us[0, 0], found.cost, found.multipliers.path[0][0, 0] * unit, found.result, found.violation

    units = jnp.array([1.0, 1e-6, 1e6])
    u, _, m, result, violation = jax.vmap(jax.vmap(run, (0, None)), (None, 0))(prices, units)
    w, q = np.asarray(prices).T
    np.testing.assert_allclose(u, np.tile(np.minimum((w + q) / (1 + q), 1), (3, 1)), rtol=1e-6)
    np.testing.assert_allclose(m, np.tile(np.minimum(w, 1.0), (3, 1)), atol=1e-6)
    assert np.all(result == RESULTS.successful) and np.all(np.asarray(violation) == 0)


@pytest.mark.parametrize("linear, quadratic", [(1.5, 0.0), pytest.param(0.2, 5.0, marks=pytest.mark.slow)])
def test_a_speed_limit_at_a_price_is_a_quadratic_program_with_slacks(linear, quadratic):
    """With hard ends, by sequential quadratic programming in the controls and a slack for each speed."""
    limit = StateBounds(np.array([-np.inf, -np.inf]), np.array([np.inf, 0.6]))
    found = solve(carried(Soft(limit, linear, quadratic)))
    assert found.message == "" and int(found.constraints.violated.constraint) in (-1, 0)
    assert np.max(found.ys[:, 1]) > 0.61

    lag = np.arange(20)[:, None] - np.arange(20)[None]
    place, speed = np.where(lag >= 0, 0.005 + 0.01 * lag, 0), np.where(lag >= 0, 0.1, 0)
    ends = np.stack([place[-1], speed[-1]])

    def cost(x):
        u, s = x[:20], x[20:]
        return u @ u / 2 + np.sum(linear * s + quadratic * s**2 / 2), np.concatenate([u, linear + quadratic * s])

    to_ends, to_speeds = np.hstack([ends, np.zeros((2, 20))]), np.hstack([-speed, np.eye(20)])
    oracle = minimize(
        cost, np.concatenate([np.zeros(20), np.ones(20)]), jac=True, method="SLSQP",
        bounds=[(None, None)] * 20 + [(0, None)] * 20,
        constraints=[
            {"type": "eq", "fun": lambda x: to_ends @ x - [1, 0], "jac": lambda x: to_ends},
            {"type": "ineq", "fun": lambda x: 0.6 + to_speeds @ x, "jac": lambda x: to_speeds},
        ],
        options={"maxiter": 500, "ftol": 1e-14},
    )  # fmt: skip
    np.testing.assert_allclose(found.us[:, 0], oracle.x[:20], atol=2e-5)
    multipliers = np.concatenate([found.multipliers.path[0], found.multipliers.end[1][None]])
    assert np.max(multipliers) <= linear
    broken = np.asarray(found.ys[:, 1]) > 0.6 + 1e-5
    np.testing.assert_allclose(multipliers[broken, 3], linear, rtol=1e-9)


@pytest.mark.slow
def test_a_linear_price_above_the_multiplier_is_exact():
    limit = StateBounds(np.array([-np.inf, -0.6]), np.array([np.inf, 0.6]))
    hard = solve(carried(limit))
    most = max(float(jnp.max(m)) for m in (hard.multipliers.path[0], hard.multipliers.end[1]))
    found = solve(carried(Soft(limit, 1.2 * most)))
    assert hard.message == found.message == ""
    np.testing.assert_allclose(found.us, hard.us, atol=1e-5)
    assert np.max(found.ys[:, 1]) < 0.6 + 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("linear, quadratic", [(0.5, 1.0), (1.5, 3.0)])
def test_derivatives_by_the_prices(linear, quadratic):
    """Of u = min((w + q) / (1 + q), 1)."""
    slope = jax.jacfwd(lambda price: solve(alone(price[0], price[1], False)).us[0, 0])(jnp.array([linear, quadratic]))
    right = (1 / (1 + quadratic), (1 - linear) / (1 + quadratic) ** 2) if linear < 1 else (0.0, 0.0)
    np.testing.assert_allclose(slope, right, atol=1e-6)


@pytest.mark.slow
def test_a_price_for_each_row_in_single_precision():
    """Rows 1 - u and 2 - u of prices (3, 0.5): the first one is met, the second pulls u no farther."""
    rows = PathConstraint(lambda t, y, u, args: jnp.array([1, 2], u.dtype) - u, equality=False)
    problem = Problem(
        DiscreteDynamics(Translation(1), lambda t, y, u, args: y + u, 1), jnp.zeros(1, jnp.float32), horizon=1,
        running=ControlEffort(1.0), constraints=[Soft(rows, np.array([3.0, 0.5]))],
    )  # fmt: skip
    found = solve(problem)
    assert found.message == "" and found.us.dtype == jnp.float32
    np.testing.assert_allclose(found.us, 1.0, rtol=2e-3)
    np.testing.assert_allclose(found.multipliers.path[0][0], [0.5, 0.5], rtol=2e-3)


def test_a_start_outside_of_soft_bounds_is_one():
    """What a hard bound refuses, as the measured state of a machine may be."""
    limit = StateBounds(np.array([-np.inf, -0.6]), np.array([np.inf, 0.6]))
    with pytest.raises(ValueError, match="infeasible, y0 is outside"):
        carried(limit, y0=(0.0, 0.7))
    assert carried(Soft(limit, 1.0), y0=(0.0, 0.7)).constraints[1].name == "Soft(StateBounds)"


@pytest.mark.parametrize(
    "arguments, error, words",
    [
        ({}, ValueError, "expected a nonzero penalty"),
        ({"linear": -1.0}, ValueError, "linear: expected finite nonnegative penalties"),
        ({"quadratic": np.inf}, ValueError, "quadratic: expected finite nonnegative penalties"),
        ({"linear": np.nan}, ValueError, "linear: expected finite nonnegative penalties"),
    ],
)
def test_prices_that_are_none(arguments, error, words):
    with pytest.raises(error, match=words):
        Soft(StateBounds(-1.0, 1.0), **arguments)
    with pytest.raises(TypeError, match="expected a constraint"):
        Soft(lambda t, y, u, args: u, 1.0)
