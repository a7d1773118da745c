"""Preintegration against the filter of single readings, and against GTSAM."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim.actions import LeftTranslation, Product, RightTranslation, Translation
from lgsim.estimate import (
    EKF,
    Gaussian,
    ImuNavigation,
    Inputs,
    Measurement,
    maximum_a_posteriori,
    preintegrate,
    record,
    run,
)  # fmt: skip

PROCESS = ImuNavigation(0.02, 0.01, 0.003, 0.002)
DT, READINGS = 0.01, np.arange(60) * 0.01
KEYS = np.array([0.0, 0.1, 0.25, 0.3, 0.595])  # the last one between two readings of the IMU
INPUTS = Inputs(READINGS, np.random.default_rng(3).normal(size=(60, 6)) + np.array([0, 0, 9.81, 0, 0, 0]))
FIRST = ((lgsim.SO3.exp(jnp.array([0.3, -0.2, 0.5])), jnp.array([1.0, 0, 0, 0, 2, 0])), jnp.zeros(6))
GPS = Measurement(lambda y: y[0][1][3:], 0.05, name="position")
SIDES = {side.__name__: Product(side(lgsim.SE23), Translation(6)) for side in (RightTranslation, LeftTranslation)}


def deviations(bias):
    return jnp.concatenate([jnp.full(9, 0.1), jnp.full(6, bias)])


@pytest.fixture(scope="module")
def made():
    return record(PROCESS, FIRST, [(GPS, KEYS[1:])], jax.random.key(0), inputs=INPUTS).streams


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.repeats("RightTranslation")
def test_a_filter_of_increments_is_that_of_single_readings(made, side):
    """Biases that are known are held, so that the steps are the same to rounding."""
    start = Gaussian.from_deviations(FIRST, deviations(0.0), SIDES[side])
    known = ImuNavigation(0.02, 0.01)
    single = run(EKF(), known, start, made, inputs=INPUTS)
    process, inputs = preintegrate(known, INPUTS, KEYS)
    found = run(EKF(), process, start, made, inputs=inputs, start_time=0.0)
    assert len(found.ts) == len(KEYS) and process.names == PROCESS.names
    at = np.searchsorted(single.ts, KEYS)
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b[at], atol=1e-12),
        (found.means, found.factors @ jnp.swapaxes(found.factors, 1, 2)),
        (single.means, single.factors @ jnp.swapaxes(single.factors, 1, 2)),
    )
    np.testing.assert_allclose(found.loglikelihood, single.loglikelihood, rtol=1e-11)


def test_biases_are_exact_to_first_order(made):
    """The noise that biases add is the same, and what remains falls with the square of their size."""
    start = Gaussian.from_deviations(FIRST, deviations(0.02), SIDES["RightTranslation"])
    process, inputs = preintegrate(PROCESS, INPUTS, KEYS)
    single, found = PROCESS.propagate, process.propagate

    def gap(size):
        bias = size * jnp.array([0.3, -0.2, 0.1, 0.02, 0.05, -0.03])
        one, other = Gaussian((FIRST[0], bias), start.factor, start.error), inputs.values
        other = found(Gaussian((FIRST[0], bias), start.factor, start.error), jax.tree.map(lambda a: a[0], other), 0.1)
        for u in INPUTS.values[:10]:
            one = single(one, u, DT)
        return one, other, jnp.max(jnp.abs(start.error.difference(one.mean, other.mean)))

    one, other, same = gap(0.0)
    assert same < 1e-13
    np.testing.assert_allclose(other.covariance, one.covariance, atol=1e-13)
    whole, half = gap(1.0)[2], gap(0.5)[2]
    assert whole > 1e-7
    np.testing.assert_allclose(whole / half, 4, rtol=0.05)


def test_the_most_probable_motion_has_states_at_the_readings_alone(made):
    start = Gaussian.from_deviations(FIRST, deviations(1e-3), SIDES["RightTranslation"])
    process, inputs = preintegrate(PROCESS, INPUTS, KEYS)
    found = maximum_a_posteriori(process, start, made, inputs=inputs, start_time=0.0)
    every = maximum_a_posteriori(PROCESS, start, made, inputs=INPUTS, start_time=0.0)
    at = np.searchsorted(every.ts, KEYS)
    errors = jax.vmap(start.error.difference)(jax.tree.map(lambda a: a[at], every.means), found.means)
    assert found.converged and np.abs(errors / found.deviations).max() < 1e-3
    np.testing.assert_allclose(found.deviations, every.deviations[at], rtol=1e-3)


def test_an_increment_is_that_of_gtsam():
    """Its motion to rounding; its covariance is that of the same noise, but held over each reading."""
    gtsam = pytest.importorskip("gtsam")
    params = gtsam.PreintegrationParams(np.zeros(3))
    params.setAccelerometerCovariance(0.02**2 * np.eye(3))
    params.setGyroscopeCovariance(0.01**2 * np.eye(3))
    params.setIntegrationCovariance(np.zeros((3, 3)))
    theirs = gtsam.PreintegratedImuMeasurementsG(params)
    for u in np.asarray(INPUTS.values):
        theirs.integrateMeasurement(u[:3], u[3:], DT)
    _, inputs = preintegrate(ImuNavigation(0.02, 0.01), INPUTS, np.array([0, 60 * DT]))
    R, x = jax.tree.map(lambda a: a[0], inputs.values.motion)
    state = theirs.deltaXij()
    np.testing.assert_allclose(R, state.attitude().matrix(), atol=1e-13)
    np.testing.assert_allclose(x[:3], state.velocity(), atol=1e-13)
    np.testing.assert_allclose(x[3:], state.position(), atol=1e-13)
    noise = np.asarray(inputs.values.noise[0])
    order = [6, 7, 8, 3, 4, 5, 0, 1, 2]  # rotation, position, velocity
    ours, other = (noise @ noise.T)[np.ix_(order, order)], theirs.preintMeasCov()
    scale = np.sqrt(np.outer(np.diag(other), np.diag(other)))
    np.testing.assert_allclose(ours / scale, other / scale, atol=2e-2)


@pytest.mark.usefixtures("without_import_hook")
def test_what_is_refused(made):
    start = Gaussian.from_deviations(FIRST, deviations(0.0), SIDES["RightTranslation"])
    process, inputs = preintegrate(PROCESS, INPUTS, KEYS[::2])
    with pytest.raises(ValueError, match="inputs: expected steps from one time of preintegrate to the next, got one"):
        run(EKF(), process, start, made, inputs=inputs, start_time=0.0)
    with pytest.raises(ValueError, match="ts: expected two or more times"):
        preintegrate(PROCESS, INPUTS, [0.0])
    with pytest.raises(ValueError, match="expected a reading of the IMU at -1 s or before, got the first at 0 s"):
        preintegrate(PROCESS, INPUTS, [-1.0, 0.5])
    with pytest.raises(ValueError, match="lag: expected a time of zero or more seconds, got -1"):
        maximum_a_posteriori(PROCESS, start, made, inputs=INPUTS, lag=-1.0)
