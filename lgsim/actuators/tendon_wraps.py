"""Lengths of straight lines that wrap around spheres and cylinders."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float

from lgsim._compile.xla import control_flow

_ROUNDS = 30
"""Newton's steps for a point inside a wrap; each at least halves the error at first, at the end they square it."""

Point = Float[Array, " 3"]
Flat = Float[Array, " 2"]
Scalar = Float[Array, ""]


def distance(a: Float[Array, " n"], b: Float[Array, " n"]) -> Scalar:
    """|a - b|, with the slope 0 at 0."""
    square = jnp.sum((a - b) ** 2)
    return jnp.where(square > 0, jnp.sqrt(jnp.where(square > 0, square, 1)), 0)


def wrapped_length(
    a: Point,
    b: Point,
    radius: Scalar,
    is_cylinder: Bool[Array, ""],
    side: Point,
    has_side: Bool[Array, ""],
    is_inside: Bool[Array, ""] | None = None,
) -> Scalar:
    """The shortest way from a to b around a sphere, or around a cylinder along z, at the origin; m.

    It is straight where it does not meet the shape. A point outside of the shape chooses the side on which it passes;
    with a point inside, it passes through the shape, and touches it from inside.

    Args:
        a: Start, in the axes of the shape, m.
        b: End, likewise.
        radius: m.
        is_cylinder: False for a sphere.
        side: The point outside or inside the shape, m.
        has_side: True if there is such a point.
        is_inside: True if it is inside; None if it is inside of no shape.

    Source: MuJoCo's documentation, chapter "Modeling", section "Tendons"; ``mju_wrap`` of MuJoCo 4 for what decides
    where several ways are possible.
    """
    e0, e1 = _plane(a, b, is_cylinder)
    x, y, s = (jnp.stack([jnp.sum(p * e0), jnp.sum(p * e1)]) for p in (a, b, side))
    wraps, flat = _outside(x, y, radius, s, has_side)
    if is_inside is not None:
        touches, inner = _inside(x, y, jnp.where(is_inside, radius, 0))
        wraps, flat = jnp.where(is_inside, touches, wraps), jnp.where(is_inside, inner, flat)
    # on the unrolled cylinder the way is straight
    height = jnp.where(is_cylinder, b[2] - a[2], 0)
    flat = jnp.where(wraps, flat, 1)
    return jnp.where(wraps, jnp.sqrt(flat**2 + height**2), distance(a, b))


def _plane(a: Point, b: Point, is_cylinder: Bool[Array, ""]) -> tuple[Point, Point]:
    """Axes of the plane of the wrap: x and y of a cylinder; of a sphere, in the plane of both points and its center."""
    x, y, z = jnp.eye(3, dtype=a.dtype)
    first = _unit(a, x)
    # any other axis where both points are in one line with the center
    spare = jnp.where(jnp.abs(first[0]) < 0.9, x, y)
    normal = jnp.cross(a, b)
    normal = _unit(jnp.where(jnp.sum(normal**2) > 0, normal, jnp.cross(first, spare)), z)
    second = jnp.cross(normal, first)
    return jnp.where(is_cylinder, x, first), jnp.where(is_cylinder, y, second)


def _unit(x: Float[Array, " n"], otherwise: Float[Array, " n"]) -> Float[Array, " n"]:
    square = jnp.sum(x**2)
    return jnp.where(square > 0, x / jnp.sqrt(jnp.where(square > 0, square, 1)), otherwise)


def _outside(x: Flat, y: Flat, radius: Scalar, side: Flat, has_side: Bool[Array, ""]) -> tuple[Bool[Array, ""], Scalar]:
    """(whether the line wraps around the circle, its length)."""
    gap, square = jnp.sum((y - x) ** 2), radius**2
    at = jnp.stack([jnp.sum(x**2), jnp.sum(y**2)])
    possible = jnp.all(at > square) & (radius > 0) & (gap > 0)
    nearest = x + jnp.clip(-jnp.sum((y - x) * x) / jnp.where(gap > 0, gap, 1), 0, 1) * (y - x)
    # a side counts if the ends are not on one side of the axis through it
    apart = (x[0] * side[1] - x[1] * side[0]) * (y[0] * side[1] - y[1] * side[0]) <= 0
    has_side = has_side & apart
    meets = (jnp.sum(nearest**2) <= square) | (has_side & (jnp.sum(side * nearest) < 0))
    tangent = jnp.sqrt(jnp.where(possible, at - square, 1))
    at = jnp.where(possible, at, 1)
    ways = [_way(x, y, radius, tangent, at, sign) for sign in (1, -1)]
    goods = jnp.stack([
        jnp.where(
            crossed, -jnp.inf,
            jnp.where(has_side, jnp.sum(_unit(p + q, jnp.zeros_like(p)) * _unit(side, side)), -jnp.sum((p - q) ** 2)),
        )
        for p, q, _, crossed in ways
    ])  # fmt: skip
    first = goods[0] > goods[1]
    arc, crossed = jnp.where(first, ways[0][2], ways[1][2]), jnp.where(first, ways[0][3], ways[1][3])
    return possible & meets & ~crossed, jnp.sum(tangent) + arc


def _way(
    x: Flat, y: Flat, radius: Scalar, tangent: Flat, at: Flat, sign: int
) -> tuple[Flat, Flat, Scalar, Bool[Array, ""]]:
    """(touching points of one of the two ways, its arc, whether its straight parts cross).

    Args:
        tangent: Distances of the ends from the touching points.
        at: Squared distances of the ends from the center.
    """

    def touch(end: Flat, tangent: Scalar, at: Scalar, sign: int) -> Flat:
        turned = jnp.stack([end[1], -end[0]])
        return radius * (radius * end + sign * tangent * turned) / at

    p, q = touch(x, tangent[0], at[0], sign), touch(y, tangent[1], at[1], -sign)
    cross = p[0] * q[1] - p[1] * q[0]
    angle = jnp.arctan2(-sign * cross, jnp.sum(p * q))
    arc = radius * jnp.where(angle < 0, angle + 2 * jnp.pi, angle)
    return p, q, arc, _cross(x, p, y, q)


def _cross(a: Flat, b: Flat, c: Flat, d: Flat) -> Bool[Array, ""]:
    """True if the segments a b and c d cross."""
    u, v, w = b - a, d - c, a - c
    det = v[1] * u[0] - v[0] * u[1]
    safe = jnp.where(det == 0, 1, det)
    along = jnp.stack([v[0] * w[1] - v[1] * w[0], u[0] * w[1] - u[1] * w[0]]) / safe
    return (det != 0) & jnp.all((along >= 0) & (along <= 1))


def _inside(x: Flat, y: Flat, radius: Scalar) -> tuple[Bool[Array, ""], Scalar]:
    """(whether the line touches the circle from inside, its length).

    The point P of the circle where both parts have the same angle z to the tangent's normal:
    ``asin(A z) + asin(B z) - 2 asin(z) + G = 0`` with A = r/|x|, B = r/|y|, and the angle G between x and y.
    """
    ends = jnp.stack([distance(x, jnp.zeros_like(x)), distance(y, jnp.zeros_like(y))])
    possible = jnp.all(ends > radius) & (radius > 0)
    gap = jnp.sum((y - x) ** 2)
    share = -jnp.sum((y - x) * x) / jnp.where(gap > 0, gap, 1)
    nearest = x + share * (y - x)
    crosses = (gap > 0) & (share > 0) & (share < 1) & (jnp.sum(nearest**2) <= radius**2)
    A, B = jnp.where(possible, radius / jnp.where(ends > 0, ends, 1), 0.5)
    cross, dot = x[0] * y[1] - x[1] * y[0], jnp.sum(x * y)
    apart = (cross != 0) | (dot < 0)
    G = jnp.arctan2(jnp.abs(cross), jnp.where(apart, dot, 1))

    def step(_: Array, z: Scalar, A: Scalar = A, B: Scalar = B, G: Scalar = G) -> Scalar:
        slope = A / jnp.sqrt(1 - (A * z) ** 2) + B / jnp.sqrt(1 - (B * z) ** 2) - 2 / jnp.sqrt(1 - z**2)
        return z - _residual(z, A, B, G) / slope

    start = jnp.asarray(np.nextafter(np.ones((), x.dtype), np.zeros((), x.dtype)))
    held = [jax.lax.stop_gradient(u) for u in (A, B, G)]
    # the first residual is positive where the touching point is beyond the ends of the search
    touches = apart & (_residual(start, *held) <= 0)
    z = control_flow.fori_loop(0, _ROUNDS, lambda i, z: jnp.clip(step(i, z, *held), 0, start), start)
    z = jax.lax.stop_gradient(jnp.where(touches, z, 0.5))
    # one step more has the right derivative
    z = jnp.where(touches, step(jnp.asarray(0), z), 0.5)
    turn = jnp.arcsin(z) - jnp.arcsin(jnp.where(cross > 0, A, B) * z)
    from_ = _unit(jnp.where(cross > 0, x, y), x)
    c, s = jnp.cos(turn), jnp.sin(turn)
    touch = radius * jnp.stack([c * from_[0] - s * from_[1], s * from_[0] + c * from_[1]])
    middle = radius * _unit(x + y, x)
    point = jnp.where(touches, touch, middle)
    return possible & ~crosses, distance(x, point) + distance(point, y)


def _residual(z: Scalar, A: Scalar, B: Scalar, G: Scalar) -> Scalar:
    return jnp.arcsin(A * z) + jnp.arcsin(B * z) - 2 * jnp.arcsin(z) + G
