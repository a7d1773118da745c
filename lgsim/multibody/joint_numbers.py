"""Parameters of each degree of freedom, and their defaults."""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp
import numpy as np

USUAL = {
    "armature": 0.0,
    "damping": 0.0,
    "friction": 0.0,
    "stiffness": 0.0,
    "rest": 0.0,
    "lower": -math.inf,
    "upper": math.inf,
    "velocity_limit": math.inf,
    "effort_limit": math.inf,
    "friction_speed": 0.1,
    "limit_stiffness": 0.0,
    "limit_damping": 0.0,
    "stribeck": 0.0,
    "stribeck_speed": 0.1,
}
"""Defaults of the parameters of a degree of freedom."""

DRIVES = tuple(USUAL)
"""Columns of ``Model.drives``."""


def stored(numbers: dict[str, Any]) -> dict[str, Any]:
    """Convert named parameters to the arrays that store them; NumPy arrays if all are NumPy arrays."""
    left = dict(numbers)
    # NumPy compiles nothing
    library = np if all(isinstance(x, np.ndarray) for x in numbers.values()) else jnp
    if set(DRIVES) & set(left):
        left["drives"] = library.stack([library.asarray(left.pop(name)) for name in DRIVES], axis=1)
    if "axes" in left:
        left["screws"] = library.concatenate(
            [library.asarray(left.pop("axes")), library.asarray(left.pop("pitches"))[:, None]], axis=1
        )
    return left
