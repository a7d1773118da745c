"""Noise models of a posterior: standard deviations that are known, sampled or integrated out."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, Key

from lgsim.identify.estimators.loss import Loss, SquaredLoss
from lgsim.identify.unknowns.plant import NumbersLike


def as_numbers(given: NumbersLike | None) -> Any:
    """Convert a value to an array, so that new values do not compile again; None stays None."""
    return None if given is None else jnp.asarray(given, float)


class ResidualSums(eqx.Module):
    """Sums of the residuals over all samples, for each column: the sufficient statistics of a density.

    Attributes:
        counts: Sums of the weights (columns,): the number of readings.
        squares: Weighted sums of squares (columns,).
    """

    counts: Float[Array, " columns"]
    squares: Float[Array, " columns"]

    def losses(self, deviations: Float[Array, " columns"]) -> Float[Array, " columns"]:
        """Weighted sums of the losses of normalized residuals; here their squares."""
        return self.squares / deviations**2


class RobustSums(ResidualSums):
    """Single residuals, for robust losses.

    Attributes:
        residuals: Residuals (sets, n, columns), finite everywhere.
    """

    residuals: Float[Array, "sets n columns"]
    weights: Float[Array, "sets n columns"]
    loss: Loss

    def losses(self, deviations: Float[Array, " columns"]) -> Float[Array, " columns"]:
        s = (self.residuals / deviations[None, None]) ** 2
        return jnp.sum(self.weights * self.loss.cost(s), axis=(0, 1))


class NoiseModel(eqx.Module):
    """Standard deviations of the columns of records, with their prior.

    Given standard deviations s, the density of the residuals r with weights w is, up to a constant, ``prod (1 / s
    exp(-rho(r^2 / s^2) / 2))^w``, where rho is the loss of the estimator: normal for least squares.
    """

    @property
    def is_sampled(self) -> bool:
        """True if the logarithms of the standard deviations are coordinates of the posterior."""
        return False

    def check(self, loss: Loss) -> None:
        """Check that the model supports a loss.

        Raises:
            ValueError: the model integrates the standard deviations out, and the loss is not quadratic.
        """

    def draw_prior(self, key: Key[Array, ""], shape: tuple[int, int]) -> Float[Array, "count columns"]:
        """Draws of the standard deviations from their prior; NaN if the prior is improper."""
        return jnp.full(shape, jnp.nan)

    @abstractmethod
    def log_density(self, u: Float[Array, " _"], sums: ResidualSums) -> Float[Array, ""]:
        """The log density of the residuals, and of the prior of coordinates u, up to a constant."""

    @abstractmethod
    def deviations(
        self, u: Float[Array, " _"], sums: ResidualSums, key: Key[Array, ""] | None = None
    ) -> Float[Array, " columns"]:
        """Standard deviations of the columns at a point of the posterior, (columns,).

        Args:
            sums: Sums of the residuals at the point.
            key: For standard deviations that are integrated out: the key of a draw; None for their most likely values.
        """


class KnownNoise(NoiseModel):
    """Noise of known standard deviation.

    Attributes:
        deviation: Standard deviation of each column, one number or (columns,), in the records' units.
    """

    deviation: Float[Array, " *columns"] = eqx.field(converter=as_numbers)

    def log_density(self, u: Float[Array, " _"], sums: ResidualSums) -> Float[Array, ""]:
        s = self.deviations(u, sums)
        return -jnp.sum(sums.counts * jnp.log(s)) - jnp.sum(sums.losses(s)) / 2

    def deviations(
        self, u: Float[Array, " _"], sums: ResidualSums, key: Key[Array, ""] | None = None
    ) -> Float[Array, " columns"]:
        return _columns(self.deviation, sums)


class HalfNormalNoise(NoiseModel):
    """Noise of unknown standard deviation s with a half-normal prior, for any loss.

    The prior is ``p(s) ~ exp(-(s / scale)^2 / 2)``, s > 0.

    Its coordinates are ``log s``, whose density includes the Jacobian s.

    Attributes:
        scale: Scale of the prior, one value or (columns,), in the records' units: s is below twice the scale with 95 %
            probability.
    """

    scale: Float[Array, " *columns"] = eqx.field(converter=as_numbers)

    @property
    def is_sampled(self) -> bool:
        return True

    def draw_prior(self, key: Key[Array, ""], shape: tuple[int, int]) -> Float[Array, "count columns"]:
        scale = jnp.broadcast_to(self.scale, shape[1:])
        return jnp.abs(jax.random.normal(key, shape, scale.dtype)) * scale[None]

    def log_density(self, u: Float[Array, " _"], sums: ResidualSums) -> Float[Array, ""]:
        s = jnp.exp(u)
        prior = u - (s / _columns(self.scale, sums)) ** 2 / 2
        return jnp.sum(prior - sums.counts * u - sums.losses(s) / 2)

    def deviations(
        self, u: Float[Array, " _"], sums: ResidualSums, key: Key[Array, ""] | None = None
    ) -> Float[Array, " columns"]:
        return jnp.exp(u)


class InverseGammaNoise(NoiseModel):
    """Noise of unknown variance v that is integrated out, with the prior ``p(v) ~ v^(-shape - 1) exp(-scale / v)``.

    For the sum of squares S of N readings of a column, the marginal density is ``(scale + S/2)^-(shape + N/2)``, and
    the variance of the noise is inverse gamma with ``shape + N/2`` and ``scale + S/2``. No coordinates are added. Zero
    for both, the default, is the noninformative Jeffreys prior ``1 / v``.

    Attributes:
        shape: Half the number of readings to which the prior is equivalent, one value or (columns,).
        scale: Half their sum of squares, one value or (columns,), in the square of the records' units.

    Source: Gelman et al. 2013, Bayesian Data Analysis, 3rd edition, section 3.3.
    """

    shape: Float[Array, " *columns"] = eqx.field(converter=as_numbers, default=0.0)
    scale: Float[Array, " *columns"] = eqx.field(converter=as_numbers, default=0.0)

    def check(self, loss: Loss) -> None:
        if not isinstance(loss, SquaredLoss):
            raise ValueError(
                f"noise: InverseGammaNoise requires a quadratic loss, got {type(loss).__name__} of the estimator; use"
                " HalfNormalNoise(scale) or KnownNoise(deviation)"
            )

    def log_density(self, u: Float[Array, " _"], sums: ResidualSums) -> Float[Array, ""]:
        shape, scale = self._posterior(sums)
        return -jnp.sum(shape * jnp.log(scale))

    def deviations(
        self, u: Float[Array, " _"], sums: ResidualSums, key: Key[Array, ""] | None = None
    ) -> Float[Array, " columns"]:
        shape, scale = self._posterior(sums)
        if key is None:
            return jnp.sqrt(scale / (shape + 1))
        return jnp.sqrt(scale / jax.random.gamma(key, shape, dtype=scale.dtype))

    def _posterior(self, sums: ResidualSums) -> tuple[Float[Array, " columns"], Float[Array, " columns"]]:
        """(shape, scale) of the inverse gamma distribution of the variances."""
        seen = sums.counts > 0
        shape = _columns(self.shape, sums) + sums.counts / 2
        scale = _columns(self.scale, sums) + sums.squares / 2
        # a column without readings contributes nothing, not even the logarithm of zero
        return jnp.where(seen, shape, _columns(self.shape, sums)), jnp.where(seen, scale, 1)


def _columns(numbers: Float[Array, " *columns"], sums: ResidualSums) -> Float[Array, " columns"]:
    return jnp.broadcast_to(numbers.astype(sums.counts.dtype), sums.counts.shape)
