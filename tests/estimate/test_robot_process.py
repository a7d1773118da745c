"""Robots as processes: a mass that is found while the robot moves, and what a block of unknowns may change."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim import identify
from lgsim.estimate import EKF, Inputs, Measurement, RobotProcess, nees, record, run

PRIOR = 0.3
TIMES = np.arange(60) * 0.05


@pytest.fixture(scope="module")
def runs():
    """100 recordings of a cart with a pole whose mass is unknown, and what a filter says of each."""
    model = lgsim.load_urdf(lgsim.data.cart_pole())
    process = RobotProcess(model, 0.02, identify.Masses(["pole"], prior_deviation=PRIOR))
    start = process.start(jnp.zeros(2), jnp.zeros(2), q_deviations=0.02, v_deviations=0.05, unknown_deviations=1.0)
    inputs = Inputs(TIMES, 4 * jnp.stack([jnp.sin(5 * TIMES), jnp.zeros(60)], axis=1))
    encoders = Measurement(lambda y: process.parts(y)[0], 1e-3, name="encoders")

    def one(key):
        keys = jax.random.split(key)
        truth = start.sample(keys[0])
        made = record(process, truth, [(encoders, TIMES[1:])], keys[1], inputs=inputs)
        estimate = run(EKF(), process, start, made.streams, inputs=inputs)
        return nees(estimate, made.states), estimate.last, made.states[1][-1]

    return process, jax.jit(jax.vmap(one))(jax.random.split(jax.random.key(3), 100))


def test_a_mass_is_found_and_its_band_holds_it(runs):
    """In 95 % of runs the mass is within its band; 100 runs resolve that to +- 6.5 %."""
    process, (_, last, truth) = runs
    deviation = np.sqrt(np.sum(np.asarray(last.factor)[:, -1] ** 2, axis=-1))
    assert (deviation < PRIOR / 10).all()
    inside = np.abs(np.asarray(last.mean[1][:, 0] - truth[:, 0])) < 1.96 * deviation
    assert 0.885 <= inside.mean() <= 1
    masses = process.values(jax.tree.map(lambda a: a[0], last.mean))
    true = float(process.model.inertias[process.model.body_names.index("pole"), 0]) * np.exp(float(truth[0, 0]))
    (mass,) = masses.values()
    np.testing.assert_allclose(mass, true, rtol=4 * float(deviation[0]))


def test_errors_are_as_large_as_stated(runs):
    _, (squares, _, _) = runs
    np.testing.assert_allclose(np.mean(squares, axis=0) / 5, 1, atol=5 * np.sqrt(2 / 500))


def test_names_and_a_process_without_unknowns():
    model = lgsim.load_urdf(lgsim.data.cart_pole())
    process = RobotProcess(model, 0.02, identify.Masses(["pole"]))
    assert process.names == ("q of slider", "q of hinge", "v of slider", "v of hinge", "log mass of pole")
    known = RobotProcess(model, jnp.array([0.1, 0.2]))
    state = known.start(jnp.zeros(2), jnp.zeros(2), q_deviations=0.1, v_deviations=0.2)
    y = known.step(state.mean, jnp.array([1.0, 0]), 1e-3)
    a = lgsim.forward_dynamics(model, jnp.zeros(2), jnp.zeros(2), jnp.array([1.0, 0]))
    np.testing.assert_allclose(y[0][2:], 1e-3 * a, rtol=1e-4)
    M = np.asarray(lgsim.mass_matrix(model, jnp.zeros(2)))
    np.testing.assert_allclose(known.density(state.mean, None)[2:], np.linalg.inv(M) @ np.diag([0.1, 0.2]), rtol=1e-12)


@pytest.mark.usefixtures("without_import_hook")
def test_what_is_refused():
    model = lgsim.load_urdf(lgsim.data.cart_pole())
    with pytest.raises(TypeError, match="model: expected a Model"):
        RobotProcess("robot.urdf", 0.1)
    with pytest.raises(ValueError, match="walk: expected finite numbers that are not negative"):
        RobotProcess(lgsim.load_urdf(lgsim.data.cart_pole()), 0.1, walk=-1.0)
    with pytest.raises(ValueError, match="force_noise: expected a number"):
        RobotProcess(model, jnp.ones(3))
    with pytest.raises(ValueError, match="TorqueOffset changes a sensor or a drive"):
        RobotProcess(model, 0.1, identify.TorqueOffset())
    with pytest.raises(ValueError, match="nobody"):
        RobotProcess(model, 0.1, identify.Masses(["nobody"]))
