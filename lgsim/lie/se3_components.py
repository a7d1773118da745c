"""SE(3) by components: the formulas of ``se3`` for recursions without arrays."""

from __future__ import annotations

import jax

from lgsim._compile.spatial import Motion, Transform, Vec
from lgsim._compile.xla import fusion_barrier
from lgsim.lie import so3_components
from lgsim.lie.ad_functions import DEXPINV, DEXPINV_OF_LOG, on_motion, on_rotation, polynomial_in_hat
from lgsim.lie.series import stumpffs


def exp(u: Motion) -> Transform:
    """``R = exp(w)``, ``p = v + c_2 w x v + c_3 w x (w x v)`` (Park and Chung eq. (10b), not divided by |w|^2)."""
    v, w = u
    c1, c2, c3 = fusion_barrier(stumpffs(w.dot(w), ((1, 0), (2, 0), (3, 0))))
    turned = w.cross(v)
    return Transform(polynomial_in_hat(w, 1, c1, c2), v + turned * c2 + w.cross(turned) * c3)


def log_of_rotation_vector(w: Vec, p: Vec) -> Motion:
    """The twist whose exponential has the rotation ``exp(w)`` and the translation p; |w| below 2 pi."""
    return Motion(on_rotation(DEXPINV, w, p), w)


@jax.custom_jvp
def log(T: Transform) -> Motion:
    """The twist with rotation angle at most pi; its derivative along the group is dexpinv."""
    q, p = so3_components.gathered_quaternion(T.R, T.p)
    w = so3_components.quaternion_log(q)
    return Motion(on_rotation(DEXPINV_OF_LOG, w, p), w)


@log.defjvp
def _(primals: tuple[Transform], tangents: tuple[Transform]) -> tuple[Motion, Motion]:
    (T,), (dT,) = primals, tangents
    u = log(T)
    return u, on_motion(DEXPINV_OF_LOG, -u, _body_twist(T, dT))


def _body_twist(T: Transform, dT: Transform) -> Motion:
    """``vee(T^-1 dT)``, with the skew part of ``R^T dR`` (Park and Chung eq. (33))."""
    return Motion(T.R.transpose_apply(dT.p), (T.R.T @ dT.R).vee_skew())


def cay(u: Motion) -> Transform:
    """Cayley map ``(1 - u/2)^-1 (1 + u/2)`` of the 4x4 matrix of u."""
    v, w = u
    scale = 4 / (4 + w.dot(w))
    return Transform(polynomial_in_hat(w, 1, scale, 0.5 * scale), _half_resolvent(w, v))


def cayinv(T: Transform) -> Motion:
    """The u with ``cay(u) = T``; infinite at a rotation by pi."""
    s, q = so3_components.quaternion(T.R)
    w = q * (2 / s)
    return Motion(T.p - w.cross(T.p) * 0.5, w)


def dcayinv(u: Motion, y: Motion) -> Motion:
    """``y - [u, y]/2 - (u y u)/4`` of the matrices: the inverse of dcay."""
    (v, w), (a, b) = u, y
    return Motion(
        a - (w.cross(a) + v.cross(b)) * 0.5 - w.cross(b.cross(v)) * 0.25,
        b - w.cross(b) * 0.5 + w * (0.25 * w.dot(b)),
    )


def dcay(u: Motion, y: Motion) -> Motion:
    """Space form: ``d/dt cay(u) = dcay_u(u') cay(u)``, i.e. ``(1 - u/2)^-1 y (1 + u/2)^-1`` of the matrices."""
    (v, w), (a, b) = u, y
    angular = (b + w.cross(b) * 0.5) * (4 / (4 + w.dot(w)))
    return Motion(_half_resolvent(w, a + v.cross(angular) * 0.5 + w.cross(angular.cross(v)) * 0.25), angular)


def _half_resolvent(w: Vec, v: Vec) -> Vec:
    """``(1 - [w]/2)^-1 v``."""
    half = w * 0.5
    turned = half.cross(v)
    return v + (turned + half.cross(turned)) * (1 / (1 + half.dot(half)))
