"""Spherical joint with quaternion coordinates."""

from dataclasses import dataclass

import jax.numpy as jnp
from jax import Array

from lgsim._compile.spatial import Transform, Vec
from lgsim.lie import so3_components
from lgsim.multibody import ball_limits, quaternion_coordinates
from lgsim.multibody.joint import Components, GroupJoint, Row


@dataclass(frozen=True)
class Spherical(GroupJoint):
    """Any rotation: ``q`` is a unit quaternion (w, x, y, z), ``v`` the angular velocity in the child's frame, rad/s."""

    @property
    def rows(self) -> tuple[Row, ...]:
        """Rotations about x, y, z."""
        return tuple(Row(True, axis) for axis in range(3))

    @property
    def nq(self) -> int:
        """Four."""
        return 4

    @property
    def neutral(self) -> tuple[float, ...]:
        """The quaternion 1."""
        return (1.0, 0.0, 0.0, 0.0)

    def transform(self, q: Components) -> Transform:
        """The rotation; quaternions are normalized."""
        zero = jnp.zeros_like(q[0])
        return Transform(so3_components.quaternion_matrix(quaternion_coordinates.quaternion(q)), Vec(zero, zero, zero))

    def retract(self, q: Components, dv: Components) -> list[Array]:
        """``q exp(dv)``."""
        return quaternion_coordinates.turned(q, Vec(*dv))

    def difference(self, q0: Components, q1: Components) -> list[Array]:
        """``log(conj(q0) q1)``, an angle of at most pi."""
        return list(quaternion_coordinates.difference(q0, q1))

    def rate(self, q: Components, v: Components) -> list[Array]:
        """``q v/2``."""
        return quaternion_coordinates.rate(q, Vec(*v))

    def velocity(self, q: Components, dq: Components) -> list[Array]:
        """``2 vec(conj(q) dq)/|q|^2``."""
        return list(
            so3_components.quaternion_rate(quaternion_coordinates.quaternion(q), quaternion_coordinates.quaternion(dq))
        )

    def random(self, key: Array, shape: tuple[int, ...], dtype: jnp.dtype) -> list[Array]:
        """Uniform on the sphere of unit quaternions."""
        return quaternion_coordinates.random(key, shape, dtype)

    @property
    def stopped(self) -> bool:
        """True."""
        return True

    def stops(self, q: Components, lower: Components, upper: Components) -> tuple[ball_limits.Stop, ...]:
        """Limits of the swing of the z axis, of the rotation angle, and of the twist about z."""
        s, v = quaternion_coordinates.quaternion(q)
        share = 1 / jnp.sqrt(s * s + v.dot(v))
        unit = s * share, v * share
        return (
            ball_limits.swing(unit, upper[0]),
            ball_limits.angle(unit, upper[1]),
            ball_limits.twist(unit, lower[2], upper[2]),
        )
