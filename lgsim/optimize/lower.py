"""Symmetric matrices as the blocks of their lower triangle, with the batch on the last axes.

A cost to go is by far the largest array of a search: what is above the diagonal is neither made nor moved.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

import jax.numpy as jnp
from jax import Array

from lgsim.dynamics.matrices import product, times
from lgsim.optimize.small import turned
from lgsim.spatial import cut

Lower = tuple[tuple[Array, ...], ...]
"""Rows of blocks (n_i, n_j, *batch), j <= i."""


def slices(sizes: Sequence[int]) -> list[slice]:
    """The places of blocks of these lengths, one after the other."""
    return [slice(*ends) for ends in pairwise(accumulate(sizes, initial=0))]


def lower(A: Array, sizes: Sequence[int]) -> Lower:
    """The blocks of a matrix (n, n, *batch), n being the sum of the sizes or more."""
    at = slices(sizes)
    return tuple(tuple(A[at[i], at[j]] for j in range(i + 1)) for i in range(len(at)))


def places(V: Lower) -> list[slice]:
    """Those of the blocks."""
    return slices([len(row[0]) for row in V])


def whole(V: Lower) -> Array:
    """The matrix."""
    n = len(V)
    rows = [[V[i][j] if j <= i else turned(V[j][i]) for j in range(n)] for i in range(n)]
    return jnp.concatenate([jnp.concatenate(row, axis=1) for row in rows])


def along(V: Lower, x: Array) -> Array:
    """The product with a vector (n, *batch)."""
    at, n = places(V), len(V)
    rows = [[times(V[i][j] if j <= i else turned(V[j][i]), x[at[j]]) for j in range(n)] for i in range(n)]
    return jnp.concatenate([sum(row[1:], row[0]) for row in rows])


def less_square(V: Lower, F: Array, K: Array) -> Lower:
    """``V + F^T K`` of F and K (m, n, *batch) for which it is symmetric."""
    at = places(V)
    found = [[product(turned(F[:, at[i]]), K[:, at[j]], start=V[i][j]) for j in range(i + 1)] for i in range(len(V))]
    for i, row in enumerate(found):
        held = cut(row[i])
        row[i] = (held + turned(held)) / 2
    return tuple(map(tuple, found))
