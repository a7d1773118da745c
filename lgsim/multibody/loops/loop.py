"""Interface of loop constraints between two frames or two joints of a model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from jax import Array

from lgsim._compile.spatial import Force, Motion, Transform

Numbers = Sequence[Array]
"""Parameters of a loop, one array each."""


class Relative(NamedTuple):
    """Pose, velocity and acceleration of frame b relative to frame a, in the axes of b, at the origin of b."""

    pose: Transform
    """Pose of b in a."""
    velocity: Motion
    """``V_b - V_a``."""
    acceleration: Motion
    """``A_b - A_a + V_rel x V_a``: the derivative of the components of ``velocity``."""


@dataclass(frozen=True)
class LoopKind(ABC):
    """Interface of loop constraints. A kind is one file; its tests are generated."""

    @property
    @abstractmethod
    def on_frames(self) -> bool:
        """True for a constraint between two frames, False between two joints."""

    @property
    @abstractmethod
    def row_names(self) -> tuple[str, ...]:
        """Name of each row: the motion that it constrains."""

    @property
    @abstractmethod
    def row_turns(self) -> tuple[bool, ...]:
        """True for each row whose residual is an angle, rad; False for a distance, m."""

    @property
    def number_names(self) -> tuple[str, ...]:
        """Names of the loop's parameters in ``Model.loops``."""
        return ()

    @property
    def rows(self) -> int:
        """Number of constrained accelerations."""
        return len(self.row_names)

    def fault(self, numbers: Any) -> str | None:
        """Description of the first invalid parameter (numpy); None if all are valid."""
        del numbers
        return None


@dataclass(frozen=True)
class FrameLoop(LoopKind):
    """A constraint between two frames. All its methods act on components of any common shape."""

    @property
    def on_frames(self) -> bool:
        """True."""
        return True

    @property
    def steady(self) -> bool:
        """True if the rows T are constant in b, so that only ``T . A_rel`` enters the accelerations."""
        return False

    @abstractmethod
    def residual(self, pose: Transform, numbers: Numbers) -> list[Array]:
        """The residual, zero on the closed set, one value for each row, from the pose of b in a.

        Its derivative on the closed set is ``T . V_rel``.
        """

    @abstractmethod
    def wrenches(self, pose: Transform, numbers: Numbers) -> list[Force]:
        """The rows T, in b's axes at b's origin: ``T . V_rel = 0``."""

    def drift(self, at: Relative, numbers: Numbers) -> list[Array] | None:
        """Terms of the second derivative of the residual other than ``T . A_rel``; None for zero."""
        del at, numbers
        return None

    def rates(self, at: Relative, numbers: Numbers) -> list[Array]:
        """The second derivative of the residual on the closed set: ``T . A_rel`` and the drift."""
        held = [T.power(at.acceleration) for T in self.wrenches(at.pose, numbers)]
        drift = self.drift(at, numbers)
        return held if drift is None else [x + y for x, y in zip(held, drift, strict=True)]

    def misfit(self, pose: Transform, numbers: Numbers) -> list[tuple[bool, Array]]:
        """Smooth values that are zero if and only if the loop is closed, each with True for an angle.

        By default the residual. There may be more values than rows, and they may depend on each other.
        """
        return list(zip(self.row_turns, self.residual(pose, numbers), strict=True))

    def gap(self, pose: Transform, numbers: Numbers) -> tuple[Array, Array]:
        """Squared distance, m^2, and squared angle, rad^2, by which the loop is open: zero only if it is closed."""
        rows = list(zip(self.residual(pose, numbers), self.row_turns, strict=True))
        zero = rows[0][0] * 0
        far, turned = (sum((r * r for r, turns in rows if turns is kind), zero) for kind in (False, True))
        return far, turned


@dataclass(frozen=True)
class JointLoop(LoopKind):
    """A constraint ``x_b = f(x_a)`` between two joints of one degree of freedom each: one row."""

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
    """A loop of a model.

    Attributes:
        a: Name of the reference frame or joint; "world" is a frame too.
        b: Name of the other frame or joint.
        kind: The constraint between them.
    """

    name: str
    a: str
    b: str
    kind: LoopKind
