"""Closed forms: two segments, a box and a segment, a half-space and a convex core."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import Array

from lgsim._compile.spatial import Transform, Vec
from lgsim.dynamics.distances.nearest import Nearest, moved
from lgsim.dynamics.distances.separating_axes import deepest
from lgsim.multibody.geometry.forms import Block, HalfSpaceForm, Segment


def two_segments(a: Segment, b: Segment, T: Transform) -> Nearest:
    """The closest points of two segments.

    They are interior to both, where the lines are closest, or one of them is an endpoint. All candidates are points of
    the segments, so that the result is exact to rounding for nearly parallel segments. For parallel segments it is the
    middle of their overlap. Intersecting segments have no interior and no direction.

    Source: Ericson, Real-Time Collision Detection, 2005, section 5.1.9, with parameters from the segment centers.
    """
    e, p = Vec(T.R.r0.z, T.R.r1.z, T.R.r2.z), T.p
    zero = jnp.zeros_like(p.x)

    def on_second(s: Array) -> Array:
        return _within(e.z * (s - p.z) - e.x * p.x - e.y * p.y, b.half)

    def on_first(t: Array) -> Array:
        return _within(p.z + e.z * t, a.half)

    if a.single or b.single:
        s = zero if a.single else on_first(zero)
        t = on_second(zero) if a.single else zero
        return Nearest(_share(s, a.half), _share(t, b.half), jnp.zeros(zero.shape, bool), Vec(zero, zero, zero))
    # lines: the common perpendicular, or for parallel ones the middle of the overlap
    square = e.x * e.x + e.y * e.y
    skew = square > 0
    inner = -(e.x * p.x + e.y * p.y) / jnp.where(skew, square, 1)  # point of the second line nearest to the first
    shared = (jnp.maximum(-a.half, p.z - b.half) + jnp.minimum(a.half, p.z + b.half)) / 2
    middle = _within(shared, a.half)
    ends = [(x, on_second(x)) for x in (-a.half, a.half)] + [(on_first(x), x) for x in (-b.half, b.half)]
    t0 = _within(jnp.where(skew, inner, on_second(middle)), b.half)
    s0 = jnp.where(skew, on_first(t0), middle)
    best = s0, on_second(s0)

    # candidates: the interior pair, and each endpoint with its closest point on the other segment
    def square_of(s: Array, t: Array) -> Array:
        x, y, z = p.x + e.x * t, p.y + e.y * t, p.z + e.z * t - s
        return x * x + y * y + z * z

    least = square_of(*best)
    for s, t in ends:
        found = square_of(s, t)
        nearer = found < least
        best = jnp.where(nearer, s, best[0]), jnp.where(nearer, t, best[1])
        least = jnp.where(nearer, found, least)
    s, t = best
    return Nearest(_share(s, a.half), _share(t, b.half), jnp.zeros(zero.shape, bool), Vec(zero, zero, zero))


def box_and_segment(a: Block, b: Segment, T: Transform) -> Nearest:
    """The closest points of a box and a segment, or the shortest translation that separates them.

    The squared distance of a point of the segment from the box is convex and piecewise quadratic, with breakpoints
    where the segment crosses the planes of the box sides. The minimum lies between the two breakpoints around the zero
    of its derivative.
    """
    e, p, h = Vec(T.R.r0.z, T.R.r1.z, T.R.r2.z), T.p, b.half
    depth, inner = deepest(a, b, T, jnp.ones(T.p.x.shape, bool))

    def slope(t: Array) -> Array:
        out = jnp.zeros_like(t)
        for x, u, half in zip(p, e, a.half, strict=True):
            at = x + t * u
            out = out + u * (at - jnp.clip(at, -half, half))
        return out

    t = jnp.zeros_like(h)
    if not b.single:
        # the derivative of the squared distance is nondecreasing: bracket its zero between breakpoints
        low, high = -h, h
        at_low, at_high = slope(low), slope(high)
        # endpoints where the derivative has no sign change
        end = jnp.where(at_low >= 0, low, high)
        ended = (at_low >= 0) | (at_high <= 0)
        flat = (at_low == 0) & (at_high == 0)
        low, high = (low, at_low), (high, at_high)
        zero_from, zero_to = jnp.where(at_low == 0, -h, h), jnp.where(at_high == 0, h, -h)
        for x, u, half in zip(p, e, a.half, strict=True):
            crosses = u != 0
            for side in (-half, half):
                at = jnp.clip((side - x) / jnp.where(crosses, u, 1), -h, h)
                at = jnp.where(crosses, at, -h)
                g = slope(at)
                below, above = (g < 0) & (at >= low[0]), (g > 0) & (at <= high[0])
                low = jnp.where(below, at, low[0]), jnp.where(below, g, low[1])
                high = jnp.where(above, at, high[0]), jnp.where(above, g, high[1])
                level = g == 0
                zero_from = jnp.where(level, jnp.minimum(zero_from, at), zero_from)
                zero_to = jnp.where(level, jnp.maximum(zero_to, at), zero_to)
        rise = high[1] - low[1]
        crossing = low[0] - low[1] * (high[0] - low[0]) / jnp.where(rise > 0, rise, 1)
        level = zero_to >= zero_from  # an interval on which the derivative is zero: take its middle
        t = jnp.where(level, (zero_from + zero_to) / 2, jnp.where(ended & ~flat, end, crossing))
    x = moved(T, Vec(jnp.zeros_like(t), jnp.zeros_like(t), t))
    shares = [_share(_within(each, half), half) for each, half in zip(x, a.half, strict=True)]
    inside = depth <= 0
    return Nearest(
        Vec(*(jnp.where(inside, u, v) for u, v in zip(inner.first, shares, strict=True))),
        jnp.where(inside, inner.second, _share(t, h)),
        inside,
        inner.axis,
        _only(inside, inner.slide),
    )


def below_plane(a: HalfSpaceForm, b: Any, T: Transform) -> Nearest:
    """The deepest point of a convex core in a half-space."""
    zero = jnp.zeros_like(T.p.x)
    up = Vec(zero, zero, zero + 1)
    coordinates = b.support(-T.R.transpose_apply(up))
    point = moved(T, b.place(coordinates))
    return Nearest(Vec(point.x, point.y, zero), coordinates, jnp.ones(zero.shape, bool), up)


def _only(where: Array, slide: Vec | None) -> Vec | None:
    return None if slide is None else Vec(*(jnp.where(where, x, 0) for x in slide))


def _within(t: Array, half: Array) -> Array:
    return jnp.clip(t, -half, half)


def _share(t: Array, half: Array) -> Array:
    """``t`` relative to a half length, 0 where that is zero."""
    long = half > 0
    return jnp.where(long, t / jnp.where(long, half, 1), 0)
