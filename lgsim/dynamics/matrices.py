"""Small dense matrices (n, m, *batch) in loops and elementwise sums, as native functions on CPU want them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lgsim.spatial import batch_last, cut

TERMS = 8
"""Of a sum that are added at once: with fewer what was added is moved more often, with more the code gets slow."""


def pairs(f: Callable[[Any, Any], Array], x: Any, y: Any) -> Array:
    """``out[i, j] = f(x_i, y_j)`` of components (n, *batch)."""
    return f(jax.tree.map(lambda a: a[:, None], x), jax.tree.map(lambda a: a[None], y))


def masked(mask: np.ndarray, array: Array) -> Array:
    """The array where the static mask (n, m) holds, else zero."""
    if mask.all():
        return array
    return jnp.where(mask.reshape(mask.shape + (1,) * (array.ndim - 2)), array, 0)


def inverse(A: Array) -> Array:
    """Of positive definite matrices (n, n, *batch): n symmetric sweeps in place."""
    n = A.shape[0]
    index = np.arange(n).reshape((n,) + (1,) * (A.ndim - 2))

    def sweep(k: Any, A: Array) -> Array:
        row = cut(A[k])
        scale = cut(1 / row[k])
        column = cut(row * scale[None])
        A = cut(A - row[:, None] * column[None])
        column = jnp.where(index == k, -scale[None], column)
        return A.at[:, k].set(column).at[k].set(column)

    return -jax.lax.fori_loop(0, n, sweep, A)


def times(A: Array, x: Array) -> Array:
    """Matrix (n, m, *batch) times vector (m, *batch)."""
    zero = jnp.zeros((A.shape[0], *jnp.broadcast_shapes(A.shape[2:], x.shape[1:])), x.dtype)
    return summed(A.shape[1], lambda k: A[:, k] * x[k][None], zero)


def product(A: Array, B: Array, start: Array | None = None) -> Array:
    """Matrix (n, k, *batch) times matrix (k, m, *batch), added to ``start``."""
    if start is None:
        batch = jnp.broadcast_shapes(A.shape[2:], B.shape[2:])
        start = jnp.zeros((A.shape[0], B.shape[1], *batch), B.dtype)
    return summed(A.shape[1], lambda k: A[:, k][:, None] * B[k][None], start)


def summed(count: int, term: Callable[[Any], Array], start: Array) -> Array:
    """``start + term(0) + ... + term(count - 1)``, some terms at a time."""
    step = count // -(-count // TERMS) if count else 1
    loops = count // step

    def add(i: Any, total: Array) -> Array:
        return total + sum(term(i * step + j) for j in range(step))

    total = jax.lax.fori_loop(0, loops, add, start)
    return sum((term(k) for k in range(loops * step, count)), total)


matvec = batch_last(times)
"""A x of one matrix (n, m) and one vector (m,), as a native function."""
