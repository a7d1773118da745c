"""The parameters of a fit as table rows, and the units of its signals."""

from __future__ import annotations

import math
from typing import NamedTuple

from lgsim.identify import Fit
from lgsim.simulation.trajectory import tau_names


class Number(NamedTuple):
    """One physical parameter of a model.

    Attributes:
        deviation: Standard error of the estimate; infinite if it is not identifiable from the recordings.
    """

    name: str
    unit: str
    prior: float
    found: float
    deviation: float

    @property
    def significance(self) -> str:
        """Change from the prior in standard errors, or the reason for a missing value."""
        if not math.isfinite(self.deviation):
            return "not identifiable"
        if self.deviation == 0:
            return "held"
        return f"{abs(self.found - self.prior) / self.deviation:.1f}"


def number_rows(fit: Fit) -> list[Number]:
    """All physical parameters of a fit."""
    rows = []
    for key, found in fit.values.items():
        name, _, unit = key.rpartition(", ")
        rows.append(Number(name, unit, fit.prior[key], found, fit.deviations[key]))
    return rows


def _force_units(fit: Fit) -> list[str]:
    """Unit of each joint force (nv): N m or N."""
    return [name.rpartition("[")[2].rstrip("]") for name in tau_names(fit.model)]


def position_units(fit: Fit) -> list[str]:
    """Unit of each degree of freedom (nv): rad or m."""
    return ["rad" if "m" in unit else "m" for unit in _force_units(fit)]


def column_units(fit: Fit) -> list[str]:
    """Unit of each column of the residuals; "" for sensors other than joint sensors."""
    signals = fit.estimator.signals(fit.parameters, fit.samples)
    return [""] * len(fit.estimate.noise) if signals is None else signals.units
