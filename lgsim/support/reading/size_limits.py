"""How many bytes a file may hold or unpack to, known before they are read."""

from __future__ import annotations

import math
import os
from pathlib import Path

VARIABLE = "LGSIM_MAX_BYTES"
"""The variable of the environment that sets the limit."""
_DEFAULT = 2**31
_PIECE = 2**20


class FileSizeError(ValueError):
    """A file is larger than the limit, or unpacks to more.

    Attributes:
        reason: The fault without the file.
    """

    def __init__(self, place: object, reason: str) -> None:
        super().__init__(f"{place}: {reason}")
        self.reason = reason


def limit_of(variable: str, usual: int) -> int:
    """The limit that a variable of the environment sets, or the usual one.

    Raises:
        ValueError: the variable is set to something else than a positive number.
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
        ValueError: the variable is set to something else than a positive number.
    """
    return limit_of(VARIABLE, _DEFAULT)


def check_size(place: object, size: int, what: str = "unpacks to") -> None:
    """Check that a size is within the limit.

    Args:
        place: The file, for the message.
        size: The number of bytes.
        what: What has that size, as a verb after the file.

    Raises:
        FileSizeError: it is above the limit, or the variable that sets this holds no number; the message has it.
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
    """The content of a file that is within the limit.

    Raises:
        FileSizeError: it is larger; of a pipe or a device no more than the limit is read.
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
