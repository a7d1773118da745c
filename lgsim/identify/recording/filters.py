"""Smoothers of sampled columns: least-squares splines of degree five and zero-phase Butterworth filters."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from inspect import signature
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Int

from lgsim.identify.recording.sampling import resolution_step
from lgsim.support.packages import package

DEGREE = 5
"""Degree of all splines here: four derivatives are continuous."""
WHITE = 0.2
"""Correlation of consecutive residuals up to which cross-validation does not follow the noise."""

_EVEN = 1e-3  # largest relative variation of the steps of a uniform clock
_SMOOTH, _ROUGH = 6.0, 1.5  # powers of the spacing with which residuals grow: of a smooth motion, of noise at most
_JUMPS = 2.0  # the same power: of motion with jumps at least
_EVENTS = 5.0  # kurtosis of residuals above which few events cause them
_SIGNIFICANT = 4.0  # standard deviations of a correlation of white noise

Column = Float[np.ndarray, " n"]
"""One value for each of n samples (n,): times, s, one signal, or its weights."""
Columns = Float[np.ndarray, "n k"]
"""Values of k signals (n, k), or their weights."""


@runtime_checkable
class Curve(Protocol):
    """A curve with derivatives, such as a ``scipy.interpolate.BSpline``."""

    def __call__(self, time: Column) -> Columns:
        """The points of the curve at times, s."""
        ...

    def derivative(self, order: int = 1) -> Curve:
        """The time derivative of some order, as a curve."""
        ...


class Smoother(ABC):
    """A method that fits a differentiable curve to samples."""

    @abstractmethod
    def curve(self, time: Column, x: Columns, weights: Columns) -> Curve:
        """Fit a curve to samples of k columns.

        Args:
            time: Increasing times (n,), s.
            x: Samples (n, k).
            weights: Weights (n, k); 0 to ignore a sample.

        Raises:
            ValueError: the method does not support the clock.
            ModuleNotFoundError: scipy is not installed.
        """

    @property
    @abstractmethod
    def resolution(self) -> float:
        """The time resolution of the curve, s."""

    @property
    @abstractmethod
    def reference_spacing(self) -> float:
        """The knot spacing, s, of a spline that represents the curve."""

    def tune(self, time: Column, x: Columns, weights: Columns) -> Smoother:
        """The method with its automatic settings resolved from samples, which are as in ``curve``."""
        del time, x, weights
        return self


@dataclass(frozen=True)
class Butterworth(Smoother):
    """A zero-phase low-pass filter, applied forward and backward; quintic interpolation between samples.

    The two passes together attenuate the power by half at ``cutoff``: each is designed for ``tan(pi f) = tan(pi cutoff)
    / (sqrt(2) - 1)^(1/(2 order))``, in units of the sampling rate. If sampling is irregular, a cubic spline first
    resamples; samples without weight are replaced by linear interpolation. Within about ``1/cutoff`` of both ends the
    derivatives are less accurate.

    Attributes:
        cutoff: The half-power frequency, Hz.
        order: The order of the filter of one pass.

    Raises:
        ValueError: the cutoff is not positive.

    Source: scipy.signal.sosfiltfilt; the correction is from D. A. Winter, Biomechanics and Motor Control of Human
    Movement, 4th ed. 2009, chapter 3.
    """

    cutoff: float
    order: int = 4

    def __post_init__(self) -> None:
        if not self.cutoff > 0:
            raise ValueError(f"cutoff: expected a positive frequency in Hz, got {self.cutoff}")

    @property
    def resolution(self) -> float:
        """Half a period at the cutoff."""
        return 0.5 / self.cutoff

    @property
    def reference_spacing(self) -> float:
        """A period at the cutoff."""
        return 1 / self.cutoff

    def curve(self, time: Column, x: Columns, weights: Columns) -> Curve:
        signal, interpolate = package("scipy.signal", "identify"), package("scipy.interpolate", "identify")
        x = np.stack([_bridge(time, *pair) for pair in zip(x.T, weights.T, strict=True)], axis=1)
        grid = np.linspace(time[0], time[-1], round((time[-1] - time[0]) / np.median(np.diff(time))) + 1)
        rate = (len(grid) - 1) / (grid[-1] - grid[0])
        if len(grid) != len(time) or np.max(np.abs(time - grid)) * rate > _EVEN:
            x = interpolate.make_interp_spline(time, x, 3)(grid)
        if self.cutoff >= rate / 2:
            raise ValueError(f"cutoff: expected less than half the sampling rate, {rate / 2:g} Hz, got {self.cutoff:g}")
        design = math.tan(math.pi * self.cutoff / rate) / (math.sqrt(2) - 1) ** (0.5 / self.order)
        sections = signal.butter(self.order, math.atan(design) / math.pi, fs=1.0, output="sos")
        padding = min(len(grid) - 1, math.ceil(2 * rate / self.cutoff))
        return interpolate.make_interp_spline(grid, signal.sosfiltfilt(sections, x, axis=0, padlen=padding), DEGREE)


@dataclass(frozen=True)
class Spline(Smoother):
    """A least-squares spline of order five, for irregular sampling and gaps too.

    The error of the curve is O(spacing^6), of its second derivative O(spacing^4); noise of variance s^2 is reduced to
    about ``s^2 dt / spacing``. Knots are removed where there are fewer than three samples between them.

    Attributes:
        spacing: The knot spacing, s; None to minimize the generalized cross-validation score ``n RSS / (n - p)^2``, p
            coefficients, summed as logarithms over the columns. It assumes white noise: no RSS below the known noise
            counts, that of values on a grid of step d, d^2/12, and that of consecutive residuals with a correlation.

    Raises:
        ValueError: the spacing is not positive.

    Source: P. Craven and G. Wahba, Smoothing noisy data with spline functions, Numerische Mathematik 31, 1979;
    scipy.interpolate.make_lsq_spline.
    """

    spacing: float | None = None

    def __post_init__(self) -> None:
        if self.spacing is not None and not self.spacing > 0:
            raise ValueError(f"spacing: expected a positive time in s, got {self.spacing}")

    def __str__(self) -> str:
        return repr(self) if self.spacing is None else f"Spline(spacing={self.spacing:g})"

    @property
    def resolution(self) -> float:
        """The knot spacing."""
        return math.nan if self.spacing is None else self.spacing

    @property
    def reference_spacing(self) -> float:
        """The knot spacing."""
        return self.resolution

    def curve(self, time: Column, x: Columns, weights: Columns) -> Curve:
        if self.spacing is None:
            return self.tune(time, x, weights).curve(time, x, weights)
        parts = [(columns, _fit(time, x[:, columns], w, self.spacing)[0]) for columns, w in _by_weights(weights)]
        return parts[0][1] if len(parts) == 1 else _ColumnCurves(parts, x.shape[1])

    def tune(self, time: Column, x: Columns, weights: Columns) -> Spline:
        """The spline with the spacing from cross-validation, if none is given."""
        if self.spacing is not None:
            return self
        steps = [np.median(np.diff(time[w > 0])) for w in weights.T if np.count_nonzero(w) > 1]
        dt, duration = float(min(steps, default=np.median(np.diff(time)))), float(time[-1] - time[0])
        count = max(1, math.floor(2 * math.log2(max(duration / (12 * dt), 1))) + 1)
        choices = [3 * dt * 2 ** (i / 2) for i in range(count)]
        scores = _scores(x, weights, [_residuals(time, x, weights, h) for h in choices])
        telling = np.all(np.isfinite(scores), axis=0)
        return Spline(choices[int(np.argmin(scores[:, telling].sum(axis=1)))])


class _ColumnCurves:
    """Curves of groups of columns with different knots, as one curve of all columns."""

    def __init__(self, parts: list[tuple[Int[np.ndarray, " _"], Curve]], width: int) -> None:
        self.parts, self.width = parts, width

    def __call__(self, time: Column) -> Columns:
        out = np.empty((len(time), self.width))
        for columns, curve in self.parts:
            out[:, columns] = curve(time)
        return out

    def derivative(self, order: int = 1) -> _ColumnCurves:
        """The curve of the derivatives of all columns."""
        return _ColumnCurves([(columns, curve.derivative(order)) for columns, curve in self.parts], self.width)


def _by_weights(weights: Columns) -> list[tuple[Int[np.ndarray, " _"], Column]]:
    """(columns, their weights) of each group of columns with equal weights."""
    left, found = list(range(weights.shape[1])), []
    while left:
        same = [i for i in left if np.array_equal(weights[:, i], weights[:, left[0]])]
        found.append((np.array(same), weights[:, left[0]]))
        left = [i for i in left if i not in same]
    return found


def _fit(time: Column, x: Columns, weights: Column, spacing: float) -> tuple[Curve, int]:
    """(the weighted least-squares spline with a given knot spacing, its number of coefficients per column)."""
    fit = package("scipy.interpolate", "identify").make_lsq_spline
    counts = weights > 0
    if np.count_nonzero(counts) <= 2 * DEGREE:  # too few values to fit: keep them, their weight is zero
        counts, weights = np.ones(len(time), bool), np.ones(len(time))
    knots = _knots(time, time[counts], spacing)
    given = time[counts], x[counts], knots, DEGREE, np.sqrt(weights[counts])
    # normal equations of B-splines are well conditioned, and take a tenth of the time; scipy before 1.15 has no others
    method = {"method": "norm-eq"} if "method" in signature(fit).parameters else {}
    try:
        curve = fit(*given, **method)
    except np.linalg.LinAlgError:  # weights of very different sizes
        curve = fit(*given)
    return curve, len(knots) - DEGREE - 1


def _knots(time: Column, samples: Float[np.ndarray, " m"], spacing: float) -> Float[np.ndarray, " l"]:
    """Knots with at least three samples between neighbors, with repeated ends."""
    start, end = min(time[0], samples[0]), max(time[-1], samples[-1])
    even = np.linspace(start, end, max(1, round((end - start) / spacing)) + 1)
    before = np.searchsorted(samples, even)
    kept, room = [], before[0]
    for place, knot in zip(before[1:-1], even[1:-1], strict=True):
        if place - room >= 3 and len(samples) - place >= 3:
            kept.append(knot)
            room = place
    kept = kept[: max(0, len(samples) - DEGREE - 1)]
    return np.concatenate([[start] * (DEGREE + 1), kept, [end] * (DEGREE + 1)])


class _Residuals(NamedTuple):
    """The residuals of a spline by column (k,).

    Attributes:
        squares: Weighted sum of squares.
        freedom: Number of samples less the number of coefficients.
        correlation: Correlation of consecutive residuals.
        kurtosis: Mean of the fourth power relative to the squared variance: 3 for Gaussian noise, more for few events.
    """

    squares: Float[np.ndarray, " k"]
    freedom: Float[np.ndarray, " k"]
    correlation: Float[np.ndarray, " k"]
    kurtosis: Float[np.ndarray, " k"]


def _residuals(time: Column, x: Columns, weights: Columns, spacing: float) -> _Residuals:
    """The residuals of the spline with a given spacing."""
    out = _Residuals(*np.empty((4, x.shape[1])))
    for columns, w in _by_weights(weights):
        curve, p = _fit(time, x[:, columns], w, spacing)
        r, counts = x[:, columns] - curve(time), w > 0
        out.freedom[columns] = np.count_nonzero(counts) - p
        out.squares[columns] = np.sum(w[:, None] * r**2, axis=0)
        out.correlation[columns] = neighbor_correlation(r[counts])
        n, squares = np.count_nonzero(counts), np.sum(r[counts] ** 2, axis=0)
        out.kurtosis[columns] = n * np.sum(r[counts] ** 4, axis=0) / np.where(squares > 0, squares, 1) ** 2
    return out


def neighbor_correlation(residuals: Columns) -> Float[np.ndarray, " k"]:
    """The correlation of consecutive residuals, 0 for residuals without variation."""
    total = np.sum(residuals**2, axis=0)
    return np.sum(residuals[1:] * residuals[:-1], axis=0) / np.where(total > 0, total, 1)


def _scores(x: Columns, weights: Columns, found: list[_Residuals]) -> Float[np.ndarray, "c k"]:
    """The score ``log(n RSS / (n - p)^2)`` of each spacing and column, infinite if there are too many coefficients.

    No spacing leaves less than the known noise: that of the resolution of the values, and correlated noise.
    """
    squares, freedom, correlation, kurtosis = (np.array(part) for part in zip(*found, strict=True))
    floor = np.zeros(x.shape[1])
    for i, w in enumerate(weights.T):
        floor[i] = resolution_step(x[w > 0, i]) ** 2 / 12
        edge = _noise_edge(squares[:, i], kurtosis[:, i])
        white = max(WHITE, _SIGNIFICANT / math.sqrt(max(np.count_nonzero(w), 1)))
        if edge is not None and freedom[edge, i] > 0 and correlation[edge - 1, i] > white:
            floor[i] = max(floor[i], squares[edge, i] / freedom[edge, i])
    with np.errstate(divide="ignore", invalid="ignore"):
        least = np.maximum(squares, floor * freedom)
        scores = np.log(np.count_nonzero(weights, axis=0) * least / freedom**2)
    return np.where(freedom > 0, scores, np.inf)


def _noise_edge(squares: Float[np.ndarray, " c"], kurtosis: Float[np.ndarray, " c"]) -> int | None:
    """The index of the largest spacing whose residuals are noise; None if no spacing separates motion from noise.

    With the spacing h the squares of the residuals of a smooth motion grow as ``h^12``, for accelerations that jump as
    ``h^5``, for velocities that jump as ``h^3``. Those of noise grow as ``h`` if it jumps or is a random walk, and not
    at all where its correlation time is shorter than h. Noise that passed a filter grows as motion with jumps does,
    but not at a few times only.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        powers = np.diff(np.log(squares)) / math.log(math.sqrt(2))
    if len(powers) < 2 or not np.all(np.isfinite(powers)):
        return None
    steep = np.flatnonzero(powers > _SMOOTH)
    top = steep[0] if len(steep) else np.argmax(powers) if powers.max() > _ROUGH else len(powers) - 1
    flat = [i for i in range(1, top + 1) if max(powers[i], powers[i - 1]) < _ROUGH]
    if not flat:
        return None
    finer = slice(flat[-1])
    few = (powers[finer] > _JUMPS) & (kurtosis[1:][finer] > _EVENTS)
    return None if few.any() else flat[-1] + 1


def _bridge(time: Column, x: Column, weights: Column) -> Column:
    """The samples with linear interpolation in place of those without weight."""
    counts = weights > 0
    return np.interp(time, time[counts], x[counts]) if counts.any() else x
