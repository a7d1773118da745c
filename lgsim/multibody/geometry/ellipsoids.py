"""An ellipsoid, for visualization only: distances do not support it."""

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
    """An ellipsoid with semi-axes ``radii`` along x, y, z, m; for visualization."""

    radii: tuple[Any, Any, Any]

    sizes = ("rx", "ry", "rz")
    drawn_alone = True

    @classmethod
    def example(cls) -> Ellipsoid:
        """An ellipsoid with three different axes."""
        return cls((0.2, 0.3, 0.5))

    @property
    def values(self) -> tuple[Any, ...]:
        """The semi-axes."""
        return tuple(self.radii)

    def resized(self, values: Sequence[Any]) -> Ellipsoid:
        """An ellipsoid with other semi-axes."""
        x, y, z = values[:3]
        return Ellipsoid((x, y, z))

    def plain(self) -> dict[str, Any]:
        """Empty: no static data."""
        return {"kind": "Ellipsoid"}

    @classmethod
    def of_static(cls, static: Mapping[str, Any]) -> Ellipsoid:
        """An ellipsoid without sizes."""
        return cls((None, None, None), **static)

    def triangles(self) -> Mesh:
        """A scaled sphere."""
        ball = Sphere(1.0).triangles()
        return Mesh(ball.vertices * np.array(self.radii), ball.faces)
