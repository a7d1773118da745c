"""A box with contact points at its corners and on its edges."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from lgsim._compile.spatial import Vec
from lgsim.multibody.contacts.contact import Shape, Sized, Sizes, Surface, column


@dataclass(frozen=True)
class Box(Shape):
    """Contact points of a box centered at the frame's origin with edge lengths ``x``, ``y``, ``z`` along its axes.

    The eight corners are exact against planes. Round surfaces may also touch an edge, for which ``edges`` points on
    each edge are an approximation.

    Attributes:
        edges: Number of points on each of the twelve edges, without the corners.
    """

    edges: int = 0

    sizes = ("x", "y", "z")

    def count(self, surface: Surface) -> int:
        """Eight corners and the points on the edges."""
        return 8 + 12 * self.edges

    def points(self, sizes: Sizes) -> Vec:
        """The corners, then equally spaced points on the edges along x, y and z."""
        signs = [np.array(corner, float) for corner in product((-1, 1), repeat=3)]
        between = np.linspace(-1, 1, self.edges + 2)[1:-1]
        for axis in range(3):
            ends = [corner for corner in signs[:8] if corner[axis] > 0]
            for end, place in product(ends, between):
                signs.append(np.where(np.arange(3) == axis, place, end))
        at = 0.5 * np.array(signs)
        return Vec(*(column(at[:, i], sizes[name]) * sizes[name] for i, name in enumerate(self.sizes)))

    def reach(self, sizes: Sizes) -> Any:
        """Half of the shortest nonzero edge."""
        lengths = [sizes[name] for name in self.sizes if sizes[name] > 0]
        return 0.5 * min(lengths) if lengths else None


def box(x: float, y: float, z: float, edges: int = 0) -> Sized:
    """A box centered at the origin of its frame, with edges along the axes.

    Args:
        x: Edge length along x, m, nonnegative.
        y: Edge length along y, m, nonnegative.
        z: Edge length along z, m, nonnegative.
        edges: Number of points on each edge, without the corners; static.

    Raises:
        ValueError: ``edges`` is not a nonnegative integer.
    """
    if isinstance(edges, bool) or not isinstance(edges, int) or edges < 0:
        raise ValueError(f"edges: expected a number of points on each edge, 0 or more, got {edges!r}")
    return Sized(Box(edges), {"x": x, "y": y, "z": z})
