"""One writer at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a file for this process; it is free again however the process ends.

    Args:
        path: Of the lock, which stays; the holder's process id is written in it.

    Raises:
        RuntimeError: another process holds it.
    """
    with open(path, "a+", encoding="ascii") as file:
        if not _held(file.fileno()):
            file.seek(0)
            raise RuntimeError(
                f"{path.parent}: another process writes to this store (process {file.read().strip() or 'unknown'});"
                " wait for it or end it"
            )
        file.seek(0)
        file.truncate()
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield


def _held(handle: int) -> bool:
    """Whether the lock is now this process's; the system frees it with the file."""
    try:
        if os.name == "nt":
            msvcrt = import_module("msvcrt")
            # one byte far behind the text, which others may then read
            os.lseek(handle, 2**20, os.SEEK_SET)
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            fcntl = import_module("fcntl")
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
