"""Integration error of a fit by simulation, relative to the noise of its records."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from jaxtyping import Float

from lgsim.identify.estimators.estimator import Estimate, Resimulation
from lgsim.simulation.accuracy.advice import order_text, other_method, whole_factor
from lgsim.simulation.accuracy.error_estimate import ErrorEstimate
from lgsim.simulation.accuracy.richardson import convergence

ROUNDING = 32.0
"""Rounding error of the states, in units in the last place of the largest entry."""
_SMALL_SHIFT = 1e-6
"""Shifts below this number of standard errors count as zero."""


@dataclass(frozen=True, kw_only=True)
class FitStepError(ErrorEstimate):
    """Estimated integration error of the simulated signals of a fit, by Richardson extrapolation with dt/2 and dt/4.

    Each window is simulated from its estimated initial state. The fit has converged in the step size if no unknown is
    shifted by more than its standard error.

    Attributes:
        value: Root mean square error of each signal within a window, (columns,), in the records' units.
        tolerance: Standard deviation of the noise of each signal, (columns,).
        order: Observed order of convergence of each signal, (columns,); NaN where the differences are rounding.
        claimed: The theoretical order of the method.
        dt: The step, s.
        shift: Largest shift of an unknown due to the integration error of all windows, in standard errors.
    """

    order: Float[np.ndarray, " columns"]
    method: str
    claimed: int
    dt: float
    columns: tuple[str, ...]
    shift: float

    def summary(self) -> str:
        """The errors relative to the noise, and a remedy if they are too large, in one sentence."""
        if not self.resolved:
            return f"not resolved: {self.reason}"
        share, signal, order = self._largest()
        return (
            f"integration error: at most {share} of the noise ({signal}), which shifts the parameters by at most"
            f" {self.shift:.2g} standard errors{order_text(order, self.claimed)}"
        )

    def _largest(self) -> tuple[str, str, float]:
        """The signal with the largest error relative to its noise, as (ratio, name, order)."""
        k = int(np.argmax(self.shares))
        return f"{self.shares[k]:.2g}", self.columns[k], float(self.order[k])

    def with_reason(self) -> FitStepError:
        """A copy with a reason if an unknown is shifted by more than its standard error."""
        if self.shift <= 1:
            return self
        share, signal, order = self._largest()
        usable = bool(np.isfinite(order) and order >= self.claimed / 2 and np.isfinite(self.shift))
        whole = whole_factor(self.shift ** (1 / min(self.claimed, order)) if usable else math.nan)
        what = f"Resample the records at {(whole or 10) / self.dt:.4g} Hz"
        if whole is None:
            what = f"The differences do not converge at the expected order: {what[0].lower()}{what[1:]} and check again"
        method = other_method(self.method, not usable, "a method of higher order")
        return replace(
            self,
            reason=f"with dt = {self.dt:g} s and {self.method} the integration error is {share} times the noise"
            f" ({signal}), which shifts a parameter by {self.shift:.2g} standard"
            f" errors{order_text(order, self.claimed)}. {what}, or use another method for SimulationFit:"
            f" {method}.",
        )


def fit_step_error(
    name: str, order: int, dt: float, columns: list[str], found: list[Resimulation], estimate: Estimate, scale: float
) -> FitStepError:
    """Estimate the integration error from the same motion with three step sizes.

    With free initial states, halving the step moves the minimum of the cost by ``-C (g(dt/2) - g(dt))``, where g is the
    gradient of the cost at the estimate and C its covariance.

    Args:
        dt: The step, s.
        found: The motion simulated with dt, dt/2 and dt/4.
        scale: The largest absolute value of the states, for the rounding error.
    """
    weights = np.asarray(found[0].weights, float)
    used, pairs = weights > 0, list(pairwise(found))
    gaps = [np.where(used, np.asarray(a.residuals) - np.asarray(b.residuals), 0.0).astype(float) for a, b in pairs]
    sizes = [np.sqrt((x**2).sum(axis=0) / np.maximum(used.sum(axis=0), 1)) for x in gaps]
    eps, noise = float(np.finfo(estimate.x.dtype).eps), np.asarray(estimate.noise, float)
    signals = convergence(sizes[0], sizes[1], order, ROUNDING * eps * scale)
    C = np.asarray(estimate.covariance, float)
    deviation = np.sqrt(np.maximum(np.diagonal(C), 0))
    moves = [np.abs(C @ (np.asarray(b.gradient, float) - np.asarray(a.gradient, float))) for a, b in pairs]
    with np.errstate(divide="ignore", invalid="ignore"):
        # unknowns at a bound, and those without information, do not move
        shifts = [np.where(deviation > 0, move / deviation, 0.0) for move in moves]
    unknowns = convergence(shifts[0], shifts[1], order, _SMALL_SHIFT)
    shift = float(np.max(unknowns.factor * shifts[0], initial=0.0))
    return FitStepError(
        value=signals.factor * sizes[0], tolerance=noise, order=signals.order, method=name, claimed=order, dt=dt,
        columns=tuple(columns), shift=math.inf if math.isnan(shift) else shift,
    ).with_reason()  # fmt: skip
