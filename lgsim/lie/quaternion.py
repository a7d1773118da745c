"""Unit quaternions (..., 4), scalar first (wxyz), as rotations: q and -q represent the same rotation.

Results may have either sign. Algebra vectors are rotation vectors (..., 3), the algebra of SO(3), so that ``exp`` is
the quaternion of ``so3.exp``. A quaternion of any norm is read as the rotation of its direction where that costs
nothing (log, matrix, Ad); products preserve the norm of their factors. ``log`` of a zero quaternion is NaN, as are its
derivatives; conversions raise ValueError for it if the values are known. All functions broadcast over leading axes and
preserve the dtype (float32 or float64).
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from lgsim._compile.spatial import Vec, components, pack, unpack
from lgsim.lie import so3, so3_components
from lgsim.lie.so3 import (
    ad,
    ad_dual,
    ad_dual_action,
    ad_function,
    bracket,
    dcay,
    dcay_action,
    dcayinv,
    dcayinv_action,
    dexp,
    dexp_action,
    dexpinv,
    dexpinv_action,
)
from lgsim.support import check

__all__ = [
    "Ad", "Ad_action", "Ad_dual", "Ad_dual_action", "ad", "ad_dual", "ad_dual_action", "ad_function", "bracket", "cay",
    "cayinv", "compose", "dcay", "dcay_action", "dcayinv", "dcayinv_action", "defects", "dexp", "dexp_action",
    "dexpinv", "dexpinv_action", "dim", "exp", "hat", "identity", "interpolate", "inverse", "log", "normalize",
    "project", "random", "second_kind", "second_kind_inverse", "vee",
]  # fmt: skip

dim = 3
"""Dimension of the algebra, that of SO(3)."""

Quaternion = Float[Array, "*#batch 4"]


def _quaternion(q: Array) -> so3_components.Quat:
    s, *v = components(q)
    return s, Vec(*v)


def _quaternions(**named: Array) -> tuple[so3_components.Quat, ...]:
    return tuple(_quaternion(a) for a in check.arguments(**{name: (a, (4,)) for name, a in named.items()}))


def _array(q: so3_components.Quat) -> Array:
    return pack((q[0], *q[1]), (4,))


def identity(dtype: jnp.dtype | type = float) -> Float[Array, 4]:
    """The identity rotation (1, 0, 0, 0)."""
    return jnp.zeros(4, check.float_dtype(dtype)).at[0].set(1)


def hat(u: so3.Vector) -> Float[Array, "*batch 4"]:
    """The pure quaternion (0, u/2): ``q' = q hat(u)`` for a body angular velocity u."""
    v = unpack(check.floating("u", u, 3))
    return _array((jnp.zeros_like(v.x), v * 0.5))


def vee(q: Quaternion) -> Float[Array, "*batch 3"]:
    """Twice the vector part; the inverse of ``hat``."""
    return 2 * check.floating("q", q, 4)[..., 1:]


def exp(u: so3.Vector) -> Float[Array, "*batch 4"]:
    """``(cos(t/2), sin(t/2) u/t)``, t = |u|."""
    return _array(so3_components.quaternion_exp(unpack(check.floating("u", u, 3))))


def log(q: Quaternion) -> Float[Array, "*batch 3"]:
    """The rotation vector of length at most pi, of either sign of q; NaN for zero.

    Derivative along the group ``dexpinv_{-u}``, constant along the norm. At angle pi the sign is that of the vector
    part.
    """
    (a,) = _quaternions(q=q)
    return pack(so3_components.quaternion_log(a), (3,))


def normalize(q: Quaternion) -> Float[Array, "*batch 4"]:
    """``q/|q|``; NaN for zero."""
    q = check.floating("q", q, 4)
    return q / jnp.sqrt(jnp.sum(q * q, axis=-1, keepdims=True))


project = normalize


def defects(q: Any) -> dict[str, Any]:
    """The deviation of the norm of NumPy arrays (..., 4) from 1."""
    return {"|q| = 1": np.max(np.abs(np.linalg.norm(np.asarray(q), axis=-1) - 1))}


def compose(p: Quaternion, q: Quaternion) -> Float[Array, "*batch 4"]:
    """Hamilton's product ``p q``: q acts first."""
    return _array(so3_components.quaternion_product(*_quaternions(p=p, q=q)))


def inverse(q: Quaternion) -> Float[Array, "*batch 4"]:
    """The conjugate: the inverse of a unit quaternion."""
    ((s, v),) = _quaternions(q=q)
    return _array((s, -v))


def Ad(q: Quaternion) -> Float[Array, "*batch 3 3"]:
    """The rotation matrix of q, of any norm but zero."""
    (a,) = _quaternions(q=q)
    m = so3_components.quaternion_matrix(a)
    return pack((*m.r0, *m.r1, *m.r2), (3, 3))


def Ad_action(q: Quaternion, v: so3.Vector) -> Float[Array, "*batch 3"]:
    """The rotated vector ``q v q^-1``, for a unit quaternion."""
    q, v = check.arguments(q=(q, (4,)), v=(v, (3,)))
    return pack(so3_components.quaternion_rotate(_quaternion(q), unpack(v)), (3,))


def Ad_dual(q: Quaternion) -> Float[Array, "*batch 3 3"]:
    """``Ad_q^*``, the transpose of Ad."""
    return jnp.swapaxes(Ad(q), -1, -2)


def Ad_dual_action(q: Quaternion, mu: so3.Vector) -> Float[Array, "*batch 3"]:
    """``Ad_q^* mu``: mu rotated back, for a unit quaternion."""
    q, mu = check.arguments(q=(q, (4,)), mu=(mu, (3,)))
    s, v = _quaternion(q)
    return pack(so3_components.quaternion_rotate((s, -v), unpack(mu)), (3,))


def cay(u: so3.Vector) -> Float[Array, "*batch 4"]:
    """Cayley map: the direction of (1, u/2)."""
    v = unpack(check.floating("u", u, 3)) * 0.5
    scale = 1 / jnp.sqrt(1 + v.dot(v))
    return _array((scale, v * scale))


def cayinv(q: Quaternion) -> Float[Array, "*batch 3"]:
    """The u with ``cay(u) = q``: twice the vector part over the scalar part, infinite at a rotation by pi."""
    ((s, v),) = _quaternions(q=q)
    return pack(v * (2 / s), (3,))


def second_kind(u: so3.Vector) -> Float[Array, "*batch 4"]:
    """Canonical coordinates of the second kind, ``exp(u_1 e_x) exp(u_2 e_y) exp(u_3 e_z)``."""
    a = unpack(check.floating("u", u, 3))
    zero = jnp.zeros_like(a.x)
    factors = (Vec(a.x, zero, zero), Vec(zero, a.y, zero), Vec(zero, zero, a.z))
    first, second, third = (so3_components.quaternion_exp(f) for f in factors)
    return _array(so3_components.quaternion_product(so3_components.quaternion_product(first, second), third))


def second_kind_inverse(q: Quaternion) -> Float[Array, "*batch 3"]:
    """The u with ``second_kind(u) = q`` as a rotation and |u_2| <= pi/2."""
    return so3.second_kind_inverse(Ad(q))


def random(key: Array, shape: tuple[int, ...] = (), dtype: jnp.dtype | type = float) -> Float[Array, "*shape 4"]:
    """Uniformly (Haar) distributed unit quaternions: directions of normal 4-vectors."""
    dtype = check.float_dtype(dtype)
    return normalize(jax.random.normal(key, (*shape, 4), dtype))


def interpolate(q0: Quaternion, q1: Quaternion, s: Float[Array, "*#batch"] | float) -> Float[Array, "*batch 4"]:
    """The geodesic ``q0 exp(s log(q0^-1 q1))`` along the shorter way; at s = 1 it is q1 or -q1."""
    s = jnp.asarray(s, jnp.result_type(q0))
    q0, q1, s = check.arguments(q0=(q0, (4,)), q1=(q1, (4,)), s=(s, ()))
    a, b = _quaternion(q0), _quaternion(q1)
    u = so3_components.quaternion_log(so3_components.quaternion_product((a[0], -a[1]), b))
    return _array(so3_components.quaternion_product(a, so3_components.quaternion_exp(u * s)))
