"""Moments of a stream against NumPy and scipy."""

import numpy as np
import pytest
from scipy import stats

from lgsim.montecarlo import Moments, StopAtConfidence
from lgsim.montecarlo.results import wilson


@pytest.mark.parametrize("cuts", [[], [1], [0, 50], [3, 4, 40]])
def test_moments_of_parts_are_those_of_the_whole(cuts):
    """Far from zero, where sums of squares would have no digit left."""
    x = 1e9 + np.random.default_rng(0).normal(size=(100, 2, 3))
    found = Moments.of(np.zeros((0, 2, 3)))
    for part in np.split(x, cuts):
        found = found.merge(Moments.of(part))
    np.testing.assert_allclose(found.mean, x.mean(axis=0), rtol=1e-15)
    np.testing.assert_allclose(found.std, x.std(axis=0, ddof=1), rtol=1e-7)
    np.testing.assert_allclose(found.error, stats.sem(x, axis=0), rtol=1e-7)
    np.testing.assert_array_equal([found.low, found.high], [x.min(axis=0), x.max(axis=0)])
    assert (found.count, found.effective) == (100, 100)


def test_weights_count_samples():
    """Whole weights are repeated samples in the mean; the effective size is Kish's."""
    rng = np.random.default_rng(1)
    x, w = rng.normal(size=50), rng.integers(0, 4, 50)
    found = Moments.of(x[:20], w[:20]).merge(Moments.of(x[20:], w[20:]))
    np.testing.assert_allclose(found.mean, np.repeat(x, w).mean(), rtol=1e-13)
    np.testing.assert_allclose(found.squared_deviations / found.weight, np.repeat(x, w).var(), rtol=1e-13)
    np.testing.assert_allclose(found.effective, w.sum() ** 2 / (w**2).sum())


def test_intervals():
    x = np.random.default_rng(2).normal(size=400)
    m = Moments.of(x)
    low, high = stats.norm.interval(0.9, m.mean, stats.sem(x))
    np.testing.assert_allclose([m.mean - m.half_width(0.9), m.mean + m.half_width(0.9)], [low, high])
    for k, n in ((0, 10), (3, 50), (50, 50)):
        theirs = stats.binomtest(k, n).proportion_ci(0.95, method="wilson")
        np.testing.assert_allclose(wilson(k, n), [theirs.low, theirs.high], atol=1e-12)


def test_few_samples_have_no_variance():
    assert np.isnan(Moments.of(np.ones((1, 2))).std).all()
    assert np.isnan(Moments.of(np.zeros((0, 2))).error).all()
    assert not StopAtConfidence("y", 1.0, min_samples=2).is_met(Moments.of(np.ones(1)).half_width(), 5)


@pytest.mark.parametrize("rule, message", [
    ({"half_width": 0.0}, "half_width: expected a positive number"),
    ({"half_width": 1.0, "level": 1.0}, "level: expected a number between 0 and 1"),
    ({"half_width": 1.0, "min_samples": 1}, "min_samples: expected at least 2 samples"),
])  # fmt: skip
def test_bad_rules(rule, message):
    with pytest.raises(ValueError, match=message):
        StopAtConfidence("y", **rule)
