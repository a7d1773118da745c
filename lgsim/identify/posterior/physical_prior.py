"""Priors that are stated of physical numbers, in their units, instead of coordinates."""

from __future__ import annotations

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from lgsim.identify.unknowns.parameters import Parameters


class PhysicalPrior(eqx.Module):
    """A prior density of the physical numbers of one block, with respect to the product of their own units.

    The numbers are those of ``block.values``, in order: for ``Inertias`` the ten standard parameters of each body, for
    ``Masses`` the masses. The density of the block's coordinates x is that of the numbers times ``|d numbers / dx|``,
    the other blocks' coordinates being given. The block must have ``prior_deviation=None``, which would be a second
    prior.

    Attributes:
        log_prob: ``log_prob(numbers)``: the logarithm of the density of numbers (size,), up to a constant.
        block: The place of the block among ``Parameters.blocks``.
    """

    log_prob: Callable[[Float[Array, " size"]], Float[Array, ""]]
    block: int = eqx.field(static=True, default=0)

    def check(self, parameters: Parameters) -> None:
        """Raise where the prior does not fit the unknowns.

        Raises:
            ValueError: there is no such block, it has a prior of its own, or not as many numbers as coordinates.
        """
        count = len(parameters.blocks)
        if not 0 <= self.block < count:
            raise ValueError(f"physical_priors: expected a block between 0 and {count - 1}, got {self.block}")
        block, size = parameters.blocks[self.block], parameters.sizes[self.block]
        name = type(block).__name__
        if block.prior_deviation is not None:
            raise ValueError(
                f"physical_priors: the block {name} has a prior_deviation already; give it prior_deviation=None"
            )
        numbers = len(block.values(parameters.plant))
        if numbers != size:
            raise ValueError(
                f"physical_priors: {name} has {size} coordinates and {numbers} numbers; a density of the numbers says"
                " nothing of the coordinates. Give the block a prior_deviation"
            )

    def log_density(self, parameters: Parameters, x: Float[Array, " p"]) -> Float[Array, ""]:
        """The logarithm of the density of the block's coordinates at x, the other coordinates being given."""
        block, place = parameters.blocks[self.block], parameters.slices[self.block]

        def numbers(own: Float[Array, " size"]) -> tuple[Float[Array, " size"], Float[Array, " size"]]:
            plant = parameters.plant_at(jax.lax.dynamic_update_slice(x, own, (place.start,)))
            values = jnp.stack(list(block.values(plant).values()))
            return values, values

        J, values = jax.jacfwd(numbers, has_aux=True)(x[place])
        return self.log_prob(values) + jnp.linalg.slogdet(J)[1]
