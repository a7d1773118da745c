"""Numbers that are not identifiable stay at the file's value, are named, and are not written as new ones."""

import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim.identify.estimators.samples import TorqueSamples
from lgsim.identify.estimators.torque_fit import TorqueFit
from lgsim.identify.fit import fit
from lgsim.identify.prior_values import Knowledge, undecided_values
from lgsim.identify.unknowns.body_blocks import Inertias, Masses
from lgsim.identify.unknowns.joint_blocks import JointParameter, SignalScale
from lgsim.identify.unknowns.parameters import Parameters, TotalMass
from lgsim.identify.unknowns.plant import Plant
from tests.identify import arms


def recorded(plant, q, v, a, noise, seed=0):
    q, v, a = map(jnp.asarray, (q, v, a))
    clean = arms.signals(plant, q, v, a)
    rng = np.random.default_rng(seed)
    return TorqueSamples(q, v, a, clean + jnp.asarray(noise * rng.normal(size=clean.shape), clean.dtype))


def test_values_that_the_records_do_not_decide():
    """By hand: of a sum that is seen, and of priors of one, each alone; a value without any; one that is seen."""
    data, prior = np.zeros((5, 5)), np.diag([1.0, 1, 0, 0, 1])
    data[:2, :2] = 100
    data[3, 3], data[4, 4] = 4, 0.5
    slopes = np.vstack([np.eye(5), [1, 1, 0, 0, 0], [0, 0, 1, 1, 0]])
    # the first two remain half as uncertain as before, whatever their sum is
    assert undecided_values(slopes, Knowledge(data, prior, 1e-12)).tolist() == [
        True,
        True,
        True,
        False,
        True,
        False,
        True,
    ]


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_friction_of_a_joint_that_does_not_move_stays(dtype):
    """An elbow at rest but for the rounding of its log, 1e-12: 5.4e10 N m of friction would explain its noise."""
    true = Plant(arms.planar(dtype, friction=0.4, damping=0.3))
    q, v, a = (np.array(x) for x in arms.states(true.model))
    rng = np.random.default_rng(5)
    q[:, 1], v[:, 1], a[:, 1] = 0.3, 1e-12 * rng.normal(size=len(q)), 1e-9 * rng.normal(size=len(q))
    blocks = [Masses(), JointParameter("friction"), JointParameter("damping")]
    prior = arms.planar(dtype, friction=0.1, damping=0.2)
    found = fit(Parameters(prior, blocks), recorded(true, q, v, a, 0.3))
    still = ("friction of elbow, N m", "damping of elbow, N m s/rad")
    assert found.not_identifiable == still and found.verdict.converged
    for name, value in zip(still, (0.1, 0.2), strict=True):
        assert found.values[name] == pytest.approx(value, abs=0 if dtype == "float64" else 1e-6)
        assert found.deviations[name] == np.inf and found.intervals[name] == (0, np.inf)
        assert f"{name.partition(',')[0]}: no information" in str(found.verdict)
        (row,) = (line for line in found.summary().splitlines() if line.startswith(name))
        assert row.endswith("not identifiable")
    for name, value in (("friction of shoulder, N m", 0.4), ("damping of shoulder, N m s/rad", 0.3)):
        assert abs(found.values[name] - value) < 3 * found.deviations[name] < 0.2


def upright(moment, mass=20.0):
    """A base that turns about a vertical axis, of which torques show the moment only, with a link on it."""
    placement = np.eye(4)
    placement[2, 3] = 0.3
    builder = lgsim.ModelBuilder().add_body(
        "base", "world", lgsim.joints.Revolute(), joint_name="turn", axis=[0, 0, 1], mass=mass, center=[0, 0, 0.1],
        inertia=np.diag([0.8 * max(moment, 1), 0.7 * max(moment, 1), moment]), damping=0.1,
    )  # fmt: skip
    return builder.add_body(
        "link", "base", lgsim.joints.Revolute(), joint_name="nod", axis=[0, 1, 0], placement=placement, mass=3.0,
        center=[0.1, 0, 0.1], inertia=np.diag([0.05, 0.05, 0.03]), damping=0.1,
    ).build()  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("deviation", [1.0, None])
def test_a_mass_that_no_torque_shows_stays_that_of_the_file(deviation):
    """Its moment about the axis doubles; the rest of the body stays, since bodies can be like that."""
    q, v, a = np.random.default_rng(1).normal(size=(3, 300, 2))
    p = Parameters(upright(0.5), [Inertias(prior_deviation=deviation), JointParameter("damping")])
    found = fit(p, recorded(Plant(upright(1.0)), q, v, a, 0.1))
    before, after = (np.asarray(m.inertias) for m in (p.plant.model, found.model))
    np.testing.assert_allclose(after[0, :9], before[0, :9], atol=1e-6)
    assert after[0, 9] > 0.9 and "m of base, kg" in found.not_identifiable
    assert "damping of nod, N m s/rad" not in found.not_identifiable
    np.testing.assert_allclose(found.rmse(), 0.1, rtol=0.1)
    # the covariance moves along with the coordinates
    raw = TorqueFit().run(p, found.samples)
    if deviation:
        assert found.deviations["mx of link, kg m"] < 0.01
    cost = [np.sum(np.asarray(found.residuals_at(x)) ** 2) for x in (raw.x, found.estimate.x)]
    assert cost[1] == pytest.approx(cost[0], rel=1e-4)
    # a moment that is too large for the other two takes them along
    large = fit(p, recorded(Plant(upright(5.0)), q, v, a, 0.1))
    Ixx, Iyy, Izz = np.asarray(large.model.inertias)[0, [4, 6, 9]]
    assert Izz > 4.5 and Ixx + Iyy > Izz and large.values["m of base, kg"] < 40


@pytest.mark.slow
def test_a_mass_of_nothing_has_an_interval():
    """Truth 0 kg: at the bound of what masses are, with the standard error of linear least squares; twenty records."""
    model = arms.planar()
    light = Plant(model.replace(inertias=model.inertias.at[1].multiply(0.0)))
    states = arms.states(model)
    p, name = Parameters(model, Masses(["fore"])), "m of fore, kg"
    one = np.asarray(arms.signals(Plant(model), *states) - arms.signals(light, *states)) / 1.2
    inside, bounds = 0, 0
    for seed in range(20):
        records = recorded(light, *states, 1.0, seed)
        found = fit(p, records, TorqueFit(noise=1.0, lags=0))
        low, high = found.intervals[name]
        y = np.asarray(records.signals - arms.signals(light, *states))
        best, error = np.sum(y * one) / np.sum(one**2), 1 / np.sqrt(np.sum(one**2))
        assert low >= 0 and high <= max(best, 0) + 2.1 * error
        if best < 0:
            assert low == 0 and high == pytest.approx(1.96 * error, rel=0.05)
            assert "m of fore at its lower bound" in found.verdict.bounds
            bounds += 1
        inside += low <= 1e-9
    assert inside >= 17 and bounds >= 5


@pytest.mark.slow
def test_a_torque_constant_keeps_its_sign():
    """Currents of the opposite sign: the constant goes to no value across zero."""
    true = Plant(arms.planar(), scale=[-5.0, 4.0])
    p = Parameters(Plant(arms.planar(), scale=[3.0, 3.0]), SignalScale())
    states = arms.states(true.model)
    found = fit(p, recorded(true, *states, 0.01))
    assert found.values["scale of elbow, 1"] == pytest.approx(4, rel=0.01)
    assert found.values["scale of shoulder, 1"] > 0


@pytest.mark.slow
def test_what_was_weighed_is_kept():
    """A base on a vertical axis, whose mass no torque shows, of a robot that was weighed."""
    q, v, a = np.random.default_rng(1).normal(size=(3, 300, 2))
    p = Parameters(upright(0.5), [Inertias(), JointParameter("damping")], [TotalMass(28.0, 0.01)])
    found = fit(p, recorded(Plant(upright(1.0)), q, v, a, 0.1))
    assert np.sum(np.asarray(found.model.inertias)[:, 0]) == pytest.approx(28, abs=0.03)
