"""Recordings by random numbers: a true motion with the noise of its process, and readings of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float

from lgsim._compile.xla import compiled
from lgsim.estimate.measurement import Inputs, Measurement, Stream
from lgsim.estimate.processes import Process
from lgsim.estimate.record_filter import arranged, scheduled
from lgsim.lie.action import Point


class Recording(NamedTuple):
    """A random motion and its readings.

    Attributes:
        ts: All times (k,), s.
        states: The true states at these times.
        streams: The readings.
    """

    ts: Float[np.ndarray, " k"]
    states: Point
    streams: tuple[Stream, ...]


def record(
    process: Process,
    start: Point,
    readings: Sequence[tuple[Measurement, ArrayLike | Sequence[float]]],
    key: Array,
    *,
    inputs: Inputs | None = None,
    start_time: float | None = None,
) -> Recording:
    """Draw a motion from a state and readings of measurements at given times (``readings`` pairs them).

    Its noise is that which a filter of the process assumes, so that ``nees`` of many draws decides whether the
    filter is consistent. Under ``jax.vmap`` over the key and the start it makes many recordings.
    """
    empty = tuple(
        Stream(measurement, ts, jax.tree.map(
            lambda a, ts=ts: jnp.zeros((len(ts), *a.shape), a.dtype),
            jax.eval_shape(measurement.predicted, start, _first(inputs)),
        ))
        for measurement, ts in ((m, np.asarray(ts, float)) for m, ts in readings)
    )  # fmt: skip
    schedule = scheduled(empty, inputs, start_time)
    steps, held, _, _ = arranged(schedule, empty, inputs)
    move, read = jax.random.split(key)
    states = _moved(process, start, steps, held, move)
    streams = []
    for i, (stream, index) in enumerate(zip(empty, schedule.readings, strict=True)):
        at = np.flatnonzero(index >= 0)
        there, inputs_there = jax.tree.map(lambda a, at=at: a[at], (states, held))
        keys = jax.random.split(jax.random.fold_in(read, i), len(at))
        values = _readings(stream.measurement, there, inputs_there, keys)
        streams.append(Stream(stream.measurement, stream.ts, values))
    return Recording(schedule.ts, states, tuple(streams))


def _first(inputs: Inputs | None) -> Any:
    return None if inputs is None else jax.tree.map(lambda a: a[0], inputs.values)


@compiled
def _moved(process: Process, start: Point, steps: Float[Array, " k"], held: Any, key: Array) -> Point:
    start = jax.tree.map(jnp.asarray, start)
    dtype = jax.tree.leaves(start)[0].dtype

    transition = process.program(lambda process, *at: process.transition(process.space, *at), process)

    def advance(y: Point, now: Any) -> tuple[Point, Point]:
        dt, u, key, first = now
        end, _, noise = transition(y, u, dt)
        moved = process.space.move(noise @ jax.random.normal(key, noise.shape[1:], dtype), end)
        y = jax.tree.map(lambda a, b: jnp.where(first, a, b), y, moved)
        return y, y

    keys = jax.random.split(key, len(steps))
    return jax.lax.scan(advance, start, (jnp.asarray(steps, dtype), held, keys, jnp.arange(len(steps)) == 0))[1]


@compiled
def _readings(measurement: Measurement, states: Point, held: Any, keys: Array) -> Any:
    def one(y: Point, u: Any, key: Array) -> Any:
        value = measurement.predicted(y, u)
        size = len(measurement.residual(value, value))
        factor = measurement.factor(size, jax.tree.leaves(value)[0].dtype)
        noise = factor @ jax.random.normal(key, factor.shape[1:], factor.dtype)
        return value + noise if measurement.group is None else measurement.group.compose(
            value, measurement.group.exp(noise)
        )  # fmt: skip

    return jax.vmap(one)(states, held, keys)
