"""A solid as a file of a machine has it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from lgsim.formats.report import Finding
from lgsim.formats.xml import FileError
from lgsim.multibody.geometry import Geometry, Mesh


class FileSolid(NamedTuple):
    """A solid of a link.

    Attributes:
        link: The name of the link, which is that of its frame.
        pose: In the link's frame, (4, 4), m.
        geometry: Reads it: a solid or a mesh; None for a kind that lgsim does not know.
        kind: The word that the file has for its kind.
        error: The error of a message about its element.
        finding: The remark of a text about its element.
    """

    link: str
    pose: Float[np.ndarray, "4 4"]
    geometry: Callable[[], Geometry | Mesh] | None
    kind: str
    error: Callable[[str], FileError]
    finding: Callable[[str], Finding]


def by_name(names: str | Sequence[str] | Mapping[str, Mapping[str, Any]]) -> Mapping[str, Mapping[str, Any]]:
    """What is said of each name of some, in one of the ways in which users give them."""
    return (
        names if isinstance(names, Mapping) else {name: {} for name in ([names] if isinstance(names, str) else names)}
    )
