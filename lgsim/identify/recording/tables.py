"""Files of columns: csv, parquet and npz, as arrays of numbers by name."""

from __future__ import annotations

import csv
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Shaped

from lgsim.identify.recording.columns import Slot
from lgsim.identify.recording.report import Finding
from lgsim.support.packages import package

_MISSING = frozenset(["", "nan", "na", "n/a", "null", "none"])


class Table(NamedTuple):
    """The columns of a file; a number that is missing is NaN.

    Attributes:
        columns: Columns (n,) by name.
        arrays: Arrays of k columns (n, k) by name, of which the file does not say which joint each belongs to.
        findings: Remarks on the file.
        slots: The places in a recording of columns whose file says more of them than their name.
        scales: Of such columns, SI units in one of theirs.
        source: Where the data come from, as a phrase; "" for the file's name and checksum.
    """

    columns: dict[str, Float[np.ndarray, " n"]]
    arrays: dict[str, Float[np.ndarray, "n k"]]
    findings: tuple[Finding, ...] = ()
    slots: Mapping[str, Slot] = {}  # noqa: RUF012
    scales: Mapping[str, float] = {}  # noqa: RUF012
    source: str = ""

    @property
    def rows(self) -> int:
        """Number of rows n."""
        return len(next(iter((self.columns | self.arrays).values()), ()))


def read_table(path: Path) -> Table:
    """The columns of a csv, parquet or npz file.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the ending is another one, or the content is not what the ending says; for a csv file the message
            has the line.
        ModuleNotFoundError: the package that reads parquet files is missing.
    """
    if path.suffix.lower() not in TABLES:
        raise ValueError(f"{path}: expected a name that ends in {' or '.join(TABLES)}, got {path.suffix!r}")
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such file")
    return TABLES[path.suffix.lower()](path)


def _csv(path: Path) -> Table:
    with path.open(newline="", encoding="utf-8-sig") as file:
        lines = [(i, line) for i, line in enumerate(file, 1) if line.strip() and not line.startswith("#")]
    if not lines:
        raise ValueError(f"{path}: expected names of columns in the first line, got an empty file")
    head = lines[0][1]
    delimiter = max(",;\t", key=head.count)
    rows = [(i, [cell.strip() for cell in next(csv.reader([line], delimiter=delimiter))]) for i, line in lines]
    first, names = rows[0]
    _distinct(f"{path}:{first}", names)
    if any(_number(name) is not None for name in names if name):
        raise ValueError(f"{path}:{first}: expected names of columns, got numbers; put a line with names first")
    findings = ()
    if len(rows) > 1 and len(rows[-1][1]) < len(names):
        line, cells = rows.pop()
        seen = f"line {line} ends after {len(cells)} of {len(names)} columns"
        findings = (Finding("truncated file", path.name, 1, seen, "left out"),)
    values = np.empty((len(rows) - 1, len(names)))
    for place, (line, cells) in enumerate(rows[1:]):
        if len(cells) != len(names):
            raise ValueError(f"{path}:{line}: expected {len(names)} columns as in line {first}, got {len(cells)}")
        for column, cell in enumerate(cells):
            number = _number(cell)
            if number is None:
                hint = "; write decimal points, not commas" if "," in cell else ""
                raise ValueError(f"{path}:{line}: column {names[column]!r}: expected a number, got {cell!r}{hint}")
            values[place, column] = number
    return Table({name: values[:, i] for i, name in enumerate(names)}, {}, findings)


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return float("nan") if cell.lower() in _MISSING else None


def _distinct(where: str, names: Iterable[str]) -> None:
    seen = set()
    for name in names:
        if name in seen:
            raise ValueError(f"{where}: expected different names of columns, got {name!r} twice")
        seen.add(name)


def _parquet(path: Path) -> Table:
    arrow, parquet = package("pyarrow", "data"), package("pyarrow.parquet", "data")
    try:
        table = parquet.read_table(path)
    except arrow.ArrowException as error:
        raise ValueError(f"{path}: expected a parquet file, got something else: {error}") from None
    _distinct(str(path), table.column_names)
    columns = {}
    for name in table.column_names:
        try:
            columns[name] = _floats(table[name].cast("float64").to_numpy())
        except arrow.ArrowException:
            raise ValueError(f"{path}: column {name!r}: expected numbers, got {table[name].type}") from None
    return Table(columns, {})


def _npz(path: Path) -> Table:
    try:
        with np.load(path, allow_pickle=False) as file:
            stored = {name: file[name] for name in file}
    except (ValueError, EOFError, zipfile.BadZipFile):
        raise ValueError(f"{path}: expected an npz file without pickled objects, got something else") from None
    if "about" in stored:
        raise ValueError(f"{path}: expected named columns, got a file that lgsim wrote; its class has load")
    joints = stored.pop("joint_names", None)
    columns, arrays, findings = {}, {}, []
    for name, array in stored.items():
        if array.ndim == 1 and array.dtype.kind in "fiu":
            columns[name] = _floats(array)
        elif array.ndim == 2 and array.dtype.kind in "fiu" and joints is not None and array.shape[1] == len(joints):
            columns |= {f"{name} {joint}": _floats(array[:, i]) for i, joint in enumerate(joints.tolist())}
        elif array.ndim == 2 and array.dtype.kind in "fiu":
            arrays[name] = _floats(array)
        else:
            seen = f"an array of shape {array.shape} of {array.dtype} is no column"
            findings.append(Finding("unused column", name, 0, seen, "not read"))
    lengths = {name: len(x) for name, x in (columns | arrays).items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"{path}: expected columns of one length, got {lengths}")
    return Table(columns, arrays, tuple(findings))


def _floats(array: Shaped[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape"]:
    return np.array(array, float)


TABLES = {".csv": _csv, ".parquet": _parquet, ".npz": _npz}
"""The readers by the endings of files."""
