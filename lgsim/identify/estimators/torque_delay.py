"""Estimation of the delay of recorded joint torques, independent of the dynamic parameters of the model."""

from __future__ import annotations

import numpy as np

from lgsim.identify.estimators.samples import TorqueSamples
from lgsim.identify.recording.recording import Recording
from lgsim.identify.recording.smoothing import smooth
from lgsim.identify.recording.torque_plausibility import parabola_minimum
from lgsim.identify.unknowns.base_parameters import sensitivities
from lgsim.identify.unknowns.body_blocks import StandardParameters
from lgsim.identify.unknowns.joint_blocks import JointParameter, TorqueOffset
from lgsim.identify.unknowns.parameters import Parameters
from lgsim.identify.unknowns.plant import Plant

_MAX_SAMPLES = 1000
"""Maximum number of samples that are used."""
_RANK_TOLERANCE = 1e-9  # relative to the largest singular value: threshold of identifiable combinations


def torque_delay(recording: Recording, plant: Plant, max_delay: float = 0.2) -> tuple[float, float]:
    """Estimate the delay of ``tau``, or else of ``current``, and the fraction of the signals that remains unexplained.

    For each delay d the signals at t + d are fitted by inverse dynamics at t. The fit is linear in all inertial
    parameters, damping, dry friction and offsets, which are free. The estimate is the delay with the smallest sum of
    squares. Only the geometry of the model must be correct.

    Args:
        recording: A recording without NaN, for example from ``check_recording``; its longest segment is used.
        max_delay: The largest |d| of the search, s; a longer delay is returned as this.

    Returns:
        (d in s, residual sum of squares relative to the sum of squares of the signals without their means).

    Raises:
        ValueError: there are no joint torques, or the segment is shorter than four times ``max_delay``.
        ModuleNotFoundError: scipy is not installed.
    """
    name = "tau" if recording.tau is not None else "current"
    if name not in recording.channels:
        raise ValueError("recording: expected tau or current, got neither")
    part = recording[recording.longest_segment]
    dt = part.dt
    if part.time[-1] - part.time[0] < 4 * max_delay:
        duration = part.time[-1] - part.time[0]
        raise ValueError(f"max_delay: expected at most a quarter of {duration:g} s, got {max_delay:g}")
    motion = smooth(part)
    inner = np.flatnonzero((motion.time > part.time[0] + max_delay) & (motion.time < part.time[-1] - max_delay))
    inner = inner[:: max(1, len(inner) // _MAX_SAMPLES)]
    # of a length for which the programs are compiled already
    samples, time = TorqueSamples.from_recording(motion[inner]).padded(_MAX_SAMPLES), motion.time[inner]
    own = Parameters(
        plant, [StandardParameters(), JointParameter("damping"), JointParameter("friction"), TorqueOffset()]
    )
    size = np.std(part.channels[name], axis=0)
    size = np.where(size > 0, size, 1)
    indices = np.asarray(own.affine_indices)
    Y = np.asarray(sensitivities(plant, indices, samples.q, samples.v, samples.a)).reshape(len(samples), -1, own.size)
    Y = Y[: len(time)] / size[:, None]
    U, s, _ = np.linalg.svd(Y.reshape(-1, own.size), full_matrices=False)
    U = U[:, s > _RANK_TOLERANCE * s[0]]
    rest = np.asarray(plant.signals(samples.q, samples.v, samples.a))[: len(time)]
    rest = rest / size - np.einsum("tjp,p->tj", Y, np.asarray(plant.dynamic_parameters)[indices])

    def squares_left(d: float) -> float:
        late = [np.interp(time + d, part.time, column) for column in part.channels[name].T]
        y = (np.stack(late, axis=1) / size - rest).reshape(-1)
        return float(y @ y - np.sum((U.T @ y) ** 2)) / (len(time) * len(size))

    lags = np.arange(-int(max_delay / dt), int(max_delay / dt) + 1)
    costs = np.array([squares_left(dt * lag) for lag in lags])
    best = int(np.argmin(costs))
    within = 0 < best < len(lags) - 1
    return dt * (parabola_minimum(lags, costs) if within else float(lags[best])), float(costs[best])
