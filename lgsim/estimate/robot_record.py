"""Recorded motion of a robot, prepared for a filter, and its states with deviations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Bool, Float
from scipy.optimize import minimize

from lgsim.dynamics.forward_dynamics import forward_dynamics
from lgsim.dynamics.passive_forces import passive_forces
from lgsim.estimate.gaussian import Gaussian
from lgsim.estimate.measurement import Inputs, Measurement, Stream
from lgsim.estimate.methods import Filter
from lgsim.estimate.record_filter import Estimate, run
from lgsim.estimate.robot_process import RobotProcess, State
from lgsim.estimate.smoothing import Smoothed, smooth
from lgsim.identify import Recording, model_files
from lgsim.identify.recording.coordinates import channel_parts, encoders
from lgsim.identify.recording.recording import to_csv
from lgsim.lie.conversions import matrix_from_quaternion
from lgsim.lie.group import SE3, SO3
from lgsim.simulation.sensors import frame_twist, imu
from lgsim.simulation.trajectory import q_names, v_names
from lgsim.support.files import write_whole

FORMAT = "lgsim estimate 1"
"""Content and version of the files of ``RobotEstimate.save``."""
ENDINGS = (".npz", ".csv")
"""Their extensions."""
SENSORS = ("q", "v", "accelerometer", "gyroscope")
"""The kinds of streams, first words of their names."""
_DECADES, _SETTLED = 8.0, 0.1
"""Half the range of a search for a noise, decades, and its accuracy, decades and logarithms of the likelihood."""


class _Components(eqx.Module):
    """Components of (q, v), in their order."""

    start: int = eqx.field(static=True)
    stop: int = eqx.field(static=True)

    def __call__(self, y: State) -> Float[Array, " k"]:
        return y[0][self.start : self.stop]


class _Pose(_Components):
    """The pose of a joint whose last four coordinates are a quaternion: (4, 4), or the rotation (3, 3) of a ball."""

    def __call__(self, y: State) -> Float[Array, "k k"]:
        return _pose(super().__call__(y))


class _Gyroscope(eqx.Module):
    """The angular velocity of a frame, rad/s in its axes."""

    process: RobotProcess
    frame: str = eqx.field(static=True)

    def __call__(self, y: State) -> Float[Array, " 3"]:
        return frame_twist(self.process.model_at(y), self.frame, *self.process.parts(y))[3:]


class _Accelerometer(_Gyroscope):
    """The specific force at a frame, m/s^2 in its axes, under joint forces u."""

    def __call__(self, y: State, u: Float[Array, " nv"]) -> Float[Array, " 3"]:
        model, (q, v) = self.process.model_at(y), self.process.parts(y)
        a = forward_dynamics(model, q, v, u + passive_forces(model, q, v))
        return imu(model, self.frame, q, v, a).specific_force


def _pose(q: Float[Array, " k"]) -> Float[Array, "n n"]:
    R = matrix_from_quaternion(q[-4:])
    if len(q) == 4:
        return R
    return jnp.block([[R, q[:3, None]], [jnp.zeros((1, 3), q.dtype), jnp.ones((1, 1), q.dtype)]])


class RobotRecord(NamedTuple):
    """A recording of a robot for a filter: ``record.filtered(EKF())``.

    Attributes:
        start: The distribution of the state at the first time.
        streams: The readings: a stream for each encoder, joint with measured velocity, accelerometer and gyroscope.
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

        The start has the first position and velocity of the recording as its mean. Joint forces are held over a step
        at the mean of its two samples, as in ``identify.SensorRecords``; they are zero where none were recorded.

        Args:
            recording: Times ascend, and ``tau`` contains joint forces, N m or N.
            deviations: Standard deviations of readings: "q", rad or m, and "v", rad/s or m/s, a number or (nv,);
                "accelerometer", m/s^2, and "gyroscope", rad/s.
            delays: Delays of the channels "v", "tau" and "imu <frame>", s.
            gate: As in ``Stream``, for each reading.
            dt: The largest step, s, which divides gaps; by default one and a half times that which 90 % of the steps of
                the recording do not exceed.
            q_deviations: Standard deviations of the first configuration, as in ``RobotProcess.start``.
            v_deviations: Those of the first velocity.

        Raises:
            ValueError: ``dt`` is not positive, times do not ascend, no channel has a reading, or a deviation is
                missing.
        """
        if dt is not None and not dt > 0:
            raise ValueError(f"dt: expected a positive number of s, got {dt}")
        late = delays or {}
        streams = tuple(
            Stream(measurement, recording.time[kept], values[kept], delay, gate)
            for measurement, values, there, delay in _readings(process, recording, deviations, late)
            if (kept := there & (recording.time - delay >= recording.time[0])).any()
        )
        if not streams:
            raise ValueError("recording: expected readings of positions, velocities or an IMU, got none")
        first = recording.q[0], np.zeros(process.model.nv) if recording.v is None else recording.v[0]
        start = process.start(*first, q_deviations=q_deviations, v_deviations=v_deviations)
        step = 1.5 * float(np.percentile(np.diff(recording.time), 90)) if dt is None else dt
        return RobotRecord(process, start, streams, _inputs(recording, step, late.get("tau", 0.0)))

    def filtered(self, method: Filter, *, smoothed: bool = False) -> RobotEstimate:
        """The states by a filter, and with ``smoothed`` given the later readings too; see ``run`` and ``smooth``."""
        found = run(method, self.process, self.start, self.streams, inputs=self.inputs)
        return RobotEstimate(self, found, smooth(found) if smoothed else found)

    def likely_factors(
        self,
        method: Filter,
        free: Iterable[str],
        progress: Callable[[Mapping[str, float], float], None] | None = None,
    ) -> dict[str, float]:
        """The factors of some noises for the largest likelihood, for ``scaled``; by the simplex method.

        Readings beyond the gate count in this search, since a likelihood without them prefers to lose readings.

        Args:
            free: Noises of ``noises``.
            progress: Called with the factors and the logarithm of the likelihood of each trial.

        Raises:
            ValueError: no trial has a finite likelihood.

        Source: Nelder and Mead 1965, A simplex method for function minimization.
        """
        names = list(free)
        if not names:
            return {}
        plain = self._replace(streams=tuple(replace(stream, gate=None) for stream in self.streams))

        def cost(exponents: Float[np.ndarray, " n"]) -> float:
            factors = dict(zip(names, (10.0**exponents).tolist(), strict=True))
            trial = plain.scaled(factors)
            found = run(method, trial.process, trial.start, trial.streams, inputs=trial.inputs)
            likelihood = float(found.loglikelihood)
            if progress is not None:
                progress(factors, likelihood)
            return -likelihood if np.isfinite(likelihood) and np.all(np.abs(exponents) < _DECADES) else np.inf

        simplex = np.concatenate([np.zeros((1, len(names))), np.eye(len(names))])
        options = {"initial_simplex": simplex, "xatol": _SETTLED, "fatol": _SETTLED, "maxfev": 60 * len(names)}
        best = minimize(cost, simplex[0], method="Nelder-Mead", options=options)
        if not np.isfinite(best.fun):
            raise ValueError("free: expected noises with a finite likelihood, got none; a smaller dt may help")
        return dict(zip(names, (10.0**best.x).tolist(), strict=True))

    def noises(self, wanted: Iterable[str] = ("force", *SENSORS)) -> list[str]:
        """The noises of these kinds: "force", and for each unit that of the streams, such as "q [rad]"."""
        kinds = dict.fromkeys(["force", *(noise_of(stream.measurement.name) for stream in self.streams)])
        return [name for name in kinds if name.split()[0] in wanted]

    def scaled(self, factors: Mapping[str, float]) -> RobotRecord:
        """The record with some of its ``noises`` multiplied."""
        process = eqx.tree_at(lambda p: p.force_noise, self.process, self.process.force_noise * factors.get("force", 1))
        streams = []
        for stream in self.streams:
            factor = factors.get(noise_of(stream.measurement.name), 1)
            streams.append(eqx.tree_at(lambda s: s.measurement.noise, stream, stream.measurement.noise * factor))
        return RobotRecord(process, self.start, tuple(streams), self.inputs)


class RobotEstimate(NamedTuple):
    """The estimated motion of a robot.

    Attributes:
        filtered: What the filter found, with the verdict.
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
        values = jax.vmap(parameters.value_array)(x)
        slopes = jax.vmap(jax.jacfwd(parameters.value_array))(x)
        spread = np.linalg.norm(np.asarray(slopes @ factors), axis=-1)
        names = list(parameters.values(x[0]))
        return {name: (np.asarray(values)[:, i], spread[:, i]) for i, name in enumerate(names)}

    @property
    def columns(self) -> dict[str, Float[np.ndarray, " k"]]:
        """Time, states, unknowns and their standard deviations ("std"), by name with unit."""
        model = self.record.process.model
        speeds = v_names(model)
        spreads = [name.replace("/s]", "]") for name in speeds] + speeds
        named = [("time [s]", self.filtered.ts)]
        named += [(f"q {name}", x) for name, x in zip(q_names(model), self.q.T, strict=True)]
        named += [(f"v {name}", x) for name, x in zip(speeds, self.v.T, strict=True)]
        named += [(f"std {name}", x) for name, x in zip(spreads, self.deviations.T, strict=False)]
        for name, (values, deviations) in self.unknowns().items():
            named += [(name, values), (f"std {name}", deviations)]
        return dict(named)

    def save(self, path: str | Path) -> Path:
        """Write an ``.npz`` file, or ``columns`` to a ``.csv`` file, atomically.

        The ``.npz`` file holds ``time``, ``q``, ``v`` and the ``factors`` of the covariances, whose components have the
        ``names``, with their ``deviations``; ``values`` and ``value_deviations`` of the unknowns
        ``value_names``; of each of the ``streams`` the squared normalized residuals ``nis``, NaN without a reading, and
        the readings ``gated``; the ``force_noise`` and the largest ``reading_noise`` of each stream; the verdict and
        the model.

        Raises:
            ValueError: the name does not end in .npz or .csv.
        """
        path, found, unknowns = Path(path), self.filtered, self.unknowns()
        if path.suffix not in ENDINGS:
            raise ValueError(f"path: expected a name that ends in {' or '.join(ENDINGS)}, got {path.name!r}")
        if path.suffix == ".csv":
            write_whole(path, to_csv(self.columns))
            return path
        columns = np.reshape([*unknowns.values()], (len(unknowns), 2, len(found.ts)))
        arrays = {
            "time": found.ts, "q": self.q, "v": self.v, "names": np.array(found.names), "deviations": self.deviations,
            "factors": self.states.factors, "value_names": np.array([*unknowns], str), "values": columns[:, 0].T,
            "value_deviations": columns[:, 1].T, "streams": np.array([*found.nis]),
            "nis": np.stack([*found.nis.values()], axis=1), "gated": np.stack([*found.gated.values()], axis=1),
            "force_noise": self.record.process.force_noise,
            "reading_noise": [float(np.max(stream.measurement.noise)) for stream in self.record.streams],
        }  # fmt: skip
        about = {"verdict": found.verdict.text}
        write_whole(path, model_files.to_bytes(FORMAT, about, self.record.process.model, arrays))
        return path


def noise_of(stream: str) -> str:
    """The kind and the unit in the name of a stream."""
    kind, _, rest = stream.partition(" ")
    return f"{kind} [{rest.rpartition('[')[2]}"


def _readings(
    process: RobotProcess, recording: Recording, deviations: Mapping[str, ArrayLike], delays: Mapping[str, float]
) -> Iterable[tuple[Measurement, Any, Bool[np.ndarray, " n"], float]]:
    """Each measurement, its values at all times, a mask of its readings, and its delay, s."""
    model = process.model

    def noise(kind: str, columns: Any = ...) -> Array:
        if kind not in deviations:
            raise ValueError(f"deviations: expected a standard deviation of {kind!r}, got {', '.join(deviations)}")
        whole = np.asarray(deviations[kind], float)
        return jnp.asarray(np.broadcast_to(whole, (model.nv,))[columns] if kind in ("q", "v") else whole, model.dtype)

    units = np.array([name.rpartition("[")[2].removesuffix("/s]") for name in v_names(model)])
    for name, q, v in encoders(model):
        own = int(q[0]), int(q[-1]) + 1
        values = jnp.asarray(recording.q[:, own[0] : own[1]], model.dtype)
        there = recording.valid("q")[:, v].all(axis=1)
        group = None
        h: Callable[..., Any] = _Components(*own)
        if len(q) != len(v):
            h, group, values = _Pose(*own), SO3 if len(q) == 4 else SE3, jax.vmap(_pose)(values)
        yield Measurement(h, noise("q", v), group, name=f"q {name} [{_listed(units[v])}]"), values, there, 0.0
    if recording.v is not None:
        for name, v in channel_parts(model, "v"):
            h = _Components(model.nq + int(v[0]), model.nq + int(v[-1]) + 1)
            there = recording.valid("v")[:, v].all(axis=1)
            if there.any():
                name = f"v {name} [{_listed(units[v], '/s')}]"
                yield Measurement(h, noise("v", v), name=name), recording.v[:, v], there, delays.get("v", 0.0)
    for frame, values in recording.imu.items():
        delay, valid = delays.get(f"imu {frame}", 0.0), recording.valid(f"imu {frame}")
        for kind, h, unit, part in (
            ("accelerometer", _Accelerometer(process, frame), "m/s^2", slice(0, 3)),
            ("gyroscope", _Gyroscope(process, frame), "rad/s", slice(3, 6)),
        ):
            if valid[:, part].any():
                name = f"{kind} {frame} [{unit}]"
                measurement = Measurement(h, noise(kind), None, kind == "accelerometer", name)
                yield measurement, values[:, part], valid[:, part].all(axis=1), delay


def _listed(units: np.ndarray, rate: str = "") -> str:
    return ", ".join(f"{unit}{rate}" for unit in dict.fromkeys(units))


def _inputs(recording: Recording, dt: float, delay: float) -> Inputs:
    """The joint forces from the first time on, each held over steps of at most dt."""
    first, time = recording.time[0], recording.time - delay
    tau = np.zeros((len(time), recording.model.nv)) if recording.tau is None else recording.tau
    held = np.concatenate([(tau[1:] + tau[:-1]) / 2, tau[-1:]])
    steps = np.diff(time)
    counts = np.append(np.maximum(np.ceil(np.round(steps / dt, 6)), 1).astype(int), 1)
    starts = np.repeat(np.cumsum(counts) - counts, counts)
    share = (np.arange(len(starts)) - starts) / np.repeat(counts, counts)
    ts = np.repeat(time, counts) + share * np.repeat(np.append(steps, 0), counts)
    # the last of those before the start is held there
    kept = max(int(np.searchsorted(ts, first, side="right")) - 1, 0)
    ts = ts[kept:]
    ts[0] = first
    return Inputs(ts, jnp.asarray(np.repeat(held, counts, axis=0)[kept:], recording.model.dtype))
