"""What a solid is: a shape about the origin of its own frame, whose numbers may be arrays, and how pictures see it."""

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
    """The contract of a solid: its sizes, its form for distances, its surface for pictures.

    A new solid is one file of this folder: a frozen dataclass whose fields are its numbers, named by ``sizes`` in their
    order, and what is static. ``form`` says which of the engine's forms it is, with what is about that.
    """

    drawn_alone: ClassVar[bool] = False
    """Whether distances do not know it."""

    @classmethod
    @abstractmethod
    def example(cls) -> Geometry:
        """One of the kind, as generated tests take it."""

    @property
    def values(self) -> tuple[Any, ...]:
        """Its numbers in the order of ``sizes``."""
        return tuple(getattr(self, name) for name in self.sizes)

    def resized(self, values: Sequence[Any]) -> Geometry:
        """The same with other numbers, which may be arrays of one shape."""
        return replace(self, **dict(zip(self.sizes, values, strict=False)))

    @property
    def bare(self) -> Geometry:
        """What is static of it: the same without numbers."""
        return self.resized((None,) * len(self.sizes))

    def form(self) -> Form | None:
        """What distances make of it, its numbers being arrays (m, *batch); None for what is drawn alone."""
        return None

    def samples(self) -> np.ndarray | None:
        """The numbers (k,) that are too many to be sizes, such as those of a grid; None for none."""
        return None

    def sampled(self, values: Any) -> Geometry:
        """The same with those numbers (k, m, *batch)."""
        return self

    @property
    def sample_count(self) -> int:
        """How many those numbers are."""
        return 0

    @abstractmethod
    def triangles(self) -> Mesh:
        """Its surface, its numbers being plain."""

    @classmethod
    def of_static(cls, static: Mapping[str, Any]) -> Geometry:
        """One without numbers of what is static."""
        return cls(**dict.fromkeys(cls.sizes), **static)
