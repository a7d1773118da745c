"""Result of a query on a pair of solids: coordinates of the closest points, and the separating direction."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array

from lgsim._compile.spatial import Transform, Vec
from lgsim.multibody.geometry.forms import length


class Nearest(NamedTuple):
    """The closest points of a pair of cores, for a pose of the second frame in the first one.

    Attributes:
        first: Coordinates of a point of the first core, see ``lgsim.multibody.geometry.forms``.
        second: Coordinates of a point of the second core.
        inside: True where the cores overlap.
        axis: For overlapping cores, the unit vector of the shortest separating translation of the second one, in the
            frame of the first. Its derivative is that of a normal that rotates with a face, or with two edges.
        slide: For overlapping cores, the translation of the first point along its face to the point opposite to the
            second one; None for zero.
    """

    first: Any
    second: Any
    inside: Array
    axis: Vec
    slide: Vec | None = None


class ClosestPair(NamedTuple):
    """Closest points of one or several pairs of solids, in the frame of the first one.

    Attributes:
        distance: Signed distance of the surfaces, m, negative inside.
        normal: The unit vector from the first to the second point; zero where cores without interior intersect.
        first: The closest point on the first surface, m.
        second: The closest point on the second surface, m.
    """

    distance: Array
    normal: Vec
    first: Vec
    second: Vec


def chosen(where: Array, a: Vec, b: Vec) -> Vec:
    """``a`` where a condition is true, else ``b``."""
    return Vec(*(jnp.where(where, x, y) for x, y in zip(a, b, strict=True)))


def moved(T: Transform, p: Vec) -> Vec:
    """A point in the parent frame, in which its own frame has the pose T."""
    return T.R @ p + T.p


def core_distance(a: Any, b: Any, T: Transform, found: Nearest) -> tuple[Array, Vec, Vec]:
    """(distance of the cores, its direction, the first point) at given coordinates."""
    p = a.place(found.first)
    gap = moved(T, b.place(found.second)) - p
    far, along = length(gap)
    return jnp.where(found.inside, found.axis.dot(gap), far), chosen(found.inside, found.axis, along), p


def meeting(a: Any, b: Any, T: Transform, found: Nearest) -> ClosestPair:
    """The closest points of two surfaces from those of their cores."""
    core, n, p = core_distance(a, b, T, found)
    if found.slide is not None:
        p = p + found.slide
    distance = core - (a.radius + b.radius)
    first = p + n * a.radius
    return ClosestPair(distance, n, first, first + n * distance)
