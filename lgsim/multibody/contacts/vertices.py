"""Vertices of a mesh as contact points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lgsim._compile.spatial import Vec
from lgsim.multibody.contacts.contact import Shape, Sized, Sizes, Surface, column
from lgsim.multibody.geometry.hulls import checked_points, spread_out


@dataclass(frozen=True)
class Vertices(Shape):
    """Spheres of one ``radius`` about given points, scaled by ``scale``.

    Attributes:
        at: Points in the frame, (x, y, z) each, m.
    """

    at: tuple[tuple[float, float, float], ...] = ()

    sizes = ("radius", "scale")

    @classmethod
    def example(cls) -> Vertices:
        """A tetrahedron."""
        return cls(((0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)))

    def count(self, surface: Surface) -> int:
        """Number of points."""
        return len(self.at)

    def points(self, sizes: Sizes) -> Vec:
        """The points, scaled."""
        return Vec(*(column(x, sizes["scale"]) * sizes["scale"] for x in zip(*self.at, strict=True)))

    def reach(self, sizes: Sizes) -> Any:
        """Half of the smallest extent along the axes, or the radius if that is larger."""
        extents = sizes["scale"] * np.ptp(np.array(self.at), axis=0)
        deepest = max(float(0.5 * np.min(extents)), float(sizes["radius"]))
        return deepest if deepest > 0 else None


def vertices(points: Any, *, most: int | None = None, radius: float = 0.0, scale: float = 1.0) -> Sized:
    """Contact points of a frame, such as the vertices of a mesh.

    Args:
        points: (n, 3), m; static.
        most: Number of points that are kept, by default all: first the one farthest from their mean, then repeatedly
            the one farthest from those kept.
        radius: Radius of a sphere about each of them, m, nonnegative.
        scale: Scale factor of the points.

    Raises:
        ValueError: no points, points that are not finite or of another shape, or ``most`` below one.
    """
    array = checked_points("vertices", points)
    if most is not None and most < 1:
        raise ValueError(f"vertices: most: expected at least one point, got {most}")
    kept = array if most is None else spread_out(array, most)
    at = tuple((float(x), float(y), float(z)) for x, y, z in kept)
    return Sized(Vertices(at), {"radius": radius, "scale": scale})
