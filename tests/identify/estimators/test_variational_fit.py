"""A fit by simulation with the variational method, of records that it made: what drives the plant acts in it."""

import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim import identify
from tests.identify.machines import pendulum

DT, STEPS = 0.02, 60


def records(model, scale, offset):
    """Angles without noise under signals of currents and forces on the lower rod, both held for each step."""
    rng = np.random.default_rng(0)
    signals, pushes = rng.normal(size=(STEPS, 2)), np.zeros((STEPS, 2, 6))
    pushes[:, 1, :3] = 2.0 * rng.normal(size=(STEPS, 3))
    held = jnp.asarray(pushes)

    def wrenches(t, q, v, model):
        return held[jnp.clip(jnp.floor(t / DT).astype(int), 0, STEPS - 1)]

    motion = lgsim.rollout(
        model, jnp.array([0.5, -0.3]), jnp.zeros(2), dt=DT, steps=STEPS, torques=jnp.asarray(scale * signals - offset),
        wrenches=wrenches, method=lgsim.VariationalTree(),
    )  # fmt: skip
    states = jnp.concatenate([motion.q, motion.v], axis=1)
    channel = identify.Channel(identify.PositionSensor(), motion.q, 1e-4)
    return identify.SensorRecords(DT, {"q": channel}, signals=signals, wrenches=pushes, states=states)


@pytest.mark.slow
def test_signals_and_wrenches_act_in_the_steps():
    """Without noise every number comes back to rounding: mass, motor constants, offsets."""
    scale, offset = np.array([1.4, 0.8]), np.array([0.2, -0.1])
    samples = records(pendulum(second=1.2), scale, offset)
    plant = identify.Plant(pendulum(second=1.5), scale=1.0, offset=0.0)
    unknowns = [identify.Masses(bodies=("lower",)), identify.SignalScale(), identify.TorqueOffset()]
    estimator = identify.SimulationFit(window_steps=20, known_start=False, method=lgsim.VariationalTree())
    fit = identify.fit(identify.Parameters(plant, unknowns), samples, estimator)
    np.testing.assert_allclose(float(fit.plant.model.inertias[1, 0]), 1.2, rtol=1e-6)
    np.testing.assert_allclose(fit.plant.scale, scale, rtol=1e-6)
    np.testing.assert_allclose(fit.plant.offset, offset, atol=1e-6)
    assert fit.step_error.method == "variational"
