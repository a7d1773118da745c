"""Concatenation of several recordings of one system."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from lgsim.identify.recording.recording import CHANNELS, MAX_GAP, Recording
from lgsim.identify.recording.report import Report
from lgsim.multibody.serialization import fingerprint


def join_recordings(recordings: Sequence[Recording]) -> Recording:
    """Concatenate several recordings of one system, with gaps in between that are not interpolated.

    A channel that only some of them have gets weight 0 elsewhere.

    Args:
        recordings: The recordings, without NaN, for example from ``check_recording``.

    Returns:
        A recording with at least one segment for each of them.

    Raises:
        ValueError: the list is empty, or the models differ.
    """
    if not recordings:
        raise ValueError("recordings: expected at least one, got none")
    first = recordings[0]
    if len(recordings) == 1:
        return first
    for other in recordings[1:]:
        if other.model is not first.model and fingerprint(other.model) != fingerprint(first.model):
            raise ValueError(f"recordings: expected recordings of one model, got {first.source} and {other.source}")
    usual = max(recording.dt for recording in recordings if len(recording) > 1)
    times, end = [], 0.0
    for recording in recordings:
        times.append(recording.time - recording.time[0] + end)
        # a gap in the joined recording, whatever the usual step of the parts
        end = float(times[-1][-1]) + 2 * MAX_GAP * usual
    names = dict.fromkeys(name for recording in recordings for name in recording.channels)
    arrays, weights = {}, {}
    for name in names:
        width = next(r.channels[name].shape[1] for r in recordings if name in r.channels)
        counted = next(r.weights[name].shape[1] for r in recordings if name in r.channels)
        arrays[name] = np.concatenate([r.channels.get(name, np.zeros((len(r), width))) for r in recordings])
        weights[name] = np.concatenate([r.weights.get(name, np.zeros((len(r), counted))) for r in recordings])
    report = Report(
        tuple(
            replace(finding, where=f"{finding.where} of {recording.source.split(' (')[0]}")
            for recording in recordings
            for finding in recording.report
        )
    )
    steps = dict.fromkeys(step for recording in recordings for step in recording.history)
    return Recording(
        first.model, np.concatenate(times), weights=weights, report=report,
        imu={name.removeprefix("imu "): x for name, x in arrays.items() if name not in CHANNELS},
        source="; ".join(recording.source for recording in recordings),
        history=(*steps, f"{len(recordings)} recordings joined"),
        **{name: x for name, x in arrays.items() if name in CHANNELS},
    )  # fmt: skip
