"""Small dense matrices whose batch is on the last axes, as parts of native functions on CPU.

XLA calls a library for each matrix of a batch to factor or to multiply it, which for small ones costs more than the
arithmetic.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lgsim.dynamics.matrices import product, summed
from lgsim.spatial import cut


def turned(A: Array) -> Array:
    """The transpose of (n, m, *batch)."""
    return jnp.swapaxes(A, 0, 1)


def total(x: Array) -> Array:
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
        row = cut(A[k])
        scale = cut(1 / row[k])
        column = cut(row * scale[None])
        good = good & (row[k] > 0)
        A = cut(A - row[:, None] * column[None])
        column = jnp.where(index == k, -scale[None], column)
        return A.at[:, k].set(column).at[k].set(column), good

    A, good = jax.lax.fori_loop(0, m, sweep, (A, jnp.ones(A.shape[2:], bool)))
    return -A, good


def solve_free(H: Array, rhs: Array, free: Array) -> Array:
    """``H_ff^-1 rhs_f`` in the rows where free (m, *batch) is 1, zero where it is 0; rhs (m, columns, *batch)."""
    m = H.shape[0]
    eye = jnp.eye(m, dtype=H.dtype).reshape((m, m) + (1,) * (H.ndim - 2))
    held = cut(H * (free[:, None] * free[None]) + eye * (1 - free)[None])
    W, _ = inverse_if_definite(held)
    return product(cut(W), cut(rhs * free[:, None]))
