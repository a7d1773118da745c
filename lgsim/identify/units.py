"""Units of measured columns, as factors to SI."""

from __future__ import annotations

import math
from typing import NamedTuple


class Unit(NamedTuple):
    """A factor to SI units, and what it measures."""

    factor: float
    dimension: str


_BASES = {
    "angle": {"rad": 1.0, "mrad": 1e-3, "deg": math.pi / 180, "rev": 2 * math.pi},
    "length": {"m": 1.0, "cm": 1e-2, "mm": 1e-3, "um": 1e-6, "in": 0.0254},
}
_PER = {
    "": "", "/s": "/time", "/min": "/time", "/s^2": "/time^2",
}  # fmt: skip
_SECONDS = {"": 1.0, "/s": 1.0, "/min": 1 / 60, "/s^2": 1.0}

UNITS = {
    f"{name}{per}": Unit(factor * _SECONDS[per], dimension + suffix)
    for dimension, names in _BASES.items()
    for name, factor in names.items()
    for per, suffix in _PER.items()
} | {
    "rpm": Unit(2 * math.pi / 60, "angle/time"),
    "g": Unit(9.80665, "length/time^2"),
    "s": Unit(1.0, "time"), "ms": Unit(1e-3, "time"), "us": Unit(1e-6, "time"), "ns": Unit(1e-9, "time"),
    "min": Unit(60.0, "time"),
    "Nm": Unit(1.0, "torque"), "mNm": Unit(1e-3, "torque"), "kNm": Unit(1e3, "torque"), "Ncm": Unit(1e-2, "torque"),
    "N": Unit(1.0, "force"), "mN": Unit(1e-3, "force"), "kN": Unit(1e3, "force"),
    "A": Unit(1.0, "current"), "mA": Unit(1e-3, "current"),
    "-": Unit(1.0, "number"), "1": Unit(1.0, "number"),
}  # fmt: skip
"""By name, in the spelling that ``unit`` makes of others."""

_SPELLINGS = {
    " ": "", "·": "", "*": "", ".": "", "°": "deg", "µ": "u", "μ": "u", "²": "^2", "/sec": "/s", "/s/s": "/s^2",
    "**2": "^2", "degrees": "deg", "radians": "rad",
}  # fmt: skip


def unit(name: str) -> Unit | None:
    """The unit of a name such as "deg/s", "N m" or "rad/s²"; None where it is none."""
    plain = name.strip()
    for spelling, own in sorted(_SPELLINGS.items(), key=lambda pair: -len(pair[0])):
        plain = plain.replace(spelling, own)
    plain = f"{plain}^2".replace("s2^2", "s^2") if plain.endswith("/s2") else plain
    return UNITS.get(plain)


def known(dimension: str) -> str:
    """The names of the units that measure it, for messages."""
    return ", ".join(name for name, one in UNITS.items() if one.dimension == dimension)
