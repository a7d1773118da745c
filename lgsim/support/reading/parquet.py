"""Parquet files whose unpacked size is checked before reading: repeated values take no space in them."""

from __future__ import annotations

from collections.abc import Collection
from os import PathLike, fspath
from typing import Any

from lgsim.support.packages import package
from lgsim.support.reading.size_limits import check_size

_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 12, "FLOAT": 4, "DOUBLE": 8}
_LEAST_WIDTH = 8
"""Bytes of a number in memory, as float64."""


def open_parquet(
    path: str | PathLike[str], columns: Collection[str] | None = None, *, encoded: Collection[str] = ()
) -> Any:
    """A ``ParquetFile`` whose columns unpack to at most the size limit, according to its metadata.

    Strings count with their encoded size, so read columns of strings as ``encoded``.

    Args:
        columns: The columns that will be read; None for all.
        encoded: Columns of strings to read as dictionaries, in which a repeated string is stored once.

    Raises:
        FileSizeError: they unpack to more than ``LGSIM_MAX_BYTES``.
        ModuleNotFoundError: pyarrow is missing.
        Exception: the file is damaged: ``OSError`` or an error of pyarrow.
    """
    file = package("pyarrow.parquet", "data").ParquetFile(fspath(path), read_dictionary=list(encoded))
    check_size(path, unpacked_size(file, columns))
    return file


def unpacked_size(file: Any, columns: Collection[str] | None = None) -> int:
    """The bytes that columns of a ``ParquetFile`` take in memory, according to its metadata."""
    parts = [file.schema.column(i) for i in range(len(file.schema))]
    wanted = [
        i
        for i, part in enumerate(parts)
        if columns is None or any(f"{part.path}.".startswith(f"{name}.") for name in columns)
    ]
    flat = [parts[i].path for i in wanted if not parts[i].max_repetition_level]
    size = 0
    for number in range(file.metadata.num_row_groups):
        # pyarrow 26 aborts the process if contradictory metadata are accessed, but raises if they are read; a row of a
        # list may have any size, so that lists are left out
        next(iter(file.iter_batches(1, row_groups=[number], columns=flat)), None)
        group = file.metadata.row_group(number)
        for i in wanted:
            part = group.column(i)
            width = max(_WIDTHS.get(part.physical_type, parts[i].length or 0), _LEAST_WIDTH)
            size += max(part.total_uncompressed_size, width * max(part.num_values, group.num_rows, 0))
    return size
