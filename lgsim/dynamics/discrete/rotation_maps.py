"""Discrete rotation vectors: what stands for ``h w`` in the kinetic energy of a body that turns by E in a step h.

With the unit quaternion (s, x) of E, s >= 0, the rotational part of the discrete Lagrangian is ``phi . I phi / (2 h)``,
and a body that turns at constant rate has ``phi = h w`` up to third order in the angle.

Which one: all are of order 2 and take the same iterations. On ten machines in free motion at rates of robots (arms, a
hand, a quadruped, a humanoid, rods on ball joints, a satellite; ``benchmarks/variational.py``) the positions after 1 s
have errors of 0.88 times ("cayley", 0.5 to 1.8) and of 0.77 times ("exp", 0.13 to 1.0) those of "quaternion" in the
geometric mean, energy errors are of the same size. "quaternion" is the default: it is the cheapest ("exp" costs a
tenth more, and on a humanoid four times as much, since its program is too long for LLVM), and the one that keeps the
energy of free bodies exactly; it has no step for a body that would turn by a radian in it. Take "exp" where bodies turn
by more than some 0.2 rad a step: of arms that whirl at 100 rad/s its energy errors are 2 to 5 times smaller. Take
"cayley" where nothing else has a step.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp

from lgsim.lie import so3_components
from lgsim.lie.ad_functions import DEXPINV_OF_LOG, matrix_on_rotation, polynomial_in_hat
from lgsim.lie.series import dexpinv_coefficient
from lgsim.spatial import Mat, Vec
from lgsim.spatial.algebra import Scalar
from lgsim.xla import fusion_barrier


def hat(a: Vec) -> Mat:
    """The cross-product matrix of a."""
    zero = jnp.zeros_like(a.x)
    return Mat(Vec(zero, -a.z, a.y), Vec(a.z, zero, -a.x), Vec(-a.y, a.x, zero))


def outer(a: Vec, b: Vec) -> Mat:
    """``a b^T``."""
    return Mat(b * a.x, b * a.y, b * a.z)


def scaled_identity(s: Scalar) -> Mat:
    """``s 1``."""
    zero = jnp.zeros_like(s)
    return Mat(Vec(s, zero, zero), Vec(zero, s, zero), Vec(zero, zero, s))


@dataclass(frozen=True)
class RotationMap:
    """A discrete rotation vector, with what the discrete momentum takes of it.

    Attributes:
        name: Its name.
        vector: ``vector(s, x)``, the discrete rotation vector phi (rad) of a unit quaternion.
        change: ``change(s, phi)``, the matrix K of ``dphi = K psi``, psi being a rotation that follows that of the
            step, in fixed axes.
        pull_slope: ``pull_slope(phi, y)``, the matrix of ``dphi -> d(K^T y)`` at fixed y less the part of s; with
            ``scalar``, that part is ``y ds``.
        scalar: Whether K has s on its diagonal, which changes with the rotation by ``ds = -x . psi / 2``.
        least: The scalar part s of a body's rotation from which on down a smaller turn has the same momentum.
    """

    name: str
    vector: Callable[[Scalar, Vec], Vec]
    change: Callable[[Scalar, Vec], Mat]
    pull_slope: Callable[[Vec, Vec], Mat]
    scalar: bool = False
    least: float = 0.0

    def __repr__(self) -> str:
        """The name."""
        return self.name

    def spin(self, s: Scalar, phi: Vec, inertia: Mat) -> Vec:
        """H times the angular momentum about the center of mass, ``K^T I phi``, I in the axes of the frame."""
        return self.change(s, phi).transpose_apply(inertia @ phi)

    def spin_slope(self, s: Scalar, phi: Vec, inertia: Mat) -> Mat:
        """The derivative of ``spin`` by a rotation psi that follows that of the step, the inertia held."""
        y = inertia @ phi
        K = fusion_barrier(self.change(s, phi))
        slope = (K.T @ inertia + self.pull_slope(phi, y)) @ K
        return slope - outer(y, phi) * 0.25 if self.scalar else slope


def _exponential_slope(phi: Vec, y: Vec) -> Mat:
    # K^T y = y + phi x y/2 + d (phi (phi . y) - phi^2 y), d of phi^2
    square = phi.dot(phi)
    even, even_slope = fusion_barrier(tuple(dexpinv_coefficient(square, order, True) for order in (0, 1)))
    along = phi.dot(y)
    turned = phi * along - y * square
    twice = outer(phi, y) - outer(y, phi) * 2
    return (scaled_identity(along) + twice) * even + outer(turned, phi) * (2 * even_slope) - hat(y) * 0.5


def _exponential_change(s: Any, phi: Vec) -> Mat:
    del s
    return matrix_on_rotation(DEXPINV_OF_LOG, phi)


QUATERNION = RotationMap(
    "quaternion",
    lambda s, x: x * 2,
    lambda s, phi: polynomial_in_hat(phi, s, -0.5, 0 * s),
    lambda phi, y: hat(y) * -0.5,
    scalar=True,
    least=math.sqrt(0.5),
)
"""``phi = 2 x``: the discrete rigid body of Moser and Veselov, and RATTLE on all mass points of a body; a free body
keeps its energy. About a principal axis of moment I a step has the angular momentum ``I sin(angle) / h``: none has more
than about I / h, and of the two that have less the one below a quarter of a turn is that of the motion."""

CAYLEY = RotationMap(
    "cayley",
    lambda s, x: x * (2 / s),
    lambda s, phi: polynomial_in_hat(phi, 1 + 0.25 * phi.dot(phi), -0.5, jnp.full_like(phi.x, 0.25)),
    lambda phi, y: scaled_identity(0.25 * phi.dot(y)) + outer(phi, y) * 0.25 - hat(y) * 0.5,
)
"""``phi = 2 x / s``, the inverse of the Cayley map: any momentum has a step."""

EXPONENTIAL = RotationMap(
    "exp",
    lambda s, x: so3_components.quaternion_log((s, x)),
    _exponential_change,
    _exponential_slope,
)
"""``phi = log``, the rotation vector itself."""

ROTATION_MAPS = {each.name: each for each in (QUATERNION, CAYLEY, EXPONENTIAL)}
"""All discrete rotation vectors by name."""


def rotation_map(name: str | RotationMap) -> RotationMap:
    """The discrete rotation vector of that name, or itself.

    Raises:
        ValueError: there is none of that name.
    """
    if isinstance(name, RotationMap):
        return name
    if name not in ROTATION_MAPS:
        raise ValueError(f"map: expected one of {', '.join(map(repr, ROTATION_MAPS))}, got {name!r}")
    return ROTATION_MAPS[name]
