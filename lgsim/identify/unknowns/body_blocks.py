"""What can be identified of bodies, as coordinates that are zero at the prior."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array

from lgsim.identify.unknowns.plant import Plant
from lgsim.multibody import inertia
from lgsim.multibody.inertia import COORDINATES, from_log_cholesky
from lgsim.multibody.model import Model


class Block(eqx.Module):
    """Some numbers of a plant, as coordinates x (size,) that are zero at the prior.

    Attributes:
        prior: Standard deviation of the coordinates about the prior, one number or (size,); None for no belief.
    """

    # no field here, so that bodies and joints are the first arguments of blocks
    prior = None

    @abstractmethod
    def labels(self, plant: Plant) -> list[str]:
        """A name for each coordinate.

        Raises:
            ValueError: a body or joint does not exist.
        """

    @abstractmethod
    def put(self, plant: Plant, x: Array) -> Plant:
        """The plant with its numbers moved by x from those it has."""

    @abstractmethod
    def values(self, plant: Plant) -> dict[str, Array]:
        """The physical numbers behind the coordinates by name and unit."""

    def affine(self, model: Model) -> np.ndarray | None:
        """Which of ``Plant.numbers`` it moves; None where it moves others, in which signals are not affine."""
        return None

    @property
    def linear(self) -> bool:
        """Whether its coordinates are the numbers ``affine`` themselves, less those of the prior."""
        return False

    def bounds(self, plant: Plant) -> tuple[Any, Any]:
        """(lower, upper) of the coordinates; infinite by default."""
        return -np.inf, np.inf


class _OfBodies(Block):
    """Numbers of bodies.

    Attributes:
        bodies: Their names, by default all.
    """

    bodies: Sequence[str] | None = eqx.field(static=True, default=None)
    prior: Any = None

    def names(self, model: Model) -> list[str]:
        return named("bodies", self.bodies, model.body_names)

    def places(self, model: Model) -> np.ndarray:
        return np.array([model.body_names.index(name) for name in self.names(model)])

    def affine(self, model: Model) -> np.ndarray:
        return (10 * self.places(model)[:, None] + np.arange(10)).reshape(-1)


class Inertias(_OfBodies):
    """All ten parameters of bodies, always physically consistent: log-Cholesky coordinates about the prior.

    The pseudo-inertia of a body is ``U L(x) L(x)^T U^T``, where ``U U^T`` is its prior and ``L L^T`` the matrix that
    ``lgsim.multibody.inertia_chart`` makes of x: coordinates without units, the same for large bodies and small ones.
    The mass is ``exp(2 alpha)`` times the prior's, and t moves the centre of mass in parts of the body's own spread.

    Attributes:
        prior: By default 1, a weak belief: the mass is known to a factor of seven. It keeps what the records do not
            show where it was; None for no belief.
    """

    prior: Any = 1.0

    def labels(self, plant: Plant) -> list[str]:
        return [f"{c} of {name}" for name in self.names(plant.model) for c in COORDINATES]

    def put(self, plant: Plant, x: Array) -> Plant:
        at = self.places(plant.model)
        U = upper_factor(inertia.pseudo_inertia(plant.model.inertias[at]))
        middle = inertia.pseudo_inertia(from_log_cholesky(x.reshape(-1, 10)))
        return _with_rows(plant, at, inertia.from_pseudo_inertia(U @ middle @ U.mT))

    def values(self, plant: Plant) -> dict[str, Array]:
        rows = plant.model.inertias[self.places(plant.model)]
        units = ("kg", *["kg m"] * 3, *["kg m^2"] * 6)
        return {
            f"{symbol} of {name}, {unit}": rows[i, k]
            for i, name in enumerate(self.names(plant.model))
            for k, (symbol, unit) in enumerate(zip(inertia.PARAMETERS, units, strict=True))
        }


class StandardParameters(_OfBodies):
    """All ten parameters of bodies as they are: joint forces are linear in them, and nothing keeps them physical."""

    @property
    def linear(self) -> bool:
        return True

    def labels(self, plant: Plant) -> list[str]:
        return [f"{c} of {name}" for name in self.names(plant.model) for c in inertia.PARAMETERS]

    def put(self, plant: Plant, x: Array) -> Plant:
        at = self.places(plant.model)
        return _with_rows(plant, at, plant.model.inertias[at] + x.reshape(-1, 10))

    def values(self, plant: Plant) -> dict[str, Array]:
        return Inertias(self.bodies).values(plant)


class Masses(_OfBodies):
    """Masses of bodies whose centres of mass and inertias for each kg are known: the logarithm of the mass."""

    def labels(self, plant: Plant) -> list[str]:
        return [f"log mass of {name}" for name in self.names(plant.model)]

    def put(self, plant: Plant, x: Array) -> Plant:
        at = self.places(plant.model)
        return _with_rows(plant, at, plant.model.inertias[at] * jnp.exp(x)[:, None])

    def values(self, plant: Plant) -> dict[str, Array]:
        rows = plant.model.inertias[self.places(plant.model)]
        return {f"m of {name}, kg": rows[i, 0] for i, name in enumerate(self.names(plant.model))}


class CentersOfMass(_OfBodies):
    """Centres of mass of bodies whose masses and central inertias are known, m."""

    def labels(self, plant: Plant) -> list[str]:
        return [f"{axis} of the centre of {name}" for name in self.names(plant.model) for axis in "xyz"]

    def put(self, plant: Plant, x: Array) -> Plant:
        at = self.places(plant.model)
        mass, center, central = inertia.mass_center_inertia(plant.model.inertias[at])
        return _with_rows(plant, at, inertia.parameters(mass, center + x.reshape(-1, 3), central))

    def values(self, plant: Plant) -> dict[str, Array]:
        _, center, _ = inertia.mass_center_inertia(plant.model.inertias[self.places(plant.model)])
        names = self.names(plant.model)
        return {f"{c} of {name}, m": center[i, k] for i, name in enumerate(names) for k, c in enumerate("xyz")}


def upper_factor(matrix: Array) -> Array:
    """U, upper triangular with ``U U^T`` a positive definite matrix (..., n, n)."""
    # the Cholesky factor of the matrix in reverse order
    return jnp.flip(jnp.linalg.cholesky(jnp.flip(matrix, (-2, -1))), (-2, -1))


def named(argument: str, wanted: Sequence[str] | None, known: Sequence[str]) -> list[str]:
    """The names wanted, by default all known ones; ValueError where one does not exist."""
    if wanted is None:
        return list(known)
    if isinstance(wanted, str):
        raise ValueError(f"{argument}: expected a list of names, got the text {wanted!r}; write [{wanted!r}]")
    for name in wanted:
        if name not in known:
            near = get_close_matches(name, known) or known
            raise ValueError(f"{argument}: there is no {name!r}; expected some of {', '.join(near)}")
    return list(wanted)


def _with_rows(plant: Plant, at: np.ndarray, rows: Array) -> Plant:
    return eqx.tree_at(lambda p: p.model.inertias, plant, plant.model.inertias.at[at].set(rows))
