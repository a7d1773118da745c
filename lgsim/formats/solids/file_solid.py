"""Collision geometry as described by a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from lgsim.formats.report import Finding
from lgsim.formats.xml import FileError
from lgsim.multibody.geometry import Geometry, Mesh


class FileSolid(NamedTuple):
    """A collision geometry of a link.

    Attributes:
        link: Name of the link and its frame.
        pose: Pose in the link's frame, (4, 4), m.
        geometry: Function that reads the geometry or mesh; None for unsupported shapes.
        kind: Name of the shape in the file.
        error: Function from a message to an error about its element.
        finding: Function from a text to a finding about its element.
    """

    link: str
    pose: Float[np.ndarray, "4 4"]
    geometry: Callable[[], Geometry | Mesh] | None
    kind: str
    error: Callable[[str], FileError]
    finding: Callable[[str], Finding]


def by_name(names: str | Sequence[str] | Mapping[str, Mapping[str, Any]]) -> Mapping[str, Mapping[str, Any]]:
    """Settings by name, from any of the forms that users may pass."""
    return (
        names if isinstance(names, Mapping) else {name: {} for name in ([names] if isinstance(names, str) else names)}
    )
