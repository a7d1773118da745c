"""Outlier detection: single values, or up to three in a row, that deviate strongly from their neighbors."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float

from lgsim.identify.recording.clock_checks import CheckedRecording
from lgsim.identify.recording.coordinates import angles, dof_mask, quaternions
from lgsim.identify.recording.recording import Recording
from lgsim.identify.recording.report import Finding
from lgsim.simulation.trajectory import q_names, tau_names, v_names

_SIDE = 5  # neighbors on each side
_TRIMMED = 2  # of the ten neighbors, on either side of the sorted values: outliers next to an outlier
_FAR = 10.0  # times the range of the other neighbors, and standard deviations of the noise
_STEPS, _FAST = (
    3.0,
    95,
)  # changes from sample to sample, and their percentile: smaller deviations are motion or rounding
_USUAL = 99.5  # percentile of the usual values of a signal that may have impacts
_BEYOND = 5.0  # times the usual magnitude: not an impact
_TURN = 2 * np.pi
_NEAR_TURN = 0.5  # rad: an angle this close to a full revolution has wrapped
_CHANNELS = ("q", "v", "tau", "current")


def exclude_outliers(recording: Recording) -> CheckedRecording:
    """Replace outliers by linear interpolation, with weight 0.

    A position is an outlier if it differs from the median of its ten neighbors by more than ten times their range
    (without the two largest and two smallest) and ten times the noise (from the median of the second differences).
    Speeds and forces may have impacts: their outliers must also exceed five times the 99.5 % quantile of the signal.
    """
    findings, arrays, weights = [], {}, {name: x.copy() for name, x in recording.weights.items()}
    model = recording.model
    turning = {at for _, at, _ in angles(model)}
    skipped = {int(i) for _, at, _ in quaternions(model.topology) for i in at}
    names = {"q": q_names(model), "v": v_names(model), "tau": tau_names(model), "current": tau_names(model)}
    for channel in _CHANNELS:
        if channel not in recording.channels:
            continue
        array, bad = recording.channels[channel].copy(), np.zeros(recording.channels[channel].shape, bool)
        for i in range(array.shape[1]):
            if channel == "q" and i in skipped:
                continue
            known = np.flatnonzero(np.isfinite(array[:, i]))
            found = _outliers(array[known, i], channel == "q" and i in turning, channel != "q")
            if not found.any():
                continue
            bad[known[found], i] = True
            name, _, unit = names[channel][i].rpartition(" [")
            finding = _finding(recording, f"{channel} {name}", unit.rstrip("]"), array[:, i], known, found)
            findings.append(finding)
            array[known[found], i] = np.interp(known[found], known[~found], array[known[~found], i])
        if bad.any():
            arrays[channel] = array
            good = dof_mask(model.topology, ~bad) if channel == "q" else ~bad
            weights[channel] = weights[channel] * good
    return (recording.with_channels(arrays, weights=weights) if arrays else recording), findings


def _finding(
    recording: Recording, where: str, unit: str, x: Float[np.ndarray, " n"], known: np.ndarray, found: np.ndarray
) -> Finding:
    unit = "A" if where.startswith("current") else unit
    off = np.abs(x[known[found]] - np.interp(known[found], known[~found], x[known[~found]]))
    first = recording.time[known[np.argmax(found)]]
    seen = f"up to {off.max():.4g} {unit} from the neighboring values, first at t = {first:g} s"
    return Finding("outlier", where, int(found.sum()), seen, "interpolated, weight 0")


def _outliers(x: Float[np.ndarray, " n"], turns: bool, impacts: bool) -> Bool[np.ndarray, " n"]:
    """A mask of the outliers of a signal.

    Args:
        x: The signal, with finite values.
        turns: True for an angle, which may wrap by one revolution.
        impacts: True if the signal may have short peaks.
    """
    n = len(x)
    if n < 4 * _SIDE:
        return np.zeros(n, bool)
    padded = np.pad(x, _SIDE, mode="reflect")
    windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * _SIDE + 1)
    around = np.sort(np.delete(windows, _SIDE, axis=1), axis=1)
    median = (around[:, _SIDE - 1] + around[:, _SIDE]) / 2
    spread = around[:, -1 - _TRIMMED] - around[:, _TRIMMED]
    off = np.abs(x - median)
    if turns:
        off = np.where(np.abs(off - _TURN) < _NEAR_TURN, np.abs(off - _TURN), off)
    steps = np.abs(np.diff(x))
    step = float(np.percentile(steps[steps > 0], _FAST)) if np.any(steps > 0) else 0.0
    bend = np.abs(np.diff(x, 2))
    noise = 1.4826 * float(np.median(bend)) / np.sqrt(6)  # for three independent values with the factors 1, -2, 1
    found = off > np.maximum(_FAR * (spread + noise), _STEPS * step)
    if impacts:
        found &= off > _BEYOND * np.percentile(np.abs(x - np.median(x)), _USUAL)
    return found if found.mean() < 0.05 else np.zeros(n, bool)
