"""3D replays of motions on a report page."""

from __future__ import annotations

import math
import warnings
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from lgsim.formats import FileError
from lgsim.multibody import Model
from lgsim.scenarios.machine import first_tag
from lgsim.simulation import Trajectory
from lgsim.support.messages import one_line
from lgsim.view.reports.page import Page
from lgsim.view.scene import to_html
from lgsim.view.shapes import Shapes
from lgsim.view.urdf_visuals import read_visuals

LONGEST = 60.0
"""Longest playing time, s; longer motions are played faster than real time."""
MISSING = "There is no replay: the package viser is missing (pip install 'lgsim[view]')."


def can_play() -> bool:
    """True if viser is installed; a warning otherwise."""
    if find_spec("viser") is not None:
        return True
    warnings.warn("the report has no replays, since viser is missing: pip install 'lgsim[view]'", stacklevel=2)
    return False


def add_replay(page: Page, motion: Trajectory, name: str, shapes: Shapes | None) -> None:
    """Add a replay to a page, in real time or in at most ``LONGEST`` seconds.

    Args:
        motion: Motion with finite configurations.
        name: Start of the caption.
        shapes: Visual shapes; None for rods between the joints.
    """
    speed = max(1.0, float(motion.time[-1] - motion.time[0]) / LONGEST)
    scene = to_html(motion, None, shapes, title=name, speed=speed)
    faster = "" if speed == 1.0 else f", {speed:.3g} times faster than real time"
    page.add_replay(scene, f"Replay of {name[:1].lower()}{name[1:]}{faster}; drag to rotate, scroll to zoom.")


def finite_part(motion: Trajectory, bound: float = math.inf) -> Trajectory:
    """States of a motion before the first one that is not finite or reaches a magnitude of ``bound``.

    Args:
        bound: Bound of configurations and velocities, in SI units.
    """
    with np.errstate(invalid="ignore"):
        size = np.maximum(np.max(np.abs(motion.q), axis=1, initial=0.0), np.max(np.abs(motion.v), axis=1, initial=0.0))
        bad = ~(np.isfinite(size) & (size < bound))
    return motion[: int(np.argmax(bad))] if bad.any() else motion


def machine_shapes(file: Path | None, model: Model) -> Shapes | None:
    """Visual shapes of a URDF file; None if the file does not exist or belongs to another model.

    An unreadable file, or meshes without the package that reads them, cause a warning.
    """
    if file is None or not file.is_file() or first_tag(file) == "mujoco":
        return None
    try:
        found = read_visuals(file)
    except (FileError, ImportError) as error:
        warnings.warn(f"the report shows rods instead of the visual shapes: {one_line(error)}", stacklevel=2)
        return None
    return found if found and set(found) <= set(model.frame_names) else None
