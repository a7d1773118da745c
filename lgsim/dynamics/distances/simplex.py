"""Distance between two separate convex polytopes by the algorithm of Gilbert, Johnson and Keerthi (GJK)."""

from __future__ import annotations

from itertools import combinations
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from lgsim._compile.spatial import Transform, Vec
from lgsim._compile.xla import control_flow
from lgsim.dynamics.distances.nearest import Nearest, chosen, moved
from lgsim.dynamics.distances.separating_axes import deepest
from lgsim.multibody.geometry.forms import Convex, one_hot

CORNERS = 4
MOST = 64
"""Maximum number of iterations; polytopes with 64 corners need about twenty."""
ROUNDING = 16
"""Required decrease of the distance per iteration, and contact tolerance, in units of rounding."""


class _Simplex(NamedTuple):
    """Points w = a - b of the Minkowski difference of two polytopes, four slots (4,).

    Attributes:
        first: The corners of the first polytope.
        second: The corners of the second polytope.
        share: Weights of the point closest to the origin; zero for a free slot.
    """

    w: Vec
    first: Array
    second: Array
    share: Array


class _State(NamedTuple):
    """State of the search for the point of a Minkowski difference closest to the origin.

    Attributes:
        simplex: The simplex that contains the current point.
        size: The largest squared norm of a point so far.
        over: True when the search has ended.
        steps: Number of iterations.
    """

    simplex: _Simplex
    near: Vec
    square: Array
    size: Array
    over: Array
    steps: Array


def two_polytopes(a: Convex, b: Convex, T: Transform) -> Nearest:
    """The closest points of two polytopes, or the shortest translation that separates them.

    Source: Gilbert, Johnson and Keerthi, A fast procedure for computing the distance between complex objects in
    three-dimensional space, IEEE J. Robotics and Automation 4, 1988. All faces of the simplex are tested and the
    closest point inside one of them is taken, so that rounding costs at most one iteration.
    """
    pa, pb = a.points(), moved(T, b.points())
    found = jax.lax.stop_gradient(_search(*jax.lax.stop_gradient((pa, pb, T.p))))
    touching = found.square <= _rounding(found.square) ** 2 * found.size
    inside = touching | (jnp.sum(found.simplex.share > 0, axis=0) == CORNERS)
    # the derivatives of the corner weights complete the second derivatives
    shape = found.simplex
    first, second = (_corner(p, i) for p, i in ((pa, shape.first), (pb, shape.second)))
    share, _, _ = _nearest(first - second, shape.share > 0)
    weights = [
        jnp.sum(share[:, None] * _hot(i, len(p.x), share.dtype), axis=0)
        for i, p in ((shape.first, pa), (shape.second, pb))
    ]
    at, opposite = a.mixed(weights[0]), b.mixed(weights[1])

    inner = deepest(a, b, T, inside)[1]
    inside = inside & inner.inside
    both = jax.tree.map(lambda x, y: jnp.where(inside, x, y), (inner.first, inner.second), (at, opposite))
    slide = None if inner.slide is None else Vec(*(jnp.where(inside, x, 0) for x in inner.slide))
    return Nearest(both[0], both[1], inside, inner.axis, slide)


def _search(pa: Vec, pb: Vec, offset: Vec) -> _State:
    first, second = _farthest(pa, offset, 1), _farthest(pb, offset, -1)
    w = _at(pa, first) - _at(pb, second)
    zero = jnp.zeros((CORNERS, *w.x.shape), w.x.dtype)
    none = jnp.zeros(zero.shape, int)
    simplex = _Simplex(
        Vec(*(zero.at[0].set(x) for x in w)), none.at[0].set(first), none.at[0].set(second), zero.at[0].set(1)
    )
    square = w.dot(w)
    start = _State(simplex, w, square, square, jnp.zeros(square.shape, bool), jnp.zeros((), int))
    return control_flow.while_loop(lambda s: (s.steps < MOST) & ~s.over, lambda s: _step(pa, pb, s), start)


def _step(pa: Vec, pb: Vec, s: _State) -> _State:
    first, second = _farthest(pa, s.near, -1), _farthest(pb, s.near, 1)
    w = _at(pa, first) - _at(pb, second)
    size = jnp.maximum(s.size, w.dot(w))
    nearer = s.square - s.near.dot(w)
    over = s.over | (nearer <= _rounding(size) * jnp.sqrt(s.square) * jnp.sqrt(size))
    old = s.simplex
    free = _hot(jnp.argmin(old.share > 0, axis=0)[None], CORNERS, bool)[0]
    simplex = _Simplex(
        Vec(*(jnp.where(free, y, x) for x, y in zip(old.w, w, strict=True))),
        jnp.where(free, first, old.first),
        jnp.where(free, second, old.second),
        old.share,
    )
    share, near, square = _nearest(simplex.w, (old.share > 0) | free)
    # where rounding hides the decrease, keep the previous iterate
    over = over | (square >= s.square)
    full = jnp.sum(share > 0, axis=0) == CORNERS
    kept = jax.tree.map(lambda x, y: jnp.where(over, x, y), old, simplex._replace(share=share))
    near = chosen(over, s.near, near)
    square = jnp.where(over, s.square, square)
    over = over | full | (square <= _rounding(size) ** 2 * size)
    return _State(kept, near, square, size, over, s.steps + 1)


def _nearest(w: Vec, used: Array) -> tuple[Array, Vec, Array]:
    """(weights, closest point of the simplex to the origin, its squared norm), over the used slots."""
    corners = [Vec(w.x[i], w.y[i], w.z[i]) for i in range(CORNERS)]
    zero = jnp.zeros_like(w.x[0])
    best = tuple([zero] * CORNERS), Vec(zero, zero, zero), jnp.full_like(zero, jnp.inf)
    # the closest point of each vertex, edge, face and of the interior, if it is inside; the nearest of all
    for count, shares in ((1, None), (2, _on_edge), (3, _on_face), (4, _in_middle)):
        for chosen_ones in combinations(range(CORNERS), count):
            at = [corners[i] for i in chosen_ones]
            own, valid = ((zero + 1,), True) if shares is None else shares(at)
            for i in chosen_ones:
                valid = valid & used[i]
            point = Vec(zero, zero, zero)
            if count < CORNERS:
                for x, each in zip(own, at, strict=True):
                    point = point + each * x
            square = point.dot(point)
            better = valid & (square < best[2])
            full = [zero] * CORNERS
            for i, x in zip(chosen_ones, own, strict=True):
                full[i] = x
            best = (
                tuple(jnp.where(better, x, y) for x, y in zip(full, best[0], strict=True)),
                chosen(better, point, best[1]),
                jnp.where(better, square, best[2]),
            )
    return jnp.stack(best[0]), best[1], best[2]


def _on_edge(at: list[Vec]) -> tuple[tuple, Array]:
    e = at[1] - at[0]
    square = e.dot(e)
    real = square > 0
    t = jnp.where(real, -at[0].dot(e) / jnp.where(real, square, 1), -1)
    return (1 - t, t), (t > 0) & (t < 1)


def _on_face(at: list[Vec]) -> tuple[tuple, Array]:
    e, f = at[1] - at[0], at[2] - at[0]
    n = e.cross(f)
    square = n.dot(n)
    real = square > 0
    scale = 1 / jnp.where(real, square, 1)
    s = -at[0].cross(f).dot(n) * scale
    t = -e.cross(at[0]).dot(n) * scale
    return (1 - s - t, s, t), real & (s > 0) & (t > 0) & (s + t < 1)


def _in_middle(at: list[Vec]) -> tuple[tuple, Array]:
    e, f, g = at[1] - at[0], at[2] - at[0], at[3] - at[0]
    volume = e.dot(f.cross(g))
    real = volume != 0
    scale = 1 / jnp.where(real, volume, 1)
    own = [-at[0].dot(f.cross(g)) * scale, -at[0].dot(g.cross(e)) * scale, -at[0].dot(e.cross(f)) * scale]
    left = 1 - own[0] - own[1] - own[2]
    return (left, *own), real & (left > 0) & (own[0] > 0) & (own[1] > 0) & (own[2] > 0)


def _farthest(p: Vec, n: Vec, sign: int) -> Array:
    along = p.x * n.x + p.y * n.y + p.z * n.z
    return jnp.argmax(along, axis=0) if sign > 0 else jnp.argmin(along, axis=0)


def _at(p: Vec, place: Array) -> Vec:
    hot = one_hot(place, len(p.x), p.x.dtype)
    return Vec(*(jnp.sum(hot * x, axis=0) for x in p))


def _hot(places: Array, count: int, dtype: Any) -> Array:
    """One-hot rows (4, count) of the indices (4,)."""
    return jnp.stack([one_hot(place, count, dtype) for place in places])


def _corner(p: Vec, places: Array) -> Vec:
    hot = _hot(places, len(p.x), p.x.dtype)
    return Vec(*(jnp.sum(hot * x[None], axis=1) for x in p))


def _rounding(like: Array) -> float:
    return ROUNDING * float(jnp.finfo(like.dtype).eps)
