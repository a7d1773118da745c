"""Checks of single channels: quaternions, angle wrapping, missing values, stuck encoders, saturated torques."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float

from lgsim.identify.recording.clock_checks import CheckedRecording
from lgsim.identify.recording.coordinates import angles, channel_parts, dof_mask, encoders, quaternions
from lgsim.identify.recording.recording import Recording
from lgsim.identify.recording.report import Finding
from lgsim.identify.recording.smoothing import align_signs, differences
from lgsim.multibody.model import Model
from lgsim.support.messages import counted

_NORM = 1e-3  # more than the effect of rounding to three digits on a norm
_TURN_RANGE = 1.05  # revolutions: the range of a single-turn encoder, with its noise
_NO_NORM = 0.5  # below this norm a quaternion does not define a rotation
_LONG_RUN = 5  # times the usual length, and at least as many samples
_QUANTA = 3.0  # resolution steps of a sensor: larger differences are not rounding
_STEP_AFTER = 3.0  # usual steps: the jump of a stuck encoder when it recovers
_STEP_BEFORE = 0.3  # usual steps: a joint that slows down gradually
_MOVED = 0.05  # rad or m by the velocity, while the position is constant
_SAME_WAY = 2.0  # largest ratio of the distances by position and by velocity that count as equal
_FLAT = 1e-9  # relative to the level: flat
_AT_LIMIT = 0.999  # relative to the effort limit
_ABOVE = 1e-3  # relative to the range: minimum overshoot of the torque beyond a flat top


def normalize_quaternions(recording: Recording) -> CheckedRecording:
    """Normalize quaternions and make their signs continuous; those with a norm near zero count as missing."""
    findings, q = [], recording.q.copy()
    for name, at, _ in quaternions(recording.model.topology):
        norm = np.linalg.norm(q[:, at], axis=1)
        bad = norm < _NO_NORM
        off = (np.abs(norm - 1) > _NORM) & ~bad
        if bad.any():
            count = int(bad.sum())
            findings.append(Finding("quaternion norm", f"q {name}", count, "norms near 0", "taken as missing"))
        if off.any():
            seen = f"norms from {norm[off].min():.4g} to {norm[off].max():.4g}"
            findings.append(Finding("quaternion norm", f"q {name}", int(off.sum()), seen, "normalized"))
        q[np.ix_(bad, at)] = np.nan
        q[:, at] /= np.where(bad, 1, norm)[:, None]
        known = np.all(np.isfinite(q[:, at]), axis=1)
        smooth = align_signs(q[np.ix_(known, at)])
        flips = int(np.count_nonzero(np.sum(q[np.ix_(known, at)] * smooth, axis=1) < 0))
        if flips:
            findings.append(Finding("quaternion sign", f"q {name}", flips, "the sign jumps", "made continuous"))
        q[np.ix_(known, at)] = smooth
    weights = recording.weights["q"] * dof_mask(recording.model.topology, np.isfinite(q))
    return recording.with_channels({"q": q}, weights={**recording.weights, "q": weights}), findings


def unwrap_angles(recording: Recording) -> CheckedRecording:
    """Unwrap angles that jump by full revolutions, if they stay within one."""
    findings, q = [], recording.q.copy()
    for name, at_q, _ in angles(recording.model):
        known = np.flatnonzero(np.isfinite(q[:, at_q]))
        steps = np.diff(q[known, at_q])
        turns = np.round(steps / (2 * np.pi))
        turns[np.abs(steps - 2 * np.pi * turns) > np.pi / 2] = 0
        if turns.any() and np.ptp(q[known, at_q]) > _TURN_RANGE * 2 * np.pi:
            # not the range of a single-turn encoder, so that the jumps cannot be identified as wraps
            findings.append(_more_than_a_turn(name, q[known, at_q], int(np.count_nonzero(turns))))
        elif turns.any():
            seen = f"{np.count_nonzero(turns)} jumps by full revolutions"
            findings.append(Finding("wraparound", f"q {name}", 0, seen, "made continuous"))
            q[known[1:], at_q] -= 2 * np.pi * np.cumsum(turns)
    return recording.with_channels({"q": q}), findings


def _more_than_a_turn(name: str, x: Float[np.ndarray, " n"], jumps: int) -> Finding:
    """Suspicious angles: jumps of a single-turn encoder, but a range of more than one revolution."""
    steps = np.abs(np.diff(x))
    degrees = np.ptp(x) <= _TURN_RANGE * 360 and bool(np.any(np.abs(steps - 360) < 90))
    seen = f"from {x.min():.4g} to {x.max():.4g} rad, with {counted(jumps, 'jump')} by full revolutions"
    seen += "; looks like degrees, with jumps by 360" if degrees else "; looks like degrees" if jumps > 1 else ""
    return Finding("implausible units", f"q {name}", len(x), seen, "not changed: fix the map", True)


def bridge_missing_values(recording: Recording) -> CheckedRecording:
    """Interpolate missing values linearly, with weight 0."""
    findings, arrays = [], {}
    tree = recording.model.topology
    for channel, array in recording.channels.items():
        filled = array.copy()
        for column in filled.T:
            known = np.isfinite(column)
            if known.any() and not known.all():
                column[~known] = np.interp(recording.time[~known], recording.time[known], column[known])
            elif not known.any():
                column[:] = 0
        arrays[channel] = filled
        for name, columns in channel_parts(recording.model, channel):
            lost = np.any(~np.isfinite(array[:, columns]), axis=1)
            if lost.all() and not _is_unactuated(recording.model, channel, name):
                findings.append(Finding("missing channel", f"{channel} {name}", len(lost), "nothing", "weight 0"))
            elif lost.any() and not lost.all():
                seen = f"{100 * lost.mean():.2g} % are missing"
                where = f"{channel} {name}".strip()
                findings.append(Finding("missing values", where, int(lost.sum()), seen, "interpolated, weight 0"))
    for _, at, _ in quaternions(tree):
        norm = np.linalg.norm(arrays["q"][:, at], axis=1, keepdims=True)
        arrays["q"][:, at] /= np.where(norm > 0, norm, 1)
    return recording.with_channels(arrays), findings


def _is_unactuated(model: Model, channel: str, joint: str) -> bool:
    """True if the quantity of a joint is not expected: the force on a floating base."""
    return model.topology.floats and joint == model.joint_names[0] and channel in ("tau", "current")


def exclude_stuck_encoders(recording: Recording) -> CheckedRecording:
    """Give constant positions weight 0 while the joint moves."""
    findings, weights = [], {name: x.copy() for name, x in recording.weights.items()}
    for name, at_q, at_v in encoders(recording.model):
        x = recording.q[:, at_q]
        v = None if recording.v is None or not recording.valid("v")[:, at_v].all() else recording.v[:, at_v]
        stuck = _stuck(recording.time, x, v)
        if stuck.any():
            first = recording.time[np.argmax(stuck)]
            seen = f"constant from t = {first:g} s on, while the joint moves"
            findings.append(Finding("stuck encoder", f"q {name}", int(stuck.sum()), seen, "weight 0"))
            weights["q"][np.ix_(stuck, at_v)] = 0
            if recording.v is not None and not np.ptp(recording.v[np.ix_(stuck, at_v)]):
                weights["v"][np.ix_(stuck, at_v)] = 0
    return recording.with_channels({}, weights=weights), findings


def _stuck(
    time: Float[np.ndarray, " n"], x: Float[np.ndarray, "n k"], v: Float[np.ndarray, "n m"] | None
) -> Bool[np.ndarray, " n"]:
    """A mask of the samples of an encoder that repeat the previous value while the joint moves."""
    steps = np.max(np.abs(np.diff(x, axis=0)), axis=1)
    out, moves = np.zeros(len(x), bool), steps[steps > 0]
    way = None if v is None else np.concatenate([[np.zeros(v.shape[1])], np.cumsum(_trapezoids(time, v), axis=0)])
    if not len(moves):
        return out | (way is not None and np.max(np.ptp(way, axis=0)) > _MOVED)
    usual, smallest = np.percentile(moves, 95), moves.min()
    if way is not None and not 1 / _SAME_WAY < np.max(np.ptp(way, axis=0)) / np.max(np.ptp(x, axis=0)) < _SAME_WAY:
        way = None  # units or signs are in doubt
    lengths = np.diff(np.flatnonzero(np.concatenate([[True], steps > 0, [True]])))
    for first, last in _runs(steps == 0, _LONG_RUN * max(np.median(lengths), 1)):  # steps first ... last - 1 are 0
        before = steps[first - 1] if first > 0 else 0.0
        after = steps[last] if last < len(steps) else 0.0
        moved = 0.0 if way is None else float(np.max(np.ptp(way[first : last + 1], axis=0)))
        least = _QUANTA * smallest
        caught_up = after > max(_STEP_AFTER * usual, least)
        stopped = last == len(steps) and before > max(_STEP_BEFORE * usual, least)
        if caught_up or stopped or moved > max(_STEP_AFTER * usual, least):
            out[first + 1 : last + 1] = True
    return out


def exclude_saturated_torques(recording: Recording) -> CheckedRecording:
    """Give torques weight 0 where their curve has a flat top."""
    findings = []
    if recording.tau is None:
        return recording, findings
    weights = recording.weights["tau"].copy()
    limits = np.asarray(recording.model.effort_limit)
    for name, columns in channel_parts(recording.model, "tau"):
        for i in columns:
            flat = _flat_tops(recording.tau[:, i], float(limits[i])) & recording.valid("tau")[:, i]
            if flat.any():
                level = np.max(np.abs(recording.tau[flat, i]))
                seen = f"flat at {level:.6g}, first at t = {recording.time[np.argmax(flat)]:g} s"
                findings.append(Finding("saturated torque", f"tau {name}", int(flat.sum()), seen, "weight 0"))
                weights[flat, i] = 0
    return recording.with_channels({}, weights={**recording.weights, "tau": weights}), findings


def _flat_tops(x: Float[np.ndarray, " n"], limit: float) -> Bool[np.ndarray, " n"]:
    """A mask of the samples on flat tops at the largest value, or at the limit."""
    out, steps = np.zeros(len(x), bool), np.abs(np.diff(x))
    if not np.any(steps > 0):
        return out
    smallest = steps[steps > 0].min()
    usual = np.median(np.diff(np.flatnonzero(np.concatenate([[True], steps > 0, [True]]))))
    for side in (x, -x):
        level = side.max()
        if level <= 0:
            continue
        at_limit = _AT_LIMIT * limit <= level <= limit / _AT_LIMIT
        top = side >= (_AT_LIMIT * limit if at_limit else level * (1 - _FLAT))
        for first, last in _runs(top, _LONG_RUN * max(usual, 1)):
            start = max(first - max((last - first) // 2, 3), 0)
            end = min(last - 1 + max((last - first) // 2, 3), len(side) - 1)
            slopes = (
                (side[first] - side[start]) / max(first - start, 1),
                (side[last - 1] - side[end]) / max(end - last + 1, 1),
            )
            above = max(slopes) * (last - first) / 4  # peak of a parabola with these slopes at both ends
            if above > max(_QUANTA * smallest, _ABOVE * np.ptp(x)) or at_limit:
                out[first:last] = True
    return out


def add_missing_velocities(recording: Recording) -> CheckedRecording:
    """Add missing velocities: central differences on the group, with weight 0."""
    tree = recording.model.topology
    v = np.zeros((len(recording), tree.nv)) if recording.v is None else recording.v.copy()
    lost = np.ones(tree.nv, bool) if recording.v is None else np.all(recording.weights["v"] == 0, axis=0)
    if not lost.any():
        return recording, []
    for part in recording.segments:
        time, q = recording.time[part], recording.q[part]
        if len(time) > 1:
            before, after = np.maximum(np.arange(len(time)) - 1, 0), np.minimum(np.arange(len(time)) + 1, len(time) - 1)
            found = differences(tree, q[before], q[after]) / (time[after] - time[before])[:, None]
            v[part, lost] = found[:, lost]
    weights = np.zeros_like(v) if recording.v is None else recording.weights["v"]
    names = [name for name, columns in channel_parts(recording.model, "v") if lost[columns].any()]
    seen = "not measured" if recording.v is not None else "no joint was measured"
    where = "v" if recording.v is None else f"v {', '.join(names)}"
    done = "central differences of the positions, weight 0; smooth gives better estimates"
    finding = Finding("missing velocity", where, len(recording), seen, done)
    return recording.with_channels({"v": v}, weights={**recording.weights, "v": weights}), [finding]


def _trapezoids(time: Float[np.ndarray, " n"], v: Float[np.ndarray, "n k"]) -> Float[np.ndarray, "m k"]:
    """The integral of v between consecutive samples."""
    return (v[1:] + v[:-1]) / 2 * np.diff(time)[:, None]


def _runs(true: Bool[np.ndarray, " n"], least: float) -> list[tuple[int, int]]:
    """(first, last + 1) of each run of at least so many true entries."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], true.astype(int), [0]]))).reshape(-1, 2)
    first, last = edges[edges[:, 1] - edges[:, 0] >= least].T
    return list(zip(first.tolist(), last.tolist(), strict=True))
