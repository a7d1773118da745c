"""How well numbers are known, and which combinations of them the records do not show."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

INVISIBLE = 1e-7
"""Relative singular value of the scaled sensitivities below which a combination is not seen in float64."""


SHARE = 1e-6
"""Square of the share in invisible combinations below which a coordinate is seen."""


def covariance(hessian: Array, free: Array, meat: Array | None = None) -> Array:
    """The covariance (p, p) of the free coordinates from the information about them: its inverse where there is any.

    Args:
        hessian: Information (p, p) of records and beliefs, for residuals in standard deviations.
        free: Which coordinates no bound holds (p,).
        meat: Covariance of the gradient where it is not the information, as for correlated noise.
    """
    inverse = visible(hessian, free)[0]
    return inverse if meat is None else inverse @ meat @ inverse


def visible(hessian: Array, free: Array | None = None) -> tuple[Array, Array, Array]:
    """(pseudo-inverse (p, p), relative singular values (p,) falling, their directions (p, p) as rows).

    Coordinates are scaled to unit information each, so that units do not matter.
    """
    diagonal = jnp.diagonal(hessian)
    seen = _felt(diagonal) if free is None else _felt(diagonal) & free
    scale = jnp.where(seen, 1 / jnp.sqrt(jnp.where(seen, diagonal, 1)), 0)
    values, vectors = jnp.linalg.eigh(scale[:, None] * hessian * scale[None, :])
    values, vectors = values[::-1], vectors[:, ::-1]
    singular = jnp.sqrt(jnp.maximum(values, 0) / jnp.where(values[0] > 0, values[0], 1))
    kept = singular > _limit(hessian.dtype)
    inverse = (vectors * jnp.where(kept, 1 / jnp.where(kept, values, 1), 0)[None]) @ vectors.T
    return scale[:, None] * inverse * scale[None, :], singular, vectors.T


class Identifiability(NamedTuple):
    """What the records show.

    Attributes:
        singular_values: Of the sensitivities scaled to length one for each unknown, relative to the largest, falling.
        rank: How many of them are seen.
        invisible: For each combination that is not seen the unknowns in it with their shares, the largest first.
    """

    singular_values: np.ndarray
    rank: int
    invisible: list[dict[str, float]]


def identifiability(information: Array, names: list[str]) -> Identifiability:
    """Which combinations of unknowns the records show, from the information about them (p, p); outside ``jit``."""
    singular = np.asarray(visible(information)[1])
    alive = np.asarray(_felt(jnp.diagonal(information)))
    invisible = [{names[i]: 1.0} for i in np.flatnonzero(~alive)]
    own = np.flatnonzero(alive)
    # without the dead ones, which degenerate directions would mix with others
    _, values, directions = (np.asarray(x) for x in visible(information[np.ix_(own, own)]))
    for row in directions[values <= _limit(information.dtype)]:
        order = np.argsort(-np.abs(row))
        invisible.append({names[own[i]]: float(row[i]) for i in order if abs(row[i]) > 0.05 * abs(row[order[0]])})
    return Identifiability(singular, len(names) - len(invisible), invisible)


def unseen(information: Array) -> Array:
    """Which coordinates take part in a combination that the records do not show (p,)."""
    _, singular, directions = visible(information)
    blind = jnp.where((singular <= _limit(information.dtype))[:, None], directions, 0)
    return (jnp.sum(blind**2, axis=0) > SHARE) | ~_felt(jnp.diagonal(information))


def whiteness(residuals: np.ndarray, lags: int = 20) -> tuple[np.ndarray, float]:
    """(autocorrelations (lags, columns), Ljung and Box's statistic over its mean for white noise) of residuals.

    Of residuals (n, columns). About 1 for white noise, larger for residuals that are explained by what came before.

    Source: Ljung and Box 1978, On a measure of lack of fit in time series models, Biometrika 65(2).
    """
    r = residuals - residuals.mean(axis=0)
    n = len(r)
    lags = max(1, min(lags, n - 1))
    variance = np.sum(r * r, axis=0)
    rho = np.array([np.sum(r[lag:] * r[:-lag], axis=0) for lag in range(1, lags + 1)])
    rho = rho / np.where(variance > 0, variance, 1)
    statistic = n * (n + 2) * np.sum(rho**2 / (n - np.arange(1, lags + 1))[:, None], axis=0)
    return rho, float(np.mean(statistic) / lags)


def _felt(diagonal: Array) -> Array:
    """Which coordinates there is any information about; what rounding leaves of zero is none."""
    return diagonal > 10.0 ** (-1.6 * np.finfo(diagonal.dtype).precision) * jnp.max(diagonal)


def _limit(dtype) -> float:
    return INVISIBLE if dtype == np.float64 else 1e-3
