"""Joints that can close a loop: the motions that they constrain."""

from __future__ import annotations

from lgsim.multibody.joint import Joint
from lgsim.multibody.joints import Cylindrical, Fixed, Planar, Prismatic, Revolute, Spherical, Translational

CLOSING: tuple[type[Joint], ...] = (Spherical, Revolute, Fixed, Prismatic, Cylindrical, Planar, Translational)
"""Joints whose motions are a subgroup with axes along those of the frame, so that the rows T are constant in b."""


def forbidden_motions(joint: Joint) -> tuple[tuple[bool, int], ...]:
    """Constrained elementary motions of a joint: (True for a rotation, axis) each, translations first."""
    allowed = {(row.turns, row.axis) for row in joint.rows}
    every = [(turns, axis) for turns in (False, True) for axis in range(3)]
    return tuple(entry for entry in every if entry not in allowed)


def turning_axis(joint: Joint) -> int:
    """The rotation axis; z if it has none or three."""
    turns = [row.axis for row in joint.rows if row.turns]
    return turns[0] if len(turns) == 1 else 2


def upright_axes(joint: Joint) -> tuple[int, ...]:
    """The axes of b that stay parallel to those of a."""
    held = tuple(axis for turns, axis in forbidden_motions(joint) if turns)
    return held if len(held) == 3 else (turning_axis(joint),) * (len(held) == 2)
