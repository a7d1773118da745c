"""Loss functions: least squares and robust losses."""

from __future__ import annotations

from abc import abstractmethod

import equinox as eqx
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from lgsim._compile.xla import number_field


class Loss(eqx.Module):
    """The loss ``rho(s)`` of the squared normalized residual s; ``rho(s) = s`` near zero."""

    @abstractmethod
    def cost(self, s: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        """The loss rho(s) of squared normalized residuals."""

    @abstractmethod
    def weight(self, s: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        """The derivative rho'(s): the weights of the residuals in a Gauss-Newton step."""


class SquaredLoss(Loss):
    """Least squares, ``rho(s) = s``: optimal for normal noise."""

    def cost(self, s: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        return s

    def weight(self, s: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        return jnp.ones_like(s)


class Huber(Loss):
    """Quadratic up to a limit c, linear beyond: ``rho(s) = 2 c sqrt(s) - c^2`` for ``s > c^2``.

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
    """The loss ``rho(s) = c^2 log(1 + s / c^2)``: the weight of an outlier decreases with its distance.

    Attributes:
        scale: The scale c, standard deviations.
    """

    scale: float = number_field(2.385)

    def cost(self, s: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        return self.scale**2 * jnp.log1p(s / self.scale**2)

    def weight(self, s: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        return 1 / (1 + s / self.scale**2)
