"""Each kind of bad data is found, named and mended or left with a question; clean data give no findings."""

from time import process_time

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import lgsim
from lgsim.identify import Recording
from lgsim.identify.recording.channel_checks import exclude_stuck_encoders
from lgsim.identify.recording.plausibility import check_recording
from tests.identify.recording.motions import DT, SECONDS, arm, changed, clean, fourier, simulated, single, torques

N = round(SECONDS / DT)


@pytest.fixture(scope="module")
def noisy():
    """Torques with 5 % of noise, positions with 0.05 mrad, velocities with 10 mrad/s."""
    return clean(0.05)


def found(recording):
    """(recording, the kinds of all findings)."""
    recording = check_recording(recording)
    for array in recording.channels.values():
        assert np.all(np.isfinite(array))
    return recording, {finding.kind for finding in recording.report}


def only(recording, kind, where):
    """The one finding, of this kind, about that channel."""
    recording, kinds = found(recording)
    assert kinds == {kind}, str(recording.report)
    assert [finding.where for finding in recording.report] == [where]
    return recording, recording.report.findings[0]


@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_clean_motion_gives_no_finding(noise):
    recording = check_recording(clean(noise))
    assert len(recording.report) == 0, str(recording.report)
    assert str(recording.report) == "nothing to report"
    assert recording.history == ("checked",)
    np.testing.assert_array_equal(recording.q, clean(noise).q)
    assert all(np.all(w == 1) for w in recording.weights.values())


def test_quantized_encoders_and_slow_torque_samples_are_no_fault(noisy):
    """Encoders of 16 bits, and torques that change only every fifth sample, are sound sensors."""
    quantum = 2 * np.pi / 2**16
    held = noisy.tau[(np.arange(N) // 5) * 5]
    recording, kinds = found(changed(noisy, q=quantum * np.round(clean().q / quantum), tau=held))
    assert {"held samples"} <= kinds <= {"held samples", "delay"}  # a torque held for 10 ms is 4 ms late on average
    assert all("4 ms late on average" in finding.done for finding in recording.report.of_kind("held samples"))
    assert recording.valid("q").all() and recording.valid("tau").all()


def test_rest_is_no_stuck_encoder():
    """A joint that starts from rest and comes to rest again has constant stretches without a fault."""
    time = DT * np.arange(N)
    s = np.clip((time - 1) / 2, 0, 1)
    way = s**3 * (10 - 15 * s + 6 * s**2)
    q = np.tile(fourier(np.zeros(1))[0], (N, 1)) + way[:, None] * np.linspace(0.2, 0.8, 7)
    _, kinds = found(Recording(arm(), time, q))
    assert kinds == {"missing velocity"}


def test_rows_without_time_repeated_and_out_of_order(noisy):
    places = np.arange(N)
    places[500], places[501] = 501, 500
    places = np.insert(places, 1000, [999, 999])
    time = noisy.time[places].copy()
    time[1500] = np.nan
    mixed = noisy[places]
    recording, kinds = found(changed(mixed, time=time))
    assert kinds == {"invalid time", "duplicate", "unordered time", "gap"}
    counts = {finding.kind: finding.count for finding in recording.report}
    assert counts == {"invalid time": 1, "duplicate": 2, "unordered time": 2, "gap": 1}
    kept = np.delete(np.arange(N), places[1500])
    np.testing.assert_array_equal(recording.time, noisy.time[kept])
    np.testing.assert_array_equal(recording.tau, noisy.tau[kept])


@pytest.mark.parametrize("jump", [0.25, -0.25, 100.0, -1.997])
def test_clock_jump(noisy, jump):
    """A clock that is set while the arm moves on; the true times come back."""
    time = noisy.time + np.where(np.arange(N) > 999, jump, 0)
    recording, finding = only(changed(noisy, time=time), "clock jump", "time")
    assert "sample 999" in finding.seen
    np.testing.assert_allclose(recording.time, noisy.time, atol=1e-9)
    assert len(recording.segments) == 1


def test_missing_stretch_is_a_gap_not_a_clock_jump(noisy):
    kept = np.r_[0:750, 900:N]
    recording, finding = only(noisy[kept], "gap", "time")
    assert finding.count == 150
    np.testing.assert_array_equal(recording.time, noisy.time[kept])
    assert recording.segments == [slice(0, 750), slice(750, N - 150)]


def test_second_run_in_one_file_starts_a_new_piece(noisy):
    other = changed(noisy, **dict(zip(("q", "v"), fourier(noisy.time + 1.3)[:2], strict=True)))
    joined = {name: np.concatenate([getattr(noisy, name), getattr(other, name)]) for name in ("time", "q", "v")}
    recording, kinds = found(Recording(arm(), **joined))
    assert "clock jump" in kinds
    assert "new segment" in recording.report.of_kind("clock jump")[0].done
    assert [part.stop - part.start for part in recording.segments] == [N, N]


def test_thirty_percent_of_the_rows_are_missing(noisy):
    kept = np.sort(np.random.default_rng(0).permutation(N)[: round(0.7 * N)])
    _, finding = only(noisy[kept], "gap", "time")
    assert abs(finding.count - 0.3 * N) < 5
    assert "30 % of the samples" in finding.seen


def test_thirty_percent_of_the_cells_are_missing(noisy):
    rng = np.random.default_rng(1)
    q, tau = noisy.q.copy(), noisy.tau.copy()
    holes = {"q": rng.random(N) < 0.3, "tau": rng.random(N) < 0.3}
    q[holes["q"], 2], tau[holes["tau"], 4] = np.nan, np.nan
    recording, kinds = found(changed(noisy, q=q, tau=tau))
    assert kinds == {"missing values"}
    counts = {finding.where: finding.count for finding in recording.report}
    assert counts == {"q joint3": holes["q"].sum(), "tau joint5": holes["tau"].sum()}
    np.testing.assert_array_equal(recording.valid("q")[:, 2], ~holes["q"])
    np.testing.assert_array_equal(recording.valid("tau")[:, 4], ~holes["tau"])
    assert np.max(np.abs(recording.q - noisy.q)) < 5e-3


def test_irregular_clock(noisy):
    time = noisy.time + 4e-4 * np.random.default_rng(2).uniform(-1, 1, N)
    q, v, _ = fourier(time)
    recording, _ = only(changed(noisy, time=time, q=q, v=v), "irregular clock", "time")
    np.testing.assert_array_equal(recording.time, time)


def test_whole_turns():
    """A continuous joint whose encoder gives angles from -pi to pi."""
    model = single(lgsim.joints.Revolute())
    time = 0.01 * np.arange(1000)
    angle = 3 * time + np.sin(time)
    wrapped = (angle + np.pi) % (2 * np.pi) - np.pi
    rate = (3 + np.cos(time))[:, None]
    recording, _ = only(Recording(model, time, wrapped[:, None], rate), "wraparound", "q body")
    np.testing.assert_allclose(recording.q[:, 0], angle, atol=1e-12)


def test_stuck_encoder(noisy):
    q = noisy.q.copy()
    q[600:750, 3] = q[600, 3]
    recording, finding = only(changed(noisy, q=q), "stuck encoder", "q joint4")
    assert finding.count == 149
    assert not recording.valid("q")[601:750, 3].any()
    assert np.count_nonzero(~recording.valid("q")) == 149


def test_encoder_that_stays_stuck_to_the_end(noisy):
    """Without measured velocities, from one moment to the next."""
    quantum = 1e-5
    q = quantum * np.round(clean().q / quantum)
    speed = np.abs(clean().v[:, 0])
    at = N // 2 + int(np.argmax(speed[N // 2 : -100]))
    q[at:, 0] = q[at, 0]
    recording, _ = found(changed(noisy, q=q, v=None, tau=None))
    (finding,) = recording.report.of_kind("stuck encoder")
    assert finding.where == "q joint1"
    assert finding.count == N - at - 1


def test_stuck_encoder_of_a_long_record():
    """Two minutes of a coarse encoder, 20 000 runs of equal values: it took 15 s for each joint."""
    time = 2e-3 * np.arange(60_000)
    angle = 2 * np.sin(0.7 * time)
    q = 2e-3 * np.round(angle / 2e-3)
    at = int(np.argmin(np.abs(time - 63)))
    q[at : at + 400] = q[at]
    recording = Recording(single(lgsim.joints.Revolute()), time, q[:, None])
    start = process_time()
    recording, (finding,) = exclude_stuck_encoders(recording)
    assert process_time() - start < 1
    assert (finding.where, finding.count) == ("q body", 399)
    assert np.flatnonzero(~recording.valid("q")[:, 0]).tolist() == list(range(at + 1, at + 400))


@pytest.mark.parametrize("level", [0.7, 0.9])
def test_saturated_torque(noisy, level):
    tau = noisy.tau.copy()
    limit = level * np.max(np.abs(tau[:, 2]))
    cut = np.abs(tau[:, 2]) > limit
    quiet = clean().tau[:, 2]  # the controller asks for a smooth torque, the drive cuts it
    tau[:, 2] = np.clip(quiet, -limit, limit)
    recording, finding = only(changed(noisy, tau=tau), "saturated torque", "tau joint3")
    assert f"{limit:.6g}" in finding.seen
    assert finding.count == np.count_nonzero(np.abs(quiet) >= limit)
    assert not recording.valid("tau")[np.abs(quiet) > limit, 2].any()
    assert cut.any()


def test_missing_velocities_are_differences_that_do_not_count():
    recording, _ = only(changed(clean(), v=None), "missing velocity", "v")
    np.testing.assert_allclose(recording.v[1:-1], clean().v[1:-1], atol=8e-5)  # h^2/6 times the third derivative
    assert not recording.valid("v").any()


@pytest.mark.parametrize("channel", ["q", "v"])
def test_degrees_taken_for_radians(noisy, channel):
    array = getattr(noisy, channel).copy()
    array[:, 1] *= 180 / np.pi
    recording, kinds = found(changed(noisy, **{channel: array}))
    assert kinds == {"implausible units"}, str(recording.report)
    where = {finding.where: finding for finding in recording.report.open}
    assert any("degrees" in finding.seen for finding in where.values())
    assert {finding.split()[1] for finding in where} == {"joint2"}
    np.testing.assert_array_equal(getattr(recording, channel), array)


def test_milliseconds_taken_for_seconds(noisy):
    """Said once, not once for each joint."""
    _, finding = only(changed(noisy, time=1e3 * noisy.time), "implausible units", "time, or all of v")
    assert "thousandths" in finding.seen


def test_sign_of_a_velocity(noisy):
    v = noisy.v * np.where(np.arange(7) == 4, -1, 1)
    _, finding = only(changed(noisy, v=v), "wrong sign", "v joint5 or q joint5")
    assert finding.open


def test_sign_of_a_torque(noisy):
    tau = noisy.tau * np.where(np.arange(7) == 3, -1, 1)
    _, finding = only(changed(noisy, tau=tau), "wrong sign", "tau joint4")
    assert finding.open


def test_sign_of_a_position_and_its_velocity(noisy):
    """Which only the torques show."""
    signs = np.where(np.arange(7) == 1, -1.0, 1.0)
    limits = arm().replace(lower=jnp.full(7, -10.0), upper=jnp.full(7, 10.0))
    recording = Recording(limits, noisy.time, noisy.q * signs, noisy.v * signs, tau=noisy.tau)
    _, finding = only(recording, "wrong sign", "q joint2")
    assert finding.open


def test_shuffled_velocities(noisy):
    v = noisy.v[:, [0, 1, 3, 2, 4, 5, 6]]
    recording, kinds = found(changed(noisy, v=v))
    assert kinds == {"shuffled columns"}
    assert [finding.where for finding in recording.report] == ["v joint3", "v joint4"]
    assert "joint4" in recording.report.findings[0].seen


def test_shuffled_torques(noisy):
    tau = noisy.tau[:, [0, 3, 2, 1, 4, 5, 6]]
    recording, kinds = found(changed(noisy, tau=tau))
    assert kinds == {"shuffled columns"}, str(recording.report)
    assert [finding.where for finding in recording.report] == ["tau joint2", "tau joint4"]


def test_shuffled_positions(noisy):
    """Positions and velocities under each other's names, which only the torques show."""
    order = [0, 3, 2, 1, 4, 5, 6]
    limits = arm().replace(lower=jnp.full(7, -10.0), upper=jnp.full(7, 10.0))
    recording = Recording(limits, noisy.time, noisy.q[:, order], noisy.v[:, order], tau=noisy.tau)
    _, finding = only(recording, "shuffled columns", "q joint2 and joint4")
    assert finding.open


def late(sound, noisy, by):
    """A channel that comes late."""
    return np.stack([np.interp(noisy.time - by, noisy.time, column) for column in sound.T], axis=1)


def test_delay_of_velocities(noisy):
    """12.5 ms on three joints."""
    v = noisy.v.copy()
    v[:, [1, 3, 5]] += (late(clean().v, noisy, 0.0125) - clean().v)[:, [1, 3, 5]]
    recording, kinds = found(changed(noisy, v=v))
    assert kinds == {"delay"}, str(recording.report)
    said = {f.where: float(f.seen.split()[0]) for f in recording.report}
    assert set(said) == {"v joint2", "v joint4", "v joint6"}
    np.testing.assert_allclose(list(said.values()), 12.5, atol=2.0)


def test_delay_of_torques(noisy):
    """20 ms between the drives and the encoders."""
    tau = noisy.tau + late(clean().tau, noisy, 0.02) - clean().tau
    _, finding = only(changed(noisy, tau=tau), "delay", "tau")
    np.testing.assert_allclose(float(finding.seen.split()[0]), 20, atol=3.0)


@pytest.mark.parametrize(("by", "dt"), [(0.18, 0.02), (0.18, 0.004), (0.35, 0.02)])
@pytest.mark.parametrize("channel", ["v", "tau"])
def test_long_delays(by, dt, channel):
    """Beyond the first range of the search, for steps of 20 ms too: 180 ms were stated as 120."""
    time = dt * np.arange(round(16 / dt))
    arrays = {"v": fourier(time)[1], "tau": torques(*fourier(time))}
    arrays[channel] = fourier(time - by)[1] if channel == "v" else torques(*fourier(time - by))
    noise = np.random.default_rng(0).standard_normal(arrays["tau"].shape)
    arrays["tau"] += 0.01 * arrays["tau"].std(axis=0) * noise
    recording = check_recording(Recording(arm(), time, fourier(time)[0], **arrays))
    assert {finding.kind for finding in recording.report} == {"delay"}, str(recording.report)
    stated = [float(finding.seen.split()[0]) for finding in recording.report]
    assert len(stated) == (7 if channel == "v" else 1)
    np.testing.assert_allclose(stated, 1e3 * by, atol=2)


def test_a_delay_beyond_the_search_is_a_lower_bound():
    """1.3 s, and the search ends after 1 s; of a short record it ends at an eighth of the duration."""
    for seconds, end in ((40, 1000), (6.4, 800)):
        time = 0.02 * np.arange(round(seconds / 0.02))
        rate = 2 * np.pi * 0.1
        q, v = np.sin(rate * time)[:, None], rate * np.cos(rate * (time - 1.3))[:, None]
        recording = check_recording(Recording(single(lgsim.joints.Revolute()), time, q, v))
        (finding,) = recording.report.of_kind("delay")
        assert finding.seen.startswith("at least"), finding.seen
        np.testing.assert_allclose(float(finding.seen.split()[2]), end, atol=40)


@pytest.mark.parametrize(("factor", "unit"), [(1e3, "ms"), (1e6, "us"), (1e9, "ns")])
def test_times_in_another_unit_without_velocities(noisy, factor, unit):
    """It ended in "not enough values to unpack"."""
    recording = check_recording(changed(noisy, time=factor * noisy.time, v=None))
    (finding,) = recording.report.open
    assert (finding.kind, finding.where) == ("implausible units", "time")
    assert f'"time [{unit}]"' in finding.done


def test_slow_clocks_that_are_in_seconds(noisy):
    """Poses that are held while one sample is taken, and a log that is written twice per second."""
    poses = np.random.default_rng(0).uniform(-1, 1, (200, 7)) + fourier(np.zeros(1))[0]
    _, kinds = found(Recording(arm(), 2.0 * np.arange(200), poses))
    assert kinds == {"missing velocity"}
    time = 0.4 * np.arange(200)
    _, kinds = found(Recording(arm(), time, fourier(0.1 * time)[0]))
    assert kinds == {"missing velocity"}


@pytest.mark.parametrize(("scale", "offset"), [(1.1, 0.0), (0.9, 0.0), (1.0, 0.3), (1.0, -0.1)])
def test_velocities_that_are_no_derivative(noisy, scale, offset):
    """Reported, not corrected: smooth uses the positions."""
    v = noisy.v.copy()
    v[:, 2] = scale * v[:, 2] + offset
    recording, finding = only(changed(noisy, v=v), "inconsistent rate", "v joint3")
    number, constant = finding.seen.split()[0], finding.seen.split()[-2]
    np.testing.assert_allclose([float(number), float(constant)], [scale, offset], atol=0.02)
    np.testing.assert_array_equal(recording.v, v)
    assert finding.seen.endswith("rad/s") and not finding.open


def test_accelerations_that_are_no_derivative(noisy):
    """Right ones, of the wrong sign, late, and of another unit."""
    a = fourier(noisy.time)[2]
    a = a + 0.05 * a.std(axis=0) * np.random.default_rng(0).standard_normal(a.shape)
    _, kinds = found(changed(noisy, a=a))
    assert kinds == set()
    wrong = a.copy()
    wrong[:, 1] *= -1
    wrong[:, 3] = fourier(noisy.time - 0.05)[2][:, 3]
    wrong[:, 5] *= 180 / np.pi
    recording, _ = found(changed(noisy, a=wrong))
    assert {finding.where: finding.kind for finding in recording.report} == {
        "a joint2 or q joint2": "wrong sign", "a joint4": "delay", "a joint6": "implausible units"
    }  # fmt: skip


def test_simulated_motion_of_a_machine_whose_drives_are_not_known():
    """Friction, armature and damping that the model lacks are no fault of the data."""
    recording = check_recording(simulated())
    assert len(recording.report) == 0, str(recording.report)


def test_faults_of_simulated_motion():
    """Two exchanged torques, one of the wrong sign where friction is all there is, a stuck encoder, a clock jump."""
    motion = simulated()
    _, kinds = found(changed(motion, tau=motion.tau[:, [2, 1, 0, 3, 4, 5, 6]]))
    assert kinds == {"shuffled columns"}
    only(changed(motion, tau=motion.tau * np.where(np.arange(7) == 6, -1, 1)), "wrong sign", "tau joint7")
    q = motion.q.copy()
    q[1000:1200, 3] = q[1000, 3]
    only(changed(motion, q=q), "stuck encoder", "q joint4")
    only(changed(motion, time=motion.time + np.where(np.arange(N) > 799, 0.37, 0)), "clock jump", "time")


def test_motion_of_another_machine(noisy):
    """Torques that no order and no sign explains."""
    rng = np.random.default_rng(5)
    other = np.cumsum(rng.standard_normal((N, 7)), axis=0)
    _, finding = only(changed(noisy, tau=other), "motion does not fit the model", "tau")
    assert finding.open


@pytest.fixture(scope="module")
def tumbling():
    """A free body that turns about changing axes."""
    model = single(lgsim.joints.Free())
    time = 0.01 * np.arange(600)
    R = Rotation.from_euler("zyx", np.stack([2 * time, np.sin(time), 0.5 * time], axis=1))
    q = np.column_stack([np.sin(time), time, 0 * time, np.roll(R.as_quat(), 1, axis=1)])
    flips = np.where(np.sum(q[1:, 3:] * q[:-1, 3:], axis=1) < 0, -1, 1)
    q[1:, 3:] *= np.cumprod(flips)[:, None]
    return Recording(model, time, q)


def test_quaternions_of_either_sign_and_other_norms(tumbling):
    recording = tumbling
    assert {f.kind for f in check_recording(recording).report} == {"missing velocity"}
    q = recording.q.copy()
    rng = np.random.default_rng(0)
    q[:, 3:] *= np.where(rng.random(600) < 0.5, -1, 1)[:, None]
    q[100:120, 3:] *= 1.05
    q[300, 3:] = 0
    mended, kinds = found(Recording(recording.model, recording.time, q))
    assert kinds == {"missing velocity", "quaternion sign", "quaternion norm", "missing values"}
    counts = [finding.count for finding in mended.report.of_kind("quaternion norm")]
    assert counts == [1, 20]
    sign = np.sign(np.sum(mended.q[0, 3:] * recording.q[0, 3:]))
    np.testing.assert_allclose(sign * mended.q[:, 3:], recording.q[:, 3:], atol=2e-4)  # one is bridged
    assert np.flatnonzero(~mended.valid("q")[:, 4]).tolist() == [300]
    assert mended.valid("q")[:, 0].all()


def test_times_that_do_not_pass():
    with pytest.raises(ValueError, match="two different times"):
        check_recording(Recording(arm(), np.zeros(5), np.zeros((5, 7))))
