"""Optimizers of optax on random pieces of records: the minimum of the estimator whose cost it is."""

import equinox as eqx
import jax
import numpy as np
import optax
import pytest

import lgsim
from lgsim.identify import RESULTS
from lgsim.identify.estimators.records import Channel, SensorRecords
from lgsim.identify.estimators.samples import TorqueSamples
from lgsim.identify.estimators.sensors import PositionSensor
from lgsim.identify.estimators.simulation_fit import SimulationFit
from lgsim.identify.estimators.stochastic_fit import StochasticFit
from lgsim.identify.estimators.torque_fit import TorqueFit
from lgsim.identify.fit import Fit, fit
from lgsim.identify.unknowns.body_blocks import Masses
from lgsim.identify.unknowns.joint_blocks import JointParameter
from lgsim.identify.unknowns.parameters import Parameters
from tests.identify.machines import pendulum, pendulum_angles, pendulum_field


@pytest.fixture(autouse=True)
def _promotion():
    """The optimizers of optax multiply their step counts by numbers."""
    with jax.numpy_dtype_promotion("standard"):
        yield


def falling(rate, steps):
    return optax.adam(optax.cosine_decay_schedule(rate, steps))


@pytest.mark.slow
def test_samples_in_batches_find_the_minimum_of_all():
    """Mass and damping from joint forces, to a fraction of their deviation from the least-squares fit."""
    rng = np.random.default_rng(0)
    y = rng.normal(size=(600, 4)) * np.array([1.0, 1.0, 3.0, 3.0])
    a = np.array([pendulum_field(0.0, row)[2:] for row in y])
    noise = 0.05
    samples = TorqueSamples(y[:, :2], y[:, 2:], a, noise * rng.standard_normal((600, 2)))
    parameters = Parameters(pendulum(second=1.5, damping=0.02), [Masses(bodies=("lower",)), JointParameter("damping")])
    least_squares = TorqueFit(noise=noise)
    found = fit(parameters, samples, StochasticFit(least_squares, falling(2e-2, 2000), steps=2000, batch=100))
    every = Fit(parameters, eqx.filter_jit(least_squares.run)(parameters, samples), samples, estimator=found.estimator)
    covariance = np.asarray(every.estimate.covariance)
    shift = np.asarray(found.estimate.x) - np.asarray(every.estimate.x)
    np.testing.assert_allclose(shift / np.sqrt(np.diag(covariance)), 0, atol=0.3)
    np.testing.assert_allclose(found.estimate.covariance, covariance, rtol=0.02)
    np.testing.assert_allclose(found.rmse(), every.rmse(), rtol=1e-2)
    truth = (np.array(list(found.values.values())) - [1.2, 0.05, 0.05]) / np.array(list(found.deviations.values()))
    assert np.all(np.abs(truth) < 3.3)


@pytest.mark.exhaustive
def test_windows_in_batches_find_a_mass():
    """The first states of windows are unknowns as well; from 40 % off to 1 %."""
    dt, steps = 1e-2, 100
    q = pendulum_angles(steps, dt)
    records = SensorRecords(dt, {"q": Channel(PositionSensor(), q, 1e-2)})
    parameters = Parameters(pendulum(second=1.7), [Masses(bodies=("lower",))])
    of = SimulationFit(window_steps=10, gap_deviations=(1e-2,), method=lgsim.MK2)
    estimator = StochasticFit(of, falling(3e-2, 1500), steps=1500, batch=5)
    found = eqx.filter_jit(estimator.run)(parameters, records)
    assert bool(found.result == RESULTS.successful)
    assert 1.7 * np.exp(found.x[0]) == pytest.approx(1.2, rel=0.01)
    costs = np.asarray(found.costs)
    assert costs[-1] < 1e-2 * costs[0]
