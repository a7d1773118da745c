"""Archives of arrays: only plain numbers and strings are read, and never more bytes than the archive states."""

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
"""Dtype kinds of plain data: no objects, which are pickled, and no records."""
_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
# for other methods zipfile cannot bound the unpacked size
_COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
# numpy's own bound, above which its header parser is not safe
_LONGEST_HEADER = 10_000


class Arrays:
    """The arrays of an open archive, read on access.

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
        """Read an array.

        Raises:
            Exception: there is no such array, or its bytes are damaged: any error of numpy and zipfile.
        """
        member = self._members[name]
        if member.compress_type not in _COMPRESSIONS:
            raise ValueError("a compression that numpy does not write")
        with self._archive.open(member) as file:
            return _array(file, member.file_size)


def _array(file: Any, size: int) -> np.ndarray:
    """The array of a member with the size in bytes that the archive states."""
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
    # exactly that many bytes: zipfile would unpack beyond the size that an archive states
    flat = np.frombuffer(file.read(count), dtype).astype(dtype.newbyteorder("="))
    # invalid code points make Python strings that raise a SystemError later
    if dtype.kind == "U" and np.any(flat.view(np.uint32) > sys.maxunicode):
        raise ValueError("a string with invalid code points")
    return flat.reshape(shape[::-1]).T if fortran else flat.reshape(shape)


@contextmanager
def open_npz(path: str | PathLike[str], expected: str, *passed: type[Exception]) -> Iterator[Arrays]:
    """The arrays of an archive, within a block of ``file_faults``.

    Args:
        expected: The expected content, such as "a trajectory that lgsim wrote", for the message.
        passed: Further errors that are passed on unchanged.

    Raises:
        ValueError: it is not an archive, or the block met a fault of its content.
        FileSizeError: the archive states a size above ``LGSIM_MAX_BYTES``; no array exceeds the stated size when read.
        OSError: it cannot be read.
    """
    with file_faults(path, expected, *passed), open_regular(Path(path)) as content, zipfile.ZipFile(content) as archive:
        check_size(path, sum(member.file_size for member in archive.infolist()))
        yield Arrays(archive)


def read_npz(path: str | PathLike[str], expected: str) -> dict[str, Any]:
    """All arrays of an archive by name; see ``open_npz``."""
    with open_npz(path, expected) as arrays:
        return {name: arrays[name] for name in arrays.names}
