"""One step of a Riccati equation, with all that a line search asks of it, as one native function on CPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from lgsim.dynamics.matrices import product, times
from lgsim.optimize import box, small
from lgsim.optimize.linearize import Node
from lgsim.optimize.lower import Lower, along, less_square, lower
from lgsim.spatial import batch_last, cut


class Ahead(NamedTuple):
    """What the steps after a node come to, as functions of its x.

    Attributes:
        V, v: The least cost ``1/2 x . V x + v . x`` (n, n), (n,); V in the blocks of ``Dynamics.cuts``.
        down: Its constant, of first order in the length of the step: the slope of the cost along the policy.
        bend: Its constant of second order.
        along: The part of the cost that is linear in the trajectory, under the policy (n,).
        costate: The same without feedback: the multiplier of the step to this node (n,).
    """

    V: Lower
    v: Array
    down: Array
    bend: Array
    along: Array
    costate: Array

    @classmethod
    def at_end(cls, P: Array, p: Array, cuts: Sequence[int] | None = None) -> Ahead:
        """Of the last node, whose cost is ``1/2 x . P x + p . x``; by default one block."""
        zero = jnp.zeros_like(p[0])
        return cls(lower(P, cuts or p.shape), p, zero, zero, p, jnp.where(jnp.isfinite(p), p, 0))


class Step(NamedTuple):
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
    Vc = cut(along(ahead.V, c))
    Fxx, Fux, Fuu = step.around(ahead.V, H)
    Fux, Fuu = cut((Fux, Fuu + relative(H[n:, n:], damping)))
    # the slopes of the next node as this one sees them: with curvature, along the policy, without feedback
    by_x, by_u = step.pulled(cut(jnp.stack([ahead.v + Vc, ahead.along, ahead.costate], axis=1)))
    by_x, by_u = cut((g[:n, None] + by_x, g[n:, None] + by_u))
    fu = by_u[:, 0]
    if bounds is None:
        W, definite = small.inverse_if_definite(Fuu)
        W = cut(W)
        K, k = -product(W, Fux), -times(W, fu)
    else:
        K, k, definite = box.least(Fuu, Fux, fu, *bounds)
    K, k = cut((K, k))
    # what multiplies the costate, which is finite, shows there
    sound = finite(g), finite(by_x[:, 2]) & finite(c), finite(by_u[:, 2])
    change = small.dot(ahead.v, c) + (small.dot(c, Vc) + small.dot(k, times(Fuu, k))) / 2 + small.dot(fu, k)
    down = small.dot(ahead.along, c) + small.dot(by_u[:, 1], k)
    before = Ahead(
        # rows of F_uu K + F_ux that are not zero belong to controls at a bound, whose rows of K are
        V=less_square(Fxx, Fux, K),
        v=by_x[:, 0] + times(small.turned(Fux), k),
        down=ahead.down + down,
        bend=ahead.bend + 2 * (change - down),
        along=by_x[:, 1] + times(small.turned(K), by_u[:, 1]),
        # so that the nodes before this one are not blamed
        costate=jnp.where(sound[0] & sound[1] & sound[2], by_x[:, 2], 0),
    )
    return before, Step(K, k, definite, by_u[:, 2], jnp.stack(sound), finite(Vc))


@batch_last
def all_finite(V: Lower) -> Array:
    """Whether all entries are."""
    return finite(jnp.concatenate([small.total(block) for row in V for block in row]))


def finite(x: Array) -> Array:
    """Whether all of (n, *batch) is."""
    # zero times what is not finite is not a number
    return jnp.isfinite(small.total(0 * x))


def damped(R: Array, damping: Array) -> Array:
    """R (m, m, *batch) and the damping."""
    return R + relative(R, damping)


def relative(R: Array, damping: Array) -> Array:
    """The damping (m, m, *batch), relative to the mean of R's diagonal where that is not zero."""
    m = len(R)
    eye = jnp.eye(m, dtype=R.dtype).reshape((m, m) + (1,) * (R.ndim - 2))
    size = sum(abs(R[i, i]) for i in range(m)) / m
    return eye * (damping * jnp.where(size > 0, size, 1))[None, None]
