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
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, Int

from lgsim._compile.xla import control_flow, traced_platform
from lgsim.integrators.coordinates import EXPONENTIAL, Coordinates
from lgsim.integrators.method import Field, Method
from lgsim.integrators.tableau import ButcherTableau
from lgsim.lie.action import Action, Point

Vector = Float[Array, " algebra"]
StageCarry = tuple[Vector, Point, Float[Array, "stages algebra"]]
StageEntry = tuple[Int[Array, ""], Float[Array, ""], Float[Array, " stages"]]


def exact(action: Action, sigma: Vector, k: Vector) -> Vector:
    """``dexpinv_sigma(k)`` of the action in closed form, (action.dim,)."""
    return action.dexpinv(sigma, k)


@dataclass(frozen=True)
class TruncatedDexpinv:
    """The first terms of ``dexpinv_sigma(k) = sum_j B_j/j! ad_sigma^j k``; a method of order p keeps p - 1 commutators.

    Attributes:
        commutators: the largest number of nested brackets, those with a zero Bernoulli number included: 2 gives
            ``k - [sigma, k]/2 + [sigma, [sigma, k]]/12``, enough for order 4.

    Source: Park and Chung 2005, sec. III-D.
    """

    commutators: int

    def __call__(self, action: Action, sigma: Vector, k: Vector) -> Vector:
        """The truncated series at the algebra vectors sigma and k, (action.dim,)."""
        total = term = k
        for weight in _bernoulli_weights(self.commutators):
            term = action.bracket(sigma, term)
            if weight:
                total = total + weight * term
        return total


def munthe_kaas_name(tableau: str, coordinates: Coordinates) -> str:
    """The name of a Munthe-Kaas method with the given tableau name and coordinates."""
    suffix = "" if coordinates == EXPONENTIAL else f", {type(coordinates).__name__} coordinates"
    return f"Munthe-Kaas ({tableau}{suffix})"


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
        correction: dexpinv in closed form (``exact``) or a series (``TruncatedDexpinv``); for exponential coordinates.
        coordinates: exponential ones, or ``Cayley()`` or ``SecondKind()``, which have their own inverse differential.

    Raises:
        ValueError: the tableau has commutators, or a correction is given with other than exponential coordinates.
    """

    tableau: ButcherTableau = eqx.field(static=True)
    correction: Callable[[Action, Vector, Vector], Vector] = eqx.field(static=True, default=exact)
    coordinates: Coordinates = eqx.field(static=True, default=EXPONENTIAL)

    def __check_init__(self) -> None:
        if self.correction is not exact and self.coordinates != EXPONENTIAL:
            raise ValueError(
                f"correction: expected none with {type(self.coordinates).__name__} coordinates, whose inverse "
                "differential is exact"
            )
        if self.tableau.commutators:
            raise ValueError(f"tableau: {self.tableau.name} has commutators of its own; use ReducedMuntheKaas")

    @property
    def name(self) -> str:
        """The name of the method: the family, the tableau, and coordinates that are not exponential."""
        return munthe_kaas_name(self.tableau.name, self.coordinates)

    @property
    def requires(self) -> tuple[str, ...]:
        """The operations that the coordinates need, such as "dexpinv", or "bracket" if dexpinv is a series."""
        return self.coordinates.requires if self.correction is exact else ("bracket",)

    @property
    def by_exponentials(self) -> bool:
        """True if the coordinates are exponential ones."""
        return self.coordinates == EXPONENTIAL

    def check(self, action: Action) -> None:
        """Raise TypeError if the action lacks an operation that the method needs, or these coordinates."""
        super().check(action)
        self.coordinates.check(action)

    def step(
        self, action: Action, field: Field, t: Float[Array, ""], y: Point, dt: Float[Array, ""], args: Any
    ) -> tuple[Point, Vector | None]:
        """The state after a step, and the difference of the algebra vectors of a pair as an error estimate."""
        tableau, dtype, coordinates = self.tableau, dt.dtype, self.coordinates
        correction = coordinates.inverse_differential if self.correction is exact else self.correction
        # a branch in a loop makes a GPU wait for the host at each stage, which takes longer than dexpinv
        skips = traced_platform() == "cpu"
        count = tableau.stages
        # Row i leads from stage i to the next point: the last one is the update.
        rows = jnp.asarray([(*row, *[0.0] * (count - len(row))) for row in (*tableau.a[1:], tableau.b)], dtype)

        def rate(index: Int[Array, ""], sigma: Vector, k: Vector) -> Vector:
            if not skips:
                return correction(action, sigma, k)
            # in the first stage sigma is zero, where the correction is the identity
            return control_flow.cond(index > 0, lambda: correction(action, sigma, k), lambda: k)

        def stage(carry: StageCarry, entry: StageEntry) -> tuple[StageCarry, None]:
            sigma, point, slopes = carry
            index, node, row = entry
            # k_i = dexpinv_sigma(h f(Y_i)), then sigma = sum_j a_ij k_j and Y = exp(sigma) . y_n
            slope = rate(index, sigma, dt * field(t + node * dt, point, args))
            slopes = slopes.at[index].set(slope)
            sigma = jnp.sum(row[:, None] * slopes, axis=0)
            return (sigma, coordinates.move(action, sigma, y), slopes), None

        start = (jnp.zeros(action.dim, dtype), y, jnp.zeros((count, action.dim), dtype))
        (_, y1, slopes), _ = control_flow.scan(stage, start, (jnp.arange(count), jnp.asarray(tableau.c, dtype), rows))
        if tableau.b_embedded is None:
            return y1, None
        gap = [b - e for b, e in zip(tableau.b, tableau.b_embedded, strict=True)]
        return y1, jnp.sum(jnp.asarray(gap, dtype)[:, None] * slopes, axis=0)


class ReducedMuntheKaas(Method):
    """Munthe-Kaas methods that replace dexpinv by a few brackets of stage values, ``k_i = h f(Y_i)``.

    Attributes:
        tableau: the coefficients, including those of the brackets.

    Source: Munthe-Kaas and Owren 1999; Casas and Owren 2003; Celledoni et al. 2021, sec. 2.2.
    """

    tableau: ButcherTableau = eqx.field(static=True)

    @property
    def requires(self) -> tuple[str, ...]:
        """The operation "bracket" if the tableau has commutators, else none beyond ``move``."""
        return ("bracket",) if self.tableau.commutators else ()

    def step(
        self, action: Action, field: Field, t: Float[Array, ""], y: Point, dt: Float[Array, ""], args: Any
    ) -> tuple[Point, None]:
        """The state after a step, without an error estimate."""
        tableau = self.tableau
        slopes: list[Vector] = []
        point = y
        for index, row in enumerate((*tableau.a[1:], tableau.b)):
            slopes.append(dt * field(t + tableau.c[index] * dt, point, args))
            point = action.move(self._combine(action, index + 1, row, slopes), y)
        return point, None

    def _combine(self, action: Action, index: int, row: tuple[float, ...], slopes: list[Vector]) -> Vector:
        """The algebra vector of a row: the weighted stage values and the brackets of that row."""
        terms = [weight * k for weight, k in zip(row, slopes, strict=True) if weight]
        for term in self.tableau.commutators:
            if term.row == index:
                terms.append(term.coefficient * action.bracket(slopes[term.left], slopes[term.right]))
        return sum(terms[1:], terms[0]) if terms else jnp.zeros_like(slopes[0])
