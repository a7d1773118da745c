"""Power series with exact rational coefficients, rounded once and evaluated by Horner's rule, plain or compensated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import jax.numpy as jnp
import numpy as np
from jax import Array


@dataclass(frozen=True)
class Polynomial:
    """Coefficients of x^0, x^1, ... in one dtype, and what their rounding left out.

    The first ``compensated`` steps of Horner's rule, counted from x^0, are carried out with their rounding errors.
    """

    values: tuple[float, ...]
    rests: tuple[float, ...]
    compensated: int

    def __call__(self, x: Array) -> Array:
        """The value at x, in the dtype of x."""
        out = jnp.full_like(x, self.values[-1])
        plain = list(zip(self.values, self.rests, strict=True))[:-1]
        for value, rest in reversed(plain[self.compensated :]):
            out = out * x + value if rest == 0 else (out * x + rest) + value
        if self.compensated == 0:
            return out
        low = jnp.zeros_like(x)
        pieces = _split(x)
        for value, rest in reversed(plain[: self.compensated]):
            product, product_error = _two_product(out, x, pieces)
            out, sum_error = _two_sum(product, jnp.full_like(x, value))
            low = low * x + (product_error + sum_error + rest)
        return out + low


@cache
def truncate(terms: Sequence[Fraction], limit: float, dtype: np.dtype, compensate: bool = False) -> Polynomial:
    """The terms that matter on [0, limit], rounded to dtype.

    Compensated are those steps whose terms are larger than the sum: what cancels there must not leave its rounding.
    """
    eps = float(np.finfo(dtype).eps)
    sizes = [abs(float(c)) * limit**j for j, c in enumerate(terms)]
    total = abs(sum(float(c) * limit**j for j, c in enumerate(terms)))
    keep = max(j for j, size in enumerate(sizes) if size > eps / 8 * total) + 1
    values = [float(dtype.type(float(c))) for c in terms[:keep]]
    rests = [float(c - Fraction(v)) for c, v in zip(terms, values, strict=False)]
    large = 1 + max((j for j, size in enumerate(sizes[: keep - 1]) if size > total), default=-1) if compensate else 0
    # Elsewhere only the rounding of the leading coefficient is visible in the result.
    visible = [rest if j < max(large, 1) else 0.0 for j, rest in enumerate(rests)]
    return Polynomial(tuple(values), tuple(visible), large)


def _split(a: Array) -> tuple[Array, Array]:
    """Two halves of a, each with half of its digits (Dekker 1971)."""
    bits = jnp.finfo(a.dtype).nmant // 2 + 2
    scaled = a * (2.0**bits + 1)
    high = scaled - (scaled - a)
    return high, a - high


def _two_product(a: Array, b: Array, pieces: tuple[Array, Array]) -> tuple[Array, Array]:
    """``a b`` and its rounding error, with b split into ``pieces``."""
    (ah, al), (bh, bl) = _split(a), pieces
    product = a * b
    return product, ((ah * bh - product) + ah * bl + al * bh) + al * bl


def _two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """``a + b`` and its rounding error (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)
