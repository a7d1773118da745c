"""Loops closed by a joint whose motions are a subgroup: the rows forbid the other motions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import jax.numpy as jnp
from jax import Array

from lgsim.multibody.joint import Joint
from lgsim.multibody.joints import Cylindrical, Fixed, Planar, Prismatic, Revolute, Spherical, Translational
from lgsim.multibody.loops.loop import FrameLoop, Numbers
from lgsim.spatial import Force, Transform, Vec

CLOSING: tuple[type[Joint], ...] = (Spherical, Revolute, Fixed, Prismatic, Cylindrical, Planar, Translational)
"""Joints whose motions are a subgroup with axes along those of the frame, so that the rows T are constant in b."""


@dataclass(frozen=True)
class JointTie(FrameLoop):
    """Frame b moves against frame a as the joint lets it, about and along the joint's usual axes of b.

    ``T' (V_b - V_a) = 0`` with the unit wrenches T along the axes that the joint has no row for. The residual of the
    turns is ``e_i = R[k, j]`` with k the axis about which the joint turns, of the slides ``(p + e x p)_i`` with the
    position p of b in a, in b's axes: their rates on the closed set are those of ``T' V_rel``, for turns of any size
    about k. Half turns, where all e are zero too, are told apart by ``gap``.
    """

    joint: Joint

    @property
    def steady(self) -> bool:
        """The rows are constant in b."""
        return True

    @cached_property
    def forbidden(self) -> tuple[tuple[bool, int], ...]:
        """(whether it turns, the axis) of each row, slides first."""
        allowed = {(row.turns, row.axis) for row in self.joint.rows}
        every = [(turns, axis) for turns in (False, True) for axis in range(3)]
        return tuple(entry for entry in every if entry not in allowed)

    @property
    def row_names(self) -> tuple[str, ...]:
        """Slides and turns."""
        return tuple(("turn about " if turns else "slide along ") + "xyz"[axis] for turns, axis in self.forbidden)

    @property
    def row_turns(self) -> tuple[bool, ...]:
        """Which rows are angles."""
        return tuple(turns for turns, _ in self.forbidden)

    def residual(self, pose: Transform, numbers: Numbers) -> list[Array]:
        """``(p + e x p, e)`` in the forbidden directions."""
        e = self._turns(pose)
        p = pose.R.transpose_apply(pose.p)
        p = p + e.cross(p)
        return [(e if turns else p)[axis] for turns, axis in self.forbidden]

    def wrenches(self, pose: Transform, numbers: Numbers) -> list[Force]:
        """Unit forces and moments along axes of b."""
        zero, one = jnp.zeros_like(pose.p.x), jnp.ones_like(pose.p.x)
        nothing = Vec(zero, zero, zero)
        units = [Vec(*(one if i == axis else zero for i in range(3))) for axis in range(3)]
        return [Force(nothing, units[axis]) if turns else Force(units[axis], nothing) for turns, axis in self.forbidden]

    def misfit(self, pose: Transform, numbers: Numbers) -> list[tuple[bool, Array]]:
        """Slides in the forbidden directions, and how far the tips of b's axes are from those of a.

        Unlike the residual of the turns these grow until half a turn.
        """
        p = pose.R.transpose_apply(pose.p)
        slides = [(False, p[axis]) for turns, axis in self.forbidden if not turns]
        held = [axis for turns, axis in self.forbidden if turns]
        fixed = held if len(held) == 3 else [self._turning] * (len(held) == 2)
        return slides + [(True, pose.R[i][axis] - float(i == axis)) for axis in fixed for i in range(3)]

    def gap(self, pose: Transform, numbers: Numbers) -> tuple[Array, Array]:
        """Squares of the distance and of e; 4 more where it is turned by more than a quarter, as half turns are."""
        e = self._turns(pose)
        p = pose.R.transpose_apply(pose.p)
        p = p + e.cross(p)
        zero = jnp.zeros_like(pose.p.x)
        far = sum((p[axis] * p[axis] for turns, axis in self.forbidden if not turns), zero)
        held = [axis for turns, axis in self.forbidden if turns]
        upright = held if len(held) == 3 else [self._turning] * (len(held) == 2)
        over = sum((jnp.where(pose.R[i][i] < 0, zero + 4, zero) for i in upright), zero)
        return far, e.dot(e) + over

    @property
    def _turning(self) -> int:
        """The axis about which it turns; z where it does not turn or turns about all."""
        turns = [row.axis for row in self.joint.rows if row.turns]
        return turns[0] if len(turns) == 1 else 2

    def _turns(self, pose: Transform) -> Vec:
        """The residual of turns, zero about axes about which the joint turns."""
        zero = jnp.zeros_like(pose.p.x)
        held = {axis for turns, axis in self.forbidden if turns}
        k = self._turning
        i, j = (k + 1) % 3, (k + 2) % 3
        e = {i: pose.R[k][j], j: -pose.R[k][i], k: pose.R[j][i]}
        return Vec(*(e[axis] if axis in held else zero for axis in range(3)))
