"""Derivatives of solutions against finite differences of ``solve`` itself, in both modes."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim.actions import RightTranslation, Translation
from lgsim.optimize import (
    ILQR,
    AugmentedLagrangian,
    ControlEffort,
    Cost,
    DiscreteDynamics,
    EndConstraint,
    FieldDynamics,
    PathConstraint,
    Problem,
    StateDistance,
    solve,
)
from tests.optimize.problems import PLANE, rates

LINE = Translation(2)
ATTITUDE = RightTranslation(lgsim.UnitQuaternion)


def flat(result):
    """What has derivatives, in one vector."""
    return jnp.concatenate([x.ravel() for x in jax.tree.leaves((result.ts, result.ys, result.us, result.cost))])


def compare(found, at, directions, h, atol, rtol=1e-5):
    """Forward mode, reverse mode and central differences of a vector ``found(at)`` along directions."""

    @jax.jit
    def modes(x, d):
        """(found, its derivative along d, the gradient of its product with numbers), all of one linearization."""
        value, push = jax.linearize(found, x)
        return value, push(d), jax.linear_transpose(push, x)(jnp.cos(jnp.arange(value.size)))[0]

    for d in directions:
        value, slope, gradient = modes(at, d)
        wanted = (np.asarray(modes(at + h * d, d)[0]) - np.asarray(modes(at - h * d, d)[0])) / (2 * h)
        assert np.max(np.abs(wanted)) > 1e-3
        np.testing.assert_allclose(slope, wanted, rtol=rtol, atol=atol)
        np.testing.assert_allclose(gradient @ d, np.cos(np.arange(value.size)) @ slope, rtol=1e-7, atol=1e-9)


def double(t, y, u, mass):
    return jnp.stack([y[0] + 0.1 * y[1], y[1] + 0.1 * u[0] / mass])


def line(x, **changes):
    """A double integrator; x: start (2), target (2), weights of state and effort (2), mass."""

    given = {
        "horizon": 20,
        "running": ControlEffort(x[5:6])
        + StateDistance(LINE, jnp.zeros(2, x.dtype), x[4] * jnp.array([1.0, 0.1], x.dtype)),
        "terminal": StateDistance(LINE, x[2:4], 5.0),
        "args": x[6],
    }
    return Problem(DiscreteDynamics(LINE, double, 1, 0.1), x[:2], **(given | changes))


AT = jnp.array([1.0, 0.5, 0.2, 0.0, 1.0, 0.3, 1.0])


@pytest.mark.slow
def test_a_linear_problem():
    """By its start, target, weights and the mass in its dynamics."""
    compare(lambda x: flat(solve(line(x))), AT, jnp.eye(7), 1e-5, 1e-8)


@pytest.mark.slow
def test_a_turn_on_the_rotation_group():
    """By the start, the target, a moment of inertia, the weight and the step: of states on the group."""

    def found(x):
        problem = Problem(
            FieldDynamics(ATTITUDE, rates, 3, x[10], lgsim.LieEuler),
            lgsim.quaternion.exp(x[3:6]),
            horizon=12,
            running=ControlEffort(0.1),
            terminal=StateDistance(ATTITUDE, lgsim.quaternion.exp(jnp.array([0.3, -1.9, 0.5]) + x[:3]), 30.0 * x[9]),
            args=x[6:9],
        )
        return flat(solve(problem, solver=ILQR(gradient_tolerance=1e-10)))

    at = jnp.array([0.0] * 3 + [0.1, -0.2, 0.3] + [1.0, 2.0, 3.0] + [0.3, 0.25])
    compare(found, at, jnp.eye(11)[jnp.array([1, 4, 7, 9, 10])], 1e-4, 1e-6)


@pytest.mark.slow
def test_a_pendulum_with_bounds_that_are_active():
    """By gravity, the start, the target and the bounds: controls at a bound move with it and with nothing else."""

    def field(t, y, u, g):
        return jnp.stack([y[1], -g * jnp.sin(y[0]) - 0.1 * y[1] + u[0]])

    def solved(x):
        problem = Problem(
            FieldDynamics(PLANE, field, 1, 0.1),
            jnp.stack([x[1], jnp.zeros(())]),
            horizon=30,
            running=ControlEffort(0.01),
            terminal=StateDistance(PLANE, jnp.stack([x[2], jnp.zeros(())]), jnp.array([100.0, 10.0])),
            lower=-x[3],
            upper=x[3],
            args=x[0],
        )
        return solve(problem, solver=ILQR(exact_hessian=True, gradient_tolerance=1e-12, decrease_tolerance=0.0))

    at = jnp.array([9.81, 0.0, jnp.pi, 5.0])
    compare(lambda x: flat(solved(x)), at, jnp.eye(4), 1e-5, 1e-6)
    result, slope = jax.jit(lambda d: jax.jvp(solved, (at,), (d,)))(jnp.array([1.0, 0.0, 0.0, 0.0]))
    held = np.abs(np.asarray(result.us)) == 5.0
    assert 3 < np.sum(held) < 28
    assert np.all(np.asarray(slope.us)[held] == 0) and np.all(np.asarray(slope.us)[~held] != 0)


@pytest.mark.slow
def test_conditions_of_an_augmented_lagrangian():
    """An end that must be met and a speed limit that is met along the way, by all numbers and the limits themselves."""

    def found(x):
        problem = line(x[:7]).replace(
            terminal=None,
            constraints=(
                EndConstraint(lambda t, y, args: y - args[1]),
                PathConstraint(lambda t, y, u, args: -0.6 * args[2] - y[1:], equality=False),
            ),
            args=(x[6], x[2:4], x[7]),
            dynamics=DiscreteDynamics(LINE, lambda t, y, u, args: double(t, y, u, args[0]), 1, 0.1),
        )
        return flat(solve(problem, solver=AugmentedLagrangian(tolerance=1e-10, max_iterations=60)))

    at = jnp.concatenate([AT, jnp.ones(1)])
    compare(found, at, jnp.eye(8), 1e-4, 1e-5, 1e-4)


@pytest.mark.slow
def test_the_gain_is_the_derivative_by_the_start():
    """The first control moves with the start by the feedback of the exact second-order model."""
    result = solve(line(AT))
    slope = jax.jit(jax.jacfwd(lambda y0: solve(line(jnp.concatenate([y0, AT[2:]]))).us[0]))(AT[:2])
    np.testing.assert_allclose(slope, result.gains[0], atol=1e-12)


@pytest.mark.slow
def test_a_batch_has_the_derivatives_of_each():
    starts = jnp.array([[1.0, 0.5], [-0.3, 0.2]])
    slope = jax.jit(jax.grad(lambda y0: solve(line(jnp.concatenate([y0, AT[2:]]))).cost))
    both = jax.jit(jax.vmap(slope))(starts)
    np.testing.assert_allclose(both, jnp.stack([slope(y0) for y0 in starts]), atol=1e-12)


@pytest.mark.slow
def test_what_functions_close_over_has_its_derivative():
    """In a cost's closure and a default, inside of a batch; a function that hides it is told."""

    def cost(weight, start=AT[:2], hidden=None):
        def share(u, weight=weight):
            return weight * jnp.sum(u * u)

        problem = line(AT).replace(running=lambda t, y, u, args: share(u) + weight * jnp.sum(y * y), y0=start)
        if hidden is not None:
            problem = problem.replace(running=Hidden(lambda u: hidden * jnp.sum(u * u)))
        return solve(problem).cost

    slopes = jax.jit(jax.vmap(jax.value_and_grad(cost)))(jnp.array([0.3, 0.3 + 1e-6, 0.3 - 1e-6]))
    np.testing.assert_allclose(slopes[1][0], (slopes[0][1] - slopes[0][2]) / 2e-6, rtol=1e-6)
    by_start = jax.vmap(lambda w: jax.jacfwd(lambda y0: cost(w, y0))(AT[:2]))(jnp.array([0.3, 0.6]))
    assert np.all(np.abs(np.asarray(by_start)) > 0.1)
    with pytest.raises(ValueError, match="closes over a differentiated value; pass the value through args"):
        jax.grad(lambda w: cost(0.3, hidden=w))(0.3)


class Hidden(Cost):
    function: Any = eqx.field(static=True)

    def value(self, t, y, u, args):
        return self.function(u)


@pytest.mark.slow
def test_memory_grows_linearly_with_the_horizon_and_not_with_the_iterations():
    def size(horizon, iterations):
        def cost(x):
            problem = line(x, horizon=horizon)
            return solve(problem, solver=ILQR(max_iterations=iterations)).cost

        return jax.jit(jax.grad(cost)).lower(AT).compile().memory_analysis().temp_size_in_bytes

    assert size(200, 10) < 2.2 * size(100, 10)
    assert size(100, 1000) < size(100, 10) + 5 * 8 * 1000 + 1000


@pytest.mark.float32
def test_single_precision():
    at = AT.astype(jnp.float32)
    slope = jax.jit(jax.grad(lambda x: solve(line(x)).cost))(at)
    assert slope.dtype == jnp.float32 and np.all(np.isfinite(slope))
