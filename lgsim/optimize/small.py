"""Small dense matrices whose batch is on the last axis, each algorithm one native function on CPU.

XLA calls a library for each matrix of a batch to factor or to multiply it, which for small ones costs more than the
arithmetic.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lgsim.dynamics.matrices import product, times
from lgsim.spatial import batch_last, cut


def turned(A: Array) -> Array:
    """The transpose of (n, m, *batch)."""
    return jnp.swapaxes(A, 0, 1)


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


@batch_last
def actions(
    V: Array, v: Array, A: Array, B: Array, c: Array, Q: Array, R: Array, N: Array, q: Array, r: Array
) -> tuple[Array, Array, Array, Array, Array]:
    """(F_xx, F_ux, F_uu, f_x, f_u): cost of a stage and cost to go after it by the state and the control."""
    v = cut(v + times(V, c))
    VA, VB = cut(product(V, A)), cut(product(V, B))
    At, Bt = turned(A), turned(B)
    Fxx, Fux, Fuu = Q + product(At, VA), turned(N) + product(Bt, VA), R + product(Bt, VB)
    return Fxx, Fux, Fuu, q + times(At, v), r + times(Bt, v)


@batch_last
def free_step(Fuu: Array, Fux: Array, fu: Array) -> tuple[Array, Array, Array]:
    """(K, k, whether F_uu is definite): ``K = -F_uu^-1 F_ux``, ``k = -F_uu^-1 f_u``."""
    W, definite = inverse_if_definite(Fuu)
    W = cut(W)
    return -product(W, Fux), -times(W, fu), definite


@batch_last
def solve_free(H: Array, rhs: Array, free: Array) -> Array:
    """``H_ff^-1 rhs_f`` in the rows where free (m) is 1, zero where it is 0; rhs (m, columns)."""
    m = H.shape[0]
    eye = jnp.eye(m, dtype=H.dtype).reshape((m, m) + (1,) * (H.ndim - 2))
    held = cut(H * (free[:, None] * free[None]) + eye * (1 - free)[None])
    W, _ = inverse_if_definite(held)
    return product(cut(W), cut(rhs * free[:, None]))


@batch_last
def definite(H: Array) -> Array:
    """Whether symmetric matrices are positive definite."""
    return inverse_if_definite(H)[1]


@batch_last
def value(
    Fxx: Array, Fux: Array, Fuu: Array, fx: Array, fu: Array, K: Array, k: Array
) -> tuple[Array, Array]:
    """(V, v) of the cost to go under ``u = K x + k``, whatever K and k are."""
    Kt, Fxu = turned(K), turned(Fux)
    both = cut(Fux + product(Fuu, K))
    V = cut(Fxx + product(Fxu, K) + product(Kt, both))
    v = fx + times(Fxu, k) + times(Kt, cut(fu + times(Fuu, k)))
    return (V + turned(V)) / 2, v
