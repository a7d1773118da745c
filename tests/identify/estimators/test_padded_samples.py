"""Records of other lengths share the compiled programs, and no result sees the samples without weight."""

import equinox as eqx
import jax
import numpy as np
import pytest
from scipy.signal import lfilter

from lgsim.identify import LinearFit, Parameters, TorqueFit, TorqueSamples, base_parameters, fit
from lgsim.identify.estimators.loss import Huber
from lgsim.identify.estimators.torque_objective import TILE
from lgsim.identify.unknowns.body_blocks import Masses, StandardParameters
from lgsim.identify.unknowns.joint_blocks import JointParameter, TorqueOffset
from lgsim.identify.unknowns.plant import Plant
from tests.identify import arms


def records(count, seed=0):
    """Torques with noise that is correlated from sample to sample by 0.8."""
    clean = arms.samples(Plant(arms.planar(damping=0.3), offset=[0.3, -0.2]), count, seed)
    noise = 0.1 * lfilter([0.6], [1, -0.8], np.random.default_rng(seed).normal(size=clean.signals.shape), axis=0)
    return TorqueSamples(clean.q, clean.v, clean.a, clean.signals + noise)


@pytest.fixture(scope="module")
def unknowns():
    return Parameters(arms.planar(damping=0.1), [Masses(), JointParameter("damping"), TorqueOffset()])


def everything(found):
    """All results of a fit."""
    found.residuals(), found.signal_deviations(), found.rmse(found.validation), found.whiteness()
    return found.summary(), found.intervals


@pytest.mark.slow
def test_another_number_of_samples_compiles_nothing(unknowns, lowered):
    everything(fit(unknowns, records(700), validation=records(300, 1)))
    assert lowered, "nothing is counted"
    others = records(650), records(401, 1), records(1024)
    lowered.clear()
    everything(fit(unknowns, others[0], validation=others[1]))
    everything(fit(unknowns, others[2], validation=others[1]))
    assert lowered == []


def test_iterations_of_another_number_of_samples_compile_nothing(unknowns, lowered):
    fit(unknowns, records(700), progress=lambda row: None)
    other = records(900)
    lowered.clear()
    fit(unknowns, other, progress=lambda row: None)
    assert lowered == []


@pytest.mark.slow
@pytest.mark.parametrize("lags", [None, 5])
@pytest.mark.parametrize("loss", [None, Huber(2.0)], ids=["squared", "Huber"])
def test_results_do_not_see_the_padding(unknowns, lags, loss):
    """Against the estimator itself, which takes the samples as they are: 17 tiles, of which a fit makes 18."""
    samples = records(16 * TILE + 8)
    estimator = TorqueFit(lags=lags) if loss is None else TorqueFit(lags=lags, loss=loss)
    found, expected = fit(unknowns, samples, estimator), eqx.filter_jit(estimator.run)(unknowns, samples)
    for field in ("x", "covariance", "information", "noise", "score_covariance"):
        ours, theirs = getattr(found.estimate, field), np.asarray(getattr(expected, field))
        np.testing.assert_allclose(ours, theirs, rtol=1e-7, atol=1e-9 * np.abs(theirs).max(), err_msg=field)
    assert int(found.estimate.iterations) == int(expected.iterations)
    residuals = np.asarray(found.residuals())
    assert residuals.shape == found.signal_deviations().shape == (len(samples), 2)
    np.testing.assert_allclose(found.rmse(), np.sqrt(np.mean(residuals**2, axis=0)), rtol=1e-12)
    centered = residuals - residuals.mean(axis=0)
    first = np.sum(centered[1:] * centered[:-1], axis=0) / np.sum(centered**2, axis=0)
    np.testing.assert_allclose(found.whiteness()[0][0], first, rtol=1e-12)


@pytest.mark.slow
def test_base_parameters_do_not_see_the_padding():
    unknowns = Parameters(arms.planar(), StandardParameters())
    samples = records(700)
    estimator = LinearFit(base_parameters(unknowns))
    found, expected = fit(unknowns, samples, estimator), eqx.filter_jit(estimator.run)(unknowns, samples)
    np.testing.assert_allclose(found.estimate.x, expected.x, rtol=1e-7, atol=1e-9)
    assert found.residuals().shape == (700, 2)


@pytest.mark.parametrize(
    ("count", "rows"),
    [(1, 1), (TILE, 1), (TILE + 1, 2), (7 * TILE + 1, 8), (15 * TILE + 1, 16), (16 * TILE + 1, 18), (33 * TILE, 36)],
)
def test_lengths_of_padded_samples(count, rows):
    """At most an eighth more tiles, from eight tiles on; the values of the samples stay, bit for bit."""
    x = np.random.default_rng(0).normal(size=(count, 2)).astype(np.float32)
    wrenches = np.zeros((count, 2, 6), np.float32)
    samples = TorqueSamples(x, x, x, x, 2.0, wrenches)
    longer = samples.padded(TILE)
    assert len(longer) == rows * TILE and longer.wrenches.shape == (rows * TILE, 2, 6)
    assert longer.q.dtype == longer.weight.dtype == np.float32
    np.testing.assert_array_equal(longer.signals[:count], x)
    np.testing.assert_array_equal(longer.weight, np.where(np.arange(rows * TILE)[:, None] < count, 2, [[0, 0]]))
    assert (longer is samples) == (count == rows * TILE)


def test_samples_that_are_not_padded():
    """None, traced ones, and several sets."""
    empty = TorqueSamples(*np.zeros((4, 0, 2)))
    assert empty.padded(TILE) is empty
    assert jax.eval_shape(lambda s: s.padded(TILE), records(700)).q.shape == (700, 2)
    sets = TorqueSamples(*np.zeros((4, 3, 700, 2)))
    assert sets.padded(TILE) is sets
