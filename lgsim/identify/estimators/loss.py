"""Loss functions: least squares and robust losses."""

from __future__ import annotations

from abc import abstractmethod

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from lgsim._compile.xla import number_field

_NORMAL_QUARTILE = 0.6744897501960817
"""The median of the absolute value of a standard normal variable."""


class Loss(eqx.Module):
    """The loss ``rho(s)`` of the squared normalized residual s; ``rho(s) = s`` near zero."""

    @abstractmethod
    def cost(self, s: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        """The loss rho(s) of squared normalized residuals."""

    @abstractmethod
    def weight(self, s: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        """The derivative rho'(s): the weights of the residuals in a Gauss-Newton step."""

    def deviation(
        self, residuals: Float[Array, "n columns"], weights: Float[Array, "n columns"]
    ) -> Float[Array, " columns"]:
        """The standard deviation of the noise in each column of residuals, unaffected by outliers; 0 without weight.

        It is the weighted median of the absolute residuals, divided by that of the standard normal distribution: it is
        consistent for normal noise, and bounded as long as outliers have less than half of the weight.

        Source: Huber and Ronchetti 2009, Robust statistics, sec. 5.1, for the median absolute deviation.
        """
        size = jnp.abs(residuals)
        order = jnp.argsort(size, axis=0)
        size, weights = (jnp.take_along_axis(x, order, axis=0) for x in (size, weights))
        below = jnp.cumsum(weights, axis=0)
        half = below[-1] / 2
        # a sum that is half the weight but for rounding: the median lies between two residuals
        rounding = 4 * float(np.finfo(size.dtype).eps) * below[-1]
        lowest, highest = ((half + sign * rounding)[None] for sign in (-1, 1))
        middle = [jnp.argmax(below >= lowest, axis=0), jnp.argmax(below > highest, axis=0)]
        first, second = (jnp.take_along_axis(size, i[None], axis=0)[0] for i in middle)
        return jnp.where(half > 0, (first + second) / (2 * _NORMAL_QUARTILE), 0)


class SquaredLoss(Loss):
    """Least squares, ``rho(s) = s``: optimal for normal noise."""

    def deviation(
        self, residuals: Float[Array, "n columns"], weights: Float[Array, "n columns"]
    ) -> Float[Array, " columns"]:
        """The weighted root mean square of each column of residuals; 0 without weight."""
        total = jnp.sum(weights, axis=0)
        squares = jnp.sum(jnp.where(weights > 0, residuals, 0) ** 2 * weights, axis=0)
        # the derivative of a root is infinite at zero
        some = (squares > 0) & (total > 0)
        return jnp.where(some, jnp.sqrt(jnp.where(some, squares, 1) / jnp.where(total > 0, total, 1)), 0)

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
