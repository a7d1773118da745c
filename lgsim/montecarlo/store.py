"""One writer at a time."""

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
from typing import Any

import numpy as np

from lgsim.montecarlo.engine import Chunk
from lgsim.montecarlo.study import SAMPLE
from lgsim.support.extras import package
from lgsim.support.files import write_whole


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


FORMAT = "lgsim montecarlo 1"


@dataclass(frozen=True)
class StoreMetadata:
    """What a store says of its results.

    Attributes:
        study: Fingerprint of the study.
        model: Fingerprint of its machine, or empty.
        versions: Of what computed it, by package.
        seed: Of the study.
        samples: How many there are to be.
        tile: Samples computed together.
        chunk: Samples in a chunk.
        columns: (dtype, shape of one sample) by name.
        backend: Of JAX.
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
        """That of a store's folder.

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

    def differs(self, other: StoreMetadata) -> str | None:
        """Why results of another run cannot be added, in words, or None."""
        for name, what in (("model", "model"), ("study", "study"), ("versions", "version")):
            mine, theirs = getattr(self, name), getattr(other, name)
            if mine != theirs:
                return f"the store is of another {what}: it has {_plain(mine)}, this run has {_plain(theirs)}"
        if (self.tile, self.columns) != (other.tile, other.columns):
            return "the store has other columns"
        return None


class Store:
    """The chunks of a study in a folder.

    Args:
        path: An existing store.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.about = StoreMetadata.read(self.path)

    @classmethod
    def exists(cls, path: Path) -> bool:
        """Whether there is a store at a path."""
        return (path / "study.json").exists()

    @classmethod
    def vacant(cls, path: Path) -> bool:
        """Whether a store may be made at a path: nothing is there, or what one left that was killed at once."""
        if not path.is_dir():
            return not path.exists()
        files = {file.name for file in path.iterdir() if not file.name.startswith(".")}
        return files <= {"chunks", "lock"} and not any((path / "chunks").glob("*"))

    @classmethod
    def create(cls, path: str | Path, about: StoreMetadata) -> Store:
        """A new store in a folder that is vacant."""
        store = cls.__new__(cls)
        store.path = Path(path)
        (store.path / "chunks").mkdir(parents=True, exist_ok=True)
        store.describe(about)
        return store

    def clean(self) -> None:
        """Remove what writers left that were killed while they wrote; none may write now."""
        for folder in (self.path, self.path / "chunks"):
            for file in folder.glob(".*.*"):
                file.unlink()

    def describe(self, about: StoreMetadata) -> None:
        """Write what the store is."""
        self._write(self.path / "study.json", json.dumps(asdict(about), indent=1).encode())
        self.about = about

    def bounds(self, index: int) -> tuple[int, int]:
        """(first sample, the one after the last) of a chunk."""
        start = index * self.about.chunk
        return start, min(start + self.about.chunk, self.about.samples)

    @property
    def chunks(self) -> int:
        """How many chunks the study has."""
        return -(-self.about.samples // self.about.chunk)

    def missing(self) -> list[int]:
        """The chunks that are not there yet or, the study having been extended, have too few samples."""
        return [k for k in range(self.chunks) if not self.has(k)]

    def has(self, index: int) -> bool:
        """Whether a chunk is there with all its samples.

        Raises:
            ValueError: the file is damaged.
        """
        file, (start, stop) = self.file(index), self.bounds(index)
        return file.exists() and _rows(file) == stop - start

    def write(self, index: int, chunk: Chunk) -> None:
        """Add a chunk, whole or not at all.

        Raises:
            ValueError: it has other samples than the chunk of that index.
            OSError: the disk is full; the store is as it was.
        """
        start, stop = self.bounds(index)
        if (chunk.start, chunk.count) != (start, stop - start):
            raise ValueError(
                f"chunk {index}: expected samples {start} to {stop}, got {chunk.start} to {chunk.start + chunk.count}"
            )
        self._write(self.file(index), _encoded(chunk))

    def read(self, index: int) -> Chunk:
        """A chunk.

        Raises:
            FileNotFoundError: it is not there.
            ValueError: the file is damaged.
        """
        file = self.file(index)
        if not file.exists():
            raise FileNotFoundError(f"{file}: the chunk is not there; resume the study")
        return _decoded(file, index * self.about.chunk, self.about.columns)

    @property
    def finished(self) -> int | None:
        """How many samples count, or None where the study is not done."""
        file = self.path / "finished.json"
        return json.loads(file.read_text(encoding="utf-8"))["samples"] if file.exists() else None

    def finish(self, samples: int | None) -> None:
        """Say how many samples count, or that the study is not done."""
        file = self.path / "finished.json"
        if samples is None:
            file.unlink(missing_ok=True)
        else:
            self._write(file, json.dumps({"samples": samples}).encode())

    def read_all(self) -> Iterator[Chunk]:
        """All chunks from the first up to one that is missing; of a finished study the samples that count."""
        end = self.about.samples if self.finished is None else self.finished
        for k in range(self.chunks):
            start, stop = self.bounds(k)
            if start >= end or not self.file(k).exists():
                return
            yield self.read(k).part(start, min(stop, end))

    def files(self) -> list[Path]:
        """The files of the chunks that are there."""
        return [self.file(k) for k in range(self.chunks) if self.file(k).exists()]

    def file(self, index: int) -> Path:
        """Where a chunk is."""
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


def _plain(value: Any) -> str:
    return ", ".join(f"{k} {v}" for k, v in value.items()) if isinstance(value, dict) else value or "none"


def _digest(columns: dict[str, np.ndarray]) -> str:
    digest = hashlib.sha256()
    for name in sorted(columns):
        digest.update(name.encode() + np.ascontiguousarray(columns[name]).tobytes())
    return digest.hexdigest()


def _encoded(chunk: Chunk) -> bytes:
    arrow = _arrow()
    flat = {SAMPLE: arrow.array(np.arange(chunk.start, chunk.start + chunk.count))}
    for name, x in chunk.columns.items():
        parts = x.reshape(len(x), -1).T
        flat |= {each: arrow.array(part) for each, part in zip(flat_names(name, x.shape[1:]), parts, strict=True)}
    table = arrow.table(flat).replace_schema_metadata({"lgsim.sha256": _digest(chunk.columns)})
    out = arrow.BufferOutputStream()
    # random numbers gain nothing from a dictionary or compression
    arrow.parquet.write_table(table, out, use_dictionary=False, compression="none")
    return out.getvalue().to_pybytes()


def _rows(file: Path) -> int:
    """How many samples a file has, by its last bytes alone."""
    arrow = _arrow()
    try:
        return arrow.parquet.ParquetFile(file).metadata.num_rows
    except (ValueError, OSError, arrow.ArrowException) as error:
        raise _damaged(file, type(error).__name__) from error


def _damaged(file: Path, how: str) -> ValueError:
    return ValueError(f"{file}: the chunk is damaged; delete the file and resume the study ({how})")


def _decoded(file: Path, start: int, columns: dict[str, tuple[str, tuple[int, ...]]]) -> Chunk:
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
    if _digest(found) != stored:
        raise _damaged(file, "its checksum does not fit")
    return Chunk(start, found)


def _arrow() -> Any:
    package("pyarrow.parquet", "montecarlo", "a store")
    return package("pyarrow", "montecarlo")
