"""Discrete rotation vectors: the discrete counterpart of ``h w`` for a body that rotates by E in a step h.

With the unit quaternion (s, x) of E, s >= 0, the rotational part of the discrete Lagrangian is ``phi . I phi / (2 h)``.
A body that rotates at a constant rate has ``phi = h w`` up to third order in the angle.

Choice of the map: all are of order 2 and need the same number of iterations. They were compared on ten systems in free
motion at typical robot speeds (arms, a hand, a quadruped, a humanoid, rods on ball joints, a satellite;
``benchmarks/variational.py``). Relative to "quaternion", the position errors after 1 s are 0.88 ("cayley", 0.5 to 1.8)
and 0.77 ("exp", 0.13 to 1.0) in the geometric mean; energy errors are of the same size. "quaternion" is the default: it
is the cheapest and conserves the energy of free bodies exactly, but a step cannot rotate a body by a radian. "exp"
costs a tenth more, and four times as much on a humanoid, where its program is too long for LLVM. Use "exp" where bodies
rotate by more than about 0.2 rad per step: for arms at 100 rad/s its energy errors are 2 to 5 times smaller. Use
"cayley" where the others have no solution.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp

from lgsim._compile.spatial import Mat, Sym, Vec
from lgsim._compile.spatial.algebra import Scalar
from lgsim._compile.xla import fusion_barrier
from lgsim.lie import so3_components
from lgsim.lie.ad_functions import DEXPINV_OF_LOG, matrix_on_rotation, polynomial_in_hat
from lgsim.lie.series import dexpinv_coefficient


def hat(a: Vec) -> Mat:
    """The cross-product matrix of a."""
    zero = jnp.zeros_like(a.x)
    return Mat(Vec(zero, -a.z, a.y), Vec(a.z, zero, -a.x), Vec(-a.y, a.x, zero))


def less_identity(s: Scalar, x: Vec) -> Mat:
    """``R - 1`` of the unit quaternion (s, x): exact for small rotations."""
    return polynomial_in_hat(x, 0.0, 2 * s, jnp.full_like(s, 2.0))


@dataclass(frozen=True)
class RotationMap:
    """A discrete rotation vector, with the functions that the discrete momentum needs.

    Attributes:
        vector: ``vector(s, x)``, the discrete rotation vector phi (rad) of a unit quaternion.
        change: ``change(s, phi)``, the matrix K of ``dphi = K psi`` for a rotation psi that follows that of the step,
            in fixed axes.
        bend: ``bend(phi, y, g)``, the symmetric matrix of the second derivative of ``phi . y`` along ``exp(t psi)`` at
            fixed y, with ``g = K^T y``.
        least: Scalar part s of a body's rotation at and below which a smaller rotation has the same momentum.
    """

    name: str
    vector: Callable[[Scalar, Vec], Vec]
    change: Callable[[Scalar, Vec], Mat]
    bend: Callable[[Vec, Vec, Vec], Sym]
    least: float = 0.0

    def __repr__(self) -> str:
        """Return the name."""
        return self.name

    def spin(self, s: Scalar, phi: Vec, inertia: Sym) -> Vec:
        """H times the angular momentum about the center of mass, ``K^T I phi``, I in the axes of the frame."""
        return self.change(s, phi).transpose_apply(inertia @ phi)

    def spin_slope(self, s: Scalar, phi: Vec, inertia: Sym) -> Mat:
        """The derivative of ``spin`` with respect to a rotation psi that follows that of the step, at constant inertia.

        The spin is a derivative of ``phi . I phi / 2`` on the group, and mixed second derivatives differ by a bracket.
        So the matrix is ``K^T I K + bend``, which is symmetric, minus ``hat(spin) / 2``.
        """
        y = inertia @ phi
        K = fusion_barrier(self.change(s, phi))
        spin = K.transpose_apply(y)
        pull = K.T
        even = Sym.of_product(fusion_barrier(pull @ inertia.matrix), pull) + self.bend(phi, y, spin)
        return even.matrix - hat(spin * 0.5)


def _symmetric_product(a: Vec, b: Vec) -> Sym:
    """``(a b^T + b a^T) / 2``."""
    half = b * 0.5
    return Sym(
        a.x * b.x, a.x * half.y + a.y * half.x, a.x * half.z + a.z * half.x,
        a.y * b.y, a.y * half.z + a.z * half.y, a.z * b.z,
    )  # fmt: skip


def _multiple_of_one(s: Scalar) -> Sym:
    zero = jnp.zeros_like(s)
    return Sym(s, zero, zero, s, zero, s)


def _exponential_bend(phi: Vec, y: Vec, g: Vec) -> Sym:
    # with K = 1 - hat(phi)/2 + c hat(phi)^2, a = phi . psi, K psi =: u and phi . u = a, the second derivative of phi is
    # -u x psi/2 + 2 c' a (phi a - phi^2 psi) + c (u a + phi (u . psi) - 2 a psi)
    del g
    square, along = phi.dot(phi), phi.dot(y)
    c, slope = fusion_barrier(tuple(dexpinv_coefficient(square, order, True) for order in (0, 1)))
    small = c * c * square
    z = y * (0.25 - 2 * slope * square - c - small) + phi.cross(y) * c + phi * (2 * along * (slope + c * c))
    return _symmetric_product(phi, z) + _multiple_of_one(along * (c - small - 0.25))


def _exponential_change(s: Any, phi: Vec) -> Mat:
    del s
    return matrix_on_rotation(DEXPINV_OF_LOG, phi)


QUATERNION = RotationMap(
    "quaternion",
    lambda s, x: x * 2,
    lambda s, phi: polynomial_in_hat(phi, s, -0.5, 0 * s),
    lambda phi, y, g: _multiple_of_one(phi.dot(y) * -0.25),
    least=math.sqrt(0.5),
)
"""``phi = 2 x``: the discrete rigid body of Moser and Veselov, and RATTLE on all mass points of a body.

It conserves the energy of a free body. About a principal axis of moment I, a step has the angular momentum
``I sin(angle) / h``, at most about I / h. Of its two solutions, the one below a quarter turn is the physical one."""

_CAYLEY = RotationMap(
    "cayley",
    lambda s, x: x * (2 / s),
    lambda s, phi: polynomial_in_hat(phi, 1 + 0.25 * phi.dot(phi), -0.5, jnp.full_like(phi.x, 0.25)),
    lambda phi, y, g: _symmetric_product(phi, g) * 0.5,
)
"""``phi = 2 x / s``, the inverse of the Cayley map: a step exists for any momentum."""

EXPONENTIAL = RotationMap(
    "exp",
    lambda s, x: so3_components.quaternion_log((s, x)),
    _exponential_change,
    _exponential_bend,
)
"""``phi = log``, the rotation vector."""

ROTATION_MAPS = {each.name: each for each in (QUATERNION, _CAYLEY, EXPONENTIAL)}
"""All discrete rotation vectors by name."""


def rotation_map(name: str | RotationMap) -> RotationMap:
    """The discrete rotation vector of that name, or itself.

    Raises:
        ValueError: the name is unknown.
    """
    if isinstance(name, RotationMap):
        return name
    if name not in ROTATION_MAPS:
        raise ValueError(f"map: expected one of {', '.join(map(repr, ROTATION_MAPS))}, got {name!r}")
    return ROTATION_MAPS[name]
