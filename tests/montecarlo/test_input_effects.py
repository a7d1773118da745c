"""Rank correlations, partial rank correlations and regression: scipy, residuals of least squares, closed forms."""

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from lgsim import montecarlo as mc
from lgsim.montecarlo.estimators.input_effects import partial_rank_correlations, rank_correlations, regression
from tests.montecarlo import studies


@pytest.fixture
def table():
    """Correlated inputs and outputs with ties."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 4)) @ rng.normal(size=(4, 4))
    y = np.stack([np.exp(x[:, 0]) - x[:, 2], np.round(x[:, 1]), rng.normal(size=200)], axis=1)
    return x, y


def test_rank_correlations_are_those_of_scipy(table):
    x, y = table
    known = scipy.stats.spearmanr(np.concatenate([x, y], axis=1)).statistic[:4, 4:]
    np.testing.assert_allclose(rank_correlations(x, y), known, rtol=1e-12, atol=1e-14)


def test_partial_rank_correlations_are_those_of_residuals(table):
    """Pearson's correlation of what the ranks of the other inputs leave of the ranks of both."""
    x, y = (scipy.stats.rankdata(each, axis=0) for each in table)
    found = partial_rank_correlations(*table)
    for j in range(4):
        others = np.column_stack([np.ones(len(x)), np.delete(x, j, axis=1)])
        rests = [each - others @ np.linalg.lstsq(others, each)[0] for each in (x[:, j : j + 1], y)]
        known = np.corrcoef(np.concatenate(rests, axis=1).T)[0, 1:]
        np.testing.assert_allclose(found[j], known, rtol=1e-9, atol=1e-12)


def test_partial_rank_correlations_of_two_inputs():
    """The closed form of three variables; with one input it is the rank correlation."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(500, 2)) @ np.array([[1.0, 0.7], [0.0, 1.0]])
    y = (x[:, 0] ** 3 - x[:, 1])[:, None]
    a, b, c = (scipy.stats.spearmanr(*pair).statistic for pair in ((x[:, 0], y), (x[:, 1], y), (x[:, 0], x[:, 1])))
    known = (a - b * c) / np.sqrt((1 - b**2) * (1 - c**2))
    np.testing.assert_allclose(partial_rank_correlations(x, y)[0, 0], known, rtol=1e-10)
    np.testing.assert_allclose(partial_rank_correlations(x[:, :1], y), [[a]], rtol=1e-12)


def test_regression_of_a_factorial_design():
    """y = 3 a + 4 b + 12 a b with orthogonal levels: 3/13, 4/13, and 25/169 of the variance."""
    levels = np.array([-1.0, 1.0])
    a, b = (x.ravel() for x in np.meshgrid(levels, levels))
    a, b = np.tile(a, 3), np.tile(b, 3)
    found, explained = regression(np.stack([a, b], axis=1), (3 * a + 4 * b + 12 * a * b + 5)[:, None])
    np.testing.assert_allclose(found[:, 0], [3 / 13, 4 / 13], rtol=1e-12)
    np.testing.assert_allclose(explained, 25 / 169, rtol=1e-12)


def test_exact_dependence():
    """An increasing function of one input has a partial rank correlation of 1 with it, and none with the others."""
    x = np.random.default_rng(2).normal(size=(100, 3))
    found = partial_rank_correlations(x, np.exp(-x[:, 1:2]))
    np.testing.assert_allclose(found[:, 0], [0, -1, 0], atol=1e-6)


def test_what_is_not_determined_is_nan():
    """Constants, dependent inputs, too few samples; the other inputs keep their values."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(100, 3))
    y = x[:, :1] + x[:, 1:2] + 0.1 * rng.normal(size=(100, 1))
    wide = np.concatenate([x, 2 * x[:, 1:2], np.ones((100, 1))], axis=1)
    found, explained = regression(wide, y)
    known, _ = regression(x, y)
    np.testing.assert_allclose(found[:, 0], [known[0, 0], np.nan, known[2, 0], np.nan, np.nan], rtol=1e-10)
    assert explained > 0.9
    assert np.isnan(rank_correlations(wide, np.ones((100, 1)))).all() and np.isnan(rank_correlations(wide, y)[4, 0])
    assert np.isnan(partial_rank_correlations(x[:4], y[:4])).all()
    assert np.isnan(rank_correlations(x[:0], y[:0])).all()


def test_correlations_of_a_study(tmp_path):
    """Without diverged samples, with failures, the same from a store and from its first samples."""
    study = studies.plain(400)
    memory = mc.run(study)
    found = memory.correlations()
    assert found.inputs == ["s", "x[0]", "x[1]"]
    assert found.outputs == ["failed high", "pair[0]", "pair[1]", "sum"]
    codes = memory.column("diverged")
    for entry, y in {"sum": memory.column("sum"), "pair[1]": memory.column("pair")[:, 1],
                     "failed high": memory.column("failed high")}.items():  # fmt: skip
        # code 3: only some outputs have values, here the pair where the sum, which the failure uses, is not finite
        good = np.isin(codes, [0, 3] if entry == "pair[1]" else [0])
        place = found.outputs.index(entry)
        assert 0 < good.sum() < 400 and found.samples[place] == good.sum()
        for j, name in enumerate(found.inputs):
            known = scipy.stats.spearmanr(memory.inputs[name][good], y[good]).statistic
            np.testing.assert_allclose(found.rank[j, place], known, rtol=1e-12)
    kept = mc.run(study, tmp_path / "store", chunk=16).correlations(["sum"], samples=100)
    cut = mc.run(studies.plain(100)).correlations(["sum"])
    assert kept.outputs == ["sum"]
    for one, two in zip(kept[2:], cut[2:], strict=True):
        np.testing.assert_array_equal(one, two)


def test_missing_values_count_by_output():
    """Each output has the samples that have its value."""
    study = mc.Study(
        {"x": mc.Normal(0.0, 1.0), "y": mc.Normal(0.0, 1.0)},
        lambda values: {"root": jnp.sqrt(values["x"]), "sum": values["x"] + values["y"]}, samples=300,
    )  # fmt: skip
    results = mc.run(study)
    found, x = results.correlations(["sum", "root"]), results.inputs["x"]
    assert found.samples.tolist() == [300, int(np.sum(x >= 0))]
    np.testing.assert_allclose(found.rank[0, 1], 1.0, rtol=1e-12)


def test_correlations_are_refused_with_a_reason():
    one = {"x": mc.Normal(0.0, 1.0)}
    tilted = mc.run(mc.Study(one, lambda values: {"y": values["x"]}, samples=64, tilts={"x": mc.ImportanceTilt(1.0)}))
    with pytest.raises(ValueError, match="correlations: not available under importance sampling"):
        tilted.correlations()
    path = mc.Study({"x": mc.OrnsteinUhlenbeck(1.0, 1.0, 0.1, 3)}, lambda values: {"y": values["x"][0, 0]}, samples=64)
    with pytest.raises(ValueError, match="correlations: expected random inputs, got processes"):
        mc.run(path).correlations()
