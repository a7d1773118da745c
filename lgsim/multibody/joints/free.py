"""Free joint: six degrees of freedom, the joint of a floating base."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax import Array

from lgsim._compile.spatial import Motion, Transform, Vec
from lgsim.lie import se3_components, so3_components
from lgsim.multibody import quaternion_coordinates
from lgsim.multibody.joint import Components, GroupJoint, Row


@dataclass(frozen=True)
class Free(GroupJoint):
    """Any displacement: ``q = (p, quaternion wxyz)``, position in the parent's axes; ``v = (v, w)`` in the child's."""

    @property
    def rows(self) -> tuple[Row, ...]:
        """Translations along x, y, z, then rotations about them."""
        return tuple(Row(turns, axis) for turns in (False, True) for axis in range(3))

    @property
    def nq(self) -> int:
        """Seven."""
        return 7

    @property
    def neutral(self) -> tuple[float, ...]:
        """At the origin, without rotation."""
        return (0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0)

    def transform(self, q: Components) -> Transform:
        """Position and rotation; quaternions are normalized."""
        return Transform(so3_components.quaternion_matrix(quaternion_coordinates.quaternion(q[3:])), Vec(*q[:3]))

    def retract(self, q: Components, dv: Components) -> list[Array]:
        """``T exp(dv)`` on SE(3)."""
        step = se3_components.exp(Motion(Vec(*dv[:3]), Vec(*dv[3:])))
        p = so3_components.quaternion_matrix(quaternion_coordinates.quaternion(q[3:])) @ step.p + Vec(*q[:3])
        return [*p, *quaternion_coordinates.turned(q[3:], Vec(*dv[3:]))]

    def difference(self, q0: Components, q1: Components) -> list[Array]:
        """``log(T0^-1 T1)`` on SE(3), an angle of at most pi."""
        u = se3_components.log_of_rotation_vector(
            quaternion_coordinates.difference(q0[3:], q1[3:]),
            self.transform(q0).R.transpose_apply(Vec(*q1[:3]) - Vec(*q0[:3])),
        )
        return [*u.v, *u.w]

    def rate(self, q: Components, v: Components) -> list[Array]:
        """``(R v, q w/2)``."""
        return [*(self.transform(q).R @ Vec(*v[:3])), *quaternion_coordinates.rate(q[3:], Vec(*v[3:]))]

    def velocity(self, q: Components, dq: Components) -> list[Array]:
        """``(R^T dp, 2 vec(conj(q) dq)/|q|^2)``."""
        w = so3_components.quaternion_rate(
            quaternion_coordinates.quaternion(q[3:]), quaternion_coordinates.quaternion(dq[3:])
        )
        return [*self.transform(q).R.transpose_apply(Vec(*dq[:3])), *w]

    def random(self, key: Array, shape: tuple[int, ...], dtype: jnp.dtype) -> list[Array]:
        """Standard normal positions, uniform rotations."""
        place, turn = jax.random.split(key)
        return [*jax.random.normal(place, (3, *shape), dtype), *quaternion_coordinates.random(turn, shape, dtype)]
