"""``fit`` with progress and checkpoints: interrupted in any iteration it goes on, for both kinds of estimators."""

import itertools
import sys

import chex
import equinox as eqx
import jax
import numpy as np
import pytest

from lgsim.identify import (
    RESULTS,
    Channel,
    CheckpointError,
    JointParameter,
    LinearFit,
    Masses,
    Parameters,
    Plant,
    PositionSensor,
    SensorRecords,
    SimulationFit,
    StandardParameters,
    TorqueFit,
    base_parameters,
    fit,
    load_plant,
)
from lgsim.identify.unknowns.base_parameters import BaseParameters
from tests.identify import arms
from tests.identify.machines import pendulum, pendulum_angles

# the module, which its function of the same name hides
FIT = sys.modules["lgsim.identify.fit"]


def torques(dtype=float, **options):
    true = arms.planar(dtype, damping=0.3)
    true = true.replace(inertias=true.inertias * np.array([[1.2], [0.8]], dtype))
    blocks = [Masses(), JointParameter("damping")]
    return Parameters(arms.planar(dtype), blocks), arms.samples(true, 150, noise=0.1), TorqueFit(**options)


@pytest.fixture(scope="module")
def torque_case():
    return torques()


@pytest.fixture(scope="module")
def simulation_case():
    q = pendulum_angles(60, 0.02) + 1e-3 * np.random.default_rng(0).normal(size=(61, 2))
    records = SensorRecords(0.02, {"q": Channel(PositionSensor(), q, 1e-3)})
    return (
        Parameters(pendulum(damping=0.1), JointParameter("damping")),
        records,
        SimulationFit(window_steps=20, estimate_noise=True),
    )


@pytest.fixture(params=["torque_case", pytest.param("simulation_case", marks=pytest.mark.exhaustive)])
def case(request):
    return request.getfixturevalue(request.param)


def stop(after, error=KeyboardInterrupt):
    def progress(row):
        if row.number == after:
            raise error

    return progress


@pytest.mark.slow
def test_interrupted_in_every_iteration_and_resumed_it_is_the_same_fit(case, tmp_path):
    """The same numbers as in one go but for rounding; after an interruption bit for bit, in whichever round it was."""
    parameters, samples, estimator = case
    rows = []
    found = fit(*case, progress=rows.append)
    whole = fit(parameters, samples, estimator)
    assert int(found.estimate.iterations) == len(rows) == int(whole.estimate.iterations)
    for name in ("x", "covariance", "noise", "costs"):
        np.testing.assert_allclose(getattr(found.estimate, name), getattr(whole.estimate, name), rtol=1e-6, atol=1e-12)
    assert found.message == whole.message == ""
    assert [row.number for row in rows] == list(range(1, len(rows) + 1))
    assert {row.round for row in rows} == set(range(1, rows[-1].round + 1)) and 1 < rows[-1].round <= rows[0].rounds

    for after in range(1, len(rows)):
        path, more = tmp_path / f"{after}.npz", []
        part = fit(*case, progress=stop(after), checkpoint=path)
        assert bool(part.estimate.result == RESULTS.interrupted) and "interrupted" in part.message
        assert int(part.estimate.iterations) == after
        again = fit(*case, progress=more.append, checkpoint=path)
        assert more == rows[after:]
        chex.assert_trees_all_equal(again.estimate, found.estimate)
        # what is finished stays as it is
        chex.assert_trees_all_equal(fit(*case, checkpoint=path).estimate, found.estimate)


@pytest.mark.slow
def test_what_an_interrupted_fit_gives(torque_case, monkeypatch, tmp_path):
    """Before the first iteration the prior, after some the plant so far, with its residuals' noise."""
    calls = itertools.count()
    advance = FIT._Programs.advance

    def pressed(*args):
        # the first call of a round evaluates its start; three of them end the rounds of the first fit
        if next(calls) in (0, 7):
            raise KeyboardInterrupt
        return advance(*args)

    monkeypatch.setattr(FIT._Programs, "advance", staticmethod(pressed))
    first = fit(*torque_case, checkpoint=tmp_path / "state.npz")
    assert bool(first.estimate.result == RESULTS.interrupted) and int(first.estimate.iterations) == 0
    assert first.values == first.prior and np.isnan(first.estimate.costs).all()
    later = fit(*torque_case, checkpoint=tmp_path / "state.npz")
    assert int(later.estimate.iterations) == 2 and np.isfinite(later.estimate.costs).sum() == 2
    assert later.estimate.costs[1] < later.estimate.costs[0]
    np.testing.assert_allclose(later.rmse(), later.estimate.noise, rtol=0.1)
    assert later.summary().startswith("verdict: stopped by the user after 2 iterations, the best point so far")
    assert all(np.isfinite(list(later.deviations.values())))


@pytest.mark.slow
def test_what_progress_raises_goes_through(torque_case, tmp_path):
    path, more = tmp_path / "state.npz", []
    with pytest.raises(ZeroDivisionError):
        fit(*torque_case, progress=stop(2, ZeroDivisionError), checkpoint=path)
    fit(*torque_case, progress=more.append, checkpoint=path)
    assert more[0].number == 3


@pytest.mark.slow
def test_float32_and_one_round(tmp_path):
    case, rows, more = torques(np.float32, noise=0.1), [], []
    found = fit(*case, progress=rows.append)
    fit(*case, progress=stop(1), checkpoint=tmp_path / "state.npz")
    again = fit(*case, progress=more.append, checkpoint=tmp_path / "state.npz")
    assert found.estimate.x.dtype == np.float32 and {row.rounds for row in rows} == {1} and more == rows[1:]
    chex.assert_trees_all_equal(again.estimate, found.estimate)


@pytest.mark.slow
def test_other_parameters_records_and_estimators_do_not_go_on(torque_case, tmp_path):
    parameters, samples, estimator = torque_case
    path = tmp_path / "state.npz"
    fit(*torque_case, progress=stop(1), checkpoint=path)
    others = (
        (Parameters(arms.planar(), [Masses(["upper"]), JointParameter("damping")]), samples, estimator),
        (parameters, arms.samples(arms.planar(), 150, seed=1), estimator),
        (parameters, samples, TorqueFit(lags=2)),
    )
    for other in others:
        with pytest.raises(CheckpointError, match="this checkpoint is of another problem, record or estimator"):
            fit(*other, checkpoint=path)


def test_refused(torque_case):
    unknown = Parameters(arms.planar(), StandardParameters())
    base = base_parameters(unknown)
    assert isinstance(base, BaseParameters)
    with pytest.raises(TypeError, match="estimator: LinearFit is not iterative; leave out progress and checkpoint"):
        fit(unknown, torque_case[1], LinearFit(base), progress=print)
    with pytest.raises(TypeError, match="samples: expected"):
        fit(unknown, 3, progress=print)
    with pytest.raises(CheckpointError, match="there is no such folder"):
        fit(*torque_case, checkpoint="nowhere/state.npz")
    with pytest.raises(TypeError, match="progress, checkpoint: expected concrete arrays"):
        jax.eval_shape(lambda samples: fit(unknown, samples, progress=print).estimate, torque_case[1])


@pytest.mark.slow
def test_fits_are_saved_with_their_plant(torque_case, tmp_path):
    found = fit(*torque_case, progress=id)
    path = found.save(tmp_path / "fit.npz")
    chex.assert_trees_all_equal(load_plant(path), found.plant)
    assert isinstance(load_plant(path), Plant)
    with np.load(path) as file:
        assert file["names"].tolist() == list(found.values)
        np.testing.assert_array_equal(file["covariance"], found.estimate.covariance)
        np.testing.assert_array_equal(file["deviations"], list(found.deviations.values()))
    with pytest.raises(ValueError, match=r"expected a name that ends in .npz, got '.csv'"):
        found.save(tmp_path / "fit.csv")
    (tmp_path / "other.npz").write_bytes(b"no")
    with pytest.raises(ValueError, match=r"other.npz: expected a fit that lgsim wrote, got something else"):
        load_plant(tmp_path / "other.npz")
    with pytest.raises(FileNotFoundError):
        load_plant(tmp_path / "none.npz")


@pytest.mark.slow
def test_a_search_without_a_finite_cost_leaves_no_checkpoint(tmp_path):
    """Torques whose squares overflow: after the record is corrected, the same call starts anew and converges."""
    parameters, samples, estimator = torques()
    huge = eqx.tree_at(lambda s: s.signals, samples, samples.signals.at[3, 0].set(1e200))
    found = fit(parameters, huge, estimator, checkpoint=tmp_path / "search.npz")
    assert found.estimate.result == RESULTS.nonfinite and not (tmp_path / "search.npz").exists()
    found = fit(parameters, samples, estimator, checkpoint=tmp_path / "search.npz")
    assert found.message == "" and (tmp_path / "search.npz").exists()
