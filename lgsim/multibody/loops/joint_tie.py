"""Loops closed by a joint whose motions are a subgroup: the rows forbid the other motions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import jax.numpy as jnp
from jax import Array

from lgsim._compile.spatial import Transform, Vec
from lgsim.multibody.joint import Joint
from lgsim.multibody.loops.closing_joints import forbidden_motions, turning_axis, upright_axes
from lgsim.multibody.loops.loop import Numbers
from lgsim.multibody.loops.steady_loop import SteadyLoop


@dataclass(frozen=True)
class JointTie(SteadyLoop):
    """Frame b moves against frame a as the joint lets it, about and along the joint's usual axes of b.

    ``T' (V_b - V_a) = 0`` with the unit wrenches T along the axes that the joint has no row for. The residual of the
    turns is ``e_i = R[k, j]`` with k the axis about which the joint turns, of the slides ``(p + e x p)_i`` with the
    position p of b in a, in b's axes: their rates on the closed set are those of ``T' V_rel``, for turns of any size
    about k. Half turns, where all e are zero too, are told apart by ``gap``.
    """

    joint: Joint

    @cached_property
    def forbidden(self) -> tuple[tuple[bool, int], ...]:
        """What the joint has no row for, slides first."""
        return forbidden_motions(self.joint)

    def residual(self, pose: Transform, numbers: Numbers) -> list[Array]:
        """``(p + e x p, e)`` in the forbidden directions."""
        p, k = pose.R.transpose_apply(pose.p), turning_axis(self.joint)
        i, j = (k + 1) % 3, (k + 2) % 3
        turns = {i: pose.R[k][j], j: -pose.R[k][i], k: pose.R[j][i]}
        e = Vec(*(turns[x] if (True, x) in self.forbidden else jnp.zeros_like(p.x) for x in range(3)))
        return self.entries(p + e.cross(p), e)

    def misfit(self, pose: Transform, numbers: Numbers) -> list[tuple[bool, Array]]:
        """Slides in the forbidden directions, and how far the tips of b's axes are from those of a.

        Unlike the residual of the turns these grow until half a turn.
        """
        p = pose.R.transpose_apply(pose.p)
        tips = [(True, pose.R[i][axis] - float(i == axis)) for axis in upright_axes(self.joint) for i in range(3)]
        return [(False, p[axis]) for turns, axis in self.forbidden if not turns] + tips

    def gap(self, pose: Transform, numbers: Numbers) -> tuple[Array, Array]:
        """Squares of the distance and of e; 4 more for each axis that is turned by more than a quarter."""
        far, turned = super().gap(pose, numbers)
        away = (jnp.where(pose.R[axis][axis] < 0, 4.0 + 0 * turned, 0 * turned) for axis in upright_axes(self.joint))
        return far, sum(away, turned)
