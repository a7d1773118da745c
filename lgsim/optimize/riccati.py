"""The solution of linear-quadratic problems backwards in time, and the feedback that it gives."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from lgsim.optimize.linearize import LinearQuadratic, Node
from lgsim.optimize.stage import Ahead, bounded_stage, stage
from lgsim.optimize.transition import Dense
from lgsim.spatial import scan_last


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

    Args:
        lq: The problem.
        bounds: (lower, upper) of u, each (H, controls); see ``bounded_stage``.
    """

    def back(ahead: Ahead, x: tuple[Node, Any]) -> tuple[Ahead, Policy]:
        node, bounds = x
        still = jnp.zeros_like(lq.p[0])
        now, step = stage(ahead, node, still) if bounds is None else bounded_stage(ahead, node, still, *bounds)
        return now, Policy(step.K, step.k, now.V[0][0], now.v, step.definite)

    _, out = scan_last(back, Ahead.at_end(lq.P, lq.p), (nodes_of(lq), bounds), reverse=True)
    V, v = jnp.concatenate([out.V, lq.P[None]]), jnp.concatenate([out.v, lq.p[None]])
    return Policy(out.K, out.k, V, v, jnp.all(out.definite))


def nodes_of(lq: LinearQuadratic) -> Node:
    """Its steps, with the leading axis of time."""
    H = jnp.block([[lq.Q, lq.N], [jnp.swapaxes(lq.N, 1, 2), lq.R]])
    return Node(Dense(lq.A, lq.B), lq.c, H, jnp.concatenate([lq.q, lq.r], axis=1))


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
