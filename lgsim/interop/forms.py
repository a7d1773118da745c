"""How other tools write the coordinates and velocities of one joint."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from lgsim.lie import conversions, quaternion
from lgsim.lie.conversions import EulerAxes
from lgsim.multibody.joint import Joint


class Form:
    """The same numbers as lgsim's; other forms override what differs.

    Velocities are related by ``v_theirs = S(q) v`` with an orthogonal S, so that forces and the rows of a Jacobian
    transform by the same S, and accelerations by ``a_theirs = S a + bias(q, v)``. ``P`` is the pose (4, 4) of the
    joint's frame in its parent; q is lgsim's own.
    """

    def nq(self, joint: Joint) -> int:
        """The length of the joint's part of their configuration."""
        return joint.nq

    def q_to(self, P: Array, q: Array) -> Array:
        """Their coordinates."""
        del P
        return q

    def q_from(self, P: Array, q: Array) -> Array:
        """The coordinates that lgsim has."""
        del P
        return q

    def turn(self, P: Array, q: Array, x: Array) -> Array:
        """``S x``."""
        del P, q
        return x

    def back(self, P: Array, q: Array, x: Array) -> Array:
        """``S^T x``."""
        del P, q
        return x

    def bias(self, P: Array, q: Array, v: Array) -> Array:
        """``S' v``."""
        del P, q
        return jnp.zeros_like(v)


class ScalarLast(Form):
    """Quaternions xyzw at the end of q."""

    def q_to(self, P: Array, q: Array) -> Array:
        return jnp.concatenate([q[..., :-4], q[..., -3:], q[..., -4:-3]], axis=-1)

    def q_from(self, P: Array, q: Array) -> Array:
        return jnp.concatenate([q[..., :-4], q[..., -1:], q[..., -4:-1]], axis=-1)


class Circle(Form):
    """The last coordinate, an angle, as its cosine and sine; back it comes in (-pi, pi]."""

    def nq(self, joint: Joint) -> int:
        return joint.nq + 1

    def q_to(self, P: Array, q: Array) -> Array:
        angle = q[..., -1:]
        return jnp.concatenate([q[..., :-1], jnp.cos(angle), jnp.sin(angle)], axis=-1)

    def q_from(self, P: Array, q: Array) -> Array:
        return jnp.concatenate([q[..., :-2], jnp.arctan2(q[..., -1:], q[..., -2:-1])], axis=-1)


class PlaneInParent(Form):
    """A planar joint whose velocity is that of its coordinates (x, y, angle): v along the parent's axes."""

    def turn(self, P: Array, q: Array, x: Array) -> Array:
        return _in_plane(q[..., 2], x)

    def back(self, P: Array, q: Array, x: Array) -> Array:
        return _in_plane(-q[..., 2], x)

    def bias(self, P: Array, q: Array, v: Array) -> Array:
        w = v[..., 2]
        return _in_plane(q[..., 2], jnp.stack([-w * v[..., 1], w * v[..., 0], jnp.zeros_like(w)], axis=-1))


class FreeInWorld(Form):
    """A free joint whose q is the pose in the world, and whose v is (linear in world axes, angular in the body's)."""

    def q_to(self, P: Array, q: Array) -> Array:
        p = rotated(P[:3, :3], q[..., :3]) + jnp.broadcast_to(P[:3, 3], q[..., :3].shape)
        return jnp.concatenate([p, quaternion.compose(_turn_of(P), q[..., 3:])], axis=-1)

    def q_from(self, P: Array, q: Array) -> Array:
        p = rotated(P[:3, :3].T, q[..., :3] - jnp.broadcast_to(P[:3, 3], q[..., :3].shape))
        return jnp.concatenate([p, quaternion.compose(quaternion.inverse(_turn_of(P)), q[..., 3:])], axis=-1)

    def turn(self, P: Array, q: Array, x: Array) -> Array:
        v = rotated(P[:3, :3], rotated(_rotation(q), x[..., :3]))
        return jnp.concatenate([v, x[..., 3:]], axis=-1)

    def back(self, P: Array, q: Array, x: Array) -> Array:
        v = rotated(jnp.swapaxes(_rotation(q), -1, -2), rotated(P[:3, :3].T, x[..., :3]))
        return jnp.concatenate([v, x[..., 3:]], axis=-1)

    def bias(self, P: Array, q: Array, v: Array) -> Array:
        return self.turn(P, q, _coriolis(v))


class FreeAngularFirst(Form):
    """A free joint with ``q = (quaternion wxyz, p)``, ``v = (w, v)``, both in the axes of the joint's frame."""

    def q_to(self, P: Array, q: Array) -> Array:
        return jnp.concatenate([q[..., 3:], q[..., :3]], axis=-1)

    def q_from(self, P: Array, q: Array) -> Array:
        return jnp.concatenate([q[..., 4:], q[..., :4]], axis=-1)

    def turn(self, P: Array, q: Array, x: Array) -> Array:
        R = _rotation(q)
        return jnp.concatenate([rotated(R, x[..., 3:]), rotated(R, x[..., :3])], axis=-1)

    def back(self, P: Array, q: Array, x: Array) -> Array:
        R = jnp.swapaxes(_rotation(q), -1, -2)
        return jnp.concatenate([rotated(R, x[..., 3:]), rotated(R, x[..., :3])], axis=-1)

    def bias(self, P: Array, q: Array, v: Array) -> Array:
        return self.turn(P, q, _coriolis(v))


class BallByAngles(Form):
    """A ball joint with ``q = (roll, pitch, yaw)``, ``R = Rz(yaw) Ry(pitch) Rx(roll)``, v in the joint's frame.

    At pitch +-pi/2 only yaw -+ roll is determined.
    """

    def nq(self, joint: Joint) -> int:
        return 3

    def q_to(self, P: Array, q: Array) -> Array:
        return conversions.euler_from_quaternion(q, EulerAxes.ZYX)[..., ::-1]

    def q_from(self, P: Array, q: Array) -> Array:
        return conversions.quaternion_from_euler(q[..., ::-1], EulerAxes.ZYX)

    def turn(self, P: Array, q: Array, x: Array) -> Array:
        return rotated(_rotation(q), x)

    def back(self, P: Array, q: Array, x: Array) -> Array:
        return rotated(jnp.swapaxes(_rotation(q), -1, -2), x)


def rotated(R: Array, x: Array) -> Array:
    """``R x`` over leading axes."""
    return jnp.einsum("...ij,...j->...i", R, x)


def _rotation(q: Array) -> Array:
    """The rotation of the quaternion wxyz that q ends with."""
    return conversions.matrix_from_quaternion(q[..., -4:])


def _turn_of(P: Array) -> Array:
    return conversions.quaternion_from_matrix(P[:3, :3])


def _in_plane(angle: Array, x: Array) -> Array:
    c, s = jnp.cos(angle), jnp.sin(angle)
    return jnp.stack([c * x[..., 0] - s * x[..., 1], s * x[..., 0] + c * x[..., 1], x[..., 2]], axis=-1)


def _coriolis(v: Array) -> Array:
    """``(w x v, 0)``: what the velocity of the origin gains in axes that do not turn."""
    return jnp.concatenate([jnp.cross(v[..., 3:], v[..., :3]), jnp.zeros_like(v[..., 3:])], axis=-1)
