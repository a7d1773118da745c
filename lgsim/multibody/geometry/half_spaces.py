"""Half-space below a plane."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lgsim.multibody.geometry.forms import Form, HalfSpaceForm
from lgsim.multibody.geometry.geometry import Geometry
from lgsim.multibody.geometry.triangles import Mesh

_DRAWN = 2.0
"""Half the edge of the square that is drawn, m."""


@dataclass(frozen=True)
class HalfSpace(Geometry):
    """All points with ``z <= 0`` of its frame: an unbounded floor, wall or table."""

    @classmethod
    def example(cls) -> HalfSpace:
        """The only instance."""
        return cls()

    def form(self) -> Form:
        """The half-space itself."""
        return HalfSpaceForm()

    def triangles(self) -> Mesh:
        """A square of the plane about the origin."""
        corners = _DRAWN * np.array([[-1.0, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]])
        return Mesh(corners, np.array([[0, 1, 2], [0, 2, 3]]))
