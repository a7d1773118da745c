"""Guesses with a zero gradient, whose curvature only the second derivatives of the steps show."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize

from lgsim.lie.action import Translation
from lgsim.optimize import ControlEffort, FieldDynamics, Problem, StateDistance, solve
from lgsim.optimize.neighbor import neighbor, neighbor_by_curvature
from tests.optimize.test_optimality import rolled

SPACE, HORIZON = Translation(4), 15


def bicycle(t, y, u, args):
    """A car of 2.5 m between its axles: position, heading, speed; acceleration and steering angle."""
    return jnp.stack([y[3] * jnp.cos(y[2]), y[3] * jnp.sin(y[2]), y[3] * jnp.tan(u[1]) / 2.5, u[0]])


def parked(goal, weight):
    """The car at rest for 6 s to a pose at rest."""
    side = jnp.array([3.0, 0.6])
    return Problem(
        FieldDynamics(SPACE, bicycle, 2, 6.0 / HORIZON), jnp.zeros(4), horizon=HORIZON,
        running=ControlEffort(jnp.array([0.1, 1.0])), terminal=StateDistance(SPACE, jnp.asarray(goal), weight),
        lower=-side, upper=side,
    )  # fmt: skip


@pytest.mark.slow
def test_a_car_at_rest_turns_around():
    """Steering has no effect at rest, and driving none on the heading: both together turn the car."""
    problem = parked([0.0, 0.0, np.pi, 0.0], 1e4)
    nothing = jnp.zeros((HORIZON, 2))
    assert not neighbor(problem, nothing, problem.cost(problem.rollout(nothing), nothing))[1]
    found = solve(problem)
    assert found.message == ""
    value = jax.jit(jax.value_and_grad(lambda x: rolled(problem)(x.reshape(HORIZON, 2))))
    guess = np.asarray(found.us).ravel() + 0.01 * np.random.default_rng(0).normal(size=2 * HORIZON)
    bounds = [(-3.0, 3.0), (-0.6, 0.6)] * HORIZON
    oracle = minimize(
        lambda x: tuple(map(np.asarray, value(x))), np.clip(guess, *np.transpose(bounds)), jac=True, method="L-BFGS-B",
        bounds=bounds, options={"maxiter": 3000, "maxfun": 6000, "ftol": 1e-15, "gtol": 1e-8, "maxcor": 40},
    )  # fmt: skip
    assert oracle.fun < 0.2 * 1e4 * np.pi**2 / 2
    np.testing.assert_allclose(found.cost, oracle.fun, rtol=1e-5)


def test_a_minimum_has_no_lower_neighbor():
    """A car at rest 3 m to the side of its goal: effort costs in second order, the way there gains only in third."""
    problem, nothing = parked([0.0, 3.0, 0.0, 0.0], 10.0), jnp.zeros((HORIZON, 2))
    cost = problem.cost(problem.rollout(nothing), nothing)
    np.testing.assert_allclose(cost, 10.0 * 3.0**2 / 2, rtol=1e-12)
    near, lower = neighbor_by_curvature(problem, nothing, cost)
    assert not lower and not np.any(near)
