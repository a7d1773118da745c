"""Motions that are played in three dimensions on a page."""

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
"""The longest time that one looks at a motion, s; longer motions are played faster than they are."""
MISSING = "Nothing is played here: the package viser is missing (pip install 'lgsim[view]')."


def can_play() -> bool:
    """Whether the package that plays motions is installed; if not, one warning says so."""
    if find_spec("viser") is not None:
        return True
    warnings.warn("the report plays no motions: pip install 'lgsim[view]'", stacklevel=2)
    return False


def add_replay(page: Page, motion: Trajectory, name: str, shapes: Shapes | None) -> None:
    """Add a motion to a page, with a scale of time that shows it in at most ``LONGEST`` seconds.

    Args:
        motion: The motion, whose configurations are finite.
        name: The name of the motion, the begin of its caption.
        shapes: The machine's shapes; None for rods between the joints.
    """
    speed = max(1.0, float(motion.time[-1] - motion.time[0]) / LONGEST)
    scene = to_html(motion, None, shapes, title=name, speed=speed)
    faster = "" if speed == 1.0 else f", {speed:.3g} times as fast as it is"
    page.add_replay(scene, f"{name} played again{faster}; drag to turn, scroll to come nearer.")


def finite_part(motion: Trajectory, bound: float = math.inf) -> Trajectory:
    """The states of a motion before the first one that is not finite, or that has a number of size ``bound`` or more.

    Args:
        bound: The bound of configurations and velocities, in SI units.
    """
    with np.errstate(invalid="ignore"):
        size = np.maximum(np.max(np.abs(motion.q), axis=1, initial=0.0), np.max(np.abs(motion.v), axis=1, initial=0.0))
        bad = ~(np.isfinite(size) & (size < bound))
    return motion[: int(np.argmax(bad))] if bad.any() else motion


def machine_shapes(file: Path | None, model: Model) -> Shapes | None:
    """The shapes of a URDF file, where the file is still there and still of this machine; None for rods in their place.

    A file that cannot be read, or meshes whose package is missing, are a warning.
    """
    if file is None or not file.is_file() or first_tag(file) == "mujoco":
        return None
    try:
        found = read_visuals(file)
    except (FileError, ImportError) as error:
        warnings.warn(f"the report shows rods in place of the machine's shapes: {one_line(error)}", stacklevel=2)
        return None
    return found if found and set(found) <= set(model.frame_names) else None
