"""Priors on physical parameters in their units, instead of coordinates."""

from __future__ import annotations

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from lgsim.identify.unknowns.parameters import Parameters


class PhysicalPrior(eqx.Module):
    """A prior density of the physical parameters of one block, with respect to the product of their units.

    The parameters are those of ``block.values``, in order: for ``Inertias`` the ten standard parameters of each body,
    for ``Masses`` the masses. The density of the block's coordinates x is the density of the parameters times ``|d
    parameters / dx|``, given the coordinates of the other blocks. The block must have ``prior_deviation=None``, since
    otherwise it would have two priors.

    Attributes:
        log_prob: ``log_prob(values)``: the log density of the parameters (size,), up to a constant.
        block: Index of the block in ``Parameters.blocks``.
    """

    log_prob: Callable[[Float[Array, " size"]], Float[Array, ""]]
    block: int = eqx.field(static=True, default=0)

    def check(self, parameters: Parameters) -> None:
        """Check that the prior fits the unknowns.

        Raises:
            ValueError: the block does not exist, has a prior of its own, or does not have as many parameters as
                coordinates.
        """
        count = len(parameters.blocks)
        if not 0 <= self.block < count:
            raise ValueError(f"physical_priors: expected a block between 0 and {count - 1}, got {self.block}")
        block, size = parameters.blocks[self.block], parameters.sizes[self.block]
        name = type(block).__name__
        if block.prior_deviation is not None:
            raise ValueError(
                f"physical_priors: expected a block without a prior, but {name} has a prior_deviation; set"
                " prior_deviation=None"
            )
        numbers = len(block.values(parameters.plant))
        if numbers != size:
            raise ValueError(
                f"physical_priors: expected as many parameters as coordinates, but {name} has {size} coordinates and"
                f" {numbers} parameters; give the block a prior_deviation instead"
            )

    def log_density(self, parameters: Parameters, x: Float[Array, " p"]) -> Float[Array, ""]:
        """The log density of the block's coordinates at x, given the other coordinates."""
        block, place = parameters.blocks[self.block], parameters.slices[self.block]

        def numbers(own: Float[Array, " size"]) -> tuple[Float[Array, " size"], Float[Array, " size"]]:
            plant = parameters.plant_at(jax.lax.dynamic_update_slice(x, own, (place.start,)))
            values = jnp.stack(list(block.values(plant).values()))
            return values, values

        J, values = jax.jacfwd(numbers, has_aux=True)(x[place])
        return self.log_prob(values) + jnp.linalg.slogdet(J)[1]
