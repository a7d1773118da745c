"""Plots and 3D scenes of runs, saved next to them or shown in a browser."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from lgsim.cli.checks.replacement import PLOT_MARK, Output
from lgsim.cli.errors import BadInput, bad_input, needs
from lgsim.cli.files import joint_list
from lgsim.cli.terminal import note, warnings_as_notes
from lgsim.multibody import Model
from lgsim.scenarios.machine import first_tag
from lgsim.simulation import Trajectory
from lgsim.support.files import whole_file
from lgsim.support.messages import unknown_choice, unknown_name
from lgsim.support.packages import package
from lgsim.support.printable import printable
from lgsim.view import live, plots, read_mjcf_visuals, read_visuals, to_html
from lgsim.view.shapes import Shapes

FORMATS = ("png", "pdf", "svg")
"""File formats of figures."""


def check_plots() -> None:
    """Check that plots can be made.

    Raises:
        Stop: matplotlib is missing.
    """
    needs("matplotlib", "plot", "a plot")


def _check_scenes() -> None:
    """Check that scenes can be made.

    Raises:
        Stop: viser is missing.
    """
    needs("viser", "view", "a scene")


def visuals(file: Path | None) -> Shapes | None:
    """Read the shapes of a URDF or MJCF file; None if it has none, in which case rods and ellipsoids are shown.

    Raises:
        FileError: the file cannot be read.
        Stop: a package is missing.
    """
    _check_scenes()
    if file is None:
        return None
    if first_tag(file) == "mujoco":
        return read_mjcf_visuals(file) or None
    with warnings_as_notes():
        return read_visuals(file) or None


def check_format(ending: str, width: float | None, option: str = "--format") -> None:
    """Check the format and the width of figures.

    Raises:
        BadInput: the format is not one of ``FORMATS``, or the width is outside 1 to 40 inches.
    """
    if ending not in FORMATS:
        raise BadInput(unknown_choice(f"{option}: expected one of", ending, FORMATS))
    if width is not None and not 1 <= width <= 40:
        raise BadInput(f"--width: expected 1 to 40 inches, got {width:g}")


def save_plots(
    motion: Trajectory,
    folder: Path,
    stem: str,
    phases: Sequence[str] = (),
    joints: Sequence[str] | None = None,
    ending: str = "png",
    width: float | None = None,
) -> list[Path]:
    """Write the plots of a run.

    Args:
        stem: Prefix of the file names.
        phases: Joints whose phase portraits are drawn.
        joints: Joints that are shown; None for all.
        ending: One of ``FORMATS``.
        width: Width of the figures, inches; None for the width of a page.

    Raises:
        BadInput: an unknown joint, or a joint without a phase portrait.
        Stop: matplotlib is missing.
    """
    check_plots()
    known = [name for name, part in motion.model.v_slices.items() if part.stop > part.start]
    for option, names in (("--phase", phases), ("--joints", joints or [])):
        for joint in names:
            if joint not in known:
                raise BadInput(unknown_name(f"{option}: expected the name of a joint", joint, known))
    narrow = {} if width is None else {"width": width}
    figures = {
        "joints": plots.joints(motion, joints, width=width),
        "energy": plots.energy(motion, **narrow),
        "momentum": plots.momentum(motion, **narrow),
    }
    for joint in phases:
        with bad_input("--phase: "):
            figures[_portrait(joint)] = plots.phase(motion, joint)
    files = plot_files(folder, stem, phases, ending)
    for path, figure in zip(files, figures.values(), strict=True):
        save_figure(figure, path)
    return files


def plot_files(folder: Path, stem: str, phases: Sequence[str] = (), ending: str = "png") -> list[Path]:
    """The files that ``save_plots`` writes."""
    portraits = (_portrait(joint) for joint in dict.fromkeys(phases))
    return [folder / f"{stem}-{name}.{ending}" for name in ("joints", "energy", "momentum", *portraits)]


def _portrait(joint: str) -> str:
    """Name of the phase portrait of a joint."""
    return f"phase-{printable(joint).replace('/', '-')}"


def motion_outputs(model: Model, run: Path, plot: bool, scene: bool) -> list[Output]:
    """The files that ``--out``, ``--plot`` and ``--html`` will write."""
    found = [Output("--out", run, "run", joint_list(model))]
    if plot:
        found += [Output("--plot", path, "plot") for path in plot_files(run.parent, run.stem)]
    return [*found, Output("--html", run.with_suffix(".html"), "scene")] if scene else found


def save_beside(motion: Trajectory, run: Path, plot: bool, scene: bool, shapes: Shapes | None) -> list[Path]:
    """Write the plots and the scene that ``--plot`` and ``--html`` request, next to the run."""
    made = save_plots(motion, run.parent, run.stem) if plot else []
    return [*made, save_html(motion, run.with_suffix(".html"), shapes)] if scene else made


def save_figure(figure: Any, path: Path, dpi: int = 200) -> None:
    """Write a matplotlib figure atomically, in the format given by the suffix."""
    ending = path.suffix.removeprefix(".")
    about = {"Software" if ending == "png" else "Creator": PLOT_MARK}
    with whole_file(path) as file, _editable_text(), warnings_as_notes():
        figure.savefig(file, dpi=dpi, format=ending, metadata=about)


@contextmanager
def _editable_text() -> Iterator[None]:
    """A context in which PDF and SVG files keep text as text: publishers reject matplotlib's default Type 3 fonts."""
    rc_context = package("matplotlib", "plot").rc_context
    with rc_context({"pdf.fonttype": 42, "svg.fonttype": "none"}):
        yield


def save_html(shown: Trajectory | Model, path: Path, shapes: Shapes | None, **options: Any) -> Path:
    """Write the scene of a run, or of a robot in its neutral configuration; the options are those of ``to_html``.

    Raises:
        BadInput: the shapes are not those of the run's robot.
        Stop: viser is missing.
    """
    _check_scenes()
    motion = _still(shown) if isinstance(shown, Model) else shown
    with bad_input():
        to_html(motion, path, shapes, title=path.stem, **options)
    return path


def show(shown: Trajectory | Model, shapes: Shapes | None, port: int, **options: Any) -> None:
    """Show a run or a robot on a local web server until Ctrl-C.

    Raises:
        BadInput: the shapes are not those of the run's robot.
        Stop: viser is missing.
    """
    _check_scenes()
    with bad_input():
        scene = live(shown, shapes, port=port, **options)
    # Ctrl-C is the regular end of a live scene
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with scene:
        try:
            note(f"the scene is at {scene.url}; Ctrl-C ends it")
            scene.wait()
        except KeyboardInterrupt:
            return


def _still(model: Model) -> Trajectory:
    """A run of one state: the robot in its neutral configuration."""
    zero = np.zeros((1, model.nv))
    return Trajectory(model, np.zeros(1), np.asarray(model.neutral())[None], zero, zero)
