"""Encoders that are read less often than the log is written, of coarse resolution, or with correlated noise.

The motor's motion is a sum of sines and its torque is J a + d v, both in closed form.
"""

import numpy as np
import pytest
from scipy.signal import butter, lfilter

import lgsim
from lgsim.identify import Parameters, Recording, TorqueSamples, fit, smooth
from lgsim.identify.recording.filters import Spline
from lgsim.identify.recording.plausibility import check_recording
from lgsim.identify.recording.sampling import new_readings, resolution_step
from lgsim.identify.unknowns.joint_blocks import JointParameter

N, ARMATURE, DAMPING, LINK = 4000, 0.01, 0.02, 0.001
TIME = 1e-3 * np.arange(N)
RATES, SIZES, PHASES = 2 * np.pi * np.array([0.5, 1.1, 1.9]), np.array([1.0, 0.5, 0.3]), np.arange(3)


def motion(time, order=0):
    """The angle, or a time derivative of it."""
    return np.sin(np.outer(time, RATES) + PHASES + order * np.pi / 2) @ (SIZES * RATES**order)


def motor(**numbers):
    """A flywheel about an axis through its center of mass."""
    builder = lgsim.ModelBuilder()
    builder.add_body("rotor", "world", lgsim.joints.Revolute(), mass=1.0, inertia=LINK * np.eye(3))
    return builder.build().replace(**numbers)


def record(angle, seed=0):
    """The motor's log with an encoder's angles and 2 mN m of noise in the torque."""
    tau = (LINK + ARMATURE) * motion(TIME, 2) + DAMPING * motion(TIME, 1)
    tau = tau + 2e-3 * np.random.default_rng(seed).standard_normal(N)
    return Recording(motor(), TIME, angle[:, None], tau=tau[:, None])


def armature(recording):
    """(the estimate, its interval) from the smoothed motion and the raw torques."""
    motion = smooth(recording)
    unknowns = Parameters(motor(armature=0.003), [JointParameter("armature"), JointParameter("damping")])
    found = fit(unknowns, TorqueSamples.from_recording(motion, recording))
    (name,) = [name for name in found.values if "armature" in name]
    return found.values[name], found.intervals[name]


def held(x, length):
    """The values of a sampler that reads every ``length`` samples, not a whole number if there are two clocks."""
    return x[(np.floor(np.arange(N) / length) * length).astype(int)]


NOISE = np.random.default_rng(1).standard_normal(N)


def walk(keep):
    """Noise with the correlation ``keep`` from sample to sample and variance 1."""
    return lfilter([np.sqrt(1 - keep**2)], [1, -keep], NOISE)


@pytest.mark.parametrize(
    "angle",
    [
        held(motion(TIME), 8), held(motion(TIME) + 1e-4 * NOISE, 8), held(motion(TIME), 2.5),
        held(1e-3 * np.round(motion(TIME) / 1e-3), 8), 2e-2 * np.round(motion(TIME) / 2e-2),
        motion(TIME) + 1e-3 * walk(np.exp(-1 / 20)), motion(TIME) + 1e-3 * lfilter(*butter(2, 0.1), NOISE),
    ],
    ids=["held", "held with noise", "two clocks", "held and coarse", "coarse", "random walk", "filtered noise"],
)  # fmt: skip
def test_inertia_of_a_motor_by_a_poor_encoder(angle):
    """Read every 8 ms the encoder gave 0 +- 1e-5; cross-validation alone follows the steps of the values."""
    found, (low, high) = armature(record(angle))
    assert low <= ARMATURE <= high, (found, low, high)
    np.testing.assert_allclose(found, ARMATURE, rtol=0.05)
    assert high - low < 0.1 * ARMATURE


@pytest.mark.slow
@pytest.mark.parametrize("length", [1, 8])
def test_intervals_of_twenty_motors(length):
    """Noise of 0.1 mrad, read at every sample or every eighth: 18 of 20 intervals hold the true value, or more."""
    right = 0
    for seed in range(20):
        noise = 1e-4 * np.random.default_rng(100 + seed).standard_normal(N)
        _, (low, high) = armature(record(held(motion(TIME) + noise, length), seed))
        right += low <= ARMATURE <= high
    assert right >= 18, right


def test_held_samples_are_named_and_repeats_do_not_count():
    recording = check_recording(record(held(motion(TIME), 8)))
    (finding,) = recording.report.of_kind("held samples")
    assert finding.where == "q rotor" and "every 8 ms" in finding.seen
    assert np.flatnonzero(recording.valid("q")[:, 0]).tolist() == list(range(0, N, 8))
    assert recording.valid("tau").all()
    again = smooth(recording)
    assert len(again.report.of_kind("held samples")) == 1
    np.testing.assert_array_equal(again.q, smooth(record(held(motion(TIME), 8))).q)
    assert again.valid("a").all()


def test_smoothing_states_noise_resolution_and_spacing():
    (finding,) = smooth(record(2e-2 * np.round(motion(TIME) / 2e-2))).report.of_kind("smoothing")
    assert "resolution 0.02 rad" in finding.seen and "cross-validation" in finding.done
    noise = float(finding.seen.split("noise ")[1].split()[0])
    np.testing.assert_allclose(noise, 2e-2 / np.sqrt(12), rtol=0.15)
    (finding,) = smooth(record(motion(TIME) + 1e-3 * walk(0.95))).report.of_kind("smoothing")
    correlation = float(finding.seen.split("neighbors ")[1].split()[0].rstrip(","))
    np.testing.assert_allclose(correlation, 0.95, atol=0.04)
    assert "resolution" not in finding.seen


def generalized_cross_validation(angle):
    """The spacing with the least n RSS / (n - p)^2, written out with scipy."""
    from scipy.interpolate import make_lsq_spline

    best = []
    for i in range(17):
        spacing = 3e-3 * 2 ** (i / 2)
        inner = np.linspace(0, TIME[-1], max(1, round(TIME[-1] / spacing)) + 1)[1:-1]
        knots = np.r_[np.zeros(6), inner, np.full(6, TIME[-1])]
        rest = angle - make_lsq_spline(TIME, angle, knots, 5)(TIME)
        best.append((rest @ rest / (N - len(knots) + 6) ** 2, spacing))
    return min(best)[1]


@pytest.mark.parametrize("noise", [1e-5, 1e-3, 1e-1])
def test_white_noise_is_smoothed_as_by_cross_validation(noise):
    """A true 1 kHz encoder is smoothed as before."""
    recording = record(motion(TIME) + noise * NOISE)
    found = smooth(recording)
    expected = smooth(recording, Spline(generalized_cross_validation(recording.q[:, 0])))
    np.testing.assert_allclose(found.a, expected.a, atol=1e-9)
    assert not found.report.of_kind("held samples")


@pytest.mark.parametrize("noise", [0.0, 1e-6])
def test_motion_with_jumps_is_no_noise(noise):
    """A slow drift and steps whose velocities jump at contact: the jumps are followed, not smoothed away."""
    gait = np.cumsum(np.sign(np.sin(2 * np.pi * 2.1 * TIME))) * 1e-3
    out = smooth(record(np.sin(0.6 * TIME) + 0.1 * gait + noise * NOISE))
    speed = 0.6 * np.cos(0.6 * TIME) + 0.1 * np.sign(np.sin(2 * np.pi * 2.1 * TIME))
    assert np.median(np.abs(out.v[:, 0] - speed)) < 2e-3


@pytest.mark.parametrize(
    "x",
    [
        np.full(N, 0.3), motion(TIME), 0.3 * np.round(motion(TIME) / 0.3), 1e-3 * np.round(motion(TIME) / 1e-3),
        1e-4 * np.round(1e-4 * NOISE / 1e-4), np.where(TIME < 2, 0.3, motion(TIME)), 1e-3 * np.round(TIME / 8e-3),
    ],
    ids=["rest", "float", "very coarse", "coarse", "noise of one step at rest", "rest, then moves", "slow and even"],
)  # fmt: skip
def test_equal_values_that_are_not_held(x):
    kept, length = new_readings(x[:, None])
    assert kept.all() and length == 1


def test_rest_of_a_held_signal_keeps_its_readings():
    """Rest between two motions: the repeats there are readings of the same value, one every 8 samples."""
    kept, length = new_readings(held(motion(np.clip(TIME - 1, 0, 0.5) + np.clip(TIME - 3, 0, 1)), 8)[:, None])
    assert length == 8
    assert np.flatnonzero(kept).tolist() == list(range(0, N, 8))
    np.testing.assert_array_equal(new_readings(1e-9 * held(motion(TIME), 8)[:, None])[0], np.arange(N) % 8 == 0)
    single = held(motion(TIME), 8).astype(np.float32)
    np.testing.assert_array_equal(new_readings(single[:, None])[0], np.arange(N) % 8 == 0)


def test_torques_that_are_held():
    """With the positions they are rows of a slower log; without them a drive may hold its command."""
    recording = record(motion(TIME) + 1e-4 * NOISE)
    tau = held(recording.tau[:, 0], 4)[:, None]
    alone = check_recording(Recording(recording.model, TIME, recording.q, tau=tau))
    (finding,) = alone.report.of_kind("held samples")
    assert finding.where == "tau rotor" and "1.5 ms late on average" in finding.done and not finding.open
    assert alone.valid("tau").all() and alone.valid("q").all()
    rows = 4 * (np.arange(N) // 4)
    rows = check_recording(Recording(recording.model, TIME, recording.q[rows], tau=recording.tau[rows]))
    assert [finding.where for finding in rows.report.of_kind("held samples")] == ["q rotor", "tau rotor"]
    for channel in ("q", "tau"):
        assert np.flatnonzero(rows.valid(channel)[:, 0]).tolist() == list(range(0, N, 4))


def test_repeated_rows_give_the_inertia_of_the_slower_log():
    """Against the log of every eighth row, which says the same."""
    angle = motion(TIME) + 1e-4 * NOISE
    slow, rows = record(angle), 8 * (np.arange(N - 7) // 8)  # both end with a reading
    recording = check_recording(Recording(slow.model, TIME[: N - 7], slow.q[rows], tau=slow.tau[rows]))
    found, expected = armature(recording)[0], armature(slow[::8])[0]
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    np.testing.assert_allclose(found, ARMATURE, rtol=0.02)


@pytest.mark.parametrize("step", [2 * np.pi / 2**13, 1e-9, 0.1, 360 / 4096])
def test_resolution_of_values_on_a_grid(step):
    np.testing.assert_allclose(resolution_step(step * np.round(100 * step * motion(TIME) / step)), step, rtol=1e-6)


@pytest.mark.parametrize("x", [motion(TIME), NOISE, np.zeros(N), np.zeros(0), NOISE[:9], np.full(N, 1 / 3)])
def test_values_on_no_grid(x):
    assert resolution_step(x) == 0
