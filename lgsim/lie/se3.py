"""se(3) and SE(3) on arrays: twists ``(v, w)`` (..., 6), linear part first, and homogeneous matrices (..., 4, 4).

All functions broadcast over leading axes and preserve the dtype (float32 or float64). They raise TypeError for other
dtypes or mixed ones, and ValueError for wrong last axes, naming the argument. Lengths in meters, angles in radians.
``dexp`` is the space form, ``d/dt exp(u) = hat(dexp_u(u')) exp(u)``; the body form is ``dexp`` at ``-u``. The bottom
row of an element is assumed to be (0, 0, 0, 1).
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from lgsim._compile.spatial import (
    Mat,
    Motion,
    Transform,
    Vec,
    components,
    pack,
    unpack,
    unpack_matrix,
    unpack_transform,
)
from lgsim.lie import projection, se3_components, so3, so3_components
from lgsim.lie.ad_functions import DEXP, DEXPINV, AdFunction, matrix_on_motion, on_motion, polynomial_in_hat
from lgsim.lie.matrix_forms import columns, transpose
from lgsim.support import check

dim = 6

Twist = Float[Array, "*#batch 6"]
Matrix = Float[Array, "*#batch 4 4"]


def _motion(u: Array) -> Motion:
    entries = components(u)
    return Motion(Vec(*entries[:3]), Vec(*entries[3:]))


def _motions(**named: Array) -> tuple[Motion, ...]:
    return tuple(_motion(a) for a in check.arguments(**{name: (a, (6,)) for name, a in named.items()}))


def _transforms(**named: Array) -> tuple[Transform, ...]:
    return tuple(unpack_transform(a) for a in check.arguments(**{name: (a, (4, 4)) for name, a in named.items()}))


def _both(T: Array, **vector: Array) -> tuple[Transform, Motion]:
    T, u = check.arguments(T=(T, (4, 4)), **{name: (a, (6,)) for name, a in vector.items()})
    return unpack_transform(T), _motion(u)


def _twist(u: Motion) -> Array:
    return pack((*u.v, *u.w), (6,))


def _matrix(T: Transform) -> Array:
    (a, b, c), p = T.R, T.p
    return pack((*a, p.x, *b, p.y, *c, p.z, 0.0, 0.0, 0.0, 1.0), (4, 4))


def _blocks(diagonal: Mat, upper: Mat) -> Array:
    """``[[diagonal, upper], [0, diagonal]]``, row by row: joining 36 entries at once costs 36 selections each."""
    top = [pack((*a, *b), (6,)) for a, b in zip(diagonal, upper, strict=True)]
    bottom = [pack((0.0, 0.0, 0.0, *a), (6,)) for a in diagonal]
    return jnp.stack([*top, *bottom], axis=-2)


def identity(dtype: jnp.dtype | type = float) -> Float[Array, "4 4"]:
    """The identity displacement."""
    return jnp.eye(4, dtype=check.float_dtype(dtype))


def hat(u: Twist) -> Float[Array, "*batch 4 4"]:
    """The 4x4 matrix ``[[hat(w), v], [0, 0]]`` (Park and Chung eq. (3))."""
    ((v, w),) = _motions(u=u)
    zero = jnp.zeros_like(w.x)
    rows = (zero, -w.z, w.y, v.x, w.z, zero, -w.x, v.y, -w.y, w.x, zero, v.z)
    return pack((*rows, 0.0, 0.0, 0.0, 0.0), (4, 4))


def vee(m: Matrix) -> Float[Array, "*batch 6"]:
    """The twist of a 4x4 matrix, from the skew part of its rotation block; the inverse of ``hat``."""
    (a,) = _transforms(m=m)
    return _twist(Motion(a.p, a.R.vee_skew()))


def exp(u: Twist) -> Float[Array, "*batch 4 4"]:
    """The displacement of unit time along the constant twist u; within 8 eps of the exact matrix at every angle.

    ``R = exp(w)``, ``p = v + (1 - cos t)/t^2 w x v + (t - sin t)/t^3 w x (w x v)``, t = |w|.
    Source: Park and Chung 2005, eq. (10), rearranged to avoid divisions by a small angle.
    """
    (a,) = _motions(u=u)
    return _matrix(se3_components.exp(a))


def log(T: Matrix) -> Float[Array, "*batch 6"]:
    """The twist with ``exp(log(T)) = T`` and rotation angle at most pi.

    Differentiable along the group to any order, ``d/ds log(T exp(s)) = dexpinv_{-u}`` (one-sided at an angle of pi,
    where the representative is that of ``so3.log``).
    """
    (a,) = _transforms(T=T)
    return _twist(se3_components.log(a))


def compose(T: Matrix, S: Matrix) -> Float[Array, "*batch 4 4"]:
    """The product ``T S``: S acts first; ``T_AC = T_AB T_BC``."""
    a, b = _transforms(T=T, S=S)
    return _matrix(a @ b)


def inverse(T: Matrix) -> Float[Array, "*batch 4 4"]:
    """``(R^T, -R^T p)``."""
    (a,) = _transforms(T=T)
    return _matrix(a.inverse())


def Ad_action(T: Matrix, v: Twist) -> Float[Array, "*batch 6"]:
    """``Ad_T v = (R v + p x R w, R w)``: the twist v of frame B expressed in frame A, for T = T_AB.

    Source: Park and Chung 2005, eqs. (7), (8).
    """
    a, b = _both(T, v=v)
    return _twist(a.act(b))


def Ad(T: Matrix) -> Float[Array, "*batch 6 6"]:
    """The matrix ``[[R, hat(p) R], [0, R]]`` of ``Ad_action(T, .)`` (Park and Chung eq. (8))."""
    ((R, p),) = _transforms(T=T)
    return _blocks(R, Mat(*(p.cross(column) for column in R.T)).T)


def Ad_dual(T: Matrix) -> Float[Array, "*batch 6 6"]:
    """``Ad_T^*``, the transpose of Ad: ``<Ad_T^* mu, v> = <mu, Ad_T v>`` (Celledoni et al. 2021, eq. (10))."""
    return transpose(Ad(T))


def Ad_dual_action(T: Matrix, mu: Twist) -> Float[Array, "*batch 6"]:
    """``Ad_T^* mu = (R^T f, R^T (n - p x f))``: for T = T_AB the wrench mu = (f, n) of frame A expressed in B."""
    a, (f, n) = _both(T, mu=mu)
    return _twist(Motion(a.R.transpose_apply(f), a.R.transpose_apply(n - a.p.cross(f))))


def bracket(u: Twist, v: Twist) -> Float[Array, "*batch 6"]:
    """The Lie bracket ``[u, v] = ad_u v = (w x v' + v x w', w x w')`` (Park and Chung eq. (6))."""
    a, b = _motions(u=u, v=v)
    return _twist(a.cross(b))


def ad(u: Twist) -> Float[Array, "*batch 6 6"]:
    """The matrix ``[[hat(w), hat(v)], [0, hat(w)]]`` of ``bracket(u, .)``."""
    ((v, w),) = _motions(u=u)
    return _blocks(polynomial_in_hat(w, 0, 1, 0), polynomial_in_hat(v, 0, 1, 0))


def ad_dual(u: Twist) -> Float[Array, "*batch 6 6"]:
    """``ad_u^*``, the transpose of ad."""
    return transpose(ad(u))


def ad_dual_action(u: Twist, mu: Twist) -> Float[Array, "*batch 6"]:
    """``ad_u^* mu = (f x w, n x w + f x v)`` for mu = (f, n); Newton-Euler: ``G V' = ad_V^* G V + F``."""
    (v, w), (f, n) = _motions(u=u, mu=mu)
    return _twist(Motion(f.cross(w), n.cross(w) + f.cross(v)))


def ad_function(phi: AdFunction, u: Twist, v: Twist) -> Float[Array, "*batch 6"]:
    """``phi(ad_u) v`` for any analytic phi (Celledoni et al. 2021, sec. 2.3)."""
    return _twist(on_motion(phi, *_motions(u=u, v=v)))


def dexp_action(u: Twist, v: Twist) -> Float[Array, "*batch 6"]:
    """``dexp_u v = sum_j ad_u^j v/(j+1)!`` in closed form (Park and Chung 2005, Lemma 1, eqs. (20), (21))."""
    return ad_function(DEXP, u, v)


def dexp(u: Twist) -> Float[Array, "*batch 6 6"]:
    """The matrix of ``dexp_action(u, .)``, the left Jacobian (right: ``dexp(-u)``); within 8 eps of its norm."""
    return _blocks(*matrix_on_motion(DEXP, *_motions(u=u)))


def dexpinv_action(u: Twist, v: Twist) -> Float[Array, "*batch 6"]:
    """``dexp_u^-1 v = sum_j B_j/j! ad_u^j v`` in closed form; singular at |w| = 2 pi k, k >= 1.

    Source: Park and Chung 2005, Lemma 1, eqs. (23), (24).
    """
    return ad_function(DEXPINV, u, v)


def dexpinv(u: Twist) -> Float[Array, "*batch 6 6"]:
    """The matrix of ``dexpinv_action(u, .)``; within 8 eps of its norm away from the singularity."""
    return _blocks(*matrix_on_motion(DEXPINV, *_motions(u=u)))


def cay(u: Twist) -> Float[Array, "*batch 4 4"]:
    """Cayley map ``(I - hat(u)/2)^-1 (I + hat(u)/2)``; rational, agrees with exp to second order."""
    (a,) = _motions(u=u)
    return _matrix(se3_components.cay(a))


def cayinv(T: Matrix) -> Float[Array, "*batch 6"]:
    """The u with ``cay(u) = T``; infinite at a rotation by pi."""
    (a,) = _transforms(T=T)
    return _twist(se3_components.cayinv(a))


def dcay_action(u: Twist, v: Twist) -> Float[Array, "*batch 6"]:
    """Space form: ``d/dt cay(u) = hat(dcay_u u') cay(u)``; the inverse of ``dcayinv_action``."""
    return _twist(se3_components.dcay(*_motions(u=u, v=v)))


def dcay(u: Twist) -> Float[Array, "*batch 6 6"]:
    """The matrix of ``dcay_action(u, .)``."""
    return columns(dcay_action, check.floating("u", u, 6), dim)


def dcayinv_action(u: Twist, v: Twist) -> Float[Array, "*batch 6"]:
    """``vee(hat(v) - [hat(u), hat(v)]/2 - hat(u) hat(v) hat(u)/4)``; never singular."""
    return _twist(se3_components.dcayinv(*_motions(u=u, v=v)))


def dcayinv(u: Twist) -> Float[Array, "*batch 6 6"]:
    """The matrix of ``dcayinv_action(u, .)``."""
    return columns(dcayinv_action, check.floating("u", u, 6), dim)


def second_kind(u: Twist) -> Float[Array, "*batch 4 4"]:
    """Canonical coordinates of the second kind ``exp(u_1 e_1) ... exp(u_6 e_6)``: translate, then rotate."""
    ((v, w),) = _motions(u=u)
    return _matrix(Transform(so3_components.second_kind(w), v))


def second_kind_inverse(T: Matrix) -> Float[Array, "*batch 6"]:
    """The u with ``second_kind(u) = T`` and |u_5| <= pi/2; u_4 and u_6 are not unique at |u_5| = pi/2."""
    (a,) = _transforms(T=T)
    return _twist(Motion(a.p, so3_components.second_kind_inverse(a.R)))


def random(key: Array, shape: tuple[int, ...] = (), dtype: jnp.dtype | type = float) -> Float[Array, "*shape 4 4"]:
    """Displacements with a uniform (Haar) rotation and a standard normal translation."""
    dtype = check.float_dtype(dtype)
    rotation_key, translation_key = jax.random.split(key)
    R = so3.random(rotation_key, shape, dtype)
    return _matrix(Transform(unpack_matrix(R), unpack(jax.random.normal(translation_key, (*shape, 3), dtype))))


def project(T: Matrix) -> Float[Array, "*batch 4 4"]:
    """The displacement with the translation of T and the rotation nearest to that of T."""
    T = check.floating("T", T, 4, 4)
    return projection.with_rotation(T, so3.project(T[..., :3, :3]))


def defects(T: Any) -> dict[str, Any]:
    """The deviation of NumPy arrays (..., 4, 4) from displacements: the rotation's defects, and the bottom row's."""
    return projection.displacement_defects(T)


def interpolate(T0: Matrix, T1: Matrix, s: Float[Array, "*#batch"] | float) -> Float[Array, "*batch 4 4"]:
    """The screw motion ``T0 exp(s log(T0^-1 T1))``, of constant twist; s = 0 and 1 are the ends."""
    s = jnp.asarray(s, jnp.result_type(T0))
    T0, T1, s = check.arguments(T0=(T0, (4, 4)), T1=(T1, (4, 4)), s=(s, ()))
    a, b = unpack_transform(T0), unpack_transform(T1)
    return _matrix(a @ se3_components.exp(se3_components.log(a.inverse() @ b) * s))


def act(T: Matrix, x: Float[Array, "*#batch 3"]) -> Float[Array, "*batch 3"]:
    """The transformed point ``R x + p``."""
    T, x = check.arguments(T=(T, (4, 4)), x=(x, (3,)))
    a = unpack_transform(T)
    return pack(a.R @ unpack(x) + a.p, (3,))


def from_rotation_translation(R: so3.Matrix, p: so3.Vector) -> Float[Array, "*batch 4 4"]:
    """The homogeneous matrix of a rotation and a translation."""
    R, p = check.arguments(R=(R, (3, 3)), p=(p, (3,)))
    return _matrix(Transform(unpack_matrix(R), unpack(p)))


def translation(T: Matrix) -> Float[Array, "*batch 3"]:
    """The translation p of ``T = (R, p)``."""
    return check.floating("T", T, 4, 4)[..., :3, 3]


def rotation_matrix(T: Matrix) -> Float[Array, "*batch 3 3"]:
    """The rotation R of ``T = (R, p)``."""
    return check.floating("T", T, 4, 4)[..., :3, :3]
