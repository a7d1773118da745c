"""Suggested contact parameters from the weight of a robot: static penetration, bounce and settling time."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from lgsim.multibody.model import Model, check_model
from lgsim.support import check

_HALVINGS = 200


class ContactAdvice(NamedTuple):
    """Parameters for ``ModelBuilder.add_contact``, and the step sizes that they allow.

    Attributes:
        stiffness: Stiffness, N/m^exponent.
        dissipation: Hunt-Crossley dissipation, s/m.
        rate: Angular frequency of the oscillation about rest, ``sqrt(exponent g / depth)``, rad/s. Explicit methods of
            order four are stable for dt up to 2.5 / rate, and accurate well below it.
        friction_rate: ``g / slip_speed``, 1/s, for a friction coefficient of 1. Friction adds this rate times the
            coefficient and the ratio of the total mass to the slipping mass.
    """

    stiffness: float
    dissipation: float
    rate: float
    friction_rate: float


def suggest_contact(
    model: Model,
    *,
    depth: float,
    duration: float | None = None,
    restitution: float | None = None,
    speed: float = 1.0,
    points: int = 1,
    exponent: float = 1.5,
    slip_speed: float = 0.01,
) -> ContactAdvice:
    """Contact parameters for a given penetration at rest, and for a given settling time or restitution.

    At rest ``m g = points stiffness depth^exponent``. Small oscillations about rest decay as
    ``exp(-t / duration)`` with ``dissipation = 2 / (g duration)``. An impact at speed u rebounds at
    ``restitution u``, where ``x - log(1 + x) = - y - log(1 - y)``, x = dissipation u, y = restitution x. This holds
    for any stiffness, exponent and mass.

    Args:
        model: The robot; its mass and gravity are used.
        depth: Penetration at rest, m.
        duration: Time constant of oscillations about rest, s. Give either this or ``restitution``.
        restitution: Ratio of the speeds after and before an impact, above 0 and at most 1. Without ``duration`` and
            ``restitution`` there is no dissipation.
        speed: Impact speed for the restitution, m/s.
        points: The number of points that carry the robot.
        exponent: Exponent of the contact law.
        slip_speed: Speed at which friction is regularized, m/s.

    Raises:
        ValueError: an argument is not positive, the model has no weight, or both duration and restitution are given.

    Source: Hunt and Crossley 1975 for the contact law; the restitution follows from its first integral.
    """
    check_model(model)
    given = {"depth": depth, "duration": duration, "speed": speed, "points": points, "slip_speed": slip_speed}
    for name, value in given.items():
        if value is not None:
            check.number(name, value)
        if value is not None and not (math.isfinite(value) and value > 0):
            raise ValueError(f"{name}: expected a positive number, got {value}")
    if not (math.isfinite(exponent) and exponent >= 1):
        raise ValueError(f"exponent: expected 1 or more, got {exponent}")
    if restitution is not None and not 0 < restitution <= 1:
        raise ValueError(f"restitution: expected a number above 0 and at most 1, got {restitution}")
    if duration is not None and restitution is not None:
        raise ValueError("duration, restitution: expected one of them, got both; each sets the dissipation")
    mass = float(np.sum(np.asarray(model.inertias, float)[:, 0]))
    g = float(np.linalg.norm(np.asarray(model.gravity, float)))
    if not mass * g > 0:
        raise ValueError(f"model: expected a model with weight, got a mass of {mass:g} kg and gravity {g:g} m/s^2")
    dissipation = 0.0
    if duration is not None:
        dissipation = 2 / (g * duration)
    elif restitution is not None and restitution < 1:
        dissipation = _approach(restitution) / speed
    stiffness = mass * g / (points * depth**exponent)
    return ContactAdvice(stiffness, dissipation, math.sqrt(exponent * g / depth), g / slip_speed)


def _approach(restitution: float) -> float:
    """The x > 0 with ``x - log(1 + x) = - e x - log(1 - e x)``, by bisection between 0 and 1/e."""
    low, high = 0.0, 1 / restitution
    for _ in range(_HALVINGS):
        x = 0.5 * (low + high)
        y = restitution * x
        before = x - math.log1p(x)
        after = -y - math.log1p(-y) if y < 1 else math.inf
        low, high = (x, high) if before > after else (low, x)
    return 0.5 * (low + high)
