"""The share of each signal that a fit explains: what fails a fit, and what does not."""

import re

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim.cli.exit_status import Exit
from lgsim.cli.work.identification import reason_of
from lgsim.identify.estimators.loss import Huber, SquaredLoss
from lgsim.identify.estimators.records import Channel, SensorRecords
from lgsim.identify.estimators.samples import TorqueSamples
from lgsim.identify.estimators.sensors import PositionSensor, VelocitySensor
from lgsim.identify.estimators.torque_fit import TorqueFit
from lgsim.identify.fit import fit
from lgsim.identify.goodness import Signals, goodness, reachable, sensor_signals
from lgsim.identify.unknowns.body_blocks import Masses
from lgsim.identify.unknowns.joint_blocks import JointParameter
from lgsim.identify.unknowns.parameters import Parameters
from lgsim.identify.unknowns.plant import Plant
from lgsim.support.verdict import Outcome
from tests.identify import arms

N = 600
"""Rows of records without a robot."""


def motion(seed=0):
    """Sums of sines (N, 6): two speeds, accelerations and functions of the positions."""
    rng, t = np.random.default_rng([seed, 2]), np.linspace(0, 10, N)[:, None]
    return np.stack([np.sin(t * rng.uniform(1, 9, (1, 4))).sum(axis=1) for _ in range(6)], axis=1)


def judged(values, residuals, *, stated=None, weights=1.0, noise=None, loss=None, x=None, units=None):
    """The goodness of residuals of signals, by name "a", "b", ..."""
    columns = list("abcdefgh")[: values.shape[1]]
    signals = Signals(
        values, motion() if x is None else x, units or ["N m"] * len(columns), stated, loss or SquaredLoss()
    )
    w = np.broadcast_to(np.asarray(weights, float), values.shape)
    noise = np.std(residuals, axis=0) if noise is None else np.asarray(noise, float)
    return goodness(signals, columns, residuals, w, noise)


def white(seed, *shape):
    return np.random.default_rng([seed, 3]).normal(size=shape)


def colored(seed, factor=0.99):
    """Slow noise of unit variance: a filter's, or a drift."""
    x = np.zeros(N)
    for k, e in enumerate(white(seed, N)):
        x[k] = factor * x[k - 1] + np.sqrt(1 - factor**2) * e
    return x


def test_explained_share_is_that_of_the_weighted_variance():
    y, r = np.stack([motion()[:, 0], 5 + motion()[:, 1]], axis=1), 0.1 * white(0, N, 2)
    w = np.random.default_rng(0).uniform(size=(N, 2))
    w[:50] = 0
    hidden = y.copy()
    hidden[:50] = 1e9
    found = judged(hidden, r, weights=w)
    for j in range(2):
        mean = np.average(y[:, j], weights=w[:, j])
        variance, left = (np.average(x, weights=w[:, j]) for x in ((y[:, j] - mean) ** 2, r[:, j] ** 2))
        assert found.explained[j] == pytest.approx(1 - left / variance, rel=1e-12)
        assert found.sizes[j] == pytest.approx(np.sqrt(variance))
    assert not found.misfits and not found.remarks
    assert "99.34 % of a (1.2 N m rms)" == found.line(0) and found.summary().startswith("explained variance: 99")


@pytest.mark.parametrize("unit", [1.0, 1e-9, 1e9])
def test_exchanged_channels_do_not_fit(unit):
    """Each prediction is the other signal: what remains depends on the motion, which a regression finds."""
    x = motion()
    truth = np.stack([x[:, 0] + np.sign(x[:, 2]), 0.3 * x[:, 1], 8 * x[:, 3]], axis=1) * unit
    y = truth[:, [1, 0, 2]] + 0.02 * unit * white(1, N, 3)
    found = judged(y, truth - y)
    assert len(found.misfits) == 2 and all("worse" not in text for text in found.misfits)
    assert found.misfits[0].startswith("channel a explains 0 % of its variance")
    assert "a regression on the motion explains" in found.misfits[1]


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("noise", [lambda seed: white(seed, N), colored, lambda seed: np.cumsum(white(seed, N))])
def test_a_joint_at_rest_does_not_fail_a_fit(seed, noise):
    """Nothing but noise, white, filtered or drifting, as large as a tenth of the other signal."""
    y = np.stack([motion()[:, 0], noise(seed)], axis=1)
    y[:, 1] *= 0.1 * np.std(y[:, 0]) / np.std(y[:, 1])
    y[:, 1] -= y[:, 1].mean()
    prediction = np.stack([y[:, 0], 1e-4 * motion()[:, 1]], axis=1) + 0.05 * white(seed, N, 2) * [[1, 0]]
    found = judged(y, prediction - y)
    assert not found.misfits and "too little signal" in found.remarks[0]


@pytest.mark.parametrize("seed", range(20))
def test_noise_that_is_larger_than_the_torque_does_not_fail_a_fit(seed):
    """The right model of a signal of half the noise explains a fifth, and so does any regression."""
    x = motion()
    truth = np.stack([x[:, 0], 0.25 * x[:, 1] / np.std(x[:, 1])], axis=1)
    y = truth + 0.5 * white(seed, N, 2)
    found = judged(y, truth - y)
    assert 0.05 < found.explained[1] < 0.4 and not found.misfits and found.remarks


def test_constant_loads():
    """A constant that is explained passes, a constant that is not fails, and so does a sensor that is dead."""
    x = motion()
    y = np.stack([3 * x[:, 0], 100 + 0.5 * white(2, N)], axis=1)
    near = y + 0.1 * white(3, N, 2) + np.array([0.0, 2.0])
    assert not judged(y, near - y).misfits
    missing = np.stack([near[:, 0], 0 * x[:, 0]], axis=1)
    assert judged(y, missing - y).misfits[0].startswith("channel b explains 0 %")
    dead = np.stack([y[:, 0], np.zeros(N)], axis=1)
    found = judged(dead, np.stack([0.1 * white(4, N), x[:, 1]], axis=1))
    assert len(found.misfits) == 1 and np.isnan(found.explained[1])
    # an offset of a hundredth of the largest signal is too small to fail it
    offset = np.stack([y[:, 0], 0.02 + 1e-4 * white(5, N)], axis=1)
    assert not judged(offset, np.stack([0.1 * white(4, N), -offset[:, 1]], axis=1)).misfits
    still = np.zeros((N, 2))
    silent = judged(still, still, noise=[1, 1])
    assert not silent.misfits and not silent.remarks and silent.summary() == ""


def test_stated_deviations():
    y = motion()[:, :2]
    r = np.array([0.01, 4.16]) * white(6, N, 2) / np.sqrt(np.mean(white(6, N, 2) ** 2, axis=0))
    found = judged(100 * y, r, stated=np.array([0.01, 0.01]))
    assert found.misfits == ["residuals of b are 416 times the stated deviations"]
    np.testing.assert_allclose(found.normalized, [1, 416])
    assert not judged(100 * y, r, stated=np.array([0.01, 1.5])).misfits
    # noise is what was stated, and there is nothing else
    assert not judged(r, r, stated=np.array([0.01, 4.0])).misfits
    outlier = r.copy()
    outlier[::20] += 100
    assert judged(100 * y, outlier, stated=np.array([0.01, 4.0])).misfits
    assert not judged(100 * y, outlier, stated=np.array([0.01, 4.0]), noise=[0.01, 4.0], loss=Huber()).misfits


@pytest.mark.parametrize("rows", [2, 6, 20, 60])
def test_few_rows_do_not_fail_a_fit_by_chance(rows):
    """Noise that nothing explains, and a load that is missing in all rows."""
    for seed in range(50):
        y = white(seed, rows, 2)
        prediction, x = 0.1 * white(seed + 1000, rows, 2), white(seed + 2000, rows, 10)
        assert not judged(y, prediction - y, x=x).misfits
        assert not reachable(y[:, 0], prediction, x) > 0.5
    load = np.array([0.0, 100.0])
    far = judged(y + load, prediction - y - load, x=x)
    assert bool(far.misfits) is (rows > 2)


def arm_record(swap=False, noise=0.1):
    """Torques of a motion of sines; ``swap`` exchanges the joints."""
    t, w = np.linspace(0, 10, 400)[:, None], np.array([[1.3, 2.1]])
    moved = [jnp.asarray(x) for x in (np.sin(w * t), w * np.cos(w * t), -(w**2) * np.sin(w * t))]
    torques = np.asarray(arms.signals(Plant(arms.planar(damping=0.3)), *moved)) + noise * white(9, 400, 2)
    return TorqueSamples(*moved, jnp.asarray(torques[:, ::-1] if swap else torques))


@pytest.fixture(scope="module")
def unknown():
    return Parameters(arms.planar(damping=0.1), [Masses(), JointParameter("damping")])


def test_the_verdict_begins_with_what_does_not_fit(unknown, tmp_path):
    found = fit(unknown, arm_record(swap=True))
    assert found.message == "" and found.verdict.outcome is Outcome.DOES_NOT_FIT and not found.verdict.converged
    assert found.verdict.sentence.startswith("does not fit: channel elbow explains ")
    assert "check columns, signs, units and the model" in found.verdict.sentence
    assert reason_of(found.verdict.outcome) is Exit.DOES_NOT_FIT and Exit.DOES_NOT_FIT.status == 3
    fine = fit(unknown, arm_record())
    assert fine.verdict.outcome is Outcome.CONVERGED and fine.verdict.sentence == "converged"
    assert str(fine.verdict).startswith("converged; explained variance: 99.")
    assert "explained variance: 99.98 % of shoulder" in fine.summary()
    with np.load(fine.save(tmp_path / "fit.npz")) as file:
        np.testing.assert_array_equal(file["explained"], fine.goodness.explained)
    r, y = np.asarray(fine.residuals()), np.asarray(fine.samples.signals)
    np.testing.assert_allclose(fine.goodness.explained, 1 - np.mean(r**2, axis=0) / np.var(y, axis=0), rtol=1e-9)


def test_torques_beyond_their_stated_noise(unknown):
    found = fit(unknown, arm_record(), TorqueFit(noise=0.1 / 416))
    assert found.verdict.outcome is Outcome.DOES_NOT_FIT
    assert "times the stated deviations (2 signals)" in found.verdict.sentence
    assert fit(unknown, arm_record(), TorqueFit(noise=0.1)).verdict.outcome is Outcome.CONVERGED


def test_digits_of_exact_records(unknown):
    records = arm_record(noise=0.0)
    found = re.search(r"the records are exact to at least (\d+) digits", str(fit(unknown, records).verdict))
    assert found and int(found[1]) >= 7  # half of all: what normal equations resolve
    # rounded to nine digits as in a file
    y = np.asarray(records.signals)
    rounded = eqx.tree_at(lambda s: s.signals, records, jnp.asarray(np.round(y, 8)))
    assert "the records are exact to at least 8 digits" in str(fit(unknown, rounded).verdict)


def test_readings_on_groups_are_differences_from_their_mean():
    """A body that moves along x in one data set, and turns about z in the other, by small angles."""
    body = {"mass": 1.0, "center": [0, 0, 0], "inertia": np.eye(3)}
    model = lgsim.ModelBuilder().add_body("b", "world", lgsim.joints.Free(), **body).build()
    angle, x = 0.2 * np.sin(np.linspace(0, 6, 50)), np.linspace(3, 4, 50)
    q = np.zeros((2, 50, 7))
    q[0, :, 0], q[0, :, 3], q[1, :, 3], q[1, :, 6] = x, 1, np.cos(angle / 2), np.sin(angle / 2)
    v = white(10, 2, 50, 6)
    channels = {"q": Channel(PositionSensor(), q, 1e-3), "v": Channel(VelocitySensor(), v, 1e-2)}
    records = SensorRecords(0.01, channels)
    found = sensor_signals(model, records, False, SquaredLoss())
    expected = np.zeros((2, 50, 6))
    expected[0, :, 0], expected[1, :, 5] = x - x.mean(), angle - angle.mean()
    order = [found.units.index("m"), 5 - found.units[5::-1].index("rad")]
    moved = found.values[:, :6].reshape(2, 50, 6)
    np.testing.assert_allclose(moved[0, :, order[0]], expected[0, :, 0], atol=1e-12)
    np.testing.assert_allclose(moved[1, :, order[1]], expected[1, :, 5], atol=1e-12)
    assert np.sum(np.std(moved, axis=1) > 1e-12) == 2
    np.testing.assert_allclose(found.values[:, 6:], (v - v.mean(axis=1, keepdims=True)).reshape(-1, 6), atol=1e-12)
    np.testing.assert_array_equal(found.stated, [1e-3] * 6 + [1e-2] * 6)
    assert sorted(set(found.units)) == ["m", "m/s", "rad", "rad/s"]
    assert sensor_signals(model, records, True, SquaredLoss()).stated is None
