"""Compiled programs in the user's cache: one file each, under a name that is a hash of all that it depends on.

An entry begins with a hash of its name and of what follows, so that an entry that is damaged, or was moved to another
name, is not run. It is written whole or not at all, so that two processes may share the folder.

A hash does not stop a forger: object code runs in the process, and whoever may write the folder can make any entry.
Only the folder's owner and mode stop one. So a folder or an entry that another user owns or may write is not used. A
folder that cannot be read or written is no error: nothing is kept then.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

MOST_BYTES = 2**28
"""Entries of more bytes are neither kept nor read; object code of the longest programs has a twentieth."""

_DIGEST = 32

# without O_NONBLOCK a pipe in place of an entry is waited for; Windows has neither
_ENTRY = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)

_refused: set[Path] = set()
"""The folders that the process was warned of."""


def folder() -> Path:
    """The folder: ``LGSIM_CACHE_DIR``, else ``lgsim/programs`` in the user's folder for caches."""
    given = os.environ.get("LGSIM_CACHE_DIR")
    if given:
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lgsim" / "programs"


def read_entry(name: str) -> bytes | None:
    """What was kept under a name, or None where there is nothing, or it is damaged or of another name or user."""
    try:
        place = folder()
        return read_file(place / name, _foreign) if _serves(place) else None
    except (OSError, RuntimeError):
        return None


def read_file(path: Path, refused: Callable[[os.stat_result], Any] = lambda found: None) -> bytes | None:
    """What an entry holds, or None where it is damaged, of another name, or no regular file.

    Args:
        refused: Whether a file of this status is not read.

    Raises:
        OSError: it is not there or cannot be read.
    """
    handle = os.open(path, _ENTRY)
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode) or found.st_size > _DIGEST + MOST_BYTES or refused(found):
            return None
        with os.fdopen(handle, "rb", closefd=False) as file:
            content = file.read(found.st_size)
    finally:
        os.close(handle)
    digest, code = content[:_DIGEST], content[_DIGEST:]
    return code if code and _hash(path.name, code) == digest else None


def entry_bytes(name: str, code: bytes) -> bytes:
    """The content of an entry of this name."""
    return _hash(name, code) + code


def write_entry(name: str, code: bytes) -> None:
    """Keep content under a name, where the folder can be written."""
    if len(code) > MOST_BYTES:
        return
    try:
        place = folder()
        if private_folder(place):
            _replace(place, name, entry_bytes(name, code))
    except (OSError, RuntimeError):
        return


def private_folder(place: Path, variable: str = "LGSIM_CACHE_DIR") -> bool:
    """Make a folder of the user's alone; whether it is one, else the user is warned, once.

    Args:
        variable: The environment variable that names another one, for the warning.

    Raises:
        OSError: it cannot be made.
    """
    place.mkdir(0o700, parents=True, exist_ok=True)
    return _serves(place, variable)


def _folder_fault(place: Path) -> str | None:
    """Why another user may have put into a folder what is there, in words; None where none can have.

    Raises:
        OSError: there is no such folder, or it cannot be reached.
    """
    found = os.lstat(place)
    if not stat.S_ISDIR(found.st_mode):
        return f"it is no folder but a {'link' if stat.S_ISLNK(found.st_mode) else 'file'}"
    return _foreign(found)


def _foreign(found: os.stat_result) -> str | None:
    """Why what has this status may come from another user, in words; None where it may not."""
    if not hasattr(os, "geteuid"):  # Windows keeps the user's folder for caches from others by other means
        return None
    if found.st_uid != os.geteuid():
        return "it belongs to another user"
    return "others may write it" if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) else None


def _serves(place: Path, variable: str = "LGSIM_CACHE_DIR") -> bool:
    """Whether the user alone can have put into a folder what is there; else the user is warned, once."""
    fault = _folder_fault(place)
    if fault is not None and place not in _refused:
        _refused.add(place)
        warnings.warn(
            f"lgsim: the cache {place} is not used, and programs are compiled anew: {fault}, and what is in it would"
            f" run; delete it, and lgsim makes one that is yours alone, or name another one by {variable}",
            RuntimeWarning,
            stacklevel=3,
        )
    return fault is None


def _replace(place: Path, name: str, content: bytes) -> None:
    """Write an entry in place of whatever is there; nothing in a cache is worth to be followed, kept or synced."""
    handle, temporary = tempfile.mkstemp(dir=place, prefix=".lgsim-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(temporary, place / name)
    except BaseException:
        os.unlink(temporary)
        raise


def _hash(name: str, code: bytes) -> bytes:
    return hashlib.sha256(b"lgsim entry 2\n" + name.encode() + b"\n" + code).digest()
