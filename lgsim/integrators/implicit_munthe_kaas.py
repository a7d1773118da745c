"""Implicit Munthe-Kaas methods, symmetric in time: Gauss collocation in coordinates centered on the step.

Source: Hairer, Lubich, Wanner, Geometric Numerical Integration, II.1.3, V.4; Zanna, Engo, Munthe-Kaas 2001, Adjoint and
selfadjoint Lie-group methods (coordinates about the middle make a method its own adjoint).
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from lgsim.integrators.coordinates import EXPONENTIAL, Coordinates
from lgsim.integrators.method import Field, ImplicitMethod
from lgsim.integrators.munthe_kaas import munthe_kaas_name
from lgsim.integrators.newton import Newton
from lgsim.integrators.tableau import ImplicitTableau
from lgsim.lie.action import Action, Point


class ImplicitMuntheKaas(ImplicitMethod):
    """An implicit Runge-Kutta method in coordinates about the midpoint of the step, ``y(t) = exp(sigma(t)) . y_mid``.

    With ``total = sum_j b_j k_j``, ``y_mid = exp(total/2) . y_n`` and ``y_(n+1) = exp(total) . y_n``, the s equations

        k_i = dexpinv_(sigma_i) (h f(t_n + c_i h, exp(sigma_i) . y_mid)),    sigma_i = sum_j (a_ij - b_j/2) k_j,

    are solved together by Newton's method, from k = 0. A symmetric tableau gives a self-adjoint method: a step
    backwards inverts a step to rounding, and the energies of reversible motions do not drift. Gauss methods are
    A-stable, so that stiff dampers and springs do not bound dt.

    Attributes:
        coordinates: exponential ones or ``Cayley()``: phi(-u) must invert phi(u), unlike in the second kind.

    Raises:
        ValueError: phi(-u) is not the inverse of phi(u) in the coordinates.
    """

    tableau: ImplicitTableau = eqx.field(static=True)
    newton: Newton = Newton()
    coordinates: Coordinates = eqx.field(static=True, default=EXPONENTIAL)

    def __check_init__(self) -> None:
        if not self.coordinates.odd:
            raise ValueError(
                f"coordinates: expected a map with phi(-u) phi(u) = 1, got {type(self.coordinates).__name__}; take "
                "Exponential() or Cayley()"
            )

    @property
    def name(self) -> str:
        """The name of the method: the family, the tableau, and coordinates that are not exponential."""
        return munthe_kaas_name(self.tableau.name, self.coordinates)

    @property
    def requires(self) -> tuple[str, ...]:
        """The operations that the coordinates need, such as "dexpinv"."""
        return self.coordinates.requires

    def check(self, action: Action) -> None:
        """Raise TypeError if the action lacks an operation that the method needs, or these coordinates."""
        super().check(action)
        self.coordinates.check(action)

    def monitored_step(
        self, action: Action, field: Field, t: Float[Array, ""], y: Point, dt: Float[Array, ""], args: Any
    ) -> tuple[Point, None, Float[Array, ""]]:
        """(state after a step, no error estimate, relative residual () of the stage equations)."""
        tableau, coordinates, shape = self.tableau, self.coordinates, (self.tableau.stages, action.dim)
        b, c = (jnp.asarray(part, dt.dtype) for part in (tableau.b, tableau.c))
        centered = jnp.asarray(
            [[w - v / 2 for w, v in zip(row, tableau.b, strict=True)] for row in tableau.a], dt.dtype
        )

        def residual(unknown: Float[Array, " n"]) -> Float[Array, " n"]:
            k = unknown.reshape(shape)
            middle = coordinates.move(action, _weighted(b, k) / 2, y)

            def stage(row: Float[Array, " stages"], node: Float[Array, ""]) -> Float[Array, " algebra"]:
                sigma = _weighted(row, k)
                xi = dt * field(t + node * dt, coordinates.move(action, sigma, middle), args)
                return coordinates.inverse_differential(action, sigma, xi)

            return unknown - jax.vmap(stage)(centered, c).ravel()

        # the stage equations from k = 0
        root, gap = self.newton.solve(residual, jnp.zeros(shape, dt.dtype).ravel(), y)
        # y_(n+1) = phi(total/2) . y_mid with y_mid = phi(total/2) . y_n
        half = _weighted(b, root.reshape(shape)) / 2
        return coordinates.move(action, half, coordinates.move(action, half, y)), None, gap


def _weighted(weights: Float[Array, " stages"], k: Float[Array, "stages algebra"]) -> Float[Array, " algebra"]:
    """The weighted sum of the stage values, ``sum_j weights_j k_j``."""
    return jnp.sum(weights[:, None] * k, axis=0)
