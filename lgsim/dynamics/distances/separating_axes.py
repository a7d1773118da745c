"""Penetration depth of two overlapping convex cores by separating axes: face normals and pairs of edges."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lgsim._compile.spatial import Mat, Transform, Vec
from lgsim._compile.xla import control_flow
from lgsim.dynamics.distances.nearest import Nearest, chosen, moved
from lgsim.multibody.geometry.forms import Convex, length

_UNROLLED = 32
"""Number of directions up to which the loop over them is unrolled."""
FIRST, SECOND, EDGES = 0, 1, 2
"""Kinds of direction: a normal of the first core, of the second one, or the cross product of two edges."""


class Table(NamedTuple):
    """Candidate directions.

    Attributes:
        kinds: The kind of each direction, (k,).
        first: Constants in the frame of the first core, (k, 3).
        second: Constants in the frame of the second core, (k, 3).
    """

    kinds: np.ndarray
    first: np.ndarray
    second: np.ndarray


def table(a: Any, b: Any) -> Table:
    """The candidate directions of two convex cores."""
    nothing = np.zeros(3)
    rows = [(FIRST, n, nothing) for n in a.normals] + [(SECOND, nothing, n) for n in b.normals]
    rows += [(EDGES, e, f) for e in a.edges for f in b.edges]
    kinds, first, second = zip(*rows, strict=True) if rows else ((), (), ())
    return Table(np.array(kinds, int), np.reshape(first, (-1, 3)), np.reshape(second, (-1, 3)))


class _Best(NamedTuple):
    """The direction with the largest separation so far.

    Attributes:
        sign: Its sign, 1 or -1.
        kind: Its kind.
        first: Constants of the direction in the frame of the first core.
        second: Constants of the direction in the frame of the second core.
    """

    apart: Array
    sign: Array
    kind: Array
    first: Vec
    second: Vec


def deepest(a: Convex, b: Convex, T: Transform, wanted: Array) -> tuple[Array, Nearest]:
    """(the largest separation of two cores over all directions, negative where they overlap; the points there).

    A negative value is minus the penetration depth, and exact: one of the directions is a face normal of the Minkowski
    difference. A positive value is a lower bound of the distance.

    Args:
        a: The first core.
        b: The second core.
        T: The pose of the second core in the frame of the first one.
        wanted: True where the result is needed; otherwise a long list of directions is skipped.

    Source: Gottschalk, Lin and Manocha, OBBTree, SIGGRAPH 1996, for boxes; the directions suffice for any polytope.
    """
    tried = table(a, b)
    like = T.p.x
    count = len(tried.kinds)
    zero = jnp.zeros_like(like)
    nothing = Vec(zero, zero, zero)
    best = _Best(zero - jnp.inf, zero + 1, zero, nothing, nothing)
    # a short list is unrolled; a long one is a loop, without derivatives
    if count <= _UNROLLED:
        for kind, *rows in zip(*tried, strict=True):
            first, second = (Vec(*(jnp.full_like(like, x) for x in each)) for each in rows)
            n = _direction(int(kind), first, second, T.R)
            best = _tried(a, b, T, best, n, jnp.full_like(like, kind), first, second)
    else:
        rows = jnp.asarray(np.column_stack(tried), like.dtype)

        held = jax.lax.stop_gradient((a, b, T))

        def step(state: tuple[Array, _Best]) -> tuple[Array, _Best]:
            k, best = state
            kind, *at = rows[k]
            first, second = Vec(*at[:3]), Vec(*at[3:])
            return k + 1, _tried(*held, best, _mixed_direction(kind, first, second, held[2].R), kind, first, second)

        best = control_flow.while_loop(lambda s: wanted & (s[0] < count), step, (jnp.zeros((), int), best))[1]
        best = best._replace(apart=jnp.where(wanted, best.apart, jnp.inf))
    return jax.lax.stop_gradient(best.apart), _where(a, b, T, best)


def _tried(a: Convex, b: Convex, T: Transform, best: _Best, n: Vec, kind: Array, first: Vec, second: Vec) -> _Best:
    low, high = a.span(n)
    from_b, to_b = b.span(T.R.transpose_apply(n))
    offset = n.dot(T.p)
    real = n.dot(n) > 0
    for side, apart in ((1, offset + from_b - high), (-1, low - offset - to_b)):
        found = _Best(apart, jnp.full_like(apart, side), kind, first, second)
        better = real & (apart > best.apart)
        best = jax.tree.map(lambda x, y, better=better: jnp.where(better, x, y), found, best)
    return best


def _direction(kind: int, first: Vec, second: Vec, R: Mat) -> Vec:
    """The unit vector of a direction of the table; zero for parallel edges."""
    if kind == FIRST:
        return first
    if kind == SECOND:
        return R @ second
    return length(first.cross(R @ second))[1]


def _mixed_direction(kind: Array, first: Vec, second: Vec, R: Mat) -> Vec:
    turned = R @ second
    cross = length(first.cross(turned))[1]
    return chosen(kind == FIRST, first, chosen(kind == SECOND, turned, cross))


def _where(a: Any, b: Any, T: Transform, best: _Best) -> Nearest:
    """The points of the cores along a direction, with the derivative of its rotation."""
    best = jax.lax.stop_gradient(best)
    n = _mixed_direction(best.kind, best.first, best.second, T.R) * best.sign
    zero = jnp.zeros_like(n.x)
    nothing, edges = Vec(zero, zero, zero), best.kind == EDGES
    back = chosen(best.kind == SECOND, best.second * -best.sign, -T.R.transpose_apply(n))
    at = a.support(n, chosen(edges, best.first, nothing))
    opposite = b.support(back, chosen(edges, best.second, nothing))
    gap = moved(T, b.place(opposite)) - a.place(at)
    across = gap - n * n.dot(gap)
    turned = T.R @ best.second
    # move along the first edge to the point where the second one passes
    area = best.first.cross(turned).dot(n)
    skew = area != 0
    along = best.first * jnp.where(skew, across.cross(turned).dot(n) / jnp.where(skew, area, 1), 0)
    slide = chosen(best.kind == FIRST, across, chosen(best.kind == SECOND, nothing, along))
    return Nearest(at, opposite, best.apart <= 0, n, slide)
