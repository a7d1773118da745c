"""A spherical joint with three angles: the simple spherical joint of Kwatny and Blankenship."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax import Array

from lgsim._compile.spatial import Mat, Transform, Vec, sincos
from lgsim.lie import so3_components
from lgsim.lie.so3_components import Quat
from lgsim.multibody.joint import Components, GroupJoint, Row


@dataclass(frozen=True)
class SphericalAngles(GroupJoint):
    """A rotation ``R = Rz(q3) Ry(q2) Rx(q1)``: ``q`` are three angles in rad, ``v`` is the body rate, rad/s.

    ``dq/dt = Gamma(q) v`` with the angular velocity ``v`` in the child's frame. Gamma is singular like ``1/cos q2``: at
    ``q2 = pi/2`` the axes of the first and the third angle coincide, and the rates of angles are infinite or NaN. Use
    ``Spherical`` for motions through that pose. Angles are not wrapped, and a step keeps the sign of ``cos q2``: a step
    across a singularity rotates the other two angles by pi, and the pose is correct.

    Source: Kwatny and Blankenship 1995, Table II and (35)-(36): Euler angles 3-2-1, counted from the child.
    """

    @property
    def rows(self) -> tuple[Row, ...]:
        """Rotations about x, y, z."""
        return tuple(Row(True, axis) for axis in range(3))

    @property
    def nq(self) -> int:
        """Three."""
        return 3

    @property
    def neutral(self) -> tuple[float, ...]:
        """Zero."""
        return (0.0, 0.0, 0.0)

    def transform(self, q: Components) -> Transform:
        """``Rz(q3) Ry(q2) Rx(q1)``, (35b)."""
        (s1, c1), (s2, c2), (s3, c3) = map(sincos, q)
        zero = jnp.zeros_like(s1)
        R = Mat(
            Vec(c2 * c3, c3 * s1 * s2 - c1 * s3, c1 * c3 * s2 + s1 * s3),
            Vec(c2 * s3, c1 * c3 + s1 * s2 * s3, c1 * s2 * s3 - c3 * s1),
            Vec(-s2, c2 * s1, c1 * c2),
        )
        return Transform(R, Vec(zero, zero, zero))

    def retract(self, q: Components, dv: Components) -> list[Array]:
        """The angles of ``R exp(dv)``, nearest to q on the same side of the singularity."""
        (s1, c1), (s2, c2) = map(sincos, q[:2])
        # R exp(dv) = Rz(q3) N Rx(q1) with N = Ry(q2) exp(Rx(q1) dv) = Rz(d3) Ry(q2 + d2) Rx(d1)
        E = so3_components.exp(Vec(dv[0], c1 * dv[1] - s1 * dv[2], s1 * dv[1] + c1 * dv[2]))
        side = jnp.where(c2 < 0, -jnp.ones_like(c2), jnp.ones_like(c2))
        across, along = side * E.r1.x, side * (c2 * E.r0.x + s2 * E.r2.x)
        sine, cosine = s2 * E.r0.x - c2 * E.r2.x, side * jnp.sqrt(across * across + along * along)
        return [
            q[0] + jnp.arctan2(side * (c2 * E.r2.y - s2 * E.r0.y), side * (c2 * E.r2.z - s2 * E.r0.z)),
            q[1] + jnp.arctan2(sine * c2 - cosine * s2, cosine * c2 + sine * s2),
            q[2] + jnp.arctan2(across, along),
        ]

    def difference(self, q0: Components, q1: Components) -> list[Array]:
        """``log(R0^T R1)``, an angle of at most pi."""
        s, v = _quaternion(q0)
        return list(so3_components.quaternion_log(so3_components.quaternion_product((s, -v), _quaternion(q1))))

    def rate(self, q: Components, v: Components) -> list[Array]:
        """``Gamma(q) v``, (36b); infinite or NaN if ``cos q2 = 0``."""
        (s1, c1), (s2, c2) = map(sincos, q[:2])
        third = (s1 * v[1] + c1 * v[2]) / c2
        return [v[0] + s2 * third, c1 * v[1] - s1 * v[2], third]

    def velocity(self, q: Components, dq: Components) -> list[Array]:
        """``B(q) dq``, (35a)."""
        (s1, c1), (s2, c2) = map(sincos, q[:2])
        return [dq[0] - s2 * dq[2], c1 * dq[1] + s1 * c2 * dq[2], c1 * c2 * dq[2] - s1 * dq[1]]

    def force(self, q: Components, pull: Components) -> list[Array]:
        """``Gamma(q)^T pull``: springs and stops on the angles; infinite or NaN if ``cos q2 = 0``."""
        (s1, c1), (s2, c2) = map(sincos, q[:2])
        third = (s2 * pull[0] + pull[2]) / c2
        return [pull[0], c1 * pull[1] + s1 * third, c1 * third - s1 * pull[1]]

    def random(self, key: Array, shape: tuple[int, ...], dtype: jnp.dtype) -> list[Array]:
        """Angles uniform in [-pi, pi]: not uniform rotations, and on both sides of the singularities."""
        return [jax.random.uniform(k, shape, dtype, -jnp.pi, jnp.pi) for k in jax.random.split(key, 3)]


def _quaternion(q: Components) -> Quat:
    """The quaternion of ``Rz(q3) Ry(q2) Rx(q1)``."""
    (s1, c1), (s2, c2), (s3, c3) = (sincos(0.5 * angle) for angle in q)
    zero = jnp.zeros_like(s1)
    first, second, third = (c1, Vec(s1, zero, zero)), (c2, Vec(zero, s2, zero)), (c3, Vec(zero, zero, s3))
    product = so3_components.quaternion_product
    return product(third, product(second, first))
