"""Serially correlated noise: first-order autoregressive residuals and their innovations."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import DTypeLike
from jaxtyping import Float, Int, Key

from lgsim._compile.xla import control_flow
from lgsim.identify.posterior.noise_models import as_numbers
from lgsim.support.check import is_traced


class SerialCorrelation(eqx.Module):
    """First-order autoregressive noise at a uniform sampling interval.

    ``r_t = a r_(t-1) + sqrt(1 - a^2) e_t`` with white e of the noise's standard deviation.

    Across k - 1 missing readings the coefficient is ``a^k``. Unknown coefficients are uniform between -1 and 1, one for
    each column, with the coordinates c: ``a = tanh(c / 2)``. Weights between 0 and 1 reduce the contribution of an
    innovation, given the previous readings.

    Attributes:
        coefficient: The lag-one correlation a, one value or (columns,), with -1 < a < 1; None if unknown.
        starts: Rows of the records, ascending, at which a new recording begins, apart from the first row.
    """

    coefficient: Float[Array, " *columns"] | None = eqx.field(converter=as_numbers, default=None)
    starts: tuple[int, ...] = eqx.field(static=True, default=())

    def __check_init__(self) -> None:
        if self.coefficient is not None and not is_traced(self.coefficient):
            if not bool(np.all(np.abs(np.asarray(self.coefficient)) < 1)):
                raise ValueError(f"coefficient: expected numbers between -1 and 1, got {self.coefficient}")

    @property
    def is_sampled(self) -> bool:
        """True if the coefficients are unknown."""
        return self.coefficient is None

    def coefficients(self, c: Float[Array, " _"], columns: int) -> Float[Array, " columns"]:
        """The coefficients of all columns at coordinates c."""
        if self.coefficient is None:
            return jnp.tanh(c / 2)
        return jnp.broadcast_to(self.coefficient.astype(c.dtype), (columns,))

    def log_prior(self, c: Float[Array, " _"]) -> Float[Array, ""]:
        """The log density of coordinates c, up to a constant: that of the Jacobian."""
        return jnp.sum(jax.nn.log_sigmoid(c) + jax.nn.log_sigmoid(-c))

    def innovations(
        self, c: Float[Array, " _"], r: Float[Array, "sets n columns"], weights: Float[Array, "sets n columns"]
    ) -> tuple[Float[Array, "sets n columns"], Float[Array, ""]]:
        """Innovations of residuals r, scaled to the standard deviation of r, and the logarithm of their density with
        respect to r.
        """
        before = self._previous(weights)
        has = before >= 0
        k = jnp.where(has, jnp.arange(r.shape[1])[None, :, None] - before, 1)
        each = jnp.broadcast_to(self.coefficients(c, r.shape[2])[None, None], k.shape)
        a = jnp.where(has, _integer_power(each, k), 0)
        last = jnp.take_along_axis(r, jnp.where(has, before, 0), axis=1)
        left = 1 - a**2
        return (r - a * last) / jnp.sqrt(left), -jnp.sum(weights * jnp.log(left)) / 2

    def draw(
        self, key: Key[Array, ""], c: Float[Array, " _"], shape: tuple[int, int, int], dtype: DTypeLike
    ) -> Float[Array, "sets n columns"]:
        """Noise of unit standard deviation at all times."""
        e = jax.random.normal(key, shape, dtype)
        a = self.coefficients(c, shape[2])
        begins = np.isin(np.arange(shape[1]), (0, *self.starts))

        def step(
            last: Float[Array, "sets columns"], row: tuple[Float[Array, "sets columns"], Array]
        ) -> tuple[Float[Array, "sets columns"], Float[Array, "sets columns"]]:
            now = jnp.where(row[1], row[0], a[None] * last + jnp.sqrt(1 - a[None] ** 2) * row[0])
            return now, now

        rows = control_flow.scan(step, jnp.zeros_like(e[:, 0]), (jnp.moveaxis(e, 1, 0), jnp.asarray(begins)))[1]
        return jnp.moveaxis(rows, 0, 1)

    def _previous(self, weights: Float[Array, "sets n columns"]) -> Int[Array, "sets n columns"]:
        """The row of the previous reading in the same recording for each row, -1 for none."""
        n = weights.shape[1]
        rows = jnp.arange(n)[None, :, None]
        seen = jax.lax.cummax(jnp.where(weights > 0, rows, -1), axis=1)
        before = jnp.concatenate([jnp.full_like(seen[:, :1], -1), seen[:, :-1]], axis=1)
        first = np.array((0, *self.starts))[np.searchsorted((0, *self.starts), np.arange(n), side="right") - 1]
        return jnp.where(before >= jnp.asarray(first)[None, :, None], before, -1)


@jax.custom_jvp
def _integer_power(a: Float[Array, "*shape"], k: Int[Array, "*shape"]) -> Float[Array, "*shape"]:
    """``a^k`` for k >= 0 and a of any sign, with derivatives of any order, also at a = 0."""
    return jax.lax.pow(a, k)


@_integer_power.defjvp
def _(primals: tuple[Array, Array], tangents: tuple[Array, Array]) -> tuple[Array, Array]:
    a, k = primals
    slope = k.astype(a.dtype) * _integer_power(a, jnp.maximum(k - 1, 0))
    return _integer_power(a, k), slope * tangents[0]
