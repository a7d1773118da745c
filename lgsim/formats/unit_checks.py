"""Numbers of files that look like other units: degrees for radians, millimeters for meters."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float

DEGREES = (4 * math.pi, 720.0)
"""Limits of an angle between two turns and two turns in degrees; what is larger stands for no limit."""
LONGEST = 20.0
"""Lengths and slides beyond it, m, are rather millimeters."""
ENDLESS = 1e5
"""What is beyond it, m, is no length of a machine in millimeters either: of limits it stands for none."""


def odd_range(turns: bool, lower: float, upper: float) -> str:
    """What is odd about the limits of a joint that turns or slides, rad or m, in words; empty for nothing."""
    size = max(abs(lower), abs(upper))
    if turns and DEGREES[0] < size <= DEGREES[1]:
        return f"has limits of {lower:g} to {upper:g} rad: looks like degrees"
    if not turns and LONGEST < size <= ENDLESS:
        return f"has limits of {lower:g} to {upper:g} m: millimeters?"
    return ""


def odd_length(what: str, vector: Float[np.ndarray, " 3"]) -> str:
    """What is odd about the length of a vector, m, in words that begin with ``what``; empty for nothing."""
    length = float(np.linalg.norm(vector))
    return f"{what} {length:.4g} m: millimeters?" if LONGEST < length <= ENDLESS else ""


def odd_limit(kind: str, value: float) -> str:
    """What is odd about a limit of speed or effort of zero, in words; empty for nothing."""
    if value != 0:
        return ""
    else_where = ", in optimize as a joint without a drive" if kind == "effort" else ""
    return f"has {'an' if kind == 'effort' else 'a'} {kind} limit of 0: not given? It counts as none{else_where}"
