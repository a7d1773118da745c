"""Implicit Munthe-Kaas methods, symmetric in time: Gauss collocation in coordinates centred on the step.

Source: Hairer, Lubich, Wanner, Geometric Numerical Integration, II.1.3, V.4; Zanna, Engo, Munthe-Kaas 2001, Adjoint and
selfadjoint Lie-group methods (coordinates about the middle make a method its own adjoint).
"""

from __future__ import annotations

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from lgsim.integrators.coordinates import EXPONENTIAL, Coordinates
from lgsim.integrators.method import Field, ImplicitMethod
from lgsim.integrators.newton import Newton
from lgsim.integrators.tableau import ImplicitTableau
from lgsim.lie.action import Action, Point

# Hairer, Norsett, Wanner, Solving ODEs I, tables II.7.3 and II.7.4.

_3, _15 = math.sqrt(3), math.sqrt(15)

GAUSS2_TABLEAU = ImplicitTableau("Gauss 2", a=((1 / 2,),), b=(1.0,), c=(1 / 2,), order=2)

GAUSS4_TABLEAU = ImplicitTableau(
    "Gauss 4",
    a=((1 / 4, 1 / 4 - _3 / 6), (1 / 4 + _3 / 6, 1 / 4)),
    b=(1 / 2, 1 / 2),
    c=(1 / 2 - _3 / 6, 1 / 2 + _3 / 6),
    order=4,
)

GAUSS6_TABLEAU = ImplicitTableau(
    "Gauss 6",
    a=(
        (5 / 36, 2 / 9 - _15 / 15, 5 / 36 - _15 / 30),
        (5 / 36 + _15 / 24, 2 / 9, 5 / 36 - _15 / 24),
        (5 / 36 + _15 / 30, 2 / 9 + _15 / 15, 5 / 36),
    ),
    b=(5 / 18, 4 / 9, 5 / 18),
    c=(1 / 2 - _15 / 10, 1 / 2, 1 / 2 + _15 / 10),
    order=6,
)


class ImplicitMuntheKaas(ImplicitMethod):
    """An implicit Runge-Kutta method in coordinates about the middle of the step, ``y(t) = exp(sigma(t)) . y_mid``.

    With ``total = sum_j b_j k_j``, ``y_mid = exp(total/2) . y_n`` and ``y_(n+1) = exp(total) . y_n``, the s equations

        k_i = dexpinv_(sigma_i) (h f(t_n + c_i h, exp(sigma_i) . y_mid)),    sigma_i = sum_j (a_ij - b_j/2) k_j,

    are solved together by Newton's method, from k = 0. A symmetric tableau gives a method that is its own adjoint: a
    step back undoes a step to rounding, and reversible motions keep their energies without drift. Gauss methods are
    A-stable, so stiff dampers and springs do not bound dt.

    Attributes:
        tableau: the coefficients.
        newton: how the equations are solved.
        coordinates: exponential ones or ``Cayley()``: phi(-u) must undo phi(u), as it does not for the second kind.
    """

    tableau: ImplicitTableau = eqx.field(static=True)
    newton: Newton = eqx.field(static=True, default=Newton())
    coordinates: Coordinates = eqx.field(static=True, default=EXPONENTIAL)

    def __check_init__(self) -> None:
        if not self.coordinates.odd:
            raise ValueError(
                f"coordinates: expected a map with phi(-u) phi(u) = 1, got {type(self.coordinates).__name__}; take "
                "Exponential() or Cayley()"
            )

    @property
    def name(self) -> str:
        """The name of the tableau, as a Munthe-Kaas method."""
        where = "" if self.coordinates == EXPONENTIAL else f", {type(self.coordinates).__name__} coordinates"
        return f"Munthe-Kaas ({self.tableau.name}{where})"

    @property
    def requires(self) -> tuple[str, ...]:
        """What the coordinates need, such as dexpinv."""
        return self.coordinates.requires

    def check(self, action: Action) -> None:
        """Raise TypeError if the action lacks a verb that the method needs."""
        super().check(action)
        self.coordinates.check(action)

    def monitored_step(
        self, action: Action, field: Field, t: Array, y: Point, dt: Array, args: Any
    ) -> tuple[Point, None, Array]:
        """One step and its residual."""
        tableau, coordinates, shape = self.tableau, self.coordinates, (self.tableau.stages, action.dim)
        b, c = (jnp.asarray(part, dt.dtype) for part in (tableau.b, tableau.c))
        centred = jnp.asarray([[w - v / 2 for w, v in zip(row, tableau.b, strict=True)] for row in tableau.a], dt.dtype)

        def residual(unknown: Array) -> Array:
            k = unknown.reshape(shape)
            middle = coordinates.move(action, _weighted(b, k) / 2, y)

            def stage(row: Array, node: Array) -> Array:
                sigma = _weighted(row, k)
                xi = dt * field(t + node * dt, coordinates.move(action, sigma, middle), args)
                return coordinates.inverse_differential(action, sigma, xi)

            return unknown - jax.vmap(stage)(centred, c).ravel()

        root, gap = self.newton.solve(residual, jnp.zeros(shape, dt.dtype).ravel(), y)
        half = _weighted(b, root.reshape(shape)) / 2
        return coordinates.move(action, half, coordinates.move(action, half, y)), None, gap


def _weighted(weights: Array, k: Array) -> Array:
    return jnp.sum(weights[:, None] * k, axis=0)
