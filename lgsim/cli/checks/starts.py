"""Checks of an initial state: joints without inertia, values beyond limits, stops."""

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
    """Check that every joint moves some inertia; forward dynamics is singular otherwise.

    Raises:
        BadInput: a joint moves no inertia.
    """
    missing = describe_missing_inertia(model, q)
    if missing:
        raise BadInput(f"{file}: {missing}")


def remark(model: Model, q: ArrayLike, v: ArrayLike, torque: ArrayLike | None = None) -> None:
    """Write a note for each initial value that exceeds a limit or looks like degrees, up to ``LISTED`` notes."""
    given = (None if x is None else np.asarray(x) for x in (q, v, torque))
    found = start_warnings(model, *given)
    for text in found[:LISTED]:
        note(text)
    if len(found) > LISTED:
        note(f"and {counted(len(found) - LISTED, 'more value')} beyond limits at the start")


def remark_stops(model: Model, q: ArrayLike) -> None:
    """Write a note if no joint has a position limit, or if a stop acts from the start."""
    if not limited_joints(model).any():
        note("--stops: no joint has a position limit")
    elif any(use.passed for use in limit_uses(model, np.asarray(q)[None])):
        note("--stops: joints that start beyond a position limit are pushed back")


def remark_study(rollout: Rollout) -> None:
    """Write notes about the nominal motion of a study, without random inputs, and about joints without inertia."""
    constant = rollout.torques if rollout.torques is not None and rollout.torques.ndim == 1 else None
    remark(rollout.model, rollout.q0, rollout.v0, constant)
    missing = describe_missing_inertia(rollout.model, rollout.q0)
    if missing:
        note(f"nominal motion, without random inputs: {missing}")
