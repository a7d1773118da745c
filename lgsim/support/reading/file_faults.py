"""Conversion of all errors from a file's content to one kind that names the file."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike, fspath

from lgsim.support.files import OtherFormat
from lgsim.support.messages import one_line
from lgsim.support.reading.size_limits import FileSizeError

SHOWN = 120
"""The number of characters of an error that a message repeats."""


@contextmanager
def file_faults(path: str | PathLike[str], expected: str, *passed: type[Exception]) -> Iterator[None]:
    """Within the block, any error from the content of a file becomes a ``ValueError`` that begins with the file.

    Malicious content makes numpy, json and pyarrow raise almost any error: RecursionError, MemoryError, TokenError. All
    errors thus count as faults of the file, except those of its format or size, system errors, and a missing package.

    Args:
        expected: The expected content, such as "a trajectory that lgsim wrote".
        passed: Further errors that are passed on unchanged.

    Raises:
        ValueError: the file has other content.
        OSError: the system cannot read it; the error names it.
    """
    place = fspath(path)
    try:
        yield
    except (OtherFormat, FileSizeError, ModuleNotFoundError, *passed):
        raise
    except Exception as error:
        # a damaged archive makes its reader seek before the start of the file, which the system refuses
        if isinstance(error, OSError) and error.errno is not None and error.errno > 0 and error.errno != errno.EINVAL:
            if error.filename is not None:
                raise
            raise type(error)(error.errno, error.strerror, place) from error
        why = short(error).removeprefix(f"{place}: ")
        raise ValueError(f"{place}: expected {expected}, got something else ({why})") from error


def short(error: BaseException) -> str:
    """The text of an error as one phrase; the name of its class if it has no text."""
    return (one_line(error) or type(error).__name__)[:SHOWN]
