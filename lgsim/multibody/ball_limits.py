"""How far a rotation is beyond a cone, an angle and a range of twist: smooth where the angles themselves are not.

A unit quaternion ``q = (w, x, y, z)`` is a swing s after a twist t about z: ``sin(s/2)^2 = x^2 + y^2`` with s the angle
between the z axes of parent and child, ``t = 2 atan2(z, w)``. The excess of an angle u over its limit b is
``e = 2 (sin(u/2) - sin(b/2))/cos(b/2)``: it is ``u - b`` near the limit, and its slope is zero at u = pi, where u has a
kink. The excess of the twist has ``cos(s/2)`` as a factor, because at a swing of pi there is no twist.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from lgsim._compile.spatial import Vec
from lgsim.lie.so3_components import Quat


class Stop(NamedTuple):
    """A limit that is passed by e > 0; zeros elsewhere. The velocity is that of the child in its own frame.

    Attributes:
        square: ``e^2``.
        slope: ``e n`` with ``e' = n . w``; smooth also where n is not, at rest with a limit of zero.
        normal: n.
    """

    square: Array
    slope: Vec
    normal: Vec


def swing(q: Quat, most: Array) -> Stop:
    """The angle between the z axes of parent and child beyond ``most``; pi or more is no limit."""
    s, v = q
    return _cone(v.x * v.x + v.y * v.y, Vec(s * v.x + v.z * v.y, s * v.y - v.z * v.x, jnp.zeros_like(s)), most)


def angle(q: Quat, most: Array) -> Stop:
    """The angle of the rotation beyond ``most``; pi or more is no limit."""
    s, v = q
    return _cone(v.dot(v), v * s, most)


def twist(q: Quat, least: Array, most: Array) -> Stop:
    """The twist about z outside of [least, most], which is cut at -pi and pi; a whole turn is no limit."""
    w, (x, y, z) = q
    least, most = jnp.clip(least, -math.pi, math.pi), jnp.clip(most, -math.pi, math.pi)
    sine, cosine, bounded = _half(0.5 * (most - least))
    # (across, along): the plane of (z, w), turned so that the middle of the range is at zero
    a, b = jnp.sin(0.25 * (most + least)), jnp.cos(0.25 * (most + least))
    across, square = z * b - w * a, w * w + z * z
    passed = bounded & (across * across >= sine * sine * square) & ((square > 0) | (sine == 0))
    size = jnp.sqrt(jnp.where(passed & (square > 0), square, 1))
    sign = jnp.where(across >= 0, 1.0, -1.0).astype(z.dtype)
    first = Vec(a * x - b * y, a * y + b * x, b * w + a * z)  # what a turn does to across
    second = Vec(-w * x - y * z, x * z - w * y, jnp.zeros_like(z))  # and half of what it does to the square
    scale = jnp.where(passed, 2 / (cosine * cosine), 0)
    slope = first * (scale * (across - sign * sine * size)) - second * (scale * sine * (sign * across / size - sine))
    normal = (first * sign - second * (sine / size)) * jnp.where(passed, 1 / cosine, 0)
    return Stop(2 * scale * (across * across - 2 * sign * across * sine * size + sine * sine * square), slope, normal)


def _cone(square: Array, across: Vec, most: Array) -> Stop:
    """Of an angle whose half has a sine of that square, which a turn w changes at the rate ``across . w``."""
    sine, cosine, bounded = _half(most)
    passed = bounded & (square >= sine * sine)
    size = jnp.sqrt(jnp.where(passed & (square > 0), square, 1))
    scale = jnp.where(passed, 2 / (cosine * cosine), 0)
    slope = across * (scale * (1 - sine / size))
    normal = across * jnp.where(passed, 1 / (cosine * size), 0)
    return Stop(2 * scale * (square - 2 * sine * size + sine * sine), slope, normal)


def _half(limit: Array) -> tuple[Array, Array, Array]:
    """(sine, cosine) of half of a limit and whether there is one."""
    bounded = limit < math.pi
    half = 0.5 * jnp.where(bounded, limit, 0)
    return jnp.sin(half), jnp.cos(half), bounded
