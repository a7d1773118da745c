"""Files of runs: what can be read, and where one may write."""

from __future__ import annotations

import tempfile
import zipfile
import zlib
from pathlib import Path

from lgsim.cli.errors import BadInput, needs, one_line
from lgsim.multibody import ModelError
from lgsim.scenarios.machine import RUNS, use_float64
from lgsim.simulation import Trajectory

WITH_MODEL = (".npz", ".parquet")
"""Endings of runs that can be read again."""


def load(path: Path) -> Trajectory:
    """A run.

    Raises:
        BadInput: it is none.
        Stop: pyarrow is missing.
    """
    use_float64()
    if path.suffix not in WITH_MODEL:
        why = "a .csv file holds no machine; " if path.suffix == ".csv" else ""
        raise BadInput(f"{path}: {why}expected a run that ends in {' or '.join(WITH_MODEL)}")
    if path.suffix == ".parquet":
        needs("pyarrow", "data", "a .parquet file")
    if not path.exists():
        raise BadInput(f"{path}: no such file")
    if path.suffix == ".npz" and path.is_file() and not zipfile.is_zipfile(path):
        raise BadInput(f"{path}: expected a run that lgsim wrote, got a file of another kind or a part of one")
    try:
        return Trajectory.load(path)
    except ModelError as error:
        raise BadInput(f"{path}: {one_line(error)}") from error
    except ValueError as error:
        raise BadInput(one_line(error)) from error
    except (OSError, zlib.error) as error:
        raise BadInput(
            f"{path}: the file cannot be read: {getattr(error, 'strerror', None) or one_line(error)}"
        ) from error


def check_out(option: str, path: Path) -> Path:
    """A path that a run can be written to.

    Raises:
        BadInput: its ending is unknown, or its folder is missing or cannot be written.
        Stop: pyarrow is missing.
    """
    if path.suffix not in RUNS:
        raise BadInput(
            f"{option}: expected a name that ends in {' or '.join(RUNS)}, got {path.name!r}"
            f" ({f'ending {path.suffix}' if path.suffix else 'no ending'})"
        )
    if path.suffix == ".parquet":
        needs("pyarrow", "data", "a .parquet file")
    return check_file(option, path)


def check_file(option: str, path: Path) -> Path:
    """A path that a file can be written to.

    Raises:
        BadInput: it is a folder, or its folder is missing or cannot be written.
    """
    if path.is_dir():
        raise BadInput(f"{option}: expected a file, got the folder {str(path)!r}")
    check_folder(option, path.parent)
    return path


def check_folder(option: str, folder: Path) -> Path:
    """A folder that files can be written to.

    Raises:
        BadInput: it is missing or cannot be written.
    """
    if not folder.is_dir():
        raise BadInput(f"{option}: there is no folder {str(folder)!r}")
    try:
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError as error:
        raise BadInput(f"{option}: the folder {str(folder)!r} cannot be written: {error.strerror}") from error
