"""Interface of geometries: a shape about the origin of its own frame with array-valued sizes, and its visualization."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from lgsim.multibody.geometry.forms import Form
from lgsim.multibody.geometry.shape_kind import ShapeKind
from lgsim.multibody.geometry.triangles import Mesh


@dataclass(frozen=True)
class Geometry(ShapeKind, ABC):
    """Interface of a geometry: its sizes, its form for distances, its surface for visualization.

    A new geometry is one file of this folder: a frozen dataclass whose fields are its values, named by ``sizes`` in
    their order, and static data. ``form`` returns one of the forms that distances support.
    """

    drawn_alone: ClassVar[bool] = False
    """True if distances do not support it."""

    @classmethod
    @abstractmethod
    def example(cls) -> Geometry:
        """An instance for generated tests."""

    @property
    def values(self) -> tuple[Any, ...]:
        """Its values in the order of ``sizes``."""
        return tuple(getattr(self, name) for name in self.sizes)

    def resized(self, values: Sequence[Any]) -> Geometry:
        """A copy with other values, which may be arrays of one shape."""
        return replace(self, **dict(zip(self.sizes, values, strict=False)))

    @property
    def bare(self) -> Geometry:
        """Its static data: a copy without values."""
        return self.resized((None,) * len(self.sizes))

    def form(self) -> Form | None:
        """Its form for distances, with values as arrays (m, *batch); None for geometry that is only drawn."""
        return None

    def samples(self) -> np.ndarray | None:
        """Values (k,) other than sizes, such as those of a grid; None for none."""
        return None

    def sampled(self, values: Any) -> Geometry:
        """A copy with such values (k, m, *batch)."""
        return self

    @property
    def sample_count(self) -> int:
        """Number of such values."""
        return 0

    @abstractmethod
    def triangles(self) -> Mesh:
        """Its surface, for plain values."""

    @classmethod
    def of_static(cls, static: Mapping[str, Any]) -> Geometry:
        """An instance without values, from static data."""
        return cls(**dict.fromkeys(cls.sizes), **static)
