"""Records without noise, as of a simulation: a fit converges to the values that made them, and says so."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim.identify.estimators.loss import Huber
from lgsim.identify.estimators.records import Channel, SensorRecords
from lgsim.identify.estimators.samples import TorqueSamples
from lgsim.identify.estimators.sensors import PositionSensor
from lgsim.identify.estimators.simulation_fit import SimulationFit
from lgsim.identify.estimators.torque_fit import TorqueFit
from lgsim.identify.fit import fit
from lgsim.identify.unknowns.body_blocks import Inertias
from lgsim.identify.unknowns.joint_blocks import JointParameter
from lgsim.identify.unknowns.parameters import Parameters
from lgsim.identify.unknowns.plant import Plant
from lgsim.support.verdict import Outcome

DAMPING, PRIOR = 0.3, 0.1


def cart_pole(dtype=float, unit=1.0):
    """The model with masses, lengths squared and forces in other units of mass."""
    model = lgsim.load_urdf(lgsim.data.cart_pole(), dtype=dtype)
    return model.replace(inertias=unit * model.inertias, damping=unit * DAMPING)


def torques(model, noise=0.0):
    """Torques of a known motion, with noise relative to their root mean square."""
    rates = np.array([[2.0, 3.0]])
    t = np.linspace(0, 5, 400)[:, None] * rates
    moved = [jnp.asarray(x, model.dtype) for x in (np.sin(t), rates * np.cos(t), -(rates**2) * np.sin(t))]
    forces = np.asarray(Plant(model).signals(*moved))
    size = np.sqrt(np.mean(forces**2, axis=0))
    forces = forces + noise * size * np.random.default_rng(0).standard_normal(forces.shape)
    return TorqueSamples(*moved, jnp.asarray(forces, model.dtype))


@pytest.mark.parametrize("unit", [1.0, 1e-6, 1e6])
@pytest.mark.parametrize("prior", [0.0, PRIOR])
def test_the_damping_of_a_cart_pole(unit, prior):
    model = cart_pole(unit=unit)
    unknown = Parameters(model.replace(damping=unit * prior), [JointParameter("damping")])
    found = fit(unknown, torques(model))
    assert found.verdict.outcome == Outcome.CONVERGED and "the records are exact" in str(found.verdict)
    for name, value in found.values.items():
        np.testing.assert_allclose(value, unit * DAMPING, rtol=1e-6)
        assert abs(value - unit * DAMPING) < found.deviations[name] < 1e-4 * unit


@pytest.mark.repeats
@pytest.mark.parametrize("estimator", [TorqueFit(loss=Huber()), TorqueFit(noise=0.01), TorqueFit(noise_updates=8)])
def test_other_settings(estimator):
    model = cart_pole()
    found = fit(Parameters(model.replace(damping=PRIOR), [JointParameter("damping")]), torques(model), estimator)
    assert found.verdict.outcome == Outcome.CONVERGED
    np.testing.assert_allclose(list(found.values.values()), DAMPING, rtol=1e-6)


@pytest.mark.slow
def test_bodies_and_damping():
    """22 unknowns of which six combinations are identifiable."""
    model = cart_pole()
    found = fit(Parameters(model.replace(damping=PRIOR), [JointParameter("damping"), Inertias()]), torques(model))
    assert found.verdict.outcome == Outcome.NOT_DETERMINED and found.identifiability.rank == 6
    assert np.all(np.isfinite(list(found.deviations.values())))
    values = list(found.values.values())
    np.testing.assert_allclose(values[:2], DAMPING, rtol=1e-5)
    assert np.max(np.abs(np.asarray(found.residuals()))) < 1e-6


@pytest.mark.slow
def test_in_float32():
    model = cart_pole(np.float32)
    found = fit(Parameters(model.replace(damping=np.float32(PRIOR)), [JointParameter("damping")]), torques(model))
    assert found.verdict.outcome == Outcome.CONVERGED
    np.testing.assert_allclose(list(found.values.values()), DAMPING, rtol=2e-3)


@pytest.mark.parametrize("noise", [1e-4, 1e-2])
def test_a_little_noise_is_noise(noise):
    """Its standard deviation is found, and the deviations of the estimate are those of least squares."""
    model = cart_pole()
    records = torques(model, noise)
    found = fit(Parameters(model.replace(damping=PRIOR), [JointParameter("damping")]), records)
    assert found.verdict.outcome == Outcome.CONVERGED and "exact" not in str(found.verdict)
    size = noise * np.sqrt(np.mean(np.asarray(torques(model).signals) ** 2, axis=0))
    np.testing.assert_allclose(found.estimate.noise, size, rtol=0.1)
    speeds = np.asarray(records.v)
    np.testing.assert_allclose(list(found.deviations.values()), size / np.sqrt(np.sum(speeds**2, axis=0)), rtol=0.35)


@pytest.mark.parametrize("estimate_noise", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_simulated_motion(estimate_noise):
    """A pendulum released from rest, recorded by the method that fits it."""
    model = lgsim.load_urdf(lgsim.data.cart_pole()).replace(damping=DAMPING)
    motion = lgsim.simulate(model, jnp.array([0.0, 1.0]), duration=2.0, dt=0.01, step_check=False)
    records = SensorRecords(0.01, {"q": Channel(PositionSensor(), motion.q, 1e-3)})
    unknown = Parameters(model.replace(damping=PRIOR), [JointParameter("damping")])
    found = fit(unknown, records, SimulationFit(window_steps=50, estimate_noise=estimate_noise))
    assert found.verdict.outcome == Outcome.CONVERGED
    np.testing.assert_allclose(list(found.values.values()), DAMPING, rtol=1e-5)


@pytest.mark.slow
def test_a_batch_of_exact_and_noisy_records():
    """Each entry has its own verdict under vmap."""
    model = cart_pole()
    unknown = Parameters(model.replace(damping=PRIOR), [JointParameter("damping")])
    stack = jax.tree.map(lambda *x: jnp.stack(x), torques(model), torques(model, 1e-2))
    found = jax.jit(jax.vmap(lambda records: TorqueFit().run(unknown, records).result._value))(stack)
    np.testing.assert_array_equal(found, 0)


def test_a_body_that_cannot_be_identified_is_named():
    """A point mass has no log-Cholesky coordinates: the fit used to end without a number and blamed the record."""
    builder = lgsim.ModelBuilder().add_body("arm", "world", lgsim.joints.Revolute(), axis=(0, 1, 0), mass=1.0,
                                            center=(0.3, 0, 0), inertia=np.zeros((3, 3)))  # fmt: skip
    model = builder.add_body("hand", "arm", lgsim.joints.Revolute(), mass=1.0, inertia=np.eye(3) / 100).build()
    with pytest.raises(ValueError, match=r"expected bodies with a physically consistent inertia, got arm, which has "):
        Parameters(model, [Inertias()])
    assert Parameters(model, [Inertias(bodies=["hand"])]).size == 10


def test_the_summary_of_a_fit_that_failed():
    """Where no prediction is finite there is no information to decompose, and the table still prints."""
    model = cart_pole()
    records = torques(model)
    broken = eqx.tree_at(lambda m: m.gravity, model, jnp.full(3, jnp.nan))
    found = fit(Parameters(broken, [JointParameter("damping")]), records)
    assert found.verdict.outcome == Outcome.FAILED and "is not finite" in str(found.verdict)
    assert found.summary().startswith("verdict: failed") and "identifiable" not in found.summary()


def test_a_record_that_shows_nothing():
    """Exact records of a model at rest: no unknown is identifiable, and no standard error is finite."""
    model, rest = cart_pole(), jnp.zeros((50, 2))
    records = TorqueSamples(rest, rest, rest, Plant(model).signals(rest, rest, rest))
    found = fit(Parameters(model.replace(damping=PRIOR), [JointParameter("damping")]), records)
    assert found.verdict.outcome == Outcome.NOT_DETERMINED
    assert all(np.isinf(list(found.deviations.values())))


def test_a_joint_without_weight():
    """Its noise is not known: held-out samples of it are compared with one unit, not with a floor."""
    model, records = cart_pole(), torques(cart_pole(), 1e-2)
    blind = eqx.tree_at(lambda r: r.weight, records, jnp.asarray(records.weight).at[:, 1].set(0))
    unknown = Parameters(model.replace(damping=PRIOR), [JointParameter("damping", joints=["slider"])])
    found = fit(unknown, blind, validation=records)
    assert found.estimate.noise[1] == 1 and "held-out" not in str(found.verdict)


def test_names_of_channels_are_strings(without_import_hook):
    with pytest.raises(TypeError, match="channels: expected names that are strings, got 1"):
        SensorRecords(0.01, {1: Channel(PositionSensor(), np.zeros((10, 2)), 1e-3)})
