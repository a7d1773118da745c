"""The error that the steps of the integration bring into a fit of simulated motion, beside the noise of its records."""

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
"""Rounding units of the largest number of the states that count as rounding."""
_SMALL_SHIFT = 1e-6
"""Deviations that count as no move, whatever their order."""


@dataclass(frozen=True, kw_only=True)
class FitStepError(ErrorEstimate):
    """How far the steps move the signals that a fit simulates, from the same motion by steps of dt/2 and dt/4.

    Each window is simulated from the first state that the fit found. The fit is resolved where no unknown is moved by
    more than its standard deviation.

    Attributes:
        value: Root mean square of the error of each signal within a window, (columns,), in the records' units.
        tolerance: Standard deviation of the noise of each signal, (columns,).
        order: The order by which each signal converges, (columns,); NaN where differences are those of rounding.
        claimed: The order of the method.
        dt: The step, s.
        shift: By how many of its standard deviations the errors of all windows move an unknown at most.
    """

    order: Float[np.ndarray, " columns"]
    method: str
    claimed: int
    dt: float
    columns: tuple[str, ...]
    shift: float

    def summary(self) -> str:
        """A sentence: how large the errors are beside the noise, and what to do where that is too much."""
        if not self.resolved:
            return f"not resolved: {self.reason}"
        share, signal, order = self._largest()
        return (
            f"error of the steps: at most {share} of the noise ({signal}), which moves no number by more than"
            f" {self.shift:.2g} of its deviation{order_text(order, self.claimed)}"
        )

    def _largest(self) -> tuple[str, str, float]:
        """(share of the noise, name, order) of the signal with the largest share."""
        k = int(np.argmax(self.shares))
        return f"{self.shares[k]:.2g}", self.columns[k], float(self.order[k])

    def with_reason(self) -> FitStepError:
        """The same with the reason where an unknown is moved by more than its standard deviation."""
        if self.shift <= 1:
            return self
        share, signal, order = self._largest()
        usable = bool(np.isfinite(order) and order >= self.claimed / 2 and np.isfinite(self.shift))
        whole = whole_factor(self.shift ** (1 / min(self.claimed, order)) if usable else math.nan)
        what = f"Resample the records at {(whole or 10) / self.dt:.4g} Hz"
        if whole is None:
            what = f"The differences do not shrink as the order says: {what[0].lower()}{what[1:]} and look again"
        method = other_method(self.method, not usable, "one of higher order")
        return replace(
            self,
            reason=f"steps of {self.dt:g} s by {self.method} bring errors of {share} times the noise ({signal}), which"
            f" move a number by {self.shift:.2g} times its deviation{order_text(order, self.claimed)}. {what}, or take"
            f" another method for SimulationFit: {method}.",
        )


def fit_step_error(
    name: str, order: int, dt: float, columns: list[str], found: list[Resimulation], estimate: Estimate, scale: float
) -> FitStepError:
    """The error of the steps from the same motion by three steps.

    With the first states free, half the step moves the minimum of the cost by ``-C (g(dt/2) - g(dt))``, g being the
    gradient of the cost at the estimate and C its covariance.

    Args:
        dt: The step, s.
        found: The motion with dt, dt/2 and dt/4.
        scale: The size of the largest number of the states, whose rounding counts.
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
        # a number that bounds hold or that no record shows does not move
        shifts = [np.where(deviation > 0, move / deviation, 0.0) for move in moves]
    unknowns = convergence(shifts[0], shifts[1], order, _SMALL_SHIFT)
    shift = float(np.max(unknowns.factor * shifts[0], initial=0.0))
    return FitStepError(
        value=signals.factor * sizes[0], tolerance=noise, order=signals.order, method=name, claimed=order, dt=dt,
        columns=tuple(columns), shift=math.inf if math.isnan(shift) else shift,
    ).with_reason()  # fmt: skip
