"""Runs on their way to the disk: a finished one is not lost where its file cannot be written."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from lgsim.cli.errors import Stop
from lgsim.scenarios.machine import first_tag
from lgsim.simulation import Trajectory
from lgsim.support.messages import one_line


def save_run(motion: Trajectory, path: Path, machine: Path | None = None) -> Path:
    """Save a run; where that fails, keep it in another place as ``.npz``, whose name the error has.

    Args:
        motion: The run.
        path: Where it should go.
        machine: The file of its machine, which goes into an ``.mcap`` file where it is a URDF.

    Raises:
        Stop: the file cannot be written, and the run is kept elsewhere.
        OSError: it cannot be written anywhere.
    """
    urdf = machine if machine is not None and path.suffix == ".mcap" and first_tag(machine) == "robot" else None
    try:
        # runs of other endings hold the machine themselves
        return motion.save(path) if urdf is None else motion.save(path, urdf)
    except OSError as error:
        why = error.strerror or one_line(error)
        for place in _other_places(path):
            try:
                kept = motion.save(place)
            except OSError:
                continue
            raise Stop(
                f"{path}: {why}; the run is kept in {kept}, and `lgsim convert {kept} OUT` writes it to another place"
            ) from error
        raise


def _other_places(path: Path) -> Iterator[Path]:
    """Files in other folders that a run can be kept in for now."""
    folders = [Path(tempfile.gettempdir()), Path.home(), Path("/dev/shm"), Path.cwd()]
    for folder in dict.fromkeys(folders):
        if folder.is_dir() and folder.resolve() != path.parent.resolve():
            yield folder / f"lgsim-{path.stem}-{os.getpid()}.npz"
