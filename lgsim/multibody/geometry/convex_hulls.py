"""Convex hull of points, such as the vertices of a mesh."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from lgsim._compile.spatial import Vec
from lgsim.multibody.geometry.forms import Form, Hull, column
from lgsim.multibody.geometry.geometry import Geometry
from lgsim.multibody.geometry.hulls import Points, both_ways, checked_points, facets, thinned
from lgsim.multibody.geometry.triangles import Mesh

VERTICES = 20
"""Default number of vertices."""
LEAST = 4
"""Smallest allowed number of vertices."""
MOST = 64
"""Largest number of vertices of a hull: the number of separating directions of two hulls grows as their product."""


@dataclass(frozen=True)
class ConvexHull(Geometry):
    """All points within ``radius`` of the convex hull of given points, scaled by ``scale``.

    Attributes:
        at: Vertices of the hull in its frame, (x, y, z) each, m; static.
        radius: m.
        scale: Scale factor of the vertices.
    """

    at: Points
    radius: Any = 0.0
    scale: Any = 1.0

    sizes = ("radius", "scale")
    positive = ("scale",)

    @classmethod
    def example(cls) -> ConvexHull:
        """A rounded tetrahedron."""
        return cls(((0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)), 0.1)

    def form(self) -> Form:
        """The hull of the points, with a radius."""
        at = np.array(self.at)
        scale = jnp.asarray(self.scale)[None]
        points = Vec(*(column(at[:, i], self.scale) * scale for i in range(3)))
        made = facets(self.at)
        return Hull(points, both_ways(made.normals), made.edges, self.radius)

    def triangles(self) -> Mesh:
        """The faces of the hull; the radius is not drawn."""
        return Mesh(self.scale * np.array(self.at), facets(self.at).triangles, flat=True)


def convex_hull(points: Any, most: int = VERTICES, radius: float = 0.0, scale: float = 1.0) -> ConvexHull:
    """The convex hull of points, such as the vertices of a mesh, with a bounded number of vertices.

    If points are omitted, some are outside of the hull: ``hull_error`` returns the largest distance, and a ``radius``
    of that size contains them all.

    Args:
        points: (n, 3), m; static.
        most: Number of vertices, 4 to 64: first the one farthest from the mean, then repeatedly the one farthest from
            those kept.
        radius: Radius about the hull, m, nonnegative.
        scale: Scale factor of the points.

    Raises:
        ValueError: no points, points that are not finite or of another shape, or ``most`` out of its bounds.
    """
    if not LEAST <= most <= MOST:
        raise ValueError(f"convex_hull: most: expected {LEAST} to {MOST} vertices, got {most}")
    kept = thinned(checked_points("convex_hull", points), most)
    at = tuple((float(x), float(y), float(z)) for x, y, z in kept)
    corners = sorted(facets(at).corners)
    return ConvexHull(tuple(at[i] for i in corners), radius, scale)


def hull_error(hull: ConvexHull, points: Any) -> float:
    """Largest distance, m, by which points, (n, 3), m, are outside of a hull without its radius and scale."""
    made, at = facets(hull.at), np.array(hull.at)
    given = np.asarray(points, float)
    if len(made.normals):
        given = given[np.max(given @ made.normals.T - made.offsets, axis=1) > 0]
    if not len(given):
        return 0.0
    if not len(made.triangles):
        ends = at[made.corners]
        return float(np.max(_from_segments(given, ends[:1], ends[-1:])))
    a, b, c = (at[made.triangles[:, i]] for i in range(3))
    n = np.cross(b - a, c - a)
    square = np.sum(n * n, axis=1)
    over = given[:, None] - a
    height = np.abs(np.sum(over * n, axis=-1)) / np.sqrt(square)
    s = np.sum(np.cross(over, c - a) * n, axis=-1) / square
    t = np.sum(np.cross(b - a, over) * n, axis=-1) / square
    within = (s >= 0) & (t >= 0) & (s + t <= 1)
    nearest = np.min(np.where(within, height, np.inf), axis=1)
    for first, second in ((a, b), (b, c), (c, a)):
        nearest = np.minimum(nearest, np.min(_from_segments(given, first, second), axis=1))
    return float(np.max(nearest))


def _from_segments(points: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """The distances (n, k) of points (n, 3) to segments from (k, 3) to (k, 3)."""
    way, off = end - start, points[:, None] - start
    square = np.sum(way * way, axis=-1)
    share = np.clip(np.sum(off * way, axis=-1) / np.where(square > 0, square, 1), 0, 1)
    return np.linalg.norm(off - share[..., None] * way, axis=-1)
