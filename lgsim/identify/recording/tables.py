"""Tables: text, parquet and npz files as numeric arrays by column name."""

from __future__ import annotations

import csv
import hashlib
import math
import re
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Shaped

from lgsim.identify.recording.columns import Slot
from lgsim.identify.recording.report import Finding
from lgsim.support.packages import package
from lgsim.support.reading.file_faults import file_faults, short
from lgsim.support.reading.npz import open_npz
from lgsim.support.reading.parquet import open_parquet
from lgsim.support.reading.size_limits import check_size

_FEW = 0.3  # fraction of the rows: up to it damaged rows are skipped
_MISSING = frozenset(["", "nan", "na", "n/a", "null", "none"])


class Table(NamedTuple):
    """The columns of a file; missing values are NaN.

    Attributes:
        columns: Columns (n,) by name.
        arrays: Arrays of k columns (n, k) by name, without joint names.
        findings: Findings about the file.
        slots: Slots in a recording of columns whose meaning the file specifies beyond their name.
        scales: Factors to SI of such columns.
        texts: Reasons why columns are not numeric, by name.
        source: Origin of the data, as a phrase; "" for the file's name and checksum.
    """

    columns: dict[str, Float[np.ndarray, " n"]]
    arrays: dict[str, Float[np.ndarray, "n k"]]
    findings: tuple[Finding, ...] = ()
    slots: Mapping[str, Slot] = {}
    scales: Mapping[str, float] = {}
    texts: Mapping[str, str] = {}
    source: str = ""

    @property
    def rows(self) -> int:
        """Number of rows n."""
        return len(next(iter((self.columns | self.arrays).values()), ()))


def read_table(path: Path, names: Sequence[str] | None = None) -> Table:
    """Read the columns of a text, parquet or npz file.

    Args:
        path: The file.
        names: Names of the columns of a text file, in place of those in its first line if it has any.

    Raises:
        FileNotFoundError: the file does not exist.
        ValueError: the file extension is not supported, or the content does not match it; for a text file the message
            has the line. Or there are as many ``names`` as columns in no text file.
        ModuleNotFoundError: the package that reads parquet files is not installed.
    """
    if path.suffix.lower() not in TABLES:
        raise ValueError(f"{path}: expected a name that ends in {' or '.join(TABLES)}, got {path.suffix!r}")
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such file")
    reader = TABLES[path.suffix.lower()]
    if names is None:
        return reader(path)
    if reader is not _text:
        raise ValueError(f"{path}: names: expected a text file such as .csv for names of columns without a header")
    return _text(path, names)


def digest(path: Path) -> str:
    """The name of a file with its checksum."""
    with path.open("rb") as file:
        return f"{path.name} (sha256 {hashlib.file_digest(file, 'sha256').hexdigest()[:16]})"


def _text(path: Path, names: Sequence[str] | None = None) -> Table:
    rows = _TextRows(path, names)
    for line, cells in rows:
        rows.take(line, cells)
    return rows.table()


class _TextRows:
    """Streaming reader of the rows of a text file; it keeps only the numbers.

    The names of the columns are given, or stand in the first line, or in the last comment before lines of numbers.
    """

    def __init__(self, path: Path, names: Sequence[str] | None) -> None:
        self.path, self.names, self.first, self.delimiter = path, list(names or ()), 0, ","
        self.numbers, self.count = array("d"), 0
        self.bad_cells: dict[str, list[tuple[int, str]]] = {}
        self.bad_rows: list[tuple[int, int]] = []
        self.last = 0

    def __iter__(self) -> Iterator[tuple[int, list[str]]]:
        check_size(self.path, self.path.stat().st_size, "has")
        # undecodable bytes become cells that are not numeric
        with self.path.open(newline="", encoding="utf-8-sig", errors="replace") as file:
            comment = ""
            lines = ((i, line) for i, line in enumerate(file, 1) if line.strip())
            for i, head in lines:
                if not head.startswith("#"):
                    self.first = i
                    break
                comment = head.lstrip("#")
            else:
                raise ValueError(f"{self.path}: expected column names in the first line, got an empty file")
            lines = ((i, line) for i, line in lines if not line.startswith("#"))
            second = next(lines, None)
            self.delimiter = max(",;\t", key=head.count)
            if self.delimiter not in head and len((second or (0, head))[1].split()) > 1:
                self.delimiter = " "
            cells = self._cells(head)
            has_numbers = any(_number(cell) is not None for cell in cells if cell)
            if self.names and len(self.names) != len(cells):
                raise ValueError(f"{self.path}: names: expected {len(cells)} names of columns, got {len(self.names)}")
            if not self.names:
                self.names = self._cells(comment, True) if has_numbers else self._cells(head, True)
                if has_numbers and len(self.names) != len(cells):
                    raise ValueError(
                        f"{self.path}:{self.first}: expected column names, got numbers; add a header line, or name the"
                        " columns by the option names of a map"
                    )
            _distinct(f"{self.path}:{self.first}", self.names)
            if has_numbers:
                yield self.first, cells
            for i, line in chain(() if second is None else (second,), lines):
                yield i, self._cells(line)

    def _cells(self, line: str, names: bool = False) -> list[str]:
        """The cells of a line; in a line of names, white space before a unit in brackets separates no cells."""
        if self.delimiter == " ":
            return re.split(r"\s+(?![\[(])", line.strip()) if names else line.split()
        try:
            return [cell.strip() for cell in next(csv.reader([line], delimiter=self.delimiter), [])]
        except csv.Error:
            return []

    def take(self, line: int, cells: list[str]) -> None:
        """Store the numbers of a row."""
        self.last = line
        if len(cells) != len(self.names):
            self.bad_rows.append((line, len(cells)))
            return
        try:
            self.numbers.extend([float(cell) for cell in cells])
        except ValueError:
            del self.numbers[self.count * len(self.names) :]
            for name, cell in zip(self.names, cells, strict=True):
                number = _number(cell)
                if number is None:
                    self.bad_cells.setdefault(name, []).append((line, cell))
                self.numbers.append(float("nan") if number is None else number)
        self.count += 1

    def table(self) -> Table:
        """The columns. A few damaged rows or cells are skipped; many are reported as an error of the first one."""
        findings = []
        if self.bad_rows:
            line, width = self.bad_rows[-1]
            if width < len(self.names) and line == self.last:
                self.bad_rows.pop()
                seen = f"line {line} ends after {width} of {len(self.names)} columns"
                findings.append(Finding("truncated file", self.path.name, 1, seen, "left out"))
        if len(self.bad_rows) > _FEW * (self.count + len(self.bad_rows)):
            line, width = self.bad_rows[0]
            raise ValueError(
                f"{self.path}:{line}: expected {len(self.names)} columns as in line {self.first}, got {width}"
            )
        if self.bad_rows:
            where = _shown_lines([line for line, _ in self.bad_rows])
            seen = f"{where}: not {len(self.names)} columns as in line {self.first}"
            findings.append(Finding("damaged file", self.path.name, len(self.bad_rows), seen, "left out"))
        values = np.frombuffer(self.numbers, float).reshape(self.count, len(self.names))
        columns, texts = {}, {}
        for i, name in enumerate(self.names):
            bad = self.bad_cells.get(name, [])
            if len(bad) > _FEW * self.count:
                line, cell = bad[0]
                hint = "; use decimal points, not commas" if "," in cell else ""
                texts[name] = f"{self.path}:{line}: column {name!r}: expected a number, got {cell[:40]!r}{hint}"
                continue
            if bad:
                seen = f"{_shown_lines([line for line, _ in bad])}: not a number, such as {bad[0][1][:40]!r}"
                findings.append(Finding("invalid number", name, len(bad), seen, "taken as missing"))
            columns[name] = np.array(values[:, i])
        return Table(columns, {}, tuple(findings), texts=texts)


def _shown_lines(lines: list[int]) -> str:
    """Format line numbers, at most five."""
    more = f" and {len(lines) - 5} more" if len(lines) > 5 else ""
    return f"line{'s' * (len(lines) > 1)} {', '.join(map(str, lines[:5]))}{more}"


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return float("nan") if cell.lower() in _MISSING else None


def _distinct(where: str, names: Iterable[str]) -> None:
    seen = set()
    for name in names:
        if name in seen:
            raise ValueError(f"{where}: expected unique column names, got {name!r} twice")
        seen.add(name)


def _parquet(path: Path) -> Table:
    arrow = package("pyarrow", "data")
    faults = (arrow.ArrowException, OSError, EOFError)
    with file_faults(path, "a parquet file"):
        file = open_parquet(path, ())
        schema = file.schema_arrow
        names = schema.names
        # a string that is repeated a billion times is stored once in a dictionary
        texts_of = {name for name, kind in zip(names, schema.types, strict=True) if _is_text(kind, arrow)}
        numbers = {name for name, kind in zip(names, schema.types, strict=True) if _is_number(kind, arrow)}
        file = open_parquet(path, texts_of | numbers, encoded=texts_of)
    _distinct(str(path), names)
    columns, texts, findings = {}, {}, []
    for name in names:
        kind, parts, lost = schema.field(name).type, [], []
        for group in range(file.num_row_groups if name in texts_of | numbers else 0):
            rows = file.metadata.row_group(group).num_rows
            try:
                parts.append(_column(file.read_row_group(group, columns=[name])[name], arrow))
            except (*faults, ValueError, OverflowError, MemoryError, KeyError) as error:
                if name not in numbers:
                    texts[name] = f"{path}: column {name!r}: expected numbers, got {kind}"
                    break
                check_size(path, 8 * rows)
                lost.append((group, rows, short(error)))
                parts.append(np.full(rows, np.nan))
        if name not in texts_of | numbers:
            texts[name] = f"{path}: column {name!r}: expected numbers, got {kind}"
        if name in texts:
            continue
        columns[name] = np.concatenate(parts) if parts else np.zeros(0)
        for group, rows, why in lost:
            findings.append(Finding("damaged file", name, rows, f"row group {group}: {why}", "taken as missing"))
    _check_lengths(path, columns)
    return Table(columns, {}, tuple(findings), texts=texts)


def _column(column: Any, arrow: Any) -> Float[np.ndarray, " n"]:
    """The numbers of a column of numbers or of dictionary-encoded strings."""
    if not arrow.types.is_dictionary(column.type):
        return _floats(column.cast("float64").to_numpy())
    parts = [part.dictionary.cast("float64").take(part.indices) for part in column.chunks]
    return _floats(arrow.chunked_array(parts, "float64").to_numpy())


def _is_number(kind: Any, arrow: Any) -> bool:
    types = arrow.types
    return types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_decimal(kind)


def _is_text(kind: Any, arrow: Any) -> bool:
    return arrow.types.is_string(kind) or arrow.types.is_large_string(kind) or arrow.types.is_dictionary(kind)


def _check_lengths(path: Path, columns: Mapping[str, Shaped[np.ndarray, " n *k"]]) -> None:
    lengths = {name: len(x) for name, x in columns.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"{path}: expected columns of equal length, got {lengths}")


def _npz(path: Path) -> Table:
    stored, findings = {}, []
    with open_npz(path, "an npz file without pickled objects") as file:
        for name in file.names:
            try:
                stored[name] = file[name]
            except Exception as error:  # any exception that numpy raises for damaged bytes
                findings.append(Finding("damaged file", name, 0, short(error), "left out"))
    if not stored and findings:
        raise ValueError(f"{path}: expected readable arrays, got none; {findings[0].where}: {findings[0].seen}")
    if "about" in stored:
        raise ValueError(
            f"{path}: expected named columns, got a file that lgsim wrote; load it with the load method of its class"
        )
    joints = stored.pop("joint_names", None)
    if joints is not None and joints.ndim != 1:
        raise ValueError(f"{path}: joint_names: expected an array of one axis, got one of shape {joints.shape}")
    columns, arrays = {}, {}
    for name, values in stored.items():
        if values.ndim == 1 and values.dtype.kind in "fiu":
            columns[name] = _floats(values)
        elif values.ndim == 2 and values.dtype.kind in "fiu" and joints is not None and values.shape[1] == len(joints):
            columns |= {f"{name} {joint}": _floats(values[:, i]) for i, joint in enumerate(joints.tolist())}
        elif values.ndim == 2 and values.dtype.kind in "fiu":
            arrays[name] = _floats(values)
        else:
            seen = f"an array of shape {values.shape} and dtype {values.dtype} is not a column"
            findings.append(Finding("unused column", name, 0, seen, "not read"))
    _check_lengths(path, columns | arrays)
    return Table(columns, arrays, tuple(findings))


def _mat(path: Path) -> Table:
    """The vectors and matrices of a MATLAB file, those of a structure by "<structure>.<field>"."""
    io = package("scipy.io", "identify", "a .mat file")
    with file_faults(path, "a MATLAB file of version 7 or older, by save(..., '-v7')"):
        held = [(name, shape) for name, shape, kind in io.whosmat(path) if kind != "sparse"]
        check_size(path, sum(8 * math.prod(shape) for _, shape in held))
        stored = io.loadmat(path, struct_as_record=False, variable_names=[name for name, _ in held])
        # not the version, nor what is no array
        stored = {k: x for k, x in stored.items() if not k.startswith("__") and isinstance(x, np.ndarray)}
        for name, parts in [(k, x.item()) for k, x in stored.items() if x.dtype == object and x.size == 1]:
            fields = getattr(parts, "_fieldnames", ())
            stored |= {f"{name}.{field}": np.asarray(getattr(parts, field)) for field in fields}
    numbers = {k: _floats(x) for k, x in stored.items() if x.dtype.kind in "fiu" and x.ndim == 2 and x.size > 1}
    rows = max((len(x) if min(x.shape) > 1 else x.size for x in numbers.values()), default=0)
    columns = {name: x.ravel() for name, x in numbers.items() if x.size == rows}
    arrays = {name: x for name, x in numbers.items() if len(x) == rows and name not in columns}
    others = {name: x for name, x in stored.items() if name not in columns | arrays and x.dtype != object}
    seen = "an array of shape {} is not a column of {} numbers"
    findings = [Finding("unused column", name, 0, seen.format(x.shape, rows), "not read") for name, x in others.items()]
    return Table(columns, arrays, tuple(findings))


def _floats(array: Shaped[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape"]:
    return np.array(array, float)


TABLES = {".csv": _text, ".tsv": _text, ".txt": _text, ".dat": _text, ".parquet": _parquet, ".npz": _npz, ".mat": _mat}
"""The readers by file extension."""
