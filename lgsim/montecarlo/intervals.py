"""Confidence intervals of means and of probabilities, from independent samples."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
from jaxtyping import Float
from scipy import special

Real = Float[np.ndarray, "*shape"] | np.floating
"""NumPy arrays, including zero-dimensional ones."""

Numbers = Real | float | int
"""NumPy arrays and numbers."""


def normal_quantile(level: float) -> float:
    """The half width, in standard deviations, of the central interval of a normal distribution with a given
    probability.
    """
    return NormalDist().inv_cdf(0.5 + 0.5 * level)


def student_quantile(level: float, degrees: Numbers) -> Real:
    """The same for Student's t distribution; NaN without degrees of freedom.

    Args:
        degrees: Number of degrees of freedom, not necessarily an integer.

    Source: Student, The probable error of a mean, Biometrika 6(1), 1908.
    """
    degrees = np.asarray(degrees, float)
    return special.stdtrit(np.where(degrees > 0, degrees, np.nan), 0.5 + 0.5 * level)


def clopper_pearson(failures: Numbers, count: Numbers, level: float = 0.95) -> tuple[Real, Real]:
    """The exact confidence interval (low, high) of a probability, with at least the coverage ``level``.

    The probabilities at the ends satisfy ``P(X >= failures | low) = P(X <= failures | high) = (1 - level) / 2`` for a
    binomial X. Without failures ``high`` is about 3.7 / count at 95 %.

    Args:
        level: Confidence level, between 0 and 1.

    Source: Clopper, Pearson, The use of confidence or fiducial limits illustrated in the case of the binomial,
    Biometrika 26(4), 1934.
    """
    k, n, tail = np.asarray(failures, float), np.asarray(count, float), 0.5 - 0.5 * level
    none, all_of = k <= 0, k >= n
    low = special.betaincinv(np.where(none, 1.0, k), n - np.where(none, 0.0, k) + 1, tail)
    high = special.betaincinv(np.where(all_of, 0.0, k) + 1, np.where(all_of, 1.0, n - k), 1 - tail)
    return np.where(none, 0.0, low)[()], np.where(all_of, 1.0, high)[()]


def wilson(failures: Numbers, count: Numbers, level: float = 0.95) -> tuple[Real, Real]:
    """The Wilson confidence interval (low, high) of a probability.

    It is shorter than ``clopper_pearson``, and has the coverage ``level`` on average over probabilities; for rare
    failures it can be as small as 0.84 at a level of 95 %.

    Args:
        level: Confidence level, between 0 and 1.

    Source: Wilson, Probable inference, the law of succession, and statistical inference, Journal of the American
    Statistical Association 22, 1927.
    """
    n = np.asarray(count, float)
    z, safe = normal_quantile(level), np.where(n > 0, n, 1.0)
    p, q = failures / safe, z * z / safe
    middle, half = (p + q / 2) / (1 + q), np.sqrt(p * (1 - p) * q + q * q / 4) / (1 + q)
    low, high = np.maximum(middle - half, 0.0), np.minimum(middle + half, 1.0)
    return np.where(n > 0, low, 0.0)[()], np.where(n > 0, high, 1.0)[()]
