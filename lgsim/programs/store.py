"""Compiled programs in the user's cache: one file each, under a name that is a hash of all that it depends on.

An entry begins with a hash of what follows, so that a damaged one is not run; it is written whole or not at all, so
that two processes may share the folder. A folder that cannot be read or written is no error: nothing is kept then.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from lgsim.support.files import write_whole

_DIGEST = 32


def folder() -> Path:
    """The folder: ``LGSIM_CACHE_DIR``, else ``lgsim/programs`` in the user's folder for caches."""
    given = os.environ.get("LGSIM_CACHE_DIR")
    if given:
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lgsim" / "programs"


def read_entry(name: str) -> bytes | None:
    """What was kept under a name, or None where there is nothing or it is damaged."""
    try:
        content = (folder() / name).read_bytes()
    except (OSError, RuntimeError):
        return None
    digest, code = content[:_DIGEST], content[_DIGEST:]
    return code if code and hashlib.sha256(code).digest() == digest else None


def write_entry(name: str, code: bytes) -> None:
    """Keep object code under a name, where the folder can be written."""
    try:
        place = folder()
        place.mkdir(parents=True, exist_ok=True)
        write_whole(place / name, hashlib.sha256(code).digest() + code)
    except (OSError, RuntimeError):
        return
