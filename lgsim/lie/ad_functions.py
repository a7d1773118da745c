"""Analytic functions of ad on so(3) and se(3): one formula for Ad(exp), dexp, dexpinv and any other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from lgsim._compile.spatial import Mat, Motion, Vec, components, pack
from lgsim._compile.spatial.algebra import Scalar
from lgsim._compile.xla import fusion_barrier
from lgsim.lie.series import dexpinv_coefficient, stumpff
from lgsim.support import check


@dataclass(frozen=True)
class AdFunction:
    """An analytic function phi(z), real on the real axis, in the form needed for phi(ad).

    With ``x = theta^2`` (Celledoni et al. 2021, sec. 2.3):
    ``at_zero = phi(0)``, ``odd(x) = g1 = Im phi(i theta)/theta``,
    ``even(x) = g2 = (phi(0) - Re phi(i theta))/theta^2``.
    ``odd`` and ``even`` act on arrays of any shape and must be differentiable in x at 0; a
    constant ``odd`` is a number.
    """

    at_zero: float
    odd: Callable[[Array], Array] | float
    even: Callable[[Array], Array]

    def coefficients(self, x: Array) -> tuple[Scalar, Array]:
        """(odd, even) at x."""
        return self.odd(x) if callable(self.odd) else self.odd, self.even(x)

    @classmethod
    def from_taylor(cls, coefficients: Sequence[float]) -> AdFunction:
        """phi(z) = sum_j coefficients[j] z^j: a polynomial, or an entire function where its terms are negligible."""
        odd = [(-1) ** j * c for j, c in enumerate(coefficients[1::2])]
        even = [(-1) ** j * c for j, c in enumerate(coefficients[2::2])]
        return cls(float(coefficients[0]), partial(_polynomial, odd), partial(_polynomial, even))


def _polynomial(coefficients: Sequence[float], x: Array) -> Array:
    out = jnp.zeros_like(x)
    for c in reversed(coefficients):
        out = out * x + c
    return out


AD_EXP = AdFunction(1.0, partial(stumpff, k=1), partial(stumpff, k=2))
"""phi(z) = e^z: Ad of exp."""
DEXP = AdFunction(1.0, partial(stumpff, k=2), partial(stumpff, k=3))
"""phi(z) = (e^z - 1)/z: dexp (Park and Chung eq. (16); Celledoni et al. eq. (7))."""
DEXPINV = AdFunction(1.0, -0.5, dexpinv_coefficient)
"""phi(z) = z/(e^z - 1): dexpinv (Park and Chung eq. (17); Celledoni et al. eq. (8))."""
HALF_RESOLVENT = AdFunction(1.0, lambda x: -0.5 / (1 + x / 4), lambda x: 0.25 / (1 + x / 4))
"""phi(z) = 1/(1 + z/2): the inverse of a linearly implicit step's ``1 + ad/2``."""
DEXPINV_OF_LOG = AdFunction(1.0, DEXPINV.odd, partial(dexpinv_coefficient, half_turn=True))
"""dexpinv at a logarithm, whose angle is at most pi."""


def on_rotation(phi: AdFunction, w: Vec, b: Vec) -> Vec:
    """phi(ad_w) b on so(3), by components: ``phi(0) b + g1 w x b + g2 w x (w x b)``."""
    x = w.dot(w)
    odd, even = fusion_barrier(phi.coefficients(x))
    once = w.cross(b)
    return b * phi.at_zero + once * odd + w.cross(once) * even


def on_motion(phi: AdFunction, u: Motion, y: Motion) -> Motion:
    """phi(ad_u) y on se(3), by components: the so(3) formula and its derivative along (v, a)."""
    (v, w), (a, b) = u, y
    x = w.dot(w)
    odd, even, odd_slope, even_slope = _with_slopes(phi, x)
    twice = 2 * w.dot(v)  # dx along v
    m = w.cross(b)
    n = v.cross(b) + w.cross(a)
    angular = b * phi.at_zero + m * odd + w.cross(m) * even
    linear = a * phi.at_zero + n * odd + (v.cross(m) + w.cross(n)) * even
    return Motion(linear + (m * odd_slope + w.cross(m) * even_slope) * twice, angular)


def matrix_on_rotation(phi: AdFunction, w: Vec) -> Mat:
    """The matrix of phi(ad_w) on so(3): ``phi(0) I + g1 [w] + g2 [w]^2``."""
    x = w.dot(w)
    odd, even = fusion_barrier(phi.coefficients(x))
    return polynomial_in_hat(w, phi.at_zero, odd, even)


def matrix_on_motion(phi: AdFunction, u: Motion) -> tuple[Mat, Mat]:
    """The blocks A, B of the matrix ``[[A, B], [0, A]]`` of phi(ad_u) on se(3).

    ``B = g1 [v] + g2 ([v][w] + [w][v]) + 2 (w.v) (g1' [w] + g2' [w]^2)``, the derivative of A along v.
    Source: Park and Chung 2005, Lemma 1, where phi is dexp or dexpinv.
    """
    v, w = u
    odd, even, odd_slope, even_slope = _with_slopes(phi, w.dot(w))
    twice = 2 * w.dot(v)
    b = v * odd + w * (odd_slope * twice)
    along, across = w * (even_slope * twice) + v * even, w * even
    # [v][w] + [w][v] = v w^T + w v^T - 2 (v.w) I and [w]^2 = w w^T - (w.w) I
    diagonal = -(twice * even + twice * even_slope * w.dot(w))
    m = Mat(*(w * a + v * c for a, c in zip(along, across, strict=True)))
    rows = (
        Vec(m.r0.x + diagonal, m.r0.y - b.z, m.r0.z + b.y),
        Vec(m.r1.x + b.z, m.r1.y + diagonal, m.r1.z - b.x),
        Vec(m.r2.x - b.y, m.r2.y + b.x, m.r2.z + diagonal),
    )
    return polynomial_in_hat(w, phi.at_zero, odd, even), Mat(*rows)


def polynomial_in_hat(w: Vec, c0: Scalar, c1: Scalar, c2: Scalar) -> Mat:
    """``c0 I + c1 [w] + c2 [w]^2``."""
    a, b = w * c1, w * c2
    xx, yy, zz = b.x * w.x, b.y * w.y, b.z * w.z
    xy, xz, yz = b.x * w.y, b.x * w.z, b.y * w.z
    return Mat(
        Vec(c0 - (yy + zz), xy - a.z, xz + a.y),
        Vec(xy + a.z, c0 - (xx + zz), yz - a.x),
        Vec(xz - a.y, yz + a.x, c0 - (xx + yy)),
    )


def _with_slopes(phi: AdFunction, x: Scalar) -> tuple[Scalar, Scalar, Scalar, Scalar]:
    one = (jnp.ones_like(x),)
    even, even_slope = jax.jvp(phi.even, (x,), one)
    odd, odd_slope = jax.jvp(phi.odd, (x,), one) if callable(phi.odd) else (phi.odd, 0.0)
    return fusion_barrier((odd, even, odd_slope, even_slope))


def phi_action(phi: AdFunction, u: Float[Array, "*#batch 6"], y: Float[Array, "*#batch 6"]) -> Float[Array, "*batch 6"]:
    """phi(ad_u) y on se(3) for any analytic phi; twists (v, w) in one frame.

    Source: Celledoni et al. 2021, sec. 2.3. Exact in closed form if ``phi`` is; raises like all functions of ``se3``.
    """
    u, y = check.arguments(u=(u, (6,)), y=(y, (6,)))
    twists = (Motion(Vec(*entries[:3]), Vec(*entries[3:])) for entries in (components(u), components(y)))
    v, w = on_motion(phi, *twists)
    return pack((*v, *w), (6,))
