"""Panels of plots: the components of one joint with one unit share axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lgsim.multibody.joint import GroupJoint
from lgsim.multibody.model import Model

UNITS = {True: ("rad", "rad/s", "N m"), False: ("m", "m/s", "N")}
"""The units of q, v and tau, for rotational and translational components."""


@dataclass(frozen=True)
class Panel:
    """Components of one joint with one unit.

    Attributes:
        joint: Name of the joint.
        turns: True for rotational components, False for translational ones.
        q: Indices in q.
        v: Indices in v and tau.
        q_names: Labels of the components of q; empty for a single component.
        v_names: Labels of the components of v and tau; empty for a single component.
        quaternion: True if the components of q are a quaternion (w, x, y, z).
        plain: True if v is the time derivative of q, component by component.
    """

    joint: str
    turns: bool
    q: tuple[int, ...]
    v: tuple[int, ...]
    q_names: tuple[str, ...]
    v_names: tuple[str, ...]
    quaternion: bool
    plain: bool

    @property
    def units(self) -> tuple[str, str, str]:
        """Units of q, v and tau; 1 for a quaternion."""
        own = UNITS[self.turns]
        return ("1", *own[1:]) if self.quaternion else own


def panels(model: Model, joints: Sequence[str] | None = None) -> list[Panel]:
    """Panels of a model, in the order of its joints.

    Args:
        joints: Names of the joints to show; None for all.

    Raises:
        ValueError: a name is not that of a joint with degrees of freedom.
    """
    known = [name for name, part in model.v_slices.items() if part.stop > part.start]
    wanted = known if joints is None else list(joints)
    for name in wanted:
        if name not in known:
            raise ValueError(f"expected the name of a joint with degrees of freedom, one of {known}, got {name!r}")
    found = []
    for index, name in enumerate(model.joint_names):
        if name in wanted:
            found += _panels_of(model, index, name)
    return found


def _panels_of(model: Model, index: int, name: str) -> list[Panel]:
    """Panels of one joint: translational components, then rotational ones."""
    topology = model.topology
    joint, first = topology.joints[index], topology.row_starts[index]
    q, v = topology.q_starts[index], topology.v_starts[index]
    quaternion = joint.nq != joint.nv
    letters = isinstance(joint, GroupJoint)
    turning = any(topology.row_turns[first : first + joint.nv])
    found = []
    for turns in (False, True):
        rows = [row for row in range(joint.nv) if bool(topology.row_turns[first + row]) == turns]
        if not rows:
            continue
        is_quaternion = turns and quaternion
        # the quaternion follows the position, as the angular velocity follows the linear one
        places = list(range(rows[0], joint.nq)) if is_quaternion else rows
        names = _names(len(rows), letters)
        found.append(
            Panel(
                name,
                turns,
                tuple(q + place for place in places),
                tuple(v + row for row in rows),
                ("w", "x", "y", "z") if is_quaternion else names,
                names,
                is_quaternion,
                not (letters and turning),
            )
        )
    return found


def panel_title(panel: Panel, rows: Sequence[Panel]) -> str:
    """Name of the joint, with "(translation)" or "(rotation)" if two of the rows belong to it."""
    twice = sum(other.joint == panel.joint for other in rows) > 1
    return panel.joint + (" (rotation)" if panel.turns else " (translation)") * twice


def _names(count: int, letters: bool) -> tuple[str, ...]:
    """Labels of some components: letters of the axes, or numbers from 1."""
    if count == 1:
        return ("",)
    return tuple("xyz"[:count]) if letters else tuple(str(number + 1) for number in range(count))
