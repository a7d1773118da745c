"""Contacts: points of a shape on one frame against a surface on another, and the parameters of the contact model.

A shape consists of spheres of one radius about points, a surface of a signed distance and its normal. Shapes, surfaces
and the contact model are independent of each other. All act on arrays by components with any common batch, so that all
contacts of a kind are evaluated at once.
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
"""First columns of ``Model.contacts``; optional parameters, sizes of the shape, and sizes of the surface follow."""

OPTIONS = (("stribeck", "stribeck_speed"), ("torsion", "rolling", "spin_speed"))
"""Optional parameters by group: only contacts with at least one of a group have its columns, others cost nothing."""

USUAL_LAW = {
    "exponent": 1.5, "dissipation": 0.0, "friction": 0.0, "viscous": 0.0, "slip_speed": 0.01, "stribeck": 0.0,
    "stribeck_speed": 0.1, "torsion": 0.0, "rolling": 0.0, "spin_speed": 0.1,
}  # fmt: skip
"""Defaults of the contact parameters; the stiffness has none."""

Sizes = Mapping[str, Any]
"""Sizes by name, arrays (1, contacts, *batch) or numbers, m unless a shape specifies otherwise."""


@dataclass(frozen=True)
class Shape(ShapeKind, ABC):
    """Interface of contact shapes: points of a frame, each the center of a sphere of one radius. Static.

    A new shape is one file of this folder. It names its ``sizes``, including ``radius``, that of the spheres, and
    defines its ``points``. Checks, builder, files and generated tests find it automatically.
    """

    @abstractmethod
    def count(self, surface: Surface) -> int:
        """Number of its points against a surface."""

    @abstractmethod
    def points(self, sizes: Sizes) -> Vec:
        """Its points in its frame, by components (points, contacts, *batch) or broadcastable to it."""

    def centers(self, sizes: Sizes, pose: Transform, surface: Surface, other: Sizes) -> Vec:
        """Its points in the frame of a surface; ``pose`` is its pose there, ``other`` are the surface's sizes."""
        del surface, other
        return pose.R @ self.points(sizes) + pose.p

    def reach(self, sizes: Sizes) -> Any:
        """Depth at which it has passed through the surface, m; None if there is no such depth."""
        return sizes["radius"] if "radius" in sizes and sizes["radius"] > 0 else None


@dataclass(frozen=True)
class Surface(ShapeKind, ABC):
    """Interface of contact surfaces: a signed distance to a surface on a frame, and its gradient. Static."""

    signed: ClassVar[tuple[str, ...]] = ()
    """Sizes that may be negative."""

    @property
    def grid(self) -> tuple[int, ...]:
        """Shape of its grid of heights; () without a grid."""
        return ()

    @abstractmethod
    def gap(self, sizes: Sizes, p: Vec) -> tuple[Array, Vec]:
        """Signed distance of points p of its frame, positive outside, and its gradient, the unit normal."""

    def half_axis(self, sizes: Sizes) -> Any:
        """Half the length of its axis segment on z, for round surfaces; None for others."""
        del sizes
        return None


class Sized(NamedTuple):
    """A shape or a surface with its sizes, and its heights on a grid, as ``lgsim.contacts`` constructs them."""

    kind: Shape | Surface
    sizes: Mapping[str, float]
    heights: Any = None


@dataclass(frozen=True)
class Contact:
    """One contact of a model; static.

    Attributes:
        frame: Name of the shape's frame: a body, or a frame fixed to a body or the world.
        shape: The contact shape.
        surface: The contact surface.
        against: Name of the surface's frame, or "world".
        options: Names of its optional parameters, in addition to ``LAW``.
    """

    name: str
    frame: str
    shape: Shape
    surface: Surface
    against: str
    options: tuple[str, ...] = ()

    @property
    def law(self) -> tuple[str, ...]:
        """Names of its contact parameters."""
        return LAW + self.options

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of its columns in ``Model.contacts``; sizes of the surface are called ``surface_...``."""
        return self.law + self.shape.sizes + tuple(f"surface_{name}" for name in self.surface.sizes)

    @property
    def points(self) -> int:
        """Number of its contact points."""
        return self.shape.count(self.surface)

    def plain(self) -> dict[str, Any]:
        """Serializable description: text, numbers and lists."""
        sides = {"shape": self.shape.plain(), "surface": self.surface.plain()}
        options = {"options": self.options} if self.options else {}
        return {"name": self.name, "frame": self.frame, "against": self.against, **sides, **options}

    @classmethod
    def of_plain(cls, plain: Mapping[str, Any]) -> Contact:
        """Create the contact from a ``plain`` description.

        Raises:
            KeyError: an unknown shape or surface, or a missing entry.
        """
        shape, surface = Shape.of_plain(plain["shape"]), Surface.of_plain(plain["surface"])
        rest = {**plain, "shape": shape, "surface": surface, "options": tuple(plain.get("options", ()))}
        return cls(**rest)


def column(numbers: Any, like: Array) -> Any:
    """Constants (points,) as an array (points, 1, ...) with the number of axes and the dtype of sizes."""
    return np.asarray(numbers, like.dtype).reshape(-1, *(1,) * (like.ndim - 1))
