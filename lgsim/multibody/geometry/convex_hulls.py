"""The convex hull of points, such as the vertices of a mesh."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from lgsim.multibody.geometry.capsules import checked_points
from lgsim.multibody.geometry.forms import Form, Hull
from lgsim.multibody.geometry.geometry import Geometry
from lgsim.multibody.geometry.hulls import Points, both_ways, facets, thinned
from lgsim.multibody.geometry.triangles import Mesh
from lgsim.spatial import Vec

VERTICES = 20
"""Vertices of a mesh that are kept where nobody says how many."""
LEAST = 4
"""The fewest that may be asked for."""
MOST = 64
"""The most that a hull may have: directions in which two hulls can touch are as many as their edges' products."""


@dataclass(frozen=True)
class ConvexHull(Geometry):
    """All points within ``radius`` of the convex hull of given points, times a ``scale``.

    Attributes:
        at: The points in its frame, corners of their hull, (x, y, z) each, m; static.
        radius: m.
        scale: The factor by which they are multiplied.
    """

    at: Points
    radius: Any = 0.0
    scale: Any = 1.0

    sizes = ("radius", "scale")
    positive = ("scale",)

    @classmethod
    def example(cls) -> ConvexHull:
        """A tetrahedron, rounded."""
        return cls(((0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)), 0.1)

    def form(self) -> Form:
        """The hull of the points, with a radius."""
        at = np.array(self.at)
        shape, dtype = (-1, *(1,) * jnp.ndim(self.scale)), jnp.result_type(self.scale)
        scale = jnp.asarray(self.scale, dtype)[None]
        points = Vec(*(jnp.asarray(at[:, i], dtype).reshape(shape) * scale for i in range(3)))
        made = facets(self.at)
        return Hull(points, both_ways(made.normals), made.edges, self.radius)

    def triangles(self) -> Mesh:
        """The faces of the hull; what is round about it is not drawn."""
        return Mesh(self.scale * np.array(self.at), facets(self.at).triangles, flat=True)


def convex_hull(points: Any, most: int = VERTICES, radius: float = 0.0, scale: float = 1.0) -> ConvexHull:
    """The convex hull of points, such as the vertices of a mesh, of which at most some are kept.

    What is left of more points is inside of their hull: ``sag`` says how far, and a ``radius`` of that holds them all.

    Args:
        points: (n, 3), m; static.
        most: How many are kept, 4 to 64: from the one that is farthest from their middle on, always the one that is
            farthest from those kept.
        radius: Of balls about all points of the hull, m, zero or more.
        scale: The factor by which the points are multiplied.

    Raises:
        ValueError: there are no points, they are not finite or of another shape; ``most`` is out of its bounds.
    """
    if not LEAST <= most <= MOST:
        raise ValueError(f"convex_hull: most: expected {LEAST} to {MOST} vertices, got {most}")
    kept = thinned(checked_points("convex_hull", points), most)
    at = tuple((float(x), float(y), float(z)) for x, y, z in kept)
    corners = sorted(facets(at).corners)
    return ConvexHull(tuple(at[i] for i in corners), radius, scale)


def sag(hull: ConvexHull, points: Any) -> float:
    """How far points, (n, 3), m, are outside of the faces of a hull without its radius, m; at most their distance."""
    made = facets(hull.at)
    if not len(made.normals):
        return float(np.max(np.linalg.norm(np.asarray(points) - np.array(hull.at[0]), axis=1)))
    return max(0.0, float(np.max(np.asarray(points) @ made.normals.T - made.offsets)))
