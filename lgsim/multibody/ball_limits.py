"""Excess of a rotation over limits of swing, angle and twist: smooth even where the angles themselves are not.

A unit quaternion ``q = (w, x, y, z)`` is a swing s after a twist t about z: ``sin(s/2)^2 = x^2 + y^2`` with s the angle
between the z axes of parent and child, ``t = 2 atan2(z, w)``. The excess of an angle u over its limit b is
``e = 2 (sin(u/2) - sin(b/2))/cos(b/2)``: it is ``u - b`` near the limit, and its derivative is zero at u = pi, where u
has a kink. The excess of the twist has ``cos(s/2)`` as a factor, because the twist is undefined at a swing of pi.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from lgsim._compile.spatial import Vec
from lgsim.lie.so3_components import Quat


class Stop(NamedTuple):
    """A limit that is exceeded by e > 0; zeros otherwise. The angular velocity w is in the child's frame.

    Attributes:
        square: ``e^2``.
        slope: ``e n`` with ``e' = n . w``; smooth even where n is not, at rest with a limit of zero.
        normal: n.
    """

    square: Array
    slope: Vec
    normal: Vec


def swing(q: Quat, most: Array) -> Stop:
    """Excess of the angle between the z axes of parent and child over ``most``; pi or more means no limit."""
    s, v = q
    return _cone(v.x * v.x + v.y * v.y, Vec(s * v.x + v.z * v.y, s * v.y - v.z * v.x, jnp.zeros_like(s)), most)


def angle(q: Quat, most: Array) -> Stop:
    """Excess of the rotation angle over ``most``; pi or more means no limit."""
    s, v = q
    return _cone(v.dot(v), v * s, most)


def twist(q: Quat, least: Array, most: Array) -> Stop:
    """Excess of the twist about z outside of [least, most], clipped to [-pi, pi]; a full turn means no limit."""
    w, (x, y, z) = q
    least, most = jnp.clip(least, -math.pi, math.pi), jnp.clip(most, -math.pi, math.pi)
    sine, cosine, bounded = _half(0.5 * (most - least))
    # (across, along): the plane of (z, w), rotated so that the middle of the range is at zero
    a, b = jnp.sin(0.25 * (most + least)), jnp.cos(0.25 * (most + least))
    across, square = z * b - w * a, w * w + z * z
    passed = bounded & (across * across >= sine * sine * square) & ((square > 0) | (sine == 0))
    size = jnp.sqrt(jnp.where(passed & (square > 0), square, 1))
    sign = jnp.where(across >= 0, 1.0, -1.0).astype(z.dtype)
    first = Vec(a * x - b * y, a * y + b * x, b * w + a * z)  # derivative of across with respect to a rotation
    second = Vec(-w * x - y * z, x * z - w * y, jnp.zeros_like(z))  # half of the derivative of the square
    scale = jnp.where(passed, 2 / (cosine * cosine), 0)
    slope = first * (scale * (across - sign * sine * size)) - second * (scale * sine * (sign * across / size - sine))
    normal = (first * sign - second * (sine / size)) * jnp.where(passed, 1 / cosine, 0)
    return Stop(2 * scale * (across * across - 2 * sign * across * sine * size + sine * sine * square), slope, normal)


def _cone(square: Array, across: Vec, most: Array) -> Stop:
    """Excess of an angle given the squared sine of its half, whose derivative along a rotation w is ``across . w``."""
    sine, cosine, bounded = _half(most)
    passed = bounded & (square >= sine * sine)
    size = jnp.sqrt(jnp.where(passed & (square > 0), square, 1))
    scale = jnp.where(passed, 2 / (cosine * cosine), 0)
    slope = across * (scale * (1 - sine / size))
    normal = across * jnp.where(passed, 1 / (cosine * size), 0)
    return Stop(2 * scale * (square - 2 * sine * size + sine * sine), slope, normal)


def _half(limit: Array) -> tuple[Array, Array, Array]:
    """Sine and cosine of half of a limit, and a mask of existing limits."""
    bounded = limit < math.pi
    half = 0.5 * jnp.where(bounded, limit, 0)
    return jnp.sin(half), jnp.cos(half), bounded
