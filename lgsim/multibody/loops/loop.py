"""What a loop is: how two frames, or two joints, of one machine are tied; all that an algorithm has to know."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from jax import Array

from lgsim._compile.spatial import Force, Motion, Transform

Numbers = Sequence[Array]
"""The numbers of a loop, one array each."""


class Relative(NamedTuple):
    """How the frame b of a loop lies and moves against its frame a, all in the axes of b, at the origin of b."""

    pose: Transform
    """Of b in a."""
    velocity: Motion
    """``V_b - V_a``."""
    acceleration: Motion
    """``A_b - A_a + V_rel x V_a``: the derivative of ``velocity``, number by number."""


@dataclass(frozen=True)
class LoopKind(ABC):
    """The contract of what closes a loop. A kind is one file; its tests are generated."""

    @property
    @abstractmethod
    def on_frames(self) -> bool:
        """Whether it ties two frames; else two joints."""

    @property
    @abstractmethod
    def row_names(self) -> tuple[str, ...]:
        """A word for each row: what it forbids."""

    @property
    @abstractmethod
    def row_turns(self) -> tuple[bool, ...]:
        """Whether the residual of each row is an angle, rad; else a distance, m."""

    @property
    def number_names(self) -> tuple[str, ...]:
        """The names of the loop's own numbers in ``Model.loops``."""
        return ()

    @property
    def rows(self) -> int:
        """How many accelerations it forbids."""
        return len(self.row_names)

    def fault(self, numbers: Any) -> str | None:
        """What is wrong with numbers of such a loop (numpy), in words; None for nothing."""
        del numbers
        return None


@dataclass(frozen=True)
class FrameLoop(LoopKind):
    """A tie between two frames. All its methods act on components of any common shape."""

    @property
    def on_frames(self) -> bool:
        """True."""
        return True

    @property
    def steady(self) -> bool:
        """Whether the rows T are constant in b, so that nothing but ``T . A_rel`` enters."""
        return False

    @abstractmethod
    def residual(self, pose: Transform, numbers: Numbers) -> list[Array]:
        """What is zero where the loop is closed, one for each row, from the pose of b in a.

        Its derivative on the closed set is ``T . V_rel``.
        """

    @abstractmethod
    def wrenches(self, pose: Transform, numbers: Numbers) -> list[Force]:
        """The rows T, in b's axes at b's origin: ``T . V_rel = 0``."""

    def drift(self, at: Relative, numbers: Numbers) -> list[Array] | None:
        """What the second derivative of the residual has beyond ``T . A_rel``; None for nothing."""
        del at, numbers
        return None

    def rates(self, at: Relative, numbers: Numbers) -> list[Array]:
        """The second derivative of the residual on the closed set: ``T . A_rel`` and the drift."""
        held = [T.power(at.acceleration) for T in self.wrenches(at.pose, numbers)]
        drift = self.drift(at, numbers)
        return held if drift is None else [x + y for x, y in zip(held, drift, strict=True)]

    def misfit(self, pose: Transform, numbers: Numbers) -> list[tuple[bool, Array]]:
        """Smooth numbers that are all zero only where the loop is closed, each with whether it is an angle.

        The residual, where nothing else makes that zero; they may be more, and depend on each other.
        """
        return list(zip(self.row_turns, self.residual(pose, numbers), strict=True))

    def gap(self, pose: Transform, numbers: Numbers) -> tuple[Array, Array]:
        """Squares of the distance, m, and of the angle, rad, by which it is open: zero only where it is closed."""
        rows = list(zip(self.residual(pose, numbers), self.row_turns, strict=True))
        zero = rows[0][0] * 0
        far, turned = (sum((r * r for r, turns in rows if turns is kind), zero) for kind in (False, True))
        return far, turned


@dataclass(frozen=True)
class JointLoop(LoopKind):
    """A tie ``x_b = f(x_a)`` between the coordinates of two joints of one degree of freedom each: one row."""

    @property
    def on_frames(self) -> bool:
        """False."""
        return False

    @property
    def row_names(self) -> tuple[str, ...]:
        """One row."""
        return ("coordinate",)

    @abstractmethod
    def values(self, x: Array, numbers: Numbers) -> tuple[Array, Array, Array, Array]:
        """(f, f', f'', f''') at x."""


@dataclass(frozen=True)
class Loop:
    """A loop of a machine.

    Attributes:
        a: Name of the frame, or of the joint, against which the other end moves; "world" is a frame too.
        b: Name of the other frame or joint.
        kind: What ties them.
    """

    name: str
    a: str
    b: str
    kind: LoopKind
