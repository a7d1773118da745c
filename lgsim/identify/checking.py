"""Recorded motion, checked: one fault after another, mended where that is safe, and named in any case."""

from __future__ import annotations

from dataclasses import replace

from lgsim.identify import clocks, repairs
from lgsim.identify.diagnosis import diagnose
from lgsim.identify.recording import Recording

STEPS = (
    clocks.order,
    repairs.unit_quaternions,
    repairs.whole_turns,
    clocks.jumps,
    clocks.gaps,
    repairs.missing_values,
    repairs.stuck_encoders,
    repairs.saturated_torques,
    repairs.missing_velocities,
)
"""Each takes a recording and gives it mended, with its findings. Each may count on those before it."""


def check(recording: Recording) -> Recording:
    """The recording with what could be mended, and with a ``report`` of all that was found.

    Mended: rows without time, repeated or out of order; clocks that were set; signs and norms of quaternions; whole
    turns; missing numbers (bridged, weight 0); stuck encoders and saturated torques (weight 0); missing velocities
    (differences, weight 0). Named only, ``Finding.open``, for the data do not say which answer is right: implausible
    units, wrong signs, shuffled columns, delays. For these the motion is smoothed, its derivatives compared with the
    measured velocities, and the model's inverse dynamics, friction of any size added, with the measured torques of a
    machine on a fixed base; the model's numbers may be rough. Gaps and uneven clocks are named; ``smooth`` copes.

    Args:
        recording: What was recorded; NaN where a number is missing.

    Returns:
        The recording without NaN; findings are added to those that it had.

    Raises:
        ValueError: there are less than two different times.
    """
    findings = []
    for step in STEPS:
        recording, found = step(recording)
        findings += found
    report = recording.report + findings + diagnose(recording)
    return replace(recording, report=report).noted("checked")
