"""Symmetric matrices as the blocks of their lower triangle, with the batch on the last axes.

A cost to go is by far the largest array of a search: what is above the diagonal is neither made nor moved.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

import jax.numpy as jnp
from jax import Array

from lgsim.linalg.dense import product, times, transpose
from lgsim.xla import fusion_barrier

SymmetricBlocks = tuple[tuple[Array, ...], ...]
"""Rows of blocks (n_i, n_j, *batch), j <= i."""


def block_slices(sizes: Sequence[int]) -> list[slice]:
    """The places of blocks of these lengths, one after the other."""
    return [slice(*ends) for ends in pairwise(accumulate(sizes, initial=0))]


def from_dense(A: Array, sizes: Sequence[int]) -> SymmetricBlocks:
    """The blocks of a matrix (n, n, *batch), n being the sum of the sizes or more."""
    at = block_slices(sizes)
    return tuple(tuple(A[at[i], at[j]] for j in range(i + 1)) for i in range(len(at)))


def slices_of(V: SymmetricBlocks) -> list[slice]:
    """Those of the blocks."""
    return block_slices([len(row[0]) for row in V])


def to_dense(V: SymmetricBlocks) -> Array:
    """The matrix."""
    n = len(V)
    rows = [[V[i][j] if j <= i else transpose(V[j][i]) for j in range(n)] for i in range(n)]
    return jnp.concatenate([jnp.concatenate(row, axis=1) for row in rows])


def matvec(V: SymmetricBlocks, x: Array) -> Array:
    """The product with a vector (n, *batch)."""
    at, n = slices_of(V), len(V)
    rows = [[times(V[i][j] if j <= i else transpose(V[j][i]), x[at[j]]) for j in range(n)] for i in range(n)]
    return jnp.concatenate([sum(row[1:], row[0]) for row in rows])


def add_symmetric_product(V: SymmetricBlocks, F: Array, K: Array) -> SymmetricBlocks:
    """``V + F^T K`` of F and K (m, n, *batch) for which it is symmetric."""
    at = slices_of(V)
    found = [[product(transpose(F[:, at[i]]), K[:, at[j]], start=V[i][j]) for j in range(i + 1)] for i in range(len(V))]
    for i, row in enumerate(found):
        held = fusion_barrier(row[i])
        row[i] = (held + transpose(held)) / 2
    return tuple(map(tuple, found))
