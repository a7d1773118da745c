"""Use of joint limits by a motion: positions, speeds and torques, with joint, time and value.

An infinite limit counts as no limit. So do a zero limit, which files write for a missing one, and a position range of
length zero. The functions work in numpy on computed states.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from lgsim.multibody.joints import Spherical
from lgsim.multibody.model import Model
from lgsim.support.messages import counted
from lgsim.support.printable import printable

ROUNDING = 1e-6
"""The fraction of a limit by which rounding may exceed it."""
LISTED = 5
"""The largest number of joints that a warning names."""
TURNS = 4 * np.pi
"""An angle above this, two turns, looks like degrees."""
FAR = 2
"""The fraction of its limit above which an angle looks like degrees rather than slightly too large."""
BALL = ("swing", "angle", "twist")
"""The quantities of the position limits of a ball joint."""

History = Float[np.ndarray, "_ _"]
"""Histories of states, one row each; positions and velocities may differ in number."""
Numbers = Float[np.ndarray, " nv"]


class LimitParts(NamedTuple):
    """The fraction of its limit that each degree of freedom uses in each state, (times, nv); NaN without a limit.

    Attributes:
        position: The distance from the middle of the range, relative to half its length; for a range with one end
            infinity outside, and NaN inside. Ball joints have swing, angle and twist. None without configurations.
        speed: ``|v|`` divided by the velocity limit; None without velocities.
        torque: ``|tau|`` divided by the effort limit; None without joint forces.
    """

    position: History | None
    speed: History | None
    torque: History | None


class LimitUse(NamedTuple):
    """The largest use of one limit over some states.

    Attributes:
        kind: The limited quantity: "position", "speed" or "torque".
        joint: The joint, with the index of the degree of freedom where it has several.
        part: The fraction of the limit that is used; above 1 the limit is exceeded.
        value: The value that uses most of it, with its sign.
        limit: The lower and the upper limit.
        unit: The unit of the value and its limits.
        time: The time at which it occurs, s; NaN where it is unknown.
    """

    kind: str
    joint: str
    part: float
    value: float
    limit: tuple[float, float]
    unit: str
    time: float

    @property
    def passed(self) -> bool:
        """True if the value exceeds its limit by more than rounding."""
        return self.part > 1 + ROUNDING

    def __str__(self) -> str:
        at = "" if np.isnan(self.time) else f" at {self.time:.4g} s"
        return printable(f"{self.joint} {self.value:.4g} {self.unit}{at}")


def limit_parts(
    model: Model, q: History | None = None, v: History | None = None, tau: History | None = None
) -> LimitParts:
    """The fraction of its limit that each degree of freedom uses in each state; see ``LimitParts``.

    Args:
        q: Configurations (times, nq), or None.
        v: Velocities (times, nv), rad/s or m/s, or None.
        tau: Joint forces of the drives (times, nv), N m or N, or None.
    """
    parts = {limited.kind: limited.parts for limited in _limited_numbers(model, q, v, tau)}
    return LimitParts(*(parts.get(kind) for kind in LimitParts._fields))


def limit_uses(
    model: Model,
    q: History | None = None,
    v: History | None = None,
    tau: History | None = None,
    time: Float[np.ndarray, " _"] | None = None,
) -> tuple[LimitUse, ...]:
    """The largest use of each position, speed and torque limit over some states; joints without limits are left out.

    Values that are not finite are ignored.

    Args:
        q: Configurations (times, nq), or None.
        v: Velocities (times, nv), rad/s or m/s, or None.
        tau: Joint forces of the drives (times, nv), N m or N, or None.
        time: Times of the states, s; None where they are unknown.
    """
    found: list[LimitUse] = []
    for limited in _limited_numbers(model, q, v, tau):
        sizes = np.where(np.isfinite(limited.values), limited.parts, np.nan)
        for i in np.flatnonzero(~np.isnan(sizes).all(axis=0)) if len(sizes) else ():
            at = int(np.nanargmax(sizes[:, i]))
            name, unit = limited.names[i]
            limit = float(limited.lower[i]), float(limited.upper[i])
            when = float("nan") if time is None else float(time[at])
            part, value = float(sizes[at, i]), float(limited.values[at, i])
            found.append(LimitUse(limited.kind, name, part, value, limit, unit, when))
    return tuple(found)


def limit_rows(uses: Iterable[LimitUse]) -> list[tuple[str, str]]:
    """One row (name, text) for each kind of limit: the largest fraction used, by which joint, and when."""
    rows = []
    for kind, own in _by_kind(uses):
        worst = own[0]
        # a range with one end has no fraction
        share = f"{100 * worst.part:.3g} % used" if np.isfinite(worst.part) else "exceeded"
        rows.append((f"{kind} limits", f"{share}: {worst}" if worst.part > 0 else "none used"))
    return rows


def limit_warnings(uses: Iterable[LimitUse]) -> list[str]:
    """One sentence for each kind of limit that is exceeded, with the joints that exceed it, worst first."""
    found = []
    for kind, own in _by_kind(uses):
        passed = [use for use in own if use.passed]
        if passed:
            shown = [f"{use} ({_range(use)}, exceeded by {_excess(use):.2g})" for use in passed[:LISTED]]
            more = f" and {counted(len(passed) - LISTED, 'more joint')}" if len(passed) > LISTED else ""
            found.append(f"beyond {kind} limits: {', '.join(shown)}{more}")
    return found


def start_warnings(
    model: Model,
    q: Float[np.ndarray, " nq"] | None = None,
    v: Numbers | None = None,
    tau: Numbers | None = None,
) -> list[str]:
    """Warnings about the initial state: one sentence for each value that exceeds its limit or looks like degrees.

    An angle looks like degrees where it is far beyond its limits but within them if read as degrees, or where it has
    no limits and is more than two turns.

    Args:
        v: Velocity (nv,), rad/s or m/s.
        tau: Prescribed joint forces (nv,), N m or N.
    """
    found = []
    rows = (None if x is None else np.asarray(x, float)[None] for x in (q, v, tau))
    for limited in _limited_numbers(model, *rows):
        for i, (part, x) in enumerate(zip(limited.parts[0].tolist(), limited.values[0].tolist(), strict=True)):
            name, unit = limited.names[i]
            limit = float(limited.lower[i]), float(limited.upper[i])
            use = LimitUse(limited.kind, name, part, x, limit, unit, float("nan"))
            if use.passed:
                verb = "is given" if limited.kind == "torque" else "starts at"
                angle = unit in ("rad", "rad/s") and part > FAR and limit[0] <= math.radians(x) <= limit[1]
                text = f"joint {name!r} {verb} {x:.6g} {unit}, beyond its {limited.kind} limit ({_range(use)})"
                found.append(text + ": looks like degrees" * angle)
            elif np.isnan(part) and unit == "rad" and abs(x) > TURNS:
                found.append(
                    f"joint {name!r} starts at {x:.6g} rad, {abs(x) / (2 * np.pi):.3g} turns: looks like degrees"
                )
    return found


def limited_joints(model: Model) -> Bool[np.ndarray, " nv"]:
    """True for each degree of freedom with a position limit (nv,); for ball joints those of swing, angle and twist."""
    _, lower, upper = _positions(model, np.asarray(model.neutral(), float)[None])
    return _given(lower, upper)


class _LimitedNumbers(NamedTuple):
    """The values of one kind, with their limits, the fractions used, and (joint, unit) of each."""

    kind: str
    values: History
    lower: Numbers
    upper: Numbers
    parts: History
    names: list[tuple[str, str]]


def _limited_numbers(
    model: Model, q: History | None, v: History | None, tau: History | None
) -> Iterator[_LimitedNumbers]:
    """The values of the kinds that are given."""
    if q is not None:
        x, lower, upper = _positions(model, np.asarray(q, float))
        yield _LimitedNumbers("position", x, lower, upper, _parts(x, lower, upper), _names(model, ("rad", "m"), BALL))
    symmetric = (
        ("speed", v, model.velocity_limit, ("rad/s", "m/s")),
        ("torque", tau, model.effort_limit, ("N m", "N")),
    )
    for kind, values, limit, units in symmetric:
        if values is not None:
            x, most = np.asarray(values, float), np.asarray(limit, float)
            yield _LimitedNumbers(kind, x, -most, most, _parts(x, -most, most), _names(model, units))


def _positions(model: Model, q: History) -> tuple[History, Numbers, Numbers]:
    """The values that position limits apply to (times, nv), and the limits; NaN and no limits where there are none."""
    tree = model.topology
    lower, upper = (np.array(x, float) for x in (model.lower, model.upper))
    x = np.full((len(q), model.nv), np.nan)
    for i, joint in enumerate(tree.joints):
        own, of_q = tree.v_slice(i), q[:, tree.q_slice(i)]
        if isinstance(joint, Spherical):
            x[:, own], lower[own], upper[own] = _ball(of_q, lower[own], upper[own])
        elif joint.nq == joint.nv:
            x[:, own] = of_q
        else:
            lower[own], upper[own] = -np.inf, np.inf
    return x, lower, upper


def _ball(q: History, lower: Numbers, upper: Numbers) -> tuple[History, Numbers, Numbers]:
    """Swing, angle, twist of quaternions, the twist within half a turn of the middle of its range, and the limits."""
    w, x, y, z = np.moveaxis(q, 1, 0)
    swing = 2 * np.arctan2(np.hypot(x, y), np.hypot(w, z))
    angle = 2 * np.arctan2(np.hypot(np.hypot(x, y), z), np.abs(w))
    least, most = np.clip(lower[2], -np.pi, np.pi), np.clip(upper[2], -np.pi, np.pi)
    middle = (least + most) / 2
    twist = middle + np.remainder(2 * np.arctan2(z, w) - middle + np.pi, 2 * np.pi) - np.pi
    cones = np.where(upper[:2] < np.pi, upper[:2], np.inf)
    turn = (least, most) if most - least < 2 * np.pi else (-np.inf, np.inf)
    return np.stack([swing, angle, twist], 1), np.array([*-cones, turn[0]]), np.array([*cones, turn[1]])


def _given(lower: Numbers, upper: Numbers) -> Bool[np.ndarray, " nv"]:
    """True for each limit that is given: an end is finite, and the range is not empty."""
    return (np.isfinite(lower) | np.isfinite(upper)) & (upper > lower)


def _parts(x: History, lower: Numbers, upper: Numbers) -> History:
    """The fractions (times, nv) of the limits that values use; NaN where a limit is missing."""
    whole = _given(lower, upper) & np.isfinite(lower) & np.isfinite(upper)
    low, high = (np.where(whole, end, side) for end, side in ((lower, -1.0), (upper, 1.0)))
    half = high / 2 - low / 2
    with np.errstate(over="ignore"):
        parts = np.where(whole, np.abs(x - (low + half)) / half, np.nan)
    outside = _given(lower, upper) & ~whole & ((x < lower) | (x > upper))
    return np.where(outside, np.inf, parts)


def _names(model: Model, units: tuple[str, str], ball: Sequence[str] = ()) -> list[tuple[str, str]]:
    """The name and unit of each degree of freedom, rotational or translational; ball joints may get other names."""
    names = []
    for name, joint, mimic in zip(model.joint_names, model.topology.joints, model.topology.mimics, strict=True):
        if mimic is None:
            for i, row in enumerate(joint.rows):
                number = f" {ball[i]}" if ball and isinstance(joint, Spherical) else f"[{i}]"
                names.append((name + number * (joint.nv > 1), units[0] if row.turns else units[1]))
    return names


def _by_kind(uses: Iterable[LimitUse]) -> Iterator[tuple[str, list[LimitUse]]]:
    """The uses grouped by kind, largest fractions first."""
    given = list(uses)
    for kind in LimitParts._fields:
        own = sorted((use for use in given if use.kind == kind), key=lambda use: -use.part)
        if own:
            yield kind, own


def _excess(use: LimitUse) -> float:
    """The amount by which a value exceeds its limit, in its unit."""
    return max(use.value - use.limit[1], use.limit[0] - use.value)


def _range(use: LimitUse) -> str:
    """The limits of a value as text."""
    low, high = use.limit
    if low == -high:
        return f"limit {high:.4g} {use.unit}"
    return f"{low:.4g} to {high:.4g} {use.unit}".replace("inf", "infinity")
