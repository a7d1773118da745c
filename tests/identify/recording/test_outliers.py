"""Outliers are named and bridged before anything is mended; units come before whole turns; lists are short."""

import numpy as np
import pytest

import lgsim
from lgsim.identify import Recording
from lgsim.identify.recording.plausibility import check_recording
from lgsim.identify.recording.report import Finding, Report
from tests.identify.recording.motions import DT, SECONDS, arm, changed, clean, single

N = round(SECONDS / DT)


@pytest.fixture(scope="module")
def noisy():
    return clean(0.05)


def kinds(recording):
    return {finding.kind for finding in recording.report}


@pytest.mark.parametrize("size", [50.0, -3.0, 0.4, 2 * np.pi * 8])
def test_three_outliers_are_no_whole_turns(noisy, size):
    """Single ones, two in a row, one at the end; the others stay as they are, bit for bit."""
    q, at = noisy.q.copy(), np.array([300, 1200, 1201, N - 1])
    q[at, 3] += size
    recording = check_recording(changed(noisy, q=q))
    assert kinds(recording) == {"outlier"}, str(recording.report)
    (finding,) = recording.report
    assert (finding.where, finding.count) == ("q joint4", 4)
    assert f"{abs(size):.2g}"[:3] in finding.seen or abs(size) < 1
    np.testing.assert_array_equal(np.flatnonzero(~recording.valid("q")[:, 3]), at)
    rest = np.delete(np.arange(N), at)
    np.testing.assert_array_equal(recording.q[rest], noisy.q[rest])
    # straight lines across at most three steps of 2 ms, at accelerations of some 10 rad/s^2, and noise of 0.05 mrad
    assert np.max(np.abs(recording.q - noisy.q)[: N - 1]) < 1e-3


def test_outliers_of_torques_and_speeds(noisy):
    tau, v = noisy.tau.copy(), noisy.v.copy()
    tau[700, 1], v[900, 5] = 1e4, -300.0
    recording = check_recording(changed(noisy, tau=tau, v=v))
    assert [(f.kind, f.where, f.count) for f in recording.report] == [
        ("outlier", "v joint6", 1),
        ("outlier", "tau joint2", 1),
    ]
    assert not recording.valid("tau")[700, 1] and not recording.valid("v")[900, 5]


def test_impacts_steps_and_quantized_signals_are_no_outliers(noisy):
    """Peaks that come again and again, torques that switch, encoders of 12 bits, and wraps that flicker."""
    rng = np.random.default_rng(0)
    tau = noisy.tau.copy()
    tau[rng.permutation(N)[:60], 2] *= 4
    tau[:, 4] = np.sign(np.sin(8 * noisy.time))
    quantum = 2 * np.pi / 2**12
    recording = check_recording(changed(noisy, q=quantum * np.round(noisy.q / quantum), tau=tau, v=None))
    assert not recording.report.of_kind("outlier")
    time = 0.01 * np.arange(800)
    angle = 0.3 * np.sin(time) + np.pi + 2e-3 * rng.standard_normal(800)
    wrapped = (angle + np.pi) % (2 * np.pi) - np.pi
    recording = check_recording(Recording(single(lgsim.joints.Revolute()), time, wrapped[:, None]))
    assert kinds(recording) == {"wraparound", "missing velocity"}, str(recording.report)
    assert np.max(np.abs(recording.q[:, 0] - (angle - 2 * np.pi * round((angle[0] - recording.q[0, 0]) / 6.28)))) < 1e-9


@pytest.mark.parametrize("n", [801, 805, 808])
def test_the_last_reading_of_a_held_signal_is_no_outlier(n):
    """Read every eighth sample: a last reading that one sample shows differs from ten equal values."""
    time = 0.001 * (8 * (np.arange(n) // 8))
    recording = Recording(free_joint(), 0.001 * np.arange(n), np.sin(5 * time)[:, None])
    assert not check_recording(recording).report.of_kind("outlier")


def free_joint():
    """A joint without any limit."""
    return single(lgsim.joints.Revolute())


@pytest.mark.parametrize("measured", [False, True])
def test_degrees_without_a_unit_are_not_mended(measured):
    """An arm's joint from -170 to 170 degrees, fast enough that steps look like whole turns."""
    time = 0.02 * np.arange(600)
    angle, rate = np.deg2rad(170) * np.sin(2.5 * time), np.deg2rad(170) * 2.5 * np.cos(2.5 * time)
    v = rate[:, None] if measured else None
    recording = check_recording(Recording(free_joint(), time, np.rad2deg(angle)[:, None], v))
    assert "wraparound" not in kinds(recording) and "outlier" not in kinds(recording)
    np.testing.assert_array_equal(recording.q[:, 0], np.rad2deg(angle))
    found = recording.report.of_kind("implausible units")
    assert found and all("degrees" in finding.seen for finding in found), str(recording.report)
    assert any(finding.open for finding in found)


def test_degrees_that_jump_by_360_are_named():
    time = 0.01 * np.arange(900)
    degrees = (np.rad2deg(2 * time) + 180) % 360 - 180
    recording = check_recording(Recording(free_joint(), time, degrees[:, None]))
    (finding,) = recording.report.of_kind("implausible units")
    assert finding.open and "looks like degrees, with jumps by 360" in finding.seen
    np.testing.assert_array_equal(recording.q[:, 0], degrees)


def test_slow_degrees_of_a_joint_without_limits_are_a_hint():
    """Steps are small, no speed was measured: nobody can know, and a wheel that turns on is no arm."""
    time = 0.001 * np.arange(20_000)
    slow = Recording(free_joint(), time, 80 * np.sin(0.5 * time)[:, None])
    (finding,) = check_recording(slow).report.of_kind("implausible units")
    assert "back and forth over 25.5 revolutions; degrees?" in finding.seen and not finding.open
    wheel = Recording(free_joint(), time, (9 * time + np.sin(time))[:, None])
    assert not check_recording(wheel).report.of_kind("implausible units")


def test_a_shuffled_file_is_one_line(noisy):
    """All rows in any order: sorted, in one line."""
    places = np.random.default_rng(1).permutation(N)
    recording = check_recording(noisy[places])
    assert [finding.kind for finding in recording.report] == ["unordered time"], str(recording.report)
    np.testing.assert_array_equal(recording.time, noisy.time)
    np.testing.assert_array_equal(recording.tau, noisy.tau)


def test_lists_are_cut_after_five():
    findings = [Finding("gap", f"q joint{i}", i, "holes", "kept") for i in range(9)]
    findings += [Finding("delay", "tau", 0, "late", "not changed", True)]
    lines = Report(tuple(findings)).lines()
    assert len(lines) == 7 and lines[5] == "unresolved: delay, tau: late; not changed"
    assert lines[6] == "gap: 4 more, of q joint5, q joint6, q joint7, q joint8"
    assert str(Report(tuple(findings))).count("\n") == 8


def test_join_recordings(noisy):
    """Each keeps its samples and weights, none is bridged to the next, findings name their file."""
    from lgsim.identify import join_recordings

    first, second = check_recording(noisy[:500]), check_recording(changed(noisy[600:900], v=None))
    joined = join_recordings([first, second])
    assert [part.stop - part.start for part in joined.segments] == [500, 300]
    np.testing.assert_array_equal(joined.q, np.concatenate([first.q, second.q]))
    np.testing.assert_array_equal(joined.tau, np.concatenate([first.tau, second.tau]))
    np.testing.assert_array_equal(joined.weights["v"][500:], second.weights["v"])
    np.testing.assert_allclose(np.diff(joined.time)[500:], DT, rtol=1e-9)
    assert "missing velocity" in kinds(joined) and join_recordings([first]) is first
    with pytest.raises(ValueError, match="expected at least one"):
        join_recordings([])
    other = Recording(arm().replace(damping=arm().damping + 1), noisy.time, noisy.q)
    with pytest.raises(ValueError, match="expected recordings of one model"):
        join_recordings([first, other])
