"""Checks of the clock: missing or repeated times, jumps, and irregular sampling."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from lgsim.identify.recording.recording import MAX_GAP, Recording
from lgsim.identify.recording.report import Finding

CheckedRecording = tuple[Recording, list[Finding]]
"""The result of each check: the recording, repaired where that is safe, and the findings."""

_SHORT_STEP = 0.75  # relative to the usual step: shorter than any clock period
_MOST_MISSING = 2**53
_LONG_STEP = 1.5  # relative to the usual step: a sample is missing
_UNEVEN = 0.02  # rms deviation of steps from multiples of the usual step: the clock is irregular
_VERY_UNEVEN = 0.15  # the same: missing samples cannot be identified from the steps
_SHORT_STEPS_ALLOWED = 0.01  # fraction of the steps that may be short if rows are only out of order
_SHUFFLED = 0.1  # fraction of the steps that go back: more than resets of the clock explain
_WINDOW = 12  # samples on each side for the extrapolation of the motion
_CONTINUES = 0.1  # relative to the clock step: the motion continued as if the clock had not jumped


def sort_rows(recording: Recording) -> CheckedRecording:
    """Remove rows without a time and repeated rows, and sort rows by time if that gives a valid clock.

    Raises:
        ValueError: fewer than two rows are left.
    """
    findings = []
    finite = np.isfinite(recording.time)
    if not finite.all():
        lost = int(np.count_nonzero(~finite))
        findings.append(Finding("invalid time", "time", lost, "NaN or infinity", "rows left out"))
        recording = recording[finite]
    recording, repeated = _without_repeats(recording)
    if np.any(np.diff(recording.time) < 0):
        places = np.argsort(recording.time, kind="stable")
        before, steps = np.diff(recording.time), np.diff(recording.time[places])
        # sorting would interleave the two runs of a clock that was set back; shuffled rows go back all the time
        shuffled = np.mean(before < 0) > _SHUFFLED
        usual = np.median(steps[steps > 0] if shuffled else before[before > 0])
        if shuffled or np.mean(steps < _SHORT_STEP * usual) <= _SHORT_STEPS_ALLOWED:
            moved = int(np.count_nonzero(places != np.arange(len(places))))
            findings.append(Finding("unordered time", "time", moved, "rows out of order", "sorted by time"))
            recording, more = _without_repeats(recording[places])
            repeated += more
    if repeated:
        findings.append(Finding("duplicate", "time", repeated, "rows with a repeated time", "left out"))
    if len(recording) < 2:
        raise ValueError(f"time: expected at least two different times, got {len(recording)}")
    return recording, findings


def _without_repeats(recording: Recording) -> tuple[Recording, int]:
    new = np.concatenate([[True], np.diff(recording.time) != 0])[: len(recording)]
    return (recording, 0) if new.all() else (recording[new], int(np.count_nonzero(~new)))


def remove_jumps(recording: Recording) -> CheckedRecording:
    """Shift the times after clock jumps: steps back, and steps forward across which the motion is continuous."""
    findings, time = [], recording.time.copy()
    steps = np.diff(time)
    usual = float(np.median(steps[steps > 0]))
    for i in np.flatnonzero((steps <= 0) | (steps > MAX_GAP * usual)):
        continues = _motion_continues(recording.q, int(i), usual, float(steps[i]))
        if not continues and steps[i] > 0:
            continue  # samples are missing
        passed = usual if continues else (MAX_GAP + 1) * usual
        what = "the motion continues as in one step" if continues else "the motion is discontinuous"
        seen = f"{steps[i]:+.6g} s after t = {recording.time[i]:g} s (sample {i}); {what}"
        done = f"later times shifted, the step is {passed:.6g} s" + ("" if continues else " and starts a new segment")
        findings.append(Finding("clock jump", "time", 0, seen, done))
        time[i + 1 :] += passed - steps[i]
    return recording.with_channels({}, time=time), findings


def _motion_continues(q: Float[np.ndarray, "n nq"], i: int, usual: float, step: float) -> bool:
    """True if the motion between samples i and i + 1 spans one usual step, by parabolas through both sides."""
    before, after = np.arange(max(i + 1 - _WINDOW, 0), i + 1), np.arange(i + 1, min(i + 1 + _WINDOW, len(q)))
    if min(len(before), len(after)) < 4:
        return False
    sides = []
    for part, at in ((before, i), (after, i + 1)):
        s = np.arange(len(part)) + (part[0] - at)  # in usual steps
        known = np.all(np.isfinite(q[part]), axis=1)
        if np.count_nonzero(known) < 4:
            return False
        design = np.vander(s[known], 3, increasing=True)
        sides.append(np.linalg.lstsq(design, q[part][known], rcond=None)[0])
    (x0, v0, a0), (x1, v1, a1) = sides
    middle = (v0 + v1) / 2
    speed = float(np.linalg.norm(middle))
    # after one usual step both sides agree halfway
    mismatch = float(np.linalg.norm((x1 - v1 / 2 + a1 / 4) - (x0 + v0 / 2 + a0 / 4)))
    claimed = speed * abs(step / usual - 1)
    return mismatch <= _CONTINUES * claimed and claimed > 0


def report_gaps(recording: Recording) -> CheckedRecording:
    """Name missing samples and irregular steps; the times are not changed."""
    findings = []
    steps = np.diff(recording.time) / recording.dt
    whole = np.maximum(np.round(steps), 1)
    short = steps < MAX_GAP
    uneven = float(np.sqrt(np.mean((steps - whole)[short] ** 2)))
    long = steps > (_LONG_STEP if uneven <= _VERY_UNEVEN else MAX_GAP / 2)
    if uneven > _UNEVEN:
        seen = f"steps vary by {100 * uneven:.2g} % (rms) from {recording.dt:g} s"
        findings.append(Finding("irregular clock", "time", 0, seen, "times kept; smoothing uses them"))
    if long.any():
        # damaged times may be arbitrarily far apart
        missing = int(min(np.sum(whole[long] - 1), _MOST_MISSING))
        longest = int(np.argmax(steps))
        seen = (
            f"{np.count_nonzero(long)} gaps, {100 * missing / (missing + len(recording)):.2g} % of the samples are"
            f" missing, the longest gap {steps[longest] * recording.dt:g} s after t = {recording.time[longest]:g} s"
        )
        done = f"{len(recording.segments)} segments; gaps above {MAX_GAP:g} steps are not interpolated"
        findings.append(Finding("gap", "time", missing, seen, done))
    return recording, findings
