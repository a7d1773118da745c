"""Trajectory files: npz and parquet, which include the model, csv, and mcap for viewers.

``motion`` is a ``Trajectory`` here; its module imports this one.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from lgsim.multibody.serialization import from_record, to_record
from lgsim.simulation import trajectory_mcap
from lgsim.simulation.accuracy.trajectory_error import StepError
from lgsim.support.files import check_format, write_whole
from lgsim.support.packages import package
from lgsim.support.reading.file_faults import file_faults
from lgsim.support.reading.npz import open_npz
from lgsim.support.reading.parquet import open_parquet
from lgsim.support.verdict import RESOLVED

Function = TypeVar("Function", bound=Callable)

_ARRAYS = ("time", "q", "v", "tau")
_FORMAT = "lgsim trajectory 1"
EXPECTED = "a trajectory that lgsim wrote"
"""The expected content of a file, for messages."""

# fields of a ``StepError`` that are not arrays; Python's JSON reads and writes NaN and infinity
_ERROR_FIELDS = ("names", "units", "places", "order", "claimed", "resolved", "reason", "rate", "until")
_ERROR = "step error of "


def save(motion: Any, path: Path, description: str | Path | None = None) -> Path:
    """Write a trajectory atomically, in the format of the path's extension.

    Args:
        description: The robot's URDF file for ``.mcap``, or None.

    Raises:
        ValueError: the extension is not ``.npz``, ``.parquet``, ``.csv`` or ``.mcap``.
        ModuleNotFoundError: pyarrow is missing for ``.parquet``, mcap-ros2-support for ``.mcap``.
        OSError: the file cannot be written; the error names it.
    """
    if path.suffix == ".mcap":
        text = "" if description is None else Path(description).read_text(encoding="utf-8", errors="replace")
        return trajectory_mcap.save(motion, path, text)
    write_whole(path, _by_ending(_WRITERS, path, ".mcap")(motion))
    return path


def load(path: Path) -> dict[str, Any]:
    """Read the fields of a ``Trajectory``, by name, from a file that ``save`` wrote.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file was not written by ``save`` or has another format version, or the extension is neither
            ``.npz`` nor ``.parquet``.
        ModuleNotFoundError: pyarrow is missing for ``.parquet``.
    """
    read = _by_ending(_READERS, path)
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such file")
    return read(path)


def _by_ending(functions: dict[str, Function], path: Path, *more: str) -> Function:
    """The function for a path's extension; otherwise a ValueError that lists these and further extensions."""
    if path.suffix not in functions:
        endings = " or ".join([*functions, *more])
        raise ValueError(f"{path}: expected a name that ends in {endings}, got {path.suffix or 'no ending'!r}")
    return functions[path.suffix]


def _metadata(motion: Any) -> tuple[str, dict[str, np.ndarray]]:
    """The fields of the motion that are not arrays, as JSON, and the model's parameters by name."""
    topology, numbers = to_record(motion.model)
    about = {name: getattr(motion, name) for name in ("method", "dt", "result", "version", "fingerprint", "remark")}
    if motion.step_error is not None:
        about["step_error"] = {name: getattr(motion.step_error, name) for name in _ERROR_FIELDS}
        about["step_error"]["size"] = motion.step_error.size.tolist()
    return json.dumps({"format": _FORMAT, "topology": topology, **about}), numbers


def _npz(motion: Any) -> bytes:
    about, numbers = _metadata(motion)
    file = io.BytesIO()
    arrays = {name: getattr(motion, name) for name in _ARRAYS}
    if motion.step_error is not None:
        arrays["step_error"] = motion.step_error.error
    stored: dict = {"about": np.array(about), **arrays, **{f"model.{name}": x for name, x in numbers.items()}}
    np.savez_compressed(file, **stored)
    return file.getvalue()


def _fields(
    about: dict[str, Any], arrays: list[np.ndarray], numbers: dict[str, np.ndarray], error: np.ndarray | None
) -> dict[str, Any]:
    """The fields of a trajectory from the metadata, its arrays in the order of ``_ARRAYS``, the model's parameters,
    and the integration error if the file has one.
    """
    kept: dict[str, Any] = {name: str(about[name]) for name in ("method", "result", "version")}
    kept |= {"dt": float(about["dt"]), "remark": str(about.get("remark", ""))}
    if error is not None:
        kept["step_error"] = _step_error(about["step_error"], error, len(arrays[0]))
    if any(x.dtype.kind not in "fiu" for x in arrays):
        raise TypeError("arrays that are not numeric")
    return {"model": from_record(about["topology"], numbers), **dict(zip(_ARRAYS, arrays, strict=True)), **kept}


def _step_error(plain: dict[str, Any], error: np.ndarray, times: int) -> StepError:
    """The integration error from the metadata and its values.

    Raises:
        ValueError, TypeError, KeyError: they are not a valid error estimate, or their lengths differ.
    """
    size = np.array(plain["size"], float)
    found = {name: plain[name] for name in _ERROR_FIELDS if name != "resolved"}
    found |= {name: tuple(map(str, plain[name])) for name in ("names", "units")}
    found |= {name: float(plain[name]) for name in ("order", "rate", "until")}
    n, places, claimed = len(found["names"]), plain["places"], plain["claimed"]
    if error.shape != (times, n) or size.shape != (n,) or len(found["units"]) != n:
        raise ValueError(f"an integration error of shape {error.shape}")
    if not (isinstance(places, int) and 0 <= places <= n and isinstance(claimed, int) and 0 < claimed < math.inf):
        raise ValueError(f"an integration error with {places!r} places and order {claimed!r}")
    return StepError(value=error, tolerance=RESOLVED * size, size=size, **found)


def _from_npz(path: Path) -> dict[str, Any]:
    with open_npz(path, EXPECTED) as file:
        about = json.loads(str(file["about"]))
        check_format(path, about["format"], _FORMAT)
        numbers = {name.removeprefix("model."): file[name] for name in file.names if name.startswith("model.")}
        error = file["step_error"] if "step_error" in file else None
        return _fields(about, [file[name] for name in _ARRAYS], numbers, error)


def _csv(motion: Any) -> bytes:
    file = io.StringIO()
    rows = csv.writer(file, lineterminator="\n")
    rows.writerow(motion.columns)
    rows.writerows(zip(*(column.tolist() for column in motion.columns.values()), strict=True))
    return file.getvalue().encode()


def _arrow() -> Any:
    """The package pyarrow; a ModuleNotFoundError names the extra to install if it is missing."""
    package("pyarrow.parquet", "data", "parquet")
    return package("pyarrow", "data")


def _parquet(motion: Any) -> bytes:
    arrow = _arrow()
    about, numbers = _metadata(motion)
    plain = {name: [number.dtype.str, number.shape, number.ravel().tolist()] for name, number in numbers.items()}
    table = arrow.table(motion.columns)
    extra = {"lgsim": about, "lgsim.model": json.dumps(plain)}
    file = io.BytesIO()
    arrow.parquet.write_table(table.replace_schema_metadata(extra), file)
    return file.getvalue()


def _from_parquet(path: Path) -> dict[str, Any]:
    arrow = _arrow()
    with file_faults(path, EXPECTED):
        file = open_parquet(path)
        if not all(arrow.types.is_floating(kind) or arrow.types.is_integer(kind) for kind in file.schema_arrow.types):
            raise TypeError("columns that are not numeric")
        extra = {key.decode(): value.decode() for key, value in (file.schema_arrow.metadata or {}).items()}
        about, plain = json.loads(extra["lgsim"]), json.loads(extra["lgsim.model"])
        check_format(path, about["format"], _FORMAT)
        numbers = {name: _array(*entry) for name, entry in plain.items()}
        table = file.read()
        names, n = table.column_names, table.num_rows
        arrays = []
        for prefix in ("q ", "v ", "tau ", _ERROR):
            columns = [table[name].to_numpy() for name in names if name.startswith(prefix)]
            arrays.append(np.stack(columns, axis=1) if columns else np.zeros((n, 0)))
        error = arrays.pop()
        told = error if "step_error" in about else None
        return _fields(about, [table["time [s]"].to_numpy(), *arrays], numbers, told)


def _array(dtype: str, shape: list[int], flat: list[float]) -> np.ndarray:
    """A parameter of the model; the list must hold exactly its entries."""
    return np.array(flat, float).astype(dtype).reshape(shape)


_WRITERS = {".npz": _npz, ".parquet": _parquet, ".csv": _csv}
_READERS = {".npz": _from_npz, ".parquet": _from_parquet}
