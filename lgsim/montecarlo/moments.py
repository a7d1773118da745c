"""Moments of samples with confidence intervals: running, weighted, and of the parts of a sequence."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Integer, Shaped

from lgsim.montecarlo.intervals import Real, clopper_pearson, student_quantile
from lgsim.montecarlo.low_discrepancy import Antithetic, ReplicatedPoints

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
        pairs: The standard error of the mean and the number of pairs of antithetic samples; None for other samples.
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
    pairs: tuple[Real, Real] | None = None
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
        it is that of the mean of its independent parts, for antithetic samples that of the means of the pairs.
        """
        n = self.effective
        if self.pairs is not None:
            return self.pairs[0]
        if self.replicates is not None:
            return error_of_mean(self.replicates[0])
        if not n > 1:
            return np.full_like(self.mean, np.nan)
        return self.std / math.sqrt(n) if self.scores is None else np.sqrt(self.scores[1] * n / (n - 1)) / self.weight

    @property
    def degrees(self) -> Real | float | int:
        """The number of degrees of freedom of ``error``."""
        if self.pairs is not None:
            return self.pairs[1] - 1
        return self.effective - 1 if self.replicates is None else len(self.replicates[0]) - 1

    def interval(self, level: float = 0.95) -> tuple[Real, Real]:
        """The confidence interval (low, high) of the mean: Student's, or that of Clopper and Pearson for a probability.

        The interval of a weighted probability is (0, 1) while all samples are equal. That of antithetic samples is that
        of half as many independent ones, since both of a pair may be equal.

        Args:
            level: Confidence level, between 0 and 1.
        """
        if self.truth and self.scores is None:
            seen, count = np.rint(np.nan_to_num(self.mean) * self.count), self.count + self.missing
            share = self.independent
            low, high = (clopper_pearson(share * x, share * count, level) for x in (seen, seen + self.missing))
            return low[0], high[1]
        half = student_quantile(level, self.degrees) * self.error
        low, high = self.mean - half, self.mean + half
        if not self.truth:
            return low, high
        known = self.error > 0
        return np.where(known, np.maximum(low, 0), 0.0), np.where(known, np.minimum(high, 1), 1.0)

    @property
    def independent(self) -> float:
        """The fraction of the samples that are independent: half of antithetic ones, otherwise all."""
        return 1.0 if self.pairs is None else 0.5

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

    def complete(self, moments: Moments, part: slice) -> Moments:
        """The moments of some columns with those of the parts."""
        return replace(moments, replicates=self.spread(part, moments.mean.shape))

    def spread(self, part: slice, shape: tuple[int, ...]) -> tuple[Parts, Parts]:
        """Means and standard deviations of some columns, ``(parts, *shape)``; NaN for a part without samples."""
        known = self.weight[:, part] > 0
        # no interval follows from the other parts alone
        mean = np.where(known, self.mean[:, part], np.nan)
        variance = np.where(known, self.deviations[:, part] / np.where(known, self.weight[:, part], 1.0), np.nan)
        return mean.reshape(-1, *shape), np.sqrt(variance).reshape(-1, *shape)


class RunningPairs:
    """Running sums over antithetic pairs, for the standard error of means of samples of which some may be missing.

    The mean ``sum w x / sum w`` with weights w of 0 or 1 has the variance ``sum r^2 n / (n - 1) / (sum w)^2`` by the
    delta method, with the residuals ``r = sum w (x - mean)`` of n pairs: without missing values that of the mean of the
    pairs' means.

    Attributes:
        sums: Of a, b, a^2, a b, b^2 and of 1 over the pairs with ``a = sum w > 0``, ``b = sum w (x - shift)``,
            (6, columns).
        shift: Numbers close to the means, (columns,), against cancellation.
        rest: The first sample of a pair whose second one has not been added, as (w, w (x - shift)), (2, 0 or 1,
            columns).
    """

    def __init__(self, columns: int) -> None:
        self.sums = np.zeros((6, columns))
        self.shift: Float[np.ndarray, " columns"] | None = None
        self.rest = np.zeros((2, 0, columns))

    def add(self, first: int, numbers: Float[np.ndarray, "n columns"], weights: Float[np.ndarray, "n columns"]) -> None:
        """Add the next samples, from ``first`` on; values of weight zero do not count."""
        if self.shift is None:
            total = weights.sum(axis=0)
            self.shift = np.where(weights > 0, numbers, 0.0).sum(axis=0) / np.where(total > 0, total, 1.0)
        own = np.stack([weights, np.where(weights > 0, numbers - self.shift, 0.0)])
        own = np.concatenate([self.rest, own], axis=1)
        whole = own.shape[1] // 2 * 2
        self.sums, self.rest = self.sums + self._sums(own[:, :whole]), own[:, whole:]

    @staticmethod
    def _sums(samples: Float[np.ndarray, "2 n columns"]) -> Float[np.ndarray, "6 columns"]:
        a, b = samples[:, ::2] + samples[:, 1::2]
        return np.stack([x.sum(axis=0) for x in (a, b, a * a, a * b, b * b, a > 0)])

    def complete(self, moments: Moments, part: slice) -> Moments:
        """The moments of some columns with the error of their means."""
        rest = np.pad(self.rest, ((0, 0), (0, 2 - self.rest.shape[1]), (0, 0)))
        total, b, aa, ab, bb, n = (self.sums + self._sums(rest))[:, part].reshape(6, *moments.mean.shape)
        with np.errstate(divide="ignore", invalid="ignore"):
            gap = b / total
            residuals = np.maximum(bb - 2 * gap * ab + gap**2 * aa, 0.0)
            error = np.where(n > 1, np.sqrt(residuals * n / (n - 1)) / total, np.nan)
        return replace(moments, pairs=(error, n))


def running_spread(
    points: ReplicatedPoints | Antithetic | None, columns: int
) -> RunningReplicates | RunningPairs | None:
    """The running statistics from which errors of means of a sequence follow; None for independent samples."""
    if points is None:
        return None
    return RunningPairs(columns) if isinstance(points, Antithetic) else RunningReplicates(points.replicates, columns)
