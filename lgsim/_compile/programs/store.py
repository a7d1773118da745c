"""Compiled programs in the user's cache: one file each, named by a hash of everything that it depends on.

An entry begins with a hash of its name and content, so that a damaged or renamed entry is not run. Entries are written
atomically, so that processes may share the folder.

A hash does not prevent forgery: object code runs in the process, and anyone with write access to the folder can create
an entry. Only ownership and permissions prevent it. So a folder or an entry that another user owns or may write is not
used. A folder that cannot be read or written is not an error: nothing is cached then.
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
"""Maximum size of an entry; object code of the longest programs has a twentieth of it."""

_DIGEST = 32

# without O_NONBLOCK, opening a pipe would block; Windows has neither
_ENTRY = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)

_refused: set[Path] = set()
"""The folders for which the process has warned."""


def folder() -> Path:
    """The folder: ``LGSIM_CACHE_DIR``, else ``lgsim/programs`` in the user's cache folder."""
    given = os.environ.get("LGSIM_CACHE_DIR")
    if given:
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lgsim" / "programs"


def read_entry(name: str) -> bytes | None:
    """The content of an entry, or None if it is missing, damaged, renamed or owned by another user."""
    try:
        place = folder()
        return read_file(place / name, _foreign) if _serves(place) else None
    except (OSError, RuntimeError):
        return None


def read_file(path: Path, refused: Callable[[os.stat_result], Any] = lambda found: None) -> bytes | None:
    """The content of an entry, or None if it is damaged, renamed or not a regular file.

    Args:
        refused: A function that returns a true value for a file status to reject.

    Raises:
        OSError: the file does not exist or cannot be read.
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
    """Store an entry if the folder is writable."""
    if len(code) > MOST_BYTES:
        return
    try:
        place = folder()
        if private_folder(place):
            _replace(place, name, entry_bytes(name, code))
    except (OSError, RuntimeError):
        return


def private_folder(place: Path, variable: str = "LGSIM_CACHE_DIR") -> bool:
    """Create a folder that only the user can write; True if it is private, else False with one warning.

    Args:
        variable: The environment variable for another folder, for the warning.

    Raises:
        OSError: the folder cannot be created.
    """
    place.mkdir(0o700, parents=True, exist_ok=True)
    return _serves(place, variable)


def _folder_fault(place: Path) -> str | None:
    """The reason why another user may have written to a folder, as text, or None.

    Raises:
        OSError: the folder does not exist or cannot be accessed.
    """
    found = os.lstat(place)
    if not stat.S_ISDIR(found.st_mode):
        return f"it is not a folder but a {'link' if stat.S_ISLNK(found.st_mode) else 'file'}"
    return _foreign(found)


def _foreign(found: os.stat_result) -> str | None:
    """The reason why another user may have written a file with this status, as text, or None."""
    if not hasattr(os, "geteuid"):  # Windows protects the user's cache folder by other means
        return None
    if found.st_uid != os.geteuid():
        return "it belongs to another user"
    return "others have write access" if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) else None


def _serves(place: Path, variable: str = "LGSIM_CACHE_DIR") -> bool:
    """True if only the user can have written to a folder; otherwise False, with one warning."""
    fault = _folder_fault(place)
    if fault is not None and place not in _refused:
        _refused.add(place)
        warnings.warn(
            f"lgsim: the cache {place} is not used, and programs are compiled again: {fault}, and its content would"
            f" run; delete it, and lgsim creates a private one, or name another one by {variable}",
            RuntimeWarning,
            stacklevel=3,
        )
    return fault is None


def _replace(place: Path, name: str, content: bytes) -> None:
    """Replace any entry by a new one; links are not followed, and nothing is synced to disk."""
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
