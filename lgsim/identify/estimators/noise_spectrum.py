"""Covariance of the score of a least-squares fit whose noise is serially correlated, from the residuals' spectrum."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float

from lgsim.identify.estimators.torque_objective import WINDOW

_LEAST_LEFT = 0.1
"""The smallest fraction of the noise at a frequency that counts as left by a fit."""
_SIGNIFICANT = 3.0
"""Standard errors by which a spectrum must exceed that of the stated noise to count as larger."""


def score_covariance(
    slopes: Float[Array, "sets nodes columns p"],
    scores: Float[Array, "sets nodes columns"],
    weights: Float[Array, "sets nodes columns"],
    absorbed: Float[Array, "sets nodes columns draws"],
) -> tuple[Float[Array, "p p"], Bool[Array, ""]]:
    """(covariance of ``sum_t a_t e_t``, True if the noise is white with the stated deviations).

    For slopes a_t and stationary noise e_t with the spectrum S_j of each column, ``C = sum_j sum_f S_j(f) conj(A_j(f))
    A_j(f)^T``. S_j is that of the residuals, divided by the fraction of white noise that a fit leaves at each
    frequency. It replaces the spectrum of the stated white noise at the frequencies at which it is significantly
    larger. Thus slow noise counts where the motion is slow, and residuals beyond their stated deviations count
    everywhere. Spectra have the flat-top window over the lags of ``correlation_times``.

    Args:
        slopes: Derivatives of the normalized residuals with respect to the unknowns, zero for readings without weight.
        scores: Normalized residuals e_t, zero for readings without weight.
        weights: Their robust weights, zero for readings without weight.
        absorbed: Draws of what the unknowns absorb of white noise: residuals with the covariance ``J H^-1 J^T``.

    Source: Hannan 1970, Multiple time series, ch. VII, for regression with stationary noise; Politis and Romano 1995,
    Bias-corrected nonparametric spectral estimation, J. Time Ser. Anal. 16(1), for the window; Sokal 1997, Monte Carlo
    methods in statistical mechanics, sec. 3, for its length.
    """
    n = scores.shape[1]
    counted = (weights > 0).astype(scores.dtype)
    used = jnp.sum(counted, axis=(0, 1))
    floor = jnp.where(used > 0, jnp.sum(weights, axis=(0, 1)) / jnp.maximum(used, 1), 1)
    pairs = jnp.round(_lagged_products(counted))
    pairs = jnp.where(pairs > 0, pairs, jnp.inf)
    c = _lagged_products(scores) / pairs
    lag = jnp.arange(n, dtype=c.dtype)[:, None]
    rho = c / jnp.where(c[:1] > 0, c[:1], 1)
    ended = (lag >= WINDOW * (2 * jnp.cumsum(rho, axis=0) - 1)) | (lag == n - 1)
    lags = jnp.maximum(jnp.argmax(ended, axis=0), 1).astype(c.dtype)
    # one up to half of the lags, then linear to zero
    window = jnp.clip(2 * (1 - lag / (lags[None] + 1)), 0, 1)
    each = jax.vmap(_lagged_products, in_axes=-1)(absorbed)
    left = 1 - _spectrum(jnp.mean(each, axis=0) / pairs * window)
    spectra = _spectrum(c * window) / jnp.maximum(left, _LEAST_LEFT)
    # the variance of a spectrum relative to its square, for this window
    error = jnp.sqrt(4 * lags / (3 * jnp.maximum(used, 1)))
    larger = spectra > (floor * (1 + _SIGNIFICANT * error))[None]
    spectra = jnp.where(larger, spectra, floor[None])
    # both halves of the spectrum of a real signal
    twice = jnp.full(n + 1, 2, slopes.dtype).at[jnp.array([0, n])].set(1)

    def column(part: tuple[Array, Array]) -> Float[Array, "p p"]:
        a, spectrum = part
        A, size = jnp.fft.rfft(a, 2 * n, axis=1), jnp.sqrt(twice * spectrum / (2 * n))[None, :, None]
        rows = jnp.concatenate([A.real * size, A.imag * size], axis=1)
        return jnp.einsum("sfp,sfq->pq", rows, rows)

    parts = jax.lax.map(column, (jnp.moveaxis(slopes, 2, 0), spectra.T))
    return jnp.sum(parts, axis=0), ~jnp.any(larger)


def _lagged_products(x: Float[Array, "sets nodes columns"]) -> Float[Array, "nodes columns"]:
    """``sum_t x_t x_(t+k)`` for all lags k."""
    n = x.shape[1]
    power = jnp.sum(jnp.abs(jnp.fft.rfft(x, 2 * n, axis=1)) ** 2, axis=0)
    return jnp.fft.irfft(power, 2 * n, axis=0)[:n]


def _spectrum(c: Float[Array, "nodes columns"]) -> Float[Array, "frequencies columns"]:
    """The spectrum of autocovariances at ``nodes + 1`` frequencies from zero to half the sampling frequency."""
    return jnp.fft.rfft(jnp.concatenate([c, jnp.zeros_like(c[:1]), c[:0:-1]]), axis=0).real
