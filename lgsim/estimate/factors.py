"""Triangular factors of covariances, so that no covariance is formed and none ceases to be positive by rounding.

Source: Bierman 1977, Factorization methods for discrete sequential estimation; Kailath, Sayed and Hassibi 2000, Linear
estimation, ch. 12.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array
from jax.scipy.linalg import solve_triangular
from jaxtyping import Float


def triangular(A: Float[Array, "n m"]) -> Float[Array, "n n"]:
    """The lower triangular L with ``L L^T = A A^T`` and a diagonal that is not negative, by a QR decomposition.

    Differentiable where A has full row rank.
    """
    n, m = A.shape
    if m < n:
        A = jnp.concatenate([A, jnp.zeros((n, n - m), A.dtype)], axis=1)
    R = jnp.linalg.qr(A.T, mode="r")
    signs = jnp.where(jnp.diagonal(R) < 0, -1, 1).astype(R.dtype)
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


def solved(L: Float[Array, "n n"], b: Array) -> Array:
    """``L^-1 b`` of a lower triangular L; zero in a row of zeros, of what is known, if b is."""
    diagonal = jnp.diagonal(L)
    return solve_triangular(L + jnp.diag(jnp.where(diagonal == 0, 1, 0).astype(L.dtype)), b, lower=True)
