"""Validation of a recording: faults of single samples are repaired, implausible columns are named.

Each check of ``CHECKS`` repairs one kind of fault. Then the motion is compared with the joint limits, its derivatives
with the measured velocities, and the model's inverse dynamics with the measured torques.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from jaxtyping import Float

from lgsim.identify.recording import channel_checks, clock_checks, outliers, sampling
from lgsim.identify.recording.coordinates import angles, dof_names
from lgsim.identify.recording.delays import estimate_delay
from lgsim.identify.recording.filters import Spline
from lgsim.identify.recording.recording import Recording
from lgsim.identify.recording.report import Finding
from lgsim.identify.recording.smoothing import MIN_SAMPLES, smooth, tune
from lgsim.identify.recording.torque_plausibility import (
    ALIKE,
    ANSWER,
    BETTER,
    FAR_DELAY,
    MAX_DELAY,
    UNLIKE,
    SmoothMotion,
    check_torques,
    correlations,
)
from lgsim.multibody.joint_slices import single_numbers
from lgsim.simulation.trajectory import v_names

CHECKS = (
    clock_checks.sort_rows,
    channel_checks.normalize_quaternions,
    outliers.exclude_outliers,
    channel_checks.unwrap_angles,
    clock_checks.remove_jumps,
    clock_checks.report_gaps,
    channel_checks.bridge_missing_values,
    channel_checks.exclude_stuck_encoders,
    channel_checks.exclude_saturated_torques,
    sampling.exclude_repeats,
    channel_checks.add_missing_velocities,
)
"""The checks that repair, in order; each returns the recording with its findings, and relies on the previous ones."""

_MAX_SAMPLES = 8192  # maximum number of compared samples of the longest segment
_SCALE = 1.2  # smallest ratio of velocities that noise does not explain
_OFF = 0.05  # deviation of a scale from 1, and offset relative to the usual rate, that are worth a remark
_SIGNIFICANT = 5.0  # standard deviations
_SLOW = 0.5  # s: the shortest step of a clock whose unit is in doubt
_JUMPS = 0.2  # relative to the range: the usual change from sample to sample of poses that are no continuous motion
_TIME_UNITS = {"ns": 5e5, "us": 500.0, "ms": _SLOW}  # the shortest step of such a clock, taken for seconds
_MOVES = 0.02  # relative to the speed of the fastest joint: slower joints are not informative
_MANY_TURNS = 2.0  # revolutions back and forth of a joint without limits: plausible for a wheel, not for an arm
_BACK_AND_FORTH = 1.5  # times its range
_FILLS = 0.01  # relative to the range of a joint: the minimum extent of a motion in the correct unit
_OUTSIDE = 0.5  # relative to the range of a joint, beyond its limits
_FACTORS = {
    "degrees where radians are expected": 180 / np.pi, "radians taken for degrees": np.pi / 180,
    "thousandths where units are expected": 1e3, "units taken for thousandths": 1e-3,
    "revolutions where radians are expected": 1 / (2 * np.pi),
}  # fmt: skip


def check_recording(recording: Recording) -> Recording:
    """Validate a recording, repair it where that is safe, and add a ``report`` of all findings.

    Repaired: rows without time, repeated or out of order; clock jumps; signs and norms of quaternions; outliers
    (interpolated, weight 0); angle wrapping; missing values (interpolated, weight 0); stuck encoders and saturated
    torques (weight 0); missing velocities (differences, weight 0). Only named, ``Finding.open``, since the data do not
    determine the remedy: implausible units, wrong signs, shuffled columns, delays. For these the motion is smoothed and
    its derivatives are compared with the measured velocities. For a fixed base, the model's inverse dynamics, with
    friction of any size, are compared with the measured torques; the model's parameters may be rough. Gaps and
    irregular clocks are named; ``smooth`` supports them.

    Args:
        recording: A recording, NaN for missing values.

    Returns:
        The recording without NaN; the findings are appended to its report.

    Raises:
        ValueError: there are fewer than two different times.
        ModuleNotFoundError: scipy is not installed.
    """
    findings = []
    # damaged values may be as large as floats permit, so that their squares overflow
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        for check in CHECKS:
            recording, found = check(recording)
            findings += found
        # each column is named once
        known = {finding.where for finding in findings if finding.kind == "implausible units"}
        open_ones = [finding for finding in _implausible_columns(recording) if finding.where not in known]
    report = recording.report + findings + open_ones
    return replace(recording, report=report).with_history("checked")


def _implausible_columns(recording: Recording) -> list[Finding]:
    """Findings about columns that do not fit the motion as a whole; all of them are unresolved."""
    found = _check_limits(recording)
    part = recording[recording.longest_segment][:_MAX_SAMPLES]
    if len(part) < 4 * MIN_SAMPLES:
        return found
    method = tune(part, Spline())
    curve = smooth(part, method).channels
    motion = SmoothMotion(part, curve["q"], curve["v"], curve["a"], method, dof_names(part.model))
    suspects = {finding.where.split()[-1] for finding in found}
    if recording.v is not None and recording.valid("v").any():
        found += _check_rates(motion, "v", suspects)
    else:
        found += _check_clock(part)
    found += _check_rates(motion, "a", suspects)
    if part.tau is None or part.model.topology.floats or any(finding.open for finding in found):
        return found
    return found + check_torques(motion)


def _check_limits(recording: Recording) -> list[Finding]:
    """Positions and velocities far beyond their limits, and the sign or unit for which they would be within."""
    model, found = recording.model, []
    speed = np.asarray(model.velocity_limit)
    limits = {"q": (np.asarray(model.lower), np.asarray(model.upper)), "v": (-speed, speed)}
    places, dofs = single_numbers(model.q_slices, model.v_slices)
    columns = {"q": dict(zip(dofs.tolist(), places.tolist(), strict=True)), "v": {i: i for i in range(model.nv)}}
    names, turning = dof_names(model), {at for _, _, at in angles(model)}
    for channel in [name for name in limits if name in recording.channels]:
        for i, at in columns[channel].items():
            lower, upper = (limit[i] for limit in limits[channel])
            x = recording.channels[channel][recording.valid(channel)[:, i], at]
            if channel == "q" and i in turning and np.isinf([lower, upper]).any() and len(x):
                found += _check_turns(f"q {names[i]}", x)
            if not np.isfinite([lower, upper]).all() or not len(x):
                continue
            low, high = np.percentile(x, [1, 99])
            room = _OUTSIDE * (upper - lower)
            if low > lower - room and high < upper + room:
                continue
            where = f"{channel} {names[i]}"
            seen = f"from {x.min():.4g} to {x.max():.4g}, limits {lower:.4g} to {upper:.4g}"
            if lower <= -high and -low <= upper:
                seen += "; within them with the other sign"
                found.append(Finding("wrong sign", where, len(x), seen, ANSWER, True))
                continue
            fits = [
                what
                for what, k in _FACTORS.items()
                if lower <= low / k and high / k <= upper and (high - low) / k > _FILLS * (upper - lower)
            ]
            seen += f"; looks like {fits[0]}" if fits else ""
            found.append(Finding("implausible units", where, len(x), seen, ANSWER, True))
    return found


def _check_turns(where: str, x: Float[np.ndarray, " n"]) -> list[Finding]:
    """Range check of an angle without limits that goes back and forth over many revolutions; only a hint."""
    turns = np.ptp(x) / (2 * np.pi)
    if turns < _MANY_TURNS or np.sum(np.abs(np.diff(x))) < _BACK_AND_FORTH * np.ptp(x):
        return []
    seen = f"from {x.min():.4g} to {x.max():.4g}, back and forth over {turns:.3g} revolutions; degrees?"
    return [Finding("implausible units", where, len(x), seen, "assumed rad; specify it by a map or [deg] in the name")]


def _check_rates(motion: SmoothMotion, channel: str, suspects: set[str]) -> list[Finding]:
    """Compare measured velocities or accelerations with the derivatives of the positions, except for suspect columns.

    Args:
        channel: "v" or "a".
    """
    raw, d = motion.recording, motion.v if channel == "v" else motion.a
    if channel not in raw.channels:
        return []
    time = raw.time - raw.time[0]
    measured = motion.smoother.curve(time, raw.channels[channel], raw.weights[channel])(time)
    known = raw.valid(channel).any(axis=0)
    size = np.std(d, axis=0)
    usual = np.std(measured, axis=0)
    moves = size > _MOVES * size.max()
    C = correlations(measured, d)
    found, scales = [], {}
    for i in np.flatnonzero(known):
        if motion.names[i] in suspects:
            continue
        where, own = f"{channel} {motion.names[i]}", C[i, i]
        others = np.where(moves & (np.arange(len(size)) != i), np.abs(C[i]), 0)
        j = int(np.argmax(others))
        if not moves[i] and not usual[i] > _MOVES * size.max():
            continue
        if others[j] > ALIKE and 1 - others[j] ** 2 < (1 - own**2) / BETTER:
            seen = f"correlates with the position of {motion.names[j]} ({C[i, j]:.2f}), not with its own ({own:.2f})"
            found.append(Finding("shuffled columns", where, len(raw), seen, ANSWER, True))
        elif own < -ALIKE:
            seen = f"the derivative of q has the opposite sign (correlation {own:.2f})"
            found.append(Finding("wrong sign", f"{where} or q {motion.names[i]}", len(raw), seen, ANSWER, True))
        elif delayed := _check_delay(motion, where, measured[:, i], d[:, i]):
            found += delayed
        elif abs(own) < UNLIKE:
            seen = f"correlates with no position ({own:.2f} with its own)"
            found.append(Finding("shuffled columns", where, len(raw), seen, ANSWER, True))
        if own > ALIKE:
            scales[int(i)] = float(measured[:, i] @ d[:, i] / (d[:, i] @ d[:, i]))
            if 1 / _SCALE < scales[int(i)] < _SCALE:
                found += _check_line(motion, channel, int(i), measured[:, i])
    return found + _check_scales(motion, channel, scales)


def _check_line(motion: SmoothMotion, channel: str, i: int, y: Float[np.ndarray, " n"]) -> list[Finding]:
    """A scale and an offset of the measured rate y of column i relative to the derivative of its own position."""
    d = (motion.v if channel == "v" else motion.a)[:, i]
    unit = v_names(motion.recording.model)[i].rpartition("[")[2].rstrip("]") + ("" if channel == "v" else "^2")
    (scale, offset), rest, *_ = np.linalg.lstsq(np.stack([d, np.ones_like(d)], axis=1), y)
    # noise of a smooth curve is independent from knot to knot
    count = max(len(d) * motion.recording.dt / motion.smoother.resolution, 1)
    least = max(_OFF, _SIGNIFICANT * math.sqrt(float(np.sum(rest)) / len(d) / count) / np.std(d))
    if abs(scale - 1) < least and abs(offset) < least * np.std(d):
        return []
    seen = f"{scale:.4g} times the derivative of the position, offset {offset:.3g} {unit}"
    done = "not changed: smooth derives it from the positions"
    return [Finding("inconsistent rate", f"{channel} {motion.names[i]}", len(d), seen, done)]


def _check_scales(motion: SmoothMotion, channel: str, scales: dict[int, float]) -> list[Finding]:
    """Rates that are a wrong multiple of the positions' derivatives; a common factor indicates the time unit."""
    odd = {i: scale for i, scale in scales.items() if not 1 / _SCALE < scale < _SCALE}
    if not odd:
        return []
    where = {f"{channel} {motion.names[i]}": scale for i, scale in odd.items()}
    least, most = min(odd.values()), max(odd.values())
    if len(odd) == len(scales) > 1 and most < _SCALE * least:
        where = {f"time, or all of {channel}": (least + most) / 2}
    found = []
    for title, scale in where.items():
        near = [what for what, k in _FACTORS.items() if 1 / _SCALE < scale / k < _SCALE]
        seen = f"{scale:.4g} times the derivative of the position" + (f"; looks like {near[0]}" if near else "")
        found.append(Finding("implausible units", title, len(motion.v), seen, ANSWER, True))
    return found


def _check_delay(
    motion: SmoothMotion, where: str, y: Float[np.ndarray, " n"], d: Float[np.ndarray, " n"]
) -> list[Finding]:
    """The delay of a measured rate y relative to the derivative d of its own position."""
    dt, now = motion.recording.dt, correlations(d[:, None], y[:, None])[0, 0]
    if not (np.ptp(d) > 0 and np.ptp(y) > 0):
        return []
    for longest in (MAX_DELAY, FAR_DELAY)[int(now <= ALIKE) :]:
        longest = max(min(longest, len(y) * dt / 8), dt)
        delay, alike = estimate_delay(d, y, dt, longest)
        outside = abs(delay) > longest - dt
        if not outside:
            break
    if abs(delay) <= dt or alike <= ALIKE or (1 - alike) >= (1 - now) / BETTER:
        return []
    seen = f"{'at least ' if outside else ''}{1e3 * delay:.4g} ms late relative to the derivative of the position"
    return [Finding("delay", where, 0, seen, "not changed: shift_signal compensates a delay", True)]


def _check_clock(recording: Recording) -> list[Finding]:
    """The unit of time of a motion without velocities: at one sample per second and less motion is not continuous."""
    q = recording.q[:, np.ptp(recording.q, axis=0) > 0]
    if (
        recording.dt < _SLOW
        or not q.size
        or np.max(np.median(np.abs(np.diff(q, axis=0)), axis=0) / np.ptp(q, axis=0)) > _JUMPS
    ):
        return []
    unit = next(unit for unit, least in _TIME_UNITS.items() if recording.dt >= least)
    seen = f"steps of {recording.dt:g} s in a continuous motion; looks like {unit} where seconds are expected"
    done = f'not changed: call the column "time [{unit}]", or give it this unit in the map'
    return [Finding("implausible units", "time", len(recording), seen, done, True)]
