"""Missing values: a sample counts in each statistic that it has; probabilities are bounded both ways."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from lgsim import montecarlo as mc
from tests.montecarlo import studies

SAMPLES = 1500
CASES = {"x": mc.Normal(0.0, 1.0)}


def gaps(v):
    """x is always known; its logarithm and a pair of numbers are not."""
    x = v["x"]
    return {"x": x, "log": jnp.log(x), "pair": jnp.stack([x, jnp.where(x > 0.5, jnp.nan, 1.0)])}


def study(samples=SAMPLES, **more):
    failures = {"far": lambda y: y["x"] > 1, "log": lambda y: y["log"] > 0, "none": lambda y: False}
    return mc.Study(CASES, gaps, samples=samples, failures=failures, tile=100, **more)


@pytest.fixture(scope="module")
def results():
    return mc.run(study())


def test_a_sample_counts_in_each_statistic_that_it_has(results):
    """By NumPy of the column of each output: P(x > 1) is that of the normal distribution."""
    x = results.column("x")
    known = {"x": np.ones(SAMPLES, bool), "log": x > 0, "pair": x <= 0.5}
    for name, mask in known.items():
        own, m = results.column(name)[mask], results.moments(name)
        assert (m.count, m.missing) == (mask.sum(), (~mask).sum())
        np.testing.assert_allclose(m.mean, own.mean(axis=0), rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(m.std, own.std(axis=0, ddof=1), rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(m.low, own.min(axis=0))
        np.testing.assert_allclose(results.quantiles(name, [0.1, 0.5]), np.quantile(own, [0.1, 0.5], axis=0))
        np.testing.assert_allclose(np.atleast_2d(results.covariance(name)), np.atleast_2d(np.cov(own.T)), atol=1e-12)
        assert results.histogram(name, 7).counts.sum() == own.size
    assert results.diverged == {} and results.running.diverged == 0
    far = results.failures("far")
    assert (far.count, far.samples) == ((x > 1).sum(), SAMPLES)
    assert far.interval[0] < stats.norm.sf(1.0) < far.interval[1]


def test_a_failure_without_its_output_is_bounded_both_ways(results):
    """log(x) > 0 is unknown for x < 0 alone; the interval is Clopper and Pearson's with these failed and not."""
    x = results.column("x")
    k, lost, found = int((x > 1).sum()), int((x < 0).sum()), results.failures("log")
    low, high = (stats.binomtest(j, SAMPLES).proportion_ci(0.95, method="exact") for j in (k, k + lost))
    np.testing.assert_allclose(found.interval, [low.low, high.high], rtol=1e-10)
    np.testing.assert_allclose(results.moments("failed log").interval(), found.interval, rtol=1e-10)
    assert (found.samples, found.count) == (SAMPLES - lost, k)
    np.testing.assert_array_equal(found.indices, np.flatnonzero(x > 1))
    none = results.failures("none")
    assert (none.count, none.samples) == (0, SAMPLES)


def test_missing_values_in_chunks_are_bitwise_those_of_one(results, tmp_path):
    small = mc.run(study(), chunk=100)
    stored = mc.run(study(), tmp_path / "store", chunk=300)
    for name in results.running.names:
        for other in (small, stored, mc.Results.open(study(), tmp_path / "store")):
            for part in ("mean", "squared_deviations", "low", "high", "count", "missing"):
                np.testing.assert_array_equal(getattr(results.moments(name), part), getattr(other.moments(name), part))


def test_missing_values_of_a_sequence():
    """Parts of a Sobol sequence have means of the samples with a value each."""
    found = mc.run(study(2048, sequence=mc.Sobol()))
    m, parts = found.moments("log"), found.study.sampler.points.replicates
    x = found.column("log")
    means = [np.nanmean(x[i::parts]) for i in range(parts)]
    np.testing.assert_allclose(m.replicates[0], means, rtol=1e-12)
    np.testing.assert_allclose(m.error, np.std(means, ddof=1) / np.sqrt(parts), rtol=1e-12)
    assert m.missing == np.isnan(x).sum() and found.moments("x").missing == 0


def test_a_tilted_failure_with_missing_values():
    """Weights of samples that may have failed: the interval with them, and without."""

    def f(v):
        return {"x": v["x"], "y": jnp.where(v["x"] > 2.5, jnp.nan, v["x"])}

    found = mc.run(mc.Study(
        CASES, f, samples=4000, tilts={"x": mc.ImportanceTilt(2.0)}, tile=1000, failures={"far": lambda y: y["y"] > 2},
    )).failures("far")  # fmt: skip
    both = stats.norm.sf(2.0) - stats.norm.sf(2.5)
    assert found.probability == pytest.approx(both / stats.norm.cdf(2.5), rel=0.1)
    assert found.interval[0] < both < stats.norm.sf(2.0) < found.interval[1]


def test_an_event_that_did_not_happen_is_a_value():
    """An infinite time of a motion: later than any limit, in the upper quantiles, and in no mean."""
    model = studies.pendulum()
    run = mc.Rollout(model, [0.5], dt=0.01, steps=20)

    def first(motion):
        return jnp.where(motion.v[-1, 0] > -2.0, jnp.inf, motion.v[-1, 0] ** 2)

    found = mc.run(mc.Study(
        {"v0": mc.Normal(jnp.zeros(1), jnp.ones(1))}, run, {"time": first, "end": mc.outputs.final_q}, samples=400,
        tile=100, failures={"late": lambda y: y["time"] > 5}
    ))  # fmt: skip
    time = found.column("time")
    assert 0.1 < np.isinf(time).mean() < 0.9
    late = found.failures("late")
    assert (late.count, late.samples) == ((time > 5).sum(), 400) and found.running.diverged == 0
    finite = time[np.isfinite(time)]
    assert found.moments("end").count == 400 and found.moments("time").missing == 400 - len(finite)
    np.testing.assert_allclose(found.moments("time").mean, finite.mean())
    ordered = np.sort(time)
    np.testing.assert_allclose(found.quantiles("time", [0.0, 0.02, 1.0]),
                               [ordered[0], np.interp(0.02 * 399, np.arange(20), ordered[:20]), np.inf])  # fmt: skip
    assert found.step_error is not None and found.step_error.resolved


def test_a_probability_that_missing_values_leave_open(results):
    """Half of the samples have no logarithm; a few of 1500 do not matter."""
    assert list(results.undecided()) == ["log"]
    text = results.undecided()["log"]
    assert text.startswith("the probability of 'log' is open: ") and f"of {SAMPLES:,} diverged or have no value" in text

    def rare(v):
        return {"x": jnp.where(v["x"] > 3.0, jnp.nan, v["x"])}

    few = mc.run(mc.Study(CASES, rare, samples=3000, tile=1000, failures={"far": lambda y: y["x"] > 1}))
    assert few.moments("x").missing > 0 and few.undecided() == {}


def test_an_output_without_any_value():
    """Unknown, not zero; a probability of which nothing is known is between 0 and 1."""
    found = mc.run(mc.Study(CASES, lambda v: {"x": v["x"], "no": jnp.full(2, jnp.nan) + v["x"]}, samples=20, tile=10,
                            failures={"no": lambda y: y["no"][0] > 0}))  # fmt: skip
    m, failed = found.moments("no"), found.failures("no")
    for x in (m.mean, m.std, m.error, m.low, m.high, found.quantiles("no", [0.5])):
        assert np.isnan(x).all()
    assert (m.count, m.missing, failed.interval) == (0, 20, (0.0, 1.0)) and np.isnan(failed.probability)
    assert found.moments("x").count == 20 and list(found.undecided()) == ["no"]
