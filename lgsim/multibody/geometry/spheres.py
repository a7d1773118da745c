"""A ball."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp

from lgsim.multibody.geometry.forms import Form, Segment
from lgsim.multibody.geometry.geometry import Geometry
from lgsim.multibody.geometry.triangles import Mesh, arc, revolution


@dataclass(frozen=True)
class Sphere(Geometry):
    """All points within ``radius`` of the origin, m; a point for a radius of zero."""

    radius: Any

    sizes = ("radius",)

    @classmethod
    def example(cls) -> Sphere:
        """A ball of radius 0.3 m."""
        return cls(0.3)

    def form(self) -> Form:
        """A point with a radius."""
        return Segment(jnp.zeros_like(self.radius), self.radius, single=True)

    def triangles(self) -> Mesh:
        """The surface, by meridians."""
        return revolution([self.radius * arc(-90.0, 90.0)])
