"""A cylinder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lgsim._compile.spatial import Vec
from lgsim.multibody.geometry.forms import Form, Hull, column
from lgsim.multibody.geometry.geometry import Geometry
from lgsim.multibody.geometry.triangles import Mesh, revolution

SIDES = 16
"""Number of sides of the prism that represents a cylinder in distances."""

_TURNS = 2 * np.pi * (np.arange(SIDES) + 0.5) / SIDES
_ROUND = np.stack([np.cos(_TURNS), np.sin(_TURNS), np.zeros(SIDES)], axis=1)
# opposite sides share a direction
_SIDES = np.array([[np.cos(a), np.sin(a), 0.0] for a in 2 * np.pi * np.arange(SIDES // 2) / SIDES])
_EDGES = np.stack([-_SIDES[:, 1], _SIDES[:, 0], np.zeros(SIDES // 2)], axis=1)


@dataclass(frozen=True)
class Cylinder(Geometry):
    """A cylinder of ``radius`` and ``length`` along z, centered at the origin, m.

    Distances use a circumscribed prism with ``SIDES`` = 16 sides, which exceeds the cylinder by at most 2 % of the
    radius.
    """

    radius: Any
    length: Any

    sizes = ("radius", "length")

    @classmethod
    def example(cls) -> Cylinder:
        """A cylinder of radius 0.3 m and length 0.8 m."""
        return cls(0.3, 0.8)

    def form(self) -> Form:
        """The vertices of the prism."""
        rim = np.tile(_ROUND / np.cos(np.pi / SIDES), (2, 1))
        half = np.repeat([-0.5, 0.5], SIDES)
        x, y, z = (column(numbers, self.radius) for numbers in (rim[:, 0], rim[:, 1], half))
        points = Vec(x * self.radius, y * self.radius, z * self.length)
        axis = np.array([[0.0, 0.0, 1.0]])
        return Hull(points, np.concatenate([_SIDES, axis]), np.concatenate([_EDGES, axis]))

    def triangles(self) -> Mesh:
        """The lateral surface and the two ends."""
        r, h = self.radius, self.length / 2
        return revolution([np.array(part, float) for part in ([(0, -h), (r, -h)], [(r, -h), (r, h)], [(r, h), (0, h)])])
