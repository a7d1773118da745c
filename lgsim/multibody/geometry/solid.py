"""A solid of a machine, its numbers, and which pairs of them are looked at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lgsim.multibody.geometry.geometry import Geometry


@dataclass(frozen=True)
class Solid:
    """One solid of a machine; static.

    Attributes:
        frame: Name of the frame that carries it: a body, a frame fixed to a body or to the world, or "world".
        geometry: What it is, without numbers.
    """

    name: str
    frame: str
    geometry: Geometry

    def plain(self) -> dict[str, Any]:
        """All of it as text, numbers and lists, for files."""
        return {"name": self.name, "frame": self.frame, "geometry": self.geometry.plain()}

    @classmethod
    def of_plain(cls, plain: Mapping[str, Any]) -> Solid:
        """The solid of what ``plain`` gives.

        Raises:
            KeyError: there is no such geometry, or something is missing.
        """
        return cls(plain["name"], plain["frame"], Geometry.of_plain(plain["geometry"]))


def width(solids: Sequence[Solid]) -> int:
    """The number of columns that the sizes of solids need together."""
    return max((len(solid.geometry.sizes) for solid in solids), default=0)


def grid_starts(solids: Sequence[Solid]) -> list[int]:
    """Where the samples of each solid begin in ``Model.grids``, and the end of all."""
    return np.cumsum([0, *(solid.geometry.sample_count for solid in solids)]).tolist()
