"""Evaluation of a function at many states in batches of a few sizes, to avoid recompilation for other numbers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import numpy as np

SIZES = (8, 64, 512)
"""The batch sizes; larger numbers of states use the largest one repeatedly."""


def in_padded_batches(f: Callable[..., Any], *arrays: Any) -> Any:
    """``f(*arrays)`` as numpy arrays, for a function that treats each entry of the leading axes separately.

    The last entry is repeated to fill a batch, and the results of the repetitions are discarded.

    Args:
        f: A compiled function of arrays (m, ...), whose results have the leading axis m too.
        arrays: Arrays (n, ...) or None, n at least 1.
    """
    count = next(len(x) for x in arrays if x is not None)
    size = next((size for size in SIZES if size >= count), SIZES[-1])
    found = []
    for start in range(0, count, size):
        at = np.minimum(np.arange(start, start + size), count - 1)
        parts = f(*(None if x is None else np.asarray(x)[at] for x in arrays))
        found.append(jax.tree.map(partial(_first, min(size, count - start)), parts))
    return jax.tree.map(lambda *parts: np.concatenate(parts), *found)


def _first(count: int, x: Any) -> np.ndarray:
    return np.asarray(x)[:count]
