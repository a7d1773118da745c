"""Linear-quadratic problems against scipy's Riccati solution, a dense solve of the conditions, and a bounded one."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import solve_discrete_are
from scipy.optimize import minimize

from lgsim._compile.linalg.box_qp import box_minimum
from lgsim.optimize.linear_quadratic import LinearQuadratic, expected_change
from lgsim.optimize.parallel_riccati import parallel_riccati, parallel_rollout_policy
from tests.optimize.quadratics import dense, riccati, rollout_policy

H, N, M = 13, 4, 2


def definite(key, n):
    a = jax.random.normal(key, (H, n, n))
    return a @ jnp.swapaxes(a, 1, 2) / n + 0.1 * jnp.eye(n)[None]


@partial(jax.jit, static_argnums=0)
def random_problem(dtype=float):
    keys = iter(jax.random.split(jax.random.key(1), 12))
    both = definite(next(keys), N + M)
    lq = LinearQuadratic(
        A=jnp.eye(N)[None] + 0.3 * jax.random.normal(next(keys), (H, N, N)),
        B=jax.random.normal(next(keys), (H, N, M)),
        c=0.1 * jax.random.normal(next(keys), (H, N)),
        Q=both[:, :N, :N],
        R=both[:, N:, N:],
        N=both[:, :N, N:],
        q=jax.random.normal(next(keys), (H, N)),
        r=jax.random.normal(next(keys), (H, M)),
        P=definite(next(keys), N)[0],
        p=jax.random.normal(next(keys), (N,)),
    )
    return jax.tree.map(lambda x: x.astype(dtype), lq)


SOLVE = jax.jit(lambda lq: (riccati(lq), parallel_riccati(lq)))
ROLLOUT, PARALLEL_ROLLOUT = jax.jit(rollout_policy), jax.jit(parallel_rollout_policy)


@pytest.mark.quick
def test_both_solve_the_optimality_conditions():
    """Time-varying, with cross terms, gaps and linear terms: both find the controls of the dense system."""
    lq = random_problem()
    one, two = SOLVE(lq)
    wanted = dense(lq)[2]
    assert bool(one.definite) and bool(two.definite)
    x, u = ROLLOUT(lq, one.K, one.k)
    np.testing.assert_allclose(u, wanted, rtol=0, atol=1e-11)
    px, pu = PARALLEL_ROLLOUT(lq, two.K, two.k)
    np.testing.assert_allclose(pu, wanted, rtol=0, atol=1e-10)
    np.testing.assert_allclose(px, x, rtol=0, atol=1e-10)
    for a, b in zip((one.K, one.Vxx, one.Vx), (two.K, two.Vxx, two.Vx), strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-9, atol=1e-9)


def test_the_expected_change_is_that_of_the_dense_quadratic():
    lq = random_problem()
    hessian, gradient, _ = dense(lq)
    lq = lq._replace(c=jnp.zeros_like(lq.c))
    _, gradient, _ = dense(lq)
    policy, _ = SOLVE(lq)
    x, u = ROLLOUT(lq, policy.K, policy.k)
    linear, quadratic = jax.jit(expected_change)(lq, x, u)
    flat = np.asarray(u).ravel()
    np.testing.assert_allclose(linear, gradient @ flat, rtol=1e-11)
    np.testing.assert_allclose(quadratic, flat @ hessian @ flat, rtol=1e-11)


@pytest.mark.slow
def test_the_far_horizon_gives_the_algebraic_riccati_equation():
    """The gains of scipy's infinite horizon."""
    lq = random_problem()
    first = lq._replace(P=lq.P[None], p=lq.p[None])
    still = jax.tree.map(lambda x: jnp.broadcast_to(x[0], (1000, *x.shape[1:])), first)
    still = still._replace(P=still.P[0], p=still.p[0])
    A, B, Q, R, S = (np.asarray(x[0]) for x in (still.A, still.B, still.Q, still.R, still.N))
    X = solve_discrete_are(A, B, Q, R, s=S)
    gain = -np.linalg.solve(R + B.T @ X @ B, B.T @ X @ A + S.T)
    one, two = SOLVE(still)
    for policy in (one, two):
        np.testing.assert_allclose(policy.Vxx[0], X, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(policy.K[0], gain, rtol=1e-9, atol=1e-9)


def test_an_indefinite_hessian_is_told():
    lq = random_problem()
    one, two = SOLVE(lq._replace(R=lq.R.at[5].add(-50 * jnp.eye(M))))
    assert not bool(one.definite) and not bool(two.definite)


def test_box_minimum_against_scipy():
    """200 quadratics of three unknowns, where many minima lie on faces, edges and corners of the box."""
    keys = jax.random.split(jax.random.key(3), 2)
    a = jax.random.normal(keys[0], (200, 3, 3))
    hessians = a @ jnp.swapaxes(a, 1, 2) + 0.05 * jnp.eye(3)[None]
    slopes = 3 * jax.random.normal(keys[1], (200, 3))
    low, high = jnp.array([-1.0, -0.5, -2.0]), jnp.array([0.3, 1.0, 0.7])
    found, free = jax.jit(jax.vmap(box_minimum, (0, 0, None, None)))(hessians, slopes, low, high)
    found, low, high = (np.asarray(x) for x in (found, low, high))
    assert np.all(found >= low) and np.all(found <= high)
    assert set(np.sum(np.asarray(free), axis=1)) == {0, 1, 2, 3}
    # the conditions of Karush, Kuhn and Tucker
    gradient = np.einsum("bij,bj->bi", hessians, found) + slopes
    np.testing.assert_allclose(found - np.clip(found - gradient, low, high), 0, atol=1e-10)
    for i in range(0, 200, 20):
        best = minimize(
            lambda u, i=i: u @ np.asarray(hessians[i]) @ u / 2 + np.asarray(slopes[i]) @ u,
            np.zeros(3), bounds=list(zip(low, high, strict=True)), tol=1e-12,
        )  # fmt: skip
        np.testing.assert_allclose(found[i], best.x, atol=1e-5)


@pytest.mark.slow
def test_bounds_that_no_control_meets_change_nothing():
    lq = random_problem()
    wide = (jnp.full((H, M), -1e3), jnp.full((H, M), 1e3))
    free, boxed = jax.jit(lambda lq: (riccati(lq), riccati(lq, wide)))(lq)
    np.testing.assert_allclose(boxed.K, free.K, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(boxed.k, free.k, rtol=1e-10, atol=1e-12)


@pytest.mark.slow
@pytest.mark.float32
def test_a_long_horizon_in_parallel_is_the_sequential_one(dtype):
    """1000 steps of different matrices."""
    lq = random_problem(dtype)
    long = jax.tree.map(lambda x: jnp.concatenate([x] * 77)[:1000], lq._replace(P=lq.P[None], p=lq.p[None]))
    one, two = SOLVE(long._replace(P=lq.P, p=lq.p))
    assert bool(one.definite) and bool(two.definite) and one.K.dtype == two.K.dtype == dtype
    scale = float(jnp.max(jnp.abs(one.Vxx)))
    atol = 1e-10 if dtype == np.float64 else 1e-4
    for a, b in zip((one.K, one.k, one.Vxx, one.Vx), (two.K, two.k, two.Vxx, two.Vx), strict=True):
        np.testing.assert_allclose(b, a, rtol=0, atol=atol * max(scale, 1))
