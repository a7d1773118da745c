"""Feedback of sensor noise to the recorded inputs of a simulated plant."""

from __future__ import annotations

from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

LAGS = 20
"""Number of lags, in steps, at which inputs are compared with residuals, and order of the prediction of inputs."""
FALSE_ALARM = 1e-3
"""Probability that independent noise counts as fed back."""
_EXACT = 1e-8
"""Prediction error of an input relative to its size below which it is a function of its past."""


class NoiseFeedback(NamedTuple):
    """The pair of an input and a sensor column with the largest correlation.

    Attributes:
        statistic: The correlation in its standard deviations for independent noise.
        limit: The value that independent noise exceeds with the probability ``FALSE_ALARM``, over all pairs and lags.
        input: Index of the input.
        column: Index of the column of the residuals.
        lag: Number of steps by which the input follows the reading.
    """

    statistic: float
    limit: float
    input: int
    column: int
    lag: int


def noise_feedback(
    inputs: Float[np.ndarray, "sets steps n"],
    residuals: Float[np.ndarray, "sets nodes columns"],
    used: Bool[np.ndarray, "sets nodes columns"],
) -> NoiseFeedback | None:
    """The correlation of residuals with the part of later inputs that earlier inputs do not predict; None without.

    For independent noise, ``z = sum_t e_(t+l) r_t / (sum_t e_(t+l)^2 r_t^2)^(1/2)`` is standard normal. Here r are the
    residuals and e the errors of a linear prediction of the input from its past. A controller that reads a sensor
    passes the noise of a reading to the inputs of the same and later steps.

    Args:
        inputs: Inputs, constant over the steps that begin at the nodes.
        residuals: Predicted minus recorded readings.
        used: True for readings with a weight.

    Source: Box and Jenkins 1970, Time series analysis, sec. 11.2, for prewhitening; White 1980, Econometrica 48(4), for
    the variance.
    """
    _, steps, n = inputs.shape
    lags = np.arange(min(LAGS, steps - 1) + 1)
    found = [(0.0, i, 0, 0) for i in range(n)]
    r = np.where(used, residuals, 0.0)
    for i in range(n):
        e = _prediction_errors(inputs[..., i])
        if e is None:
            continue
        for lag in lags:
            products = e[:, lag:, None] * r[:, : steps - lag]
            scale = np.sqrt(np.sum(products**2, axis=(0, 1)))
            z = np.abs(np.sum(products, axis=(0, 1))) / np.where(scale > 0, scale, np.inf)
            column = int(np.argmax(z))
            found.append((float(z[column]), i, column, int(lag)))
    if not found:
        return None
    tests = n * r.shape[-1] * len(lags)
    limit = -NormalDist().inv_cdf(FALSE_ALARM / (2 * tests))
    statistic, i, column, lag = max(found)
    return NoiseFeedback(statistic, limit, i, column, lag)


def _prediction_errors(u: Float[np.ndarray, "sets steps"]) -> Float[np.ndarray, "sets steps"] | None:
    """Errors of the least-squares prediction from ``LAGS`` past values, zero at the start; None for an exact one."""
    order = min(LAGS, u.shape[1] // 4)
    past = np.stack([u[:, order - k : u.shape[1] - k] for k in range(1, order + 1)] or [u[:, order:] * 0], axis=-1)
    columns = np.concatenate([past, np.ones_like(past[..., :1])], axis=-1).reshape(-1, past.shape[-1] + 1)
    now = u[:, order:]
    e = now - (columns @ np.linalg.lstsq(columns, now.ravel(), rcond=None)[0]).reshape(now.shape)
    if np.sqrt(np.mean(e**2)) <= _EXACT * np.max(np.abs(u), initial=0.0):
        return None
    return np.concatenate([np.zeros_like(u[:, :order]), e], axis=1)
