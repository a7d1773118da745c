"""The start of a motion: what is odd about it, and machines that cannot move."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jax.typing import ArrayLike

from lgsim.cli.errors import BadInput
from lgsim.cli.terminal import note
from lgsim.dynamics.joint_inertia import describe_missing_inertia
from lgsim.multibody import Model
from lgsim.simulation.limits import LISTED, limit_uses, limited_joints, start_warnings
from lgsim.support.messages import counted

if TYPE_CHECKING:
    from lgsim.montecarlo import Rollout


def check_inertia(file: Path, model: Model, q: ArrayLike) -> None:
    """Check that every joint moves some inertia, since no method integrates one that does not.

    Raises:
        BadInput: a joint moves none.
    """
    missing = describe_missing_inertia(model, q)
    if missing:
        raise BadInput(f"{file}: {missing}")


def remark(model: Model, q: ArrayLike, v: ArrayLike, torque: ArrayLike | None = None) -> None:
    """Write a line for each number of a start that is beyond a limit or looks like degrees, the first ones of many."""
    given = (None if x is None else np.asarray(x) for x in (q, v, torque))
    found = start_warnings(model, *given)
    for text in found[:LISTED]:
        note(text)
    if len(found) > LISTED:
        note(f"and {counted(len(found) - LISTED, 'more number')} beyond limits at the start")


def remark_stops(model: Model, q: ArrayLike) -> None:
    """Write a line where stops have nothing to act on, or act from the start."""
    if not limited_joints(model).any():
        note("--stops: no joint has a position limit")
    elif any(use.passed for use in limit_uses(model, np.asarray(q)[None])):
        note("--stops: what starts beyond a limit is pushed back from there")


def remark_study(rollout: Rollout) -> None:
    """Write the same about the motion of a study without dispersion, and about joints without inertia."""
    constant = rollout.torques if rollout.torques is not None and rollout.torques.ndim == 1 else None
    remark(rollout.model, rollout.q0, rollout.v0, constant)
    missing = describe_missing_inertia(rollout.model, rollout.q0)
    if missing:
        note(f"without the dispersions {missing}")
