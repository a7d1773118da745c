"""Checks of the clock: times that are missing, repeat themselves, jump, or run unevenly."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from lgsim.identify.recording.recording import MAX_GAP, Recording
from lgsim.identify.recording.report import Finding

CheckedRecording = tuple[Recording, list[Finding]]
"""What each check returns: the recording, mended where that is safe, and the findings."""

_SHORT_STEP = 0.75  # of the usual step: no clock ticks that fast
_MOST_MISSING = 2**53
_LONG_STEP = 1.5  # of the usual step: a sample is missing
_UNEVEN = 0.02  # rms deviation of steps from whole usual steps: the clock is uneven
_VERY_UNEVEN = 0.15  # the same: steps do not tell any more where samples are missing
_SHORT_STEPS_ALLOWED = 0.01  # fraction of the steps that may be short where rows are only out of order
_SHUFFLED = 0.1  # fraction of the steps that go back: no clock is set so often
_WINDOW = 12  # samples on each side by which the motion is continued
_CONTINUES = 0.1  # of the way that the clock claims: the motion went on as if the clock had not jumped


def sort_rows(recording: Recording) -> CheckedRecording:
    """Remove rows without a time and repeated ones, and sort rows by time where that makes a clock of them.

    Raises:
        ValueError: less than two rows are left.
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
        # two runs of a clock that went back would fall between each other; rows that were shuffled go back all the time
        shuffled = np.mean(before < 0) > _SHUFFLED
        usual = np.median(steps[steps > 0] if shuffled else before[before > 0])
        if shuffled or np.mean(steps < _SHORT_STEP * usual) <= _SHORT_STEPS_ALLOWED:
            moved = int(np.count_nonzero(places != np.arange(len(places))))
            findings.append(Finding("unordered time", "time", moved, "rows out of order", "put in order"))
            recording, more = _without_repeats(recording[places])
            repeated += more
    if repeated:
        findings.append(Finding("duplicate", "time", repeated, "rows with the time of the one before", "left out"))
    if len(recording) < 2:
        raise ValueError(f"time: expected two different times at least, got {len(recording)}")
    return recording, findings


def _without_repeats(recording: Recording) -> tuple[Recording, int]:
    new = np.concatenate([[True], np.diff(recording.time) != 0])[: len(recording)]
    return (recording, 0) if new.all() else (recording[new], int(np.count_nonzero(~new)))


def remove_jumps(recording: Recording) -> CheckedRecording:
    """Shift the times after a clock was set: after steps back, and steps forward in which the motion went on."""
    findings, time = [], recording.time.copy()
    steps = np.diff(time)
    usual = float(np.median(steps[steps > 0]))
    for i in np.flatnonzero((steps <= 0) | (steps > MAX_GAP * usual)):
        continues = _motion_continues(recording.q, int(i), usual, float(steps[i]))
        if not continues and steps[i] > 0:
            continue  # samples are missing
        passed = usual if continues else (MAX_GAP + 1) * usual
        what = "the motion goes on as in one step" if continues else "the motion does not go on"
        seen = f"{steps[i]:+.6g} s after t = {recording.time[i]:g} s (sample {i}); {what}"
        done = f"later times shifted, the step is {passed:.6g} s" + ("" if continues else " and starts a new piece")
        findings.append(Finding("clock jump", "time", 0, seen, done))
        time[i + 1 :] += passed - steps[i]
    return recording.with_channels({}, time=time), findings


def _motion_continues(q: Float[np.ndarray, "n nq"], i: int, usual: float, step: float) -> bool:
    """Whether the motion between samples i and i + 1 is that of one usual step, by parabolas through both sides."""
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
    # halfway, both sides agree where one usual step passed
    mismatch = float(np.linalg.norm((x1 - v1 / 2 + a1 / 4) - (x0 + v0 / 2 + a0 / 4)))
    claimed = speed * abs(step / usual - 1)
    return mismatch <= _CONTINUES * claimed and claimed > 0


def report_gaps(recording: Recording) -> CheckedRecording:
    """Name missing samples and uneven steps; the times stay as they are."""
    findings = []
    steps = np.diff(recording.time) / recording.dt
    whole = np.maximum(np.round(steps), 1)
    short = steps < MAX_GAP
    uneven = float(np.sqrt(np.mean((steps - whole)[short] ** 2)))
    long = steps > (_LONG_STEP if uneven <= _VERY_UNEVEN else MAX_GAP / 2)
    if uneven > _UNEVEN:
        seen = f"steps differ by {100 * uneven:.2g} % (rms) from {recording.dt:g} s"
        findings.append(Finding("irregular clock", "time", 0, seen, "times kept; smoothing goes by them"))
    if long.any():
        # damaged times may be any distance apart
        missing = int(min(np.sum(whole[long] - 1), _MOST_MISSING))
        longest = int(np.argmax(steps))
        seen = (
            f"{np.count_nonzero(long)} gaps, {100 * missing / (missing + len(recording)):.2g} % of the samples are"
            f" missing, the longest gap {steps[longest] * recording.dt:g} s after t = {recording.time[longest]:g} s"
        )
        done = f"{len(recording.segments)} pieces; gaps above {MAX_GAP:g} steps are not bridged"
        findings.append(Finding("gap", "time", missing, seen, done))
    return recording, findings
