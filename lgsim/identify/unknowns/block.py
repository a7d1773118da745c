"""Interface of the blocks of unknowns: coordinates that are zero at the prior plant."""

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
    """Unknown parameters of one kind, as coordinates x (size,) that are zero at the prior plant.

    Attributes:
        prior_deviation: Prior standard deviation of the coordinates, one value or (size,); None for no prior.
    """

    # no field here, so that bodies and joints are the first arguments of blocks
    prior_deviation = None

    @abstractmethod
    def labels(self, plant: Plant) -> list[str]:
        """Names of the coordinates.

        Raises:
            ValueError: a body or joint does not exist.
        """

    @abstractmethod
    def apply(self, plant: Plant, x: Float[Array, " size"]) -> Plant:
        """The plant with its parameters changed by the coordinates x."""

    @abstractmethod
    def values(self, plant: Plant) -> dict[str, Float[Array, ""]]:
        """The physical parameters of the block by name and unit, e.g. "m of fore, kg"."""

    def value_array(self, plant: Plant) -> Float[Array, " values"]:
        """``values`` in order as one array, which compiles faster than many slices."""
        return jnp.stack(list(self.values(plant).values()))

    def affine_indices(self, model: Model) -> Int[np.ndarray, " moved"] | None:
        """Indices in ``Plant.dynamic_parameters`` of all parameters that the block changes.

        None if it changes others, in which the signals are not affine.
        """
        return None

    @property
    def is_linear(self) -> bool:
        """True if the coordinates are the parameters at ``affine_indices`` minus their prior values."""
        return False

    @property
    def of_friction(self) -> bool:
        """True if the block changes only damping and dry friction of joints, ``Plant.friction_parameters``."""
        return False

    @property
    def has_speeds(self) -> bool:
        """True if the coordinates are logarithms of speeds of dry friction, ``SPEEDS``."""
        return False

    def within_speeds(
        self, plant: Plant, lowest: Float[Array, " nv"], highest: Float[Array, " nv"]
    ) -> tuple[Plant, Block]:
        """The plant and the block with speeds of dry friction that are within those of a record; unchanged by default.

        Args:
            lowest: Lowest speed of each degree of freedom that the record resolves, rad/s or m/s.
            highest: Highest speed of each degree of freedom, 0 if it does not move.
        """
        return plant, self

    def bounds(self, plant: Plant) -> tuple[ArrayLike, ArrayLike]:
        """(lower, upper) bounds of the coordinates, scalars or (size,); infinite by default."""
        return -np.inf, np.inf

    def search_bounds(self, plant: Plant) -> tuple[ArrayLike, ArrayLike]:
        """``bounds``, and those beyond which the dtype keeps no information about the parameters."""
        return self.bounds(plant)

    def value_limits(self, plant: Plant) -> dict[str, tuple[float, float]]:
        """(lowest, highest) values of the parameters that have limits, by the names of ``values``."""
        return {}

    def straight(self, x: Float[Array, " size"], dx: Float[Array, " size"]) -> Float[Array, " size"]:
        """The coordinates after a step dx, limited to ``reach``, along a straight line in the physical parameters; ``x
        + dx`` by default.
        """
        return x + dx

    def reach(self, x: Float[Array, " size"], dx: Float[Array, " size"]) -> Float[Array, ""]:
        """The largest fraction of a step dx, at most one, for which a straight step keeps a distance from the edge."""
        return jnp.ones((), x.dtype)

    @property
    def has_edge(self) -> bool:
        """True if the parameters have an edge that the coordinates never reach, so that ``barrier`` applies."""
        return False

    def barrier(self, x: Float[Array, " size"]) -> Float[Array, ""]:
        """A barrier cost that keeps the minimum away from the edge where no prior does; zero by default."""
        return jnp.zeros((), x.dtype)

    def outer_map(self, x: Float[Array, " size"]) -> Float[Array, "size size"]:
        """The derivative of x with respect to coordinates that are linear in the physical parameters, scaled as x at
        the prior.

        Near the limit of physical consistency the parameters hardly depend on x. These coordinates ignore that limit,
        so that their standard errors come from the records only.
        """
        return jnp.eye(x.size, dtype=x.dtype)

    def linear(self, x: Float[np.ndarray, " size"]) -> Float[np.ndarray, " size"]:
        """The coordinates of ``outer_map`` at x, in numpy; zero at the prior."""
        return x

    def from_linear(self, y: Float[np.ndarray, " size"]) -> Float[np.ndarray, " size"]:
        """The inverse of ``linear``."""
        return y

    def largest(self, plant: Plant, torque: Float[np.ndarray, " nv"]) -> ArrayLike:
        """The sizes of the coordinates above which they would exceed the recorded torques, N m; infinite if unknown."""
        return np.inf

    def pencils(self, size: int) -> Float[np.ndarray, "bodies n n k"]:
        """Matrices B with which ``1 + sum_k y_k B_k`` is positive definite, for the k coordinates ``linear`` of each
        body, if and only if the body is physically consistent.
        """
        return np.zeros((0, 1, 1, 1))

    def edges(
        self, plant: Plant, x: Float[np.ndarray, " size"], covariance: Float[np.ndarray, "size size"]
    ) -> list[str]:
        """Descriptions of the limits of physical consistency that lie within a standard error of x.

        Args:
            plant: The prior plant.
            covariance: Covariance of the unknowns in the coordinates of ``outer_map``.
        """
        return []


class NumberBlock(Block):
    """Unknown parameters whose coordinates are their changes from the prior.

    Attributes:
        relative: True for coordinates that are logarithms of ratios to the prior values, which preserve the signs.
        lower: Lower bounds of the parameters themselves, one value or one for each.
        upper: Upper bounds of the parameters themselves, one value or one for each.
        unit: Unit of the parameters, for tables; "" for dimensionless.
    """

    relative = False
    lower = -np.inf
    upper = np.inf
    unit = ""

    @abstractmethod
    def read(self, plant: Plant) -> Float[Array, " size"]:
        """The values of the parameters."""

    @abstractmethod
    def write(self, plant: Plant, numbers: Float[Array, " size"]) -> Plant:
        """The plant with new values of the parameters."""

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
        low, high = (np.broadcast_to(np.asarray(b, float), len(names)) for b in (self.lower, self.upper))
        if self.relative:
            start = np.asarray(self.read(plant))
            low, high = np.where(start > 0, np.maximum(low, 0), low), np.where(start < 0, np.minimum(high, 0), high)
        return dict(zip(names, zip(low.tolist(), high.tolist(), strict=True), strict=True))

    def bounds(self, plant: Plant) -> tuple[ArrayLike, ArrayLike]:
        start = self.read(plant)
        ends = jnp.stack([jnp.broadcast_to(jnp.asarray(b, start.dtype), start.shape) for b in (self.lower, self.upper)])
        if not self.relative:
            return ends[0] - start, ends[1] - start
        # the sign is fixed: values of the opposite sign are out of reach
        ratios = jnp.sort(ends / start[None], axis=0)
        low, high = (jnp.where(r > 0, jnp.log(jnp.where(r > 0, r, 1)), -jnp.inf) for r in ratios)
        return low, high


def select_names(argument: str, names: Sequence[str] | None, known: Sequence[str]) -> list[str]:
    """The given names, or all known ones for None.

    Args:
        argument: Name of the argument in the error message.

    Raises:
        ValueError: a name does not exist, or a string was given instead of a list.
    """
    if names is None:
        return list(known)
    if isinstance(names, str):
        raise ValueError(f"{argument}: expected a list of names, got the string {names!r}; write [{names!r}]")
    for name in names:
        if name not in known:
            raise unknown_name(f"{argument}: expected names of {argument}", name, known)
    return list(names)
