"""Derivatives where a solver has not converged: a warning by default, NaN on request, for each entry of a batch."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lgsim.actions import Translation
from lgsim.optimize.augmented_lagrangian import AugmentedLagrangian
from lgsim.optimize.constraints.constraint import EndConstraint
from lgsim.optimize.direct_shooting import ShootingMinimizer
from lgsim.optimize.dynamics import DiscreteDynamics
from lgsim.optimize.ilqr import ILQR
from lgsim.optimize.problem import Problem
from lgsim.optimize.solve import solve
from lgsim.optimize.solver import RESULTS
from lgsim.optimize.standard_costs import ControlEffort, StateDistance
from tests.optimize.test_implicit_derivative import AT, line

PLANE = Translation(2)


def step(t, y, u, gravity):
    """A pendulum of 1 m, by symplectic Euler."""
    rate = y[1] + 0.1 * (u[0] - gravity * jnp.sin(y[0]) - 0.1 * y[1])
    return jnp.stack([y[0] + 0.1 * rate, rate])


def pendulum(gravity, **changes):
    given = {
        "horizon": 12,
        "running": ControlEffort(0.01),
        "terminal": StateDistance(PLANE, jnp.array([jnp.pi, 0.0], jnp.result_type(gravity)), 10.0),
        "args": gravity,
    }
    start = changes.pop("y0", jnp.zeros(2, jnp.result_type(gravity)))
    return Problem(DiscreteDynamics(PLANE, step, 1, 0.1), start, **(given | changes))


def cost(gravity, iterations=200, nan=False):
    return solve(pendulum(gravity), solver=ILQR(max_iterations=iterations), nan_derivatives=nan).cost


def told(f, *args):
    """(warnings, value) of a call."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        value = jax.block_until_ready(f(*args))
    return [str(each.message) for each in found], value


AT_G = jnp.array(9.81)


@pytest.mark.parametrize("mode", [jax.grad, pytest.param(jax.jacfwd, marks=pytest.mark.slow)])
def test_what_has_not_converged_warns_or_is_nan(mode):
    """Against differences of converged solutions; after one iteration the derivative is another one."""
    h = 1e-4
    wanted = (cost(AT_G + h) - cost(AT_G - h)) / (2 * h)
    found, slope = told(jax.jit(mode(cost)), AT_G)
    assert found == []
    np.testing.assert_allclose(slope, wanted, rtol=1e-6)

    few = jax.jit(mode(lambda g: cost(g, 1)))
    found, slope = told(few, AT_G)
    assert len(found) == 1 and "is not optimal. See solution.result and solution.optimality" in found[0]
    assert np.isfinite(slope) and abs(slope - wanted) > 0.1 * abs(wanted)

    found, slope = told(jax.jit(mode(lambda g: cost(g, 1, True))), AT_G)
    assert found == [] and np.isnan(slope)


def test_one_of_four_has_not_converged():
    """A batch of starts, one of them so far that its iterations do not suffice; against differences of the others."""
    starts = jnp.array([[2.0, 0.0], [3.0, 0.0], [0.5, 0.1], [-2.0, 0.0]])

    def end(y0, nan):
        found = solve(pendulum(AT_G, y0=y0), solver=ILQR(max_iterations=8), nan_derivatives=nan)
        return found.cost, found.result == RESULTS.successful

    def slopes(nan):
        return jax.jit(jax.vmap(jax.value_and_grad(lambda y0: end(y0, nan), has_aux=True)))

    found, ((_, converged), gradient) = told(slopes(True), starts)
    assert found == [] and list(converged) == [True, True, False, True]
    assert [np.all(np.isnan(each)) for each in gradient] == [False, False, True, False]
    found, (_, plain) = told(slopes(False), starts)
    assert len(found) == 1 and np.all(np.isfinite(plain))
    others, h = np.array([0, 1, 3]), 1e-4
    moved = starts[others, None, None] + h * jnp.stack([jnp.eye(2), -jnp.eye(2)])[None]
    costs = jax.jit(jax.vmap(lambda y0: end(y0, False)[0]))(moved.reshape(-1, 2)).reshape(3, 2, 2)
    wanted = (costs[:, 0] - costs[:, 1]) / (2 * h)
    np.testing.assert_allclose(gradient[others], wanted, rtol=1e-6)
    np.testing.assert_allclose(plain[others], wanted, rtol=1e-6)


def test_the_trajectory_decides_and_not_the_stop():
    """A linear problem is solved by one step, after which its iterations are used up; a loose tolerance ends early."""

    def slope(solver):
        return told(jax.jit(jax.grad(lambda x: solve(line(x), solver=solver).cost)), AT)

    found, gradient = slope(ILQR(max_iterations=1))
    assert found == []
    np.testing.assert_allclose(gradient, slope(ILQR())[1], rtol=1e-9)
    loose = solve(pendulum(AT_G), solver=ILQR(gradient_tolerance=1e3))
    assert loose.result == RESULTS.successful
    found, _ = told(jax.grad(lambda g: solve(pendulum(g), solver=ILQR(gradient_tolerance=1e3)).cost), AT_G)
    assert len(found) == 1


@pytest.mark.slow
def test_other_solvers():
    """L-BFGS, and an augmented Lagrangian whose constraint cannot be met."""
    for iterations, count in ((3, 1), (200, 0)):
        minimizer = ShootingMinimizer(max_iterations=iterations)
        found, _ = told(jax.grad(lambda x, s=minimizer: solve(line(x), solver=s).cost), AT)
        assert len(found) == count, iterations

    def held(x, wall, nan):
        ends = EndConstraint(lambda t, y, args: jnp.stack([y[0] - 0.2, wall * (y[0] - 0.3)]))
        problem = line(x).replace(constraints=[ends])
        return solve(problem, solver=AugmentedLagrangian(max_iterations=8), nan_derivatives=nan).cost

    assert np.all(np.isnan(jax.grad(held)(AT, 1.0, True)))
    assert np.all(np.isfinite(jax.grad(held)(AT, 0.0, True)))


@pytest.mark.slow
def test_bounds_and_a_start_at_rest():
    """Controls at their bounds are an optimum; a hanging pendulum that nothing moves is a saddle."""
    bounded = {"lower": -3.0, "upper": 3.0}
    found, _ = told(jax.grad(lambda g: solve(pendulum(g, **bounded), solver=ILQR(exact_hessian=True)).cost), AT_G)
    assert found == []
    high = {"running": ControlEffort(0.01), "terminal": lambda t, y, args: 10 * (1 + jnp.cos(y[0])) + y[1] ** 2}
    found, (value, _) = told(jax.jit(jax.value_and_grad(lambda g: solve(pendulum(g, **high)).cost)), AT_G)
    assert value > 19 and len(found) == 1


@pytest.mark.slow
@pytest.mark.float32
def test_single_precision():
    gravity = AT_G.astype(jnp.float32)
    found, slope = told(jax.jit(jax.grad(cost)), gravity)
    assert found == [] and slope.dtype == jnp.float32
    assert np.isnan(jax.jit(jax.grad(lambda g: cost(g, 1, True)))(gravity))
