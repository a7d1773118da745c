"""Small dense matrices (n, m, *batch) in loops and elementwise sums, as native functions on CPU want them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lgsim.xla import batch_last, fusion_barrier

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
        row = fusion_barrier(A[k])
        scale = fusion_barrier(1 / row[k])
        column = fusion_barrier(row * scale[None])
        A = fusion_barrier(A - row[:, None] * column[None])
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


def transpose(A: Array) -> Array:
    """The transpose of (n, m, *batch)."""
    return jnp.swapaxes(A, 0, 1)


def sum_rows(x: Array) -> Array:
    """The sum over the first axis."""
    return summed(len(x), lambda i: x[i], jnp.zeros_like(x[0]))


def dot(x: Array, y: Array) -> Array:
    """The scalar product of (n, *batch) and (n, *batch)."""
    return summed(len(x), lambda i: x[i] * y[i], jnp.zeros_like(x[0] * y[0]))


def inverse_if_definite(A: Array) -> tuple[Array, Array]:
    """(inverse, whether it is positive definite) of symmetric matrices (m, m, *batch), by sweeps in place.

    The pivots are those of an LDL factorization; what is not definite has an inverse that means nothing.
    """
    m = A.shape[0]
    index = np.arange(m).reshape((m,) + (1,) * (A.ndim - 2))

    def sweep(k: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
        A, good = state
        row = fusion_barrier(A[k])
        scale = fusion_barrier(1 / row[k])
        column = fusion_barrier(row * scale[None])
        good = good & (row[k] > 0)
        A = fusion_barrier(A - row[:, None] * column[None])
        column = jnp.where(index == k, -scale[None], column)
        return A.at[:, k].set(column).at[k].set(column), good

    A, good = jax.lax.fori_loop(0, m, sweep, (A, jnp.ones(A.shape[2:], bool)))
    return -A, good


def solve_free(H: Array, rhs: Array, free: Array) -> Array:
    """``H_ff^-1 rhs_f`` in the rows where free (m, *batch) is 1, zero where it is 0; rhs (m, columns, *batch)."""
    m = H.shape[0]
    eye = jnp.eye(m, dtype=H.dtype).reshape((m, m) + (1,) * (H.ndim - 2))
    held = fusion_barrier(H * (free[:, None] * free[None]) + eye * (1 - free)[None])
    W, _ = inverse_if_definite(held)
    return product(fusion_barrier(W), fusion_barrier(rhs * free[:, None]))
