"""Unknown parameters of contacts: force law, shapes and surfaces."""

from __future__ import annotations

from collections.abc import Sequence

import equinox as eqx
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float

from lgsim.identify.unknowns.block import NumberBlock, select_names
from lgsim.identify.unknowns.plant import NumbersLike, Plant
from lgsim.multibody.model import Model
from lgsim.support.check import unknown_name

UNITS = {
    "stiffness": "N/m^exponent", "exponent": "1", "dissipation": "s/m", "friction": "1",
    "viscous": "N s/m^(1+exponent)", "slip_speed": "m/s", "stribeck": "1", "stribeck_speed": "m/s",
    "spin_speed": "rad/s", "scale": "1",
}  # fmt: skip
"""Units of the contact parameters; all others are lengths, m."""


class ContactParameter(NumberBlock):
    """One parameter of contacts, such as ``ContactParameter("friction")``.

    A coordinate is the difference from the prior value, or with ``relative`` the logarithm of their ratio, which
    preserves the sign and has no unit: a stiffness of 1e5 then has the same scale as a friction of 1. ``SharedBlock``
    makes one coordinate for all feet. Fits by simulation (``SimulationFit``) support contacts, fits of joint torques do
    not.

    Attributes:
        number: A name of ``Model.contact_numbers``.
        contacts: Names of the contacts, by default all that have the parameter.
        relative: True for logarithmic coordinates; static.
        lower: Lower bounds of the parameter itself, one value or one for each contact; by default zero, 1 for an
            exponent, none for the size of a surface.
        upper: Upper bounds of the parameter itself, one value or one for each contact.

    Raises:
        ValueError: a contact does not exist or does not have this parameter.
    """

    number: str = eqx.field(static=True)
    contacts: Sequence[str] | None = eqx.field(static=True)
    prior_deviation: NumbersLike | None
    relative: bool = eqx.field(static=True)
    lower: ArrayLike
    upper: ArrayLike

    def __init__(
        self,
        number: str,
        contacts: Sequence[str] | None = None,
        prior_deviation: NumbersLike | None = None,
        relative: bool = False,
        lower: ArrayLike | None = None,
        upper: ArrayLike = np.inf,
    ) -> None:
        self.number, self.contacts, self.prior_deviation = number, contacts, prior_deviation
        self.relative, self.upper = relative, upper
        least = 1.0 if number == "exponent" else -np.inf if number.startswith("surface_") else 0.0
        self.lower = least if lower is None else lower

    def names(self, model: Model) -> list[str]:
        """Names of the contacts."""
        have = [c.name for c in model.topology.contacts if self.number in c.columns]
        if not have:
            known = sorted({column for c in model.topology.contacts for column in c.columns})
            if not known:
                raise ValueError("contacts: the plant's model has no contacts; add some with Model.add_contact")
            raise unknown_name("number: expected a parameter of a contact", self.number, known)
        return list(select_names("contacts", self.contacts, have))

    def read(self, plant: Plant) -> Float[Array, " size"]:
        return plant.model.contacts[self._places(plant.model)]

    def labels(self, plant: Plant) -> list[str]:
        return [f"{self.number} of contact {name}" for name in self.names(plant.model)]

    @property
    def unit(self) -> str:
        """The unit of the parameter."""
        return UNITS.get(self.number, "m")

    def write(self, plant: Plant, numbers: Float[Array, " size"]) -> Plant:
        new = plant.model.contacts.at[self._places(plant.model)].set(numbers)
        return eqx.tree_at(lambda p: p.model.contacts, plant, new)

    def _places(self, model: Model) -> tuple[np.ndarray, np.ndarray]:
        """Rows and columns of the parameter in ``Model.contacts``."""
        rows = [model.contact_names.index(name) for name in self.names(model)]
        columns = [model.topology.contacts[row].columns.index(self.number) for row in rows]
        return np.array(rows), np.array(columns)
