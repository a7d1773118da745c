"""Posteriors from simulated motion: against scipy's DOP853 and sums by hand, and beside the fit of the same records."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from lgsim.identify import PosteriorDraws, PosteriorProblem, fit, laplace_approximation, log_density
from lgsim.identify.estimators.records import Channel, SensorRecords
from lgsim.identify.estimators.sensors import PositionSensor
from lgsim.identify.estimators.simulation_fit import SimulationFit
from lgsim.identify.posterior import HalfNormalNoise, InverseGammaNoise
from lgsim.identify.unknowns.body_blocks import Masses
from lgsim.identify.unknowns.joint_blocks import JointParameter
from lgsim.identify.unknowns.parameters import Parameters
from tests.identify.machines import pendulum, pendulum_field

STEPS, DT, NOISE = 20, 0.01, 0.02
START = np.array([2.0, 1.0, 0.0, 0.0])


def motion(start, steps, mass):
    """States (steps + 1, 4) of the double pendulum by DOP853."""
    t = DT * np.arange(steps + 1)
    args = (1.0, mass, 0.05)
    return solve_ivp(pendulum_field, (0, t[-1]), start, "DOP853", t, args=args, rtol=1e-12, atol=1e-12).y.T


def records(states=True):
    clean = motion(START, 2 * STEPS, 1.2)
    q = clean[:, :2] + NOISE * np.random.default_rng(0).normal(size=(2 * STEPS + 1, 2))
    weight = np.ones((2 * STEPS + 1, 2))
    weight[7, 1] = 0
    guess = clean if states else None
    return SensorRecords(DT, {"q": Channel(PositionSensor(), q, NOISE, weight)}, states=guess), q, weight, clean


def unknowns():
    return Parameters(pendulum(second=1.1), [Masses(["lower"], prior_deviation=0.3)])


@pytest.mark.slow
def test_density_of_simulated_motion_is_that_of_the_equations_by_hand():
    """Two windows: readings, the gap between them, and the prior of the first state, which is unknown."""
    given, q, weight, clean = records()
    estimator = SimulationFit(window_steps=STEPS, gap_deviations=(0.01,), start_deviation=[0.1, 0.2, 0.3, 0.4])
    density = log_density(PosteriorProblem(unknowns(), given, estimator))
    assert density.size == 9 and density.names[1] == "state 0 of window 0"
    rng = np.random.default_rng(1)
    z = 0.05 * rng.normal(size=(5, 9))
    gaps = 0.01 * np.array([1, 1, 1 / (STEPS * DT), 1 / (STEPS * DT)])
    expected = []
    for point in z:
        mass = 1.1 * np.exp(point[0])
        first = motion(clean[0] + point[1:5], STEPS, mass)
        second = motion(clean[STEPS] + point[5:9], STEPS, mass)
        r = np.concatenate([first[:-1, :2], second[:, :2]]) - q
        gap = (first[-1] - clean[STEPS] - point[5:9]) / gaps
        start = point[1:5] / np.array([0.1, 0.2, 0.3, 0.4])
        squares = np.sum(weight * (r / NOISE) ** 2) + gap @ gap + start @ start + (point[0] / 0.3) ** 2
        expected.append(-squares / 2)
    found = np.asarray(eqx.filter_jit(density)(jnp.asarray(z)))
    np.testing.assert_allclose(found - found[0], np.array(expected) - expected[0], rtol=1e-6, atol=1e-5)
    gradient = eqx.filter_jit(lambda d, z: jax.grad(d.__call__)(z))(density, jnp.asarray(z[0]))
    h = 1e-6
    plus, minus = (np.asarray(eqx.filter_jit(density)(jnp.asarray(z[0] + s * h * np.eye(9)))) for s in (1, -1))
    np.testing.assert_allclose(gradient, (plus - minus) / (2 * h), rtol=1e-5, atol=1e-3)


@pytest.mark.slow
def test_known_starts_are_no_coordinates():
    given, q, weight, clean = records()
    estimator = SimulationFit(known_start=True)
    density = log_density(PosteriorProblem(unknowns(), given, estimator, noise=HalfNormalNoise(0.1)))
    assert density.size == 3
    z = np.array([[0.0, -4.0, -4.0], [0.1, -3.5, -4.2]])
    expected = []
    for point in z:
        r = motion(clean[0], 2 * STEPS, 1.1 * np.exp(point[0]))[:, :2] - q
        s = np.exp(point[1:])
        log_p = -np.sum(weight * ((r / s) ** 2 / 2 + np.log(s))) - (point[0] / 0.3) ** 2 / 2
        expected.append(log_p + np.sum(np.log(s) - (s / 0.1) ** 2 / 2))
    found = eqx.filter_jit(density)(jnp.asarray(z))
    assert float(found[1] - found[0]) == pytest.approx(expected[1] - expected[0], abs=1e-4)
    # one window from a known start leaves the search no state to eliminate
    best = fit(unknowns(), given, estimator)
    assert best.verdict.converged
    assert float(density(density.start.at[0].set(best.estimate.x[0]))) >= float(density(density.start))


@pytest.mark.slow
def test_the_mode_is_the_fit_and_predictions_hold_the_records():
    given, *_ = records(states=False)
    blocks = [Masses(["lower"], prior_deviation=0.3), JointParameter("damping", ["lower"], upper=1.0)]
    found = fit(Parameters(pendulum(second=1.1), blocks), given, SimulationFit())
    density = log_density(PosteriorProblem.from_fit(found))
    near = laplace_approximation(density)
    assert near.converged and float(near.log_density) >= float(density(density.start))
    mass = density.values(near.mean)["m of lower, kg"]
    assert abs(float(mass) - found.values["m of lower, kg"]) < 0.5 * found.deviations["m of lower, kg"]
    # the curvature along the others being eliminated: the deviation of the fit, which is Gauss and Newton's
    assert float(jnp.sqrt(near.covariance[0, 0])) == pytest.approx(
        float(found.estimate.covariance[0, 0]) ** 0.5, rel=0.2
    )
    draws = PosteriorDraws(density, near.draw(jax.random.key(0), (200,)))
    new = np.asarray(draws.predictive(jax.random.key(1)))
    assert new.shape == (200, 2 * STEPS + 1, 2)
    low, high = np.quantile(new, [0.05, 0.95], axis=0)
    assert 62 <= np.sum((low < 0) & (high > 0)) <= 82  # of 82, nine in ten: less than 62 once in 1000 records
    own = log_density(PosteriorProblem(found.parameters, given, SimulationFit(estimate_noise=True)))
    assert isinstance(own.noise, InverseGammaNoise) and own.size == density.size
    deviation = eqx.filter_jit(lambda d, z: d.noise_deviations(z))(own, near.mean)
    np.testing.assert_allclose(deviation, NOISE, rtol=0.35)
