"""User files: atomic writing, reading of regular files only, and locks."""

from __future__ import annotations

import errno
import json
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import IO, Any

from lgsim.support.reading.size_limits import check_size

TEMPORARY = ".lgsim-"
"""The prefix of the names of incomplete files."""
_MOST_LINKS = 40
_UNSUPPORTED = (errno.EINVAL, errno.ENOTSUP, errno.EBADF)
"""Errors of file systems that cannot sync a folder."""


def write_whole(path: Path, content: bytes, *, links: bool = True) -> None:
    """Write a file atomically: a reader finds the old one or the new one, never a part; see ``whole_file``.

    Args:
        links: True to follow a link and to write into a device or a pipe.

    Raises:
        OSError: it is a folder or cannot be written (no space left, or no permission); the error names the file.
        ValueError: it is a link, a device or a pipe, and ``links`` is False.
    """
    with whole_file(path, links=links) as file:
        file.write(content)


@contextmanager
def whole_file(path: Path, *, links: bool = True) -> Iterator[IO[bytes]]:
    """A file to write to, which replaces another one at the end of the block, and only if no error occurred.

    The new file has the mode of the old one, and is on the disk when the block ends. A link is kept, and the file that
    it points to is written. A device, a pipe or an open file such as /dev/stdout is written into.

    Args:
        links: True to follow a link and to write into a device or a pipe.

    Raises:
        OSError: it is a folder or cannot be written (no space left, or no permission); the error names the file.
        ValueError: it is a link, a device or a pipe, and ``links`` is False.
    """
    if not links and path.is_symlink():
        raise _not_regular(path, stat.S_IFLNK)
    temporary = None
    try:
        place, old = _target(path)
        if place is None:
            if not links:
                raise _not_regular(path, stat.S_IFIFO)
            # append, if it is a file that a shell has open
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_APPEND), "wb") as file:
                yield file
            return
        temporary = place.parent / f"{TEMPORARY}{secrets.token_hex(8)}"
        with _new_file(temporary, old) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, place)
        _sync_folder(place.parent)
    except BaseException as error:
        if temporary is not None:
            with suppress(FileNotFoundError):
                os.unlink(temporary)
        if isinstance(error, OSError) and error.errno is not None and error.filename in (None, str(temporary)):
            # not the temporary file, whose name is meaningless to a user
            raise type(error)(error.errno, error.strerror, str(path)) from error
        raise


def _target(path: Path) -> tuple[Path | None, os.stat_result | None]:
    """The file behind links, None if it must be written into, and its status, None if it does not exist.

    Raises:
        OSError: it is a folder, may not be written, or there are too many links.
    """
    place = path.absolute()
    for _ in range(_MOST_LINKS):
        if place.parts[1:2] == ("proc",) or place.parts[1:3] == ("dev", "fd"):
            break  # these links are not paths
        try:
            place = place.parent / os.readlink(place)
        except OSError:
            break
    else:
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    try:
        status = os.stat(place)
    except FileNotFoundError:
        return place, None
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, "expected a file, got a folder", str(path))
    if not os.access(place, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    is_file = stat.S_ISREG(status.st_mode) and not place.is_symlink()
    return place if is_file else None, status


def _new_file(path: Path, old: os.stat_result | None) -> IO[bytes]:
    """A new file with the owner and the mode of an old one; by default the umask applies."""
    bits = 0o666 if old is None else stat.S_IMODE(old.st_mode) & 0o777
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    handle = os.open(path, flags, bits)
    if old is not None:
        if hasattr(os, "fchown"):
            with suppress(OSError):
                os.fchown(handle, old.st_uid, old.st_gid)
        os.chmod(path, bits)
    return os.fdopen(handle, "wb")


def _sync_folder(folder: Path) -> None:
    """Flush the names in a folder to the disk, if the system can."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:  # a folder that may be written but not read, or Windows
        return
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
    finally:
        os.close(handle)


def open_regular(path: Path, *, links: bool = True) -> IO[bytes]:
    """A file opened for reading, if it is a regular one: reading a pipe would block, and a device may be endless.

    Args:
        links: True to follow a link.

    Raises:
        ValueError: it is not a regular file.
        OSError: it does not exist or may not be read.
    """
    return os.fdopen(_open(path, os.O_RDONLY, links), "rb")


def _open(path: Path, flags: int, links: bool) -> int:
    """The handle of a regular file."""
    if not links and path.is_symlink():
        raise _not_regular(path, stat.S_IFLNK)
    flags |= getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    if not links:
        flags |= getattr(os, "O_NOFOLLOW", 0)
    if path.is_dir():
        raise _not_regular(path, stat.S_IFDIR)
    handle = os.open(path, flags, 0o666)
    kind = os.fstat(handle).st_mode
    if not stat.S_ISREG(kind):
        os.close(handle)
        raise _not_regular(path, kind)
    return handle


def _not_regular(path: Path, kind: int) -> ValueError:
    words = {stat.S_IFLNK: "a link", stat.S_IFDIR: "a folder"}
    return ValueError(f"{path}: expected a regular file, got {words.get(stat.S_IFMT(kind), 'a pipe or a device')}")


def read_json(path: Path, *, links: bool = True) -> Any:
    """The content of a JSON file.

    Args:
        links: True to follow a link.

    Raises:
        ValueError: it is damaged, larger than ``LGSIM_MAX_BYTES``, or not a regular file.
        OSError: it does not exist or may not be read.
    """
    with open_regular(path, links=links) as file:
        check_size(path, os.fstat(file.fileno()).st_size, "has")
        content = file.read()
    try:
        return json.loads(content.decode("utf-8"))
    except Exception as error:  # RecursionError and MemoryError too
        raise ValueError(f"{path}: expected JSON, got a damaged file ({type(error).__name__})") from None


class FileLock:
    """A file that this process has locked.

    Args:
        handle: The open file.
    """

    def __init__(self, handle: int) -> None:
        self._handle = handle

    def sign(self) -> None:
        """Replace the content of the file by this process's id."""
        os.ftruncate(self._handle, 0)
        os.lseek(self._handle, 0, os.SEEK_SET)
        os.write(self._handle, f"{os.getpid()}\n".encode())


_TAKEN = (errno.EACCES, errno.EAGAIN, errno.EWOULDBLOCK, errno.EDEADLK)
"""Errors that report that another process holds a lock."""


@contextmanager
def file_lock(path: Path) -> Iterator[FileLock]:
    """Hold a lock on a file for this process; the system frees it however the process ends.

    Args:
        path: The file, which is created if it does not exist, and kept; its content is unchanged until it is signed.

    Raises:
        ValueError: it is a link or not a regular file.
        RuntimeError: another process holds the lock.
        OSError: the file may not be written, or the file system has no locks.
    """
    handle = _open(path, os.O_RDWR | os.O_CREAT, links=False)
    try:
        if not _try_lock(handle):
            signed = os.read(handle, 32).strip()
            holder = signed.decode() if signed.isdigit() and len(signed) < 20 else "unknown"
            raise RuntimeError(
                f"{path.parent}: another process writes to this store (process {holder}); wait for it or end it"
            )
        yield FileLock(handle)
    finally:
        os.close(handle)


def _try_lock(handle: int) -> bool:
    """True if this process now holds the lock on an open file; the system releases it with the file.

    Raises:
        OSError: the file system has no locks.
    """
    try:
        if os.name == "nt":
            msvcrt = import_module("msvcrt")
            # one byte far beyond the text, which others may then read
            os.lseek(handle, 2**20, os.SEEK_SET)
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
            os.lseek(handle, 0, os.SEEK_SET)
        else:
            fcntl = import_module("fcntl")
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in _TAKEN:
            raise
        return False
    return True


class OtherFormat(ValueError):
    """A file of lgsim in another format version than the supported one."""


def check_format(path: Path, found: object, expected: str) -> None:
    """Check that a file's header names the format that its reader supports.

    Args:
        path: The file, for the message.
        found: The format in the header.
        expected: The expected format, such as "lgsim trajectory 1": the kind, and the version of its format.

    Raises:
        OtherFormat: it is the kind, in another version.
        ValueError: it is not such a file.
    """
    if found == expected:
        return
    if isinstance(found, str) and found.rpartition(" ")[0] == expected.rpartition(" ")[0]:
        raise OtherFormat(
            f"{path}: expected the format {expected!r}, got {found!r}: "
            "read it with the lgsim that wrote it, or a newer one"
        )
    raise ValueError(f"{path}: expected the format {expected!r}, got {found!r}")
