"""Triangular factors of covariances, so that no covariance is formed and none ceases to be positive by rounding.

Source: Bierman 1977, Factorization methods for discrete sequential estimation; Kailath, Sayed and Hassibi 2000, Linear
estimation, ch. 12.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.linalg import solve_triangular
from jaxtyping import Float

from lgsim._compile.xla import straight_line

ROWS = 16
"""The most rows of matrices whose algebra becomes a straight-line program; beyond, its length is a burden."""


def triangular(A: Float[Array, "n m"]) -> Float[Array, "n n"]:
    """The lower triangular L with ``L L^T = A A^T`` and a diagonal that is not negative, by a QR decomposition.

    Differentiable where A has full row rank.
    """
    n, m = A.shape
    if m < n:
        A = jnp.concatenate([A, jnp.zeros((n, n - m), A.dtype)], axis=1)
    R = jax.lax.linalg.qr(A.T, full_matrices=False)[1]
    signs = jnp.where(diagonal(R) < 0, -1, 1).astype(R.dtype)
    return jnp.tril((signs[:, None] * R).T)


def conditioned(
    L: Float[Array, "n n"], slope: Float[Array, "m n"], noise: Float[Array, "m k"]
) -> tuple[Float[Array, "m m"], Float[Array, "n m"], Float[Array, "n n"]]:
    """The factors of a measurement ``z = slope x + noise w`` of a vector x with covariance ``L L^T``.

    With ``S = H P H^T + N N^T``, one decomposition gives ``[[N, H L], [0, L]] -> [[sqrt(S), 0], [P H^T / sqrt(S)^T,
    sqrt(P')]]`` (Kailath, Sayed and Hassibi 2000, sec. 12.2).

    Returns:
        The factor of S; ``P H^T sqrt(S)^-T``, so that the gain is its product with ``sqrt(S)^-1``; the factor of the
        covariance of x given z.
    """
    m, n = slope.shape
    whole = jnp.block([[noise, slope @ L], [jnp.zeros((n, noise.shape[1]), L.dtype), L]])
    T = triangular(whole)
    return T[:m, :m], T[m:, :m], T[m:, m:]


def smoothed(
    L: Float[Array, "n n"], image: Float[Array, "n n"], rest: Float[Array, "n j"], ahead: Float[Array, "n n"],
    later: Float[Array, "n n"], gap: Float[Array, " n"],
) -> tuple[Float[Array, " n"], Float[Array, "n n"]]:  # fmt: skip
    """The correction of a vector and its factor, given the next one ``x' = F x + rest w`` with a factor ``later``.

    With the gain ``G = P F^T P_-^-1`` the correction is ``G gap`` and the covariance ``(I - G F) P (I - G F)^T + G
    (rest rest^T + P_s) G^T``, a sum in which nothing is subtracted.

    Args:
        L: The factor of P.
        image: ``F L``.
        rest: A factor of the covariance of the noise.
        ahead: The factor of ``P_- = F P F^T + rest rest^T``.
        later: The factor of the covariance P_s of the next vector given all readings.
        gap: The difference of the next vector from its prediction.
    """
    L, ahead, later = map(jnp.tril, (L, ahead, later))
    gain = solved(ahead, L @ solved(ahead, image).T, transposed=True)
    spread = triangular(jnp.concatenate([rest, later], axis=1))
    return gain @ gap, triangular(jnp.concatenate([L - gain @ image, gain @ spread], axis=1))


def small(f: Callable[..., Any], n: int) -> Callable[..., Any]:
    """``f`` as one straight-line program if its matrices have few rows."""
    return straight_line(f) if n <= ROWS else f


def solved(L: Float[Array, "n n"], b: Array, *, transposed: bool = False) -> Array:
    """``L^-1 b`` of a lower triangular L, or ``b L^-1``; zero in a row of zeros, of what is known, if b is."""
    known = jnp.where(diagonal(L) == 0, 1, 0).astype(L.dtype)
    L = L + jnp.diag(known)
    return solve_triangular(L, b.T, trans=1, lower=True).T if transposed else solve_triangular(L, b, lower=True)


def diagonal(A: Float[Array, "n n"]) -> Float[Array, " n"]:
    """The diagonal of a matrix."""
    places = np.arange(len(A))
    return A[places, places]
