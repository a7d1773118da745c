"""Numbers of a contact from what is known of a machine: how deep it may sink, how it bounces or comes to rest."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from lgsim.multibody.model import Model, check_model
from lgsim.support import check

_HALVINGS = 200


class ContactAdvice(NamedTuple):
    """Numbers for ``ModelBuilder.add_contact``, and what they mean for steps.

    Attributes:
        stiffness: N/m^exponent.
        dissipation: s/m.
        rate: Of the oscillation about rest, ``sqrt(exponent g / depth)``, rad/s: explicit steps of order four bear dt
            up to 2.5 / rate and are exact well below.
        friction_rate: ``g / slip_speed`` for a friction of 1, 1/s: what friction adds to the rates, times the friction
            and the ratio of the whole mass to that which slips.
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
    """The stiffness with which a machine sinks in by ``depth``, and the dissipation that brings it to rest.

    At rest ``m g = points stiffness depth^exponent``. Small oscillations about rest die out as
    ``exp(-t / duration)`` with ``dissipation = 2 / (g duration)``; an impact that comes with the speed u leaves with
    ``restitution u`` where ``x - log(1 + x) = - y - log(1 - y)``, x = dissipation u, y = restitution x, whatever the
    stiffness, the exponent and the mass.

    Args:
        model: The machine; its mass and gravity are taken.
        depth: How deep the machine sinks in at rest, m.
        duration: The time in which oscillations about rest fall to 1/e, s; or
        restitution: Speed after over speed before an impact, above 0 and at most 1. Without both there is no
            dissipation.
        speed: Of the impact, m/s.
        points: The number of points that carry the machine.
        exponent: Of the law.
        slip_speed: Of the law, m/s.

    Raises:
        ValueError: a number is not positive, the machine has no weight, or both duration and restitution are given.

    Source: Hunt and Crossley 1975, for the law; its first integral, for the restitution.
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
        raise ValueError(f"model: expected a machine with weight, got a mass of {mass:g} kg and gravity {g:g} m/s^2")
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
