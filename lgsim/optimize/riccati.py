"""One step of a Riccati equation, with all that a line search asks of it, as one native function on CPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from lgsim.linalg import box_qp, dense
from lgsim.linalg.dense import product, times
from lgsim.linalg.symmetric_blocks import SymmetricBlocks, add_symmetric_product, from_dense, matvec
from lgsim.optimize.dynamics import Dense
from lgsim.optimize.linearize import LinearQuadratic, Node
from lgsim.xla import batch_last, fusion_barrier, scan_last


class CostToGo(NamedTuple):
    """What the steps after a node come to, as functions of its x.

    Attributes:
        V, v: The least cost ``1/2 x . V x + v . x`` (n, n), (n,); V in the blocks of ``Dynamics.cuts``.
        down: Its constant, of first order in the length of the step: the slope of the cost along the policy.
        bend: Its constant of second order.
        along: The part of the cost that is linear in the trajectory, under the policy (n,).
        costate: The same without feedback: the multiplier of the step to this node (n,).
    """

    V: SymmetricBlocks
    v: Array
    down: Array
    bend: Array
    along: Array
    costate: Array

    @classmethod
    def at_end(cls, P: Array, p: Array, cuts: Sequence[int] | None = None) -> CostToGo:
        """Of the last node, whose cost is ``1/2 x . P x + p . x``; by default one block."""
        zero = jnp.zeros_like(p[0])
        return cls(from_dense(P, cuts or p.shape), p, zero, zero, p, jnp.where(jnp.isfinite(p), p, 0))


class BackwardStep(NamedTuple):
    """What a node does, and what is known there.

    Attributes:
        K, k: The policy ``u = K x + k``.
        definite: Whether it is a minimum.
        slope: Of the cost by u (m,).
        sound: Whether the node's own g, A with c, and B are finite (3,).
        smooth: Whether the V of the next node is.
    """

    K: Array
    k: Array
    definite: Array
    slope: Array
    sound: Array
    smooth: Array


@batch_last
def backward_step(ahead: CostToGo, node: Node, damping: Array) -> tuple[CostToGo, BackwardStep]:
    """The step of a node whose controls are free; ``damping`` times the mean of R's diagonal is added to it.

    ``F = (A, B)^T V (A, B) + ((Q, N), (N^T, R))``; ``K = -F_uu^-1 F_ux``; ``V <- F_xx + F_xu K``.
    """
    return _backward_step(ahead, node, damping, None)


@batch_last
def bounded_backward_step(
    ahead: CostToGo, node: Node, damping: Array, lower: Array, upper: Array
) -> tuple[CostToGo, BackwardStep]:
    """The step where lower <= u <= upper (m,), between which zero lies: k is the minimum in the box at x = 0, and rows
    of K are zero for controls at a bound.

    Source: Tassa, Mansard and Todorov 2014, Control-limited differential dynamic programming.
    """
    return _backward_step(ahead, node, damping, (lower, upper))


def _backward_step(
    ahead: CostToGo, node: Node, damping: Array, bounds: tuple[Array, Array] | None
) -> tuple[CostToGo, BackwardStep]:
    step, c, H, g = node
    n = len(c)
    Vc = fusion_barrier(matvec(ahead.V, c))
    Fxx, Fux, Fuu = step.around(ahead.V, H)
    Fux, Fuu = fusion_barrier((Fux, Fuu + relative(H[n:, n:], damping)))
    # the slopes of the next node as this one sees them: with curvature, along the policy, without feedback
    by_x, by_u = step.pulled(fusion_barrier(jnp.stack([ahead.v + Vc, ahead.along, ahead.costate], axis=1)))
    by_x, by_u = fusion_barrier((g[:n, None] + by_x, g[n:, None] + by_u))
    fu = by_u[:, 0]
    if bounds is None:
        W, definite = dense.inverse_if_definite(Fuu)
        W = fusion_barrier(W)
        K, k = -product(W, Fux), -times(W, fu)
    else:
        K, k, definite = box_qp.box_step(Fuu, Fux, fu, *bounds)
    K, k = fusion_barrier((K, k))
    # what multiplies the costate, which is finite, shows there
    sound = finite(g), finite(by_x[:, 2]) & finite(c), finite(by_u[:, 2])
    change = dense.dot(ahead.v, c) + (dense.dot(c, Vc) + dense.dot(k, times(Fuu, k))) / 2 + dense.dot(fu, k)
    down = dense.dot(ahead.along, c) + dense.dot(by_u[:, 1], k)
    before = CostToGo(
        # rows of F_uu K + F_ux that are not zero belong to controls at a bound, whose rows of K are
        V=add_symmetric_product(Fxx, Fux, K),
        v=by_x[:, 0] + times(dense.transpose(Fux), k),
        down=ahead.down + down,
        bend=ahead.bend + 2 * (change - down),
        along=by_x[:, 1] + times(dense.transpose(K), by_u[:, 1]),
        # so that the nodes before this one are not blamed
        costate=jnp.where(sound[0] & sound[1] & sound[2], by_x[:, 2], 0),
    )
    return before, BackwardStep(K, k, definite, by_u[:, 2], jnp.stack(sound), finite(Vc))


@batch_last
def all_finite(V: SymmetricBlocks) -> Array:
    """Whether all entries are."""
    return finite(jnp.concatenate([dense.sum_rows(block) for row in V for block in row]))


def finite(x: Array) -> Array:
    """Whether all of (n, *batch) is."""
    # zero times what is not finite is not a number
    return jnp.isfinite(dense.sum_rows(0 * x))


def damped(R: Array, damping: Array) -> Array:
    """R (m, m, *batch) and the damping."""
    return R + relative(R, damping)


def relative(R: Array, damping: Array) -> Array:
    """The damping (m, m, *batch), relative to the mean of R's diagonal where that is not zero."""
    m = len(R)
    eye = jnp.eye(m, dtype=R.dtype).reshape((m, m) + (1,) * (R.ndim - 2))
    size = sum(abs(R[i, i]) for i in range(m)) / m
    return eye * (damping * jnp.where(size > 0, size, 1))[None, None]


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

    def back(ahead: CostToGo, x: tuple[Node, Any]) -> tuple[CostToGo, Policy]:
        node, bounds = x
        still = jnp.zeros_like(lq.p[0])
        now, step = (
            backward_step(ahead, node, still) if bounds is None else bounded_backward_step(ahead, node, still, *bounds)
        )
        return now, Policy(step.K, step.k, now.V[0][0], now.v, step.definite)

    _, out = scan_last(back, CostToGo.at_end(lq.P, lq.p), (nodes_of(lq), bounds), reverse=True)
    V, v = jnp.concatenate([out.V, lq.P[None]]), jnp.concatenate([out.v, lq.p[None]])
    return Policy(out.K, out.k, V, v, jnp.all(out.definite))


def nodes_of(lq: LinearQuadratic) -> Node:
    """Its steps, with the leading axis of time."""
    H = jnp.block([[lq.Q, lq.N], [jnp.swapaxes(lq.N, 1, 2), lq.R]])
    return Node(Dense(lq.A, lq.B), lq.c, H, jnp.concatenate([lq.q, lq.r], axis=1))


def rollout_policy(lq: LinearQuadratic, K: Array, k: Array) -> tuple[Array, Array]:
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
