"""Conversions between quaternions (wxyz), rotation matrices, rotation vectors and Euler angles.

All functions broadcast over leading axes and preserve the dtype (float32 or float64). A quaternion of any nonzero norm
represents the rotation of its direction. A zero quaternion raises ValueError if its value is known; inside ``jit`` it
gives NaN, which propagates to all results.
"""

from __future__ import annotations

from enum import Enum

import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from lgsim._compile.spatial import unpack_matrix
from lgsim.lie import quaternion, so3
from lgsim.lie.quaternion import Quaternion
from lgsim.lie.so3_components import quaternion as _largest_component
from lgsim.support import check
from lgsim.support.check import is_traced


class EulerAxes(Enum):
    """The axes of three successive rotations about the moving axes, first to last; ``R = R_i(a) R_j(b) R_k(c)``.

    Rotations about fixed axes are the same product read from right to left.
    """

    XYZ = (0, 1, 2)
    XZY = (0, 2, 1)
    YXZ = (1, 0, 2)
    YZX = (1, 2, 0)
    ZXY = (2, 0, 1)
    ZYX = (2, 1, 0)
    XYX = (0, 1, 0)
    XZX = (0, 2, 0)
    YXY = (1, 0, 1)
    YZY = (1, 2, 1)
    ZXZ = (2, 0, 2)
    ZYZ = (2, 1, 2)


def _nonzero(q: Array) -> Array:
    q = check.floating("q", q, 4)
    if not is_traced(q) and bool(jnp.any(jnp.all(q == 0, axis=-1))):
        raise ValueError(
            "q: expected quaternions of non-zero norm, got one that is all zeros; it represents no rotation"
        )
    return q


def matrix_from_quaternion(q: Quaternion) -> Float[Array, "*batch 3 3"]:
    """The rotation matrix; independent of the norm of q."""
    return quaternion.Ad(_nonzero(q))


def quaternion_from_matrix(R: so3.Matrix) -> Float[Array, "*batch 4"]:
    """A unit quaternion of R, accurate at every angle (Shepperd 1978)."""
    s, v = _largest_component(unpack_matrix(check.floating("R", R, 3, 3)))
    return quaternion.normalize(jnp.stack([s, *v], axis=-1))


def rotation_vector_from_quaternion(q: Quaternion) -> Float[Array, "*batch 3"]:
    """The rotation vector of length at most pi."""
    return quaternion.log(_nonzero(q))


def quaternion_from_rotation_vector(u: so3.Vector) -> Float[Array, "*batch 4"]:
    """``(cos(t/2), sin(t/2) u/t)``, t = |u|."""
    return quaternion.exp(u)


def rotation_vector_from_matrix(R: so3.Matrix) -> Float[Array, "*batch 3"]:
    """The rotation vector of length at most pi."""
    return so3.log(R)


def matrix_from_rotation_vector(u: so3.Vector) -> Float[Array, "*batch 3 3"]:
    """The rotation matrix ``exp(hat(u))``."""
    return so3.exp(u)


def quaternion_from_euler(angles: so3.Vector, axes: EulerAxes) -> Float[Array, "*batch 4"]:
    """The unit quaternion of three rotations by angles (a, b, c) in radians about ``axes``."""
    angles = check.floating("angles", angles, 3)
    unit = jnp.eye(3, dtype=angles.dtype)
    turns = [
        quaternion.exp(angles[..., n, None] * unit[axis].reshape((1,) * (angles.ndim - 1) + (3,)))
        for n, axis in enumerate(axes.value)
    ]
    return quaternion.compose(quaternion.compose(turns[0], turns[1]), turns[2])


def matrix_from_euler(angles: so3.Vector, axes: EulerAxes) -> Float[Array, "*batch 3 3"]:
    """The rotation matrix ``R_i(a) R_j(b) R_k(c)`` of three rotations by angles (a, b, c) in radians about ``axes``."""
    return matrix_from_quaternion(quaternion_from_euler(angles, axes))


def euler_from_matrix(R: so3.Matrix, axes: EulerAxes) -> Float[Array, "*batch 3"]:
    """Angles (a, b, c) with ``matrix_from_euler(angles, axes) = R``.

    b lies in [-pi/2, pi/2] for three different axes and in [0, pi] for two. At the ends of b (gimbal lock) only a + c
    or a - c is determined: a is 0 there, or a result of rounding close to it, and c takes the rest, so that the angles
    always represent R. Derivatives at the ends are not finite, as for any three angles.
    """
    R = check.floating("R", R, 3, 3)
    i, j, k = axes.value
    o = 3 - i - j
    sign = 1.0 if (j - i) % 3 == 1 else -1.0
    opposite, beside = (-sign * R[..., j, k], R[..., k, k]) if i != k else (R[..., j, i], -sign * R[..., o, i])
    # for two zeros of either sign the angle is 0; adding the square of zero fixes its sign and keeps the derivative
    opposite, beside = (jnp.where(x == 0, x * x + x, x) for x in (opposite, beside))
    a = jnp.arctan2(opposite, beside)
    # R rotated back by a is R_j(b) R_k(c): the rounding of a, which is large where a is hardly determined, goes into c
    cosine, sine = jnp.cos(a)[..., None], sign * jnp.sin(a)[..., None]
    row_j, row_o = cosine * R[..., j, :] + sine * R[..., o, :], cosine * R[..., o, :] - sine * R[..., j, :]
    if i != k:
        b = jnp.arctan2(sign * R[..., i, k], row_o[..., k])
        c = jnp.arctan2(sign * row_j[..., i], row_j[..., j])
    else:
        b = jnp.arctan2(-sign * row_o[..., i], R[..., i, i])
        c = jnp.arctan2(-sign * row_j[..., o], row_j[..., j])
    return jnp.stack([a, b, c], axis=-1)


def euler_from_quaternion(q: Quaternion, axes: EulerAxes) -> Float[Array, "*batch 3"]:
    """Angles (a, b, c) of a quaternion; see ``euler_from_matrix``."""
    return euler_from_matrix(matrix_from_quaternion(q), axes)
