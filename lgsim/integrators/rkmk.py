"""Runge-Kutta-Munthe-Kaas methods: a Runge-Kutta method in the Lie algebra.

``y(t) = exp(sigma(t)) . y_n`` moves with ``sigma' = dexpinv_sigma(f)``, a differential equation in a vector space.
Source: Munthe-Kaas 1999; Park and Chung 2005, eqs. (30)-(32), (41), (42); Celledoni et al. 2021, sec. 2.2.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from lgsim.integrators.coordinates import EXPONENTIAL, Coordinates
from lgsim.integrators.method import Field, Method
from lgsim.integrators.tableau import ButcherTableau
from lgsim.lie.action import Action, Point


def exact(action: Action, sigma: Array, k: Array) -> Array:
    """Dexpinv in closed form."""
    return action.dexpinv(sigma, k)


@dataclass(frozen=True)
class TruncatedDexpinv:
    """The first terms of ``dexpinv_sigma(k) = sum_j B_j/j! ad_sigma^j k``; a method of order p keeps p - 1 commutators.

    ``commutators`` counts nested brackets, those with a zero Bernoulli number included: 2 gives
    ``k - [sigma, k]/2 + [sigma, [sigma, k]]/12``, enough for order 4 (Park and Chung 2005, sec. III-D).
    """

    commutators: int

    def __call__(self, action: Action, sigma: Array, k: Array) -> Array:
        """The truncated series."""
        total = term = k
        for weight in _bernoulli_weights(self.commutators):
            term = action.bracket(sigma, term)
            if weight:
                total = total + weight * term
        return total


@cache
def _bernoulli_weights(count: int) -> tuple[float, ...]:
    """B_j/j! for j = 1 .. count: the Taylor coefficients of z/(e^z - 1), by inverting those of (e^z - 1)/z."""
    weights = [1.0]
    for n in range(1, count + 1):
        weights.append(0.0 if n > 1 and n % 2 else -math.fsum(weights[j] / math.factorial(n - j + 1) for j in range(n)))
    return tuple(weights[1:])


class MuntheKaas(Method):
    """Any explicit Runge-Kutta tableau on a group; the stages are one loop, in which the field is compiled once.

    Attributes:
        tableau: the coefficients.
        correction: dexpinv in closed form (``exact``) or a series (``Truncated``); for exponential coordinates.
        coordinates: exponential ones, or ``Cayley()`` or ``SecondKind()``, which bring their own inverse differential.
    """

    tableau: ButcherTableau = eqx.field(static=True)
    correction: Callable[[Action, Array, Array], Array] = eqx.field(static=True, default=exact)
    coordinates: Coordinates = eqx.field(static=True, default=EXPONENTIAL)

    def __check_init__(self) -> None:
        if self.correction is not exact and self.coordinates != EXPONENTIAL:
            raise ValueError(
                f"correction: expected none with {type(self.coordinates).__name__} coordinates, whose inverse "
                "differential is exact"
            )
        if self.tableau.commutators:
            raise ValueError(f"tableau: {self.tableau.name} has commutators of its own; use FewCommutators")

    @property
    def name(self) -> str:
        """The name of the tableau, as a Munthe-Kaas method."""
        where = "" if self.coordinates == EXPONENTIAL else f", {type(self.coordinates).__name__} coordinates"
        return f"Munthe-Kaas ({self.tableau.name}{where})"

    @property
    def requires(self) -> tuple[str, ...]:
        """What the coordinates need, such as dexpinv, or brackets if it is truncated."""
        return self.coordinates.requires if self.correction is exact else ("bracket",)

    @property
    def by_exponentials(self) -> bool:
        """Whether the coordinates are exponential ones."""
        return self.coordinates == EXPONENTIAL

    def check(self, action: Action) -> None:
        """Raise TypeError if the action lacks a verb that the method needs."""
        super().check(action)
        self.coordinates.check(action)

    def step(
        self, action: Action, field: Field, t: Array, y: Point, dt: Array, args: Any
    ) -> tuple[Point, Array | None]:
        """One step; the error estimate is the difference of the two algebra vectors."""
        tableau, dtype, coordinates = self.tableau, dt.dtype, self.coordinates
        rate = coordinates.inverse_differential if self.correction is exact else self.correction
        count = tableau.stages
        # Row i leads from stage i to the next point: the last one is the update.
        rows = jnp.asarray([(*row, *[0.0] * (count - len(row))) for row in (*tableau.a[1:], tableau.b)], dtype)

        def stage(carry: tuple[Array, Point, Array], now: tuple[Array, Array, Array]) -> tuple[Any, None]:
            sigma, point, slopes = carry
            index, node, row = now
            slope = rate(action, sigma, dt * field(t + node * dt, point, args))
            slopes = slopes.at[index].set(slope)
            sigma = jnp.sum(row[:, None] * slopes, axis=0)
            return (sigma, coordinates.move(action, sigma, y), slopes), None

        start = (jnp.zeros(action.dim, dtype), y, jnp.zeros((count, action.dim), dtype))
        (_, y1, slopes), _ = jax.lax.scan(stage, start, (jnp.arange(count), jnp.asarray(tableau.c, dtype), rows))
        if tableau.b_embedded is None:
            return y1, None
        gap = [b - e for b, e in zip(tableau.b, tableau.b_embedded, strict=True)]
        return y1, jnp.sum(jnp.asarray(gap, dtype)[:, None] * slopes, axis=0)


class ReducedMuntheKaas(Method):
    """Munthe-Kaas methods that replace dexpinv by a few brackets of stage values, ``k_i = h f(Y_i)``.

    Source: Munthe-Kaas and Owren 1999; Casas and Owren 2003; Celledoni et al. 2021, sec. 2.2.
    """

    tableau: ButcherTableau = eqx.field(static=True)

    @property
    def requires(self) -> tuple[str, ...]:
        """Brackets, if the tableau has any."""
        return ("bracket",) if self.tableau.commutators else ()

    def step(
        self, action: Action, field: Field, t: Array, y: Point, dt: Array, args: Any
    ) -> tuple[Point, Array | None]:
        """One step."""
        tableau = self.tableau
        slopes: list[Array] = []
        point = y
        for index, row in enumerate((*tableau.a[1:], tableau.b)):
            slopes.append(dt * field(t + tableau.c[index] * dt, point, args))
            point = action.move(self._combine(action, index + 1, row, slopes), y)
        return point, None

    def _combine(self, action: Action, index: int, row: tuple[float, ...], slopes: list[Array]) -> Array:
        terms = [weight * k for weight, k in zip(row, slopes, strict=True) if weight]
        for term in self.tableau.commutators:
            if term.row == index:
                terms.append(term.coefficient * action.bracket(slopes[term.left], slopes[term.right]))
        return sum(terms[1:], terms[0]) if terms else jnp.zeros_like(slopes[0])
