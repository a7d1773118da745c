"""The numbers of a fit as rows: name, unit, prior, found, how sure."""

from __future__ import annotations

import math
from typing import NamedTuple

from lgsim.identify import Fit
from lgsim.simulation.trajectory import tau_names


class Number(NamedTuple):
    """One physical number."""

    name: str
    unit: str
    prior: float
    found: float
    deviation: float

    @property
    def sure(self) -> str:
        """How far from zero the change is, in deviations."""
        if not math.isfinite(self.deviation):
            return "not seen"
        if self.deviation == 0:
            return "held"
        return f"{abs(self.found - self.prior) / self.deviation:.1f}"


def numbers(fit: Fit) -> list[Number]:
    """All of a fit."""
    rows = []
    for key, found in fit.values.items():
        name, _, unit = key.rpartition(", ")
        rows.append(Number(name, unit, fit.prior[key], found, fit.deviations[key]))
    return rows


def units(fit: Fit) -> tuple[list[str], list[str]]:
    """(unit of each coordinate along v, unit of each joint force)."""
    forces = [name.rpartition("[")[2].rstrip("]") for name in tau_names(fit.model)]
    return ["rad" if "m" in unit else "m" for unit in forces], forces
