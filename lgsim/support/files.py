"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that a reader finds the old one or the new one, never a part.

    Raises:
        OSError: it cannot be written, for want of room or of rights; the error names the file.
    """
    with whole_file(path) as file:
        file.write(content)


@contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """A file to write to, which takes the place of another one at the end of the block, and only if all went well.

    Raises:
        OSError: it cannot be written, for want of room or of rights; the error names the file.
    """
    name = None
    try:
        handle, name = tempfile.mkstemp(dir=path.absolute().parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "wb") as file:
            yield file
        # mkstemp makes files that only their owner reads
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(name, 0o666 & ~mask)
        os.replace(name, path)
    except BaseException as error:
        if name is not None:
            os.unlink(name)
        if isinstance(error, OSError) and error.errno is not None and error.filename in (None, name):
            # not the temporary file, whose name says nothing to a user
            raise type(error)(error.errno, error.strerror, str(path)) from error
        raise


@contextmanager
def named_file(path: Path) -> Iterator[None]:
    """Within the block, an error of the system that names no file, such as a full disk, names this one."""
    try:
        yield
    except OSError as error:
        if error.errno is None or error.filename is not None:
            raise
        raise type(error)(error.errno, error.strerror, str(path)) from error


class OtherFormat(ValueError):
    """A file of lgsim in another version of its format than the one that is read."""


def check_format(path: Path, found: object, expected: str) -> None:
    """Whether a file's header names the format that its reader knows.

    Args:
        path: The file, for the message.
        found: What the header names.
        expected: What it should name, such as "lgsim trajectory 1": the kind, and the version of its format.

    Raises:
        OtherFormat: it is the kind, in another version.
        ValueError: it is no such file.
    """
    if found == expected:
        return
    if isinstance(found, str) and found.rpartition(" ")[0] == expected.rpartition(" ")[0]:
        raise OtherFormat(
            f"{path}: expected the format {expected!r}, got {found!r}: "
            "read it with the lgsim that wrote it, or a newer one"
        )
    raise ValueError(f"{path}: expected the format {expected!r}, got {found!r}")
