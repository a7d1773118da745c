"""The solution of linear-quadratic problems backwards in time, and the feedback that it gives."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from lgsim.optimize import small
from lgsim.optimize.box import box_step
from lgsim.optimize.linearize import LinearQuadratic

NATIVE = 24
"""Up to this length of x products are loops in native functions, which for larger ones lose to the matrix library in
batches: measured, 64 problems on one core, 1.9 times faster with 14 and 1.9 times slower with 36."""


class Policy(NamedTuple):
    """``u = K x + k`` at each step, and the cost to go ``1/2 x . V x + v . x`` from each node.

    Attributes:
        K: (H, controls, n).
        k: (H, controls).
        V: (H + 1, n, n).
        v: (H + 1, n).
        definite: Whether the Hessian of the controls was positive definite at every step, so that this is a minimum.
    """

    K: Array
    k: Array
    V: Array
    v: Array
    definite: Array


def riccati(lq: LinearQuadratic, bounds: tuple[Array, Array] | None = None) -> Policy:
    """Solve a linear-quadratic problem one step after the other, from the end.

    ``F = (A, B)^T V (A, B) + ((Q, N), (N^T, R))``; ``K = -F_uu^-1 F_ux``; ``V <- F_xx + F_xu K``.

    Args:
        lq: The problem.
        bounds: (lower, upper) of u, each (H, controls): k is the minimum in the box at x = 0, and rows of K are zero
            for controls at a bound.

    Source: Tassa, Mansard and Todorov 2014, Control-limited differential dynamic programming, for the bounds.
    """

    def back(after: tuple[Array, Array], node: tuple) -> tuple[tuple[Array, Array], Policy]:
        K, k, V, v, definite = stage(*after, *node)
        return (V, v), Policy(K, k, V, v, definite)

    stages = (lq.A, lq.B, lq.c, lq.Q, lq.R, lq.N, lq.q, lq.r, bounds)
    _, out = jax.lax.scan(back, (lq.P, lq.p), stages, reverse=True)
    V, v = jnp.concatenate([out.V, lq.P[None]]), jnp.concatenate([out.v, lq.p[None]])
    return Policy(out.K, out.k, V, v, jnp.all(out.definite))


def stage(
    V: Array, v: Array, A: Array, B: Array, c: Array, Q: Array, R: Array, N: Array, q: Array, r: Array,
    bounds: tuple[Array, Array] | None,
) -> tuple[Array, Array, Array, Array, Array]:  # fmt: skip
    """(K, k, V, v, whether F_uu is definite) of a step from the cost to go after it."""
    n = V.shape[0]
    Fxx, Fux, Fuu, fx, fu = (small.actions if n <= NATIVE else _actions)(V, v, A, B, c, Q, R, N, q, r)
    K, k, definite = small.free_step(Fuu, Fux, fu) if bounds is None else box_step(Fuu, Fux, fu, *bounds)
    V, v = (small.value if n <= NATIVE else _value)(Fxx, Fux, Fuu, fx, fu, K, k)
    return K, k, V, v, definite


def _actions(
    V: Array, v: Array, A: Array, B: Array, c: Array, Q: Array, R: Array, N: Array, q: Array, r: Array
) -> tuple[Array, Array, Array, Array, Array]:
    """``small.actions`` by the matrix library."""
    v = v + V @ c
    VA, VB = V @ A, V @ B
    return Q + A.T @ VA, N.T + B.T @ VA, R + B.T @ VB, q + A.T @ v, r + B.T @ v


def _value(
    Fxx: Array, Fux: Array, Fuu: Array, fx: Array, fu: Array, K: Array, k: Array
) -> tuple[Array, Array]:
    """``small.value`` by the matrix library."""
    V = Fxx + Fux.T @ K + K.T @ (Fux + Fuu @ K)
    return (V + V.T) / 2, fx + Fux.T @ k + K.T @ (fu + Fuu @ k)


def follow(lq: LinearQuadratic, K: Array, k: Array) -> tuple[Array, Array]:
    """(x (H + 1, n), u (H, controls)) of the linear system from x = 0 under ``u = K x + k``."""

    def step(x: Array, node: tuple) -> tuple[Array, tuple[Array, Array]]:
        A, B, c, K, k = node
        u = K @ x + k
        after = A @ x + B @ u + c
        return after, (after, u)

    x0 = jnp.zeros_like(lq.p)
    _, (xs, us) = jax.lax.scan(step, x0, (lq.A, lq.B, lq.c, K, k))
    return jnp.concatenate([x0[None], xs]), us


def models(lq: LinearQuadratic, x: Array, u: Array) -> tuple[Array, Array]:
    """(linear part, quadratic part ``z . H z``) of the cost of a trajectory x (H + 1, n), u (H, controls)."""
    before, last = x[:-1], x[-1]
    slope = jnp.sum(lq.q * before) + jnp.sum(lq.r * u) + lq.p @ last
    bend = (
        jnp.einsum("ki,kij,kj", before, lq.Q, before)
        + 2 * jnp.einsum("ki,kij,kj", before, lq.N, u)
        + jnp.einsum("ki,kij,kj", u, lq.R, u)
        + last @ lq.P @ last
    )
    return slope, bend
