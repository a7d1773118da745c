"""One step of a Riccati equation, with all that a line search asks of it, as one native function on CPU."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from lgsim.dynamics.matrices import product, times
from lgsim.optimize import box, small
from lgsim.optimize.linearize import Node
from lgsim.spatial import batch_last, cut


class Ahead(NamedTuple):
    """What the steps after a node come to, as functions of its x.

    Attributes:
        V, v: The least cost ``1/2 x . V x + v . x`` (n, n), (n,).
        down: Its constant, of first order in the length of the step: the slope of the cost along the policy.
        bend: Its constant of second order.
        along: The part of the cost that is linear in the trajectory, under the policy (n,).
        costate: The same without feedback: the multiplier of the step to this node (n,).
    """

    V: Array
    v: Array
    down: Array
    bend: Array
    along: Array
    costate: Array

    @classmethod
    def at_end(cls, P: Array, p: Array) -> Ahead:
        """Of the last node, whose cost is ``1/2 x . P x + p . x``."""
        zero = jnp.zeros_like(p[0])
        return cls(P, p, zero, zero, p, p)


class Step(NamedTuple):
    """``u = K x + k`` and whether it is a minimum; the slope of the cost by u (m,); what is ``finite`` of the node."""

    K: Array
    k: Array
    definite: Array
    slope: Array
    finite: Array


@batch_last
def stage(ahead: Ahead, node: Node, damping: Array) -> tuple[Ahead, Step]:
    """The step of a node whose controls are free; ``damping`` times the mean of R's diagonal is added to it.

    ``F = (A, B)^T V (A, B) + ((Q, N), (N^T, R))``; ``K = -F_uu^-1 F_ux``; ``V <- F_xx + F_xu K``.
    """
    return _stage(ahead, node, damping, None)


@batch_last
def bounded_stage(ahead: Ahead, node: Node, damping: Array, lower: Array, upper: Array) -> tuple[Ahead, Step]:
    """The step where lower <= u <= upper (m,), between which zero lies: k is the minimum in the box at x = 0, and rows
    of K are zero for controls at a bound.

    Source: Tassa, Mansard and Todorov 2014, Control-limited differential dynamic programming.
    """
    return _stage(ahead, node, damping, (lower, upper))


def _stage(
    ahead: Ahead, node: Node, damping: Array, bounds: tuple[Array, Array] | None
) -> tuple[Ahead, Step]:
    step, c, H, g = node
    n = len(c)
    V, along, costate = ahead.V, ahead.along, ahead.costate
    Vc = cut(times(V, c))
    xx, ux, uu = step.around(V)
    Fux, Fuu = cut((H[n:, :n] + ux, damped(H[n:, n:], damping) + uu))
    # the slopes of the next node as this one sees them: with curvature, along the policy, without feedback
    by_x, by_u = step.pulled(cut(jnp.stack([ahead.v + Vc, along, costate], axis=1)))
    by_x, by_u = cut((g[:n, None] + by_x, g[n:, None] + by_u))
    fu = by_u[:, 0]
    if bounds is None:
        W, definite = small.inverse_if_definite(Fuu)
        W = cut(W)
        K, k = -product(W, Fux), -times(W, fu)
    else:
        K, k, definite = box.least(Fuu, Fux, fu, *bounds)
    K, k = cut((K, k))
    Fxu, Kt = small.turned(Fux), small.turned(K)
    # rows of F_uu K + F_ux that are not zero belong to controls at a bound, whose rows of K are
    V = cut(H[:n, :n] + xx + product(Fxu, K))
    change = small.dot(ahead.v, c) + (small.dot(c, Vc) + small.dot(k, times(Fuu, k))) / 2 + small.dot(fu, k)
    down = small.dot(along, c) + small.dot(by_u[:, 1], k)
    before = Ahead(
        V=(V + small.turned(V)) / 2,
        v=by_x[:, 0] + times(Fxu, k),
        down=ahead.down + down,
        bend=ahead.bend + 2 * (change - down),
        along=by_x[:, 1] + times(Kt, by_u[:, 1]),
        costate=by_x[:, 2],
    )
    return before, Step(K, k, definite, by_u[:, 2], _finite(node))


@batch_last
def finite(node: Node) -> Array:
    """Whether the slopes, the curvatures, A and B are finite (4,)."""
    return _finite(node)


def _finite(node: Node) -> Array:
    # zero times what is not finite is not a number
    A, B, H, g = (small.total(0 * x) for x in (*node.step.parts(), node.H, node.g))
    return jnp.isfinite(jnp.stack([g, small.total(H), small.total(A), small.total(B)]))


def damped(R: Array, damping: Array) -> Array:
    """R (m, m, *batch) and the damping, relative to the mean of its diagonal where that is not zero."""
    m = len(R)
    eye = jnp.eye(m, dtype=R.dtype).reshape((m, m) + (1,) * (R.ndim - 2))
    size = sum(abs(R[i, i]) for i in range(m)) / m
    return R + eye * (damping * jnp.where(size > 0, size, 1))[None, None]
