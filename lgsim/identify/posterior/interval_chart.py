"""Unconstrained coordinates for bounded parameters, with the logarithm of the Jacobian."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float


class IntervalChart(eqx.Module):
    """Bounded parameters x as elementwise functions of unconstrained coordinates z.

    ``x = z`` without bounds, ``lower + exp(z)`` with a lower one, ``upper - exp(z)`` with an upper one,
    ``lower + (upper - lower) / (1 + exp(-z))`` with both. A density of x becomes one of z by the factor ``dx/dz``.

    Attributes:
        lower: Lower bounds (p,), -inf for none.
        upper: Upper bounds (p,), inf for none.
    """

    lower: Float[Array, " p"]
    upper: Float[Array, " p"]

    def point(self, z: Float[Array, " p"]) -> tuple[Float[Array, " p"], Float[Array, ""]]:
        """The parameters x at coordinates z, and the sum of ``log |dx/dz|``."""
        above, below, lower, upper = self._sides()
        both, one = above & below, above ^ below
        width = jnp.where(both, upper - lower, 1)
        # arguments of branches that are not taken are replaced, so that no derivative is infinite
        single = jnp.where(one, z, 0)
        inside = jnp.where(both, z, 0)
        half = jnp.where(above, lower + jnp.exp(single), upper - jnp.exp(single))
        x = jnp.where(both, lower + width * jax.nn.sigmoid(inside), jnp.where(one, half, z))
        logistic = jnp.log(width) + jax.nn.log_sigmoid(inside) + jax.nn.log_sigmoid(-inside)
        return x, jnp.sum(jnp.where(both, logistic, single))

    def coordinates(self, x: Float[Array, " p"]) -> Float[Array, " p"]:
        """The coordinates z of parameters x; infinite on a bound."""
        above, below, lower, upper = self._sides()
        both, one = above & below, above ^ below
        distance = jnp.where(above, x - lower, upper - x)
        logit = jnp.log(jnp.where(both, x - lower, 1)) - jnp.log(jnp.where(both, upper - x, 1))
        return jnp.where(both, logit, jnp.where(one, jnp.log(jnp.where(one, distance, 1)), x))

    def interior(self, x: Float[Array, " p"], distance: Float[Array, " p"]) -> Float[Array, " p"]:
        """Move x away from its bounds to a distance, at most to a quarter of the interval between two bounds."""
        above, below, lower, upper = self._sides()
        room = jnp.minimum(distance, jnp.where(above & below, (upper - lower) / 4, jnp.inf))
        return jnp.clip(x, jnp.where(above, lower + room, -jnp.inf), jnp.where(below, upper - room, jnp.inf))

    def _sides(self) -> tuple[Bool[Array, " p"], Bool[Array, " p"], Float[Array, " p"], Float[Array, " p"]]:
        """(has a lower bound, has an upper bound, the bounds with zero for infinite ones)."""
        above, below = jnp.isfinite(self.lower), jnp.isfinite(self.upper)
        return above, below, jnp.where(above, self.lower, 0), jnp.where(below, self.upper, 0)
