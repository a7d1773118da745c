"""Confidence intervals of quantiles: order statistics against scipy, coverage, parts of sequences, pairs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
import scipy.stats.mstats

from lgsim import montecarlo as mc
from lgsim.montecarlo import results as results_module
from lgsim.montecarlo.estimators.quantiles import order_levels, parts_quantiles
from lgsim.montecarlo.intervals import student_quantile

LEVELS = np.array([0.05, 0.5, 0.95])
TRUE = scipy.stats.norm.ppf(LEVELS)


def study(samples=400, **more):
    """Two normal numbers."""
    return mc.Study({"x": mc.Normal(jnp.zeros(2), 1.0)}, lambda values: {"y": values["x"]}, samples=samples, **more)


def places(count, independent=1.0):
    """The sorted samples at the ends of the intervals, from 0."""
    return [np.rint(x * (count - 1)).astype(int) for x in order_levels(LEVELS, count, independent, 0.95)]


def test_places_are_those_of_binomial_quantiles():
    """For a thousand samples and for the fewest that have an interval of a quantile of 5 % at all."""
    for count in (1000, 73):
        low, high = places(count)
        np.testing.assert_array_equal(low, scipy.stats.binom.ppf(0.025, count, LEVELS) - 1)
        np.testing.assert_array_equal(high, scipy.stats.binom.ppf(0.975, count, LEVELS))
    ends = order_levels(np.array([0.0, 1.0]), 30, 1.0, 0.95)
    assert ends[0][0] < 0 and ends[1][1] > 1
    assert order_levels(LEVELS, 30, 1.0, 0.95)[0][0] < 0 < 1 < order_levels(LEVELS, 30, 1.0, 0.95)[1][2]


def test_intervals_of_a_study(tmp_path, monkeypatch):
    """Sorted samples of each entry, also from a store; infinite where there are too few."""
    results = mc.run(study())
    found, y = results.quantile_intervals("y", list(LEVELS)), np.sort(results.column("y"), axis=0)
    for end, place in zip(found, places(400), strict=True):
        np.testing.assert_allclose(end, y[place], rtol=1e-12)
    monkeypatch.setattr(results_module, "SORTED", 0)
    stored = mc.run(study(), tmp_path / "store").quantile_intervals("y", list(LEVELS))
    np.testing.assert_allclose(stored, found, atol=0.05)
    low, high = mc.run(study(samples=30)).quantile_intervals("y", [0.05, 0.95])
    assert np.all(low[0] == -np.inf) and np.all(high[1] == np.inf) and np.all(np.isfinite([high[0], low[1]]))


@pytest.mark.parametrize("independent", [1.0, 0.5])
def test_coverage(independent):
    """At least 95 % over a thousand studies; for antithetic pairs of |z|, whose two values are equal, as well."""
    y = np.random.default_rng(0).normal(size=(1000, round(200 * independent)))
    y = np.sort(np.repeat(y, round(1 / independent), axis=1), axis=1)
    low, high = places(200, independent)
    covered = np.mean((y[:, low] <= TRUE) & (TRUE <= y[:, high]), axis=0)
    assert np.all(covered >= 0.95) and np.all(covered <= 0.99)


@pytest.mark.parametrize("kind", [mc.Sobol, mc.LatinHypercube])
def test_intervals_of_the_parts_of_a_sequence(kind):
    """Student's from the quantiles of the parts; narrower than those of random samples."""
    results = mc.run(study(samples=512, sequence=kind()))
    low, high = results.quantile_intervals("y", list(LEVELS))
    parts = scipy.stats.mstats.mquantiles(results.column("y")[:, 0].reshape(64, 8), LEVELS, 0.5, 0.5, axis=0)
    half = scipy.stats.t.ppf(0.975, 7) * parts.std(axis=1, ddof=1) / np.sqrt(8)
    np.testing.assert_allclose((high - low)[:, 0] / 2, half, rtol=1e-9)
    np.testing.assert_allclose((high + low)[:, 0] / 2, parts.mean(axis=1), rtol=1e-9, atol=1e-12)
    random = mc.run(study(samples=512)).quantile_intervals("y", list(LEVELS))
    assert np.mean(high - low) < 0.6 * np.mean(random[1] - random[0])
    assert np.isnan(mc.run(study(samples=64, sequence=kind(1))).quantile_intervals("y", [0.5])).all()


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "studies"), [(mc.Sobol, 300), (mc.LatinHypercube, 1000)])
def test_coverage_of_the_parts_of_a_sequence(kind, studies):
    """Of quantiles of a sum of two normal numbers: many studies with one program."""
    samples = 256
    points = jax.tree.map(lambda *x: jnp.stack(x), *[kind().points(seed, samples, 2) for seed in range(studies)])
    indices = jnp.arange(samples, dtype=jnp.uint32)

    @jax.jit
    def sums(sequence):
        return jax.vmap(lambda i: sequence.normal(i, jnp.dtype(float)).sum())(indices)

    y = np.asarray(jax.lax.map(sums, points))
    each = np.stack([parts_quantiles(row, np.ones(samples, bool), LEVELS, 8) for row in y])  # (studies, parts, levels)
    half = student_quantile(0.95, 7) * each.std(axis=1, ddof=1) / np.sqrt(8)
    covered = np.mean(np.abs(each.mean(axis=1) - np.sqrt(2) * TRUE) <= half, axis=0)
    # 95 %, within 2.5 standard errors
    assert np.all(np.abs(covered - 0.95) <= 2.5 * np.sqrt(0.95 * 0.05 / studies)), covered


def test_intervals_are_refused_with_a_reason():
    tilted = mc.run(study(samples=64, tilts={"x": mc.ImportanceTilt(0.5)}))
    with pytest.raises(ValueError, match="quantiles: not available under importance sampling"):
        tilted.quantile_intervals("y", [0.5])
