"""What any block of unknowns is: coordinates that are zero at the prior plant."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float, Int

from lgsim.identify.unknowns.plant import Plant
from lgsim.multibody.model import Model
from lgsim.support.check import unknown_name


class Block(eqx.Module):
    """Unknown numbers of a plant of one kind, as coordinates x (size,) that are zero at the prior plant.

    Attributes:
        prior_deviation: Standard deviation of the coordinates about the prior, one number or (size,); None where
            nothing is known beforehand.
    """

    # no field here, so that bodies and joints are the first arguments of blocks
    prior_deviation = None

    @abstractmethod
    def labels(self, plant: Plant) -> list[str]:
        """A name for each coordinate.

        Raises:
            ValueError: a body or joint does not exist.
        """

    @abstractmethod
    def apply(self, plant: Plant, x: Float[Array, " size"]) -> Plant:
        """The plant with its numbers moved by coordinates x from those it has."""

    @abstractmethod
    def values(self, plant: Plant) -> dict[str, Float[Array, ""]]:
        """The physical numbers of the plant behind the coordinates, by name and unit, e.g. "m of fore, kg"."""

    def value_array(self, plant: Plant) -> Float[Array, " values"]:
        """``values`` in order, as one array: one operation compiles sooner than as many slices."""
        return jnp.stack(list(self.values(plant).values()))

    def affine_indices(self, model: Model) -> Int[np.ndarray, " moved"] | None:
        """The places in ``Plant.dynamic_parameters`` of all numbers that the block moves.

        None where it moves others, in which the signals are not affine.
        """
        return None

    @property
    def is_linear(self) -> bool:
        """Whether the coordinates are the numbers at ``affine_indices`` themselves, less those of the prior."""
        return False

    def bounds(self, plant: Plant) -> tuple[ArrayLike, ArrayLike]:
        """(lower, upper) bounds of the coordinates, numbers or (size,); infinite by default."""
        return -np.inf, np.inf

    def value_limits(self, plant: Plant) -> dict[str, tuple[float, float]]:
        """(lowest, highest) of the numbers that have limits, by the names of ``values``."""
        return {}

    def straight(self, x: Float[Array, " size"], dx: Float[Array, " size"]) -> Float[Array, " size"]:
        """The coordinates after a step dx within ``reach``, straight in the plant's numbers; ``x + dx`` by default."""
        return x + dx

    def reach(self, x: Float[Array, " size"], dx: Float[Array, " size"]) -> Float[Array, ""]:
        """The share of a step dx, at most one, after which a straight step still leaves the edge at a distance."""
        return jnp.ones((), x.dtype)

    @property
    def has_edge(self) -> bool:
        """Whether the numbers have an edge that the coordinates never reach, so that ``barrier`` counts."""
        return False

    def barrier(self, x: Float[Array, " size"]) -> Float[Array, ""]:
        """A cost that keeps the minimum off the edge of the coordinates where no prior does; zero by default."""
        return jnp.zeros((), x.dtype)

    def outer_map(self, x: Float[Array, " size"]) -> Float[Array, "size size"]:
        """The derivative of x by coordinates in which the plant's numbers move straight, scaled as x at the prior.

        Near the edge of what the numbers can be, x hardly moves them; these coordinates do not know the edge, so that
        deviations in them stay those of the records.
        """
        return jnp.eye(x.size, dtype=x.dtype)

    def edges(
        self, plant: Plant, x: Float[np.ndarray, " size"], covariance: Float[np.ndarray, "size size"]
    ) -> list[str]:
        """The edges at which x lies within its deviation, in words.

        Args:
            plant: The prior plant.
            covariance: Their covariance in the coordinates of ``outer_map``.
        """
        return []


class NumberBlock(Block):
    """Unknown numbers whose coordinates are the changes of them.

    Attributes:
        relative: Whether coordinates are the logarithms of ratios to the prior's numbers instead, which keep their
            signs.
        lower: Lower bounds of the numbers themselves, one number or one for each.
        upper: Upper bounds of the numbers themselves, one number or one for each.
        unit: Unit of the numbers, for tables; "" for none.
    """

    relative = False
    lower = -np.inf
    upper = np.inf
    unit = ""

    @abstractmethod
    def read(self, plant: Plant) -> Float[Array, " size"]:
        """The numbers."""

    @abstractmethod
    def write(self, plant: Plant, numbers: Float[Array, " size"]) -> Plant:
        """The plant with other numbers."""

    def apply(self, plant: Plant, x: Float[Array, " size"]) -> Plant:
        before = self.read(plant)
        return self.write(plant, before * jnp.exp(x) if self.relative else before + x)

    def values(self, plant: Plant) -> dict[str, Float[Array, ""]]:
        names = [f"{label}, {self.unit}" if self.unit else label for label in self.labels(plant)]
        return dict(zip(names, self.read(plant), strict=True))

    def value_array(self, plant: Plant) -> Float[Array, " values"]:
        return self.read(plant)

    def value_limits(self, plant: Plant) -> dict[str, tuple[float, float]]:
        names = list(self.values(plant))
        low, high = (np.broadcast_to(np.asarray(b, float), len(names)).tolist() for b in (self.lower, self.upper))
        return dict(zip(names, zip(low, high, strict=True), strict=True))

    def bounds(self, plant: Plant) -> tuple[ArrayLike, ArrayLike]:
        start = self.read(plant)
        ends = jnp.stack([jnp.broadcast_to(jnp.asarray(b, start.dtype), start.shape) for b in (self.lower, self.upper)])
        if not self.relative:
            return ends[0] - start, ends[1] - start
        # numbers of one sign: those of the other one are out of reach
        ratios = jnp.sort(ends / start[None], axis=0)
        low, high = (jnp.where(r > 0, jnp.log(jnp.where(r > 0, r, 1)), -jnp.inf) for r in ratios)
        return low, high


def select_names(argument: str, names: Sequence[str] | None, known: Sequence[str]) -> list[str]:
    """The names given, or all known ones for None.

    Args:
        argument: What the message of an error calls the names.

    Raises:
        ValueError: a name does not exist, or a single text came in the place of a list.
    """
    if names is None:
        return list(known)
    if isinstance(names, str):
        raise ValueError(f"{argument}: expected a list of names, got the text {names!r}; write [{names!r}]")
    for name in names:
        if name not in known:
            raise unknown_name(f"{argument}: expected names of {argument}", name, known)
    return list(names)
