"""Losses: the cost of a residual, its square or less for outliers."""

from __future__ import annotations

from abc import abstractmethod

import equinox as eqx
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from lgsim._compile.xla import number_field


class Loss(eqx.Module):
    """The loss ``rho(s)`` of the squared residual s in standard deviations; ``rho(s) = s`` near zero."""

    @abstractmethod
    def cost(self, s: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        """The loss rho(s) of squared residuals."""

    @abstractmethod
    def weight(self, s: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        """The slope rho'(s): the weights of the residuals in a Gauss-Newton step."""


class SquaredLoss(Loss):
    """Least squares, ``rho(s) = s``: best for normal noise."""

    def cost(self, s: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        return s

    def weight(self, s: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        return jnp.ones_like(s)


class Huber(Loss):
    """Squares up to a limit c, straight lines beyond: ``rho(s) = 2 c sqrt(s) - c^2`` for ``s > c^2``.

    Attributes:
        limit: The limit c, standard deviations.

    Source: Huber 1964, Robust estimation of a location parameter.
    """

    limit: float = number_field(1.345)

    def cost(self, s: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        far = s > self.limit**2
        return jnp.where(far, 2 * self.limit * jnp.sqrt(jnp.where(far, s, 1)) - self.limit**2, s)

    def weight(self, s: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        far = s > self.limit**2
        return jnp.where(far, self.limit / jnp.sqrt(jnp.where(far, s, 1)), 1)


class Cauchy(Loss):
    """The loss ``rho(s) = c^2 log(1 + s / c^2)``: outliers weigh less the farther they are.

    Attributes:
        scale: The scale c, standard deviations.
    """

    scale: float = number_field(2.385)

    def cost(self, s: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        return self.scale**2 * jnp.log1p(s / self.scale**2)

    def weight(self, s: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        return 1 / (1 + s / self.scale**2)
