"""Analytic functions of ad on so(3) and se(3): one formula for Ad(exp), dexp, dexpinv and any other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from lgsim.lie.series import dexpinv_coefficient, stumpff
from lgsim.spatial import Motion, Vec, check, pack, unpack


@dataclass(frozen=True)
class AdFunction:
    """An analytic function phi(z), real on the real axis, in the form that phi(ad) needs.

    With ``x = theta^2`` (Celledoni et al. 2021, sec. 2.3):
    ``at_zero = phi(0)``, ``odd(x) = g1 = Im phi(i theta)/theta``,
    ``even(x) = g2 = (phi(0) - Re phi(i theta))/theta^2``.
    ``odd`` and ``even`` act on arrays of any shape and must be differentiable in x at 0.
    """

    at_zero: float
    odd: Callable[[Array], Array]
    even: Callable[[Array], Array]

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
DEXPINV = AdFunction(1.0, partial(jnp.full_like, fill_value=-0.5), dexpinv_coefficient)
"""phi(z) = z/(e^z - 1): dexpinv (Park and Chung eq. (17); Celledoni et al. eq. (8))."""


def on_rotation(phi: AdFunction, w: Vec, b: Vec) -> Vec:
    """phi(ad_w) b on so(3), by components: ``phi(0) b + g1 w x b + g2 w x (w x b)``."""
    x = w.dot(w)
    once = w.cross(b)
    return b * phi.at_zero + once * phi.odd(x) + w.cross(once) * phi.even(x)


def on_motion(phi: AdFunction, u: Motion, y: Motion) -> Motion:
    """phi(ad_u) y on se(3), by components: the so(3) formula and its derivative along (v, a)."""
    (v, w), (a, b) = u, y
    x = w.dot(w)
    (odd, even), (odd_slope, even_slope) = jax.jvp(lambda x: (phi.odd(x), phi.even(x)), (x,), (jnp.ones_like(x),))
    twice = 2 * w.dot(v)  # dx along v
    m = w.cross(b)
    n = v.cross(b) + w.cross(a)
    angular = b * phi.at_zero + m * odd + w.cross(m) * even
    linear = a * phi.at_zero + n * odd + (v.cross(m) + w.cross(n)) * even
    return Motion(linear + (m * odd_slope + w.cross(m) * even_slope) * twice, angular)


def phi_action(phi: AdFunction, u: Float[Array, "*#batch 6"], y: Float[Array, "*#batch 6"]) -> Float[Array, "*batch 6"]:
    """phi(ad_u) y on se(3) for any analytic phi; twists (v, w) in one frame.

    Source: Celledoni et al. 2021, sec. 2.3. Exact in closed form if ``phi`` is; raises like all functions of ``se3``.
    """
    u, y = check.arguments(u=(u, (6,)), y=(y, (6,)))
    v, w = on_motion(phi, Motion(unpack(u), unpack(u, 3)), Motion(unpack(y), unpack(y, 3)))
    return pack((*v, *w), (6,))
