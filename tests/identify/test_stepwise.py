"""``Search``: the iterations of ``fit`` one by one, from any stage on, for both kinds of estimators."""

import jax
import numpy as np
import pytest

from lgsim.identify import (  # fmt: skip
    BaseParameters,
    Channel,
    JointParameter,
    LinearFit,
    Masses,
    Parameters,
    Plant,
    PositionSensor,
    Search,
    SensorRecords,
    SimulationFit,
    StandardParameters,
    TorqueFit,
    base_parameters,
    fit,
    load_plant,
)
from tests.identify import arms
from tests.identify.machines import pendulum, pendulum_angles


@pytest.fixture(scope="module")
def torque_case():
    true = arms.planar(damping=0.3)
    true = true.replace(inertias=true.inertias * np.array([[1.2], [0.8]]))
    return (
        Parameters(arms.planar(), [Masses(), JointParameter("damping")]),
        arms.samples(true, 150, noise=0.1),
        TorqueFit(),
    )


@pytest.fixture(scope="module")
def simulation_case():
    q = pendulum_angles(60, 0.02) + 1e-3 * np.random.default_rng(0).normal(size=(61, 2))
    records = SensorRecords(0.02, {"q": Channel(PositionSensor(), q, 1e-3)})
    return (
        Parameters(pendulum(damping=0.1), JointParameter("damping")),
        records,
        SimulationFit(window_steps=20, estimate_noise=True),
    )


@pytest.fixture(params=["torque_case", pytest.param("simulation_case", marks=pytest.mark.slow)])
def case(request):
    return request.getfixturevalue(request.param)


def all_steps(search):
    rows = []
    while not search.done:
        rows.append(search.step())
    return rows, search.result()


def same(one, other):
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_array_equal(a, b)


def test_step_by_step_is_the_same_fit_and_goes_on_from_any_stage(case):
    """The same numbers as in one go but for rounding; from a kept stage bit for bit."""
    parameters, samples, estimator = case
    rows, found = all_steps(Search(*case))
    whole = fit(parameters, samples, estimator)
    assert int(found.estimate.iterations) == len(rows) == int(whole.estimate.iterations)
    for name in ("x", "covariance", "noise", "costs"):
        np.testing.assert_allclose(getattr(found.estimate, name), getattr(whole.estimate, name), rtol=1e-6, atol=1e-12)
    assert found.message == whole.message == ""
    assert [row.number for row in rows] == list(range(1, len(rows) + 1))
    assert {row.round for row in rows} == set(range(1, Search(*case).rounds + 1))

    for after in (0, 2, len(rows) - 1):
        first = Search(*case)
        for _ in range(after):
            first.step()
        kept = jax.tree.map(np.asarray, first.stage)
        second = Search(*case)
        second.stage = jax.tree.map(jax.numpy.asarray, kept)
        more, again = all_steps(second)
        assert more == rows[after:]
        same(again.estimate, found.estimate)


def test_what_is_asked_too_early_or_too_late(torque_case):
    search = Search(*torque_case)
    with pytest.raises(RuntimeError, match="expected all iterations to be done"):
        search.result()
    all_steps(search)
    with pytest.raises(RuntimeError, match=r"no iteration is left; result\(\) gives the fit"):
        search.step()


def test_estimators_without_iterations_are_refused(torque_case):
    unknown = Parameters(arms.planar(), StandardParameters())
    base = base_parameters(unknown)
    assert isinstance(base, BaseParameters)
    with pytest.raises(TypeError, match="expected one with iterations, got LinearFit; take fit"):
        Search(unknown, torque_case[1], LinearFit(base))
    with pytest.raises(TypeError, match="samples: expected TorqueSamples"):
        Search(unknown, 3)


def test_fits_are_saved_with_their_plant(torque_case, tmp_path):
    _, found = all_steps(Search(*torque_case))
    path = found.save(tmp_path / "fit.npz")
    same(load_plant(path), found.plant)
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
