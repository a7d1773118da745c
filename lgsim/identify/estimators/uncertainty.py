"""Uncertainty of the unknowns: covariances, combinations that are not identifiable, whiteness of residuals."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float

RANK_TOLERANCE = 1e-7
"""Relative singular value of the scaled sensitivities below which a combination is not identifiable in float64."""

_SHARE_TOLERANCE = 1e-6
"""A coordinate counts as identifiable if the square of its share in unidentifiable combinations is below this value."""


def covariance(
    information: Float[Array, "p p"], free: Bool[Array, " p"], score_covariance: Float[Array, "p p"] | None = None
) -> Float[Array, "p p"]:
    """The covariance of the free coordinates: the inverse of their information, zero where there is no information.

    Args:
        information: Information of records and priors, for normalized residuals.
        free: The coordinates without an active bound.
        score_covariance: Covariance C of the gradient if it differs from the information H, as for correlated noise;
            the result is then ``H^-1 C H^-1``.
    """
    inverse = scaled_spectrum(information, free)[0]
    return inverse if score_covariance is None else inverse @ score_covariance @ inverse


def scaled_spectrum(
    information: Float[Array, "p p"], free: Bool[Array, " p"] | None = None
) -> tuple[Float[Array, "p p"], Float[Array, " p"], Float[Array, "p p"]]:
    """(pseudo-inverse, relative singular values in descending order, their directions as rows) of an information
    matrix.

    Coordinates are scaled to unit information each, so that the result does not depend on units. The singular values
    are the square roots of the eigenvalues. They are zero for coordinates that are not free or have no information.
    """
    diagonal = jnp.diagonal(information)
    seen = has_information(diagonal) if free is None else has_information(diagonal) & free
    scale = jnp.where(seen, 1 / jnp.sqrt(jnp.where(seen, diagonal, 1)), 0)
    inverse, singular, vectors = _pseudo_inverse(scale[:, None] * information * scale[None, :])
    return scale[:, None] * inverse * scale[None, :], singular, vectors.T


@jax.custom_jvp
def _pseudo_inverse(
    A: Float[Array, "p p"],
) -> tuple[Float[Array, "p p"], Float[Array, " p"], Float[Array, "p p"]]:
    """(pseudo-inverse, relative singular values in descending order, their directions as columns) of a scaled
    information matrix; only the pseudo-inverse has a derivative.
    """
    values, vectors = jnp.linalg.eigh(A)
    values, vectors = values[::-1], vectors[:, ::-1]
    singular = jnp.sqrt(jnp.maximum(values, 0) / jnp.where(values[0] > 0, values[0], 1))
    kept = singular > rank_tolerance(A.dtype)
    inverse = (vectors * jnp.where(kept, 1 / jnp.where(kept, values, 1), 0)[None]) @ vectors.T
    return inverse, singular, vectors


@_pseudo_inverse.defjvp
def _pseudo_inverse_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Any, Any]:
    """The derivative at constant rank; those of eigenvectors are infinite where coordinates are held.

    Source: Golub and Pereyra 1973, The differentiation of pseudo-inverses and nonlinear least squares problems whose
    variables separate, SIAM J. Numer. Anal. 10(2).
    """
    (A,), (dA,) = primals, tangents
    P, singular, vectors = _pseudo_inverse(A)
    rest = jnp.eye(len(A), dtype=A.dtype) - A @ P
    outer = P @ P @ dA @ rest
    dP = -P @ dA @ P + outer + outer.T
    return (P, singular, vectors), (dP, jnp.zeros_like(singular), jnp.zeros_like(vectors))


def _directions(
    information: Float[np.ndarray, "p p"],
) -> tuple[Float[np.ndarray, " p"], Float[np.ndarray, "p p"], Bool[np.ndarray, " p"]]:
    """(relative singular values, their directions as rows, mask of coordinates with information), in numpy."""
    diagonal = np.diagonal(information)
    alive = np.asarray(has_information(diagonal))
    scale = np.where(alive, 1 / np.sqrt(np.where(alive, diagonal, 1)), 0)
    values, vectors = np.linalg.eigh(scale[:, None] * information * scale)
    values, vectors = values[::-1], vectors[:, ::-1]
    return np.sqrt(np.maximum(values, 0) / (values[0] if values[0] > 0 else 1)), vectors.T, alive


class Identifiability(NamedTuple):
    """The identifiable and unidentifiable combinations of the unknowns.

    Attributes:
        singular_values: Singular values of the sensitivities, scaled to unit length for each unknown, relative to the
            largest, in descending order (p,).
        rank: Number of identifiable combinations.
        unidentifiable: For each unidentifiable combination, its unknowns with their shares, largest first.
    """

    singular_values: Float[np.ndarray, " p"]
    rank: int
    unidentifiable: list[dict[str, float]]


def identifiability(information: Float[Array, "p p"] | Float[np.ndarray, "p p"], names: list[str]) -> Identifiability:
    """The identifiable combinations of unknowns, from their information matrix; outside of ``jit``.

    Args:
        information: Information of the records, without priors.
    """
    information = np.asarray(information)
    singular, _, alive = _directions(information)
    unidentifiable = [{names[i]: 1.0} for i in np.flatnonzero(~alive)]
    own = np.flatnonzero(alive)
    if not own.size:
        return Identifiability(singular, 0, unidentifiable)
    # without the coordinates that have no information, which would mix with other degenerate directions
    values, directions, _ = _directions(information[np.ix_(own, own)])
    for row in directions[values <= rank_tolerance(information.dtype)]:
        order = np.argsort(-np.abs(row))
        unidentifiable.append({names[own[i]]: float(row[i]) for i in order if abs(row[i]) > 0.05 * abs(row[order[0]])})
    return Identifiability(singular, len(names) - len(unidentifiable), unidentifiable)


def undetermined(information: Float[Array, "p p"]) -> Bool[Array, " p"]:
    """The coordinates that take part in a combination without information."""
    _, singular, directions = scaled_spectrum(information)
    blind = jnp.where((singular <= rank_tolerance(information.dtype))[:, None], directions, 0)
    return (jnp.sum(blind**2, axis=0) > _SHARE_TOLERANCE) | ~has_information(jnp.diagonal(information))


def whiteness(
    residuals: Float[np.ndarray, "n columns"], lags: int = 20
) -> tuple[Float[np.ndarray, "lags columns"], float]:
    """Autocorrelations of the residuals, and the Ljung-Box statistic relative to its mean for white noise.

    The statistic is about 1 for white noise, larger for serially correlated residuals. Constant columns do not enter.

    Args:
        residuals: Residuals at a uniform sampling interval.
        lags: Number of lags, starting at one sample; fewer if there are fewer samples.

    Source: Ljung and Box 1978, On a measure of lack of fit in time series models, Biometrika 65(2).
    """
    r = residuals - residuals.mean(axis=0)
    n = len(r)
    lags = max(1, min(lags, n - 1))
    variance = np.sum(r * r, axis=0)
    rho = np.array([np.sum(r[lag:] * r[:-lag], axis=0) for lag in range(1, lags + 1)])
    rho = rho / np.where(variance > 0, variance, 1)
    statistic = n * (n + 2) * np.sum(rho**2 / (n - np.arange(1, lags + 1))[:, None], axis=0)
    varies = variance > 0
    return rho, float(np.sum(statistic[varies]) / max(np.sum(varies), 1) / lags)


def has_information(
    diagonal: Float[Array, " p"] | Float[np.ndarray, " p"],
) -> Bool[Array, " p"] | Bool[np.ndarray, " p"]:
    """A mask of the coordinates with information above rounding."""
    return diagonal > 10.0 ** (-1.6 * np.finfo(diagonal.dtype).precision) * diagonal.max()


def rank_tolerance(dtype: jnp.dtype) -> float:
    """The relative singular value below which a combination is not identifiable, by dtype."""
    return RANK_TOLERANCE if dtype == np.float64 else 1e-3
