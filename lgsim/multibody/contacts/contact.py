"""What a contact is: points of a shape on one frame against a surface on another, and the numbers of its law.

A shape is spheres of one radius about points, a surface a distance with a normal; neither knows the other, and the law
knows neither. All act on numbers by components, of any common batch, so that all contacts of a kind are one call.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from jax import Array

from lgsim._compile.spatial import Transform, Vec
from lgsim.multibody.geometry.shape_kind import ShapeKind

LAW = ("stiffness", "exponent", "dissipation", "friction", "viscous", "slip_speed")
"""The first columns of ``Model.contacts``; options of the law, sizes of the shape, then of the surface follow."""

OPTIONS = (("stribeck", "stribeck_speed"), ("torsion", "rolling", "spin_speed"))
"""Numbers of the law that only contacts have of which one is given, group by group: what nobody names costs nothing."""

USUAL_LAW = {
    "exponent": 1.5, "dissipation": 0.0, "friction": 0.0, "viscous": 0.0, "slip_speed": 0.01, "stribeck": 0.0,
    "stribeck_speed": 0.1, "torsion": 0.0, "rolling": 0.0, "spin_speed": 0.1,
}  # fmt: skip
"""The numbers of the law for which none are given; the stiffness has none."""

Sizes = Mapping[str, Any]
"""Sizes by name, arrays (1, contacts, *batch) or numbers, m unless a shape says otherwise."""


@dataclass(frozen=True)
class Shape(ShapeKind, ABC):
    """The contract of what touches: points of a frame, each the center of a sphere of one radius. Static.

    A new shape is one file of this folder: it names its ``sizes``, of which one called ``radius`` is that of the
    spheres, and gives its ``points``. The checks, the builder, files and the generated tests find it by itself.
    """

    @abstractmethod
    def count(self, surface: Surface) -> int:
        """The number of its points against a surface."""

    @abstractmethod
    def points(self, sizes: Sizes) -> Vec:
        """Its points in its frame, by components (points, contacts, *batch) or what broadcasts to it."""

    def centers(self, sizes: Sizes, pose: Transform, surface: Surface, other: Sizes) -> Vec:
        """Its points in the frame of a surface, where its own frame has the pose; ``other`` are the surface's sizes."""
        del surface, other
        return pose.R @ self.points(sizes) + pose.p

    def reach(self, sizes: Sizes) -> Any:
        """The depth from which on it is through the surface, m; None where no depth is too large."""
        return sizes["radius"] if "radius" in sizes and sizes["radius"] > 0 else None


@dataclass(frozen=True)
class Surface(ShapeKind, ABC):
    """The contract of what is touched: a signed distance from a surface of a frame, and its gradient. Static."""

    signed: ClassVar[tuple[str, ...]] = ()
    """Those of its sizes that may be negative."""

    @property
    def grid(self) -> tuple[int, ...]:
        """The shape of the heights on a grid that it has beside its sizes, () where it has none."""
        return ()

    @abstractmethod
    def gap(self, sizes: Sizes, p: Vec) -> tuple[Array, Vec]:
        """(the distance of points p of its frame from it, positive outside; its gradient, the unit normal there)."""

    def half_axis(self, sizes: Sizes) -> Any:
        """Half the length of the segment on its z axis about which it is round; None where there is none."""
        del sizes
        return None


class Sized(NamedTuple):
    """A shape or a surface with its sizes, and its heights on a grid, as ``lgsim.contacts`` makes them."""

    kind: Shape | Surface
    sizes: Mapping[str, float]
    heights: Any = None


@dataclass(frozen=True)
class Contact:
    """One contact of a machine; static.

    Attributes:
        frame: Name of the frame of its shape, a body's or one fixed to a body or the world.
        shape: What touches.
        surface: What is touched.
        against: Name of the surface's frame, "world" for the world's own.
        options: Numbers of the law that it has beside ``LAW``.
    """

    name: str
    frame: str
    shape: Shape
    surface: Surface
    against: str
    options: tuple[str, ...] = ()

    @property
    def law(self) -> tuple[str, ...]:
        """The names of the numbers of its law."""
        return LAW + self.options

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of its numbers in ``Model.contacts``; a size of the surface is called ``surface_...``."""
        return self.law + self.shape.sizes + tuple(f"surface_{name}" for name in self.surface.sizes)

    @property
    def points(self) -> int:
        """The number of its points."""
        return self.shape.count(self.surface)

    def plain(self) -> dict[str, Any]:
        """All of it as text, numbers and lists, for files."""
        sides = {"shape": self.shape.plain(), "surface": self.surface.plain()}
        options = {"options": self.options} if self.options else {}
        return {"name": self.name, "frame": self.frame, "against": self.against, **sides, **options}

    @classmethod
    def of_plain(cls, plain: Mapping[str, Any]) -> Contact:
        """The contact of what ``plain`` gives.

        Raises:
            KeyError: a shape or surface of that name does not exist, or something is missing.
        """
        shape, surface = Shape.of_plain(plain["shape"]), Surface.of_plain(plain["surface"])
        rest = {**plain, "shape": shape, "surface": surface, "options": tuple(plain.get("options", ()))}
        return cls(**rest)


def column(numbers: Any, like: Array) -> Any:
    """Constants (points,) as an array (points, 1, ...) of as many axes and of the dtype of sizes."""
    return np.asarray(numbers, like.dtype).reshape(-1, *(1,) * (like.ndim - 1))
