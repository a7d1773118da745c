"""Mean and variance of a stream, and when they are known well enough."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

Real = np.ndarray | np.floating
"""Arrays of NumPy, those without axes included."""


@dataclass(frozen=True)
class Moments:
    """Count, mean and sum of squared deviations of arrays of one shape; ``a.merge(b)`` has those of both.

    In float64 whatever the samples' type. With weights they are those of the weighted samples.

    Source: Chan, Golub, LeVeque, Updating formulae and a pairwise algorithm for computing sample variances, COMPSTAT
    1982, eq. (2.1); with weights West, Updating mean and variance estimates, Communications of the ACM 22(9), 1979.

    Attributes:
        count: How many samples.
        weight: Sum of the weights.
        squares: Sum of the squares of the weights.
        mean: Of the samples.
        deviation: Sum of weighted squares of deviations from the mean.
        low, high: The smallest and the largest sample, entry by entry.
    """

    count: int
    weight: float
    squares: float
    mean: Real
    deviation: Real
    low: Real
    high: Real

    @classmethod
    def of(cls, samples: np.ndarray, weights: np.ndarray | None = None) -> Moments:
        """Those of samples (n, ...), by default of weight 1."""
        x = np.asarray(samples, float)
        if not len(x):
            zero = np.zeros(x.shape[1:])
            return cls(0, 0.0, 0.0, zero, zero, zero + np.inf, zero - np.inf)
        w = np.ones(len(x)) if weights is None else np.asarray(weights, float)
        total = float(w.sum())
        share = (w / total if total else w).reshape(-1, *(1,) * (x.ndim - 1))
        mean = (share * x).sum(axis=0)
        deviation = total * (share * (x - mean) ** 2).sum(axis=0)
        return cls(len(x), total, float((w * w).sum()), mean, deviation, x.min(axis=0), x.max(axis=0))

    def merge(self, other: Moments) -> Moments:
        """Those of the samples of both."""
        if not other.count or not self.count:
            return self if self.count else other
        weight = self.weight + other.weight
        gap, share = other.mean - self.mean, other.weight / weight if weight else 0.0
        return Moments(
            self.count + other.count, weight, self.squares + other.squares, self.mean + share * gap,
            self.deviation + other.deviation + self.weight * share * gap**2,
            np.minimum(self.low, other.low), np.maximum(self.high, other.high),
        )  # fmt: skip

    @property
    def effective(self) -> float:
        """The effective sample size ``(sum w)^2 / sum w^2`` (Kish); the count where all weights are equal."""
        return self.weight**2 / self.squares if self.squares else 0.0

    @property
    def variance(self) -> Real:
        """Of the distribution; NaN for less than two samples."""
        n = self.effective
        return self.deviation / self.weight * (n / (n - 1)) if n > 1 else np.full_like(self.mean, np.nan)

    @property
    def std(self) -> Real:
        """Standard deviation."""
        return np.sqrt(self.variance)

    @property
    def error(self) -> Real:
        """Standard error of the mean of independent samples: ``std / sqrt(effective)``."""
        return self.std / math.sqrt(self.effective) if self.effective else np.full_like(self.mean, np.nan)

    def half_width(self, level: float = 0.95) -> Real:
        """Half of the interval of confidence of the mean, ``z std / sqrt(n)`` (central limit theorem)."""
        return normal_quantile(level) * self.error


@dataclass(frozen=True)
class StopAtConfidence:
    """Stop when the mean of an output is known to a half width, at a level of confidence.

    Looked at after each tile from ``least`` samples on, whatever the size of chunks. The more often one looks, the
    lower the true level: let ``least`` be some hundreds.

    Attributes:
        output: Name of the output, or of a failure as ``"failed <name>"``.
        half_width: Of all entries of the output; a positive number.
        level: Of confidence, between 0 and 1.
        least: Number of samples below which nothing stops.
    """

    output: str
    half_width: float
    level: float = 0.95
    least: int = 1000

    def __post_init__(self) -> None:
        if not 0 < self.half_width < math.inf:
            raise ValueError(f"half_width: expected a positive number, got {self.half_width}")
        if not 0 < self.level < 1:
            raise ValueError(f"level: expected a number between 0 and 1, got {self.level}")
        if self.least < 2:
            raise ValueError(f"least: expected at least 2 samples, got {self.least}")

    def check(self, shapes: Mapping[str, Any]) -> None:
        """Whether there is such an output.

        Raises:
            ValueError: there is none.
        """
        if self.output not in shapes:
            raise ValueError(f"stop: expected one of the outputs {', '.join(shapes)}, got {self.output!r}")

    def reached(self, moments: Mapping[str, Moments], samples: int) -> bool:
        """Whether the samples so far are enough."""
        own = moments[self.output]
        return samples >= self.least and own.count > 1 and bool(np.all(own.half_width(self.level) <= self.half_width))


def normal_quantile(level: float) -> float:
    """The half width, in standard deviations, of the interval that a Gaussian number is in at a level."""
    return NormalDist().inv_cdf(0.5 + 0.5 * level)


def wilson(failures: float | int, count: float | int, level: float = 0.95) -> tuple[float, float]:
    """The interval of confidence of a probability of which ``failures`` of ``count`` independent samples were seen.

    Source: Wilson, Probable inference, the law of succession, and statistical inference, Journal of the American
    Statistical Association 22, 1927.
    """
    if not count:
        return 0.0, 1.0
    z = normal_quantile(level)
    p, q = failures / count, z * z / count
    middle, half = (p + q / 2) / (1 + q), math.sqrt(p * (1 - p) * q + q * q / 4) / (1 + q)
    return max(0.0, middle - half), min(1.0, middle + half)
