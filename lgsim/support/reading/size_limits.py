"""Limits on the size of a file and its unpacked content, checked before reading."""

from __future__ import annotations

import math
import os
from pathlib import Path

VARIABLE = "LGSIM_MAX_BYTES"
"""The environment variable that sets the limit."""
_DEFAULT = 2**31
_PIECE = 2**20


class FileSizeError(ValueError):
    """A file is larger than the limit, or unpacks to more.

    Attributes:
        reason: The fault without the file name.
    """

    def __init__(self, place: object, reason: str) -> None:
        super().__init__(f"{place}: {reason}")
        self.reason = reason


def limit_of(variable: str, usual: int) -> int:
    """The limit that an environment variable sets, or the default.

    Raises:
        ValueError: the variable is not a positive number.
    """
    text = os.environ.get(variable, "").strip()
    try:
        limit = float(text) if text else float(usual)
    except ValueError:
        limit = math.nan
    if not 1 <= limit < math.inf:
        raise ValueError(f"{variable}: expected a number such as 4e9, got {text!r}")
    return int(limit)


def size_limit() -> int:
    """The largest number of bytes: that of ``LGSIM_MAX_BYTES``, or 2 GiB.

    Raises:
        ValueError: the variable is not a positive number.
    """
    return limit_of(VARIABLE, _DEFAULT)


def check_size(place: object, size: int, what: str = "unpacks to") -> None:
    """Check that a size is within the limit.

    Args:
        place: The file, for the message.
        size: The number of bytes.
        what: A verb for the message, after the file.

    Raises:
        FileSizeError: it is above the limit, or the variable that sets the limit is not a number.
    """
    try:
        limit = size_limit()
    except ValueError as error:
        raise FileSizeError(place, str(error)) from None
    if size > limit:
        shown = str(size) if size < 10**30 else "more than 10^30"
        raise FileSizeError(
            place, f"{what} {shown} bytes, expected at most {limit}; if the file is right, set {VARIABLE} to more"
        )


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """The content of a file within the size limit.

    Raises:
        FileSizeError: it is larger; from a pipe or a device no more than the limit is read.
        OSError: it cannot be read.
    """
    parts, size = [], 0
    with Path(path).open("rb") as file:
        check_size(path, os.fstat(file.fileno()).st_size, "has")
        while part := file.read(_PIECE):
            size += len(part)
            check_size(path, size, "has at least")
            parts.append(part)
    return b"".join(parts)
