"""Elimination of small general matrices (n, n, *batch) without pivoting, in loops and elementwise sums.

The elimination runs from the last row to the first. This preserves the zeros of the mass matrix of a tree and of the
springs and dampers in its joints. Without pivoting it is stable where the symmetric part is positive definite, which is
the case for such matrices if the step size resolves growing modes.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from lgsim._compile.xla import control_flow, fusion_barrier

Factors = Float[Array, "n n *batch"]
"""``A = U L``: the unit upper triangle of U above the lower triangle of L."""


def factor(A: Float[Array, "n n *batch"]) -> Factors:
    """The factors ``A = U L``, U unit upper and L lower triangular; not finite for a zero pivot."""
    n = len(A)
    index = np.arange(n).reshape((n,) + (1,) * (A.ndim - 2))

    def eliminate(i: Any, A: Array) -> Array:
        k = n - 1 - i
        row = fusion_barrier(jnp.where(index < k, A[k], 0))
        column = fusion_barrier(jnp.where(index < k, A[:, k] * (1 / A[k, k])[None], 0))
        A = fusion_barrier(A - column[:, None] * row[None])
        return A.at[:, k].set(jnp.where(index < k, column, A[:, k]))

    return control_flow.fori_loop(0, n, eliminate, A)


def solve(factors: Float[Array, "n n *#batch"], x: Float[Array, "n *#batch"]) -> Float[Array, "n *#batch"]:
    """``A^-1 x`` from the factors of A."""
    n = len(factors)
    index = np.arange(n).reshape((n,) + (1,) * (factors.ndim - 2))

    def backward(i: Any, x: Array) -> Array:
        k = n - 1 - i
        return fusion_barrier(x - jnp.where(index < k, factors[:, k], 0) * x[k][None])

    def forward(k: Any, x: Array) -> Array:
        entry = fusion_barrier(x[k] * (1 / factors[k, k]))
        return fusion_barrier(jnp.where(index > k, x - factors[:, k] * entry[None], x).at[k].set(entry))

    x = jnp.broadcast_to(x, jnp.broadcast_shapes(x.shape, factors.shape[1:]))
    return control_flow.fori_loop(0, n, forward, control_flow.fori_loop(0, n, backward, x))
