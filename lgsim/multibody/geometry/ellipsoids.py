"""An ellipsoid, which is drawn alone: distances do not know it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lgsim.multibody.geometry.geometry import Geometry
from lgsim.multibody.geometry.spheres import Sphere
from lgsim.multibody.geometry.triangles import Mesh


@dataclass(frozen=True)
class Ellipsoid(Geometry):
    """An ellipsoid of semi-axes ``radii`` along x, y, z, m; for pictures."""

    radii: tuple[Any, Any, Any]

    sizes = ("rx", "ry", "rz")
    drawn_alone = True

    @classmethod
    def example(cls) -> Ellipsoid:
        """One of three different axes."""
        return cls((0.2, 0.3, 0.5))

    @property
    def values(self) -> tuple[Any, ...]:
        """The semi-axes."""
        return tuple(self.radii)

    def resized(self, values: Sequence[Any]) -> Ellipsoid:
        """One with other semi-axes."""
        x, y, z = values[:3]
        return Ellipsoid((x, y, z))

    def plain(self) -> dict[str, Any]:
        """Nothing of it is static."""
        return {"kind": "Ellipsoid"}

    @classmethod
    def of_static(cls, static: Mapping[str, Any]) -> Ellipsoid:
        """One without numbers."""
        return cls((None, None, None), **static)

    def triangles(self) -> Mesh:
        """The surface of a ball, stretched."""
        ball = Sphere(1.0).triangles()
        return Mesh(ball.vertices * np.array(self.radii), ball.faces)
