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
    """Coefficients of x^0, x^1, ... in one dtype, and their rounding errors.

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
def economize(terms: tuple[Fraction, ...], limit: float, dtype: np.dtype) -> Polynomial:
    """The polynomial of lowest degree that matches the series on [0, limit] to an eighth of a rounding unit of dtype.

    The series in Chebyshev polynomials of the interval, truncated and converted to powers (Lanczos 1938); it has about
    half the terms of the Taylor polynomial.
    """
    scaled = [_fixed(c * Fraction(limit) ** j) for j, c in enumerate(terms)]
    in_t: list[int] = [0]
    for a in reversed(scaled):  # powers of s = x/limit, s = (1 + t)/2
        in_t = [(p + q) >> 1 for p, q in zip([*in_t, 0], [0, *in_t], strict=True)]
        in_t[0] += a
    chebyshev: list[int] = [0]
    for b in reversed(in_t):  # t T_0 = T_1, t T_k = (T_{k-1} + T_{k+1})/2
        shifted = [0] * (len(chebyshev) + 1)
        for k, c in enumerate(chebyshev):
            shifted[k + 1] += c if k == 0 else c >> 1
            if k > 0:
                shifted[k - 1] += c >> 1
        chebyshev = shifted
        chebyshev[0] += b
    smallest = min(abs(scaled[0]), abs(sum(scaled)))
    allowed = int(smallest * float(np.finfo(dtype).eps) / 8)
    keep = len(chebyshev)
    while keep > 1 and sum(map(abs, chebyshev[keep - 1 :])) < allowed:
        keep -= 1
    powers, basis, following = [0] * keep, [1], [-1, 2]  # shifted Chebyshev polynomials in s
    for c in chebyshev[:keep]:
        for k, b in enumerate(basis):
            powers[k] += c * b
        doubled = [4 * p - 2 * q for p, q in zip([0, *following], [*following, 0], strict=True)]
        basis, following = following, [a - b for a, b in zip(doubled, [*basis, 0, 0], strict=False)]
    return _rounded([Fraction(p, _ONE) / Fraction(limit) ** k for k, p in enumerate(powers)], dtype, 0)


@cache
def compensate(terms: tuple[Fraction, ...], limit: float, dtype: np.dtype) -> Polynomial:
    """The Taylor polynomial on [0, limit], compensated in the steps whose terms are larger than the sum.

    This removes the rounding errors of terms that cancel.
    """
    sizes = [abs(float(c)) * limit**j for j, c in enumerate(terms)]
    total = abs(sum(float(c) * limit**j for j, c in enumerate(terms)))
    keep = max(j for j, size in enumerate(sizes) if size > float(np.finfo(dtype).eps) / 8 * total) + 1
    return _rounded(terms[:keep], dtype, 1 + max(j for j, size in enumerate(sizes[: keep - 1]) if size > total))


_ONE = 1 << 256  # fixed point with 256 binary digits: conversions between bases lose about 30 of them


def _fixed(value: Fraction) -> int:
    return value.numerator * _ONE // value.denominator


def _rounded(terms: Sequence[Fraction], dtype: np.dtype, compensated: int) -> Polynomial:
    values = [float(dtype.type(float(c))) for c in terms]
    rests = [float(c - Fraction(v)) for c, v in zip(terms, values, strict=True)]
    # Beyond the compensated steps only the rounding of the leading coefficient is visible in the result.
    visible = [rest if j < max(compensated, 1) else 0.0 for j, rest in enumerate(rests)]
    return Polynomial(tuple(values), tuple(visible), compensated)


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
