"""Vectors, 3x3 matrices, twists and transforms by components, with only ``+ - *``; fast sine and cosine."""

from __future__ import annotations

from functools import reduce
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from lgsim._compile.xla.compilation import traced_once
from lgsim._compile.xla.named_calls import named

Scalar = Any
"""A component: a number or an array; all components of an object have the same shape."""


class Vec(NamedTuple):
    """A vector of three components."""

    x: Scalar
    y: Scalar
    z: Scalar

    __array_ufunc__ = None  # so that ``numpy_scalar * vec`` calls __rmul__ and does not become an array

    def __add__(self, other: Vec) -> Vec:  # type: ignore[override]
        """Componentwise sum."""
        return Vec(self.x + other.x, self.y + other.y, self.z + other.z)

    def __sub__(self, other: Vec) -> Vec:
        """Componentwise difference."""
        return Vec(self.x - other.x, self.y - other.y, self.z - other.z)

    def __neg__(self) -> Vec:
        """Opposite vector."""
        return Vec(-self.x, -self.y, -self.z)

    def __mul__(self, scale: Scalar) -> Vec:  # type: ignore[override]
        """The vector times a scalar."""
        return Vec(self.x * scale, self.y * scale, self.z * scale)

    __rmul__ = __mul__  # type: ignore[assignment]

    def dot(self, other: Vec) -> Scalar:
        """Inner product."""
        return self.x * other.x + self.y * other.y + self.z * other.z

    def cross(self, other: Vec) -> Vec:
        """Cross product ``self x other``."""
        return Vec(
            self.y * other.z - self.z * other.y,
            self.z * other.x - self.x * other.z,
            self.x * other.y - self.y * other.x,
        )


class Mat(NamedTuple):
    """A 3x3 matrix, by rows."""

    r0: Vec
    r1: Vec
    r2: Vec

    __array_ufunc__ = None

    def __add__(self, other: Mat) -> Mat:  # type: ignore[override]
        """Componentwise sum."""
        return Mat(self.r0 + other.r0, self.r1 + other.r1, self.r2 + other.r2)

    def __sub__(self, other: Mat) -> Mat:
        """Componentwise difference."""
        return Mat(self.r0 - other.r0, self.r1 - other.r1, self.r2 - other.r2)

    def __mul__(self, scale: Scalar) -> Mat:  # type: ignore[override]
        """The matrix times a scalar."""
        return Mat(self.r0 * scale, self.r1 * scale, self.r2 * scale)

    __rmul__ = __mul__  # type: ignore[assignment]

    @property
    def T(self) -> Mat:
        """Transpose."""
        return Mat(*(Vec(*column) for column in zip(*self, strict=True)))

    def __matmul__(self, other: Any) -> Any:
        """Product with a ``Vec`` or a ``Mat``."""
        if isinstance(other, Vec):
            return Vec(self.r0.dot(other), self.r1.dot(other), self.r2.dot(other))
        columns = other.T
        return Mat(*(Vec(*(row.dot(column) for column in columns)) for row in self))

    def transpose_apply(self, v: Vec) -> Vec:
        """The product of the transposed matrix with ``v``, without forming the transpose."""
        return v.x * self.r0 + v.y * self.r1 + v.z * self.r2

    def vee_skew(self) -> Vec:
        """The vector ``w`` whose cross-product matrix is the skew part, ``hat(w) = (M - M^T)/2``."""
        return Vec(self.r2.y - self.r1.z, self.r0.z - self.r2.x, self.r1.x - self.r0.y) * 0.5


class Motion(NamedTuple):
    """A twist ``(v, w)``: linear part first, then angular part."""

    v: Vec
    w: Vec

    __array_ufunc__ = None

    def __add__(self, other: Motion) -> Motion:  # type: ignore[override]
        """Sum of two twists in the same frame."""
        return Motion(self.v + other.v, self.w + other.w)

    def __sub__(self, other: Motion) -> Motion:
        """Difference of two twists in the same frame."""
        return Motion(self.v - other.v, self.w - other.w)

    def __neg__(self) -> Motion:
        """Opposite twist."""
        return Motion(-self.v, -self.w)

    def __mul__(self, scale: Scalar) -> Motion:  # type: ignore[override]
        """The twist times a scalar."""
        return Motion(self.v * scale, self.w * scale)

    __rmul__ = __mul__  # type: ignore[assignment]

    def cross(self, other: Motion) -> Motion:
        """Lie bracket ``ad_self other = (w x v' + v x w', w x w')`` of se(3)."""
        return Motion(self.w.cross(other.v) + self.v.cross(other.w), self.w.cross(other.w))


class Transform(NamedTuple):
    """A rigid displacement ``x -> R x + p``."""

    R: Mat
    p: Vec

    def __matmul__(self, other: Transform) -> Transform:
        """Composition: ``other`` first, then ``self``."""
        return Transform(self.R @ other.R, self.R @ other.p + self.p)

    def inverse(self) -> Transform:
        """The inverse displacement."""
        return Transform(self.R.T, -self.R.transpose_apply(self.p))

    def act(self, V: Motion) -> Motion:
        """Adjoint action ``Ad_T V = (R v + p x R w, R w)`` on a twist."""
        w = self.R @ V.w
        return Motion(self.R @ V.v + self.p.cross(w), w)


# Polynomials of sin r = r + r^3 S(r^2) and cos r = 1 - r^2/2 + r^4 C(r^2) on |r| <= pi/4, and pi/2 in three parts
# whose products with small integers are exact (Cody and Waite, Software Manual for the Elementary Functions, 1980).
# The coefficients are minimax fits: float64 from FDLIBM (k_sin.c, k_cos.c), float32 from Cephes (sinf.c).
_SIN = {
    8: (
        -1.66666666666666324348e-01,
        8.33333333332248946124e-03,
        -1.98412698298579493134e-04,
        2.75573137070700676789e-06,
        -2.50507602534068634195e-08,
        1.58969099521155010221e-10,
    ),
    4: (-1.6666654611e-1, 8.3321608736e-3, -1.9515295891e-4),
}
_COS = {
    8: (
        4.16666666666666019037e-02,
        -1.38888888888741095749e-03,
        2.48015872894767294178e-05,
        -2.75573143513906633035e-07,
        2.08757232129817482790e-09,
        -1.13596475577881948265e-11,
    ),
    4: (4.166664568298827e-2, -1.388731625493765e-3, 2.443315711809948e-5),
}
_HALF_PI = {
    8: (1.57079632673412561417e00, 6.07710050630396597660e-11, 2.02226624879595063154e-21),
    4: (1.5703125, 4.837512969970703e-4, 7.549789948768648e-8),
}
_TWO_OVER_PI = 0.6366197723675814


@jax.custom_jvp
@named("sincos")
@traced_once
def sincos(angle: Array) -> tuple[Array, Array]:
    """Sine and cosine of an angle in radians, both at once in vector instructions (4 to 8 times faster than two calls).

    The error is below 1.5 ulp for angles up to 1e6 (float64) or 1e3 (float32) rad; beyond, it is of the size of the
    rounding of the argument. The dtype is that of ``angle``.
    """
    size = angle.dtype.itemsize
    quarter = jnp.round(angle * _TWO_OVER_PI)
    r = reduce(lambda rest, piece: rest - quarter * piece, _HALF_PI[size], angle)
    sine, cosine = _near_zero(r)
    turns = quarter * 0.25
    phase = turns - jnp.floor(turns)  # 0, 1/4, 1/2 or 3/4 of a turn
    odd = (phase == 0.25) | (phase == 0.75)
    sine, cosine = jnp.where(odd, cosine, sine), jnp.where(odd, sine, cosine)
    return jnp.where(phase >= 0.5, -sine, sine), jnp.where((phase == 0.25) | (phase == 0.5), -cosine, cosine)


@sincos.defjvp
def _(primals: tuple[Array], tangents: tuple[Array]) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    sine, cosine = sincos(*primals)
    return (sine, cosine), (cosine * tangents[0], -sine * tangents[0])


@jax.custom_jvp
@named("sincos_of_twice")
@traced_once
def sincos_of_twice(angle: Array) -> tuple[Array, Array]:
    """Sine and cosine of twice an angle of at most pi/4, at half the cost of ``sincos``; wrong for larger angles.

    The error is below 2.5 ulp. The dtype is that of ``angle``.
    """
    sine, cosine = _near_zero(angle)
    twice = 2 * sine
    return twice * cosine, 1 - twice * sine


@sincos_of_twice.defjvp
def _(primals: tuple[Array], tangents: tuple[Array]) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    sine, cosine = sincos_of_twice(*primals)
    rate = 2 * tangents[0]
    return (sine, cosine), (cosine * rate, -sine * rate)


def _near_zero(r: Array) -> tuple[Array, Array]:
    """Sine and cosine for at most pi/4."""
    size, z = r.dtype.itemsize, r * r
    return r + r * z * _horner(_SIN[size], z), 1 - 0.5 * z + z * z * _horner(_COS[size], z)


def _horner(coefficients: tuple[float, ...], z: Array) -> Array:
    return reduce(lambda tail, c: tail * z + c, reversed(coefficients[:-1]), jnp.full_like(z, coefficients[-1]))
