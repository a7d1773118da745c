"""Which numbers of a machine share one set of axes: those of one joint and one unit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lgsim.multibody.joint import GroupJoint
from lgsim.multibody.model import Model

UNITS = {True: ("rad", "rad/s", "N m"), False: ("m", "m/s", "N")}
"""The units of q, v and tau, for numbers that turn and numbers that slide."""


@dataclass(frozen=True)
class Panel:
    """Numbers of one joint and one unit.

    Attributes:
        joint: Name of the joint.
        turns: Whether the numbers turn; else they slide.
        q: Indices of the numbers in q.
        v: Indices of the numbers in v and tau.
        q_names: Names that tell the entries of q apart; an empty one where there is one entry.
        v_names: Names that tell the entries of v and tau apart; an empty one where there is one entry.
        quaternion: Whether the entries of q are a quaternion (w, x, y, z).
        plain: Whether v is the rate of q, number by number.
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
        """The units of q, v and tau; that of a quaternion is 1."""
        own = UNITS[self.turns]
        return ("1", *own[1:]) if self.quaternion else own


def panels(model: Model, joints: Sequence[str] | None = None) -> list[Panel]:
    """The panels of a machine, in the order of its joints.

    Args:
        joints: Names of the joints to show; None for all.

    Raises:
        ValueError: a name is none of a joint that has numbers of its own.
    """
    known = [name for name, part in model.v_slices.items() if part.stop > part.start]
    wanted = known if joints is None else list(joints)
    for name in wanted:
        if name not in known:
            raise ValueError(f"expected the name of a joint that moves by itself, one of {known}, got {name!r}")
    found = []
    for index, name in enumerate(model.joint_names):
        if name in wanted:
            found += _panels_of(model, index, name)
    return found


def _panels_of(model: Model, index: int, name: str) -> list[Panel]:
    """The panels of one joint: of its sliding numbers, then of its turning ones."""
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
        # a quaternion stands behind the position, as the angular velocity behind the linear one
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
    """The joint's name, with "(sliding)" or "(turning)" where two of the rows are panels of the joint."""
    twice = sum(other.joint == panel.joint for other in rows) > 1
    return panel.joint + (" (turning)" if panel.turns else " (sliding)") * twice


def _names(count: int, letters: bool) -> tuple[str, ...]:
    """The names of some entries: letters of the axes, or numbers from 1 on."""
    if count == 1:
        return ("",)
    return tuple("xyz"[:count]) if letters else tuple(str(number + 1) for number in range(count))
