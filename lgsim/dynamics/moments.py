"""Moments of mass: what inertia and Coriolis forces of a moving body, or of a sum of bodies, come down to.

With r and r' the position and velocity of a mass element in one fixed frame, a rigid body's Coriolis effects need
twelve numbers: ``P = int r' r^T dm`` and ``p = int r' dm``. The 6x6 matrix B of Singh, Russell, Wensing, Efficient
analytical derivatives of rigid-body dynamics using spatial vector algebra, IEEE Robotics and Automation Letters 7(2),
2022, is for a rigid body ``w -> int (w x r', r x (w x r')) dm``.
"""

from __future__ import annotations

from typing import NamedTuple

from lgsim.spatial import Force, Inertia, Mat, Motion, Sym, Transform, Vec, cut
from lgsim.spatial.algebra import Scalar
from lgsim.spatial.inertia import cross_matrix


class Gyro(NamedTuple):
    """``P = int r' r^T dm`` and ``p = int r' dm``."""

    P: Mat
    p: Vec

    def __matmul__(self, w: Vec) -> Force:
        """``int (w x r', r x (w x r')) dm``: half the Coriolis wrench of a rotation w of the whole."""
        return Force(w.cross(self.p), w * _trace(self.P) - self.P @ w)

    def transpose_angular(self, V: Motion) -> Vec:
        """The vector c with ``c . w = (self @ w) . V``."""
        return V.w * _trace(self.P) - self.P.transpose_apply(V.w) + self.p.cross(V.v)


def of_body(inertia: Inertia, T: Transform, V: Motion) -> tuple[Inertia, Gyro]:
    """Moments of a body whose frame has the pose T and whose motion is V, in the frame of both."""
    moved = cut(inertia.transformed(T))
    return moved, of_inertia(moved, V)


def of_inertia(inertia: Inertia, V: Motion) -> Gyro:
    """The Gyro of an inertia that moves with V, both in one frame: ``r' = v + w x r``."""
    I, h = inertia.I, inertia.h  # noqa: E741
    half = 0.5 * (I.xx + I.yy + I.zz)
    second = Sym(half - I.xx, -I.xy, -I.xz, half - I.yy, -I.yz, half - I.zz)  # int r r^T dm
    outer = Mat(h * V.v.x, h * V.v.y, h * V.v.z)
    return cut(Gyro(outer + cross_matrix(V.w, second.matrix), V.v * inertia.m + V.w.cross(h)))


def _trace(P: Mat) -> Scalar:
    return P.r0.x + P.r1.y + P.r2.z
