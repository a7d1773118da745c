"""Collision geometry of a model: frame, shape and layout of the values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lgsim.multibody.geometry.geometry import Geometry


@dataclass(frozen=True)
class Solid:
    """One collision geometry of a model; static.

    Attributes:
        frame: Name of its frame: a body, a frame fixed to a body or to the world, or "world".
        geometry: Its shape, without values.
    """

    name: str
    frame: str
    geometry: Geometry

    def plain(self) -> dict[str, Any]:
        """Serializable description: text, numbers and lists."""
        return {"name": self.name, "frame": self.frame, "geometry": self.geometry.plain()}

    @classmethod
    def of_plain(cls, plain: Mapping[str, Any]) -> Solid:
        """Create an instance from a ``plain`` description.

        Raises:
            KeyError: an unknown geometry, or a missing entry.
        """
        return cls(plain["name"], plain["frame"], Geometry.of_plain(plain["geometry"]))


def width(solids: Sequence[Solid]) -> int:
    """Number of columns that the sizes of all solids need."""
    return max((len(solid.geometry.sizes) for solid in solids), default=0)


def grid_starts(solids: Sequence[Solid]) -> list[int]:
    """Start of the samples of each solid in ``Model.grids``, and the end of all."""
    return np.cumsum([0, *(solid.geometry.sample_count for solid in solids)]).tolist()
