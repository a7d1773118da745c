"""Stores: a folder with the chunks of a study, written atomically, by one process at a time.

``study.json`` contains the ``StoreMetadata``, ``chunks/00000000.parquet`` and so on the samples with a checksum,
``finished.json`` the number of valid samples once the study is done, ``steps.json`` the integration error, ``lock`` the
process that writes. A store may be untrusted: links in it are not followed, and damage raises ValueError.
"""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import IO, Any, NamedTuple

import numpy as np
from jaxtyping import Shaped

from lgsim.montecarlo.accuracy.step_error import MEAN, StudyStepError
from lgsim.montecarlo.study import INPUT, SAMPLE, flat_names
from lgsim.support.files import TEMPORARY, open_regular, read_json, write_whole
from lgsim.support.packages import own_version, package

FORMAT = "lgsim montecarlo 1"
METADATA, CHUNKS, FINISHED, STEP_ERROR, LOCK = "study.json", "chunks", "finished.json", "steps.json", "lock"
"""The files and the folder of a store."""
_MOST_NUMBERS = 2**24
"""The largest number of values of a sample: larger ones indicate a damaged file."""


class Chunk(NamedTuple):
    """The results of samples ``start`` to ``start + count``.

    Attributes:
        start: The first sample.
        columns: NumPy arrays (count, ...) by name.
    """

    start: int
    columns: dict[str, Shaped[np.ndarray, "count ..."]]

    @property
    def count(self) -> int:
        """The number of samples."""
        return len(next(iter(self.columns.values())))

    def part(self, first: int, stop: int) -> Chunk:
        """The samples ``first`` to ``stop`` of the study, which this chunk must contain."""
        cut = slice(first - self.start, stop - self.start)
        return Chunk(first, {name: x[cut] for name, x in self.columns.items()})


@dataclass(frozen=True)
class StoreMetadata:
    """The study, versions and columns of the chunks of a store.

    Attributes:
        model: Fingerprint of the model; empty if the rollout is a function.
        versions: Versions of the packages that computed the samples, by package.
        samples: Maximum number of samples of the study.
        columns: (dtype, shape of one sample) of each column, by name.
        backend: JAX's backend, such as "cpu".
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
        """Read the metadata of the store in a folder.

        Raises:
            FileNotFoundError: the store does not exist.
            ValueError: the file is damaged or of another format.
        """
        file = path / METADATA
        if not os.path.lexists(file):
            raise FileNotFoundError(f"{path}: expected a store of lgsim.montecarlo, but {METADATA} is missing")
        plain = read_json(file, links=False)
        kind = plain.get("format") if isinstance(plain, dict) else None
        if isinstance(kind, str) and kind != FORMAT:
            raise ValueError(f"{file}: expected the format {FORMAT!r}, got {kind[:60]!r}")
        try:
            return cls._of_plain(plain)
        except Exception as error:
            raise ValueError(
                f"{file}: expected the output of lgsim.montecarlo, got a damaged file ({_reason(error)}); copy the"
                " store again, or run the study into a new one"
            ) from None

    @classmethod
    def _of_plain(cls, plain: dict[str, Any]) -> StoreMetadata:
        """Parse the metadata from the content of a JSON file; may raise any exception for other content."""
        if set(plain) != {each.name for each in fields(cls)}:
            raise ValueError("other keys")
        for name in ("study", "model", "backend", "format"):
            if not isinstance(plain[name], str):
                raise ValueError(f"{name} is not a string")
        if not all(isinstance(x, str) for x in plain["versions"].values()):
            raise ValueError("versions are not strings")
        for name, least, most in (("seed", 0, 2**64 - 1), ("samples", 1, 2**32 - 1), ("tile", 1, 2**24),
                                  ("chunk", 1, 2**48)):  # fmt: skip
            _check_count(name, plain[name], least, most)
        columns = {name: (dtype, tuple(shape)) for name, (dtype, shape) in plain["columns"].items()}
        for dtype, shape in columns.values():
            for size in shape:
                _check_count("columns", size, 0, _MOST_NUMBERS)
            if not isinstance(dtype, str) or np.dtype(dtype).kind not in "biuf" or math.prod(shape) > _MOST_NUMBERS:
                raise ValueError("columns are not values of a sample")
        if not columns:
            raise ValueError("no columns")
        return cls(**{**plain, "columns": columns})

    def mismatch(self, other: StoreMetadata) -> str | None:
        """A message with the reason why the results of another run cannot be added, or None."""
        for name, what in (("model", "model"), ("versions", "version")):
            mine, theirs = getattr(self, name), getattr(other, name)
            if mine != theirs:
                found = f"it has {_words(mine)}, this run has {_words(theirs)}"
                return f"the store belongs to another {what}: {found}; use a new store"
        wrong = self.difference(other.seed, other.tile, other.outputs)
        if not wrong and self.study != other.study:
            wrong = f"{OTHER_PROGRAM} (fingerprint {self.study} in the store, {other.study} here)"
        return (
            f"the store belongs to another study: {wrong}; use a new store, or the study of this one" if wrong else None
        )

    def difference(self, seed: int, tile: int, outputs: Mapping[str, tuple[str, tuple[int, ...]]]) -> str:
        """The differences from a study in seed, tile and outputs, as text; empty if there are none."""
        pairs = [("seed", self.seed, seed), ("tile", self.tile, tile)]
        pairs += [(name, _kind_words(self.outputs.get(name)), _kind_words(outputs.get(name)))
                  for name in sorted(set(self.outputs) | set(outputs))]  # fmt: skip
        return ", ".join(
            f"{name} ({mine} in the store, {theirs} here)" for name, mine, theirs in pairs if mine != theirs
        )

    @property
    def outputs(self) -> dict[str, tuple[str, tuple[int, ...]]]:
        """The columns without those of the inputs, which older stores do not have."""
        return {name: kind for name, kind in self.columns.items() if not name.startswith(INPUT)}


def _check_count(name: str, value: Any, least: int, most: int) -> None:
    """Raise ValueError unless the value is an integer in a range; JSON permits true, Infinity and 1e308 too."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise ValueError(f"{name} is not an integer from {least} to {most}")


def _reason(error: BaseException) -> str:
    """A short description of an error of a reader."""
    return str(error) if type(error) is ValueError and len(str(error)) < 80 else type(error).__name__


OTHER_PROGRAM = "its program, or numbers of its distributions, rollout, outputs or failures"
"""Differences that only a fingerprint shows."""


def _kind_words(kind: tuple[str, tuple[int, ...]] | None) -> str:
    return "none" if kind is None else f"{kind[0]}{list(kind[1]) if kind[1] else ''}"


def _words(value: str | dict[str, str]) -> str:
    return ", ".join(f"{k} {v}" for k, v in value.items()) if isinstance(value, dict) else value or "none"


def package_versions() -> dict[str, str]:
    """Versions of the packages that compute samples, by package."""
    return {"lgsim": own_version(), "jax": version("jax"), "jaxlib": version("jaxlib")}


class Store:
    """The chunks of a study in a folder."""

    def __init__(self, path: str | Path) -> None:
        """Open the store in a folder.

        Raises:
            FileNotFoundError: the store does not exist.
            ValueError: it is damaged, of another format, or contains links.
        """
        self.path = Path(path)
        self.metadata = StoreMetadata.read(self.path)
        if _kind(self.path / CHUNKS) != stat.S_IFDIR:
            raise ValueError(
                f"{self.path / CHUNKS}: expected the folder of the chunks, got {_kind_word(self.path / CHUNKS)}"
            )

    @classmethod
    def exists(cls, path: Path) -> bool:
        """True if there is a store at a path."""
        return os.path.lexists(path / METADATA)

    @classmethod
    def vacant(cls, path: Path) -> bool:
        """True if a store can be created at a path: it does not exist, or contains the rest of one that was killed at
        its start.
        """
        if not path.is_dir():
            return not os.path.lexists(path)
        for file in path.iterdir():
            if file.name == CHUNKS and _kind(file) == stat.S_IFDIR:
                if not all(map(_is_temporary, file.iterdir())):
                    return False
            elif not (_is_temporary(file) or (file.name == LOCK and _is_lock(file))):
                return False
        return True

    @classmethod
    def create(cls, path: str | Path, metadata: StoreMetadata) -> Store:
        """Create a store in a vacant folder."""
        store = cls.__new__(cls)
        store.path = Path(path)
        (store.path / CHUNKS).mkdir(parents=True, exist_ok=True)
        store.write_metadata(metadata)
        return store

    def clean(self) -> None:
        """Remove the temporary files of killed writers; no other process may be writing."""
        for folder in (self.path, self.path / CHUNKS):
            for file in folder.glob(f"{TEMPORARY}*"):
                if _is_temporary(file):
                    file.unlink()

    def write_metadata(self, metadata: StoreMetadata) -> None:
        """Write the metadata."""
        self.write_file(METADATA, json.dumps(asdict(metadata), indent=1).encode())
        self.metadata = metadata

    def bounds(self, index: int) -> tuple[int, int]:
        """(first sample, end) of a chunk."""
        start = index * self.metadata.chunk
        return start, min(start + self.metadata.chunk, self.metadata.samples)

    @property
    def chunks(self) -> int:
        """The number of chunks of the study."""
        return -(-self.metadata.samples // self.metadata.chunk)

    def missing(self) -> list[int]:
        """The indices of the chunks that are missing or, in an extended study, have too few samples."""
        return [k for k in range(self.chunks) if not self.has(k)]

    def has(self, index: int) -> bool:
        """True if a chunk exists with all its samples.

        Raises:
            ValueError: the file is damaged.
        """
        file, (start, stop) = self.file(index), self.bounds(index)
        return os.path.lexists(file) and _row_count(file) == stop - start

    def write(self, index: int, chunk: Chunk) -> None:
        """Add a chunk atomically.

        Raises:
            ValueError: the samples do not match the index.
            OSError: the disk is full; the store is unchanged.
        """
        start, stop = self.bounds(index)
        if (chunk.start, chunk.count) != (start, stop - start):
            raise ValueError(
                f"chunk {index}: expected samples {start} to {stop}, got {chunk.start} to {chunk.start + chunk.count}"
            )
        columns = {name: x for name, x in chunk.columns.items() if name in self.metadata.columns}
        self.write_file(f"{CHUNKS}/{self.file(index).name}", _encode(Chunk(start, columns)))

    def read(self, index: int) -> Chunk:
        """Read the chunk of an index.

        Raises:
            FileNotFoundError: the chunk does not exist.
            ValueError: the file is damaged.
        """
        file = self.file(index)
        if not os.path.lexists(file):
            raise FileNotFoundError(f"{file}: the chunk is missing; resume the study")
        return _decode(file, self.bounds(index), self.metadata.columns)

    @property
    def finished(self) -> int | None:
        """The number of valid samples, or None if the study is not finished.

        Raises:
            ValueError: the file is damaged.
        """
        file = self.path / FINISHED
        if not os.path.lexists(file):
            return None
        plain = read_json(file, links=False)
        try:
            _check_count("samples", plain["samples"], 1, self.metadata.samples)
        except Exception as error:
            raise _damaged_file(file, error) from None
        return plain["samples"]

    def finish(self, samples: int | None) -> None:
        """Write the number of valid samples; None if the study is not finished."""
        if samples is None:
            for name in (FINISHED, STEP_ERROR):
                (self.path / name).unlink(missing_ok=True)
        else:
            self.write_file(FINISHED, json.dumps({"samples": samples}).encode())

    @property
    def step_error(self) -> StudyStepError | None:
        """The integration error of the valid samples; None if it was not computed.

        Raises:
            ValueError: the file is damaged.
        """
        file = self.path / STEP_ERROR
        if not os.path.lexists(file):
            return None
        plain = read_json(file, links=False)
        try:
            found = StudyStepError.from_plain(plain)
            columns = self.metadata.columns
            if not all(columns[name][1] == each[MEAN].value.shape for name, each in found.outputs.items()):
                raise ValueError("outputs of other shapes")
            if not all(name in columns for name in found.verdicts):
                raise ValueError("other failures")
        except Exception as error:
            raise _damaged_file(file, error) from None
        return found if found.samples == self.finished else None

    def write_step_error(self, found: StudyStepError) -> None:
        """Write the integration error."""
        self.write_file(STEP_ERROR, json.dumps(found.to_plain(), indent=1).encode())

    def read_all(self) -> Iterator[Chunk]:
        """Iterate over the chunks before the first missing one; of a finished study over the valid samples."""
        end = self.metadata.samples if self.finished is None else self.finished
        for k in range(self.chunks):
            start, stop = self.bounds(k)
            if start >= end or not os.path.lexists(self.file(k)):
                return
            yield self.read(k).part(start, min(stop, end))

    def files(self) -> list[Path]:
        """The paths of the existing chunks.

        Raises:
            ValueError: one is not a regular file.
        """
        # by listing the folder: a damaged store may declare 2^32 of them
        names = (file.stem for file in (self.path / CHUNKS).iterdir() if file.suffix == ".parquet")
        found = [self.file(k) for k in sorted(int(x) for x in names if x.isdecimal()) if k < self.chunks]
        for file in found:
            open_regular(file, links=False).close()
        return found

    def file(self, index: int) -> Path:
        """The path of a chunk."""
        return self.path / CHUNKS / f"{index:08d}.parquet"

    def write_file(self, name: str, content: bytes) -> None:
        """Write a file of the store atomically.

        Args:
            name: Its path within the store.

        Raises:
            ValueError: the name is a link.
            OSError: writing failed, for example because the disk is full; the store is unchanged.
        """
        file = self.path / name
        try:
            write_whole(file, content, links=False)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                raise
            raise OSError(
                error.errno,
                f"{file}: no space left on the disk for {len(content)} bytes ({error.strerror}); all previous chunks"
                " are complete: free some space and resume",
            ) from error


def _kind(file: Path) -> int:
    """The type of the file at a path, as in ``stat.S_IFMT``, 0 for none; links are not followed."""
    try:
        return stat.S_IFMT(os.lstat(file).st_mode)
    except FileNotFoundError:
        return 0


def _kind_word(file: Path) -> str:
    return {0: "nothing", stat.S_IFLNK: "a link", stat.S_IFREG: "a file"}.get(_kind(file), "something else")


def _is_temporary(file: Path) -> bool:
    """True if a file belongs to a killed writer."""
    return file.name.startswith(TEMPORARY) and _kind(file) == stat.S_IFREG


def _is_lock(file: Path) -> bool:
    """True if a file contains a process id or nothing."""
    if _kind(file) != stat.S_IFREG:
        return False
    with open_regular(file, links=False) as content:
        return content.read(32).strip().isdigit() or not os.lstat(file).st_size


def _damaged_file(file: Path, error: BaseException) -> ValueError:
    return ValueError(f"{file}: the file is damaged; delete it and resume the study ({_reason(error)})")


def _checksum(columns: dict[str, np.ndarray]) -> str:
    digest = hashlib.sha256()
    for name in sorted(columns):
        digest.update(name.encode() + np.ascontiguousarray(columns[name]).tobytes())
    return digest.hexdigest()


def _encode(chunk: Chunk) -> bytes:
    """Serialize a chunk to a parquet file."""
    arrow = _arrow()
    flat = {SAMPLE: arrow.array(np.arange(chunk.start, chunk.start + chunk.count))}
    for name, x in chunk.columns.items():
        parts = x.reshape(len(x), -1).T
        flat |= {each: arrow.array(part) for each, part in zip(flat_names(name, x.shape[1:]), parts, strict=True)}
    table = arrow.table(flat).replace_schema_metadata({"lgsim.sha256": _checksum(chunk.columns)})
    out = arrow.BufferOutputStream()
    # random numbers do not compress, neither by a dictionary
    arrow.parquet.write_table(table, out, use_dictionary=False, compression="none")
    return out.getvalue().to_pybytes()


def _decode(file: Path, bounds: tuple[int, int], columns: dict[str, tuple[str, tuple[int, ...]]]) -> Chunk:
    """Parse the chunk of a parquet file.

    Args:
        bounds: Its first sample and its end; in a study that was extended the last chunk has fewer.

    Raises:
        ValueError: the file is damaged.
    """
    arrow, (start, stop) = _arrow(), bounds
    width = 1 + sum(math.prod(shape) for _, shape in columns.values())
    with open_regular(file, links=False) as content:
        try:
            table = _table(arrow, content, width, stop - start)
            stored = (table.schema.metadata or {})[b"lgsim.sha256"].decode()
            if not np.array_equal(table[SAMPLE].to_numpy(), np.arange(start, start + table.num_rows)):
                raise ValueError("its samples are others")
            found = {}
            for name, (dtype, shape) in columns.items():
                flat = flat_names(name, shape)
                if any(table.schema.field(each).type != arrow.from_numpy_dtype(np.dtype(dtype)) for each in flat):
                    raise ValueError(f"its column {name!r:.40} is not of {dtype}")
                parts = [table[each].to_numpy() for each in flat]
                x = np.stack(parts, axis=1) if parts else np.zeros((table.num_rows, 0))
                found[name] = np.ascontiguousarray(x.reshape(table.num_rows, *shape).astype(dtype))
        except Exception as error:
            raise _damaged(file, _reason(error)) from error
    if _checksum(found) != stored:
        raise _damaged(file, "its checksum does not match")
    return Chunk(start, found)


def _table(arrow: ModuleType, content: IO[bytes], width: int, most: int) -> Any:
    """The table of a parquet file, after its footer confirms the size of a chunk.

    Raises:
        ValueError: it has another size.
    """
    file = arrow.parquet.ParquetFile(content)
    rows, size = file.metadata.num_rows, content.seek(0, os.SEEK_END)
    if file.metadata.num_columns != width or rows > most:
        raise ValueError("it has other columns or more samples")
    # chunks are written without compression: Booleans take an eighth of a byte each
    if rows * width > 8 * size:
        raise ValueError("it is compressed")
    return file.read()


def _row_count(file: Path) -> int:
    """The number of samples in a parquet file, from its footer.

    Raises:
        ValueError: the file is damaged.
    """
    arrow = _arrow()
    with open_regular(file, links=False) as content:
        try:
            return arrow.parquet.ParquetFile(content).metadata.num_rows
        except Exception as error:
            raise _damaged(file, _reason(error)) from error


def _damaged(file: Path, how: str) -> ValueError:
    return ValueError(f"{file}: the chunk is damaged; delete the file and resume the study ({how})")


def _arrow() -> ModuleType:
    """Import pyarrow with its parquet module."""
    package("pyarrow.parquet", "montecarlo", "a store")
    return package("pyarrow", "montecarlo")
