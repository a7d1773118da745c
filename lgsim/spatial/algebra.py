"""Vectors, 3x3 matrices, motions and transforms by components; only ``+ - *`` are used."""

from __future__ import annotations

from typing import Any, NamedTuple

Scalar = Any
"""A component: a number or an array; all components of one object have the same shape."""


class Vec(NamedTuple):
    """A vector of three components."""

    x: Scalar
    y: Scalar
    z: Scalar

    __array_ufunc__ = None  # so that ``numpy_scalar * vec`` reaches __rmul__ instead of becoming an array

    def __add__(self, other: Vec) -> Vec:  # type: ignore[override]
        """Sum, component by component."""
        return Vec(self.x + other.x, self.y + other.y, self.z + other.z)

    def __sub__(self, other: Vec) -> Vec:
        """Difference, component by component."""
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
        """Vector product ``self x other``."""
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
        """Sum, entry by entry."""
        return Mat(self.r0 + other.r0, self.r1 + other.r1, self.r2 + other.r2)

    def __sub__(self, other: Mat) -> Mat:
        """Difference, entry by entry."""
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
        """The product of the transposed matrix with ``v``, without building the transpose."""
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
        """The displacement that undoes this one."""
        return Transform(self.R.T, -self.R.transpose_apply(self.p))

    def act(self, V: Motion) -> Motion:
        """Adjoint action ``Ad_T V = (R v + p x R w, R w)`` on a twist."""
        w = self.R @ V.w
        return Motion(self.R @ V.v + self.p.cross(w), w)
