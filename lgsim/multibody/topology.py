"""What is raised where a machine cannot be."""

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
    """A machine that cannot be: the message names the body or joint, what was expected and what came."""


WORLD = -1
"""The parent of a root."""

ROOT = "world"
"""Its name."""


@dataclass(frozen=True)
class Topology:
    """Bodies 0, 1, ... in an order in which parents come first; joint i joins body i to its parent.

    Attributes:
        joints: What moves body i.
        body_names: The name of body i.
        parents: The body that carries body i, ``WORLD`` for a root.
        mimics: The joint that joint i follows, ``q_i = k q_j + b``, or None.
        frame_names: Names of frames fixed to bodies; the bodies' own frames are not among them.
        frame_bodies: The body of each frame, ``WORLD`` for one that does not move.
        stribeck: Whether dry friction has a Stribeck part, which costs an exponential for each degree of freedom.
        loops: What ties frames or joints beyond the tree, see ``lgsim.multibody.loops``.
        contacts: What touches what.
        solids: Solids on its frames, for distances.
        exclusions: Pairs of names of solids whose distance is never asked for by ``Model.solid_pairs``.
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
        """The same with such Stribeck friction; numbers that are being traced count as other than zero."""
        return replace(self, stribeck=is_traced(stribeck) or bool(np.any(np.asarray(stribeck) != 0)))

    @property
    def bodies(self) -> int:
        """Number of moving bodies."""
        return len(self.joints)

    @cached_property
    def q_starts(self) -> tuple[int, ...]:
        """Where each joint's numbers begin in q."""
        return _starts([0 if m is not None else j.nq for j, m in zip(self.joints, self.mimics, strict=True)])

    @cached_property
    def v_starts(self) -> tuple[int, ...]:
        """Where each joint's numbers begin in v."""
        return _starts([0 if m is not None else j.nv for j, m in zip(self.joints, self.mimics, strict=True)])

    @property
    def nq(self) -> int:
        """Length of a configuration."""
        return self.q_starts[-1]

    @property
    def nv(self) -> int:
        """Degrees of freedom."""
        return self.v_starts[-1]

    @cached_property
    def row_starts(self) -> tuple[int, ...]:
        """Where each joint's rows begin, joints that mimic included."""
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
        """Whether each row turns."""
        return np.array([row.turns for joint in self.joints for row in joint.rows], bool)

    @cached_property
    def row_pitched(self) -> np.ndarray:
        """Whether each row turns and may advance."""
        return np.array([row.turns and joint.pitched for joint in self.joints for row in joint.rows], bool)

    @cached_property
    def row_first(self) -> np.ndarray:
        """Whether each row is the first one of its joint."""
        first = np.zeros(self.rows, bool)
        first[list(self.row_starts[:-1])] = True
        return first

    @cached_property
    def body_row(self) -> np.ndarray:
        """The last row of each joint: the one that carries its body."""
        return np.array(self.row_starts[1:], int) - 1

    @cached_property
    def row_parent(self) -> np.ndarray:
        """The row that carries each row, ``WORLD`` for the first row of a root."""
        parents = np.arange(self.rows) - 1
        for body, parent in enumerate(self.parents):
            parents[self.row_starts[body]] = WORLD if parent == WORLD else self.body_row[parent]
        return parents

    @cached_property
    def row_source(self) -> np.ndarray:
        """The row that each row follows: itself, or that of the joint that it mimics."""
        source = np.arange(self.rows)
        for joint, other in enumerate(self.mimics):
            if other is not None:
                source[self.row_starts[joint]] = self.row_starts[other]
        return source

    @cached_property
    def row_v(self) -> np.ndarray:
        """The entry of v that moves each row."""
        own = np.full(self.rows, -1)
        for joint, mimic in enumerate(self.mimics):
            if mimic is None:
                own[self.row_starts[joint] : self.row_starts[joint + 1]] = range(
                    self.v_starts[joint], self.v_starts[joint + 1]
                )
        return own[self.row_source]

    @cached_property
    def row_q(self) -> np.ndarray:
        """The entry of q that is the coordinate of each row; 0 for rows of a joint that is a group."""
        own = np.zeros(self.rows, int)
        for joint, (kind, mimic) in enumerate(zip(self.joints, self.mimics, strict=True)):
            if mimic is None and not isinstance(kind, GroupJoint):
                own[self.row_starts[joint] : self.row_starts[joint + 1]] = range(
                    self.q_starts[joint], self.q_starts[joint + 1]
                )
        return own[self.row_source]

    @cached_property
    def groups(self) -> tuple[tuple[GroupJoint, tuple[int, ...]], ...]:
        """The joints that are groups, by kind: (the joint, the bodies that have it)."""
        kinds: dict[GroupJoint, list[int]] = {}
        for body, joint in enumerate(self.joints):
            if isinstance(joint, GroupJoint):
                kinds.setdefault(joint, []).append(body)
        return tuple((joint, tuple(bodies)) for joint, bodies in kinds.items())

    @cached_property
    def row_unit(self) -> tuple[np.ndarray, np.ndarray]:
        """(first, last) row of the unit of each row: all rows of a joint that is a group, else the row alone."""
        first, last = np.arange(self.rows), np.arange(self.rows)
        for _, bodies in self.groups:
            for body in bodies:
                rows = slice(self.row_starts[body], self.row_starts[body + 1])
                first[rows], last[rows] = rows.start, rows.stop - 1
        return first, last

    @cached_property
    def row_carried(self) -> np.ndarray:
        """``row_carried[i, j]``: the unit of row j carries row i, or is its unit."""
        carried = np.eye(self.rows, dtype=bool)
        for i, parent in enumerate(self.row_parent):
            if parent != WORLD:
                carried[i] |= carried[parent]
        first, last = self.row_unit
        return carried[last][:, first]

    @property
    def loop_rows(self) -> int:
        """Accelerations that loops forbid."""
        return sum(loop.kind.rows for loop in self.loops)

    @cached_property
    def loop_row_starts(self) -> tuple[int, ...]:
        """Where the rows of each loop begin."""
        return _starts([loop.kind.rows for loop in self.loops])

    @cached_property
    def loop_number_starts(self) -> tuple[int, ...]:
        """Where the numbers of each loop begin in ``Model.loops``."""
        return _starts([len(loop.kind.number_names) for loop in self.loops])

    def loop_joints(self, loop: Any) -> tuple[int, ...]:
        """The joints of the ring that a loop closes, those that carry one of its ends; the joints that it couples."""
        if not loop.kind.on_frames:
            return self.joint_places[loop.a], self.joint_places[loop.b]
        carry_a, carry_b = (self._carriers(self.frame_place(end)[0]) for end in (loop.a, loop.b))
        return tuple(int(i) for i in np.flatnonzero(carry_a != carry_b))

    def _carriers(self, body: int) -> np.ndarray:
        """Whether each joint carries a body, (n,)."""
        out = np.zeros(self.bodies, bool)
        while body != WORLD:
            out[body] = True
            body = self.parents[body]
        return out

    def loop_number(self, place: int) -> str:
        """The words for the number of that place in ``Model.loops``."""
        i = next(i for i in range(len(self.loops)) if place < self.loop_number_starts[i + 1])
        loop = self.loops[i]
        return f"{loop.kind.number_names[place - self.loop_number_starts[i]]} of loop {loop.name!r}"

    @property
    def has_mimic(self) -> bool:
        """Whether a joint follows another one."""
        return any(m is not None for m in self.mimics)

    @cached_property
    def floats(self) -> bool:
        """Whether the machine is one tree on a base that moves freely."""
        free = isinstance(self.joints[0], GroupJoint) and self.joints[0].nv == 6 if self.joints else False
        return free and self.parents.count(WORLD) == 1

    @property
    def base(self) -> GroupJoint:
        """The joint of the base of a machine that ``floats``."""
        return next(joint for joint, bodies in self.groups if 0 in bodies)

    @cached_property
    def carried(self) -> np.ndarray:
        """``carried[i, j]``: body j carries body i, or is it."""
        out = np.eye(self.bodies, dtype=bool)
        for body, parent in enumerate(self.parents):
            if parent != WORLD:
                out[body] |= out[parent]
        return out

    def frame_place(self, frame: str) -> tuple[int, int | None]:
        """(the body that carries a frame, its place in ``Model.frames``), None for a body's own frame or "world".

        Raises:
            ValueError: there is no such frame.
        """
        if frame not in self._frame_places:
            raise ValueError(f"there is no frame {frame!r}")
        return self._frame_places[frame]

    def carrier(self, frame: str, what: str = "frame") -> int:
        """The body that carries a frame, or ``WORLD``; ``what`` has the frame, for the message.

        Raises:
            ModelError: there is no such frame.
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
        """The place of each joint by its name."""
        return {name: i for i, name in enumerate(self.joint_names)}

    def q_slice(self, joint: int) -> slice:
        """The joint's part of q."""
        return slice(self.q_starts[joint], self.q_starts[joint + 1])

    def v_slice(self, joint: int) -> slice:
        """The joint's part of v."""
        return slice(self.v_starts[joint], self.v_starts[joint + 1])


def _starts(lengths: list[int]) -> tuple[int, ...]:
    return tuple(int(n) for n in np.concatenate([[0], np.cumsum(np.array(lengths, int))]))
