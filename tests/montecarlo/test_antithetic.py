"""Antithetic pairs: opposite samples, the error from the means of the pairs, coverage over a thousand studies."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from lgsim import montecarlo as mc
from lgsim.montecarlo.moments import Moments, RunningPairs

PAIRS = mc.Antithetic()


def line(samples=64, **more):
    """A steep function of a normal number, its square, and a process."""
    distributions = {"x": mc.Normal(1.0, 0.5), "path": mc.OrnsteinUhlenbeck(1.0, 1.0, 0.1, 3)}
    return mc.Study(
        distributions,
        lambda values: {"exp": jnp.exp(values["x"]), "even": (values["x"] - 1.0) ** 2, "path": values["path"][:, 0]},
        samples=samples, sequence=PAIRS, tile=16, **more,
    )  # fmt: skip


def error_of(y, known=None):
    """The error of the mean of samples in order, added in unequal parts."""
    running, w = RunningPairs(1), np.ones(len(y)) if known is None else known.astype(float)
    for first, stop in ((0, 7), (7, 8), (8, 30), (30, len(y))):
        running.add(first, y[first:stop, None], w[first:stop, None])
    return running.complete(Moments.of(y[w > 0][:, None]), slice(0, 1))


def test_pairs_have_opposite_numbers():
    """Also those of processes; pairs differ, and a study can be extended."""
    study, longer = line(), line(samples=100)
    for k in (0, 5):
        one, two, again = (each.sample(i).values for each, i in ((study, 2 * k), (study, 2 * k + 1), (longer, 2 * k)))
        np.testing.assert_allclose(one["x"] - 1.0, -(two["x"] - 1.0), rtol=1e-12)
        np.testing.assert_array_equal(one["path"], -two["path"])
        assert one["x"] == again["x"]
    assert len(np.unique(np.abs(mc.run(study).inputs["x"] - 1.0).round(12))) == 32


def test_the_error_is_that_of_the_means_of_pairs():
    """Of any chunks; with missing values the residuals of the pairs, as of clusters."""
    y = np.random.default_rng(0).normal(1e6, 1.0, size=64)
    means = y.reshape(-1, 2).mean(axis=1)
    m = error_of(y)
    np.testing.assert_allclose(m.error, means.std(ddof=1) / np.sqrt(32), rtol=1e-6)
    assert m.degrees == 31
    known = np.random.default_rng(1).random(64) < 0.8
    mean = y[known].mean()
    residuals = np.where(known, y - mean, 0.0).reshape(-1, 2).sum(axis=1)
    n = np.sum(known.reshape(-1, 2).any(axis=1))
    wanted = np.sqrt(np.sum(residuals**2) * n / (n - 1)) / known.sum()
    np.testing.assert_allclose(error_of(y, known).error, wanted, rtol=1e-6)
    odd = error_of(y[:63])
    assert odd.degrees == 31 and np.isfinite(odd.error).all()


def test_results_have_this_error():
    """A steep output is known far better than by random samples, an even one worse."""
    results = mc.run(line(samples=256))
    for name in ("exp", "even"):
        m, y = results.moments(name), results.column(name)
        np.testing.assert_allclose(m.error, y.reshape(-1, 2).mean(axis=1).std(ddof=1) / np.sqrt(128), rtol=1e-9)
    assert results.moments("exp").error < 0.5 * replace(results.moments("exp"), pairs=None).error
    assert results.moments("even").error > 1.3 * replace(results.moments("even"), pairs=None).error
    low, high = results.moments("exp").interval()
    assert low < np.exp(1.125) < high


def coverage(f, wanted, pairs=64, truth=False):
    """The fraction of a thousand studies whose interval contains the mean of a function of z."""
    z, covered = np.random.default_rng(2).normal(size=(1000, pairs)), 0
    for row in z:
        y = f(np.stack([row, -row], axis=1).ravel())
        running = RunningPairs(1)
        running.add(0, y[:, None].astype(float), np.ones((2 * pairs, 1)))
        m = replace(running.complete(Moments.of(y[:, None]), slice(0, 1)), truth=truth)
        low, high = m.interval()
        covered += bool(low <= wanted <= high)
    return covered / 1000


def test_coverage_of_means():
    """Student's t of the means of the pairs: exact where these are normal, asymptotic for others."""
    ndtr, ndtri = scipy.special.ndtr, scipy.special.ndtri
    assert 0.94 <= coverage(lambda z: z + ndtri(2 * ndtr(np.abs(z)) - 1), 0.0, pairs=5) <= 0.96
    assert 0.94 <= coverage(lambda z: np.cos(z + 0.3), np.cos(0.3) * np.exp(-0.5), pairs=500) <= 0.96
    assert 0.94 <= coverage(lambda z: np.exp(0.5 * z), np.exp(0.125), pairs=1000) <= 0.96


def test_coverage_of_probabilities():
    """At least 95 %, also where both of a pair fail or none: half as many samples are independent."""
    assert coverage(lambda z: np.abs(z) > 1.2815515655446004, 0.2, truth=True) >= 0.95
    assert coverage(lambda z: z > 0.8416212335729143, 0.2, truth=True) >= 0.95


def test_failures_and_rules_to_stop():
    """Intervals of failures have half of the samples; a rule to stop sees the error of the pairs."""
    even = {"far": lambda y: y["even"] > 0.25 * 1.2815515655446004**2}
    found = mc.run(line(samples=1000, failures=even)).failures("far")
    known = scipy.stats.binomtest(found.count // 2, 500).proportion_ci(0.95, method="exact")
    assert found.count % 2 == 0
    np.testing.assert_allclose(found.interval, [known.low, known.high], rtol=1e-9)
    rule = mc.StopAtConfidence("exp", 0.05, min_samples=16)
    stopped = mc.run(line(samples=4000, stop=rule))
    # random samples would need (1.96 std / 0.05)^2 = 4100
    assert 16 <= stopped.samples < 2000 and stopped.moments("exp").half_width() <= 0.05


def test_tilts_are_refused():
    with pytest.raises(ValueError, match=r"tilts: not available with Antithetic\(\)"):
        line(tilts={"x": mc.ImportanceTilt(1.0)})
