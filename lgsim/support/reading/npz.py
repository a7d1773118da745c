"""Archives of arrays: only plain numbers and texts are read, and only as many bytes as the archive has."""

from __future__ import annotations

import math
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from lgsim.support.files import open_regular
from lgsim.support.reading.file_faults import file_faults
from lgsim.support.reading.size_limits import check_size

_ENDING = ".npy"
_KINDS = "biufcUSmM"
"""Kinds of numbers that are data alone: no objects, which are pickled, and no records."""
_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
# of others zipfile cannot bound what it unpacks
_COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
# numpy's own bound, above which its parser of headers is not safe
_LONGEST_HEADER = 10_000


class Arrays:
    """The arrays of an open archive, which are read when they are asked for.

    Attributes:
        names: Their names, in the order of the archive.
    """

    def __init__(self, archive: zipfile.ZipFile) -> None:
        members = archive.infolist()
        self._archive = archive
        self._members = {member.filename.removesuffix(_ENDING): member for member in members}
        self.names = list(self._members)
        if len(self.names) < len(members):
            raise ValueError("two arrays have one name")

    def __contains__(self, name: str) -> bool:
        return name in self._members

    def __getitem__(self, name: str) -> np.ndarray:
        """An array.

        Raises:
            Exception: there is no such array, or its bytes are damaged: whatever numpy and zipfile raise.
        """
        member = self._members[name]
        if member.compress_type not in _COMPRESSIONS:
            raise ValueError("a compression that numpy does not write")
        with self._archive.open(member) as file:
            return _array(file, member.file_size)


def _array(file: Any, size: int) -> np.ndarray:
    """The array of a member that has so many bytes by its archive."""
    version = np.lib.format.read_magic(file)
    if version not in _HEADERS:
        raise ValueError(f"a header of version {version[0]}.{version[1]}")
    shape, fortran, dtype = _HEADERS[version](file, max_header_size=_LONGEST_HEADER)
    if dtype.hasobject:
        raise ValueError("pickled objects, which are not read")
    if dtype.kind not in _KINDS or not dtype.itemsize:
        raise ValueError(f"numbers of type {dtype}")
    count = math.prod(shape) * dtype.itemsize
    if any(isinstance(n, bool) or n < 0 for n in shape) or count != size - file.tell():
        raise ValueError(f"a shape {shape} that does not fit its {size} bytes")
    # so many and no more: zipfile would unpack beyond the size that an archive states
    flat = np.frombuffer(file.read(count), dtype).astype(dtype.newbyteorder("="))
    # of other letters Python makes texts that end in a SystemError later
    if dtype.kind == "U" and np.any(flat.view(np.uint32) > sys.maxunicode):
        raise ValueError("a text of letters that there are not")
    return flat.reshape(shape[::-1]).T if fortran else flat.reshape(shape)


@contextmanager
def open_npz(path: str | PathLike[str], expected: str, *passed: type[Exception]) -> Iterator[Arrays]:
    """The arrays of an archive, within a block of ``file_faults``.

    Args:
        expected: What was expected, such as "a trajectory that lgsim wrote", for the message.
        passed: Further errors that are raised as they are.

    Raises:
        ValueError: it is no archive, or the block met a fault of its content.
        FileSizeError: its arrays have more bytes than ``LGSIM_MAX_BYTES``, by what the archive says of them; none has
            more than that when it is read.
        OSError: it cannot be read.
    """
    with file_faults(path, expected, *passed), open_regular(Path(path)) as content, zipfile.ZipFile(content) as archive:
        check_size(path, sum(member.file_size for member in archive.infolist()))
        yield Arrays(archive)


def read_npz(path: str | PathLike[str], expected: str) -> dict[str, Any]:
    """All arrays of an archive by name; see ``open_npz``."""
    with open_npz(path, expected) as arrays:
        return {name: arrays[name] for name in arrays.names}
