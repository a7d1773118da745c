"""What TorqueFit recovers of small machines, alone and many at once, with outliers, gaps and single precision."""

import chex
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
from lgsim.identify.unknowns.joint_blocks import JointParameter, SignalScale, TorqueOffset
from lgsim.identify.unknowns.parameters import Parameters
from lgsim.identify.unknowns.plant import Plant
from lgsim.multibody.inertia import pseudo_inertia
from tests.identify import arms

COUNT = 200
"""Samples of all records: one program for each estimator and block."""

X = np.array([np.log(1.3), np.log(0.8), 0.3, 0.2, 0.2, -0.1])


@pytest.fixture(scope="module")
def run():
    return eqx.filter_jit(lambda estimator, parameters, samples: estimator.run(parameters, samples))


@pytest.fixture(scope="module")
def unknowns():
    return Parameters(arms.planar(friction_speed=0.1), [Masses(), JointParameter("damping"), TorqueOffset()])


@pytest.fixture(scope="module")
def true():
    model = arms.planar(friction_speed=0.1, damping=[0.3, 0.2])
    return Plant(model.replace(inertias=np.asarray(model.inertias) * np.array([[1.3], [0.8]])), offset=[0.2, -0.1])


def with_rows(records, **arrays):
    """The records with other arrays of numpy."""
    names = list(arrays)
    new = [jnp.asarray(x) for x in arrays.values()]
    return eqx.tree_at(lambda s: [getattr(s, name) for name in names], records, new)


def outliers(records):
    """A tenth of the torques is off by 20 N m."""
    bad = 20.0 * (np.random.default_rng(0).random(records.signals.shape) < 0.1)
    return with_rows(records, signals=np.asarray(records.signals) + bad)


@pytest.fixture(scope="module")
def many(unknowns, true):
    """Estimates of several records in one mapped call, by name, and the records."""
    noisy = arms.samples(true, COUNT, noise=0.1)
    signals, weight = np.array(noisy.signals), np.array(noisy.weight)
    signals[150:], weight[150:] = 1e6, 0
    # the same 150 samples: a third of them twice, with half the weight
    again = {name: np.array(getattr(noisy, name)) for name in ("q", "v", "a", "signals")}
    for x in again.values():
        x[150:] = x[:50]
    halves = np.ones_like(weight)
    halves[:50], halves[150:] = 0.5, 0.5
    records = {
        "exact": arms.samples(true, COUNT),
        "noisy": noisy,
        "hidden": with_rows(noisy, signals=signals, weight=weight),
        "twice": with_rows(noisy, **again, weight=halves),
    }
    stacked = jax.tree.map(lambda *x: jnp.stack(x), *records.values())
    found = eqx.filter_jit(eqx.filter_vmap(lambda s: TorqueFit().run(unknowns, s)))(stacked)
    arrays = {name: np.asarray(getattr(found, name)) for name in ("x", "covariance", "noise", "path", "costs")}
    each = {name: {key: x[i] for key, x in arrays.items()} for i, name in enumerate(records)}
    return each, records


@pytest.mark.slow
def test_masses_damping_and_offsets_are_recovered(many):
    """The mass of the first link shows in its moments; exact records leave rounding."""
    found = many[0]["exact"]
    np.testing.assert_allclose(found["x"], X, atol=1e-8)
    assert found["path"].shape == (900, 6)


@pytest.mark.slow
def test_records_mapped_over_are_each_fitted_as_alone(run, unknowns, many):
    each, records = many
    alone = run(TorqueFit(), unknowns, records["noisy"])
    np.testing.assert_allclose(each["noisy"]["x"], alone.x, atol=1e-8)
    np.testing.assert_allclose(each["noisy"]["covariance"], alone.covariance, rtol=1e-5, atol=1e-12)
    assert int(alone.iterations) == np.sum(np.isfinite(alone.costs)) == np.sum(np.isfinite(each["noisy"]["costs"]))
    assert np.max(np.abs((alone.x - X) / np.sqrt(np.diag(alone.covariance)))) < 4


@pytest.mark.slow
def test_rows_without_weight_do_not_count(many):
    """Also for the noise: they are as if the other rows were alone."""
    hidden, twice = many[0]["hidden"], many[0]["twice"]
    np.testing.assert_allclose(hidden["x"], twice["x"], atol=1e-6)
    np.testing.assert_allclose(hidden["noise"], twice["noise"], rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    "loss", [Huber(), pytest.param(Cauchy(), marks=pytest.mark.exhaustive)], ids=["Huber", "Cauchy"]
)
def test_robust_losses_see_through_outliers(run, unknowns, true, loss):
    """With half the records an offset could not be told from outliers that are all on one side."""
    records = outliers(arms.samples(true, 2 * COUNT, noise=0.1))
    robust, plain = (run(estimator, unknowns, records).x for estimator in (TorqueFit(loss=loss), TorqueFit()))
    assert np.max(np.abs(robust - X)) < 0.25 * np.max(np.abs(plain - X))


@pytest.mark.slow
def test_numbers_that_signals_are_not_affine_in_are_recovered(run):
    """Gravity's direction, a placement, scales and the Stribeck part, by streaming."""
    model = arms.planar(friction=0.5, friction_speed=0.1)
    blocks = [GravityDirection(), Placements(["elbow"], prior_deviation=0.1), SignalScale(),
              JointParameter("stribeck", lower=-np.inf)]  # fmt: skip
    p = Parameters(Plant(model, scale=1.5, stribeck=0.2, stribeck_speed=0.5), blocks)
    at = eqx.filter_jit(Parameters.plant_at)
    wanted = at(p, jnp.array([0.05, 0, 0.02, 0, -0.03, 0, 0.1, 0, 0.2, -0.1, 0.1, 0.05]))
    found = at(p, run(TorqueFit(noise=1e-3), p, arms.samples(wanted, 400)).x)
    np.testing.assert_allclose(found.scale, wanted.scale, rtol=1e-5)
    np.testing.assert_allclose(found.stribeck, wanted.stribeck, atol=1e-5)
    # the plane of the arm shows x and z of the elbow and its turn about y; gravity's part in that plane
    here, there = (np.asarray(plant.model.placements)[1] for plant in (found, wanted))
    np.testing.assert_allclose(here[[0, 2], 3], there[[0, 2], 3], atol=1e-5)
    np.testing.assert_allclose(found.model.gravity[0], wanted.model.gravity[0], atol=1e-3)


@pytest.mark.slow
def test_compressed_and_streamed_records_say_the_same(unknowns, many):
    noise = jnp.array([0.7, 0.3])

    @jax.jit
    def both(x, records):
        fast = torque_objective(unknowns, records, SquaredLoss())
        slow = StreamedObjective(unknowns, fast.tiles, SquaredLoss())
        return [(e.cost(x, noise), e.normal_equations(x, noise), e.residual_deviations(x)) for e in (fast, slow)]

    chex.assert_trees_all_close(*both(0.3 * X + 0.1, many[1]["noisy"]), rtol=1e-9, atol=1e-9)


@pytest.mark.slow
def test_consistent_bodies_stay_bodies_at_every_iterate(run):
    """Few noisy samples that a light body explains best: linear least squares would give it negative inertia."""
    model = arms.planar()
    p = Parameters(model.replace(inertias=3.0 * np.asarray(model.inertias)), Inertias())
    est = run(TorqueFit(), p, arms.samples(Plant(model), 60, noise=2.0))
    path = np.unique(np.asarray(est.path), axis=0)
    assert len(path) > 3
    bodies = jax.jit(jax.vmap(lambda x: pseudo_inertia(p.plant_at(x).model.inertias)))(est.path)
    assert np.min(np.linalg.eigvalsh(np.asarray(bodies))) > 0


@pytest.mark.slow
@pytest.mark.float32
def test_single_precision_follows_the_model(run):
    model = arms.planar(np.float32)
    factors = np.array([[1.2], [0.9]], np.float32)
    p = Parameters(model.replace(inertias=np.asarray(model.inertias) * factors), Masses())
    est = run(TorqueFit(), p, arms.samples(Plant(model), COUNT, noise=0.1))
    assert est.x.dtype == np.float32
    np.testing.assert_allclose(est.x, -np.log([1.2, 0.9]), atol=0.02)


def test_long_run_covariance_is_bartletts_sum():
    scores = np.random.default_rng(0).normal(size=(50, 3))
    expected = scores.T @ scores
    for lag in (1, 2, 3):
        part = scores[lag:].T @ scores[:-lag]
        expected = expected + (1 - lag / 4) * (part + part.T)
    found = jax.jit(long_run_covariance, static_argnums=1)(scores, 3)
    np.testing.assert_allclose(found, expected, atol=1e-10)
