"""Sampling and resolution of sensors: values held over several samples of a log, and the grid of all values."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float

from lgsim.identify.recording.clock_checks import CheckedRecording
from lgsim.identify.recording.coordinates import channel_parts, encoders
from lgsim.identify.recording.recording import Recording
from lgsim.identify.recording.report import Finding

_RUNS = 10  # fewest runs of equal values, while the signal moves, from which their length is known
_QUANTA = 3.0  # smallest steps of a signal: smaller changes are rounding, whose runs are as long as the signal is slow
_REGULAR = 0.9  # fraction of the runs whose length is the usual one
_JITTER = 0.25  # largest relative deviation of a usual length; one sample is always usual
_MISSING = 1.5  # relative to the usual step: samples are missing
_SHORTEST = 1.5  # samples: mean length of the runs of a sampler that is slower than the log
_GRID = 0.05  # distance of a difference from a multiple of the step, relative to the step
_ROUNDING = 8.0  # spacings of floating-point numbers up to which two values are equal
_GAPS = 8  # fewest differences between neighboring values from which a grid is known


def exclude_repeats(recording: Recording) -> CheckedRecording:
    """Give the repeats of held samples weight 0, so that each reading of the sensor counts once, when it is new.

    A drive may hold its command, so that repeats of torques and currents count unless positions repeat with them.
    """
    findings, weights = [], {name: x.copy() for name, x in recording.weights.items()}
    new_rows = np.ones(len(recording), bool)
    for channel, x in recording.channels.items():
        parts = encoders(recording.model) if channel == "q" else channel_parts(recording.model, channel)
        for name, at, *dofs in parts:
            columns = dofs[0] if dofs else at
            valid = np.flatnonzero(np.all(recording.valid(channel)[:, columns], axis=1))
            kept, length = new_readings(x[np.ix_(valid, at)])
            if kept.all():
                continue
            # after missing samples a value may be older than it seems
            kept &= np.diff(recording.time[valid], prepend=recording.time[0] - recording.dt) < _MISSING * recording.dt
            seen = f"a new value every {1e3 * length * recording.dt:.4g} ms ({length:.3g} samples), held in between"
            done = "repeats weight 0"
            if channel == "q":
                new_rows[valid] &= kept
            if channel in ("tau", "current") and np.mean(new_rows[valid] == kept) < _REGULAR:
                late = 500 * (length - 1) * recording.dt
                done = f"kept, as commands of a drive; readings of a slower sensor come {late:.3g} ms late on average"
            else:
                weights[channel][np.ix_(valid[~kept], columns)] = 0
            count = int(np.count_nonzero(~kept))
            findings.append(Finding("held samples", f"{channel} {name}".strip(), count, seen, done))
    return (recording.with_channels({}, weights=weights) if findings else recording), findings


def new_readings(x: Float[np.ndarray, "n k"]) -> tuple[Bool[np.ndarray, " n"], float]:
    """(mask of the samples at which a sensor was read, mean number of samples between them).

    A sensor that is read less often than the log is written repeats each value a regular number of times. Only changes
    by several of the smallest steps count: a slow signal of coarse resolution repeats values too, but changes by single
    steps. A signal at rest repeats values without end; one sample per reading is kept there.
    """
    n, updates = len(x), np.flatnonzero(np.any(np.diff(x, axis=0) != 0, axis=1)) + 1
    steps = np.max(np.abs(x[updates] - x[updates - 1]), axis=1, initial=0)
    lengths = np.diff(updates)
    large = steps > _QUANTA * steps.min(initial=np.inf)
    lengths = lengths[large[1:] & large[:-1]]
    if len(lengths) < _RUNS:
        return np.ones(n, bool), 1.0
    usual = np.median(lengths)
    regular = lengths[np.abs(lengths - usual) <= max(1, _JITTER * usual)]
    if len(regular) < _REGULAR * len(lengths) or regular.mean() < _SHORTEST:
        return np.ones(n, bool), 1.0
    start = updates[np.maximum(np.searchsorted(updates, np.arange(n), side="right") - 1, 0)]
    age, longest = np.arange(n) - start, regular.max()
    return age % longest == 0, float(regular.mean())


def resolution_step(x: Float[np.ndarray, " n"]) -> float:
    """The step of the grid on which all values lie, 0 if they lie on none."""
    values = np.unique(x)
    gaps = np.diff(values)
    gaps = gaps[gaps > _ROUNDING * np.spacing(np.max(np.abs(x), initial=0))]
    if len(gaps) < _GAPS:
        return 0.0
    step = float(gaps.min())
    step = float(np.mean(gaps[gaps < 1.5 * step]))
    multiples = gaps / step
    return step if np.mean(np.abs(multiples - np.round(multiples)) < _GRID) > _REGULAR else 0.0
