"""Faults of single channels: quaternions, whole turns, missing numbers, stuck encoders, saturated torques."""

from __future__ import annotations

from typing import Any

import numpy as np

from lgsim.identify.recording.clock_checks import Found
from lgsim.identify.recording.recording import Recording, by_velocity, quaternions
from lgsim.identify.recording.report import Finding
from lgsim.identify.recording.smoothing import continuous, differences
from lgsim.multibody.configuration import kinds
from lgsim.multibody.model import Model

_NORM = 1e-3  # beyond what rounding to three digits does to a norm
_NO_NORM = 0.5  # below: no rotation can be read from it
_LONG_RUN = 5  # times as long as is usual, and at least as many samples
_QUANTA = 3.0  # smallest steps of a sensor: what is larger is no rounding
_STEP_AFTER = 3.0  # usual steps: what a stuck encoder makes up for
_STEP_BEFORE = 0.3  # usual steps: what does not stop at once
_MOVED = 0.05  # rad or m by the velocity, while the position never changes
_LIKE = 2.0  # times: ways by position and by velocity that differ by less are the same
_FLAT = 1e-9  # of the level: flat
_AT_LIMIT = 0.999  # of the effort limit
_ABOVE = 1e-3  # of the range: by so much would the torque have passed a flat top


def unit_quaternions(recording: Recording) -> Found:
    """Quaternions of norm one whose sign does not jump."""
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
            findings.append(Finding("quaternion norm", f"q {name}", int(off.sum()), seen, "normalised"))
        q[np.ix_(bad, at)] = np.nan
        q[:, at] /= np.where(bad, 1, norm)[:, None]
        known = np.all(np.isfinite(q[:, at]), axis=1)
        smooth = continuous(q[np.ix_(known, at)])
        flips = int(np.count_nonzero(np.sum(q[np.ix_(known, at)] * smooth, axis=1) < 0))
        if flips:
            findings.append(Finding("quaternion sign", f"q {name}", flips, "the sign jumps", "made continuous"))
        q[np.ix_(known, at)] = smooth
    weights = recording.weights["q"] * by_velocity(recording.model.topology, np.isfinite(q))
    return recording._with({"q": q}, weights={**recording.weights, "q": weights}), findings


def whole_turns(recording: Recording) -> Found:
    """Angles that jump by a whole turn, made continuous."""
    findings, q = [], recording.q.copy()
    for title, at_q, _ in _angles(recording.model):
        known = np.flatnonzero(np.isfinite(q[:, at_q]))
        steps = np.diff(q[known, at_q])
        turns = np.round(steps / (2 * np.pi))
        turns[np.abs(steps - 2 * np.pi * turns) > np.pi / 2] = 0
        if turns.any():
            seen = f"{np.count_nonzero(turns)} jumps by whole turns"
            findings.append(Finding("wraparound", f"q {title}", 0, seen, "made continuous"))
            q[known[1:], at_q] -= 2 * np.pi * np.cumsum(turns)
    return recording._with({"q": q}), findings


def missing_values(recording: Recording) -> Found:
    """Numbers that are missing, bridged by straight lines with the weight 0."""
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
        for title, places in _parts(recording.model, channel):
            lost = np.any(~np.isfinite(array[:, places]), axis=1)
            if lost.all() and not _unactuated(recording.model, channel, title):
                findings.append(Finding("missing channel", f"{channel} {title}", len(lost), "nothing", "weight 0"))
            elif lost.any() and not lost.all():
                seen = f"{100 * lost.mean():.2g} % are missing"
                where = f"{channel} {title}".strip()
                findings.append(Finding("missing values", where, int(lost.sum()), seen, "bridged, weight 0"))
    for _, at, _ in quaternions(tree):
        norm = np.linalg.norm(arrays["q"][:, at], axis=1, keepdims=True)
        arrays["q"][:, at] /= np.where(norm > 0, norm, 1)
    return recording._with(arrays), findings


def stuck_encoders(recording: Recording) -> Found:
    """Positions that stand still while the joint moves: weight 0."""
    findings, weights = [], {name: x.copy() for name, x in recording.weights.items()}
    for title, at_q, at_v in _coordinates(recording.model):
        x = recording.q[:, at_q]
        v = None if recording.v is None or not recording.valid("v")[:, at_v].all() else recording.v[:, at_v]
        stuck = _stuck(recording.time, x, v)
        if stuck.any():
            first = recording.time[np.argmax(stuck)]
            seen = f"the same number from t = {first:g} s on, while the joint moves"
            findings.append(Finding("stuck encoder", f"q {title}", int(stuck.sum()), seen, "weight 0"))
            weights["q"][np.ix_(stuck, at_v)] = 0
            if recording.v is not None and not np.ptp(recording.v[np.ix_(stuck, at_v)]):
                weights["v"][np.ix_(stuck, at_v)] = 0
    return recording._with({}, weights=weights), findings


def _stuck(time: np.ndarray, x: np.ndarray, v: np.ndarray | None) -> np.ndarray:
    """Which samples only repeat the one before while the joint moves."""
    steps = np.max(np.abs(np.diff(x, axis=0)), axis=1)
    out, moves = np.zeros(len(x), bool), steps[steps > 0]
    way = None if v is None else np.concatenate([[np.zeros(v.shape[1])], np.cumsum(_areas(time, v), axis=0)])
    if not len(moves):
        return out | (way is not None and np.max(np.ptp(way, axis=0)) > _MOVED)
    usual, smallest = np.percentile(moves, 95), moves.min()
    if way is not None and not 1 / _LIKE < np.max(np.ptp(way, axis=0)) / np.max(np.ptp(x, axis=0)) < _LIKE:
        way = None  # units or signs are in doubt
    runs = _runs(steps == 0)
    lengths = np.diff(np.flatnonzero(np.concatenate([[True], steps > 0, [True]])))
    for first, last in runs:  # the steps first ... last - 1 are 0
        if last - first < _LONG_RUN * max(np.median(lengths), 1):
            continue
        before = steps[first - 1] if first > 0 else 0.0
        after = steps[last] if last < len(steps) else 0.0
        by_velocity_ = 0.0 if way is None else float(np.max(np.ptp(way[first : last + 1], axis=0)))
        least = _QUANTA * smallest
        caught_up = after > max(_STEP_AFTER * usual, least)
        stopped = last == len(steps) and before > max(_STEP_BEFORE * usual, least)
        if caught_up or stopped or by_velocity_ > max(_STEP_AFTER * usual, least):
            out[first + 1 : last + 1] = True
    return out


def saturated_torques(recording: Recording) -> Found:
    """Torques with flat tops: weight 0 there."""
    findings = []
    if recording.tau is None:
        return recording, findings
    weights = recording.weights["tau"].copy()
    limits = np.asarray(recording.model.effort_limit)
    for title, places in _parts(recording.model, "tau"):
        for i in places:
            flat = _flat(recording.tau[:, i], float(limits[i])) & recording.valid("tau")[:, i]
            if flat.any():
                level = np.max(np.abs(recording.tau[flat, i]))
                seen = f"flat at {level:.6g}, first at t = {recording.time[np.argmax(flat)]:g} s"
                findings.append(Finding("saturated torque", f"tau {title}", int(flat.sum()), seen, "weight 0"))
                weights[flat, i] = 0
    return recording._with({}, weights={**recording.weights, "tau": weights}), findings


def _flat(x: np.ndarray, limit: float) -> np.ndarray:
    """Which samples lie on flat tops at the largest value, or at the limit."""
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
        for first, last in _runs(top):
            if last - first < _LONG_RUN * max(usual, 1):
                continue
            start = max(first - max((last - first) // 2, 3), 0)
            end = min(last - 1 + max((last - first) // 2, 3), len(side) - 1)
            slopes = (
                (side[first] - side[start]) / max(first - start, 1),
                (side[last - 1] - side[end]) / max(end - last + 1, 1),
            )
            above = max(slopes) * (last - first) / 4  # of a parabola with these slopes at both ends
            if above > max(_QUANTA * smallest, _ABOVE * np.ptp(x)) or at_limit:
                out[first:last] = True
    return out


def missing_velocities(recording: Recording) -> Found:
    """Velocities that nobody measured: central differences on the group, which count for nothing."""
    tree = recording.model.topology
    v = np.zeros((len(recording), tree.nv)) if recording.v is None else recording.v.copy()
    lost = np.ones(tree.nv, bool) if recording.v is None else np.all(recording.weights["v"] == 0, axis=0)
    if not lost.any():
        return recording, []
    for piece in recording.pieces:
        time, q = recording.time[piece], recording.q[piece]
        if len(time) > 1:
            before, after = np.maximum(np.arange(len(time)) - 1, 0), np.minimum(np.arange(len(time)) + 1, len(time) - 1)
            found = differences(tree, q[before], q[after]) / (time[after] - time[before])[:, None]
            v[piece, lost] = found[:, lost]
    weights = np.zeros_like(v) if recording.v is None else recording.weights["v"]
    names = [title for title, places in _parts(recording.model, "v") if lost[places].any()]
    seen = "not measured" if recording.v is not None else "no joint's was measured"
    where = "v" if recording.v is None else f"v {', '.join(names)}"
    done = "central differences of the positions, weight 0; smooth gives better ones"
    finding = Finding("missing velocity", where, len(recording), seen, done)
    return recording._with({"v": v}, weights={**recording.weights, "v": weights}), [finding]


def _areas(time: np.ndarray, v: np.ndarray) -> np.ndarray:
    return (v[1:] + v[:-1]) / 2 * np.diff(time)[:, None]


def _runs(true: np.ndarray) -> list[tuple[int, int]]:
    """(first, last + 1) of each run of true entries."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], true.astype(int), [0]])))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def _parts(model: Model, channel: str) -> list[tuple[str, Any]]:
    """(title, places) of what a channel has for each joint; all of an IMU."""
    if channel.startswith("imu "):
        return [("", np.arange(3)), ("", np.arange(3, 6))]
    slices = model.q_slices if channel == "q" else model.v_slices
    return [(name, np.arange(part.start, part.stop)) for name, part in slices.items() if part.stop > part.start]


def _coordinates(model: Model) -> list[tuple[str, np.ndarray, np.ndarray]]:
    """(title, places in q, places in v) of what one encoder reads: one number, or all of a joint with a quaternion."""
    found = []
    for i, (name, joint) in enumerate(zip(model.joint_names, model.topology.joints, strict=True)):
        if model.topology.mimics[i] is not None or not joint.nv:
            continue
        q, v = model.topology.q_slice(i), model.topology.v_slice(i)
        if joint.nq != joint.nv:
            found.append((name, np.arange(q.start, q.stop), np.arange(v.start, v.stop)))
        else:
            titles = [f"{name}[{k}]" if joint.nq > 1 else name for k in range(joint.nq)]
            found += [(t, np.array([q.start + k]), np.array([v.start + k])) for k, t in enumerate(titles)]
    return found


def _angles(model: Model) -> list[tuple[str, int, int]]:
    """(title, place in q, place in v) of each coordinate that is an angle."""
    found = []
    for joint, all_q, all_v in kinds(model.topology):
        if joint.nq == joint.nv:
            turning = [k for k, row in enumerate(joint.rows) if row.turns]
            found += [(int(all_q[k, m]), int(all_v[k, m])) for k in turning for m in range(all_q.shape[1])]
    titles = {int(q[0]): title for title, q, _ in _coordinates(model) if len(q) == 1}
    return [(titles[q], q, v) for q, v in sorted(found)]


def _unactuated(model: Model, channel: str, name: str) -> bool:
    """Whether nobody expects this quantity of a joint: the force on a floating base."""
    return model.topology.floats and name == model.joint_names[0] and channel in ("tau", "current")
