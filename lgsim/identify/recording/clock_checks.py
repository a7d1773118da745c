"""Clocks that stop, jump, repeat themselves or run unevenly."""

from __future__ import annotations

import numpy as np

from lgsim.identify.recording.recording import LONGEST_STEP, Recording
from lgsim.identify.recording.report import Finding

Found = tuple[Recording, list[Finding]]

_SHORT = 0.75  # of the usual step: no clock ticks that fast
_LONG = 1.5  # of the usual step: a sample is missing
_UNEVEN = 0.02  # rms of what steps differ from whole usual steps: uneven
_WILD = 0.15  # the same: steps say no more where samples are missing
_CROWDED = 0.01  # part of the steps that may be short where rows are only out of order
_WINDOW = 12  # samples on each side that say how the motion goes on
_CONTINUES = 0.1  # of the way that the clock claims: the motion went on as if it had not jumped


def order(recording: Recording) -> Found:
    """Rows without a time and repeated ones out, rows in order of time where that makes a clock of them."""
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
        # two runs of a clock that went back would fall between each other
        if np.mean(steps < _SHORT * np.median(before[before > 0])) <= _CROWDED:
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


def jumps(recording: Recording) -> Found:
    """Steps back, and steps forward during which the motion went on as in one usual step: the clock was set."""
    findings, time = [], recording.time.copy()
    steps = np.diff(time)
    usual = float(np.median(steps[steps > 0]))
    for i in np.flatnonzero((steps <= 0) | (steps > LONGEST_STEP * usual)):
        goes_on = _goes_on(recording.q, time, int(i), usual, float(steps[i]))
        if not goes_on and steps[i] > 0:
            continue  # samples are missing
        passed = usual if goes_on else (LONGEST_STEP + 1) * usual
        what = "the motion goes on as in one step" if goes_on else "the motion does not go on"
        seen = f"{steps[i]:+.6g} s after t = {recording.time[i]:g} s (sample {i}); {what}"
        done = f"later times shifted, the step is {passed:.6g} s" + ("" if goes_on else " and starts a new piece")
        findings.append(Finding("clock jump", "time", 0, seen, done))
        time[i + 1 :] += passed - steps[i]
    return recording._with({}, time=time), findings


def _goes_on(q: np.ndarray, time: np.ndarray, i: int, usual: float, step: float) -> bool:
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
    apart = float(np.linalg.norm((x1 - v1 / 2 + a1 / 4) - (x0 + v0 / 2 + a0 / 4)))
    claimed = speed * abs(step / usual - 1)
    return apart <= _CONTINUES * claimed and claimed > 0


def gaps(recording: Recording) -> Found:
    """Missing samples and uneven steps, which are named; the times stay."""
    findings = []
    steps = np.diff(recording.time) / recording.dt
    whole = np.maximum(np.round(steps), 1)
    short = steps < LONGEST_STEP
    uneven = float(np.sqrt(np.mean((steps - whole)[short] ** 2)))
    long = steps > (_LONG if uneven <= _WILD else LONGEST_STEP / 2)
    if uneven > _UNEVEN:
        seen = f"steps differ by {100 * uneven:.2g} % (rms) from {recording.dt:g} s"
        findings.append(Finding("irregular clock", "time", 0, seen, "times kept; smoothing goes by them"))
    if long.any():
        missing = int(np.sum(whole[long] - 1))
        longest = int(np.argmax(steps))
        seen = (
            f"{np.count_nonzero(long)} gaps, {100 * missing / (missing + len(recording)):.2g} % of the samples are"
            f" missing, the longest gap {steps[longest] * recording.dt:g} s after t = {recording.time[longest]:g} s"
        )
        done = f"{len(recording.pieces)} pieces; gaps above {LONGEST_STEP:g} steps are not bridged"
        findings.append(Finding("gap", "time", missing, seen, done))
    return recording, findings
