"""so(3) and SO(3) on arrays: rotation vectors (..., 3) and rotation matrices (..., 3, 3).

All functions broadcast over leading axes and preserve the dtype (float32 or float64). They raise TypeError for other
dtypes or mixed ones, and ValueError for a wrong last axis, naming the argument. Angles are in radians.
``dexp`` is the space form, ``d/dt exp(u) = hat(dexp_u(u')) exp(u)``; the body form is ``dexp`` at ``-u``.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from lgsim._compile.spatial import Mat, Vec, components, pack, unpack, unpack_matrix
from lgsim.lie import projection, so3_components
from lgsim.lie.ad_functions import DEXP, DEXPINV, AdFunction, matrix_on_rotation, on_rotation, polynomial_in_hat
from lgsim.lie.matrix_forms import columns, transpose
from lgsim.support import check

dim = 3

Vector = Float[Array, "*#batch 3"]
Matrix = Float[Array, "*#batch 3 3"]


def _vectors(**named: Array) -> tuple[Vec, ...]:
    return tuple(unpack(a) for a in check.arguments(**{name: (a, (3,)) for name, a in named.items()}))


def _matrices(**named: Array) -> tuple[Mat, ...]:
    return tuple(unpack_matrix(a) for a in check.arguments(**{name: (a, (3, 3)) for name, a in named.items()}))


def _both(R: Array, **vector: Array) -> tuple[Mat, Vec]:
    R, u = check.arguments(R=(R, (3, 3)), **{name: (a, (3,)) for name, a in vector.items()})
    return unpack_matrix(R), unpack(u)


def _vector(v: Vec) -> Array:
    return pack(v, (3,))


def _matrix(m: Mat) -> Array:
    return pack((*m.r0, *m.r1, *m.r2), (3, 3))


def identity(dtype: jnp.dtype | type = float) -> Float[Array, "3 3"]:
    """The identity rotation."""
    return jnp.eye(3, dtype=check.float_dtype(dtype))


def hat(u: Vector) -> Float[Array, "*batch 3 3"]:
    """The cross-product matrix: ``hat(u) x = u x x`` (Park and Chung eq. (4))."""
    (a,) = _vectors(u=u)
    zero = jnp.zeros_like(a.x)
    return pack((zero, -a.z, a.y, a.z, zero, -a.x, -a.y, a.x, zero), (3, 3))


def vee(m: Matrix) -> Float[Array, "*batch 3"]:
    """The vector of the skew part, ``hat(vee(m)) = (m - m^T)/2``; the inverse of ``hat``."""
    (a,) = _matrices(m=m)
    return _vector(a.vee_skew())


def exp(u: Vector) -> Float[Array, "*batch 3 3"]:
    """``I + sin t/t [u] + (1 - cos t)/t^2 [u]^2``, t = |u|; within 8 eps of the exact matrix at every angle.

    Source: Park and Chung 2005, eq. (12) (eq. (11) lacks a factor 2).
    """
    (a,) = _vectors(u=u)
    return _matrix(so3_components.exp(a))


def log(R: Matrix) -> Float[Array, "*batch 3"]:
    """The rotation vector with |u| <= pi, ``exp(log(R)) = R``; through the quaternion, accurate up to and at pi.

    At an angle of pi both u and -u are logarithms; the one whose largest component is positive is returned.
    Differentiable along the group to any order, ``d/ds log(R exp(s)) = dexpinv_{-u}`` (one-sided at pi).
    """
    (a,) = _matrices(R=R)
    return _vector(so3_components.log(a))


def compose(R: Matrix, S: Matrix) -> Float[Array, "*batch 3 3"]:
    """The product ``R S``: S acts first."""
    a, b = _matrices(R=R, S=S)
    return _matrix(a @ b)


def inverse(R: Matrix) -> Float[Array, "*batch 3 3"]:
    """The transpose."""
    return transpose(check.floating("R", R, 3, 3))


def Ad(R: Matrix) -> Float[Array, "*batch 3 3"]:
    """The matrix of ``v -> vee(R hat(v) R^T)``: R itself."""
    return check.floating("R", R, 3, 3)


def Ad_action(R: Matrix, v: Vector) -> Float[Array, "*batch 3"]:
    """``Ad_R v = R v``."""
    a, b = _both(R, v=v)
    return _vector(a @ b)


def Ad_dual(R: Matrix) -> Float[Array, "*batch 3 3"]:
    """``Ad_R^*``, the transpose of Ad: ``<Ad_R^* mu, v> = <mu, Ad_R v>`` (Celledoni et al. 2021, eq. (10))."""
    return inverse(R)


def Ad_dual_action(R: Matrix, mu: Vector) -> Float[Array, "*batch 3"]:
    """``Ad_R^* mu = R^T mu``."""
    a, b = _both(R, mu=mu)
    return _vector(a.transpose_apply(b))


def ad(u: Vector) -> Float[Array, "*batch 3 3"]:
    """The matrix of ``v -> [u, v]``: ``hat(u)``."""
    return hat(u)


def bracket(u: Vector, v: Vector) -> Float[Array, "*batch 3"]:
    """The Lie bracket ``[u, v] = u x v``."""
    a, b = _vectors(u=u, v=v)
    return _vector(a.cross(b))


def ad_dual(u: Vector) -> Float[Array, "*batch 3 3"]:
    """``ad_u^*``, the transpose of ad."""
    return -hat(u)


def ad_dual_action(u: Vector, mu: Vector) -> Float[Array, "*batch 3"]:
    """``ad_u^* mu = mu x u``."""
    a, b = _vectors(u=u, mu=mu)
    return _vector(b.cross(a))


def ad_function(phi: AdFunction, u: Vector, v: Vector) -> Float[Array, "*batch 3"]:
    """``phi(ad_u) v`` for any analytic phi (Celledoni et al. 2021, sec. 2.3)."""
    return _vector(on_rotation(phi, *_vectors(u=u, v=v)))


def dexp_action(u: Vector, v: Vector) -> Float[Array, "*batch 3"]:
    """``dexp_u v = v + (1 - cos t)/t^2 u x v + (t - sin t)/t^3 u x (u x v)`` (Park and Chung eq. (18))."""
    return ad_function(DEXP, u, v)


def dexp(u: Vector) -> Float[Array, "*batch 3 3"]:
    """The matrix of ``dexp_action(u, .)``, the left Jacobian; ``dexp(-u)`` is the right one."""
    return _matrix(matrix_on_rotation(DEXP, *_vectors(u=u)))


def dexpinv_action(u: Vector, v: Vector) -> Float[Array, "*batch 3"]:
    """``dexp_u^-1 v = v - u x v/2 + (1 - (t/2) cot(t/2))/t^2 u x (u x v)``; singular at |u| = 2 pi k, k >= 1.

    Source: Park and Chung 2005, eq. (19).
    """
    return ad_function(DEXPINV, u, v)


def dexpinv(u: Vector) -> Float[Array, "*batch 3 3"]:
    """The matrix of ``dexpinv_action(u, .)``."""
    return _matrix(matrix_on_rotation(DEXPINV, *_vectors(u=u)))


def cay(u: Vector) -> Float[Array, "*batch 3 3"]:
    """Cayley map ``(I - hat(u)/2)^-1 (I + hat(u)/2)``; rational, agrees with exp to second order."""
    (a,) = _vectors(u=u)
    scale = 4 / (4 + a.dot(a))
    return _matrix(polynomial_in_hat(a, 1, scale, 0.5 * scale))


def cayinv(R: Matrix) -> Float[Array, "*batch 3"]:
    """The u with ``cay(u) = R``: ``2 tan(t/2)`` times the axis, infinite at a rotation by pi."""
    (a,) = _matrices(R=R)
    s, q = so3_components.quaternion(a)
    return _vector(q * (2 / s))


def dcay_action(u: Vector, v: Vector) -> Float[Array, "*batch 3"]:
    """Space form: ``d/dt cay(u) = hat(dcay_u u') cay(u)``; ``dcay_u v = (v + u x v/2)/(1 + |u|^2/4)``."""
    a, b = _vectors(u=u, v=v)
    return _vector((b + a.cross(b) * 0.5) * (4 / (4 + a.dot(a))))


def dcay(u: Vector) -> Float[Array, "*batch 3 3"]:
    """The matrix of ``dcay_action(u, .)``."""
    return columns(dcay_action, check.floating("u", u, 3), dim)


def dcayinv_action(u: Vector, v: Vector) -> Float[Array, "*batch 3"]:
    """The inverse of dcay: ``v - u x v/2 + u (u.v)/4``; never singular."""
    a, b = _vectors(u=u, v=v)
    return _vector(b - a.cross(b) * 0.5 + a * (0.25 * a.dot(b)))


def dcayinv(u: Vector) -> Float[Array, "*batch 3 3"]:
    """The matrix of ``dcayinv_action(u, .)``."""
    return columns(dcayinv_action, check.floating("u", u, 3), dim)


def second_kind(u: Vector) -> Float[Array, "*batch 3 3"]:
    """Canonical coordinates of the second kind: ``exp(u_1 e_x) exp(u_2 e_y) exp(u_3 e_z)``."""
    (a,) = _vectors(u=u)
    return _matrix(so3_components.second_kind(a))


def second_kind_inverse(R: Matrix) -> Float[Array, "*batch 3"]:
    """The u with ``second_kind(u) = R`` and |u_2| <= pi/2; u_1 and u_3 are not unique at |u_2| = pi/2."""
    (a,) = _matrices(R=R)
    return _vector(so3_components.second_kind_inverse(a))


def project(R: Matrix) -> Float[Array, "*batch 3 3"]:
    """The rotation nearest to R in the Frobenius norm (its polar factor), for a matrix that is nearly a rotation.

    Unique where R is invertible without a reflection; differentiable to any order there.
    """
    return projection.rotation(check.floating("R", R, 3, 3))


def defects(R: Any) -> dict[str, Any]:
    """The deviation of NumPy arrays (..., 3, 3) from rotations: ``R^T R = 1`` and ``det R = 1``."""
    return projection.rotation_defects(R)


def random(key: Array, shape: tuple[int, ...] = (), dtype: jnp.dtype | type = float) -> Float[Array, "*shape 3 3"]:
    """Uniformly (Haar) distributed rotations, from normal 4-vectors, whose directions are uniform quaternions."""
    dtype = check.float_dtype(dtype)
    q = jax.random.normal(key, (*shape, 4), dtype)
    s, *v = components(q)
    return _matrix(so3_components.quaternion_matrix((s, Vec(*v))))


def interpolate(R0: Matrix, R1: Matrix, s: Float[Array, "*#batch"] | float) -> Float[Array, "*batch 3 3"]:
    """The geodesic ``R0 exp(s log(R0^-1 R1))``, of constant speed; s = 0 and 1 are the ends."""
    s = jnp.asarray(s, jnp.result_type(R0))
    R0, R1, s = check.arguments(R0=(R0, (3, 3)), R1=(R1, (3, 3)), s=(s, ()))
    a, b = unpack_matrix(R0), unpack_matrix(R1)
    return _matrix(a @ so3_components.exp(so3_components.log(a.T @ b) * s))
