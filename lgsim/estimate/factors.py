"""Triangular factors of covariances, so that no covariance is formed and none ceases to be positive by rounding.

They are upper triangular: what a step adds to a state comes from components after it (positions from velocities, these
from constants), so that most of a moved factor is already a triangle.

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
from lgsim.support.check import is_traced

ROWS = 16
"""The most rows of matrices whose algebra becomes a straight-line program; beyond, its length is a burden."""


def check_deviations(name: str, values: Any) -> None:
    """Raise unless deviations are finite and, where they are not a factor (n, m), not negative; traced ones pass.

    Raises:
        ValueError: one of them is not.
    """
    if is_traced(values) or not isinstance(values, Array):
        return  # a tree without its arrays
    given = np.asarray(values)
    wrong = ~np.isfinite(given) | ((given < 0) & (given.ndim < 2))
    if wrong.any():
        raise ValueError(f"{name}: expected finite numbers that are not negative, got {given[wrong][0]}")


def triangular(A: Float[Array, "n m"]) -> Float[Array, "n n"]:
    """The upper triangular U with ``U U^T = A A^T`` and a diagonal that is not negative, by a QR decomposition.

    Differentiable where A has full row rank.
    """
    n, m = A.shape
    if m < n:
        A = jnp.concatenate([A, jnp.zeros((n, n - m), A.dtype)], axis=1)
    # both axes reversed, the factor is lower triangular
    R = jax.lax.linalg.qr(A[::-1, ::-1].T, full_matrices=False)[1]
    signs = jnp.where(diagonal(R) < 0, -1, 1).astype(R.dtype)
    return jnp.triu((signs[:, None] * R).T[::-1, ::-1])


def cholesky(P: Float[Array, "*batch n n"]) -> Float[Array, "*batch n n"]:
    """The upper triangular U with ``U U^T = P`` of a positive definite P."""
    return jnp.linalg.cholesky(P[..., ::-1, ::-1])[..., ::-1, ::-1]


def conditioned(
    U: Float[Array, "n n"], slope: Float[Array, "m n"], noise: Float[Array, "m k"]
) -> tuple[Float[Array, "m m"], Float[Array, "n m"], Float[Array, "n n"]]:
    """The factors of a measurement ``z = slope x + noise w`` of a vector x with covariance ``U U^T``.

    With ``S = H P H^T + N N^T``, one decomposition gives ``[[U, 0], [H U, N]] -> [[sqrt(P'), P H^T / sqrt(S)^T], [0,
    sqrt(S)]]`` (Kailath, Sayed and Hassibi 2000, sec. 12.2).

    Returns:
        The factor of S; ``P H^T sqrt(S)^-T``, so that the gain is its product with ``sqrt(S)^-1``; the factor of the
        covariance of x given z.
    """
    n = len(U)
    T = triangular(jnp.block([[U, jnp.zeros((n, noise.shape[1]), U.dtype)], [slope @ U, noise]]))
    return T[n:, n:], T[:n, n:], T[:n, :n]


def smoothed(
    U: Float[Array, "n n"], image: Float[Array, "n n"], rest: Float[Array, "n j"], ahead: Float[Array, "n n"],
    later: Float[Array, "n n"], gap: Float[Array, " n"],
) -> tuple[Float[Array, " n"], Float[Array, "n n"]]:  # fmt: skip
    """The correction of a vector and its factor, given the next one ``x' = F x + rest w`` with a factor ``later``.

    With the gain ``G = P F^T P_-^-1`` the correction is ``G gap`` and the covariance ``(I - G F) P (I - G F)^T + G
    (rest rest^T + P_s) G^T``, a sum in which nothing is subtracted.

    Args:
        U: The factor of P.
        image: ``F U``.
        rest: A factor of the covariance of the noise.
        ahead: The factor of ``P_- = F P F^T + rest rest^T``.
        later: The factor of the covariance P_s of the next vector given all readings.
        gap: The difference of the next vector from its prediction.
    """
    U, ahead, later = map(jnp.triu, (U, ahead, later))
    gain = solved(ahead, U @ solved(ahead, image).T, transposed=True)
    spread = triangular(jnp.concatenate([rest, later], axis=1))
    return gain @ gap, triangular(jnp.concatenate([gain @ spread, U - gain @ image], axis=1))


def small(f: Callable[..., Any], n: int) -> Callable[..., Any]:
    """``f`` as one straight-line program if its matrices have few rows."""
    return straight_line(f) if n <= ROWS else f


def solved(U: Float[Array, "n n"], b: Array, *, transposed: bool = False) -> Array:
    """``U^-1 b`` of an upper triangular U, or ``b U^-1``; zero in a row of zeros, of what is known, if b is."""
    known = jnp.where(diagonal(U) == 0, 1, 0).astype(U.dtype)
    U = U + jnp.diag(known)
    return solve_triangular(U, b.T, trans=1).T if transposed else solve_triangular(U, b)


def diagonal(A: Float[Array, "n n"]) -> Float[Array, " n"]:
    """The diagonal of a matrix."""
    places = np.arange(len(A))
    return A[places, places]
