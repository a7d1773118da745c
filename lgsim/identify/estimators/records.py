"""Sensor records on the time grid of the simulation, and their windows: the input of estimators that simulate."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float, Int

from lgsim.identify.estimators.sensors import ImuSensor, PositionSensor, Sensor, VelocitySensor
from lgsim.identify.recording.recording import Recording
from lgsim.identify.unknowns.plant import NumbersLike, Plant
from lgsim.identify.unknowns.sensor_plant import MAX_DELAY_STEPS
from lgsim.multibody.model import Model
from lgsim.support import check
from lgsim.support.check import is_traced


class Channel(eqx.Module):
    """The measurements of one sensor; arrays may have a leading axis of data sets.

    Attributes:
        sensor: The sensor model.
        values: Readings (nodes, ...); any finite values where the weight is zero.
        deviation: Standard deviation of each degree of freedom of the readings, one value or (size,).
        weight: Weight of each reading: one value, one for each node (nodes,), or all (nodes, size).

    Raises:
        TypeError: the argument is not a sensor.
    """

    sensor: Sensor
    values: Float[Array, " nodes *shape"]
    deviation: Float[Array, " *size"]
    weight: Float[Array, " *weights"]

    def __init__(self, sensor: Sensor, values: ArrayLike, deviation: NumbersLike, weight: NumbersLike = 1.0) -> None:
        if not isinstance(sensor, Sensor):
            raise TypeError(f"sensor: expected a sensor such as PositionSensor(), got {type(sensor).__name__}")
        self.sensor = sensor
        self.values = jnp.asarray(values)
        self.deviation = jnp.asarray(deviation, self.values.dtype)
        self.weight = jnp.asarray(weight, self.values.dtype)

    def broadcast(self, model: Model, name: str) -> Channel:
        """The channel with arrays of full shape and a leading axis of data sets.

        Args:
            name: The channel's name, for messages.

        Raises:
            ValueError: a shape is wrong, or a value with a weight is not finite.
            TypeError: the dtype differs from the model's.
        """
        shape, size = self.sensor.shape(model), len(self.sensor.labels(model))
        values = self.values
        if values.shape[values.ndim - len(shape) :] != shape or values.ndim - len(shape) not in (1, 2):
            raise ValueError(f"{name}: expected values of shape (nodes, {str(shape)[1:-1]}), got {values.shape}")
        if values.dtype != model.dtype:
            raise TypeError(f"{name}: expected {model.dtype}, the dtype of the model, got {values.dtype}")
        rows = values.shape[: values.ndim - len(shape)]
        weight, deviation = self.weight, self.deviation
        if weight.shape == rows:
            weight = weight[..., None]
        for what, array, wanted in (("weight", weight, (*rows, size)), ("deviation", deviation, (size,))):
            if array.ndim and np.broadcast_shapes(array.shape, wanted) != wanted:
                raise ValueError(f"{name}: expected a {what} of shape {wanted}, got {array.shape}")
        weight, deviation = jnp.broadcast_to(weight, (*rows, size)), jnp.broadcast_to(deviation, (size,))
        if len(rows) == 1:
            values, weight = values[None], weight[None]
        if not is_traced(values, weight, deviation):
            used = np.any(np.asarray(weight) > 0, axis=-1)
            fine = np.all(np.isfinite(np.asarray(values)).reshape(*used.shape, -1), axis=-1)
            if np.any(~fine):
                place = tuple(int(i) for i in np.argwhere(~fine)[0])[-1]
                word = "and has a weight" if used[~fine].any() else "though without weight"
                raise ValueError(f"{name}: row {place} is not finite {word}; give any finite number and weight 0")
            if not np.all(np.asarray(deviation) > 0):
                raise ValueError(f"{name}: expected standard deviations above zero, got {np.asarray(deviation)}")
        return Channel(self.sensor, values, deviation, weight)


class SensorRecords(eqx.Module):
    """Sensor readings and inputs of a motion at times ``t0 + k dt``; any sensors, at any of these times.

    All arrays may have a leading axis of data sets of equal length, which share the plant. There is one more node than
    steps.

    Attributes:
        dt: The simulation step, s.
        channels: Measurements by name.
        signals: Signals of the drives, constant over each step (steps, nv), in the units of ``Plant.signals``; None: no
            drives.
        wrenches: External wrenches on the bodies in the body frames, constant over each step (steps, bodies, 6), N and
            N m, or None.
        commands: Commands of the plant's actuators, constant over each step (steps, n), instead of signals; None for a
            plant without actuators.
        states: Guesses of the states (q, v) at the nodes (nodes, nq + nv); None to derive them from a
            ``PositionSensor`` channel.
        substeps: Number of integration steps within each step dt, for records that are slower than the motion; None
            for one.

    Raises:
        ValueError: there is no channel, both signals and commands are given, or there are no substeps.
    """

    dt: Float[Array, ""]
    channels: dict[str, Channel]
    signals: Float[Array, "... steps nv"] | None
    wrenches: Float[Array, "... steps bodies 6"] | None
    states: Float[Array, "... nodes state"] | None
    commands: Float[Array, "... steps _"] | None
    substeps: Int[Array, ""] | None

    def __init__(
        self,
        dt: ArrayLike,
        channels: Mapping[str, Channel],
        signals: ArrayLike | None = None,
        wrenches: ArrayLike | None = None,
        states: ArrayLike | None = None,
        commands: ArrayLike | None = None,
        substeps: int | Int[Array, ""] | None = None,
    ) -> None:
        self.dt = jnp.asarray(dt)
        if isinstance(substeps, int):
            check.count("substeps", substeps)
        self.substeps = None if substeps is None else jnp.asarray(substeps, jnp.int32)
        for name in channels:
            if not isinstance(name, str):
                raise TypeError(f"channels: expected names that are strings, got {name!r}")
        # sorted, as JAX flattens a dict: columns and labels keep one order inside and outside of jit
        self.channels = {name: channels[name] for name in sorted(channels)}
        if not self.channels:
            raise ValueError("channels: expected at least one, such as {'q': Channel(PositionSensor(), q, 1e-3)}")
        self.signals, self.wrenches, self.states, self.commands = (
            None if x is None else jnp.asarray(x) for x in (signals, wrenches, states, commands)
        )
        if signals is not None and commands is not None:
            raise ValueError(
                "commands: expected either signals or commands, got both; actuators convert commands to joint torques"
            )

    @classmethod
    def from_recording(
        cls, recording: Recording, deviations: Mapping[str, NumbersLike], commands: ArrayLike | None = None
    ) -> SensorRecords:
        """The records of a recording with a uniform sampling interval.

        Args:
            recording: A recording whose ``tau`` drives the joints: over each step, the mean of its two samples.
            deviations: Standard deviations of the fitted channels: "q", "v", "imu <frame>".
            commands: Commands of the plant's actuators at the times of the recording (nodes, n), each held until the
                next one, instead of ``tau``.

        Raises:
            ValueError: a channel does not exist, or the sampling interval varies by more than a hundredth of a step.
        """
        steps = np.diff(recording.time)
        dt = float(np.mean(steps))
        if not np.all(np.abs(steps - dt) < 0.01 * dt):
            raise ValueError(
                f"recording: expected uniform sampling, got steps from {steps.min():.3g} to {steps.max():.3g} s;"
                " resample with smooth"
            )
        sensors: dict[str, Sensor] = {"q": PositionSensor(), "v": VelocitySensor()}
        sensors |= {f"imu {frame}": ImuSensor(frame) for frame in recording.imu}
        channels = {}
        for name, deviation in deviations.items():
            if name not in recording.channels or name not in sensors:
                known = [c for c in recording.channels if c in sensors]
                raise ValueError(f"deviations: expected measurements of {', '.join(known)}, got {name!r}")
            channels[name] = Channel(sensors[name], recording.channels[name], deviation, recording.weights[name])
        tau = recording.tau
        states = None if recording.v is None else np.concatenate([recording.q, recording.v], axis=-1)
        if commands is not None:
            return cls(dt, channels, states=states, commands=jnp.asarray(commands)[:-1])
        return cls(dt, channels, None if tau is None else (tau[1:] + tau[:-1]) / 2, states=states)

    def broadcast(self, model: Model) -> SensorRecords:
        """The records with a leading axis of data sets in all arrays, validated against a model.

        Raises:
            ValueError: a shape is wrong, a value with a weight is not finite, or the initial states are unknown.
            TypeError: a dtype differs from the model's.
        """
        channels = {name: channel.broadcast(model, name) for name, channel in self.channels.items()}
        first = next(iter(channels))
        sets, nodes = channels[first].weight.shape[:2]
        for name, channel in channels.items():
            if channel.weight.shape[:2] != (sets, nodes):
                raise ValueError(
                    f"{name}: expected {nodes} nodes of {sets} data sets as in {first}, got"
                    f" {channel.weight.shape[1]} of {channel.weight.shape[0]}"
                )
        further = {
            "signals": (nodes - 1, model.nv),
            "wrenches": (nodes - 1, model.topology.bodies, 6),
            "states": (nodes, model.nq + model.nv),
            "commands": (nodes - 1, 0 if self.commands is None else self.commands.shape[-1]),
        }
        out = {}
        for name, shape in further.items():
            array = getattr(self, name)
            if array is not None:
                if array.shape not in (shape, (sets, *shape)):
                    raise ValueError(f"{name}: expected shape {shape}, or {(sets, *shape)}, got {array.shape}")
                if array.dtype != model.dtype:
                    raise TypeError(f"{name}: expected {model.dtype}, the dtype of the model, got {array.dtype}")
                array = jnp.broadcast_to(array, (sets, *shape))
            out[name] = array
        if out["states"] is None and not any(isinstance(c.sensor, PositionSensor) for c in channels.values()):
            raise ValueError(
                "states: expected a guess of the states, since there is no channel of PositionSensor(); got None"
            )
        return SensorRecords(self.dt.astype(model.dtype), channels, **out, substeps=self.substeps)

    @property
    def step(self) -> float:
        """The integration step, s."""
        return float(self.dt) / (1 if self.substeps is None else int(self.substeps))

    @property
    def weights(self) -> Float[Array, "sets nodes columns"]:
        """Weights of all channels, concatenated by column, of the output of ``broadcast``."""
        return jnp.concatenate([c.weight for c in self.channels.values()], axis=-1)


class Windows(NamedTuple):
    """Records in windows of equal length, of all data sets along one axis.

    Attributes:
        start: Guesses of the initial states (windows, state): q, v, actuator states.
        signals: Signals of the drives, or commands, (windows, MAX_DELAY_STEPS + steps, n); the first rows precede the
            window.
        wrenches: External wrenches (windows, steps, bodies, 6), or None.
        values: Readings by channel (windows, steps + 1, ...).
        weights: Weights by channel (windows, steps + 1, size), zero where a reading belongs to the next window.
        linked: 1 if the next window continues this one, else 0 (windows,).
        first: 1 if a data set starts here, else 0 (windows,).
    """

    start: Float[Array, "windows state"]
    signals: Float[Array, "windows _ _"]
    wrenches: Float[Array, "windows steps bodies 6"] | None
    values: dict[str, Float[Array, "windows _ *shape"]]
    weights: dict[str, Float[Array, "windows _ size"]]
    linked: Float[Array, " windows"]
    first: Float[Array, " windows"]


def cut_windows(records: SensorRecords, plant: Plant, steps: int | None, halfwidth: int) -> Windows:
    """Cut records into windows.

    Args:
        records: The output of ``broadcast``.
        plant: The model with its actuators.
        steps: Number of steps of a window; None for one window for each data set.
        halfwidth: As in ``_guess_states``.

    Raises:
        ValueError: there are commands but no actuators, signals and actuators, or the wrong number of commands.
    """
    model = plant.model
    sets, nodes = next(iter(records.channels.values())).weight.shape[:2]
    total = nodes - 1
    k = total if steps is None else min(steps, total)
    count = -(-total // k)
    node = k * np.arange(count)[:, None] + np.arange(k + 1)
    used = (node <= total) & ((np.arange(k + 1) < k) | (node == total))
    step = k * np.arange(count)[:, None] + np.arange(-MAX_DELAY_STEPS, k)

    def cut(x: Float[Array, "sets _ *shape"], at: Int[np.ndarray, "count k"]) -> Float[Array, "windows k *shape"]:
        return x[:, at].reshape(sets * count, *at.shape[1:], *x.shape[2:])

    at, during = np.clip(node, 0, total), np.clip(step, 0, total - 1)
    own = np.tile(used, (sets, 1))[..., None]
    weights = {name: jnp.where(own, cut(c.weight, at), 0) for name, c in records.channels.items()}
    signals = _inputs(records, plant, (sets, total))
    ends = np.tile(np.arange(count), sets)
    start = _guess_states(records, model, at[:, 0], halfwidth).reshape(sets * count, -1)
    if plant.actuators is not None:
        own = jax.vmap(partial(plant.actuators.start, model))(start[:, : model.nq], start[:, model.nq :])
        start = jnp.concatenate([start, own], axis=-1)
    return Windows(
        start,
        cut(signals, during),
        None if records.wrenches is None else cut(records.wrenches, during[:, MAX_DELAY_STEPS:]),
        {name: cut(c.values, at) for name, c in records.channels.items()},
        weights,
        jnp.asarray(ends < count - 1, model.dtype),
        jnp.asarray(ends == 0, model.dtype),
    )


def _inputs(records: SensorRecords, plant: Plant, shape: tuple[int, int]) -> Float[Array, "sets steps _"]:
    """The signals of all data sets, or the commands of a plant with actuators."""
    given, width = records.signals, plant.model.nv
    if plant.actuators is None and records.commands is not None:
        raise ValueError(
            "commands: expected a plant with actuators, got one without; add actuators, or give signals instead"
        )
    if plant.actuators is not None:
        if records.signals is not None:
            raise ValueError(
                "signals: expected commands, got signals; the plant's actuators compute the joint torques from commands"
            )
        given, width = records.commands, plant.actuators.commands
        if given is not None and given.shape[-1] != width:
            raise ValueError(f"commands: expected {width} for the plant's actuators, got {given.shape[-1]}")
    return jnp.zeros((*shape, width), plant.model.dtype) if given is None else given


def _guess_states(
    records: SensorRecords, model: Model, at: Int[np.ndarray, " count"], halfwidth: int
) -> Float[Array, "sets count state"]:
    """The states (q, v) at some nodes: from the records, or by parabolas through measured positions.

    Args:
        records: The output of ``broadcast``.
        halfwidth: Number of nodes on either side for the parabola fit.
    """
    if records.states is not None:
        return records.states[:, at]
    channel = next(c for c in records.channels.values() if isinstance(c.sensor, PositionSensor))
    total = channel.values.shape[1] - 1
    # at the ends the parabola keeps its width
    middle = np.clip(at, min(halfwidth, total // 2), total - min(halfwidth, total // 2))
    near = np.clip(middle[:, None] + np.arange(-halfwidth, halfwidth + 1), 0, total)
    span = max(halfwidth, 1)
    t = jnp.asarray((near - at[:, None]) / span, model.dtype)
    powers = jnp.stack([jnp.ones_like(t), t, t**2], axis=-1)
    base = channel.values[:, at]
    moved = model.difference(jnp.broadcast_to(base[:, :, None], (*base.shape[:2], near.shape[1], model.nq)),
                             channel.values[:, near])  # fmt: skip
    w = channel.weight[:, near]
    normal = jnp.einsum("dwji,wja,wjb->dwiab", w, powers, powers)
    right = jnp.einsum("dwji,wja,dwji->dwia", w, powers, moved)
    c = jnp.einsum("dwiab,dwib->dwia", jnp.linalg.pinv(normal, hermitian=True), right)
    v = c[..., 1] / (span * records.dt)
    for other in records.channels.values():
        if isinstance(other.sensor, VelocitySensor):
            v = jnp.where(other.weight[:, at] > 0, other.values[:, at], v)
    return jnp.concatenate([model.retract(base, c[..., 0]), v], axis=-1)
