"""The forms that distances know: convex cores with a radius, a half-space, a sampled field.

A form has numbers by components of any common shape (m, *batch). A point of a core is given by coordinates that move
with it, whatever its sizes and its pose are: ``place`` takes them to the frame of the solid.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from itertools import product
from typing import Any, ClassVar, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from lgsim._compile.spatial import Vec

CORNERS = np.array(list(product((-1.0, 1.0), repeat=3)))
_TIED = 16
"""Units of rounding within which points of a hull count as equally far."""
_PROBES = 9
"""Points on the segment of a capsule at which a sampled field is looked at."""

Directions = np.ndarray
"""Constant unit vectors (k, 3), each once for both signs."""


class Convex(ABC):
    """A convex core and the radius of balls about its points."""

    normals: ClassVar[Directions] | Any
    """Of its faces; of a flat core those of its plane and of its edges in it."""
    edges: ClassVar[Directions] | Any
    """Directions of its edges."""
    radius: Any

    @abstractmethod
    def span(self, n: Vec) -> tuple[Array, Array]:
        """(least, largest) ``n . x`` of its points."""

    @abstractmethod
    def support(self, n: Vec, edge: Vec | None = None) -> Any:
        """Coordinates of a point with the largest ``n . x``.

        Of an edge along a direction to which n is normal but for rounding, which must not choose, its middle or one
        end.
        """

    @abstractmethod
    def place(self, coordinates: Any) -> Vec:
        """The point of given coordinates."""

    @abstractmethod
    def points(self) -> Vec:
        """The points (k, m, *batch) whose hull it is."""

    @abstractmethod
    def mixed(self, weights: Array) -> Any:
        """Coordinates of the mean of ``points`` with weights (k, m, *batch) that sum to one."""

    @abstractmethod
    def probes(self) -> list[Any]:
        """Coordinates of the points that stand for it where only points can be looked at."""


class _Segment(NamedTuple):
    half: Any
    radius: Any
    single: bool = False


class Segment(_Segment, Convex):
    """A segment of half a length on the z axis; a coordinate in [-1, 1]. ``single`` where it is always a point."""

    normals = np.zeros((0, 3))
    edges = np.array([[0.0, 0.0, 1.0]])

    def span(self, n: Vec) -> tuple[Array, Array]:
        """Both ends."""
        far = self.half * jnp.abs(n.z)
        return -far, far

    def support(self, n: Vec, edge: Vec | None = None) -> Array:
        """An end."""
        end = jnp.where(n.z < 0, -1, 1).astype(n.z.dtype)
        return end if edge is None else jnp.where(edge.z != 0, 0, end)

    def place(self, coordinates: Array) -> Vec:
        """On the z axis."""
        z = coordinates * self.half
        return Vec(jnp.zeros_like(z), jnp.zeros_like(z), z)

    def points(self) -> Vec:
        """The ends."""
        z = jnp.stack([-self.half, self.half])
        return Vec(jnp.zeros_like(z), jnp.zeros_like(z), z)

    def mixed(self, weights: Array) -> Array:
        """The second weight less the first."""
        return weights[1] - weights[0]

    def probes(self) -> list[Array]:
        """Equally spaced ones."""
        at = [0.0] if self.single else np.linspace(-1, 1, _PROBES)
        return [jnp.full_like(self.half, x) for x in at]


class _Block(NamedTuple):
    half: Vec


class Block(_Block, Convex):
    """A box of half edges along the axes; coordinates in [-1, 1] along each."""

    normals = np.eye(3)
    edges = np.eye(3)

    @property
    def radius(self) -> Array:
        """None."""
        return jnp.zeros_like(self.half.x)

    def span(self, n: Vec) -> tuple[Array, Array]:
        """Of opposite corners."""
        far = self.half.x * jnp.abs(n.x) + self.half.y * jnp.abs(n.y) + self.half.z * jnp.abs(n.z)
        return -far, far

    def support(self, n: Vec, edge: Vec | None = None) -> Vec:
        """A corner."""
        corner = [jnp.where(x < 0, -1, 1).astype(x.dtype) for x in n]
        return Vec(*(corner if edge is None else map(lambda x, e: jnp.where(e != 0, 0, x), corner, edge)))

    def place(self, coordinates: Vec) -> Vec:
        """Each times its half edge."""
        return Vec(*(c * h for c, h in zip(coordinates, self.half, strict=True)))

    def points(self) -> Vec:
        """The corners."""
        return Vec(*(column(CORNERS[:, i], h) * h for i, h in enumerate(self.half)))

    def mixed(self, weights: Array) -> Vec:
        """The mean of the corners."""
        return Vec(*(jnp.sum(column(CORNERS[:, i], h) * weights, axis=0) for i, h in enumerate(self.half)))

    def probes(self) -> list[Vec]:
        """Corners, middles of edges and sides, and the middle."""
        return [
            Vec(*(jnp.full_like(h, x) for h, x in zip(self.half, at, strict=True)))
            for at in product((-1.0, 0.0, 1.0), repeat=3)
        ]


class _Hull(NamedTuple):
    vertices: Vec
    normals: Directions
    edges: Directions
    rounding: Any = None


class Hull(_Hull, Convex):
    """The convex hull of points (k, m, *batch); a weight of each."""

    @property
    def radius(self) -> Array:
        """What was given, or none."""
        return jnp.zeros_like(self.vertices.x[0]) if self.rounding is None else self.rounding

    def span(self, n: Vec) -> tuple[Array, Array]:
        """Over all points."""
        along = _among(n).dot(self.vertices)
        return jnp.min(along, axis=0), jnp.max(along, axis=0)

    def support(self, n: Vec, edge: Vec | None = None) -> Array:
        """A point."""
        along = _among(n).dot(self.vertices)
        if edge is not None:
            # of points that are as far but for rounding the last one on the edge
            far = jnp.max(along, axis=0) - _TIED * jnp.finfo(along.dtype).eps * jnp.max(jnp.abs(along), axis=0)
            along = jnp.where(along >= far, _among(edge).dot(self.vertices), -jnp.inf)
        return one_hot(jnp.argmax(along, axis=0), len(self.vertices.x), along.dtype)

    def place(self, coordinates: Array) -> Vec:
        """The mean."""
        return Vec(*(jnp.sum(coordinates * x, axis=0) for x in self.vertices))

    def points(self) -> Vec:
        """What it is of."""
        return self.vertices

    def mixed(self, weights: Array) -> Array:
        """The weights."""
        return weights

    def probes(self) -> list[Array]:
        """The points."""
        x = self.vertices.x
        return [jnp.broadcast_to(column(row, x[0]), x.shape) for row in np.eye(len(x))]


class _HalfSpaceForm(NamedTuple):
    radius: float = 0.0


class HalfSpaceForm(_HalfSpaceForm):
    """All that has ``z <= 0``; a coordinate is a point of its boundary."""

    def place(self, coordinates: Vec) -> Vec:
        """The point itself."""
        return coordinates


class Field(NamedTuple):
    """A cubic spline on a grid of samples, whose first one is at the origin.

    Attributes:
        shape: The number of samples along x, y, z.
        spacing: Between samples, m.
        coefficients: Of the spline, (count, m, *batch).
    """

    shape: tuple[int, int, int]
    spacing: Any
    coefficients: Any


Form = Convex | HalfSpaceForm | Field


def one_hot(index: Array, count: int, dtype: Any) -> Array:
    """1 at ``index`` (m, *batch), 0 elsewhere, (count, m, *batch)."""
    places = jnp.arange(count).reshape(-1, *(1,) * index.ndim)
    return (places == index[None]).astype(dtype)


def length(v: Vec) -> tuple[Array, Vec]:
    """(|v|, v / |v|), both zero with zero derivatives where v is."""
    square = v.dot(v)
    apart = square > 0
    root = jnp.where(apart, jnp.sqrt(jnp.where(apart, square, 1)), 0)
    return root, v * jnp.where(apart, 1 / jnp.where(apart, root, 1), 0)


def _among(n: Vec) -> Vec:
    """A vector (3, *batch) beside points (points, *batch)."""
    return Vec(*(x[None] for x in n))


def column(numbers: np.ndarray, like: Any) -> Array:
    """Constants (k,) as an array (k, 1, ...) of as many axes more as a number has, and of its dtype."""
    return jnp.asarray(numbers, jnp.result_type(like)).reshape(-1, *(1,) * jnp.ndim(like))
