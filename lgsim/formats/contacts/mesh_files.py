"""Mesh files that files of machines name: where they are, and their vertices."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
from jaxtyping import Float

PACKAGES = ("ROS_PACKAGE_PATH", "AMENT_PREFIX_PATH")
"""The variables of the environment that list folders with packages."""

_FACET = np.dtype([("numbers", "<f4", 12), ("attribute", "<u2")])
_HEAD = 84


def mesh_file(name: str, folder: Path | None) -> Path | None:
    """The path of a mesh's file; None where there is no such file.

    Args:
        name: As a file of a machine has it: a path, "package://name/...", "model://name/..." or "file://...".
        folder: The folder of that file, None where it was a text.
    """
    listed = [Path(folder) for key in PACKAGES for folder in os.environ.get(key, "").split(os.pathsep) if folder]
    above = [] if folder is None else [folder, *folder.parents]
    kind, mark, rest = name.partition("://")
    if not mark:
        candidates = [Path(name)] if folder is None else [folder / name]
    elif kind in ("package", "model"):
        inner = Path(*Path(rest).parts[1:])
        candidates = [folder / rest for folder in (*above, *listed)]
        candidates += [folder / "share" / rest for folder in listed]
        candidates += [folder / inner for folder in above[:-1]]
    else:
        candidates = [Path(rest)]
    return next((path for path in candidates if path.is_file()), None)


def mesh_vertices(path: Path) -> Float[np.ndarray, "n 3"]:
    """The vertices of an STL or OBJ file, each once.

    Raises:
        ValueError: it is neither of the two, or has no vertices.
        OSError: it cannot be read.
    """
    data = path.read_bytes()
    if path.suffix.lower() == ".obj":
        found = _numbers(data, r"^\s*v\s+(.*)$")
    elif path.suffix.lower() != ".stl":
        raise ValueError(f"expected an .stl or .obj file, got {path.name!r}")
    elif len(data) >= _HEAD and len(data) == _HEAD + _FACET.itemsize * int.from_bytes(data[80:_HEAD], "little"):
        found = np.frombuffer(data, _FACET, offset=_HEAD)["numbers"][:, 3:].reshape(-1, 3).astype(float)
    else:
        found = _numbers(data, r"^\s*vertex\s+(.*)$")
    if not len(found):
        raise ValueError(f"expected vertices, got none in {path.name!r}")
    _, first = np.unique(found, axis=0, return_index=True)
    return found[np.sort(first)]


def _numbers(data: bytes, pattern: str) -> Float[np.ndarray, "n 3"]:
    lines = re.findall(pattern, data.decode("utf-8", "replace"), re.MULTILINE)
    return np.array([[float(x) for x in line.split()[:3]] for line in lines], float).reshape(-1, 3)
