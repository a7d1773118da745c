"""What goes wrong with the content of a file, as one kind of error that names the file."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike, fspath

from lgsim.support.files import OtherFormat
from lgsim.support.messages import one_line
from lgsim.support.reading.size_limits import FileSizeError

SHOWN = 120
"""Letters of an error that a message repeats."""


@contextmanager
def file_faults(path: str | PathLike[str], expected: str, *passed: type[Exception]) -> Iterator[None]:
    """Within the block, whatever the content of a file does becomes a ``ValueError`` that begins with the file.

    Hostile bytes make numpy, json and pyarrow raise almost anything: RecursionError, MemoryError, TokenError. So all
    errors count as faults of the file, but those of its format or size, those of the system, and a missing package.

    Args:
        expected: What was expected, such as "a trajectory that lgsim wrote".
        passed: Further errors that are raised as they are.

    Raises:
        ValueError: the file is something else.
        OSError: the system cannot read it; the error names it.
    """
    place = fspath(path)
    try:
        yield
    except (OtherFormat, FileSizeError, ModuleNotFoundError, *passed):
        raise
    except Exception as error:
        # a damaged archive sends its reader to places before the file: an argument that the system refuses
        if isinstance(error, OSError) and error.errno is not None and error.errno > 0 and error.errno != errno.EINVAL:
            if error.filename is not None:
                raise
            raise type(error)(error.errno, error.strerror, place) from error
        why = short(error).removeprefix(f"{place}: ")
        raise ValueError(f"{place}: expected {expected}, got something else ({why})") from error


def short(error: BaseException) -> str:
    """The text of an error as one phrase; that of a class where the error has none."""
    return (one_line(error) or type(error).__name__)[:SHOWN]
