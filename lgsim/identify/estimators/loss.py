"""What a residual costs: squares, or less for outliers."""

from __future__ import annotations

from abc import abstractmethod

import equinox as eqx
import jax.numpy as jnp
from jax import Array


class Loss(eqx.Module):
    """``rho(s)`` of the squared residual s in standard deviations; ``rho(s) = s`` near zero."""

    @abstractmethod
    def cost(self, s: Array) -> Array:
        """rho(s)."""

    @abstractmethod
    def weight(self, s: Array) -> Array:
        """Its slope: the weight of the residual in a Gauss-Newton step."""


class SquaredLoss(Loss):
    """Least squares: best for normal noise."""

    def cost(self, s: Array) -> Array:
        return s

    def weight(self, s: Array) -> Array:
        return jnp.ones_like(s)


class Huber(Loss):
    """Squares up to ``limit`` standard deviations, straight lines beyond.

    Source: Huber 1964, Robust estimation of a location parameter.
    """

    limit: float = 1.345

    def cost(self, s: Array) -> Array:
        far = s > self.limit**2
        return jnp.where(far, 2 * self.limit * jnp.sqrt(jnp.where(far, s, 1)) - self.limit**2, s)

    def weight(self, s: Array) -> Array:
        far = s > self.limit**2
        return jnp.where(far, self.limit / jnp.sqrt(jnp.where(far, s, 1)), 1)


class Cauchy(Loss):
    """``c^2 log(1 + s / c^2)``: outliers weigh less the farther they are.

    Attributes:
        scale: c, standard deviations.
    """

    scale: float = 2.385

    def cost(self, s: Array) -> Array:
        return self.scale**2 * jnp.log1p(s / self.scale**2)

    def weight(self, s: Array) -> Array:
        return 1 / (1 + s / self.scale**2)
