"""Mesh files of robot descriptions: location, vertices and triangles."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np

from lgsim.multibody.geometry import Mesh

FOLDERS = ("GZ_SIM_RESOURCE_PATH", "SDF_PATH", "GAZEBO_MODEL_PATH")
"""Environment variables that list folders of models."""
PACKAGES = ("ROS_PACKAGE_PATH", "AMENT_PREFIX_PATH", *FOLDERS)
"""Environment variables that list folders of packages and models."""

_FACET = np.dtype([("numbers", "<f4", 12), ("attribute", "<u2")])
_HEAD = 84


def file_at(name: str, folder: Path | None, suits: Callable[[Path], bool] = Path.is_file) -> Path | None:
    """The path of a file that another one names; None if it does not exist.

    Args:
        name: Name in the robot's file: a path, "package://name/...", "model://name/..." or "file://...".
        folder: Folder of the robot's file; None if it was given as text.
        suits: Condition on the path.
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
        candidates += [folder / inner for folder in above[:-1] if inner.parts]
    else:
        candidates = [Path(rest)]
    return next(filter(suits, candidates), None)


def read_mesh(path: Path) -> Mesh:
    """The distinct vertices and the triangles of an STL or OBJ file.

    Raises:
        ValueError: another format, no vertices, or an invalid line.
        OSError: the file cannot be read.
    """
    data = path.read_bytes()
    faces: list[list[int]] | None = None
    if path.suffix.lower() == ".obj":
        found = _vertices(data, b"v")
        faces = _fans(data, len(found))
    elif path.suffix.lower() != ".stl":
        raise ValueError(f"expected an .stl or .obj file, got {path.name!r}")
    elif len(data) >= _HEAD and len(data) == _HEAD + _FACET.itemsize * int.from_bytes(data[80:_HEAD], "little"):
        found = np.frombuffer(data, _FACET, offset=_HEAD)["numbers"][:, 3:].reshape(-1, 3).astype(float)
    else:
        found = _vertices(data, b"vertex")
    if not len(found):
        raise ValueError(f"expected vertices, got none in {path.name!r}")
    if not np.all(np.isfinite(found)):
        raise ValueError(f"expected finite vertices, got others in {path.name!r}")
    corners = np.arange(len(found) // 3 * 3).reshape(-1, 3) if faces is None else np.array(faces, int).reshape(-1, 3)
    _, first, again = np.unique(found, axis=0, return_index=True, return_inverse=True)
    kept = np.sort(first)
    place = np.searchsorted(kept, first)[again.ravel()]
    return Mesh(found[kept], place[corners], flat=True)


def _fans(data: bytes, count: int) -> list[list[int]]:
    """Triangle fans of the faces of an OBJ file; negative indices count from the last vertex."""
    found = []
    for words in _lines(data, b"f"):
        try:
            ring = [int(word.partition(b"/")[0]) for word in words]
        except ValueError:
            ring = [0]
        ring = [i - 1 if i > 0 else count + i for i in ring]
        if any(not 0 <= i < count for i in ring):
            raise ValueError(f"expected faces of {count} vertices, got {_shown(words)}")
        found += [[ring[0], a, b] for a, b in pairwise(ring[1:])]
    return found


def _vertices(data: bytes, key: bytes) -> np.ndarray:
    """The first three numbers of each line with a key, (n, 3)."""
    found = []
    for words in _lines(data, key):
        try:
            x, y, z = map(float, words[:3])
        except ValueError:
            raise ValueError(f"expected three numbers of a vertex, got {_shown(words)}") from None
        found.append((x, y, z))
    return np.array(found, float).reshape(-1, 3)


def _lines(data: bytes, key: bytes) -> Iterator[list[bytes]]:
    """The words after the first one of each line that starts with the key."""
    # a regular expression for leading spaces would also match all following empty lines: quadratic time
    for line in data.splitlines():
        words = line.split()
        if words and words[0] == key:
            yield words[1:]


def _shown(words: list[bytes]) -> str:
    text = b" ".join(words)
    return repr((text if len(text) <= 80 else text[:80] + b"...").decode("utf-8", "replace"))
