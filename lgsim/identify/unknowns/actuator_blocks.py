"""Unknown parameters of actuators: any parameter of any stage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float, Int

from lgsim.actuators.actuators import Actuators, ActuatorSum
from lgsim.identify.unknowns.block import NumberBlock, select_names
from lgsim.identify.unknowns.plant import NumbersLike, Plant
from lgsim.support.check import unknown_name


class ActuatorParameter(NumberBlock):
    """One parameter of the plant's actuators, such as ``ActuatorParameter("stages.0.stiffness")``.

    A coordinate is the difference from the prior value, or with ``relative`` the logarithm of their ratio, which
    preserves the sign and has no unit. A parameter that all actuators share is one coordinate.

    Attributes:
        path: Path of the parameter; the error message for an unknown path lists the valid ones; static.
        actuators: Names of the actuators, by default all that have the parameter; static.
        relative: True for logarithmic coordinates; static.
        unit: Unit of the parameter, for tables; static.
        lower: Lower bounds of the parameter itself, one value or one for each coordinate.
        upper: Upper bounds of the parameter itself, one value or one for each coordinate.

    Raises:
        ValueError: the plant has no actuators, or they have no such parameter.
    """

    path: str = eqx.field(static=True)
    actuators: Sequence[str] | None = eqx.field(static=True, default=None)
    prior_deviation: NumbersLike | None = None
    relative: bool = eqx.field(static=True, default=False)
    unit: str = eqx.field(static=True, default="")
    lower: ArrayLike = -np.inf
    upper: ArrayLike = np.inf

    def read(self, plant: Plant) -> Float[Array, " size"]:
        numbers = self._all(plant)
        return numbers.reshape(-1)[self._places(plant)]

    def labels(self, plant: Plant) -> list[str]:
        numbers, (where, _, what) = self._all(plant), self.path.rpartition(".")
        kind = type(_follow(plant.actuators, where)).__name__
        if sum(type(stage).__name__ == kind for stage in _stages(plant.actuators)) > 1:
            kind = f"{kind} ({where})"
        if numbers.ndim == 0 or len(numbers) != len(self._names(plant)):
            return [f"{what}{f' {k}' if numbers.ndim else ''} of {kind}" for k in range(numbers.size)]
        suffix = [""] if numbers.ndim == 1 else [f" {k}" for k in range(numbers[0].size)]
        names = [self._names(plant)[i] for i in self._rows(plant)]
        return [f"{what}{k} of {kind} of actuator {name}" for name in names for k in suffix]

    def write(self, plant: Plant, numbers: Float[Array, " size"]) -> Plant:
        every = self._all(plant)
        new = every.reshape(-1).at[self._places(plant)].set(numbers).reshape(every.shape)
        return eqx.tree_at(lambda p: _follow(p.actuators, self.path), plant, new)

    def _all(self, plant: Plant) -> Array:
        """The array that contains the parameter."""
        if plant.actuators is None:
            raise ValueError("path: the plant has no actuators; add them with Plant(model, actuators=...)")
        known = actuator_parameters(plant.actuators)
        if self.path not in known:
            raise unknown_name("path: expected a parameter of the actuators", self.path, known)
        return jnp.asarray(_follow(plant.actuators, self.path), plant.model.dtype)

    def _names(self, plant: Plant) -> tuple[str, ...]:
        """Names of the actuators that have the parameter; in a sum, those of its term."""
        first, _, rest = self.path.partition(".")
        term = f"terms.{rest.partition('.')[0]}" if first == "terms" else ""
        return _follow(plant.actuators, term).names

    def _rows(self, plant: Plant) -> Int[np.ndarray, " rows"]:
        names = self._names(plant)
        return np.array([names.index(name) for name in select_names("actuators", self.actuators, names)], int)

    def _places(self, plant: Plant) -> Int[np.ndarray, " size"]:
        """Flat indices of the coordinates in the array."""
        shape = np.shape(self._all(plant))
        if not shape:
            return np.zeros(1, int)
        if shape[0] != len(self._names(plant)):
            return np.arange(int(np.prod(shape)))
        return np.arange(int(np.prod(shape))).reshape(shape)[self._rows(plant)].reshape(-1)


def actuator_parameters(actuators: Actuators | ActuatorSum) -> list[str]:
    """Paths of all actuator parameters for ``ActuatorParameter``, e.g. "stages.0.stiffness"."""
    return [path for path in _paths(actuators, "") if path]


def _stages(actuators: Any) -> list[Any]:
    """All stages of the actuators."""
    return [stage for term in getattr(actuators, "terms", (actuators,)) for stage in term.stages]


def _paths(tree: Any, path: str) -> list[str]:
    if isinstance(tree, tuple):
        return [p for i, part in enumerate(tree) for p in _paths(part, f"{path}{i}.")]
    if isinstance(tree, eqx.Module):
        return [p for name in tree.__dataclass_fields__ for p in _paths(getattr(tree, name), f"{path}{name}.")]
    return [path.rstrip(".")] if hasattr(tree, "dtype") else []


def _follow(tree: Any, path: str) -> Any:
    """The subtree at a path of field names and tuple indices."""
    for name in filter(None, path.split(".")):
        tree = tree[int(name)] if isinstance(tree, tuple) else getattr(tree, name)
    return tree
