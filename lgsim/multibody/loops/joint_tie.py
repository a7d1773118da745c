"""Loops closed by a joint whose motions are a subgroup: the rows constrain the other motions."""

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
    """A joint between frame a and frame b, about and along its usual axes of b.

    ``T' (V_b - V_a) = 0`` with unit wrenches T along the axes that the joint constrains. The residual of rotations is
    ``e_i = R[k, j]`` with k the rotation axis of the joint, that of translations ``(p + e x p)_i`` with the position p
    of b in a, in b's axes: on the closed set their rates are those of ``T' V_rel``, for rotations of any size about k.
    Half turns, where all e are zero too, are detected by ``gap``.
    """

    joint: Joint

    @cached_property
    def forbidden(self) -> tuple[tuple[bool, int], ...]:
        """Constrained elementary motions, translations first."""
        return forbidden_motions(self.joint)

    def residual(self, pose: Transform, numbers: Numbers) -> list[Array]:
        """``(p + e x p, e)`` in the constrained directions."""
        p, k = pose.R.transpose_apply(pose.p), turning_axis(self.joint)
        i, j = (k + 1) % 3, (k + 2) % 3
        turns = {i: pose.R[k][j], j: -pose.R[k][i], k: pose.R[j][i]}
        e = Vec(*(turns[x] if (True, x) in self.forbidden else jnp.zeros_like(p.x) for x in range(3)))
        return self.entries(p + e.cross(p), e)

    def misfit(self, pose: Transform, numbers: Numbers) -> list[tuple[bool, Array]]:
        """Translations in the constrained directions, and differences between the axes of b and of a.

        Unlike the residual of rotations these grow up to half a turn.
        """
        p = pose.R.transpose_apply(pose.p)
        tips = [(True, pose.R[i][axis] - float(i == axis)) for axis in upright_axes(self.joint) for i in range(3)]
        return [(False, p[axis]) for turns, axis in self.forbidden if not turns] + tips

    def gap(self, pose: Transform, numbers: Numbers) -> tuple[Array, Array]:
        """Squares of the distance and of e; plus 4 for each axis that is rotated by more than a quarter turn."""
        far, turned = super().gap(pose, numbers)
        away = (jnp.where(pose.R[axis][axis] < 0, 4.0 + 0 * turned, 0 * turned) for axis in upright_axes(self.joint))
        return far, sum(away, turned)
