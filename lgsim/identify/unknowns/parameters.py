"""The unknowns of an identification: one vector of coordinates that stands for a plant."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer

from lgsim.identify.unknowns.body_blocks import Block
from lgsim.identify.unknowns.plant import Plant
from lgsim.multibody.model import Model


class Prior(eqx.Module):
    """What is known of a plant beside the records."""

    @abstractmethod
    def residual(self, plant: Plant) -> Array:
        """(rows,), each with standard deviation one."""


class TotalMass(Prior):
    """The mass of all bodies, from a scale.

    Attributes:
        mass: kg.
        deviation: Standard deviation, kg.
    """

    mass: Any
    deviation: Any

    def residual(self, plant: Plant) -> Array:
        return (jnp.sum(plant.model.inertias[:, :1], axis=0) - self.mass) / self.deviation


class Parameters(eqx.Module):
    """Coordinates x (size,) of a plant: zero is the prior, ``put(x)`` the plant.

    Attributes:
        plant: The prior.
        blocks: What is unknown.
        beliefs: What else is known.
        sizes: Number of coordinates of each block.
    """

    plant: Plant
    blocks: tuple[Block, ...]
    beliefs: tuple[Prior, ...] = ()
    sizes: tuple[int, ...] = eqx.field(static=True, default=())

    def __init__(self, plant: Plant | Model, blocks: Sequence[Block] | Block, beliefs: Sequence[Prior] = ()):
        """The unknowns ``blocks`` of a plant, or of a model.

        Raises:
            ValueError: there is no block, a body or joint does not exist, or two blocks hold the same number.
            TypeError: an argument is of the wrong kind.
        """
        self.plant = plant if isinstance(plant, Plant) else Plant(plant)
        self.blocks = (blocks,) if isinstance(blocks, Block) else tuple(blocks)
        self.beliefs = tuple(beliefs)
        for i, block in enumerate(self.blocks):
            if not isinstance(block, Block):
                raise TypeError(f"blocks[{i}]: expected a block such as Masses(), got {type(block).__name__}")
        for i, belief in enumerate(self.beliefs):
            if not isinstance(belief, Prior):
                raise TypeError(f"beliefs[{i}]: expected a belief such as TotalMass(), got {type(belief).__name__}")
        labels = [block.labels(self.plant) for block in self.blocks]
        self.sizes = tuple(len(names) for names in labels)
        names = [name for some in labels for name in some]
        if not names:
            raise ValueError("blocks: expected at least one unknown, such as Masses()")
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"blocks: {twice[0]} is in two of them")

    @property
    def size(self) -> int:
        """Number of coordinates."""
        return sum(self.sizes)

    @property
    def affine(self) -> np.ndarray | None:
        """Which of ``Plant.numbers`` move with x; None where the signals are not affine in all that moves."""
        places = [block.affine(self.plant.model) for block in self.blocks]
        found = [p for p in places if p is not None]
        return np.unique(np.concatenate(found)) if len(found) == len(places) else None

    @property
    def linear(self) -> np.ndarray | None:
        """The place in ``Plant.numbers`` of each coordinate, where coordinates are such numbers less the prior's."""
        places = [block.affine(self.plant.model) for block in self.blocks if block.linear]
        found = [p for p in places if p is not None]
        return np.concatenate(found) if len(found) == len(self.blocks) else None

    @property
    def names(self) -> list[str]:
        """A name for each coordinate."""
        return [name for block in self.blocks for name in block.labels(self.plant)]

    @property
    def dtype(self) -> jnp.dtype:
        """That of the model."""
        return self.plant.model.dtype

    def put(self, x: Array) -> Plant:
        """The plant at coordinates x (size,)."""
        plant = self.plant
        for block, part in zip(self.blocks, self.split(x), strict=True):
            plant = block.put(plant, part)
        return plant

    def split(self, x: Array) -> list[Array]:
        """The coordinates of each block."""
        ends = np.cumsum(self.sizes)
        return [x[end - size : end] for end, size in zip(ends, self.sizes, strict=True)]

    def bounds(self) -> tuple[Array, Array]:
        """(lower, upper) of the coordinates, (size,) each.

        Raises:
            ValueError: the prior is outside of its bounds.
        """
        sides: tuple[list[Array], list[Array]] = ([], [])
        for block, size in zip(self.blocks, self.sizes, strict=True):
            for side, bound in zip(sides, block.bounds(self.plant), strict=True):
                side.append(jnp.broadcast_to(jnp.asarray(bound, self.dtype), (size,)))
        lower, upper = (jnp.concatenate(side) for side in sides)
        if not isinstance(lower, Tracer) and not isinstance(upper, Tracer):
            for name, low, high in zip(self.names, lower, upper, strict=True):
                if not low <= 0 <= high:
                    raise ValueError(f"blocks: the prior of {name} is outside of its bounds by {max(low, -high):.3g}")
        return lower, upper

    def beliefs_at(self, x: Array) -> Array:
        """Residuals of all priors and beliefs, each with standard deviation one, (rows,)."""
        rows = [jnp.zeros(0, self.dtype)]
        for block, part in zip(self.blocks, self.split(x), strict=True):
            if block.prior is not None:
                rows.append(part / jnp.broadcast_to(jnp.asarray(block.prior, part.dtype), part.shape))
        plant = self.put(x)
        return jnp.concatenate([*rows, *(belief.residual(plant) for belief in self.beliefs)])

    def scales(self, otherwise: np.ndarray) -> np.ndarray:
        """Standard deviations of the blocks' priors (p,), and other numbers (p,) where there is none."""
        ends = np.cumsum(self.sizes)
        out = np.array(otherwise, float)
        for block, end, size in zip(self.blocks, ends, self.sizes, strict=True):
            if block.prior is not None:
                out[end - size : end] = np.asarray(block.prior)
        return out

    def values(self, x: Array) -> dict[str, Array]:
        """The physical numbers behind the coordinates, by name and unit."""
        plant = self.put(x)
        return {name: value for block in self.blocks for name, value in block.values(plant).items()}
