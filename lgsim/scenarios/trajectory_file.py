"""Reader of trajectory files with one-line errors."""

from __future__ import annotations

import zipfile
import zlib
from os import PathLike
from pathlib import Path

from lgsim.multibody import ModelError
from lgsim.simulation import Trajectory
from lgsim.support.messages import one_line
from lgsim.support.packages import package

_WITH_MODEL = (".npz", ".parquet")
"""Suffixes of files that contain the model, and so can be read as runs."""


def read_trajectory(path: str | PathLike[str]) -> Trajectory:
    """Read a trajectory that ``Trajectory.save`` wrote.

    Raises:
        ValueError: the file is missing, damaged or of another kind; the message names it.
        ModuleNotFoundError: the package pyarrow is missing.
    """
    file = Path(path)
    if file.suffix not in _WITH_MODEL:
        why = f"a {file.suffix} file contains no model; " if file.suffix in (".csv", ".mcap") else ""
        raise ValueError(f"{file}: {why}expected a run that ends in {' or '.join(_WITH_MODEL)}")
    if file.suffix == ".parquet":
        package("pyarrow", "data", "a .parquet file")
    if not file.exists():
        raise ValueError(f"{file}: no such file")
    if file.suffix == ".npz" and file.is_file() and not zipfile.is_zipfile(file):
        raise ValueError(f"{file}: expected a run of lgsim, got an incomplete file or one of another kind")
    try:
        return Trajectory.load(file)
    except ModelError as error:
        raise ValueError(f"{file}: {one_line(error)}") from error
    except (OSError, zlib.error) as error:
        why = getattr(error, "strerror", None) or one_line(error)
        raise ValueError(f"{file}: the file cannot be read: {why}") from error
