"""The numbers of a fit as rows of a table, and the units of its signals."""

from __future__ import annotations

import math
from typing import NamedTuple

from lgsim.identify import Fit, PositionSensor, TorqueSamples, VelocitySensor
from lgsim.simulation.trajectory import tau_names


class Number(NamedTuple):
    """One physical number of a machine.

    Attributes:
        deviation: The standard deviation of the value found; infinite where the records do not determine it.
    """

    name: str
    unit: str
    prior: float
    found: float
    deviation: float

    @property
    def significance(self) -> str:
        """The size of the change in standard deviations, in words where there is none."""
        if not math.isfinite(self.deviation):
            return "not seen"
        if self.deviation == 0:
            return "held"
        return f"{abs(self.found - self.prior) / self.deviation:.1f}"


def number_rows(fit: Fit) -> list[Number]:
    """All physical numbers of a fit."""
    rows = []
    for key, found in fit.values.items():
        name, _, unit = key.rpartition(", ")
        rows.append(Number(name, unit, fit.prior[key], found, fit.deviations[key]))
    return rows


def _force_units(fit: Fit) -> list[str]:
    """The unit of each joint force (nv): N m or N."""
    return [name.rpartition("[")[2].rstrip("]") for name in tau_names(fit.model)]


def position_units(fit: Fit) -> list[str]:
    """The unit of each degree of freedom (nv): rad or m."""
    return ["rad" if "m" in unit else "m" for unit in _force_units(fit)]


def column_units(fit: Fit) -> list[str]:
    """The unit of each column of the residuals; "" for sensors other than those of joints."""
    if isinstance(fit.samples, TorqueSamples):
        return _force_units(fit)
    positions = position_units(fit)
    found: list[str] = []
    for channel in fit.samples.channels.values():
        if isinstance(channel.sensor, PositionSensor):
            found += positions
        elif isinstance(channel.sensor, VelocitySensor):
            found += [f"{unit}/s" for unit in positions]
        else:
            found += [""] * len(channel.sensor.labels(fit.model))
    return found
