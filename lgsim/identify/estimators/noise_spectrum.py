"""Covariance of the score of a least-squares fit whose noise is serially correlated, from the residuals' spectrum."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float

from lgsim.identify.estimators.torque_objective import WINDOW

_SIGNIFICANT = 3.0
"""Standard errors by which a spectrum must exceed that of the stated noise to count as larger."""


def score_covariance(
    slopes: Float[Array, "sets nodes columns p"],
    scores: Float[Array, "sets nodes columns"],
    weights: Float[Array, "sets nodes columns"],
    unknowns: int,
) -> tuple[Float[Array, "p p"], Bool[Array, ""]]:
    """(covariance of ``sum_t a_t e_t``, True if the noise is white with the stated deviations).

    For slopes a_t and stationary noise e_t with the spectrum S_j of each column, ``C = sum_j sum_f S_j(f) conj(A_j(f))
    A_j(f)^T``. S_j is that of the residuals, with the Bartlett window over the lags of ``correlation_times``. It
    replaces the spectrum of the stated white noise at the frequencies at which it is significantly larger. Thus slow
    noise counts where the motion is slow, and residuals beyond their stated deviations count everywhere.

    Args:
        slopes: Derivatives of the normalized residuals with respect to the unknowns, zero for readings without weight.
        scores: Normalized residuals e_t, zero for readings without weight.
        weights: Their robust weights, zero for readings without weight.
        unknowns: Number of degrees of freedom used by the unknowns.

    Source: Hannan 1970, Multiple time series, ch. VII, for regression with stationary noise; Sokal 1997, Monte Carlo
    methods in statistical mechanics, sec. 3, for the truncation of the lags.
    """
    n = scores.shape[1]
    used = jnp.sum(weights > 0, axis=(0, 1))
    spectra, floor, lags = _spectra(scores, weights)
    # least squares reduce the residuals
    total = jnp.sum(used)
    spectra = spectra * total / jnp.maximum(total - unknowns, 1)
    error = jnp.sqrt(2 * lags / (3 * jnp.maximum(used, 1)))
    larger = spectra > floor * (1 + _SIGNIFICANT * error)
    spectra = jnp.where(larger, spectra, floor)
    # both halves of the spectrum of a real signal
    twice = jnp.full(n + 1, 2, slopes.dtype).at[jnp.array([0, n])].set(1)

    def column(part: tuple[Array, Array]) -> Float[Array, "p p"]:
        a, spectrum = part
        A = jnp.fft.rfft(a, 2 * n, axis=1)
        rows = A * jnp.sqrt(twice * spectrum / (2 * n))[None, :, None]
        return jnp.einsum("sfp,sfq->pq", rows.real, rows.real) + jnp.einsum("sfp,sfq->pq", rows.imag, rows.imag)

    each = jax.lax.map(column, (jnp.moveaxis(slopes, 2, 0), spectra.T))
    return jnp.sum(each, axis=0), ~jnp.any(larger)


def _spectra(
    scores: Float[Array, "sets nodes columns"], weights: Float[Array, "sets nodes columns"]
) -> tuple[Float[Array, "frequencies columns"], Float[Array, " columns"], Float[Array, " columns"]]:
    """(smoothed spectra at ``nodes + 1`` frequencies, those of the stated white noise, lags of the smoothing)."""
    n = scores.shape[1]

    def products(x: Float[Array, "sets nodes columns"]) -> Float[Array, "nodes columns"]:
        power = jnp.sum(jnp.abs(jnp.fft.rfft(x, 2 * n, axis=1)) ** 2, axis=0)
        return jnp.fft.irfft(power, 2 * n, axis=0)[:n]

    pairs = jnp.round(products((weights > 0).astype(scores.dtype)))
    c = jnp.where(pairs > 0, products(scores) / jnp.where(pairs > 0, pairs, 1), 0)
    rho, lag = c / jnp.where(c[:1] > 0, c[:1], 1), jnp.arange(n)[:, None]
    ended = (lag >= WINDOW * (2 * jnp.cumsum(rho, axis=0) - 1)) | (lag == n - 1)
    lags = jnp.maximum(jnp.argmax(ended, axis=0), 1).astype(scores.dtype)
    tapered = c * jnp.maximum(1 - lag / (lags + 1), 0)
    whole = jnp.concatenate([tapered, jnp.zeros_like(tapered[:1]), tapered[:0:-1]])
    count = jnp.sum(weights > 0, axis=(0, 1))
    floor = jnp.sum(weights, axis=(0, 1)) / jnp.maximum(count, 1)
    return jnp.fft.rfft(whole, axis=0).real, jnp.where(count > 0, floor, 1), lags
