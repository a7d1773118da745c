"""Files of motions: npz and parquet, which hold the model too, and csv."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from lgsim.multibody.serialization import from_record, to_record
from lgsim.support.extras import package
from lgsim.support.files import write_whole

_ARRAYS = ("time", "q", "v", "tau")
_FORMAT = "lgsim trajectory 1"


def save(motion: Any, path: Path) -> Path:
    """See ``Trajectory.save``."""
    write_whole(path, _pick(_WRITERS, path)(motion))
    return path


def load(path: Path) -> dict[str, Any]:
    """The fields of a ``Trajectory``, see ``Trajectory.load``."""
    read = _pick(_READERS, path)
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such file")
    return read(path)


def _pick(table, path):
    if path.suffix not in table:
        raise ValueError(
            f"{path}: expected a name that ends in {' or '.join(table)}, got {path.suffix or 'no ending'!r}"
        )
    return table[path.suffix]


def _about(motion):
    topology, numbers = to_record(motion.model)
    about = {name: getattr(motion, name) for name in ("method", "dt", "result", "version", "fingerprint")}
    return json.dumps({"format": _FORMAT, "topology": topology, **about}), numbers


def _npz(motion):
    about, numbers = _about(motion)
    file = io.BytesIO()
    arrays = {name: getattr(motion, name) for name in _ARRAYS}
    stored: dict = {"about": np.array(about), **arrays, **{f"model.{name}": x for name, x in numbers.items()}}
    np.savez_compressed(file, **stored)
    return file.getvalue()


def _made(about, arrays, numbers):
    kept = {name: about[name] for name in ("method", "dt", "result", "version")}
    return {"model": from_record(about["topology"], numbers), **dict(zip(_ARRAYS, arrays, strict=True)), **kept}


def _from_npz(path):
    try:
        with np.load(path, allow_pickle=False) as file:
            about = json.loads(str(file["about"]))
            numbers = {name.removeprefix("model."): file[name] for name in file if name.startswith("model.")}
            return _made(about, [file[name] for name in _ARRAYS], numbers)
    except (KeyError, ValueError, TypeError, EOFError, zipfile.BadZipFile):
        raise ValueError(f"{path}: expected a trajectory that lgsim wrote, got something else") from None


def _csv(motion):
    file = io.StringIO()
    rows = csv.writer(file, lineterminator="\n")
    rows.writerow(motion.columns)
    rows.writerows(zip(*(column.tolist() for column in motion.columns.values()), strict=True))
    return file.getvalue().encode()


def _arrow():
    package("pyarrow.parquet", "data", "parquet")
    return package("pyarrow", "data")


def _parquet(motion):
    arrow = _arrow()
    about, numbers = _about(motion)
    plain = {name: [number.dtype.str, number.shape, number.ravel().tolist()] for name, number in numbers.items()}
    table = arrow.table(motion.columns)
    extra = {"lgsim": about, "lgsim.model": json.dumps(plain)}
    file = io.BytesIO()
    arrow.parquet.write_table(table.replace_schema_metadata(extra), file)
    return file.getvalue()


def _from_parquet(path):
    arrow = _arrow()
    try:
        table = arrow.parquet.read_table(path)
        extra = {key.decode(): value.decode() for key, value in (table.schema.metadata or {}).items()}
        about, plain = json.loads(extra["lgsim"]), json.loads(extra["lgsim.model"])
    except (KeyError, ValueError, arrow.ArrowException):
        raise ValueError(f"{path}: expected a trajectory that lgsim wrote, got something else") from None
    numbers = {name: np.array(flat, dtype).reshape(shape) for name, (dtype, shape, flat) in plain.items()}
    names, n = table.column_names, table.num_rows
    parts = []
    for prefix in ("q ", "v ", "tau "):
        found = [table[name].to_numpy() for name in names if name.startswith(prefix)]
        parts.append(np.stack(found, axis=1) if found else np.zeros((n, 0)))
    return _made(about, [table["time [s]"].to_numpy(), *parts], numbers)


_WRITERS = {".npz": _npz, ".parquet": _parquet, ".csv": _csv}
_READERS = {".npz": _from_npz, ".parquet": _from_parquet}
