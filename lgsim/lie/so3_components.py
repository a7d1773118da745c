"""SO(3) by components: the formulas of ``so3`` and ``quaternion`` for recursions without arrays."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from lgsim._compile.spatial import Mat, Vec, components, pack
from lgsim._compile.spatial.algebra import Scalar
from lgsim._compile.xla import fusion_barrier
from lgsim.lie.ad_functions import DEXPINV_OF_LOG, on_rotation, polynomial_in_hat
from lgsim.lie.series import angle_over_sine, stumpffs

Quat = tuple[Scalar, Vec]
"""A quaternion by components: (scalar part, vector part)."""


def exp(w: Vec) -> Mat:
    """``I + c_1 [w] + c_2 [w]^2``, c_k of |w|^2 (Park and Chung eq. (12); eq. (11) lacks a factor 2)."""
    c1, c2 = fusion_barrier(stumpffs(w.dot(w), ((1, 0), (2, 0))))
    return polynomial_in_hat(w, 1, c1, c2)


@jax.custom_jvp
def log(R: Mat) -> Vec:
    """The rotation vector of length at most pi, through the quaternion; its derivative is dexpinv, exact at pi too."""
    return quaternion_log(gathered_quaternion(R)[0])


@log.defjvp
def _(primals: tuple[Mat], tangents: tuple[Mat]) -> tuple[Vec, Vec]:
    (R,), (dR,) = primals, tangents
    w = log(R)
    return w, on_rotation(DEXPINV_OF_LOG, -w, (R.T @ dR).vee_skew())


def quaternion_exp(w: Vec) -> Quat:
    """The unit quaternion ``(cos(|w|/2), sin(|w|/2) w/|w|)``."""
    cosine, sinc = fusion_barrier(stumpffs(0.25 * w.dot(w), ((0, 0), (1, 0))))
    return cosine, w * (0.5 * sinc)


@jax.custom_jvp
def quaternion_log(q: Quat) -> Vec:
    """The rotation vector of length at most pi of a quaternion of any norm and either sign; NaN for zero.

    ``2 atan2(|v|, |s|) v/|v|`` with the sign of s. Its derivative along the group is
    ``dexpinv_{-w}(2 vec(conj(q) dq)/|q|^2)``.
    """
    s, v = q
    flipped = s < 0
    factor = angle_over_sine(v.dot(v), jnp.abs(s))
    return v * fusion_barrier(jnp.where(flipped, -factor, factor))


@quaternion_log.defjvp
def _(primals: tuple[Quat], tangents: tuple[Quat]) -> tuple[Vec, Vec]:
    (q,), (dq,) = primals, tangents
    w = quaternion_log(q)
    return w, on_rotation(DEXPINV_OF_LOG, -w, quaternion_rate(q, dq))


def quaternion_rate(q: Quat, dq: Quat) -> Vec:
    """Body angular velocity of a moving quaternion of any norm: ``2 vec(conj(q) dq)/|q|^2``."""
    (s, v), (ds, dv) = q, dq
    return (dv * s - v * ds - v.cross(dv)) * (2 / (s * s + v.dot(v)))


def quaternion(R: Mat) -> Quat:
    """A quaternion of R, not normalized: the largest of its four components is well above zero (Shepperd 1978).

    The norm is between 2 and 4; at an angle of pi the largest component is positive.
    """
    trace = R.r0.x + R.r1.y + R.r2.z
    a, b, c = R.r2.y - R.r1.z, R.r0.z - R.r2.x, R.r1.x - R.r0.y  # antisymmetric part
    d, e, f = R.r1.x + R.r0.y, R.r0.z + R.r2.x, R.r2.y + R.r1.z  # symmetric part
    first = (R.r0.x >= R.r1.y) & (R.r0.x >= R.r2.z) & (trace < R.r0.x)
    second = (R.r1.y >= R.r2.z) & (trace < R.r1.y) & ~first
    third = (trace < R.r2.z) & ~first & ~second

    def choose(by_trace: Scalar, by_x: Scalar, by_y: Scalar, by_z: Scalar) -> Scalar:
        return jnp.where(first, by_x, jnp.where(second, by_y, jnp.where(third, by_z, by_trace)))

    return choose(1 + trace, a, b, c), Vec(
        choose(a, 1 + 2 * R.r0.x - trace, d, e),
        choose(b, d, 1 + 2 * R.r1.y - trace, f),
        choose(c, e, f, 1 + 2 * R.r2.z - trace),
    )


def gathered_quaternion(R: Mat, *others: Vec) -> tuple[Quat, *tuple[Vec, ...]]:
    """``quaternion(R)`` together with other vectors, in one pass over their common inputs instead of one per number."""
    s, v = quaternion(R)
    s, *held = components(
        fusion_barrier(pack([s, *v, *(c for other in others for c in other)], (4 + 3 * len(others),)))
    )
    first, *rest = (Vec(*held[i : i + 3]) for i in range(0, len(held), 3))
    return (s, first), *rest


def quaternion_product(p: Quat, q: Quat) -> Quat:
    """Hamilton's product, composition of rotations."""
    (s, v), (t, u) = p, q
    return s * t - v.dot(u), u * s + v * t + v.cross(u)


def quaternion_rotate(q: Quat, x: Vec) -> Vec:
    """The rotated vector, for a unit quaternion: ``x + 2 s v x x + 2 v x (v x x)``."""
    s, v = q
    t = v.cross(x) * 2
    return x + t * s + v.cross(t)


def quaternion_matrix(q: Quat) -> Mat:
    """The rotation matrix of a quaternion of any norm but zero."""
    s, v = q
    scale = 2 / (s * s + v.dot(v))
    return polynomial_in_hat(v, 1, s * scale, scale)


def second_kind(u: Vec) -> Mat:
    """``exp(u_1 e_x) exp(u_2 e_y) exp(u_3 e_z)``."""
    zero = jnp.zeros_like(u.x)
    first, second, third = (exp(f) for f in (Vec(u.x, zero, zero), Vec(zero, u.y, zero), Vec(zero, zero, u.z)))
    return first @ second @ third


def second_kind_inverse(R: Mat) -> Vec:
    """The u with ``second_kind(u) = R`` and |u_2| <= pi/2, from R rotated back by u_1: exact for |u_2| = pi/2 too."""
    first = jnp.arctan2(-R.r1.z, R.r2.z)
    cosine, sine = jnp.cos(first), jnp.sin(first)
    middle, last = R.r1 * cosine + R.r2 * sine, R.r2 * cosine - R.r1 * sine
    return Vec(first, jnp.arctan2(R.r0.z, last.z), jnp.arctan2(middle.x, middle.y))
