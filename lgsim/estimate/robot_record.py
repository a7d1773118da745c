"""Recorded motion of a robot, prepared for a filter, and its states with deviations."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Float, Int
from scipy.optimize import minimize

from lgsim.dynamics.forward_dynamics import forward_dynamics
from lgsim.dynamics.passive_forces import passive_forces
from lgsim.estimate.gaussian import Gaussian
from lgsim.estimate.measurement import Inputs, Measurement, Stream
from lgsim.estimate.methods import Filter
from lgsim.estimate.record_filter import Estimate, run
from lgsim.estimate.robot_process import RobotProcess
from lgsim.estimate.smoothing import Smoothed, smooth
from lgsim.identify import ImuSensor, PositionSensor, Recording, VelocitySensor, model_files
from lgsim.identify.estimators.sensors import Instant, Sensor
from lgsim.identify.recording.coordinates import channel_parts, encoders
from lgsim.lie.conversions import matrix_from_quaternion
from lgsim.lie.group import SE3, SO3
from lgsim.simulation.trajectory import v_names
from lgsim.support.files import write_whole

_DECADES, _SETTLED = 8.0, 0.1
"""Half the range of a search for a noise, decades, and its accuracy, decades and logarithms of the likelihood."""


class RobotRecord(NamedTuple):
    """A recording of a robot for a filter: ``record.filtered(EKF())``.

    Attributes:
        start: The distribution of the state at the first time.
        streams: The readings, one stream for each encoder, joint with measured velocity, accelerometer and gyroscope.
        inputs: The joint forces; their times are those at which the process is evaluated between readings.
    """

    process: RobotProcess
    start: Gaussian
    streams: tuple[Stream, ...]
    inputs: Inputs

    @staticmethod
    def from_recording(
        process: RobotProcess,
        recording: Recording,
        deviations: Mapping[str, ArrayLike],
        *,
        delays: Mapping[str, float] | None = None,
        gate: float | None = None,
        dt: float | None = None,
        q_deviations: ArrayLike = 0.1,
        v_deviations: ArrayLike = 1.0,
    ) -> RobotRecord:
        """The record of ``identify.read_recording``; values with weight 0 are no readings.

        The mean of the start is the first position and velocity. Joint forces are held over a step at the mean of its
        two samples, as in ``identify.SensorRecords``; they are zero where none were recorded.

        Args:
            recording: Times ascend, and ``tau`` contains joint forces, N m or N.
            deviations: Standard deviations of readings: "q", rad or m, and "v", rad/s or m/s, a number or (nv,);
                "accelerometer", m/s^2, and "gyroscope", rad/s, numbers.
            delays: Delays of the channels "v", "tau" and "imu <frame>", s.
            gate: As in ``Stream``, for each reading.
            dt: The largest step, s; by default one and a half times the step that 90 % of them do not exceed.
            q_deviations: Standard deviations of the first configuration, as in ``RobotProcess.start``.
            v_deviations: Those of the first velocity.

        Raises:
            ValueError: no channel has a reading, or a deviation is missing.
        """
        time, late, streams = recording.time, delays or {}, []
        for measurement, values, valid, delay in _readings(process, recording, deviations, late):
            kept = valid & (time - delay >= time[0])
            if kept.any():
                streams.append(Stream(measurement, time[kept], values[kept], delay, gate))
        if not streams:
            raise ValueError("recording: expected readings of positions, velocities or an IMU, got none")
        v = np.zeros(process.model.nv) if recording.v is None else recording.v[0]
        start = process.start(recording.q[0], v, q_deviations=q_deviations, v_deviations=v_deviations)
        return RobotRecord(process, start, tuple(streams), _inputs(recording, dt, late.get("tau", 0.0)))

    @property
    def noises(self) -> list[str]:
        """The noises that ``scaled`` multiplies: "force", and for each sensor and unit its own, such as "q [rad]"."""
        return ["force", *dict.fromkeys(noise_of(stream.measurement.name) for stream in self.streams)]

    def scaled(self, factors: Mapping[str, float]) -> RobotRecord:
        """The record with some of its ``noises`` multiplied."""
        process = eqx.tree_at(lambda p: p.force_noise, self.process, self.process.force_noise * factors.get("force", 1))
        streams = []
        for stream in self.streams:
            noise = stream.measurement.noise * factors.get(noise_of(stream.measurement.name), 1)
            streams.append(eqx.tree_at(lambda s: s.measurement.noise, stream, noise))
        return self._replace(process=process, streams=tuple(streams))

    def likely_factors(
        self,
        method: Filter,
        names: Sequence[str],
        progress: Callable[[Mapping[str, float], float], None] = lambda *_: None,
    ) -> dict[str, float]:
        """The factors of some ``noises`` for the largest likelihood, by the simplex method.

        Readings beyond the gate count here, since a likelihood without them prefers to lose readings.

        Args:
            progress: Called with the factors and the logarithm of the likelihood of each trial.

        Raises:
            ValueError: no trial has a finite likelihood.

        Warns:
            RuntimeWarning: the search ended before the factors settled, or one is at the end of its range.

        Source: Nelder and Mead 1965, A simplex method for function minimization.
        """
        plain = self._replace(streams=tuple(replace(stream, gate=None) for stream in self.streams))

        def factors(exponents: Float[np.ndarray, " n"]) -> dict[str, float]:
            return dict(zip(names, (10.0**exponents).tolist(), strict=True))

        def cost(exponents: Float[np.ndarray, " n"]) -> float:
            likelihood = float(plain.scaled(factors(exponents)).filtered(method).filtered.loglikelihood)
            progress(factors(exponents), likelihood)
            return -likelihood if np.isfinite(likelihood) and np.all(np.abs(exponents) < _DECADES) else np.inf

        if not names:
            return {}
        simplex = np.concatenate([np.zeros((1, len(names))), np.eye(len(names))])
        options = {"initial_simplex": simplex, "xatol": _SETTLED, "fatol": _SETTLED, "maxfev": 60 * len(names)}
        best = minimize(cost, simplex[0], method="Nelder-Mead", options=options)
        if not np.isfinite(best.fun):
            raise ValueError("names: expected noises with a finite likelihood, got none")
        at_end = [name for name, x in zip(names, best.x, strict=True) if abs(x) > _DECADES - 1]
        if at_end or not best.success:
            end = f"{', '.join(at_end)} at the end of the range of 1e{_DECADES:.0f}" if at_end else "not settled"
            warnings.warn(
                f"noises of the largest likelihood: {end} after {best.nfev} trials; give those you know",
                RuntimeWarning, stacklevel=2,
            )  # fmt: skip
        return factors(best.x)

    def filtered(self, method: Filter, *, smoothed: bool = False) -> RobotEstimate:
        """The states by a filter, and with ``smoothed`` given the later readings too; see ``run`` and ``smooth``."""
        found = run(method, self.process, self.start, self.streams, inputs=self.inputs)
        return RobotEstimate(self, found, smooth(found) if smoothed else found)


class RobotEstimate(NamedTuple):
    """The estimated motion of a robot.

    Attributes:
        filtered: The result of the filter, with the verdict.
        states: The states, smoothed or filtered.
    """

    record: RobotRecord
    filtered: Estimate
    states: Estimate | Smoothed

    @property
    def q(self) -> Float[np.ndarray, "k nq"]:
        """Configurations, rad or m."""
        return np.asarray(self.states.means[0])[:, : self.record.process.model.nq]

    @property
    def v(self) -> Float[np.ndarray, "k nv"]:
        """Velocities, rad/s or m/s."""
        return np.asarray(self.states.means[0])[:, self.record.process.model.nq :]

    @property
    def deviations(self) -> Float[np.ndarray, "k n"]:
        """Standard deviations of q in its tangent space, of v and of the coordinates of the unknowns."""
        return np.asarray(self.states.deviations)

    @property
    def prior(self) -> dict[str, float]:
        """The values of the unknown parameters at the start, by name."""
        return {name: float(value) for name, value in self.record.process.values(self.record.start.mean).items()}

    def unknowns(self) -> dict[str, tuple[Float[np.ndarray, " k"], Float[np.ndarray, " k"]]]:
        """Physical values of the unknown parameters over time with standard deviations, to first order, by name."""
        parameters = self.record.process.parameters
        if parameters is None:
            return {}
        x, factors = self.states.means[1], self.states.factors[:, -parameters.size :]
        values, slopes = (
            np.asarray(jax.vmap(f)(x)) for f in (parameters.value_array, jax.jacfwd(parameters.value_array))
        )
        spread = np.linalg.norm(slopes @ np.asarray(factors), axis=-1)
        return {name: (values[:, i], spread[:, i]) for i, name in enumerate(self.prior)}

    def save(self, path: str | Path) -> Path:
        """Write an ``.npz`` file atomically.

        It holds ``time``, ``q``, ``v`` and the ``factors`` of the covariances, whose components have the ``names``,
        with their ``deviations``; ``values`` and ``value_deviations`` of the unknowns ``value_names``; of each of the
        ``streams`` the squared normalized residuals ``nis``, NaN without a reading, the readings ``gated`` and the
        largest ``reading_noise``; the ``force_noise``, the verdict and the model.
        """
        found, unknowns = self.filtered, self.unknowns()
        columns = np.reshape([*unknowns.values()], (len(unknowns), 2, len(found.ts)))
        arrays = {
            "time": found.ts, "q": self.q, "v": self.v, "names": np.array(found.names), "deviations": self.deviations,
            "factors": self.states.factors, "value_names": np.array([*unknowns], str), "values": columns[:, 0].T,
            "value_deviations": columns[:, 1].T, "streams": np.array([*found.nis]),
            "nis": np.stack([*found.nis.values()], axis=1), "gated": np.stack([*found.gated.values()], axis=1),
            "reading_noise": [float(np.max(stream.measurement.noise)) for stream in self.record.streams],
            "force_noise": self.record.process.force_noise,
        }  # fmt: skip
        about = {"verdict": found.verdict.text}
        write_whole(Path(path), model_files.to_bytes("lgsim estimate 1", about, self.record.process.model, arrays))
        return Path(path)


def noise_of(stream: str) -> str:
    """The sensor and the unit in the name of a stream."""
    return f"{stream.partition(' ')[0]} [{stream.rpartition('[')[2]}"


def _readings(
    process: RobotProcess, recording: Recording, deviations: Mapping[str, ArrayLike], delays: Mapping[str, float]
) -> Iterator[tuple[Measurement, Any, Any, float]]:
    """Each measurement, its values at all times, a mask of its readings (n,), and its delay, s."""
    model = process.model
    units = np.array([name.rpartition("[")[2].removesuffix("/s]") for name in v_names(model)])

    def noise(kind: str, columns: Any) -> np.ndarray:
        if kind not in deviations:
            raise ValueError(f"deviations: expected a standard deviation of {kind!r}, got {', '.join(deviations)}")
        size = model.nv if kind in ("q", "v") else 6
        return np.broadcast_to(np.asarray(deviations[kind], float), (size,))[columns]

    def read(sensor: Sensor, columns: Int[np.ndarray, " k"], y: Any, u: Any) -> Any:
        at, (q, v) = process.model_at(y), process.parts(y)
        a = forward_dynamics(at, q, v, u + passive_forces(at, q, v)) if sensor.ACCELERATION else None
        values = sensor.read(at, Instant(q, v, a))[columns]
        return _pose(values) if isinstance(sensor, PositionSensor) and len(columns) > 1 else values

    parts: list[tuple[str, str, Sensor, str, Any, Any]]
    parts = [("q", f"{name} [{_listed(units[v])}]", PositionSensor(), "q", q, v) for name, q, v in encoders(model)]
    if recording.v is not None:
        speeds = channel_parts(model, "v")
        parts += [("v", f"{name} [{_listed(units[v], '/s')}]", VelocitySensor(), "v", v, v) for name, v in speeds]
    for frame in recording.imu:
        for kind, unit, at in (("accelerometer", "m/s^2", np.arange(3)), ("gyroscope", "rad/s", np.arange(3, 6))):
            parts.append((kind, f"{frame} [{unit}]", ImuSensor(frame), f"imu {frame}", at, at))
    for kind, name, sensor, channel, columns, dofs in parts:
        valid = recording.valid(channel)[:, dofs].all(axis=1)
        if valid.any():
            values = jnp.asarray(recording.channels[channel][:, columns], model.dtype)
            group = None
            if kind == "q" and len(columns) > 1:
                values, group = jax.vmap(_pose)(values), SO3 if len(columns) == 4 else SE3
            measurement = Measurement(partial(read, sensor, columns), noise(kind, dofs), group, True, f"{kind} {name}")
            yield measurement, values, valid, delays.get(channel, 0.0)


def _pose(q: Float[jax.Array, " k"]) -> Float[jax.Array, "n n"]:
    """The pose (4, 4) of a joint whose last four coordinates are a quaternion, or the rotation (3, 3) of a ball."""
    R = matrix_from_quaternion(q[-4:])
    return R if len(q) == 4 else jnp.block([[R, q[:3, None]], [jnp.zeros((1, 3), q.dtype), jnp.ones((1, 1), q.dtype)]])


def _listed(units: Iterable[str], rate: str = "") -> str:
    return ", ".join(f"{unit}{rate}" for unit in dict.fromkeys(units))


def _inputs(recording: Recording, dt: float | None, delay: float) -> Inputs:
    """The joint forces from the first time on, each held over a step or over the parts of a gap."""
    time, steps = recording.time - delay, np.diff(recording.time)
    tau = np.zeros((len(time), recording.model.nv)) if recording.tau is None else recording.tau
    held = np.concatenate([(tau[1:] + tau[:-1]) / 2, tau[-1:]])
    largest = 1.5 * np.percentile(steps, 90) if dt is None else dt
    counts = np.append(np.maximum(np.ceil(np.round(steps / largest, 6)), 1).astype(int), 1)
    share = (np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)) / np.repeat(counts, counts)
    ts = np.repeat(time, counts) + share * np.repeat(np.append(steps, 0), counts)
    # the last of those before the start is held there
    kept = max(int(np.searchsorted(ts, recording.time[0], side="right")) - 1, 0)
    ts, values = ts[kept:], np.repeat(held, counts, axis=0)[kept:]
    ts[0] = recording.time[0]
    return Inputs(ts, jnp.asarray(values, recording.model.dtype))
