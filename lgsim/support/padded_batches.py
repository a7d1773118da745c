"""A function of many states in batches of few sizes, so that no other number of states compiles it again."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import numpy as np

SIZES = (8, 64, 512)
"""The sizes of batches: a number of states is one of them, of the largest one as many as needed."""


def in_padded_batches(f: Callable[..., Any], *arrays: Any) -> Any:
    """``f(*arrays)`` as arrays of numpy, for a function that treats each entry of the leading axes alone.

    The last entry is repeated to the size of a batch, and what comes of the repetitions is left out.

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
