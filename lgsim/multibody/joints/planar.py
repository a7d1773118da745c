"""Planar joint."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax import Array

from lgsim._compile.spatial import Mat, Motion, Transform, Vec, sincos
from lgsim.lie import se3_components
from lgsim.multibody.joint import Components, GroupJoint, Row


@dataclass(frozen=True)
class Planar(GroupJoint):
    """Translation in a plane and rotation about its normal: ``q = (x, y, angle)``, ``v = (vx, vy, w)`` in child axes.

    x and y are along the first two axes of the parent's frame; the angle is not wrapped.
    """

    @property
    def rows(self) -> tuple[Row, ...]:
        """Translations along x and y, a rotation about z."""
        return (Row(False, 0), Row(False, 1), Row(True, 2))

    @property
    def nq(self) -> int:
        """Three."""
        return 3

    @property
    def neutral(self) -> tuple[float, ...]:
        """Zero."""
        return (0.0, 0.0, 0.0)

    def transform(self, q: Components) -> Transform:
        """Position in the plane and rotation about its normal."""
        sine, cosine = sincos(q[2])
        zero, one = jnp.zeros_like(sine), jnp.ones_like(sine)
        R = Mat(Vec(cosine, -sine, zero), Vec(sine, cosine, zero), Vec(zero, zero, one))
        return Transform(R, Vec(q[0], q[1], zero))

    def retract(self, q: Components, dv: Components) -> list[Array]:
        """``T exp(dv)`` on SE(2) with an unwrapped angle."""
        zero = jnp.zeros_like(dv[0])
        p = self.transform(q).R @ se3_components.exp(Motion(Vec(dv[0], dv[1], zero), Vec(zero, zero, dv[2]))).p
        return [q[0] + p.x, q[1] + p.y, q[2] + dv[2]]

    def difference(self, q0: Components, q1: Components) -> list[Array]:
        """``log(T0^-1 T1)`` on SE(2) with the angle ``q1 - q0``; infinite at full turns other than 0."""
        zero = jnp.zeros_like(q0[0])
        angle = q1[2] - q0[2]
        back = self.transform(q0).R.transpose_apply(Vec(q1[0] - q0[0], q1[1] - q0[1], zero))
        u = se3_components.log_of_rotation_vector(Vec(zero, zero, angle), back)
        return [u.v.x, u.v.y, angle]

    def rate(self, q: Components, v: Components) -> list[Array]:
        """``(R v, w)``."""
        p = self.transform(q).R @ Vec(v[0], v[1], jnp.zeros_like(v[0]))
        return [p.x, p.y, v[2]]

    def velocity(self, q: Components, dq: Components) -> list[Array]:
        """``(R^T dp, dangle)``."""
        p = self.transform(q).R.transpose_apply(Vec(dq[0], dq[1], jnp.zeros_like(dq[0])))
        return [p.x, p.y, dq[2]]

    def random(self, key: Array, shape: tuple[int, ...], dtype: jnp.dtype) -> list[Array]:
        """Standard normal positions, an angle uniform in [-pi, pi]."""
        place, turn = jax.random.split(key)
        angle = jax.random.uniform(turn, shape, dtype, -jnp.pi, jnp.pi)
        return [*jax.random.normal(place, (2, *shape), dtype), angle]
