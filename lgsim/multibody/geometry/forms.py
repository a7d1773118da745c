"""Forms of geometry that distances support: convex cores with a radius, a half-space, a sampled field.

A form has values by components of any common shape (m, *batch). A point of a core is given by coordinates that do not
depend on its sizes and pose: ``place`` maps them to the frame of the geometry.
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
"""Tolerance, in units of round-off, within which vertices of a hull count as equally far."""
_PROBES = 9
"""Number of points on the segment of a capsule at which a sampled field is evaluated."""

Directions = np.ndarray
"""Constant unit vectors (k, 3), one for each pair of opposite directions."""


class Convex(ABC):
    """A convex core and a radius about it."""

    normals: ClassVar[Directions] | Any
    """Normals of its faces; for a flat core those of its plane and of its edges in the plane."""
    edges: ClassVar[Directions] | Any
    """Directions of its edges."""
    radius: Any

    @abstractmethod
    def span(self, n: Vec) -> tuple[Array, Array]:
        """Smallest and largest ``n . x`` of its points."""

    @abstractmethod
    def support(self, n: Vec, edge: Vec | None = None) -> Any:
        """Coordinates of a point with the largest ``n . x``.

        On an edge that is normal to n up to round-off, a fixed point is chosen: the middle or one end.
        """

    @abstractmethod
    def place(self, coordinates: Any) -> Vec:
        """The point with given coordinates."""

    @abstractmethod
    def points(self) -> Vec:
        """The vertices (k, m, *batch) of which it is the hull."""

    @abstractmethod
    def mixed(self, weights: Array) -> Any:
        """Coordinates of the weighted mean of ``points`` with weights (k, m, *batch) that sum to one."""

    @abstractmethod
    def probes(self) -> list[Any]:
        """Coordinates of sample points that represent it against a sampled field."""


class _Segment(NamedTuple):
    half: Any
    radius: Any
    single: bool = False


class Segment(_Segment, Convex):
    """A segment on the z axis with a half length; one coordinate in [-1, 1]. ``single`` if it is always a point."""

    normals = np.zeros((0, 3))
    edges = np.array([[0.0, 0.0, 1.0]])

    def span(self, n: Vec) -> tuple[Array, Array]:
        """The range over both ends."""
        far = self.half * jnp.abs(n.z)
        return -far, far

    def support(self, n: Vec, edge: Vec | None = None) -> Array:
        """One of the ends."""
        end = jnp.where(n.z < 0, -1, 1).astype(n.z.dtype)
        return end if edge is None else jnp.where(edge.z != 0, 0, end)

    def place(self, coordinates: Array) -> Vec:
        """A point on the z axis."""
        z = coordinates * self.half
        return Vec(jnp.zeros_like(z), jnp.zeros_like(z), z)

    def points(self) -> Vec:
        """The ends."""
        z = jnp.stack([-self.half, self.half])
        return Vec(jnp.zeros_like(z), jnp.zeros_like(z), z)

    def mixed(self, weights: Array) -> Array:
        """The second weight minus the first."""
        return weights[1] - weights[0]

    def probes(self) -> list[Array]:
        """Equally spaced points."""
        at = [0.0] if self.single else np.linspace(-1, 1, _PROBES)
        return [jnp.full_like(self.half, x) for x in at]


class _Block(NamedTuple):
    half: Vec


class Block(_Block, Convex):
    """A box with half edges along the axes; coordinates in [-1, 1] along each."""

    normals = np.eye(3)
    edges = np.eye(3)

    @property
    def radius(self) -> Array:
        """Zero."""
        return jnp.zeros_like(self.half.x)

    def span(self, n: Vec) -> tuple[Array, Array]:
        """The range over opposite corners."""
        far = self.half.x * jnp.abs(n.x) + self.half.y * jnp.abs(n.y) + self.half.z * jnp.abs(n.z)
        return -far, far

    def support(self, n: Vec, edge: Vec | None = None) -> Vec:
        """A corner."""
        corner = [jnp.where(x < 0, -1, 1).astype(x.dtype) for x in n]
        return Vec(*(corner if edge is None else map(lambda x, e: jnp.where(e != 0, 0, x), corner, edge)))

    def place(self, coordinates: Vec) -> Vec:
        """Coordinates times half edges."""
        return Vec(*(c * h for c, h in zip(coordinates, self.half, strict=True)))

    def points(self) -> Vec:
        """The corners."""
        return Vec(*(column(CORNERS[:, i], h) * h for i, h in enumerate(self.half)))

    def mixed(self, weights: Array) -> Vec:
        """The weighted mean of the corners."""
        return Vec(*(jnp.sum(column(CORNERS[:, i], h) * weights, axis=0) for i, h in enumerate(self.half)))

    def probes(self) -> list[Vec]:
        """Corners, centers of edges and faces, and the center."""
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
    """The convex hull of points (k, m, *batch); coordinates are one weight for each."""

    @property
    def radius(self) -> Array:
        """The given radius, or zero."""
        return jnp.zeros_like(self.vertices.x[0]) if self.rounding is None else self.rounding

    def span(self, n: Vec) -> tuple[Array, Array]:
        """The range over all points."""
        along = _among(n).dot(self.vertices)
        return jnp.min(along, axis=0), jnp.max(along, axis=0)

    def support(self, n: Vec, edge: Vec | None = None) -> Array:
        """One of the points."""
        along = _among(n).dot(self.vertices)
        if edge is not None:
            # among points that are equally far up to round-off, the last one on the edge
            far = jnp.max(along, axis=0) - _TIED * jnp.finfo(along.dtype).eps * jnp.max(jnp.abs(along), axis=0)
            along = jnp.where(along >= far, _among(edge).dot(self.vertices), -jnp.inf)
        return one_hot(jnp.argmax(along, axis=0), len(self.vertices.x), along.dtype)

    def place(self, coordinates: Array) -> Vec:
        """The weighted mean."""
        return Vec(*(jnp.sum(coordinates * x, axis=0) for x in self.vertices))

    def points(self) -> Vec:
        """The vertices."""
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
    """All points with ``z <= 0``; a coordinate is a point of its boundary."""

    def place(self, coordinates: Vec) -> Vec:
        """The point itself."""
        return coordinates


class Field(NamedTuple):
    """A cubic spline on a grid of samples, the first one at the origin.

    Attributes:
        shape: Number of samples along x, y, z.
        spacing: Distance between samples, m.
        coefficients: Spline coefficients, (count, m, *batch).
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
    """Norm and direction of v, both zero with zero derivatives at v = 0."""
    square = v.dot(v)
    apart = square > 0
    root = jnp.where(apart, jnp.sqrt(jnp.where(apart, square, 1)), 0)
    return root, v * jnp.where(apart, 1 / jnp.where(apart, root, 1), 0)


def _among(n: Vec) -> Vec:
    """A vector (3, *batch) with an additional axis, to broadcast with points (points, *batch)."""
    return Vec(*(x[None] for x in n))


def column(numbers: np.ndarray, like: Any) -> Array:
    """Constants (k,) as an array (k, 1, ...) with the additional axes and the dtype of a value."""
    return jnp.asarray(numbers, jnp.result_type(like)).reshape(-1, *(1,) * jnp.ndim(like))
