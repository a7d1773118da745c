"""The unknowns of an identification as one vector of coordinates, with priors."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float, Int

from lgsim.identify.unknowns.block import Block
from lgsim.identify.unknowns.plant import Plant, first_index
from lgsim.multibody.model import Model
from lgsim.support.check import is_traced


class Prior(eqx.Module):
    """Prior knowledge of a plant as residuals with standard deviation one."""

    @abstractmethod
    def residual(self, plant: Plant) -> Float[Array, " rows"]:
        """The residuals of a plant, each divided by its standard deviation."""


class TotalMass(Prior):
    """The measured total mass of all bodies.

    Attributes:
        mass: The measured mass, kg.
        deviation: Standard deviation of the measurement, kg.
    """

    mass: ArrayLike
    deviation: ArrayLike

    def residual(self, plant: Plant) -> Float[Array, " 1"]:
        return (jnp.sum(plant.model.inertias[:, :1], axis=0) - self.mass) / self.deviation


def value_names(values: Callable[[Array], dict[str, Array]], at: Float[Array, " size"]) -> list[str]:
    """The names of ``values(x)`` in their original order, which a dictionary loses when it passes through jit."""
    names: list[str] = []

    def trace(at: Array) -> Array:
        names.extend(values(at))
        return at

    jax.eval_shape(trace, at)
    return names


class Parameters(eqx.Module):
    """The unknowns of a plant as coordinates x (size,); ``plant_at(0)`` is the prior plant.

    Attributes:
        plant: The prior plant.
        priors: Further prior knowledge of the plant.
    """

    plant: Plant
    blocks: tuple[Block, ...]
    priors: tuple[Prior, ...] = ()
    sizes: tuple[int, ...] = eqx.field(static=True, default=())

    def __init__(self, plant: Plant | Model, blocks: Sequence[Block] | Block, priors: Sequence[Prior] = ()) -> None:
        """Combine ``blocks`` of unknowns of a plant or model.

        Raises:
            ValueError: there is no block, a body or joint does not exist, or two blocks contain the same parameter.
            TypeError: an argument has the wrong type.
        """
        self.plant = plant if isinstance(plant, Plant) else Plant(plant)
        self.blocks = (blocks,) if isinstance(blocks, Block) else tuple(blocks)
        self.priors = tuple(priors)
        for i, block in enumerate(self.blocks):
            if not isinstance(block, Block):
                raise TypeError(f"blocks[{i}]: expected a block such as Masses(), got {type(block).__name__}")
        for i, prior in enumerate(self.priors):
            if not isinstance(prior, Prior):
                raise TypeError(f"priors[{i}]: expected a prior such as TotalMass(), got {type(prior).__name__}")
        labels = [block.labels(self.plant) for block in self.blocks]
        self.sizes = tuple(len(names) for names in labels)
        names = [name for own in labels for name in own]
        if not names:
            raise ValueError("blocks: expected at least one unknown, such as Masses()")
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"blocks: expected each unknown once, got {twice[0]} in two blocks")

    @property
    def size(self) -> int:
        """Number of coordinates."""
        return sum(self.sizes)

    @property
    def slices(self) -> list[slice]:
        """The slice of x of each block."""
        ends = np.cumsum(self.sizes).tolist()
        return [slice(end - size, end) for end, size in zip(ends, self.sizes, strict=True)]

    @property
    def affine_indices(self) -> Int[np.ndarray, " moved"] | None:
        """Indices, ascending, in ``Plant.dynamic_parameters`` of all parameters that depend on x.

        None if others depend on x too, in which the signals are not affine.
        """
        indices = [block.affine_indices(self.plant.model) for block in self.blocks]
        found = [p for p in indices if p is not None and self.plant.load_friction is None]
        return np.unique(np.concatenate(found)) if len(found) == len(indices) else None

    @property
    def frictionless_indices(self) -> Int[np.ndarray, " moved"] | None:
        """``affine_indices`` of all blocks but those of friction; at least the offsets.

        None if the signals are affine in all unknowns, or not affine in an unknown that is not of friction.
        """
        model = self.plant.model
        indices = [block.affine_indices(model) for block in self.blocks if not block.of_friction]
        found = [p for p in indices if p is not None]
        if self.affine_indices is not None or len(found) < len(indices) or self.plant.load_friction is not None:
            return None
        every = np.unique(np.concatenate([np.zeros(0, int), *found]))
        return every if every.size else first_index(model, "offset") + np.arange(model.nv)

    def affine_change(self, x: Float[Array, " size"]) -> Float[Array, " moved"]:
        """The dynamic parameters at ``affine_indices`` of the plant at x, minus their prior values."""
        indices = self.affine_indices
        return self.plant_at(x).dynamic_parameters[indices] - self.plant.dynamic_parameters[indices]

    def within_speeds(self, lowest: Float[Array, " nv"], highest: Float[Array, " nv"]) -> Parameters:
        """The same unknowns with speeds of dry friction within those of a record; see ``Block.within_speeds``."""
        plant, blocks = self.plant, []
        for block in self.blocks:
            plant, bounded = block.within_speeds(plant, lowest, highest)
            blocks.append(bounded)
        return Parameters(plant, blocks, self.priors)

    @property
    def linear_indices(self) -> Int[np.ndarray, " size"] | None:
        """The index in ``Plant.dynamic_parameters`` of each coordinate.

        None if a coordinate is not the difference of such a parameter from its prior value.
        """
        indices = [block.affine_indices(self.plant.model) for block in self.blocks if block.is_linear]
        found = [p for p in indices if p is not None]
        return np.concatenate(found) if len(found) == len(self.blocks) else None

    @property
    def names(self) -> list[str]:
        """Names of the coordinates."""
        return [name for block in self.blocks for name in block.labels(self.plant)]

    @property
    def dtype(self) -> jnp.dtype:
        """The dtype of the model and of x."""
        return self.plant.model.dtype

    def plant_at(self, x: Float[Array, " size"]) -> Plant:
        """The plant at coordinates x."""
        plant = self.plant
        for block, part in zip(self.blocks, self.split(x), strict=True):
            plant = block.apply(plant, part)
        return plant

    def split(self, x: Float[Array, " size"]) -> list[Float[Array, " _"]]:
        """The coordinates of each block."""
        return [x[part] for part in self.slices]

    def straight(self, x: Float[Array, " size"], dx: Float[Array, " size"]) -> Float[Array, " size"]:
        """The coordinates after a step, limited to ``reach``, along a straight line in the physical parameters."""
        return jnp.concatenate([block.straight(own, step) for block, own, step in self._by_block(x, dx)])

    def reach(self, x: Float[Array, " size"], dx: Float[Array, " size"]) -> Float[Array, ""]:
        """The largest fraction of a step, at most one, that all blocks permit: the minimum of ``Block.reach``."""
        return jnp.min(jnp.stack([block.reach(own, step) for block, own, step in self._by_block(x, dx)]))

    @property
    def has_barrier(self) -> bool:
        """True if ``prior_cost`` has a barrier: some parameters have an edge and no prior."""
        return any(block.has_edge and block.prior_deviation is None for block in self.blocks)

    def _by_block(self, x: Float[Array, " size"], dx: Float[Array, " size"]) -> list[tuple[Block, Array, Array]]:
        return list(zip(self.blocks, self.split(x), self.split(dx), strict=True))

    def prior_cost(self, x: Float[Array, " size"], barrier: ArrayLike = 1.0) -> Float[Array, ""]:
        """Half the sum of squares of ``prior_residuals``, plus the barriers of the blocks."""
        r = self.prior_residuals(x)
        parts = zip(self.blocks, self.split(x), strict=True)
        barriers = [block.barrier(part) for block, part in parts if block.prior_deviation is None]
        return r @ r / 2 + barrier * sum(barriers, start=jnp.zeros((), x.dtype))

    def outer_map(self, x: Float[Array, " size"]) -> Float[Array, "size size"]:
        """The derivative of x with respect to coordinates without the limit of physical consistency; see
        ``Block.outer_map``.
        """
        parts = [block.outer_map(part) for block, part in zip(self.blocks, self.split(x), strict=True)]
        return jax.scipy.linalg.block_diag(*parts)

    def edges(self, x: Float[np.ndarray, " size"], covariance: Float[np.ndarray, "size size"]) -> list[str]:
        """Descriptions of the limits of physical consistency within a standard error of x, by ``Block.edges``."""
        parts = zip(self.blocks, self.slices, strict=True)
        return [edge for block, own in parts for edge in block.edges(self.plant, x[own], covariance[own, own])]

    def bounds(self, search: bool = False) -> tuple[Float[Array, " size"], Float[Array, " size"]]:
        """(lower, upper) bounds of the coordinates.

        Args:
            search: True for those of a search, see ``Block.search_bounds``.

        Raises:
            ValueError: the prior plant violates its bounds.
        """
        sides: tuple[list[Array], list[Array]] = ([], [])
        for block, size in zip(self.blocks, self.sizes, strict=True):
            own = block.search_bounds(self.plant) if search else block.bounds(self.plant)
            for side, bound in zip(sides, own, strict=True):
                side.append(jnp.broadcast_to(jnp.asarray(bound, self.dtype), (size,)))
        lower, upper = (jnp.concatenate(side) for side in sides)
        if not is_traced(lower, upper):
            for name, low, high in zip(self.names, *map(np.asarray, (lower, upper)), strict=True):
                if not low <= 0 <= high:
                    raise ValueError(f"blocks: the prior of {name} violates its bounds by {max(low, -high):.3g}")
        return lower, upper

    def value_limits(self) -> dict[str, tuple[float, float]]:
        """(lowest, highest) values of the physical parameters that have limits, by the names of ``values``."""
        return {name: limits for block in self.blocks for name, limits in block.value_limits(self.plant).items()}

    def prior_residuals(self, x: Float[Array, " size"]) -> Float[Array, " rows"]:
        """Residuals of all priors, those of the blocks first, each with standard deviation one."""
        rows = [jnp.zeros(0, self.dtype)]
        for block, part in zip(self.blocks, self.split(x), strict=True):
            if block.prior_deviation is not None:
                rows.append(part / jnp.broadcast_to(jnp.asarray(block.prior_deviation, part.dtype), part.shape))
        if not self.priors:
            return jnp.concatenate(rows)
        plant = self.plant_at(x)
        return jnp.concatenate([*rows, *(prior.residual(plant) for prior in self.priors)])

    def prior_deviations(self, default: Float[np.ndarray, " size"]) -> Float[np.ndarray, " size"]:
        """Prior standard deviations of the coordinates, with default values for blocks without a prior."""
        out = np.array(default, float)
        for block, own in zip(self.blocks, self.slices, strict=True):
            if block.prior_deviation is not None:
                out[own] = np.asarray(block.prior_deviation)
        return out

    def value_array(self, x: Float[Array, " size"]) -> Float[Array, " values"]:
        """The values of ``values`` in order, as one array."""
        plant = self.plant_at(x)
        together = jnp.concatenate([block.value_array(plant) for block in self.blocks])
        names = [name for block in self.blocks for name in jax.eval_shape(block.values, plant)]
        # for a parameter in two blocks the later one counts, as in a dictionary
        last = np.array(list({name: i for i, name in enumerate(names)}.values()))
        return together if len(last) == len(names) else together[last]

    def values(self, x: Float[Array, " size"]) -> dict[str, Float[Array, ""]]:
        """The physical parameters by name and unit."""
        plant = self.plant_at(x)
        return {name: value for block in self.blocks for name, value in block.values(plant).items()}
