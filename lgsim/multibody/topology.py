"""The topology of a model: static structure and names."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from lgsim.multibody.contacts.contact import Contact
from lgsim.multibody.geometry.solid import Solid
from lgsim.multibody.joint import GroupJoint, Joint
from lgsim.support.check import is_traced
from lgsim.support.messages import unknown_name


class ModelError(ValueError):
    """An invalid model; the message names the body or joint, the expected and the actual value."""


WORLD = -1
"""Parent index of a root."""

ROOT = "world"
"""Name of the world."""


@dataclass(frozen=True)
class Topology:
    """Bodies 0, 1, ... in an order with parents first; joint i connects body i to its parent.

    Attributes:
        joints: Joint of each body.
        body_names: Name of each body.
        parents: Parent index of each body, ``WORLD`` for a root.
        mimics: Index of the joint that joint i mimics, ``q_i = k q_j + b``, or None.
        frame_names: Names of frames fixed to bodies, without the bodies' own frames.
        frame_bodies: Body of each frame, ``WORLD`` for fixed frames.
        stribeck: True if dry friction has a Stribeck part, which costs an exponential for each degree of freedom.
        loops: Loop constraints, see ``lgsim.multibody.loops``.
        contacts: Contacts.
        solids: Collision geometry.
        exclusions: Pairs of names of solids that ``Model.solid_pairs`` excludes.
    """

    joints: tuple[Joint, ...]
    joint_names: tuple[str, ...]
    body_names: tuple[str, ...]
    parents: tuple[int, ...]
    mimics: tuple[int | None, ...]
    frame_names: tuple[str, ...] = ()
    frame_bodies: tuple[int, ...] = ()
    stribeck: bool = False
    loops: tuple[Any, ...] = ()
    contacts: tuple[Contact, ...] = ()
    solids: tuple[Solid, ...] = ()
    exclusions: tuple[tuple[str, str], ...] = ()

    def sticking(self, stribeck: Any) -> Topology:
        """A copy with the flag ``stribeck`` for such friction; traced values count as nonzero."""
        return replace(self, stribeck=is_traced(stribeck) or bool(np.any(np.asarray(stribeck) != 0)))

    @property
    def bodies(self) -> int:
        """Number of moving bodies."""
        return len(self.joints)

    @cached_property
    def q_starts(self) -> tuple[int, ...]:
        """Start of each joint's coordinates in q."""
        return _starts([0 if m is not None else j.nq for j, m in zip(self.joints, self.mimics, strict=True)])

    @cached_property
    def v_starts(self) -> tuple[int, ...]:
        """Start of each joint's degrees of freedom in v."""
        return _starts([0 if m is not None else j.nv for j, m in zip(self.joints, self.mimics, strict=True)])

    @property
    def nq(self) -> int:
        """Number of configuration coordinates."""
        return self.q_starts[-1]

    @property
    def nv(self) -> int:
        """Degrees of freedom."""
        return self.v_starts[-1]

    @cached_property
    def row_starts(self) -> tuple[int, ...]:
        """Start of each joint's rows, including mimic joints."""
        return _starts([joint.nv for joint in self.joints])

    @property
    def rows(self) -> int:
        """Number of elementary screws."""
        return self.row_starts[-1]

    @cached_property
    def row_joint(self) -> np.ndarray:
        """The joint of each row."""
        return np.repeat(np.arange(self.bodies), np.diff(self.row_starts))

    @cached_property
    def row_turns(self) -> np.ndarray:
        """True for each rotational row."""
        return np.array([row.turns for joint in self.joints for row in joint.rows], bool)

    @cached_property
    def row_pitched(self) -> np.ndarray:
        """True for each rotational row that may have a pitch."""
        return np.array([row.turns and joint.pitched for joint in self.joints for row in joint.rows], bool)

    @cached_property
    def row_first(self) -> np.ndarray:
        """True for the first row of each joint."""
        first = np.zeros(self.rows, bool)
        first[list(self.row_starts[:-1])] = True
        return first

    @cached_property
    def body_row(self) -> np.ndarray:
        """Last row of each joint, the one next to its body."""
        return np.array(self.row_starts[1:], int) - 1

    @cached_property
    def row_parent(self) -> np.ndarray:
        """Parent row of each row, ``WORLD`` for the first row of a root."""
        parents = np.arange(self.rows) - 1
        for body, parent in enumerate(self.parents):
            parents[self.row_starts[body]] = WORLD if parent == WORLD else self.body_row[parent]
        return parents

    @cached_property
    def row_source(self) -> np.ndarray:
        """Source row of each row: itself, or that of the mimicked joint."""
        source = np.arange(self.rows)
        for joint, other in enumerate(self.mimics):
            if other is not None:
                source[self.row_starts[joint]] = self.row_starts[other]
        return source

    @cached_property
    def row_v(self) -> np.ndarray:
        """Index in v of each row."""
        own = np.full(self.rows, -1)
        for joint, mimic in enumerate(self.mimics):
            if mimic is None:
                own[self.row_starts[joint] : self.row_starts[joint + 1]] = range(
                    self.v_starts[joint], self.v_starts[joint + 1]
                )
        return own[self.row_source]

    @cached_property
    def row_q(self) -> np.ndarray:
        """Index in q of the coordinate of each row; 0 for rows of group joints."""
        own = np.zeros(self.rows, int)
        for joint, (kind, mimic) in enumerate(zip(self.joints, self.mimics, strict=True)):
            if mimic is None and not isinstance(kind, GroupJoint):
                own[self.row_starts[joint] : self.row_starts[joint + 1]] = range(
                    self.q_starts[joint], self.q_starts[joint + 1]
                )
        return own[self.row_source]

    @cached_property
    def groups(self) -> tuple[tuple[GroupJoint, tuple[int, ...]], ...]:
        """Group joints by kind: the joint and the bodies that have it."""
        kinds: dict[GroupJoint, list[int]] = {}
        for body, joint in enumerate(self.joints):
            if isinstance(joint, GroupJoint):
                kinds.setdefault(joint, []).append(body)
        return tuple((joint, tuple(bodies)) for joint, bodies in kinds.items())

    @cached_property
    def row_unit(self) -> tuple[np.ndarray, np.ndarray]:
        """First and last row of the unit of each row: all rows of a group joint, else the row itself."""
        first, last = np.arange(self.rows), np.arange(self.rows)
        for _, bodies in self.groups:
            for body in bodies:
                rows = slice(self.row_starts[body], self.row_starts[body + 1])
                first[rows], last[rows] = rows.start, rows.stop - 1
        return first, last

    @cached_property
    def row_carried(self) -> np.ndarray:
        """``row_carried[i, j]`` is true if the unit of row j is that of row i or one of its ancestors."""
        carried = np.eye(self.rows, dtype=bool)
        for i, parent in enumerate(self.row_parent):
            if parent != WORLD:
                carried[i] |= carried[parent]
        first, last = self.row_unit
        return carried[last][:, first]

    @property
    def loop_rows(self) -> int:
        """Number of constrained accelerations of all loops."""
        return sum(loop.kind.rows for loop in self.loops)

    @cached_property
    def loop_row_starts(self) -> tuple[int, ...]:
        """Start of the rows of each loop."""
        return _starts([loop.kind.rows for loop in self.loops])

    @cached_property
    def loop_number_starts(self) -> tuple[int, ...]:
        """Start of the parameters of each loop in ``Model.loops``."""
        return _starts([len(loop.kind.number_names) for loop in self.loops])

    def loop_joints(self, loop: Any) -> tuple[int, ...]:
        """Joints of the kinematic loop that a loop closes, which move only one of its ends, or the coupled joints."""
        if not loop.kind.on_frames:
            return self.joint_places[loop.a], self.joint_places[loop.b]
        carry_a, carry_b = (self._carriers(self.frame_place(end)[0]) for end in (loop.a, loop.b))
        return tuple(int(i) for i in np.flatnonzero(carry_a != carry_b))

    def _carriers(self, body: int) -> np.ndarray:
        """True for each joint that moves a body, (n,)."""
        out = np.zeros(self.bodies, bool)
        while body != WORLD:
            out[body] = True
            body = self.parents[body]
        return out

    def loop_number(self, place: int) -> str:
        """Description of a parameter in ``Model.loops``, by its index."""
        i = next(i for i in range(len(self.loops)) if place < self.loop_number_starts[i + 1])
        loop = self.loops[i]
        return f"{loop.kind.number_names[place - self.loop_number_starts[i]]} of loop {loop.name!r}"

    @property
    def has_mimic(self) -> bool:
        """True if there is a mimic joint."""
        return any(m is not None for m in self.mimics)

    @cached_property
    def floats(self) -> bool:
        """True for a single tree on a floating base."""
        free = isinstance(self.joints[0], GroupJoint) and self.joints[0].nv == 6 if self.joints else False
        return free and self.parents.count(WORLD) == 1

    @property
    def base(self) -> GroupJoint:
        """Joint of the floating base of a topology that ``floats``."""
        return next(joint for joint, bodies in self.groups if 0 in bodies)

    @cached_property
    def carried(self) -> np.ndarray:
        """``carried[i, j]`` is true if body j is body i or one of its ancestors."""
        out = np.eye(self.bodies, dtype=bool)
        for body, parent in enumerate(self.parents):
            if parent != WORLD:
                out[body] |= out[parent]
        return out

    def frame_place(self, frame: str) -> tuple[int, int | None]:
        """The body of a frame and its index in ``Model.frames``, None for a body's own frame or "world".

        Raises:
            ValueError: an unknown frame.
        """
        if frame not in self._frame_places:
            raise ValueError(f"there is no frame {frame!r}")
        return self._frame_places[frame]

    def carrier(self, frame: str, what: str = "frame") -> int:
        """The body of a frame, or ``WORLD``; ``what`` is the prefix of the error message.

        Raises:
            ModelError: an unknown frame.
        """
        if frame not in self._frame_places:
            known = (ROOT, *self.body_names, *self.frame_names)
            raise ModelError(unknown_name(f"{what}: expected the name of a frame", frame, known))
        return self._frame_places[frame][0]

    @cached_property
    def _frame_places(self) -> dict[str, tuple[int, int | None]]:
        places: dict[str, tuple[int, int | None]] = {
            name: (self.frame_bodies[i], i) for i, name in enumerate(self.frame_names)
        }
        places.update((name, (i, None)) for i, name in enumerate(self.body_names))
        return places | {ROOT: (WORLD, None)}

    @cached_property
    def joint_places(self) -> dict[str, int]:
        """Index of each joint by name."""
        return {name: i for i, name in enumerate(self.joint_names)}

    def q_slice(self, joint: int) -> slice:
        """Slice of a joint in q."""
        return slice(self.q_starts[joint], self.q_starts[joint + 1])

    def v_slice(self, joint: int) -> slice:
        """Slice of a joint in v."""
        return slice(self.v_starts[joint], self.v_starts[joint + 1])


def _starts(lengths: list[int]) -> tuple[int, ...]:
    return tuple(int(n) for n in np.concatenate([[0], np.cumsum(np.array(lengths, int))]))
