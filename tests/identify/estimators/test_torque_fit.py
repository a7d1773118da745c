"""What TorqueFit recovers of small machines, alone and many at once, with outliers, gaps and single precision."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lgsim.identify.estimators.loss import Cauchy, Huber, SquaredLoss
from lgsim.identify.estimators.torque_fit import TorqueFit, long_run_covariance
from lgsim.identify.estimators.torque_objective import StreamedObjective, torque_objective
from lgsim.identify.unknowns.body_blocks import Inertias, Masses
from lgsim.identify.unknowns.frame_blocks import GravityDirection, Placements
from lgsim.identify.unknowns.joint_blocks import JointParameter, SignalScale, Stribeck, TorqueOffset
from lgsim.identify.unknowns.parameters import Parameters
from lgsim.identify.unknowns.plant import Plant
from lgsim.multibody.inertia import pseudo_inertia
from tests.identify import arms


@pytest.fixture(scope="module")
def run():
    return eqx.filter_jit(lambda estimator, parameters, samples: estimator.run(parameters, samples))


@pytest.fixture(scope="module")
def drives():
    return Parameters(arms.planar(friction_speed=0.1), [Masses(), JointParameter("damping"), TorqueOffset()])


@pytest.fixture(scope="module")
def true():
    model = arms.planar(friction_speed=0.1, damping=[0.3, 0.2])
    return Plant(model.replace(inertias=model.inertias * jnp.array([[1.3], [0.8]])), offset=[0.2, -0.1])


X = np.array([np.log(1.3), np.log(0.8), 0.3, 0.2, 0.2, -0.1])


def test_masses_damping_and_offsets_are_recovered(run, drives, true):
    """The mass of the first link shows in its moments; exact records leave rounding."""
    est = run(TorqueFit(), drives, arms.samples(true))
    np.testing.assert_allclose(est.x, X, atol=1e-8)
    assert est.path.shape == (300, 6) and int(est.iterations) == np.sum(np.isfinite(est.costs))


def test_numbers_that_signals_are_not_affine_in_are_recovered(run):
    """Gravity's direction, a placement, scales and the Stribeck part, by streaming."""
    model = arms.planar(friction=0.5, friction_speed=0.1)
    blocks = [GravityDirection(), Placements(["elbow"], prior_deviation=0.1), SignalScale(), Stribeck()]
    p = Parameters(Plant(model, scale=1.5, stribeck=0.2, stribeck_speed=0.5), blocks)
    x = jnp.array([0.05, 0, 0.02, 0, -0.03, 0, 0.1, 0, 0.2, -0.1, 0.1, 0.05])
    est = run(TorqueFit(noise=1e-3), p, arms.samples(p.plant_at(x), 400))
    found, wanted = p.plant_at(est.x), p.plant_at(x)
    np.testing.assert_allclose(found.scale, wanted.scale, rtol=1e-5)
    np.testing.assert_allclose(found.stribeck, wanted.stribeck, atol=1e-5)
    # the plane of the arm shows x and z of the elbow and its turn about y; gravity's part in that plane
    at, to = found.model.placements[1], wanted.model.placements[1]
    np.testing.assert_allclose(at[0, 3], to[0, 3], atol=1e-5)
    np.testing.assert_allclose(at[2, 3], to[2, 3], atol=1e-5)
    np.testing.assert_allclose(found.model.gravity[0], wanted.model.gravity[0], atol=1e-3)


def test_compressed_and_streamed_records_say_the_same(drives, true):
    records = arms.samples(true, 300, noise=0.1)
    fast = torque_objective(drives, records, SquaredLoss())
    slow = StreamedObjective(drives, fast.tiles, SquaredLoss())
    x, noise = jnp.asarray(0.3 * X + 0.1), jnp.array([0.7, 0.3])

    @jax.jit
    def both(x):
        return [
            (e.cost(x, noise), e.normal_equations(x, noise), e.residual_deviations(x, noise, jnp.asarray(3.0)))
            for e in (fast, slow)
        ]

    for one, other in zip(*(jax.tree.leaves(x) for x in both(x)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("loss", [Huber(), Cauchy()], ids=["Huber", "Cauchy"])
def test_robust_losses_see_through_outliers(run, drives, true, loss):
    """A tenth of the torques is off by 20 N m."""
    records = arms.samples(true, 400, noise=0.1)
    rng = np.random.default_rng(0)
    bad = 20.0 * (rng.random(records.signals.shape) < 0.1)
    records = eqx.tree_at(lambda s: s.signals, records, records.signals + bad)
    robust, plain = (run(TorqueFit(loss=kind), drives, records).x for kind in (loss, SquaredLoss()))
    assert np.max(np.abs(robust - X)) < 0.25 * np.max(np.abs(plain - X))


def test_rows_without_weight_do_not_count(run, drives, true):
    records = arms.samples(true, 200, noise=0.1)
    part = jax.tree.map(lambda x: x[:150], records)
    wild = eqx.tree_at(lambda s: s.signals, records, records.signals.at[150:].set(1e6))
    wild = eqx.tree_at(lambda s: s.weight, wild, wild.weight.at[150:].set(0))
    few, hidden = run(TorqueFit(), drives, part), run(TorqueFit(), drives, wild)
    np.testing.assert_allclose(hidden.x, few.x, atol=1e-6)


def test_many_data_sets_at_once_are_each_alone(run, drives, true):
    sets = [arms.samples(true, 100, seed=i, noise=0.1) for i in range(5)]
    together = jax.tree.map(lambda *x: jnp.stack(x), *sets)
    found = eqx.filter_jit(eqx.filter_vmap(lambda s: TorqueFit().run(drives, s)))(together)
    for i in (0, 4):
        alone = run(TorqueFit(), drives, sets[i])
        np.testing.assert_allclose(found.x[i], alone.x, atol=1e-8)
        np.testing.assert_allclose(found.covariance[i], alone.covariance, rtol=1e-5, atol=1e-12)


def test_consistent_bodies_stay_bodies_at_every_iterate(run):
    """Few noisy samples that a light body explains best: linear least squares would give it negative inertia."""
    model = arms.planar()
    p = Parameters(model.replace(inertias=3.0 * model.inertias), Inertias())
    est = run(TorqueFit(), p, arms.samples(Plant(model), 60, noise=2.0))
    for x in np.unique(np.asarray(est.path), axis=0):
        rows = p.plant_at(jnp.asarray(x)).model.inertias
        assert np.min(np.linalg.eigvalsh(np.asarray(pseudo_inertia(rows)))) > 0


@pytest.mark.float32
def test_single_precision_follows_the_model(run):
    model = arms.planar(np.float32)
    p = Parameters(model.replace(inertias=model.inertias * jnp.asarray([[1.2], [0.9]], jnp.float32)), Masses())
    est = run(TorqueFit(), p, arms.samples(Plant(model), 200, noise=0.1))
    assert est.x.dtype == np.float32
    np.testing.assert_allclose(est.x, -np.log([1.2, 0.9]), atol=0.02)


def test_long_run_covariance_is_bartletts_sum():
    scores = np.random.default_rng(0).normal(size=(50, 3))
    expected = scores.T @ scores
    for lag in (1, 2, 3):
        part = scores[lag:].T @ scores[:-lag]
        expected = expected + (1 - lag / 4) * (part + part.T)
    np.testing.assert_allclose(long_run_covariance(jnp.asarray(scores), 3), expected, atol=1e-10)
