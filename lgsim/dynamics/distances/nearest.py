"""What a pair of solids is found to be: coordinates of its nearest points, and the direction in which they part."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array

from lgsim._compile.spatial import Transform, Vec
from lgsim.multibody.geometry.forms import length


class Nearest(NamedTuple):
    """Of a pair of cores, the second one's frame having a pose in the first one's.

    Attributes:
        first: Coordinates of a point of the first one, see ``lgsim.multibody.geometry.forms``.
        second: Coordinates of a point of the second one.
        inside: Whether the cores overlap.
        axis: Where they do, the unit vector along which the second one parts from the first one at once, in the first
            one's frame; its derivative is that of a normal that turns with a face, or with two edges.
        slide: Where they do, what moves the first point along its face to where it is opposite to the second one; None
            for zero.
    """

    first: Any
    second: Any
    inside: Array
    axis: Vec
    slide: Vec | None = None


class ClosestPair(NamedTuple):
    """A pair of solids, or several, in the frame of the first one.

    Attributes:
        distance: Of the surfaces, m, negative inside.
        normal: The unit vector from the first to the second point; zero where cores without an inside meet.
        first: The nearest point of the first surface, m.
        second: The nearest point of the second surface, m.
    """

    distance: Array
    normal: Vec
    first: Vec
    second: Vec


def chosen(where: Array, a: Vec, b: Vec) -> Vec:
    """A where a condition holds, else b."""
    return Vec(*(jnp.where(where, x, y) for x, y in zip(a, b, strict=True)))


def moved(T: Transform, p: Vec) -> Vec:
    """A point, in the frame in which its own one has the pose T."""
    return T.R @ p + T.p


def core_distance(a: Any, b: Any, T: Transform, found: Nearest) -> tuple[Array, Vec, Vec]:
    """(distance of the cores, its direction, the first point), at given coordinates."""
    p = a.place(found.first)
    gap = moved(T, b.place(found.second)) - p
    far, along = length(gap)
    return jnp.where(found.inside, found.axis.dot(gap), far), chosen(found.inside, found.axis, along), p


def meeting(a: Any, b: Any, T: Transform, found: Nearest) -> ClosestPair:
    """The surfaces of two solids from what their cores are found to be."""
    core, n, p = core_distance(a, b, T, found)
    if found.slide is not None:
        p = p + found.slide
    distance = core - (a.radius + b.radius)
    first = p + n * a.radius
    return ClosestPair(distance, n, first, first + n * distance)
