"""se(2) and SE(2) on arrays: planar twists ``(vx, vy, w)`` (..., 3) and homogeneous matrices (..., 3, 3).

The conventions are those of ``se3``: linear part first, ``dexp`` is the space form. All functions broadcast over
leading axes and preserve the dtype (float32 or float64); TypeError and ValueError name the argument.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from lgsim._compile.spatial import Motion, Vec, components, pack, rows, sincos
from lgsim._compile.spatial.algebra import Scalar
from lgsim.lie import projection, se3_components, so2
from lgsim.lie.ad_functions import DEXP, DEXPINV, AdFunction
from lgsim.lie.matrix_forms import columns, transpose
from lgsim.lie.series import dexpinv_coefficient, stumpffs
from lgsim.support import check

dim = 3

Twist = Float[Array, "*#batch 3"]
Matrix = Float[Array, "*#batch 3 3"]


class _Pair(NamedTuple):
    """A vector of the plane."""

    x: Scalar
    y: Scalar

    def plus(self, other: _Pair, scale: Scalar) -> _Pair:
        return _Pair(self.x + other.x * scale, self.y + other.y * scale)

    def turned(self) -> _Pair:
        """The vector rotated by a right angle, ``J v``."""
        return _Pair(-self.y, self.x)


class _Frame(NamedTuple):
    cosine: Scalar
    sine: Scalar
    p: _Pair

    def rotate(self, v: _Pair) -> _Pair:
        return _Pair(self.cosine * v.x - self.sine * v.y, self.sine * v.x + self.cosine * v.y)

    def unrotate(self, v: _Pair) -> _Pair:
        return _Pair(self.cosine * v.x + self.sine * v.y, self.cosine * v.y - self.sine * v.x)


def _twists(**named: Array) -> tuple[tuple[_Pair, Scalar], ...]:
    arrays = check.arguments(**{name: (a, (3,)) for name, a in named.items()})
    return tuple((_Pair(x, y), w) for x, y, w in map(components, arrays))


def _frame(T: Array) -> _Frame:
    (cosine, _, x), (sine, _, y), _ = rows(T)
    return _Frame(cosine, sine, _Pair(x, y))


def _frames(**named: Array) -> tuple[_Frame, ...]:
    return tuple(_frame(a) for a in check.arguments(**{name: (a, (3, 3)) for name, a in named.items()}))


def _both(T: Array, **vector: Array) -> tuple[_Frame, _Pair, Scalar]:
    T, u = check.arguments(T=(T, (3, 3)), **{name: (a, (3,)) for name, a in vector.items()})
    x, y, w = components(u)
    return _frame(T), _Pair(x, y), w


def _twist(v: _Pair, w: Scalar) -> Array:
    return pack((v.x, v.y, w), (3,))


def _matrix(T: _Frame) -> Array:
    return pack((T.cosine, -T.sine, T.p.x, T.sine, T.cosine, T.p.y, 0.0, 0.0, 1.0), (3, 3))


def identity(dtype: jnp.dtype | type = float) -> Float[Array, "3 3"]:
    """The identity displacement."""
    return jnp.eye(3, dtype=check.float_dtype(dtype))


def hat(u: Twist) -> Float[Array, "*batch 3 3"]:
    """``[[0, -w, vx], [w, 0, vy], [0, 0, 0]]``."""
    ((v, w),) = _twists(u=u)
    zero = jnp.zeros_like(w)
    return pack((zero, -w, v.x, w, zero, v.y, 0.0, 0.0, 0.0), (3, 3))


def vee(m: Matrix) -> Float[Array, "*batch 3"]:
    """The twist of a 3x3 matrix, from the skew part of its rotation block; the inverse of ``hat``."""
    m = check.floating("m", m, 3, 3)
    (_, upper, x), (lower, _, y), _ = rows(m)
    return pack((x, y, 0.5 * (lower - upper)), (3,))


def exp(u: Twist) -> Float[Array, "*batch 3 3"]:
    """Rotation by w; ``p = sin w/w v + (1 - cos w)/w J v``, J the rotation by a right angle."""
    ((v, w),) = _twists(u=u)
    c1, c2 = stumpffs(w * w, ((1, 0), (2, 0)))
    sine, cosine = sincos(w)
    return _matrix(_Frame(cosine, sine, _Pair(v.x * c1, v.y * c1).plus(v.turned(), w * c2)))


def log(T: Matrix) -> Float[Array, "*batch 3"]:
    """The twist with ``exp(log(T)) = T`` and w in (-pi, pi]: ``v = (w/2) cot(w/2) p - w/2 J p``."""
    T = check.floating("T", T, 3, 3)
    w, p = so2.log(T[..., :2, :2])[..., 0], _frame(T).p
    cotangent = 1 - w * w * dexpinv_coefficient(w * w)
    return _twist(_Pair(p.x * cotangent, p.y * cotangent).plus(p.turned(), -0.5 * w), w)


def compose(T: Matrix, S: Matrix) -> Float[Array, "*batch 3 3"]:
    """The product ``T S``: S acts first."""
    a, b = _frames(T=T, S=S)
    direction = a.rotate(_Pair(b.cosine, b.sine))
    return _matrix(_Frame(direction.x, direction.y, a.rotate(b.p).plus(a.p, 1)))


def inverse(T: Matrix) -> Float[Array, "*batch 3 3"]:
    """``(R^T, -R^T p)``."""
    (a,) = _frames(T=T)
    p = a.unrotate(a.p)
    return _matrix(_Frame(a.cosine, -a.sine, _Pair(-p.x, -p.y)))


def Ad_action(T: Matrix, v: Twist) -> Float[Array, "*batch 3"]:
    """``Ad_T (v, w) = (R v - w J p, w)``."""
    a, b, w = _both(T, v=v)
    return _twist(a.rotate(b).plus(a.p.turned(), -w), w)


def Ad(T: Matrix) -> Float[Array, "*batch 3 3"]:
    """The matrix of ``Ad_action(T, .)``."""
    return columns(Ad_action, check.floating("T", T, 3, 3), dim, rank=2)


def Ad_dual(T: Matrix) -> Float[Array, "*batch 3 3"]:
    """``Ad_T^*``, the transpose of Ad: ``<Ad_T^* mu, v> = <mu, Ad_T v>``."""
    return transpose(Ad(T))


def Ad_dual_action(T: Matrix, mu: Twist) -> Float[Array, "*batch 3"]:
    """``Ad_T^* (f, n) = (R^T f, n - p x f)``."""
    a, f, n = _both(T, mu=mu)
    return _twist(a.unrotate(f), n - (a.p.x * f.y - a.p.y * f.x))


def bracket(u: Twist, v: Twist) -> Float[Array, "*batch 3"]:
    """``[u, v] = (w J v' - w' J v, 0)``."""
    (a, wa), (b, wb) = _twists(u=u, v=v)
    zero = _Pair(jnp.zeros_like(wa), jnp.zeros_like(wa))
    return _twist(zero.plus(b.turned(), wa).plus(a.turned(), -wb), jnp.zeros_like(wa * wb))


def ad(u: Twist) -> Float[Array, "*batch 3 3"]:
    """The matrix of ``bracket(u, .)``."""
    return columns(bracket, check.floating("u", u, 3), dim)


def ad_dual(u: Twist) -> Float[Array, "*batch 3 3"]:
    """``ad_u^*``, the transpose of ad."""
    return transpose(ad(u))


def ad_dual_action(u: Twist, mu: Twist) -> Float[Array, "*batch 3"]:
    """``ad_u^* (f, n) = (-w J f, -f . J v)``."""
    (v, w), (f, _) = _twists(u=u, mu=mu)
    zero, turned = _Pair(jnp.zeros_like(w), jnp.zeros_like(w)), v.turned()
    return _twist(zero.plus(f.turned(), -w), -(f.x * turned.x + f.y * turned.y))


def ad_function(phi: AdFunction, u: Twist, v: Twist) -> Float[Array, "*batch 3"]:
    """``phi(ad_u) v``: with ``m = J (w a - b v)`` for v = (a, b), ``(phi(0) a + g1 m + g2 w J m, phi(0) b)``."""
    (linear, w), (a, b) = _twists(u=u, v=v)
    odd, even = phi.coefficients(w * w)
    m = _Pair(a.x * w, a.y * w).plus(linear, -b).turned()
    moved = _Pair(a.x * phi.at_zero, a.y * phi.at_zero).plus(m, odd).plus(m.turned(), w * even)
    return _twist(moved, b * phi.at_zero)


def dexp_action(u: Twist, v: Twist) -> Float[Array, "*batch 3"]:
    """``dexp_u v = sum_j ad_u^j v/(j+1)!`` in closed form."""
    return ad_function(DEXP, u, v)


def dexp(u: Twist) -> Float[Array, "*batch 3 3"]:
    """The matrix of ``dexp_action(u, .)``; the body form is ``dexp(-u)``."""
    return columns(dexp_action, check.floating("u", u, 3), dim)


def dexpinv_action(u: Twist, v: Twist) -> Float[Array, "*batch 3"]:
    """``dexp_u^-1 v`` in closed form; singular at |w| = 2 pi k, k >= 1."""
    return ad_function(DEXPINV, u, v)


def dexpinv(u: Twist) -> Float[Array, "*batch 3 3"]:
    """The matrix of ``dexpinv_action(u, .)``."""
    return columns(dexpinv_action, check.floating("u", u, 3), dim)


def _lift(v: _Pair, w: Scalar) -> Motion:
    zero = jnp.zeros_like(w)
    return Motion(Vec(v.x, v.y, zero), Vec(zero, zero, w))


def _plane(u: Motion) -> Array:
    return _twist(_Pair(u.v.x, u.v.y), u.w.z)


def cay(u: Twist) -> Float[Array, "*batch 3 3"]:
    """Cayley map ``(I - hat(u)/2)^-1 (I + hat(u)/2)``: that of se(3) in the plane."""
    ((v, w),) = _twists(u=u)
    T = se3_components.cay(_lift(v, w))
    return _matrix(_Frame(T.R.r0.x, T.R.r1.x, _Pair(T.p.x, T.p.y)))


def cayinv(T: Matrix) -> Float[Array, "*batch 3"]:
    """The u with ``cay(u) = T``; infinite at a rotation by pi."""
    (a,) = _frames(T=T)
    w = 2 * a.sine / (1 + a.cosine)
    return _twist(a.p.plus(a.p.turned(), -0.5 * w), w)


def dcay_action(u: Twist, v: Twist) -> Float[Array, "*batch 3"]:
    """Space form: ``d/dt cay(u) = hat(dcay_u u') cay(u)``."""
    a, b = _twists(u=u, v=v)
    return _plane(se3_components.dcay(_lift(*a), _lift(*b)))


def dcay(u: Twist) -> Float[Array, "*batch 3 3"]:
    """The matrix of ``dcay_action(u, .)``."""
    return columns(dcay_action, check.floating("u", u, 3), dim)


def dcayinv_action(u: Twist, v: Twist) -> Float[Array, "*batch 3"]:
    """The inverse of dcay; never singular."""
    a, b = _twists(u=u, v=v)
    return _plane(se3_components.dcayinv(_lift(*a), _lift(*b)))


def dcayinv(u: Twist) -> Float[Array, "*batch 3 3"]:
    """The matrix of ``dcayinv_action(u, .)``."""
    return columns(dcayinv_action, check.floating("u", u, 3), dim)


def second_kind(u: Twist) -> Float[Array, "*batch 3 3"]:
    """Canonical coordinates of the second kind, ``exp(u_1 e_1) exp(u_2 e_2) exp(u_3 e_3)``: translate, then rotate."""
    ((v, w),) = _twists(u=u)
    sine, cosine = sincos(w)
    return _matrix(_Frame(cosine, sine, v))


def second_kind_inverse(T: Matrix) -> Float[Array, "*batch 3"]:
    """The u with ``second_kind(u) = T`` and u_3 in (-pi, pi]."""
    T = check.floating("T", T, 3, 3)
    return _twist(_frame(T).p, so2.log(T[..., :2, :2])[..., 0])


def project(T: Matrix) -> Float[Array, "*batch 3 3"]:
    """The displacement with the translation of T and the rotation nearest to that of T."""
    T = check.floating("T", T, 3, 3)
    return projection.with_rotation(T, so2.project(T[..., :2, :2]))


def defects(T: Any) -> dict[str, Any]:
    """The deviation of NumPy arrays (..., 3, 3) from displacements: the rotation's defects, and the bottom row's."""
    return projection.displacement_defects(T)


def random(key: Array, shape: tuple[int, ...] = (), dtype: jnp.dtype | type = float) -> Float[Array, "*shape 3 3"]:
    """Displacements with a uniform (Haar) rotation and a standard normal translation."""
    dtype = check.float_dtype(dtype)
    angle_key, translation_key = jax.random.split(key)
    sine, cosine = sincos(jax.random.uniform(angle_key, shape, dtype, -jnp.pi, jnp.pi))
    p = jax.random.normal(translation_key, (*shape, 2), dtype)
    return _matrix(_Frame(cosine, sine, _Pair(*components(p))))


def interpolate(T0: Matrix, T1: Matrix, s: Float[Array, "*#batch"] | float) -> Float[Array, "*batch 3 3"]:
    """The motion of constant twist ``T0 exp(s log(T0^-1 T1))``; s = 0 and 1 are the ends."""
    s = jnp.asarray(s, jnp.result_type(T0))
    T0, T1, s = check.arguments(T0=(T0, (3, 3)), T1=(T1, (3, 3)), s=(s, ()))
    return compose(T0, exp(log(compose(inverse(T0), T1)) * s[..., None]))
