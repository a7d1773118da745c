"""Wrenches, symmetric matrices, and inertias of rigid and articulated bodies, by components."""

from __future__ import annotations

from typing import Any, NamedTuple

from lgsim._compile.spatial.algebra import Mat, Motion, Scalar, Transform, Vec
from lgsim._compile.xla.hints import fusion_barrier


class Force(NamedTuple):
    """A wrench ``(f, n)``: force first, then moment."""

    f: Vec
    n: Vec

    __array_ufunc__ = None

    def __add__(self, other: Force) -> Force:  # type: ignore[override]
        """Sum of two wrenches in the same frame."""
        return Force(self.f + other.f, self.n + other.n)

    def __sub__(self, other: Force) -> Force:
        """Difference of two wrenches in the same frame."""
        return Force(self.f - other.f, self.n - other.n)

    def __neg__(self) -> Force:
        """Opposite wrench."""
        return Force(-self.f, -self.n)

    def __mul__(self, scale: Scalar) -> Force:  # type: ignore[override]
        """The wrench times a scalar."""
        return Force(self.f * scale, self.n * scale)

    __rmul__ = __mul__  # type: ignore[assignment]

    def power(self, V: Motion) -> Scalar:
        """Power ``f.v + n.w`` on a twist in the same frame."""
        return self.f.dot(V.v) + self.n.dot(V.w)


def cross_dual(V: Motion, F: Force) -> Force:
    """``-ad_V^T F = (w x f, w x n + v x f)``: the rate of a wrench that moves with V."""
    return Force(V.w.cross(F.f), V.w.cross(F.n) + V.v.cross(F.f))


def to_child(T: Transform, V: Motion) -> Motion:
    """The twist V of the parent frame expressed in the child frame: ``Ad_T^-1 V``."""
    return Motion(T.R.transpose_apply(fusion_barrier(V.v + V.w.cross(T.p))), T.R.transpose_apply(V.w))


def to_parent(T: Transform, F: Force) -> Force:
    """The wrench F of the child frame expressed in the parent frame: ``Ad_T^-T F``."""
    f = fusion_barrier(T.R @ F.f)
    return Force(f, T.R @ F.n + T.p.cross(f))


class Sym(NamedTuple):
    """A symmetric 3x3 matrix."""

    xx: Scalar
    xy: Scalar
    xz: Scalar
    yy: Scalar
    yz: Scalar
    zz: Scalar

    __array_ufunc__ = None

    def __add__(self, other: Sym) -> Sym:  # type: ignore[override]
        """Entrywise sum."""
        return Sym(*(a + b for a, b in zip(self, other, strict=True)))

    def __sub__(self, other: Sym) -> Sym:
        """Entrywise difference."""
        return Sym(*(a - b for a, b in zip(self, other, strict=True)))

    def __mul__(self, scale: Scalar) -> Sym:  # type: ignore[override]
        """The matrix times a scalar."""
        return Sym(*(a * scale for a in self))

    __rmul__ = __mul__  # type: ignore[assignment]

    @property
    def matrix(self) -> Mat:
        """All nine entries."""
        return Mat(Vec(self.xx, self.xy, self.xz), Vec(self.xy, self.yy, self.yz), Vec(self.xz, self.yz, self.zz))

    def __matmul__(self, other: Any) -> Any:
        """Product with a ``Vec`` or a ``Mat``."""
        return self.matrix @ other

    def rotated(self, R: Mat) -> Sym:
        """``R S R^T``."""
        return Sym.of_product(fusion_barrier(R @ self.matrix), R)

    @classmethod
    def of_product(cls, A: Mat, B: Mat) -> Sym:
        """``A B^T`` of a product that is symmetric."""
        return cls(A.r0.dot(B.r0), A.r0.dot(B.r1), A.r0.dot(B.r2), A.r1.dot(B.r1), A.r1.dot(B.r2), A.r2.dot(B.r2))

    def inverse(self) -> Sym:
        """The inverse, by cofactors."""
        a, b, c, d, e, f = self
        A, B, C = d * f - e * e, c * e - b * f, b * e - c * d
        A, B, C, scale = fusion_barrier((A, B, C, 1 / (a * A + b * B + c * C)))
        return Sym(A, B, C, a * f - c * c, b * c - a * e, a * d - b * b) * scale


class Inertia(NamedTuple):
    """Rigid-body inertia: mass, first moment ``h = m c`` and rotational inertia ``I`` about the origin of its frame."""

    m: Scalar
    h: Vec
    I: Sym  # noqa: E741  the field's symbol

    def __add__(self, other: Inertia) -> Inertia:  # type: ignore[override]
        """The sum of two bodies that move as one, in the same frame."""
        return Inertia(self.m + other.m, self.h + other.h, self.I + other.I)

    def momentum(self, V: Motion) -> Force:
        """``(m v - h x w, I w + h x v)``."""
        return Force(V.v * self.m - self.h.cross(V.w), self.I @ V.w + self.h.cross(V.v))

    def transformed(self, T: Transform) -> Inertia:
        """The inertia in a frame in which the body's frame has the pose T.

        ``h' = R h + m p``, ``I' = R I R^T + (2 p.Rh + m p.p) 1 - (p Rh^T + Rh p^T + m p p^T)``.
        """
        h, p = T.R @ self.h, T.p
        s = p * (0.5 * self.m) + h  # p s^T + s p^T has all three products
        trace = 2 * p.dot(s)
        shift = Sym(
            trace - 2 * p.x * s.x,
            -(p.x * s.y + p.y * s.x),
            -(p.x * s.z + p.z * s.x),
            trace - 2 * p.y * s.y,
            -(p.y * s.z + p.z * s.y),
            trace - 2 * p.z * s.z,
        )
        return Inertia(self.m, h + p * self.m, self.I.rotated(T.R) + shift)

    @property
    def articulated(self) -> Articulated:
        """The same body as an articulated-body inertia."""
        zero, h = 0 * self.m, self.h
        skew = Mat(Vec(zero, -h.z, h.y), Vec(h.z, zero, -h.x), Vec(-h.y, h.x, zero))
        return Articulated(Sym(self.m, zero, zero, self.m, zero, self.m), skew, self.I)


class Articulated(NamedTuple):
    """Articulated-body inertia: ``f = M v + H^T w``, ``n = H v + I w``."""

    M: Sym
    H: Mat
    I: Sym  # noqa: E741  the field's symbol

    def __add__(self, other: Articulated) -> Articulated:  # type: ignore[override]
        """The sum of two in the same frame."""
        return Articulated(self.M + other.M, self.H + other.H, self.I + other.I)

    def __matmul__(self, V: Motion) -> Force:
        """The wrench for the acceleration V."""
        return Force(self.M @ V.v + self.H.transpose_apply(V.w), self.H @ V.v + self.I @ V.w)

    def to_parent(self, T: Transform) -> Articulated:
        """The inertia in a frame in which this one's frame has the pose T: ``Ad_T^-T A Ad_T^-1``."""
        R, p = T
        turned = fusion_barrier(R @ self.H)
        M, H, I = fusion_barrier((self.M.rotated(R), turned @ R.T, self.I.rotated(R)))  # noqa: E741
        return shifted(M, H, I, p)

    def solve(self, F: Force) -> Motion:
        """The twist V with ``self @ V = F``, starting with the mass block, which is well conditioned."""
        inverse = fusion_barrier(self.M.inverse())
        H = self.H
        ratio = fusion_barrier(H @ inverse.matrix)
        rest = fusion_barrier(self.I - Sym.of_product(ratio, H))
        w = fusion_barrier(rest.inverse() @ fusion_barrier(F.n - ratio @ F.f))
        return Motion(inverse @ (F.f - H.transpose_apply(w)), w)


def shifted(M: Sym, H: Mat, I: Sym, p: Vec) -> Articulated:  # noqa: E741
    """The articulated-body inertia of blocks M, H, I for a displacement p of its frame."""
    moved = fusion_barrier(H + cross_matrix(p, M.matrix))
    Z = cross_matrix(p, H.T).T + cross_matrix(p, moved.T)
    return Articulated(M, moved, I + Sym(Z.r0.x, Z.r0.y, Z.r0.z, Z.r1.y, Z.r1.z, Z.r2.z))


def cross_matrix(p: Vec, A: Mat) -> Mat:
    """``[p] A``."""
    return Mat(*(p.cross(column) for column in A.T)).T
