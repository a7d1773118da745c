"""The units of constraints, costs and controls change nothing: penalties, multipliers and verdicts follow them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import lsq_linear

from lgsim.actions import Translation
from lgsim.optimize import (
    RESULTS,
    DiscreteDynamics,
    EndConstraint,
    LeastSquares,
    PathConstraint,
    Problem,
    solve,
)

PLANE, H = Translation(2), 12


def bent(t, y, u, args):
    """A pendulum under a torque in some unit."""
    return jnp.stack([y[0] + 0.2 * y[1], y[1] + 0.2 * (u[0] / args["control"] - args["stiffness"] * jnp.sin(y[0]))])


def problem_in(units, goal, stiffness, width, limit, dtype=jnp.float64):
    """A pendulum to a goal with a speed limit, in units (control, cost, end, limit)."""
    control, cost, end, path = (jnp.asarray(x, dtype) for x in units)
    args = {"control": control, "cost": cost, "end": end, "path": path, "stiffness": jnp.asarray(stiffness, dtype)}
    args |= {"goal": jnp.asarray(goal, dtype), "limit": jnp.asarray(limit, dtype)}
    width = jnp.asarray(width, dtype) * control * jnp.ones(1, dtype)
    return Problem(
        DiscreteDynamics(PLANE, bent, 1, jnp.asarray(0.2, dtype)), jnp.zeros(2, dtype), horizon=H, args=args,
        running=LeastSquares(lambda t, y, u, args: jnp.sqrt(args["cost"]) * u / args["control"]),
        constraints=[
            EndConstraint(lambda t, y, args: args["end"] * (y[:1] - args["goal"])),
            PathConstraint(lambda t, y, u, args: args["path"] * (y[1:] - args["limit"]), equality=False, at_end=True),
        ],
        lower=-width, upper=width,
    )  # fmt: skip


def test_the_same_digits_in_all_units():
    """Controls, multipliers, violation and the number of iterations, all at once and each by itself."""
    units = np.array([
        [1, 1, 1, 1], [1, 1, 1e-6, 1e6], [1, 1, 1e6, 1e-6], [1, 1, 1e6, 1e6], [1, 1e-6, 1, 1], [1e6, 1, 1, 1],
        [1e-6, 1e6, 1e-6, 1e3],
    ])  # fmt: skip
    found = jax.jit(jax.vmap(lambda units: solve(problem_in(units, 1.0, 0.8, 2.0, 0.55))))(jnp.asarray(units))
    assert np.all(found.result == RESULTS.successful)
    us = np.asarray(found.us[..., 0]) / units[:, :1]
    assert np.max(np.asarray(found.ys[:, :, 1])) > 0.549 and np.max(np.abs(us)) < 1.99
    np.testing.assert_allclose(us, np.broadcast_to(us[0], us.shape), atol=1e-7)
    np.testing.assert_array_equal(found.iterations, found.iterations[0])
    end, path = (np.asarray(m) for m in (found.multipliers.end[0], found.multipliers.path[0]))
    np.testing.assert_allclose(end[:, 0] * units[:, 2] / units[:, 1], end[0, 0], rtol=1e-5)
    path = path[..., 0] * units[:, 3:] / units[:, 1:2]
    np.testing.assert_allclose(path, np.broadcast_to(path[0], path.shape), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("control, cost, row", [(1.0, 1.0, 1.0), (1e-6, 1e6, 1e3), (1e6, 1e-6, 1e6)])
def test_a_control_without_cost_varies_within_its_range(control, cost, row):
    """Minimize a subject to a + b = 1.2, 0 <= a <= 2, 0 <= b <= 0.2: the row varies by sqrt(1^2 + 0.1^2)."""
    problem = Problem(
        DiscreteDynamics(Translation(1), lambda t, y, u, args: y + jnp.sum(u) / control, 2), jnp.zeros(1), horizon=1,
        running=lambda t, y, u, args: cost * u[0] / control, lower=jnp.zeros(2), upper=control * jnp.array([2.0, 0.2]),
        constraints=[EndConstraint(lambda t, y, args: row * (y - 1.2))],
    )  # fmt: skip
    found = solve(problem)
    assert found.result == RESULTS.successful and int(found.iterations) <= 5
    np.testing.assert_allclose(found.multipliers.end_sizes[0], row * (1.01 / cost) ** 0.5, rtol=1e-12)
    np.testing.assert_allclose(found.us[0] / control, [1.0, 0.2], rtol=1e-6)


@pytest.mark.parametrize("row", [1.0, 1e-6, 1e6])
def test_a_row_that_is_curved_at_rest(row):
    """Minimize |y_H - (1, 0)|^2 / 2 with |y|^2 <= 0.25, whose derivative at the guess is zero: y_H = (0.5, 0)."""
    problem = Problem(
        DiscreteDynamics(PLANE, lambda t, y, u, args: y + u, 2), jnp.zeros(2), horizon=3,
        terminal=LeastSquares(lambda t, y, u, args: y - jnp.array([1.0, 0.0])), lower=-jnp.ones(2), upper=jnp.ones(2),
        constraints=[
            PathConstraint(lambda t, y, u, args: row * (jnp.sum(y * y)[None] - 0.25), equality=False, at_end=True)
        ],
    )  # fmt: skip
    found = solve(problem)
    assert found.result == RESULTS.successful and int(found.iterations) <= 10
    np.testing.assert_allclose(found.ys[-1], [0.5, 0], atol=1e-6)
    # the multiplier of |y|^2: (1 - y) = 2 m y
    np.testing.assert_allclose(found.multipliers.end[0] * row, [0.5], rtol=1e-5)


def off_kkt(us, problem):
    """How far controls are from the conditions of Karush, Kuhn and Tucker in units of one, and from the constraints."""
    goal, limit, width = float(problem["goal"]), float(problem["limit"]), float(problem["width"])
    slope, end, end_slope, path, path_slope = (np.asarray(x) for x in derivatives(us, problem["stiffness"]))
    # multipliers of the end, of active limits and bounds, of the sign that each must have
    active = np.flatnonzero(path - limit > -1e-3)
    low, high = np.flatnonzero(us < -width + 1e-3 * width), np.flatnonzero(us > width - 1e-3 * width)
    eye = np.eye(H)
    rows = np.vstack([end_slope[None], path_slope[active], -eye[low], eye[high]])
    least = np.concatenate([[-np.inf], np.zeros(len(rows) - 1)])
    fit = lsq_linear(rows.T, -slope, bounds=(least, np.full(len(rows), np.inf)))
    violation = max(abs(end - goal), np.max(path) - limit, np.max(np.abs(us)) - width)
    return np.max(np.abs(rows.T @ fit.x + slope)), violation


@jax.jit
def derivatives(us, stiffness):
    """(slope of the cost, end, its slope, speeds, their slopes) by the controls in units of one."""
    args = {"control": 1.0, "stiffness": stiffness}

    def speeds(us):
        def step(y, u):
            after = bent(0.0, y, u[None], args)
            return after, after

        last, ys = jax.lax.scan(step, jnp.zeros(2), us)
        return last[0], ys[:, 1]

    (end, path), (end_slope, path_slope) = speeds(us), jax.jacrev(speeds)(us)
    return us, end, end_slope, path, path_slope


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [jnp.float64, jnp.float32])
def test_random_problems_in_random_units_against_their_conditions(dtype):
    """None that is no optimum is called one, and hardly any optimum is not."""
    rng, count = np.random.default_rng(5), 1000
    units = 10.0 ** rng.uniform(-6, 6, (count, 4))
    goal, stiffness = rng.uniform(-1.5, 1.5, count), rng.uniform(0.2, 1.5, count)
    width, limit = rng.uniform(1.0, 3.0, count), rng.uniform(0.4, 1.5, count)

    def run(*x):
        found = solve(problem_in(*x, dtype=dtype))
        return found.result, found.us, found.iterations

    result, us, _ = jax.jit(jax.vmap(run))(*(jnp.asarray(x) for x in (units, goal, stiffness, width, limit)))
    claimed = np.asarray(result == RESULTS.successful)
    us = np.asarray(us[..., 0], float) / units[:, :1]
    names = "goal", "stiffness", "width", "limit"
    numbers = [dict(zip(names, x, strict=True)) for x in zip(goal, stiffness, width, limit, strict=True)]
    off = np.array([off_kkt(us[i], numbers[i]) for i in range(count)])
    bound = (2e-5, 5e-6) if dtype == jnp.float64 else (5e-3, 5e-3)
    assert np.max(off[claimed, 0]) < bound[0] and np.max(off[claimed, 1]) < bound[1]
    assert np.all(np.asarray(result == RESULTS.infeasible) <= (off[:, 1] > 1e-4))
    met = off[:, 1] < bound[1]
    assert np.sum(~claimed & met) <= 0.01 * count
