"""Plots and scenes of runs, written beside them or shown."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from lgsim.cli.errors import BadInput, Stop, needs, one_line, unknown
from lgsim.cli.terminal import note
from lgsim.formats import FileError
from lgsim.multibody import Model
from lgsim.scenarios.machine import first_tag
from lgsim.simulation import Trajectory


def check_plots() -> None:
    """Ends the command where plots cannot be made.

    Raises:
        Stop: matplotlib is missing.
    """
    needs("matplotlib", "plot", "a plot")


def check_scenes() -> None:
    """Ends the command where scenes cannot be made.

    Raises:
        Stop: viser is missing.
    """
    needs("viser", "view", "a scene")


def visuals(file: Path | None) -> Any:
    """The shapes of a URDF file; None, which is rods and ellipsoids, where it has none or is of another kind.

    Raises:
        BadInput: the file cannot be read.
        Stop: a package is missing.
    """
    check_scenes()
    if file is None or first_tag(file) == "mujoco":
        return None
    from lgsim.view import read_visuals

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = read_visuals(file)
        except FileError as error:
            raise BadInput(one_line(error)) from error
        except ImportError as error:
            raise Stop(one_line(error)) from error
    for warning in caught:
        note(str(warning.message))
    return found or None


def save_plots(motion: Trajectory, folder: Path, stem: str, phases: Sequence[str] = ()) -> list[Path]:
    """The plots of a run as files ``stem-*.png``.

    Args:
        motion: The run.
        folder: Where they go.
        stem: What their names begin with.
        phases: Joints whose phase portrait is drawn too.

    Raises:
        BadInput: there is no such joint, or it has no phase portrait.
        Stop: matplotlib is missing.
    """
    check_plots()
    from lgsim.view import plots

    for joint in phases:
        if joint not in motion.model.v_slices:
            raise unknown("--phase: expected the name of a joint", joint, list(motion.model.v_slices))
    figures = {"joints": plots.joints(motion), "energy": plots.energy(motion), "momentum": plots.momentum(motion)}
    for joint in phases:
        with _fits("--phase: "):
            figures[f"phase-{joint.replace('/', '-')}"] = plots.phase(motion, joint)
    files = []
    for name, figure in figures.items():
        files.append(folder / f"{stem}-{name}.png")
        figure.savefig(files[-1], dpi=150)
    return files


def save_html(shown: Trajectory | Model, path: Path, shapes: Any) -> Path:
    """The scene of a run, or of a machine in its neutral configuration, as a file.

    Raises:
        BadInput: the run and the shapes do not fit.
        Stop: viser is missing.
    """
    check_scenes()
    from lgsim.view import to_html

    motion = _still(shown) if isinstance(shown, Model) else shown
    with _fits():
        to_html(motion, path, shapes, title=path.stem)
    return path


def show(shown: Trajectory | Model, shapes: Any, port: int) -> None:
    """The scene of a run or of a machine on a local web server, until Ctrl-C.

    Raises:
        BadInput: the run and the shapes do not fit.
        Stop: viser is missing.
    """
    check_scenes()
    from lgsim.view import live

    with _fits():
        scene = live(shown, shapes, port=port)
    with scene:
        try:
            note(f"the scene is at {scene.url}; Ctrl-C ends it")
            scene.wait()
        except KeyboardInterrupt:
            return


@contextmanager
def _fits(what: str = "") -> Iterator[None]:
    """What a picture refuses is bad input."""
    try:
        yield
    except ValueError as error:
        raise BadInput(f"{what}{one_line(error)}") from error


def _still(model: Model) -> Trajectory:
    """A machine in its neutral configuration, as a run of one state."""
    zero = np.zeros((1, model.nv))
    return Trajectory(model, np.zeros(1), np.asarray(model.neutral())[None], zero, zero)
