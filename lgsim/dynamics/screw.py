"""The screws of rows by components: what a rate along the local z axis does to motions and forces.

Two kinds of one interface: most machines have revolute joints alone, and not to multiply by zeros and ones saves a
tenth of the time of a single state.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from lgsim.spatial import Articulated, Force, Motion, Vec


class Turn(NamedTuple):
    """``S = w_z``: rows that all turn without a pitch; nothing to store."""

    def along(self, rate: Array) -> Motion:
        """``S rate``."""
        zero = jnp.zeros_like(rate)
        return Motion(Vec(zero, zero, zero), Vec(zero, zero, rate))

    def moved(self, V: Motion, rate: Array) -> Motion:
        """``V + S rate``."""
        v, (p, q, r) = V
        return Motion(v, Vec(p, q, r + rate))

    def carried(self, V: Motion, rate: Array) -> Motion:
        """``V x S rate``: the acceleration of a screw that the motion V carries."""
        zero = jnp.zeros_like(rate)
        return Motion(Vec(rate * V.v.y, -(rate * V.v.x), zero), Vec(rate * V.w.y, -(rate * V.w.x), zero))

    def power(self, F: Force) -> Array:
        """``S . F``."""
        return F.n.z

    def column(self, A: Articulated) -> Force:
        """``A S``."""
        return Force(A.H.r2, Vec(A.I.xz, A.I.yz, A.I.zz))


class Screw(NamedTuple):
    """``S = a w_z + b v_z``."""

    a: Array
    b: Array

    def along(self, rate: Array) -> Motion:
        """``S rate``."""
        zero = jnp.zeros_like(rate)
        return Motion(Vec(zero, zero, self.b * rate), Vec(zero, zero, self.a * rate))

    def moved(self, V: Motion, rate: Array) -> Motion:
        """``V + S rate``."""
        (x, y, z), (p, q, r) = V
        return Motion(Vec(x, y, z + self.b * rate), Vec(p, q, r + self.a * rate))

    def carried(self, V: Motion, rate: Array) -> Motion:
        """``V x S rate``: the acceleration of a screw that the motion V carries."""
        p, s = self.a * rate, self.b * rate
        zero = jnp.zeros_like(p)
        return Motion(Vec(p * V.v.y + s * V.w.y, -(p * V.v.x + s * V.w.x), zero), Vec(p * V.w.y, -(p * V.w.x), zero))

    def power(self, F: Force) -> Array:
        """``S . F``."""
        return self.a * F.n.z + self.b * F.f.z

    def column(self, A: Articulated) -> Force:
        """``A S``."""
        a, b = self
        f = Vec(b * A.M.xz + a * A.H.r2.x, b * A.M.yz + a * A.H.r2.y, b * A.M.zz + a * A.H.r2.z)
        n = Vec(a * A.I.xz + b * A.H.r0.z, a * A.I.yz + b * A.H.r1.z, a * A.I.zz + b * A.H.r2.z)
        return Force(f, n)
