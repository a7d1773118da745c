"""Moments of a stream against NumPy and scipy."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from lgsim.montecarlo import Moments, StopAtConfidence
from lgsim.montecarlo.intervals import clopper_pearson, wilson


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
    for n in (2, 5, 400):
        m = Moments.of(x[:n])
        low, high = stats.t.interval(0.9, n - 1, m.mean, stats.sem(x[:n]))
        np.testing.assert_allclose(m.interval(0.9), [low, high])
    for k, n in ((0, 10), (3, 50), (50, 50), (1, 1), (0, 1)):
        for ours, name in ((wilson, "wilson"), (clopper_pearson, "exact")):
            theirs = stats.binomtest(k, n).proportion_ci(0.95, method=name)
            np.testing.assert_allclose(ours(k, n), [theirs.low, theirs.high], atol=1e-12)
    for interval in (wilson, clopper_pearson):
        assert interval(0, 0) == (0.0, 1.0)
        np.testing.assert_allclose(np.transpose(interval(np.array([1.0, 2.0]), 30)), [interval(1, 30), interval(2, 30)])


def coverage(draw, truth, interval, count=1000):
    """The fraction of studies whose interval contains the truth."""
    rng = np.random.default_rng(7)
    found = [interval(draw(rng)) for _ in range(count)]
    return np.mean([low <= truth <= high for low, high in found])


def test_coverage():
    """Of 1000 small studies each: Student's exact for normal numbers, Clopper and Pearson's at least the level."""
    for n in (2, 5, 40):
        found = coverage(lambda rng, n=n: Moments.of(rng.normal(size=n)), 0.0, lambda m: m.interval())
        assert abs(found - 0.95) < 0.02
    for p, n in ((0.003, 64), (0.02, 200), (0.5, 20)):
        exact = coverage(lambda rng, p=p, n=n: rng.binomial(n, p), p, lambda k, n=n: clopper_pearson(k, n))
        assert exact >= 0.945

    def tilted(rng):
        """A normal number, tilted by one deviation: an effective number of about 1500."""
        x = rng.normal(size=4000) + 1
        return Moments.of(x, np.exp(0.5 - x))

    assert 0.93 <= coverage(tilted, 0.0, lambda m: m.interval()) <= 0.97


def test_the_error_of_a_weighted_mean():
    """The delta method, written out; the same for parts."""
    rng = np.random.default_rng(4)
    x, w = rng.normal(size=(60, 2)), rng.exponential(size=60)
    m = Moments.of(x[:7], w[:7]).merge(Moments.of(x[7:], w[7:]))
    mean, n = w @ x / w.sum(), w.sum() ** 2 / (w @ w)
    np.testing.assert_allclose(m.error, np.sqrt(w**2 @ (x - mean) ** 2 * n / (n - 1)) / w.sum(), rtol=1e-12)
    alike = Moments.of(x, np.ones(60))
    np.testing.assert_allclose(alike.error, Moments.of(x).error, rtol=1e-12)


def test_probabilities_that_were_not_seen():
    """Without a failure the interval is that of the rule of three; samples without a value count both ways."""
    none = replace(Moments.of(np.zeros(512)), truth=True)
    np.testing.assert_allclose(none.interval(), [0, 1 - 0.025 ** (1 / 512)], rtol=1e-12)
    rule = StopAtConfidence("y", 1e-4, min_samples=2)
    assert not rule.is_met(none.half_width(), 512)
    assert not rule.is_met(Moments.of(np.zeros(512)).half_width(), 512)
    assert rule.is_met(np.array([0, 1e-9]), 512)  # one entry varies
    lost = replace(Moments.of(np.repeat([0.0, 1.0], [90, 10])), truth=True, missing=20)
    low, high = lost.interval()
    assert low == clopper_pearson(10, 120)[0] and high == clopper_pearson(30, 120)[1]
    assert replace(Moments.of(np.zeros(9), np.ones(9)), truth=True).interval() == (0, 1)


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
