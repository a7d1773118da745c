"""The points at which lgsim.lie is tested: every decade, both sides of every switch, pi, beyond; translations of 1."""

from __future__ import annotations

import numpy as np

from lgsim.lie import series

PI = np.pi
SMALL = [0.0, 1e-300, *(10.0**-k for k in range(12, 0, -1))]
NEAR_PI = [PI - 10.0**-k for k in range(1, 13)]
UP_TO_PI = [*SMALL, 0.5, 1.0, 2.0, 3.0, *NEAR_PI, PI]
BEYOND_PI = [PI + 1e-12, PI + 1e-6, PI + 1e-2, 4.0, 5.0]
NEAR_TWO_PI = [6.0, 2 * PI - 1e-1, 2 * PI - 1e-2, 2 * PI - 1e-3]
LARGE = [10.0, 100.0, 1e4]
# where the arctangent of log reduces its argument, for half the angle
LOG_SWITCHES = [PI / 4, PI / 2, 3 * PI / 4]

MODULES = ("so2", "se2", "so3", "se3", "quaternion")
# the components that rotate
ROTATION = {"so2": [0], "se2": [2], "so3": [0, 1, 2], "se3": [3, 4, 5], "quaternion": [0, 1, 2]}
DIM = {"so2": 1, "se2": 3, "so3": 3, "se3": 6, "quaternion": 3}


def switches(dtype) -> np.ndarray:
    """Every x = theta^2 at which a coefficient changes its branch."""
    return np.unique(np.asarray([x for xs in series.switches(np.dtype(dtype)).values() for x in xs], dtype=dtype))


def neighbors(x: np.ndarray) -> np.ndarray:
    """Each x with the two floats on either side."""
    below, above = np.nextafter(x, x.dtype.type(-1)), np.nextafter(x, x.dtype.type(np.inf))
    return np.concatenate(
        [np.nextafter(below, x.dtype.type(-1)), below, x, above, np.nextafter(above, np.inf, dtype=x.dtype)]
    )


def switch_angles(dtype, low: float = 0.0, high: float = 6.0) -> list[float]:
    """Angles just below and above each switch : of theta^2, of (theta/2)^2, of log."""
    roots = np.sqrt(switches(dtype))
    at = np.concatenate([roots, 2 * roots, LOG_SWITCHES]).astype(dtype)
    both = np.concatenate([np.nextafter(at, dtype(0)), np.nextafter(at, dtype(np.inf))])
    return [float(a) for a in both if low < a < high]


def twist(module: str, angle: float, rng: np.random.Generator, dtype, axis: str = "random") -> np.ndarray:
    """An algebra vector that rotates by `angle` (as near as the dtype allows) with a translation of size 1."""
    out = rng.standard_normal(DIM[module])
    rotation = ROTATION[module]
    translation = [i for i in range(DIM[module]) if i not in rotation]
    if translation:
        out[translation] /= np.linalg.norm(out[translation])
    if axis == "random":
        out[rotation] *= angle / np.linalg.norm(out[rotation])
    else:
        out[rotation] = 0.0
        out[rotation[-1]] = angle
    return out.astype(dtype)


def twists(module: str, angles, dtype, seed: int = 0, switches=()) -> tuple[np.ndarray, np.ndarray]:
    """Algebra vectors (n, dim) and their angles (n,): about a random axis and the last one; near switches only one."""
    rng = np.random.default_rng(seed)
    pairs = [(a, axis) for a in angles for axis in ("random", "last")]
    pairs += [(a, ("random", "last")[i % 2]) for i, a in enumerate(switches)]
    return (
        np.stack([twist(module, a, rng, dtype, axis) for a, axis in pairs]),
        np.array([a for a, _ in pairs]),
    )
