"""The scalar functions of ``x = theta^2`` in exp, log, dexp and dexpinv: the package's only small-angle branch.

Two families, each closed under differentiation, so that every derivative of every map stays in this file:

- Stumpff functions ``c_k(x) = sum_j (-x)^j / (2j + k)!``: cos t, sin t / t, (1 - cos t)/t^2, (t - sin t)/t^3, ...
  with ``x = t^2`` (Stiefel and Scheifele, Linear and Regular Celestial Mechanics, 1971, sec. 11);
- ``d(x) = (1 - (t/2) cot(t/2)) / t^2``, the quadratic coefficient of dexpinv (Park and Chung 2005, eq. (19)).

They are functions of x and not of t: even, hence smooth at zero, unlike a square root. Below a switch a function is
evaluated by its power series, above it in closed form; the switch lies where both are accurate. Derivatives suffer from
cancellation in either form over a wide range of angles, so their series are compensated and used up to theta = 2 pi.
``d`` loses digits in closed form up to theta = 3, so its nearest pole is split off and the rest is one series up to it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lgsim._compile.spatial.algebra import sincos
from lgsim._compile.xla.compilation import traced_once
from lgsim._compile.xla.named_calls import named
from lgsim.lie.polynomial import Polynomial, compensate, economize

_PI = Fraction(
    "3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534211706798"
)
_POLE = 4 * _PI * _PI  # theta = 2 pi
_POLE_SWITCH = 40.0  # just beyond the pole: the distance to it is computed without rounding
_HALF_TURN = 9.9  # a little more than pi^2, the largest square of the angle of a logarithm
_VALUE_SWITCH = 8.5  # c_3: the terms of the series double the value here, those of the closed form do not reach it
_SLOPE_SWITCH = 42.0  # derivatives: slightly beyond theta = 2 pi, where their closed forms stop cancelling


def stumpff(x: Array, k: int, order: int = 0) -> Array:
    """The ``order``-th derivative in x of ``c_k(x) = sum_j (-x)^j / (2j + k)!``, k = 0 .. 3, for x >= 0 of any shape.

    Differentiable any number of times. Up to theta = 2 pi within 4 ulp of max(|c|, |x c'|) for order <= 3.
    """
    return stumpffs(x, ((k, order),))[0]


def stumpffs(x: Array, kinds: tuple[tuple[int, int], ...]) -> tuple[Array, ...]:
    """Several Stumpff functions of one argument, ``kinds = ((k, order), ...)``; they share the sine and the cosine.

    Raises:
        ValueError: k is not 0, 1, 2 or 3.
    """
    if any(k not in range(4) for k, _ in kinds):
        raise ValueError(f"kinds: expected pairs (k, order) with k = 0, 1, 2 or 3, got {kinds}")
    return _stumpffs(tuple(kinds))(x)


@cache
def _stumpffs(kinds: tuple[tuple[int, int], ...]) -> Callable[[Array], tuple[Array, ...]]:
    @jax.custom_jvp
    @named(f"stumpffs{kinds}")
    @traced_once
    def values(x: Array) -> tuple[Array, ...]:
        half = 0.5 * jnp.sqrt(x)
        zero = half == 0
        half = jnp.where(zero, 1, half)
        sine, cosine = sincos(half)
        sinc_half = jnp.where(zero, 1, sine / half)
        versine, sinc = 2 * sine * sine, sinc_half * jnp.where(zero, 1, cosine)
        # Near 1 the cosine must round without bias, to keep quaternions on the sphere; near 0 it must not cancel.
        difference = (cosine - sine) * (cosine + sine)
        direct = {
            (0, 0): jnp.where(zero, 1, jnp.where(x < 1, 1 - versine, difference)),
            (1, 0): sinc,
            (2, 0): 0.5 * sinc_half * sinc_half,
        }
        return tuple(direct[kind] if kind in direct else _branches(x, kind, versine, sinc) for kind in kinds)

    @values.defjvp
    def _(primals: tuple[Array], tangents: tuple[Array]) -> tuple:
        raised = tuple((k, order + 1) for k, order in kinds)
        found = _stumpffs(kinds + raised)(primals[0])
        return found[: len(kinds)], tuple(slope * tangents[0] for slope in found[len(kinds) :])

    return values


def _branches(x: Array, kind: tuple[int, int], versine: Array, sinc: Array) -> Array:
    switch = _switch(kind[1])
    below = x < switch
    polynomial = (compensate if kind[1] else economize)(stumpff_terms(*kind), switch, x.dtype)
    series = polynomial(jnp.where(below, x, 0))
    far = jnp.where(below, switch, x)
    inverse = 1 / far
    parts = closed_form(*kind)
    top = max(max(part) for part in parts if part)
    closed = jnp.zeros_like(x)
    for part, factor in zip(parts, (1.0, versine, sinc), strict=True):
        if part:
            terms = tuple(float(part.get(p, Fraction(0))) for p in range(top, min(part) - 1, -1))
            closed = closed + Polynomial(terms, (0.0,) * len(terms), 0)(inverse) * factor
    return jnp.where(below, series, closed * inverse ** (-top))


@cache
def stumpff_terms(k: int, order: int, count: int = 60) -> tuple[Fraction, ...]:
    """The exact power series of the ``order``-th derivative of c_k."""
    return tuple(
        Fraction((-1) ** (j + order) * math.perm(j + order, order), math.factorial(2 * (j + order) + k))
        for j in range(count)
    )


@cache
def closed_form(k: int, order: int) -> tuple[dict[int, Fraction], ...]:
    """The exact closed form: three Laurent polynomials in x (power -> coefficient) times (1, 1 - cos t, sin t / t)."""
    if order > 0:
        one, versine, sinc = (_derivative(part) for part in closed_form(k, order - 1))
        _, by_versine, by_sinc = closed_form(k, order - 1)
        for p, a in by_versine.items():  # d(1 - cos t)/dx = (sin t / t)/2
            _add(sinc, p, a / 2)
        for p, a in by_sinc.items():  # d(sin t / t)/dx = (cos t - sin t / t)/(2x)
            _add(one, p - 1, a / 2)
            _add(versine, p - 1, -a / 2)
            _add(sinc, p - 1, -a / 2)
        return one, versine, sinc
    if k == 0:
        return {0: Fraction(1)}, {0: Fraction(-1)}, {}
    if k == 1:
        return {}, {}, {0: Fraction(1)}
    if k == 2:
        return {}, {-1: Fraction(1)}, {}
    return {-1: Fraction(1)}, {}, {-1: Fraction(-1)}


def _derivative(part: dict[int, Fraction]) -> dict[int, Fraction]:
    return {p - 1: p * a for p, a in part.items() if p != 0}


def _add(part: dict[int, Fraction], power: int, value: Fraction) -> None:
    total = part.get(power, Fraction(0)) + value
    part.pop(power, None)
    if total:
        part[power] = total


def _switch(order: int) -> float:
    return _VALUE_SWITCH if order == 0 else _SLOPE_SWITCH


def switches(dtype: jnp.dtype) -> dict[str, tuple[float, ...]]:
    """The switches between branches, in x rounded to dtype, for tests: ``stumpff`` (k = 3, derivatives) and ``d``."""
    round_to = np.dtype(dtype).type
    places = {"stumpff": (_VALUE_SWITCH, _SLOPE_SWITCH), "dexpinv_coefficient": (_POLE_SWITCH,)}
    return {name: tuple(float(round_to(x)) for x in values) for name, values in places.items()}


def dexpinv_coefficient(x: Array, order: int = 0, half_turn: bool = False) -> Array:
    """The ``order``-th derivative in x of ``d(x) = (1 - (t/2) cot(t/2))/t^2``, x = t^2 >= 0 of any shape.

    ``d = 2 sum_n 1/(4 pi^2 n^2 - x)``; singular where t is a multiple of 2 pi. Within 4 ulp of max(|d|, |x d'|).
    ``half_turn`` promises t <= pi, which saves work. Source: Park and Chung 2005, eq. (19).
    """
    return _dexpinv_coefficient(order, half_turn)(x)


@cache
def _dexpinv_coefficient(order: int, half_turn: bool) -> Callable[[Array], Array]:
    @jax.custom_jvp
    @named(f"dexpinv_coefficient({order},)")
    @traced_once
    def value(x: Array) -> Array:
        if half_turn:
            return _beside_pole(x, order, _HALF_TURN)
        below = x < _POLE_SWITCH
        return jnp.where(
            below,
            _beside_pole(jnp.where(below, x, 0), order, _POLE_SWITCH),
            _beyond_pole(jnp.where(below, _POLE_SWITCH, x), order),
        )

    @value.defjvp
    def _(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
        (x,), (dx,) = primals, tangents
        return value(x), _dexpinv_coefficient(order + 1, half_turn)(x) * dx

    return value


def _beside_pole(x: Array, order: int, limit: float) -> Array:
    """The pole at theta = 2 pi and the series of the rest, on [0, limit]."""
    pole = np.dtype(x.dtype).type(float(_POLE))
    distance = pole - x
    power = distance
    for _ in range(order):
        power = power * distance
    nearest = 2 * math.factorial(order) / power
    regular = economize(_regular_terms(order), limit, x.dtype)(x)
    if order:  # a power of the distance needs the rounding error of the subtraction
        lost = ((pole - distance) - x) + float(_POLE - Fraction(float(pole)))
        regular = regular - (order + 1) * nearest * (lost / distance)
    return nearest + regular


def _beyond_pole(x: Array, order: int) -> Array:
    """The closed form and its derivatives, from ``2 x d' = 1/4 - 3 d + x d^2`` differentiated m times."""
    half = 0.5 * jnp.sqrt(x)
    sine, cosine = sincos(half)
    d = [(1 - half * cosine / sine) / x]
    for m in range(order):
        total = -(3 + 2 * m) * d[m] + (0.25 if m == 0 else 0)
        for j in range(m + 1):
            total = total + math.comb(m, j) * x * d[j] * d[m - j]
        for j in range(m):
            total = total + m * math.comb(m - 1, j) * d[j] * d[m - 1 - j]
        d.append(total / (2 * x))
    return d[order]


@cache
def _regular_terms(order: int, count: int = 60) -> tuple[Fraction, ...]:
    """Power series of d without its pole at theta = 2 pi: ``|B_2j+2|/(2j+2)! - 2/(4 pi^2)^(j+1)``, differentiated."""
    bernoulli = _bernoulli(2 * (count + order))
    return tuple(
        math.perm(j, order) * (abs(bernoulli[2 * j + 2]) / math.factorial(2 * j + 2) - 2 / _POLE ** (j + 1))
        for j in range(order, order + count)
    )


def dexpinv_terms(order: int) -> Fraction:
    """The exact ``order``-th derivative of d at zero: ``|B_2j+2|/(2j+2)! j!`` for j = order."""
    number = abs(_bernoulli(2 * order + 2)[2 * order + 2])
    return math.factorial(order) * number / math.factorial(2 * order + 2)


@cache
def _bernoulli(count: int) -> tuple[Fraction, ...]:
    numbers = [Fraction(1)]
    for m in range(1, count + 1):
        numbers.append(-sum((math.comb(m + 1, j) * numbers[j] for j in range(m)), Fraction(0)) / (m + 1))
    return tuple(numbers)


def angle_over_sine(square: Array, cosine: Array) -> Array:
    """``2 atan2(n, c)/n`` for ``square = n^2 >= 0``, ``c >= 0``: the factor from a quaternion's vector part to its log.

    Invariant under a common scale of the quaternion and of (n, c); NaN for the zero quaternion. Its derivative is never
    used: the logarithms define their own, dexpinv.
    """
    n = jnp.sqrt(square)
    small, large = n < _TAN_EIGHTH * cosine, _TAN_EIGHTH * n > cosine
    top = jnp.where(small, n, jnp.where(large, -cosine, n - cosine))
    bottom = jnp.where(small, cosine, jnp.where(large, n, n + cosine))
    quarter = jnp.asarray(math.pi / 4, square.dtype)
    offset = jnp.where(large, 2 * quarter, quarter)
    z = top / bottom
    arc = economize(_ATAN, _TAN_EIGHTH**2, square.dtype)(z * z)
    return 2 * jnp.where(small, arc, offset + z * arc) / jnp.where(small, cosine, n)


_TAN_EIGHTH = math.tan(math.pi / 8)
_ATAN = tuple(Fraction((-1) ** j, 2 * j + 1) for j in range(60))
