"""Preparation of recorded motion for an estimator: maps, delays, held-out data, smoothing."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from lgsim.cli import files
from lgsim.cli.errors import BadInput, bad_input
from lgsim.cli.exit_status import Exit
from lgsim.cli.terminal import console, echo_file, note
from lgsim.cli.work.locked_joints import restricted
from lgsim.dynamics.kinematics import frame_twists
from lgsim.identify import Plant, Recording, SensorRecords, SignalScale, TorqueSamples, smooth, torque_delay
from lgsim.identify.recording.delays import estimate_delay, shift_signal
from lgsim.identify.recording.filters import Smoother, Spline
from lgsim.identify.recording.smoothing import MIN_SAMPLES, tune
from lgsim.multibody import Model
from lgsim.scenarios.map_example import example_map
from lgsim.scenarios.recording_map import RecordingMap
from lgsim.support.messages import counted, listed, one_line

ALIKE = 0.7
"""Smallest correlation of velocities from which a delay is estimated."""
UNEXPLAINED = 0.3
"""Largest fraction of the squared joint forces that the best delay may leave unexplained."""
LONGEST = 0.2
"""Largest delay that is considered, s."""
BLOCKS = 4
"""Number of blocks of the motion, the end of each of which is held out; one block if they would be too short."""


class PreparedMotion(NamedTuple):
    """Recorded motion, prepared for an estimator.

    Attributes:
        recording: The whole record, repaired.
        shown: The training part, smoothed.
        samples: The training part as arrays.
        validation: The held-out part as arrays; None if nothing is held out.
    """

    recording: Recording
    shown: Recording
    samples: TorqueSamples | SensorRecords
    validation: TorqueSamples | SensorRecords | None


def print_map(machine: Path, floating_base: bool, motion: Path) -> None:
    """Print a map of a recording for a robot; raises BadInput if the recording is no table."""
    model, _ = files.read_machine(machine, floating_base=floating_base)
    with bad_input(kinds=(ValueError, FileNotFoundError)):
        echo_file(example_map(motion, model))


def read_record(path: Path, whole: Model, model: Model, given: RecordingMap) -> Recording:
    """Read a recording of a robot for its model with locked joints, and print its size and each repair of it.

    Raises:
        BadInput, ScenarioError: it cannot be read with the map.
    """
    with bad_input():
        recording = restricted(given.read(path, whole), model)
    span, heard = recording.time[-1] - recording.time[0], ", ".join(recording.channels)
    size = f"{path}: {counted(len(recording), 'sample')} in {span:.4g} s, of {heard}"
    for line in (size, *(f"  {line}" for line in recording.report.lines())):
        console(error=True).print(line, soft_wrap=True)
    return recording


def refuse_open(path: Path, recording: Recording, what: str) -> None:
    """Raise BadInput for a recording with unresolved issues, of which ``what`` would be wrong."""
    if recording.report.open:
        count = counted(len(recording.report.open), "unresolved issue")
        raise BadInput(
            f"{path}: {count} in the record, listed above; {what} would be wrong. Correct the map or the record, or"
            " use --force to use it unchanged",
            Exit.OPEN_FINDINGS,
        )


def check_torque_constants(given: RecordingMap, model: Model, fitted: SignalScale | None = None) -> None:
    """Raise BadInput if torque constants for a record of currents are neither given nor fitted."""
    _, known = given.root.table("drives").by_joint("scale", model.v_slices, np.ones(model.nv))
    if fitted is not None:
        known[fitted.indices(model)] = True
    measured = [name for name in model.v_slices if not (model.topology.floats and name == model.joint_names[0])]
    if lost := [name for name in measured if not known[model.v_slices[name]].all()]:
        raise BadInput(
            f"[drives] scale: the record has currents in A, and the torque constants of {listed(lost)} are missing;"
            f" give them in the map, N m/A: [drives] scale = {{ {lost[0]} = 8.2 }}, or fit them with a known mass:"
            " lgsim identify --fit bodies,friction,damping,scales and [known] total_mass"
        )


def in_step(recording: Recording, plant: Plant, given: RecordingMap) -> Recording:
    """The recording without the delays of its channels, see ``found_delays``."""
    for channel, delay in found_delays(recording, plant, given).items():
        recording = shift_signal(recording, channel, delay) if delay else recording
    return recording


def found_delays(recording: Recording, plant: Plant, given: RecordingMap) -> dict[str, float]:
    """The delays by channel, s: given in the map, or estimated where it requests that or the clock is another one.

    Raises:
        ScenarioError: an unknown channel, or a delay that cannot be estimated.
    """
    table, found = given.root.table("delays"), {}
    for channel, delay in given.delays.items():
        if channel not in recording.channels:
            there = ", ".join(recording.channels)
            raise table.fault(channel, f"the record has no channel {channel!r}; it has {there}")
        if delay is None:
            with table.at(channel):
                delay = _delay(recording, plant, channel)
            note(f"{channel}: estimated delay {1e3 * delay:.3g} ms, by correlation with the motion")
        found[channel] = delay
    for finding in recording.report.of_kind("other clock"):
        for channel in finding.where.rpartition("(")[2].rstrip(")").split(", "):
            if channel == "q" or channel in given.delays or channel not in recording.channels:
                continue
            try:
                delay = _delay(recording, plant, channel)
            except ValueError as error:
                note(f"{channel}: stamps of another clock, {one_line(error)}; set it under [delays] in a map")
                continue
            note(
                f"{channel}: stamps of another clock; estimated delay {1e3 * delay:.3g} ms, by correlation with the"
                " motion"
            )
            found[channel] = delay
    return found


def _delay(recording: Recording, plant: Plant, channel: str) -> float:
    """Estimate the delay of a channel, s: of velocities relative to positions, of forces relative to inverse dynamics.

    Raises:
        ValueError: the delay cannot be estimated, or is longer than the search.
    """
    delay = _best_delay(recording, plant, channel)
    if abs(delay) > LONGEST - recording.dt:
        raise ValueError(
            f"the delay cannot be estimated: it is at least {1e3 * LONGEST:g} ms, where the search ends; set its value"
            " in a map"
        )
    return delay


def _best_delay(recording: Recording, plant: Plant, channel: str) -> float:
    """The best delay up to ``LONGEST``, s.

    Raises:
        ValueError: the delay cannot be estimated.
    """
    if channel.startswith("imu "):
        return _imu_delay(recording, channel)
    if channel != "v":
        delay, left = torque_delay(recording, plant)
        if left > UNEXPLAINED:
            raise ValueError(f"the delay cannot be estimated: no delay explains {100 * left:.2g} % of the signals")
        return delay
    part = recording[recording.longest_segment]
    motion = smooth(part, rate=1 / part.dt)
    x, found = np.asarray(motion.v), []
    for i in range(x.shape[1]):
        y = np.interp(motion.time, part.time, part.channels[channel][:, i])
        if np.ptp(x[:, i]) > 0 and np.ptp(y) > 0:
            found.append(estimate_delay(x[:, i], y, part.dt, min(LONGEST, len(y) * part.dt / 8))[::-1])
    alike, delay = max(found, default=(0.0, 0.0))
    if alike < ALIKE:
        raise ValueError(
            f"the delay cannot be estimated: no column correlates with the rate of its position (at best {alike:.2f})"
        )
    return float(delay)


def _imu_delay(recording: Recording, channel: str) -> float:
    """Estimate the delay of an IMU, s, from the norm of its angular velocity, which is independent of its axes.

    Raises:
        ValueError: the delay cannot be estimated.
    """
    part = recording[recording.longest_segment]
    motion = smooth(part, rate=1 / part.dt)
    model, frame = part.model, part.model.frame_names.index(channel.removeprefix("imu "))
    twists = frame_twists(model, jnp.asarray(motion.q, model.dtype), jnp.asarray(motion.v, model.dtype))
    x = np.linalg.norm(np.asarray(twists)[:, frame, 3:], axis=1)
    y = np.interp(motion.time, part.time, np.linalg.norm(part.channels[channel][:, 3:], axis=1))
    delay, alike = estimate_delay(x, y, part.dt, min(LONGEST, len(y) * part.dt / 8))
    if alike < ALIKE:
        raise ValueError(
            f"the delay cannot be estimated: the angular velocity does not match that of its frame ({alike:.2f})"
        )
    return delay


def prepared(recording: Recording, given: RecordingMap, simulated: bool, held_out: float) -> PreparedMotion:
    """Split and smooth a record for an estimator.

    Args:
        recording: The record without delays.
        simulated: True if the estimator simulates.
        held_out: Fraction of the record that is held out.

    Raises:
        BadInput: the record is too short, or cannot be smoothed.
    """
    try:
        make = _records if simulated else _samples
        train, rest = recording, None
        if held_out:
            enough = len(recording) * held_out / BLOCKS >= 4 * MIN_SAMPLES and not simulated
            train, rest = recording.split(held_out, BLOCKS if enough else 1)
        method = _method(train, given)
        shown, samples = make(train, given, method)
        for finding in shown.report.of_kind("smoothing"):
            note(str(finding))
        return PreparedMotion(recording, shown, samples, None if rest is None else make(rest, given, method)[1])
    except ValueError as error:
        raise BadInput(f"the record: {one_line(error)}") from error


def _method(recording: Recording, given: RecordingMap) -> Smoother:
    """The smoother, with parameters from cross-validation where the map gives none."""
    return tune(recording, given.smoother or Spline())


def _samples(recording: Recording, given: RecordingMap, method: Smoother) -> tuple[Recording, TorqueSamples]:
    """Joint forces with the motion; forces are not resampled if the times stay, so that their noise remains white."""
    motion = smooth(recording, method, rate=given.rate)
    raw = recording[np.isin(recording.time, motion.time)] if given.rate is None else None
    samples = TorqueSamples.from_recording(motion, raw)
    return motion, samples.without_slow_samples(given.slowest) if given.slowest else samples


def _records(recording: Recording, given: RecordingMap, method: Smoother) -> tuple[Recording, SensorRecords]:
    """Positions at uniform times, from the longest part without a gap, with initial guesses of the states."""
    part = recording[recording.longest_segment]
    if len(part) < len(recording):
        note(f"simulating the longest part without a gap: {len(part)} of {len(recording)} samples")
    steps = np.diff(part.time)
    even = given.rate is None and bool(np.all(np.abs(steps - steps.mean()) < 0.01 * steps.mean()))
    motion = smooth(part, method, rate=None if even else given.rate or 1 / part.dt)
    measured = {"q": given.deviations["q"]}
    if even and part.v is not None and np.any(part.weights["v"] > 0):
        measured["v"] = given.deviations["v"]
    records = SensorRecords.from_recording(part if even else motion, measured)
    states = np.concatenate([motion.channels["q"], motion.channels["v"]], axis=-1)
    return motion, SensorRecords(records.dt, records.channels, records.signals, states=states)
