"""A box."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lgsim._compile.spatial import Vec
from lgsim.multibody.geometry.forms import Block, Form
from lgsim.multibody.geometry.geometry import Geometry
from lgsim.multibody.geometry.triangles import Mesh


@dataclass(frozen=True)
class Box(Geometry):
    """A box with edge lengths ``size`` (x, y, z) along the axes, centered at the origin, m."""

    size: tuple[Any, Any, Any]

    sizes = ("x", "y", "z")

    @classmethod
    def example(cls) -> Box:
        """A box with three different edges."""
        return cls((0.4, 0.6, 0.9))

    @property
    def values(self) -> tuple[Any, ...]:
        """The edge lengths."""
        return tuple(self.size)

    def resized(self, values: Sequence[Any]) -> Box:
        """A box with other edge lengths."""
        x, y, z = values[:3]
        return Box((x, y, z))

    def form(self) -> Form:
        """The box itself."""
        return Block(Vec(*self.size) * 0.5)

    def plain(self) -> dict[str, Any]:
        """Empty: no static data."""
        return {"kind": "Box"}

    @classmethod
    def of_static(cls, static: Mapping[str, Any]) -> Box:
        """A box without sizes."""
        return cls((None, None, None), **static)

    def triangles(self) -> Mesh:
        """Six faces, each with its own vertices."""
        vertices, faces = [], []
        for axis in range(3):
            for sign in (-1.0, 1.0):
                u, v = np.roll(np.eye(3), axis, axis=1)[1:]
                corners = [sign * np.eye(3)[axis] + a * u + b * v for a, b in ((-1, -1), (1, -1), (1, 1), (-1, 1))]
                start = len(vertices)
                vertices += corners
                order = np.array([[0, 1, 2], [0, 2, 3]]) if sign > 0 else np.array([[0, 2, 1], [0, 3, 2]])
                faces += list(order + start)
        return Mesh(np.array(vertices) * np.array(self.size) / 2, np.array(faces))
