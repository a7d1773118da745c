"""Moments of samples with confidence intervals: running, weighted, and of the parts of a sequence."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Integer, Shaped

from lgsim.montecarlo.intervals import Real, clopper_pearson, student_quantile

Parts = Float[np.ndarray, " parts *shape"]
"""A number of each part of a sequence."""


@dataclass(frozen=True)
class Moments:
    """Count, mean and sum of squared deviations of arrays of one shape; ``a.merge(b)`` combines two sets.

    All are in float64 for any dtype of the samples. With weights they are those of the weighted samples.

    Source: Chan, Golub, LeVeque, Updating formulae and a pairwise algorithm for computing sample variances, COMPSTAT
    1982, eq. (2.1); with weights West, Updating mean and variance estimates, Communications of the ACM 22(9), 1979.

    Attributes:
        weight: Sum of the weights.
        squared_weights: Sum of the squares of the weights.
        mean: Mean of the samples, of their shape.
        squared_deviations: Weighted sum of the squared deviations from the mean.
        low: The smallest sample, entry by entry.
        high: The largest sample, entry by entry.
        scores: Sums of ``w^2 (x - mean)`` and of ``w^2 (x - mean)^2``; None for weights of 1.
        replicates: Means and standard deviations of independent parts of a sequence, ``(parts, *shape)`` each; None for
            independent samples.
        truth: True if the samples are Booleans, whose mean is a probability.
        missing: Number of further samples without a value; the interval of a probability covers both cases for them.
    """

    count: int
    weight: float
    squared_weights: float
    mean: Real
    squared_deviations: Real
    low: Real
    high: Real
    scores: tuple[Real, Real] | None = None
    replicates: tuple[Parts, Parts] | None = None
    truth: bool = False
    missing: int = 0

    @classmethod
    def of(cls, samples: Shaped[np.ndarray, " n *shape"], weights: Shaped[np.ndarray, " n"] | None = None) -> Moments:
        """The moments of samples, by default of weight 1."""
        x = np.asarray(samples, float)
        if not len(x):
            zero = np.zeros(x.shape[1:])
            return cls(0, 0.0, 0.0, zero, zero, zero + np.inf, zero - np.inf)
        w = np.ones(len(x)) if weights is None else np.asarray(weights, float)
        total = float(w.sum())
        w = w.reshape(-1, *(1,) * (x.ndim - 1))
        share = w / total if total else w
        mean = (share * x).sum(axis=0)
        gaps = x - mean
        deviation, scores = total * (share * gaps**2).sum(axis=0), None
        if weights is not None:
            scores = ((w * w * gaps).sum(axis=0), (w * w * gaps**2).sum(axis=0))
        squares = float((w * w).sum())
        return cls(len(x), total, squares, mean, deviation, x.min(axis=0), x.max(axis=0), scores)

    def merge(self, other: Moments) -> Moments:
        """Combine the moments of two sets of samples."""
        if not other.count or not self.count:
            return self if self.count else other
        weight = self.weight + other.weight
        gap, share = other.mean - self.mean, other.weight / weight if weight else 0.0
        mean, scores = self.mean + share * gap, None
        if self.scores is not None or other.scores is not None:
            (a, b), (c, d) = self._scores_about(mean), other._scores_about(mean)
            scores = a + c, b + d
        return Moments(
            self.count + other.count, weight, self.squared_weights + other.squared_weights, mean,
            self.squared_deviations + other.squared_deviations + self.weight * share * gap**2,
            np.minimum(self.low, other.low), np.maximum(self.high, other.high), scores,
        )  # fmt: skip

    def columns(self, places: Integer[np.ndarray, "*shape"]) -> Moments:
        """The moments of some entries of samples of shape (n,).

        Args:
            places: Indices of the entries.
        """
        own = {name: getattr(self, name)[places] for name in ("mean", "squared_deviations", "low", "high")}
        scores = (
            None if self.scores is None else (np.asarray(self.scores[0])[places], np.asarray(self.scores[1])[places])
        )
        return replace(self, scores=scores, **own)

    def _scores_about(self, mean: Real) -> tuple[Real, Real]:
        """``scores`` with another mean."""
        first, second = (np.zeros_like(mean), self.squared_deviations) if self.scores is None else self.scores
        gap = self.mean - mean
        return first + gap * self.squared_weights, second + 2 * gap * first + gap**2 * self.squared_weights

    @property
    def effective(self) -> float:
        """The effective sample size ``(sum w)^2 / sum w^2`` (Kish); the count for equal weights."""
        return self.weight**2 / self.squared_weights if self.squared_weights else 0.0

    @property
    def variance(self) -> Real:
        """The unbiased estimate of the variance; NaN for fewer than two samples."""
        n = self.effective
        return self.squared_deviations / self.weight * (n / (n - 1)) if n > 1 else np.full_like(self.mean, np.nan)

    @property
    def std(self) -> Real:
        """The standard deviation of the distribution; NaN for fewer than two samples."""
        return np.sqrt(self.variance)

    @property
    def error(self) -> Real:
        """The standard error of the mean; NaN if unknown.

        It is ``std / sqrt(count)`` for independent samples. For weights it is that of the ratio ``sum w x / sum w`` by
        the delta method, ``sqrt(sum w^2 (x - mean)^2 n / (n - 1)) / sum w`` with the effective size n. For a sequence
        it is that of the mean of its independent parts.
        """
        n = self.effective
        if self.replicates is not None:
            return error_of_mean(self.replicates[0])
        if not n > 1:
            return np.full_like(self.mean, np.nan)
        return self.std / math.sqrt(n) if self.scores is None else np.sqrt(self.scores[1] * n / (n - 1)) / self.weight

    @property
    def degrees(self) -> float | int:
        """The number of degrees of freedom of ``error``."""
        return self.effective - 1 if self.replicates is None else len(self.replicates[0]) - 1

    def interval(self, level: float = 0.95) -> tuple[Real, Real]:
        """The confidence interval (low, high) of the mean: Student's, or that of Clopper and Pearson for a probability.

        The interval of a weighted probability is (0, 1) while all samples are equal.

        Args:
            level: Confidence level, between 0 and 1.
        """
        if self.truth and self.scores is None:
            seen, count = np.rint(np.nan_to_num(self.mean) * self.count), self.count + self.missing
            return clopper_pearson(seen, count, level)[0], clopper_pearson(seen + self.missing, count, level)[1]
        half = student_quantile(level, self.degrees) * self.error
        low, high = self.mean - half, self.mean + half
        if not self.truth:
            return low, high
        known = self.error > 0
        return np.where(known, np.maximum(low, 0), 0.0), np.where(known, np.minimum(high, 1), 1.0)

    def half_width(self, level: float = 0.95) -> Real:
        """Half width of ``interval``."""
        low, high = self.interval(level)
        return (high - low) / 2


def error_of_mean(parts: Parts) -> Real:
    """The standard error of the mean of independent numbers; NaN for one."""
    if len(parts) < 2:
        return np.full_like(parts[0], np.nan)
    return parts.std(axis=0, ddof=1) / math.sqrt(len(parts))


class RunningReplicates:
    """Running means and standard deviations of the independent parts of a sequence.

    Attributes:
        weight: Sums of weights, (parts, columns).
        mean: Means, (parts, columns).
        deviations: Weighted sums of squared deviations, (parts, columns).
    """

    def __init__(self, parts: int, columns: int) -> None:
        self.weight, self.mean, self.deviations = np.zeros((3, parts, columns))

    def add(self, first: int, numbers: Float[np.ndarray, "n columns"], weights: Float[np.ndarray, "n columns"]) -> None:
        """Add the samples from ``first`` on; values of weight zero do not count."""
        parts, columns = self.mean.shape
        before = first % parts
        ends = (before, -(before + len(numbers)) % parts), (0, 0)
        w = np.pad(weights, ends).reshape(-1, parts, columns)
        x = np.pad(np.where(weights > 0, numbers, 0.0), ends).reshape(-1, parts, columns)
        own = w.sum(axis=0)
        mean = (w * x).sum(axis=0) / np.where(own > 0, own, 1)
        total = self.weight + own
        share, gap = own / np.where(total > 0, total, 1), mean - self.mean
        self.deviations += (w * (x - mean) ** 2).sum(axis=0) + self.weight * share * gap**2
        self.mean, self.weight = self.mean + share * gap, total

    def spread(self, part: slice, shape: tuple[int, ...]) -> tuple[Parts, Parts]:
        """Means and standard deviations of some columns, ``(parts, *shape)``; NaN for a part without samples."""
        known = self.weight[:, part] > 0
        # no interval follows from the other parts alone
        mean = np.where(known, self.mean[:, part], np.nan)
        variance = np.where(known, self.deviations[:, part] / np.where(known, self.weight[:, part], 1.0), np.nan)
        return mean.reshape(-1, *shape), np.sqrt(variance).reshape(-1, *shape)
