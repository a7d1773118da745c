"""The backward pass against the linear-quadratic problem that it solves, made and solved apart."""

import chex
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lgsim.optimize.ilqr import backward_pass, parallel_backward_pass, second_order_backward_pass
from lgsim.optimize.linear_quadratic import add_curvature, expected_change, linearize
from tests.optimize.problems import turn
from tests.optimize.quadratics import riccati, rollout_policy


@eqx.filter_jit
def perturbed(problem, key):
    """A trajectory with gaps."""
    keys = jax.random.split(key)
    us = 0.3 * jax.random.normal(keys[0], (problem.horizon, problem.controls))
    moves = 0.1 * jax.random.normal(keys[1], (problem.horizon + 1, problem.dynamics.action.dim))
    return jax.vmap(problem.dynamics.action.move)(moves.at[0].set(0), problem.rollout(us)), us


def expected(problem, ys, us):
    """From the whole linear-quadratic problem: policy, linear and quadratic part of the cost, gradient by controls."""
    lq, costates = linearize(problem, ys, us, False)
    bounds = (problem.lower[None] - us, problem.upper[None] - us) if problem.bounded else None
    policy = riccati(lq, bounds)
    linear, quadratic = expected_change(lq, *rollout_policy(lq, policy.K, policy.k))
    slope = lq.r + jnp.einsum("kij,ki->kj", lq.B, costates[1:])
    return policy.K, policy.k, lq.c, linear, quadratic, slope


def of(found):
    return found.K, found.k, found.gaps, found.linear, found.quadratic, found.slopes


@pytest.mark.slow
def test_one_problem_and_a_batch_are_the_linear_quadratic_problem():
    """With bounds that some controls meet; in a batch each node is linearized within the loop, for one before it."""
    problem = turn(horizon=7).replace(lower=-0.2, upper=0.25)
    zero = jnp.zeros(())
    one = jax.jit(lambda ys, us: (of(backward_pass(problem, ys, us, zero, False)), expected(problem, ys, us)))
    batch = jax.jit(jax.vmap(lambda ys, us: of(backward_pass(problem, ys, us, zero, False))))
    keys = jax.random.split(jax.random.key(0), 20)
    ys, us = jax.vmap(lambda key: perturbed(problem, key))(keys)
    us = problem.clip(us)
    many = batch(ys, us)
    held = 0
    for i in (0, 7):
        found, wanted = one(jax.tree.map(lambda y, i=i: y[i], ys), us[i])
        held += int(np.sum(~np.any(np.asarray(wanted[0]), axis=2)))
        for each in (found, jax.tree.map(lambda x, i=i: x[i], many)):
            chex.assert_trees_all_close(each, wanted, rtol=1e-9, atol=1e-10)
    assert held > 0


@pytest.mark.slow
def test_the_parallel_way():
    """In parallel it is the same."""
    problem = turn()
    ys, us = perturbed(problem, jax.random.key(4))
    zero = jnp.zeros(())
    ways = jax.jit(
        lambda ys, us: [way(problem, ys, us, zero, False) for way in (backward_pass, parallel_backward_pass)]
    )
    one, two = ways(ys, us)
    assert bool(one.definite) and int(one.bad_node) == -1
    chex.assert_trees_all_close(of(one), of(two), rtol=1e-8, atol=1e-9)


@pytest.mark.slow
def test_second_derivatives_where_they_have_a_minimum():
    """With a large effort the exact model is solved, with a small one Gauss and Newton's."""
    problem = turn(weight=1.0)
    ys, us = perturbed(problem, jax.random.key(4))
    zero = jnp.zeros(())

    @jax.jit
    def of(scale):
        scaled = problem.replace(running=scale * problem.running)
        lq, costates = linearize(scaled, ys, us, False)
        exact = riccati(add_curvature(scaled, ys, us, lq, costates, True))
        slope = lq.r + jnp.einsum("kij,ki->kj", lq.B, costates[1:])
        found = second_order_backward_pass(scaled, ys, us, zero, False)
        return found, riccati(lq), exact, slope

    found, plain, exact, slopes = of(1e3)
    assert bool(exact.definite) and float(jnp.max(jnp.abs(exact.K - plain.K))) > 1e-6
    np.testing.assert_allclose(found.K, exact.K, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(found.slopes, slopes, rtol=1e-9, atol=1e-10)
    found, plain, exact, _ = of(1.0)
    assert not bool(exact.definite) and bool(found.definite)
    np.testing.assert_allclose(found.K, plain.K, rtol=1e-9, atol=1e-10)


@pytest.mark.slow
def test_what_is_not_finite_is_named():
    problem = turn()
    ys, us = perturbed(problem, jax.random.key(5))
    place = jax.jit(lambda ys, us: backward_pass(problem, ys, us, jnp.zeros(()), False)[-2:])
    assert tuple(map(int, place(ys, us))) == (-1, -1)
    node, quantity = place(ys, us.at[4].set(jnp.nan))
    assert (int(node), int(quantity)) == (4, 3)
