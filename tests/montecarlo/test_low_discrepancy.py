"""Sequences against scipy and their definitions; the samples that they and plain random numbers give."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.stats import qmc

from lgsim import montecarlo as mc
from lgsim.montecarlo import Moments
from lgsim.montecarlo.low_discrepancy import SobolPoints, permute
from lgsim.montecarlo.moments import RunningReplicates
from lgsim.montecarlo.study import Sampler
from tests.montecarlo import studies


def cube(sequence, samples, dim, seed=5):
    points = sequence.points(seed, samples, dim)
    return np.asarray(jax.jit(jax.vmap(points.integers))(jnp.arange(samples, dtype=jnp.uint32)))


def test_sobol_is_that_of_scipy():
    """Every point, from its index alone, is that of scipy's engine, which goes through them all."""
    theirs = qmc.Sobol(7, scramble=True, bits=32, rng=np.random.default_rng(5)).random_base2(10)
    np.testing.assert_array_equal(cube(mc.Sobol(1), 1000, 7) / 2**32, theirs[:1000])
    # the parts take turns, each with a scrambling of its own
    four = cube(mc.Sobol(4), 1000, 7) / 2**32
    np.testing.assert_array_equal(four[::4], theirs[:250])
    other = qmc.Sobol(7, scramble=True, bits=32, rng=np.random.default_rng([5, 3])).random_base2(8)
    np.testing.assert_array_equal(four[3::4], other[:250])


def test_a_sobol_study_can_grow():
    """Points do not depend on their number, also beyond a power of two."""
    few, many = (mc.Sobol().points(5, n, 3) for n in (100, 100_000))
    np.testing.assert_array_equal(few.parts.directions, many.parts.directions)


@pytest.mark.parametrize("samples", [1, 2, 7, 100, 1025])
def test_latin_hypercube_has_one_sample_in_each_cell(samples):
    """In every dimension; the dimensions' orders are not related."""
    parts = cube(mc.LatinHypercube(3), samples, 4).astype(object)
    for k in range(3 if samples >= 3 else 0):
        each = -(-samples // 3)
        assert len({*((parts[k::3, 0] * each) >> 32)}) == len(parts[k::3])
    found = cube(mc.LatinHypercube(1), samples, 4).astype(object)
    for column in found.T:
        assert sorted((column * samples) >> 32) == list(range(samples))
    if samples > 1000:
        found = found.astype(float)
        order = np.abs(np.corrcoef(found.T)[np.triu_indices(4, 1)])
        assert order.max() < 4 / np.sqrt(samples)
        inside = (found * samples / 2**32) % 1
        assert stats.kstest(inside[:, 0], "uniform").pvalue > 0.01


def test_permutations():
    """Each is one, they differ, and they map all numbers alike: a chi-squared test on where zero goes."""
    words = jnp.asarray(np.random.default_rng(0).integers(0, 2**32, (2000, 8)), jnp.uint32)
    all_of = jax.jit(jax.vmap(lambda w: jax.vmap(lambda i: permute(i, w, 11))(jnp.arange(11, dtype=jnp.uint32))))
    found = np.asarray(all_of(words))
    np.testing.assert_array_equal(np.sort(found, axis=1), np.broadcast_to(np.arange(11), found.shape))
    for start in (0, 10):
        assert stats.chisquare(np.bincount(found[:, start], minlength=11)).pvalue > 0.01


@pytest.mark.slow
def test_even_points_reduce_the_error_of_a_mean():
    """Of a smooth sum: random 1/sqrt(N), Latin hypercube and Sobol far below."""

    def error(sequence, seed):
        x = {"x": mc.Normal(jnp.zeros(3), 1.0)}
        study = mc.Study(x, lambda v: {"y": jnp.sum(jnp.sin(v["x"] + 0.5))}, samples=1024, seed=seed,
                         sequence=sequence, tile=256)  # fmt: skip
        return float(mc.run(study).moments("y").mean) - 3 * np.sin(0.5) * np.exp(-0.5)

    errors = {}
    for name, sequence in (("random", None), ("latin", mc.LatinHypercube()), ("sobol", mc.Sobol())):
        errors[name] = np.sqrt(np.mean([error(sequence, seed) ** 2 for seed in range(4)]))
    assert errors["random"] > 0.01
    assert errors["latin"] < errors["random"] / 5
    assert errors["sobol"] < errors["random"] / 5


@pytest.mark.repeats
@pytest.mark.parametrize("sequence", [None, mc.LatinHypercube(), mc.Sobol()])
def test_sample_depends_on_seed_and_index_alone(sequence):
    """Alone as in its tile, however many there are; another seed or index is another sample."""
    one, more, other = (studies.plain(n, seed, sequence=sequence) for n, seed in ((300, 3), (320, 3), (300, 4)))
    alone = one.sample(37).values["x"]
    # to rounding: a compiled program contracts products and sums
    np.testing.assert_allclose(alone, one.sampler.draw(jnp.uint32(37)).values["x"], rtol=1e-14)
    if not isinstance(sequence, mc.LatinHypercube):  # which is one of a fixed number
        np.testing.assert_array_equal(alone, more.sample(37).values["x"])
    assert np.all(alone != other.sample(37).values["x"])
    assert np.all(alone != one.sample(38).values["x"])


def test_distributions_do_not_touch_each_other():
    """A name more changes no other name's numbers; names are independent."""
    x = mc.Normal(jnp.zeros(2), 1.0)
    alone, both = Sampler({"x": x}, 1, 10), Sampler({"a": x, "x": x}, 1, 10)
    i = jnp.uint32(4)
    np.testing.assert_array_equal(alone.draw(i).values["x"], both.draw(i).values["x"])
    assert np.all(both.draw(i).values["a"] != both.draw(i).values["x"])


def test_random_numbers_are_standard_normal():
    sampler = Sampler({"x": mc.Normal(jnp.zeros(2), 1.0)}, 2, 10_000)
    z = np.asarray(jax.vmap(sampler.latents)(jnp.arange(10_000, dtype=jnp.uint32))["x"])
    assert all(stats.kstest(z[:, k], "norm").pvalue > 0.01 for k in range(2))
    assert abs(np.corrcoef(z.T)[0, 1]) < 0.03


def test_no_coordinate_of_a_point_is_infinite():
    """The corners of the cube, in both precisions."""

    class Corner(SobolPoints):
        def integers(self, i):
            return jnp.array([0, 2**32 - 1], jnp.uint32)

    points = Corner(jnp.zeros((1, 2), jnp.uint32), jnp.zeros(2, jnp.uint32))
    for dtype, most in ((jnp.float64, 6.5), (jnp.float32, 5.5)):
        z = np.asarray(points.normal(jnp.uint32(0), jnp.dtype(dtype)))
        assert z.dtype == dtype and np.all(np.isfinite(z)) and -most < z[0] < -5 and 5 < z[1] < most


def test_too_many(without_import_hook):
    with pytest.raises(ValueError, match=r"Sobol: expected at most 2.32 samples and 21201 numbers"):
        mc.Sobol().points(0, 10, 30_000)


@eqx.filter_jit
def normal(points):
    return jax.vmap(lambda i: points.normal(i, jnp.dtype(float)))(jnp.arange(256, dtype=jnp.uint32))


@pytest.mark.parametrize("kind", [mc.Sobol, mc.LatinHypercube])
def test_the_interval_of_a_sequence_covers(kind):
    """That of the spread of its parts: far narrower than of random samples, and it covers the mean (exact for Gaussian
    means of parts; 40 seeds, at least 34 of which a level of 95 % contains but for one of 1000)."""
    wanted, covered, widths = 3 * np.sin(0.5) * np.exp(-0.5), 0, []
    for seed in range(40):
        z = np.asarray(normal(kind().points(seed, 256, 3)))
        y = np.sin(z + 0.5).sum(axis=1)
        running = RunningReplicates(8, 1)
        for first in range(0, 256, 50):
            running.add(first, y[first : first + 50, None], np.ones((len(y[first : first + 50]), 1)))
        m = replace(Moments.of(y), replicates=running.spread(slice(0, 1), ()))
        np.testing.assert_allclose(m.replicates[0], y.reshape(-1, 8).mean(axis=0), rtol=1e-12)
        np.testing.assert_allclose(m.replicates[1], y.reshape(-1, 8).std(axis=0), rtol=1e-12)
        low, high = m.interval()
        covered += low <= wanted <= high
        widths.append(m.half_width() / Moments.of(y).half_width())
    assert covered >= 34 and np.median(widths) < 0.6


def test_the_interval_of_a_sequence_needs_parts():
    study = mc.Study({"x": mc.Normal(0.0, 1.0)}, lambda v: {"y": v["x"]}, samples=64, sequence=mc.Sobol(1), tile=16)
    assert np.isnan(mc.run(study).moments("y").half_width())
    few = mc.Study({"x": mc.Normal(0.0, 1.0)}, lambda v: {"y": v["x"]}, samples=7, sequence=mc.Sobol(), tile=16)
    assert np.isnan(mc.run(few).moments("y").half_width())  # the last part has no sample
    with pytest.raises(ValueError, match="replicates: expected at least 1"):
        mc.Sobol(0)
