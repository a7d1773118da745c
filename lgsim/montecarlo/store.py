"""Stores: a folder with the chunks of a study, written by one process at a time, chunk by chunk whole or not at all.

``study.json`` holds the ``StoreMetadata``, ``chunks/00000000.parquet`` and so on the samples with a checksum,
``finished.json`` the number of samples that count once the study is done, ``steps.json`` the error of its steps,
``lock`` the process that writes.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import numpy as np
from jaxtyping import Shaped

from lgsim.montecarlo.step_error import StudyStepError
from lgsim.montecarlo.study import SAMPLE
from lgsim.support.files import write_whole
from lgsim.support.packages import package

FORMAT = "lgsim montecarlo 1"
STEP_ERROR = "steps.json"
"""The file of the error of the steps."""


class Chunk(NamedTuple):
    """The results of samples ``start`` to ``start + count``.

    Attributes:
        start: The first sample.
        columns: Arrays of NumPy (count, ...) by name.
    """

    start: int
    columns: dict[str, Shaped[np.ndarray, "count ..."]]

    @property
    def count(self) -> int:
        """The number of samples."""
        return len(next(iter(self.columns.values())))

    def part(self, first: int, stop: int) -> Chunk:
        """The samples ``first`` to ``stop`` of the study, which this chunk must have."""
        cut = slice(first - self.start, stop - self.start)
        return Chunk(first, {name: x[cut] for name, x in self.columns.items()})


@dataclass(frozen=True)
class StoreMetadata:
    """The study, the versions and the columns that the chunks of a store belong to.

    Attributes:
        study: Fingerprint of the study.
        model: Fingerprint of its machine; empty for a rollout that is a function.
        versions: Versions of the packages that computed the samples, by package.
        seed: Seed of the study.
        samples: Number of samples of the study, at most.
        tile: Number of samples computed together.
        chunk: Number of samples in a chunk.
        columns: (dtype, shape of one sample) of each column, by name.
        backend: JAX's backend, such as "cpu".
        format: Name of the format of the files.
    """

    study: str
    model: str
    versions: dict[str, str]
    seed: int
    samples: int
    tile: int
    chunk: int
    columns: dict[str, tuple[str, tuple[int, ...]]]
    backend: str
    format: str = field(default=FORMAT)

    @classmethod
    def read(cls, path: Path) -> StoreMetadata:
        """The metadata of the store in a folder.

        Raises:
            FileNotFoundError: there is no store.
            ValueError: the file is damaged or of another format.
        """
        file = path / "study.json"
        if not file.exists():
            raise FileNotFoundError(f"{path}: expected a store of lgsim.montecarlo, found no study.json")
        try:
            plain = json.loads(file.read_text(encoding="utf-8"))
            if plain["format"] != FORMAT:
                raise ValueError(f"{file}: expected the format {FORMAT!r}, got {plain['format']!r}")
            columns = {name: (dtype, tuple(shape)) for name, (dtype, shape) in plain.pop("columns").items()}
            return cls(columns=columns, **plain)
        except (KeyError, TypeError, json.JSONDecodeError) as error:
            raise ValueError(f"{file}: expected what lgsim.montecarlo wrote, got {type(error).__name__}") from None

    def mismatch(self, other: StoreMetadata) -> str | None:
        """Why the results of another run cannot be added, in words, or None where they can."""
        for name, what in (("model", "model"), ("study", "study"), ("versions", "version")):
            mine, theirs = getattr(self, name), getattr(other, name)
            if mine != theirs:
                return f"the store is of another {what}: it has {_words(mine)}, this run has {_words(theirs)}"
        if (self.tile, self.columns) != (other.tile, other.columns):
            return "the store has other columns"
        return None


def _words(value: str | dict[str, str]) -> str:
    return ", ".join(f"{k} {v}" for k, v in value.items()) if isinstance(value, dict) else value or "none"


class Store:
    """The chunks of a study in a folder.

    Attributes:
        path: The folder.
        metadata: The metadata.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.metadata = StoreMetadata.read(self.path)

    @classmethod
    def exists(cls, path: Path) -> bool:
        """Whether there is a store at a path."""
        return (path / "study.json").exists()

    @classmethod
    def vacant(cls, path: Path) -> bool:
        """Whether a store may be made at a path: nothing is there, or the rest of one that was killed at its start."""
        if not path.is_dir():
            return not path.exists()
        files = {file.name for file in path.iterdir() if not file.name.startswith(".")}
        return files <= {"chunks", "lock"} and not any((path / "chunks").glob("*"))

    @classmethod
    def create(cls, path: str | Path, metadata: StoreMetadata) -> Store:
        """A new store in a vacant folder."""
        store = cls.__new__(cls)
        store.path = Path(path)
        (store.path / "chunks").mkdir(parents=True, exist_ok=True)
        store.write_metadata(metadata)
        return store

    def clean(self) -> None:
        """Remove the temporary files of writers that were killed; no process may write now."""
        for folder in (self.path, self.path / "chunks"):
            for file in folder.glob(".*.*"):
                file.unlink()

    def write_metadata(self, metadata: StoreMetadata) -> None:
        """Write the metadata."""
        self._write(self.path / "study.json", json.dumps(asdict(metadata), indent=1).encode())
        self.metadata = metadata

    def bounds(self, index: int) -> tuple[int, int]:
        """(first sample, the one after the last) of a chunk."""
        start = index * self.metadata.chunk
        return start, min(start + self.metadata.chunk, self.metadata.samples)

    @property
    def chunks(self) -> int:
        """The number of chunks of the study."""
        return -(-self.metadata.samples // self.metadata.chunk)

    def missing(self) -> list[int]:
        """The indices of the chunks that are not there yet or, in an extended study, have too few samples."""
        return [k for k in range(self.chunks) if not self.has(k)]

    def has(self, index: int) -> bool:
        """Whether a chunk is there with all its samples.

        Raises:
            ValueError: the file is damaged.
        """
        file, (start, stop) = self.file(index), self.bounds(index)
        return file.exists() and _row_count(file) == stop - start

    def write(self, index: int, chunk: Chunk) -> None:
        """Add a chunk, whole or not at all.

        Raises:
            ValueError: the samples are not those of the index.
            OSError: the disk is full; the store is as it was.
        """
        start, stop = self.bounds(index)
        if (chunk.start, chunk.count) != (start, stop - start):
            raise ValueError(
                f"chunk {index}: expected samples {start} to {stop}, got {chunk.start} to {chunk.start + chunk.count}"
            )
        self._write(self.file(index), _encode(chunk))

    def read(self, index: int) -> Chunk:
        """The chunk of an index.

        Raises:
            FileNotFoundError: the chunk is not there.
            ValueError: the file is damaged.
        """
        file = self.file(index)
        if not file.exists():
            raise FileNotFoundError(f"{file}: the chunk is not there; resume the study")
        return _decode(file, index * self.metadata.chunk, self.metadata.columns)

    @property
    def finished(self) -> int | None:
        """The number of samples that count, or None where the study is not done."""
        file = self.path / "finished.json"
        return json.loads(file.read_text(encoding="utf-8"))["samples"] if file.exists() else None

    def finish(self, samples: int | None) -> None:
        """Write how many samples count; None where the study is not done."""
        file = self.path / "finished.json"
        if samples is None:
            file.unlink(missing_ok=True)
            (self.path / STEP_ERROR).unlink(missing_ok=True)
        else:
            self._write(file, json.dumps({"samples": samples}).encode())

    @property
    def step_error(self) -> StudyStepError | None:
        """The error of the steps of the samples that count; None where it was not looked for.

        Raises:
            ValueError: the file is damaged.
        """
        file = self.path / STEP_ERROR
        if not file.exists():
            return None
        try:
            found = StudyStepError.from_plain(json.loads(file.read_text(encoding="utf-8")))
        except ValueError as error:
            raise ValueError(f"{file}: the file is damaged; delete it and resume the study ({error})") from None
        return found if found.samples == self.finished else None

    def write_step_error(self, found: StudyStepError) -> None:
        """Write the error of the steps."""
        self._write(self.path / STEP_ERROR, json.dumps(found.to_plain(), indent=1).encode())

    def read_all(self) -> Iterator[Chunk]:
        """The chunks before the first one that is missing; of a finished study the samples that count."""
        end = self.metadata.samples if self.finished is None else self.finished
        for k in range(self.chunks):
            start, stop = self.bounds(k)
            if start >= end or not self.file(k).exists():
                return
            yield self.read(k).part(start, min(stop, end))

    def files(self) -> list[Path]:
        """The paths of the chunks that are there."""
        return [self.file(k) for k in range(self.chunks) if self.file(k).exists()]

    def file(self, index: int) -> Path:
        """The path of a chunk."""
        return self.path / "chunks" / f"{index:08d}.parquet"

    def _write(self, file: Path, content: bytes) -> None:
        try:
            write_whole(file, content)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                raise
            raise OSError(
                error.errno,
                f"{file}: no room on the disk for {len(content)} bytes ({error.strerror}); all that was written before"
                " is whole: make room and resume",
            ) from error


def flat_names(name: str, shape: tuple[int, ...]) -> list[str]:
    """A column's name for each number of an output: "x", "x[0]", "x[1,2]"."""
    return [f"{name}[{','.join(map(str, place))}]" if shape else name for place in np.ndindex(*shape)]


def _checksum(columns: dict[str, np.ndarray]) -> str:
    digest = hashlib.sha256()
    for name in sorted(columns):
        digest.update(name.encode() + np.ascontiguousarray(columns[name]).tobytes())
    return digest.hexdigest()


def _encode(chunk: Chunk) -> bytes:
    """A chunk as a parquet file."""
    arrow = _arrow()
    flat = {SAMPLE: arrow.array(np.arange(chunk.start, chunk.start + chunk.count))}
    for name, x in chunk.columns.items():
        parts = x.reshape(len(x), -1).T
        flat |= {each: arrow.array(part) for each, part in zip(flat_names(name, x.shape[1:]), parts, strict=True)}
    table = arrow.table(flat).replace_schema_metadata({"lgsim.sha256": _checksum(chunk.columns)})
    out = arrow.BufferOutputStream()
    # random numbers gain nothing from a dictionary or compression
    arrow.parquet.write_table(table, out, use_dictionary=False, compression="none")
    return out.getvalue().to_pybytes()


def _decode(file: Path, start: int, columns: dict[str, tuple[str, tuple[int, ...]]]) -> Chunk:
    """The chunk of a parquet file whose first sample is ``start``.

    Raises:
        ValueError: the file is damaged.
    """
    arrow = _arrow()
    try:
        table = arrow.parquet.read_table(file)
        stored = (table.schema.metadata or {})[b"lgsim.sha256"].decode()
        found = {}
        for name, (dtype, shape) in columns.items():
            parts = [table[each].to_numpy() for each in flat_names(name, shape)]
            x = np.stack(parts, axis=1) if parts else np.zeros((table.num_rows, 0))
            found[name] = np.ascontiguousarray(x.reshape(table.num_rows, *shape).astype(dtype))
    except (KeyError, ValueError, OSError, arrow.ArrowException) as error:
        raise _damaged(file, type(error).__name__) from error
    if _checksum(found) != stored:
        raise _damaged(file, "its checksum does not fit")
    return Chunk(start, found)


def _row_count(file: Path) -> int:
    """The number of samples in a parquet file, by its last bytes alone.

    Raises:
        ValueError: the file is damaged.
    """
    arrow = _arrow()
    try:
        return arrow.parquet.ParquetFile(file).metadata.num_rows
    except (ValueError, OSError, arrow.ArrowException) as error:
        raise _damaged(file, type(error).__name__) from error


def _damaged(file: Path, how: str) -> ValueError:
    return ValueError(f"{file}: the chunk is damaged; delete the file and resume the study ({how})")


def _arrow() -> ModuleType:
    """pyarrow, its parquet module imported."""
    package("pyarrow.parquet", "montecarlo", "a store")
    return package("pyarrow", "montecarlo")


_TAKEN = (errno.EACCES, errno.EAGAIN, errno.EWOULDBLOCK, errno.EDEADLK)
"""Errors by which a system says that another process holds a lock."""


@contextmanager
def file_lock(path: Path) -> Iterator[None]:
    """Hold a lock on a file for this process; the system frees it however the process ends.

    Args:
        path: The file, which stays; the holder's process id is written in it.

    Raises:
        RuntimeError: another process holds the lock.
        OSError: the file system has no locks.
    """
    with open(path, "a+", encoding="ascii") as file:
        if not _try_lock(file.fileno()):
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


def _try_lock(handle: int) -> bool:
    """Whether the lock on an open file is now this process's; the system frees it with the file.

    Raises:
        OSError: the file system has no locks.
    """
    try:
        if os.name == "nt":
            msvcrt = import_module("msvcrt")
            # one byte far behind the text, which others may then read
            os.lseek(handle, 2**20, os.SEEK_SET)
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            fcntl = import_module("fcntl")
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in _TAKEN:
            raise
        return False
    return True
