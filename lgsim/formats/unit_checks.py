"""Detection of values in other units: degrees for radians, millimeters for meters."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float

DEGREES = (4 * math.pi, 720.0)
"""Angle limits between two turns in radians and in degrees are suspicious; larger ones mean no limit."""
LONGEST = 20.0
"""Lengths and prismatic limits above this value, m, are probably millimeters."""
ENDLESS = 1e5
"""Values above this one, m, are no lengths of a robot in millimeters either: as limits they mean no limit."""


def odd_range(turns: bool, lower: float, upper: float) -> str:
    """Description of suspicious limits of a revolute or prismatic joint, rad or m; "" if they are plausible."""
    size = max(abs(lower), abs(upper))
    if turns and DEGREES[0] < size <= DEGREES[1]:
        return f"has limits of {lower:g} to {upper:g} rad: looks like degrees"
    if not turns and LONGEST < size <= ENDLESS:
        return f"has limits of {lower:g} to {upper:g} m: millimeters?"
    return ""


def odd_length(what: str, vector: Float[np.ndarray, " 3"]) -> str:
    """Description of a suspicious length of a vector, m, starting with ``what``; "" if it is plausible."""
    length = float(np.linalg.norm(vector))
    return f"{what} {length:.4g} m: millimeters?" if LONGEST < length <= ENDLESS else ""


def odd_limit(kind: str, value: float) -> str:
    """Description of a speed or effort limit of zero; "" for other values."""
    if value != 0:
        return ""
    else_where = ", in optimize as a joint without an actuator" if kind == "effort" else ""
    return f"has {'an' if kind == 'effort' else 'a'} {kind} limit of 0: not given? It counts as none{else_where}"
