"""Small dense matrices (n, m, *batch), general and symmetric by blocks, in loops and elementwise sums.

XLA calls a library for each matrix of a batch to factor or multiply it, which for small matrices costs more than the
arithmetic. These functions become parts of native functions on CPU, with the batch on the last axes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float, Num

from lgsim._compile.xla import batch_last, control_flow, fusion_barrier, linear_last

Rows = TypeVar("Rows")
Others = TypeVar("Others")

_TERMS = 8
"""Terms of a sum per loop iteration: fewer terms move the sum more often, more terms slow down the code."""


def pairs(f: Callable[[Rows, Others], Array], x: Rows, y: Others) -> Array:
    """``out[i, j] = f(x_i, y_j)``.

    Args:
        f: Elementwise function of two pytrees.
        x: Pytree of arrays (n, *batch).
        y: Pytree of arrays (m, *batch).

    Returns:
        Array (n, m, *batch).
    """
    return f(jax.tree.map(lambda a: a[:, None], x), jax.tree.map(lambda a: a[None], y))


def masked(mask: Bool[np.ndarray, "n m"], array: Num[Array, "n m *batch"]) -> Num[Array, "n m *batch"]:
    """The array where the static mask is true, zero elsewhere."""
    if mask.all():
        return array
    return jnp.where(mask.reshape(mask.shape + (1,) * (array.ndim - 2)), array, 0)


def summed(count: int, term: Callable[[Any], Array], start: Array) -> Array:
    """``start + term(0) + ... + term(count - 1)``, ``_TERMS`` terms per loop iteration."""
    step = count // -(-count // _TERMS) if count else 1
    loops = count // step

    def add(i: Any, total: Array) -> Array:
        return total + sum(term(i * step + j) for j in range(step))

    total = control_flow.fori_loop(0, loops, add, start)
    return sum((term(k) for k in range(loops * step, count)), total)


def sum_rows(x: Num[Array, " n *rest"]) -> Num[Array, "*rest"]:
    """The sum over the first axis, ``_TERMS`` rows at a time."""
    return summed(len(x), lambda i: x[i], jnp.zeros_like(x[0]))


def dot(x: Float[Array, "n *#batch"], y: Float[Array, "n *#batch"]) -> Float[Array, "*#batch"]:
    """The scalar product of two vectors."""
    return summed(len(x), lambda i: x[i] * y[i], jnp.zeros_like(x[0] * y[0]))


def transpose(A: Num[Array, "n m *batch"]) -> Num[Array, "m n *batch"]:
    """The transpose of a matrix."""
    return jnp.swapaxes(A, 0, 1)


def times(A: Float[Array, "n m *#batch"], x: Float[Array, "m *#batch"]) -> Float[Array, "n *#batch"]:
    """The product of a matrix and a vector."""
    zero = jnp.zeros((A.shape[0], *jnp.broadcast_shapes(A.shape[2:], x.shape[1:])), x.dtype)
    return summed(A.shape[1], lambda k: A[:, k] * x[k][None], zero)


matvec = batch_last(times)
"""``A x`` of a matrix (n, m) and a vector (m,), as a native function; batch it by ``jax.vmap``."""


def _transposed_times(A: Float[Array, "n m *batch"], y: Float[Array, "n *#batch"]) -> Float[Array, "m *#batch"]:
    return times(transpose(A), y)


linear_matvec = linear_last(times, _transposed_times)
"""``A x`` as ``matvec``, for differentiation rules: reverse mode pulls y back to ``A^T y``."""


def product(
    A: Float[Array, "n k *#batch"], B: Float[Array, "k m *#batch"], start: Float[Array, "n m *#batch"] | None = None
) -> Float[Array, "n m *#batch"]:
    """``start + A B`` of two matrices; ``start`` is zero by default."""
    if start is None:
        start = jnp.zeros((A.shape[0], B.shape[1], *(1,) * (A.ndim - 2)), B.dtype)
    # the carry of a loop has its full shape from the first iteration
    batch = jnp.broadcast_shapes(*(x.shape[2:] for x in (A, B, start)))
    start = jnp.broadcast_to(start, (*start.shape[:2], *batch))
    return summed(A.shape[1], lambda k: A[:, k][:, None] * B[k][None], start)


def inverse(A: Float[Array, "n n *batch"]) -> Float[Array, "n n *batch"]:
    """The inverse of positive definite matrices, by n symmetric sweeps in place.

    Source: Goodnight 1979, A tutorial on the SWEEP operator, The American Statistician 33.
    """
    return -control_flow.fori_loop(0, len(A), lambda k, A: _swept(A, k)[0], A)


def inverse_if_definite(A: Float[Array, "n n *batch"]) -> tuple[Float[Array, "n n *batch"], Bool[Array, "*batch"]]:
    """(``inverse(A)``, True if A is positive definite) of symmetric matrices.

    The pivots are those of an LDL factorization. For an indefinite matrix the inverse is meaningless.
    """

    def sweep(k: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
        A, definite = state
        A, pivot = _swept(A, k)
        return A, definite & (pivot > 0)

    A, definite = control_flow.fori_loop(0, len(A), sweep, (A, jnp.ones(A.shape[2:], bool)))
    return -A, definite


def _swept(A: Float[Array, "n n *batch"], k: Any) -> tuple[Float[Array, "n n *batch"], Float[Array, "*batch"]]:
    """(a symmetric matrix after the sweep of its entry k, the pivot); all n sweeps give ``-A^-1``."""
    index = np.arange(len(A)).reshape((len(A),) + (1,) * (A.ndim - 2))
    row = fusion_barrier(A[k])
    scale = fusion_barrier(1 / row[k])
    column = fusion_barrier(row * scale[None])
    A = fusion_barrier(A - row[:, None] * column[None])
    column = jnp.where(index == k, -scale[None], column)
    return A.at[:, k].set(column).at[k].set(column), row[k]


def mirrored(A: Num[Array, "n n *batch"]) -> Num[Array, "n n *batch"]:
    """The symmetric matrix of the lower triangle; a program does not compute the entries above the diagonal."""
    lower = np.tri(len(A), dtype=bool).reshape((len(A), len(A)) + (1,) * (A.ndim - 2))
    return jnp.where(lower, A, transpose(A))


def inverse_root(A: Float[Array, "n n *batch"]) -> Float[Array, "n n *batch"]:
    """The lower triangle W with ``A^-1 = W^T W`` of positive definite matrices; only the lower triangle of A is read.

    With ``A = L D L^T``, W is ``D^-1/2 L^-1``. Its zeros cost nothing in a program, neither here nor in products.

    Source: Golub, Van Loan, Matrix Computations, 2013, sections 3.1 and 4.1.
    """
    n = len(A)
    index = np.arange(n).reshape((n,) + (1,) * (A.ndim - 2))
    lower = np.tri(n, dtype=bool).reshape((n, n) + (1,) * (A.ndim - 2))
    eye = jnp.broadcast_to(jnp.eye(n, dtype=A.dtype).reshape(lower.shape), A.shape)

    def step(k: Any, state: tuple[Array, Array]) -> tuple[Array, Array]:
        A, W = state
        column = fusion_barrier(jnp.where(index > k, A[:, k], 0))
        slopes = fusion_barrier(column * (1 / A[k, k])[None])
        W = fusion_barrier(W - slopes[:, None] * W[k][None])
        return fusion_barrier(A - jnp.where(lower, column[:, None] * slopes[None], 0)), W

    A, W = control_flow.fori_loop(0, n, step, (A, eye))
    pivots = jnp.stack([A[i, i] for i in range(n)])
    return W * (1 / jnp.sqrt(pivots))[:, None]


def solve_free(
    H: Float[Array, "m m *#batch"], rhs: Float[Array, "m columns *#batch"], free: Float[Array, "m *#batch"]
) -> Float[Array, "m columns *#batch"]:
    """``H_ff^-1 rhs_f`` in the rows f where ``free`` is 1, zero in the rows where it is 0; H is positive definite."""
    m = H.shape[0]
    eye = jnp.eye(m, dtype=H.dtype).reshape((m, m) + (1,) * (H.ndim - 2))
    fixed = fusion_barrier(H * (free[:, None] * free[None]) + eye * (1 - free)[None])
    W, _ = inverse_if_definite(fixed)
    return product(fusion_barrier(W), fusion_barrier(rhs * free[:, None]))


SymmetricBlocks = tuple[tuple[Array, ...], ...]
"""The blocks of the lower triangle of a symmetric matrix: rows i of blocks j <= i, (n_i, n_j, *batch).

Blocks above the diagonal are neither computed nor moved: a cost-to-go is the largest array of a search.
"""


def _block_slices(sizes: Sequence[int]) -> list[slice]:
    """The index ranges of consecutive blocks of these lengths."""
    return [slice(*ends) for ends in pairwise(accumulate(sizes, initial=0))]


def to_blocks(A: Float[Array, "n n *batch"], sizes: Sequence[int]) -> SymmetricBlocks:
    """The lower blocks of a symmetric matrix; n is the sum of the sizes or more."""
    at = _block_slices(sizes)
    return tuple(tuple(A[at[i], at[j]] for j in range(i + 1)) for i in range(len(at)))


def times_blocks(V: SymmetricBlocks, x: Float[Array, "n *#batch"]) -> Float[Array, "n *#batch"]:
    """The product of a symmetric matrix by blocks and a vector."""
    at, n = _slices_of(V), len(V)
    rows = [[times(V[i][j] if j <= i else transpose(V[j][i]), x[at[j]]) for j in range(n)] for i in range(n)]
    return jnp.concatenate([sum(row[1:], row[0]) for row in rows])


def add_symmetric_product(
    V: SymmetricBlocks, F: Float[Array, "m n *#batch"], K: Float[Array, "m n *#batch"]
) -> SymmetricBlocks:
    """``V + F^T K`` for F and K with a symmetric product; diagonal blocks are made exactly symmetric."""
    at = _slices_of(V)
    rows = [[product(transpose(F[:, at[i]]), K[:, at[j]], start=V[i][j]) for j in range(i + 1)] for i in range(len(V))]
    for i, row in enumerate(rows):
        diagonal = fusion_barrier(row[i])
        row[i] = (diagonal + transpose(diagonal)) / 2
    return tuple(map(tuple, rows))


def _slices_of(V: SymmetricBlocks) -> list[slice]:
    """The index ranges of the blocks of a matrix."""
    return _block_slices([len(row[0]) for row in V])
