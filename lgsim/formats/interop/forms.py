"""Forms of the coordinates and velocities of one joint in other tools."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from lgsim.lie import conversions, quaternion
from lgsim.lie.conversions import EulerAxes
from lgsim.multibody.joint import Joint


class Form:
    """The identity form, that of lgsim; other forms override what differs.

    Velocities are related by ``v_theirs = S(q) v`` with an orthogonal S, so that forces and the rows of a Jacobian
    transform by the same S, and accelerations by ``a_theirs = S a + bias(q, v)``. ``P`` is the pose (4, 4) of the
    joint's frame in its parent; q is in lgsim's convention.
    """

    def nq(self, joint: Joint) -> int:
        """Number of configuration coordinates of the joint in the tool."""
        return joint.nq

    def q_to(self, P: Float[Array, "4 4"], q: Float[Array, "*batch nq"]) -> Float[Array, "*batch nq_theirs"]:
        """Convert lgsim's coordinates to the tool's."""
        del P
        return q

    def q_from(self, P: Float[Array, "4 4"], q: Float[Array, "*batch nq_theirs"]) -> Float[Array, "*batch nq"]:
        """Convert the tool's coordinates to lgsim's."""
        del P
        return q

    def to_theirs(
        self, P: Float[Array, "4 4"], q: Float[Array, "*batch nq"], x: Float[Array, "*batch nv"]
    ) -> Float[Array, "*batch nv"]:
        """``S x``: convert velocities or forces of lgsim to those of the tool."""
        del P, q
        return x

    def from_theirs(
        self, P: Float[Array, "4 4"], q: Float[Array, "*batch nq"], x: Float[Array, "*batch nv"]
    ) -> Float[Array, "*batch nv"]:
        """``S^T x``: convert velocities or forces of the tool to those of lgsim."""
        del P, q
        return x

    def bias(
        self, P: Float[Array, "4 4"], q: Float[Array, "*batch nq"], v: Float[Array, "*batch nv"]
    ) -> Float[Array, "*batch nv"]:
        """``S' v`` with the time derivative S' at lgsim's velocity v."""
        del P, q
        return jnp.zeros_like(v)


ANGLES_ABSENT = (
    "build the model with a Spherical joint, or with three Revolute joints, whose velocities are the angles' rates"
)


class ScalarLast(Form):
    """A joint whose q ends with a quaternion, in the order xyzw in the tool."""

    def q_to(self, P: Float[Array, "4 4"], q: Float[Array, "*batch nq"]) -> Float[Array, "*batch nq_theirs"]:
        return jnp.concatenate([q[..., :-4], q[..., -3:], q[..., -4:-3]], axis=-1)

    def q_from(self, P: Float[Array, "4 4"], q: Float[Array, "*batch nq_theirs"]) -> Float[Array, "*batch nq"]:
        return jnp.concatenate([q[..., :-4], q[..., -1:], q[..., -4:-1]], axis=-1)


class Circle(Form):
    """A joint whose last coordinate is an angle, (cos, sin) in the tool; angles are returned in (-pi, pi]."""

    def nq(self, joint: Joint) -> int:
        return joint.nq + 1

    def q_to(self, P: Float[Array, "4 4"], q: Float[Array, "*batch nq"]) -> Float[Array, "*batch nq_theirs"]:
        angle = q[..., -1:]
        return jnp.concatenate([q[..., :-1], jnp.cos(angle), jnp.sin(angle)], axis=-1)

    def q_from(self, P: Float[Array, "4 4"], q: Float[Array, "*batch nq_theirs"]) -> Float[Array, "*batch nq"]:
        return jnp.concatenate([q[..., :-2], jnp.arctan2(q[..., -1:], q[..., -2:-1])], axis=-1)


class PlaneInParent(Form):
    """A planar joint whose velocity is the derivative of its coordinates (x, y, angle), along the parent's axes."""

    def to_theirs(
        self, P: Float[Array, "4 4"], q: Float[Array, "*batch nq"], x: Float[Array, "*batch nv"]
    ) -> Float[Array, "*batch nv"]:
        return _rotate_in_plane(q[..., 2], x)

    def from_theirs(
        self, P: Float[Array, "4 4"], q: Float[Array, "*batch nq"], x: Float[Array, "*batch nv"]
    ) -> Float[Array, "*batch nv"]:
        return _rotate_in_plane(-q[..., 2], x)

    def bias(
        self, P: Float[Array, "4 4"], q: Float[Array, "*batch nq"], v: Float[Array, "*batch nv"]
    ) -> Float[Array, "*batch nv"]:
        w = v[..., 2]
        return _rotate_in_plane(q[..., 2], jnp.stack([-w * v[..., 1], w * v[..., 0], jnp.zeros_like(w)], axis=-1))


class FreeInWorld(Form):
    """A free joint with q = pose in the world, v = (linear velocity in world axes, angular velocity in body axes)."""

    def q_to(self, P: Float[Array, "4 4"], q: Float[Array, "*batch nq"]) -> Float[Array, "*batch nq_theirs"]:
        p = rotate(P[:3, :3], q[..., :3]) + jnp.broadcast_to(P[:3, 3], q[..., :3].shape)
        return jnp.concatenate([p, quaternion.compose(_quaternion_of(P), q[..., 3:])], axis=-1)

    def q_from(self, P: Float[Array, "4 4"], q: Float[Array, "*batch nq_theirs"]) -> Float[Array, "*batch nq"]:
        p = rotate(P[:3, :3].T, q[..., :3] - jnp.broadcast_to(P[:3, 3], q[..., :3].shape))
        return jnp.concatenate([p, quaternion.compose(quaternion.inverse(_quaternion_of(P)), q[..., 3:])], axis=-1)

    def to_theirs(
        self, P: Float[Array, "4 4"], q: Float[Array, "*batch nq"], x: Float[Array, "*batch nv"]
    ) -> Float[Array, "*batch nv"]:
        v = rotate(P[:3, :3], rotate(_rotation(q), x[..., :3]))
        return jnp.concatenate([v, x[..., 3:]], axis=-1)

    def from_theirs(
        self, P: Float[Array, "4 4"], q: Float[Array, "*batch nq"], x: Float[Array, "*batch nv"]
    ) -> Float[Array, "*batch nv"]:
        v = rotate(jnp.swapaxes(_rotation(q), -1, -2), rotate(P[:3, :3].T, x[..., :3]))
        return jnp.concatenate([v, x[..., 3:]], axis=-1)

    def bias(
        self, P: Float[Array, "4 4"], q: Float[Array, "*batch nq"], v: Float[Array, "*batch nv"]
    ) -> Float[Array, "*batch nv"]:
        return self.to_theirs(P, q, _coriolis(v))


class FreeAngularFirst(Form):
    """A free joint with ``q = (quaternion wxyz, p)``, ``v = (w, v)``, both in the axes of the joint's frame."""

    def q_to(self, P: Float[Array, "4 4"], q: Float[Array, "*batch nq"]) -> Float[Array, "*batch nq_theirs"]:
        return jnp.concatenate([q[..., 3:], q[..., :3]], axis=-1)

    def q_from(self, P: Float[Array, "4 4"], q: Float[Array, "*batch nq_theirs"]) -> Float[Array, "*batch nq"]:
        return jnp.concatenate([q[..., 4:], q[..., :4]], axis=-1)

    def to_theirs(
        self, P: Float[Array, "4 4"], q: Float[Array, "*batch nq"], x: Float[Array, "*batch nv"]
    ) -> Float[Array, "*batch nv"]:
        R = _rotation(q)
        return jnp.concatenate([rotate(R, x[..., 3:]), rotate(R, x[..., :3])], axis=-1)

    def from_theirs(
        self, P: Float[Array, "4 4"], q: Float[Array, "*batch nq"], x: Float[Array, "*batch nv"]
    ) -> Float[Array, "*batch nv"]:
        R = jnp.swapaxes(_rotation(q), -1, -2)
        return jnp.concatenate([rotate(R, x[..., 3:]), rotate(R, x[..., :3])], axis=-1)

    def bias(
        self, P: Float[Array, "4 4"], q: Float[Array, "*batch nq"], v: Float[Array, "*batch nv"]
    ) -> Float[Array, "*batch nv"]:
        return self.to_theirs(P, q, _coriolis(v))


class BallByAngles(Form):
    """A ball joint with ``q = (roll, pitch, yaw)``, ``R = Rz(yaw) Ry(pitch) Rx(roll)``, v in the joint's frame.

    At pitch +-pi/2 only yaw -+ roll is determined.
    """

    def nq(self, joint: Joint) -> int:
        return 3

    def q_to(self, P: Float[Array, "4 4"], q: Float[Array, "*batch nq"]) -> Float[Array, "*batch nq_theirs"]:
        return conversions.euler_from_quaternion(q, EulerAxes.ZYX)[..., ::-1]

    def q_from(self, P: Float[Array, "4 4"], q: Float[Array, "*batch nq_theirs"]) -> Float[Array, "*batch nq"]:
        return conversions.quaternion_from_euler(q[..., ::-1], EulerAxes.ZYX)

    def to_theirs(
        self, P: Float[Array, "4 4"], q: Float[Array, "*batch nq"], x: Float[Array, "*batch nv"]
    ) -> Float[Array, "*batch nv"]:
        return rotate(_rotation(q), x)

    def from_theirs(
        self, P: Float[Array, "4 4"], q: Float[Array, "*batch nq"], x: Float[Array, "*batch nv"]
    ) -> Float[Array, "*batch nv"]:
        return rotate(jnp.swapaxes(_rotation(q), -1, -2), x)


class AnglesInParent(Form):
    """A ball joint with the angles of ``BallByAngles`` in both tools, v in the joint's frame."""

    def to_theirs(
        self, P: Float[Array, "4 4"], q: Float[Array, "*batch nq"], x: Float[Array, "*batch nv"]
    ) -> Float[Array, "*batch nv"]:
        return rotate(conversions.matrix_from_euler(q[..., ::-1], EulerAxes.ZYX), x)

    def from_theirs(
        self, P: Float[Array, "4 4"], q: Float[Array, "*batch nq"], x: Float[Array, "*batch nv"]
    ) -> Float[Array, "*batch nv"]:
        return rotate(jnp.swapaxes(conversions.matrix_from_euler(q[..., ::-1], EulerAxes.ZYX), -1, -2), x)


def rotate(R: Float[Array, "*#batch 3 3"], x: Float[Array, "*#batch 3"]) -> Float[Array, "*batch 3"]:
    """``R x`` over leading axes."""
    return jnp.einsum("...ij,...j->...i", R, x)


def _rotation(q: Float[Array, "*batch nq"]) -> Float[Array, "*batch 3 3"]:
    """The rotation of the quaternion wxyz at the end of q."""
    return conversions.matrix_from_quaternion(q[..., -4:])


def _quaternion_of(P: Float[Array, "4 4"]) -> Float[Array, " 4"]:
    """The quaternion wxyz of a pose."""
    return conversions.quaternion_from_matrix(P[:3, :3])


def _rotate_in_plane(angle: Float[Array, "*batch"], x: Float[Array, "*batch 3"]) -> Float[Array, "*batch 3"]:
    """Rotate (x, y) by an angle, rad; the third component is unchanged."""
    c, s = jnp.cos(angle), jnp.sin(angle)
    return jnp.stack([c * x[..., 0] - s * x[..., 1], s * x[..., 0] + c * x[..., 1], x[..., 2]], axis=-1)


def _coriolis(v: Float[Array, "*batch 6"]) -> Float[Array, "*batch 6"]:
    """``(w x v, 0)`` of a body twist (v, w): the difference between the accelerations in fixed and in rotating axes."""
    return jnp.concatenate([jnp.cross(v[..., 3:], v[..., :3]), jnp.zeros_like(v[..., 3:])], axis=-1)
