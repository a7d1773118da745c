"""Linear-quadratic models about a trajectory, against finite differences and the Hessian of the whole problem."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim.optimize.cost import FunctionCost, LeastSquares
from lgsim.optimize.dynamics import MultibodyDynamics
from lgsim.optimize.linear_quadratic import add_curvature, linearize, linearize_step
from lgsim.optimize.problem import Problem
from lgsim.optimize.standard_costs import ControlEffort
from tests.multibody import trees
from tests.optimize.problems import slew, turn
from tests.optimize.quadratics import dense


def differences(f, n, h=1e-6):
    """The Jacobian of f at zero by central differences."""
    eye = jnp.eye(n)
    return np.stack([(np.asarray(f(h * e)) - np.asarray(f(-h * e))) / (2 * h) for e in eye], axis=1)


@pytest.mark.slow
def test_a_step_of_a_machine_with_gaps_against_differences():
    """On joints that are groups, and to a next node that the step does not reach."""
    model = trees.build(["free", "spherical"], [-1, 0])
    q, v, _ = trees.state(model)
    dynamics = MultibodyDynamics(model, 0.05, lgsim.MK2)
    action = dynamics.action
    y, u = dynamics.state(q, v), jnp.linspace(-1.0, 1.0, model.nv)
    problem = Problem(dynamics, y, horizon=1, running=ControlEffort())
    gap = 0.2 * jnp.sin(jnp.arange(1.0, action.dim + 1))
    step = jax.jit(lambda y, u: problem.step(0, y, u))
    there = step(y, u)
    after = jax.jit(action.move)(gap, there)

    @jax.jit
    def linear():
        A, B, c = linearize_step(problem, jnp.array(0), y, u, after)
        return A, B, action.move(c, after)

    A, B, moved = linear()

    @jax.jit
    def f(z):
        return action.difference(after, problem.step(0, action.move(z[: action.dim], y), u + z[action.dim :]))

    np.testing.assert_allclose(moved, there, atol=1e-12)
    np.testing.assert_allclose(np.hstack([A, B]), differences(f, action.dim + model.nv), atol=2e-7)


@pytest.mark.slow
def test_the_model_has_the_gradient_and_hessian_of_the_whole_cost():
    """Full costs and second-order steps: the dense Hessian in all controls is that of the rolled-out cost, exactly."""
    problem = turn(horizon=3, weight=2.0)
    bent = FunctionCost(lambda t, y, u, args: jnp.sum(jnp.cos(y[1]) * u) + 0.1 * y[0, 1] * u[0] + jnp.sum(u**4))
    problem = problem.replace(running=problem.running + 0.3 * bent)
    us = 0.5 * jnp.sin(jnp.arange(9.0)).reshape(3, 3)

    def total(flat):
        us = flat.reshape(3, 3)
        return problem.cost(problem.rollout(us), us)

    def model(us):
        ys = problem.rollout(us)
        lq, costates = linearize(problem, ys, us, True)
        return add_curvature(problem, ys, us, lq, costates), costates

    lq, costates = jax.jit(model)(us)
    hessian, gradient, _ = dense(lq)

    @jax.jit
    def derivatives(x):
        gradient, push = jax.linearize(jax.grad(total), x)
        return gradient, jax.vmap(push)(jnp.eye(9))

    wanted_gradient, wanted_hessian = derivatives(us.ravel())
    np.testing.assert_allclose(gradient, wanted_gradient, atol=1e-12)
    np.testing.assert_allclose(hessian, wanted_hessian, atol=1e-11)
    by_costates = lq.r + jnp.einsum("kij,ki->kj", lq.B, costates[1:])
    np.testing.assert_allclose(by_costates.ravel(), wanted_gradient, atol=1e-12)


@pytest.mark.slow
def test_gauss_newton_is_the_square_of_the_residuals_slope():
    problem = slew(horizon=1)
    action, y, u = problem.dynamics.action, problem.y0, jnp.array([0.4, -0.2, 0.9])
    weight = jnp.array([2.0, 0.0, 3.0, 1.0])
    cost = LeastSquares(lambda t, y, u, args: jnp.concatenate([y[0][0] * u, t * y[1][:1] + u[:1] ** 2]), weight)
    model = cost.quadratic(action, jnp.array(0.7), y, u, None, False)

    def r(z):
        return cost.residual(jnp.array(0.7), action.move(z[:6], y), u + z[6:], None)

    J, W = differences(jax.jit(r), 9), np.diag(weight)
    np.testing.assert_allclose(model.hessian, J.T @ W @ J, atol=1e-7)
    np.testing.assert_allclose(model.gradient, J.T @ W @ np.asarray(r(jnp.zeros(9))), atol=1e-8)
    np.testing.assert_allclose(model.value, cost.value(jnp.array(0.7), y, u, None))
