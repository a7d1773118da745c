"""Control variates: means with a smaller variance by numbers of known expectation."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from lgsim.montecarlo.distributions import Numbers
from lgsim.montecarlo.intervals import Real, student_quantile
from lgsim.montecarlo.linear_covariance import LinearCovariance
from lgsim.montecarlo.results import Results
from lgsim.montecarlo.study import DIVERGED, draw_latents, tile_indices


class ControlledMean(NamedTuple):
    """The mean of an output by control variates; arrays of the output's shape.

    Attributes:
        error: The standard error of the mean; NaN if there are too few samples.
        degrees: Number of degrees of freedom of ``error``.
        factor: The variance of the plain mean divided by that of this one: that many times fewer samples are needed.
    """

    mean: Real
    error: Real
    degrees: Real
    factor: Real

    def interval(self, level: float = 0.95) -> tuple[Real, Real]:
        """The confidence interval (low, high) of the mean, Student's."""
        half = student_quantile(level, self.degrees) * self.error
        return self.mean - half, self.mean + half


def control_variates(
    results: Results,
    output: str,
    *,
    linear: LinearCovariance | None = None,
    expectations: Mapping[str, Numbers] | None = None,
) -> ControlledMean:
    """Estimate the mean of an output with control variates c of known expectation.

    The linear control ``J z`` has the expectation 0 and the coefficient 1, which is optimal to first order:
    ``mean(y - J z)`` has no bias. Controls of known expectation have least-squares coefficients B,
    ``mean(y) - B (mean(c) - E[c])``: the value of the regression of y on ``c - E[c]`` at zero, with its standard error.
    It is exact for normal y and c; otherwise its bias decreases like 1/n.

    Args:
        results: The results of a study with random sampling, without tilts and diverged samples.
        output: Name of an output of the study.
        linear: The first-order covariance of that output.
        expectations: The expectations of other outputs, by name. An output of the same shape controls entry by entry;
            all entries of another one control each entry.

    Raises:
        ValueError: the output does not exist, no control is given, shapes differ, samples diverged, or the samples are
            not independent and equally weighted.

    Source: Lavenberg, Welch, A perspective on the use of control variables to increase the efficiency of Monte Carlo
    simulations, Management Science 27(3), 1981, eqs. (9) and (13).
    """
    study, known = results.study, dict(expectations or {})
    if linear is None and not known:
        raise ValueError("linear: expected a control, got neither linear nor expectations")
    if study.sampler.points is not None or study.sampler.tilts:
        raise ValueError("results: expected random sampling without tilts, got a sequence or tilts; leave them out")
    y = results.column(output)
    if lost := int(np.sum(results.column(DIVERGED) != 0)):
        raise ValueError(
            f"results: expected no diverged samples, since expectations are those of all samples, got {lost}; reduce"
            " the step"
        )
    shape = y.shape[1:]
    flat = y.reshape(len(y), -1).astype(float)
    each, plain = np.zeros((*flat.shape, 0)), flat.var(axis=0, ddof=1) / len(y) if len(y) > 1 else flat[0] * np.nan
    if linear is not None:
        flat = flat - _linear_controls(results, linear, output, shape)
    for name, expectation in known.items():
        c = results.column(name)
        c = (c - np.broadcast_to(np.asarray(expectation, float), c.shape[1:])).reshape(len(c), -1)
        own = c[:, :, None] if results.column(name).shape == y.shape else np.repeat(c[:, None], flat.shape[1], axis=1)
        each = np.concatenate([each, own], axis=2)
    found = [_intercept(flat[:, k], each[:, k]) for k in range(flat.shape[1])]
    mean, error, degrees = (np.array(column).reshape(shape)[()] for column in np.array(found).T.reshape(3, -1))
    with np.errstate(divide="ignore", invalid="ignore"):
        return ControlledMean(mean, error, degrees, plain.reshape(shape)[()] / error**2)


def _linear_controls(
    results: Results, linear: LinearCovariance, output: str, shape: tuple[int, ...]
) -> Float[np.ndarray, "n size"]:
    """``J z`` of each sample."""
    fits = all(len(J) == math.prod(shape) for J in linear.jacobian.values())
    if linear.value.shape != shape or not fits or set(linear.jacobian) != set(results.study.sampler.names):
        raise ValueError(f"linear: expected the first-order covariance of {output}, in the vector space of its entries")
    study, parts = results.study, []
    for first in range(0, results.samples, study.tile):
        latents = draw_latents(study.sampler, jnp.asarray(tile_indices(first, study.tile, study.samples)))
        parts.append(sum(np.asarray(latents[name], float) @ J.T for name, J in linear.jacobian.items()))
    return np.concatenate(parts)[: results.samples]


def _intercept(y: Float[np.ndarray, " n"], c: Float[np.ndarray, "n controls"]) -> tuple[float, float, int]:
    """Mean, standard error, degrees of freedom of the regression of y on c at c = 0."""
    n, middle, gaps = len(y), c.mean(axis=0), c - c.mean(axis=0)
    # columns of one scale, so that the rank does not depend on units
    size = np.sqrt((gaps**2).sum(axis=0))
    unit = np.where(size > 0, size, 1.0)
    coefficients, _, rank, _ = np.linalg.lstsq(gaps / unit, y - y.mean())
    mean, degrees = y.mean() - middle / unit @ coefficients, n - 1 - int(rank)
    if degrees < 1:
        return mean, math.nan, degrees
    residual = y - y.mean() - gaps / unit @ coefficients
    lever = np.linalg.lstsq((gaps / unit).T, middle / unit)[0]
    return mean, math.sqrt(residual @ residual / degrees * (1 / n + lever @ lever)), degrees
