"""Filtering of recorded readings: one program over the times of all streams, and what it found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float

from lgsim._compile.xla import compiled, straight_line
from lgsim.estimate.consistency import Verdict, chi_square_quantile, judged
from lgsim.estimate.factors import triangular
from lgsim.estimate.gaussian import Gaussian
from lgsim.estimate.measurement import Inputs, Measurement, Stream, missing
from lgsim.estimate.methods import Filter, Prediction
from lgsim.estimate.processes import Process
from lgsim.integrators.method import Number
from lgsim.lie.action import Action, Point
from lgsim.lie.group import norm


class Schedule(NamedTuple):
    """The times of a record, known before anything is computed.

    Attributes:
        ts: All times (k,), s, ascending; the start first.
        held: The index of the input that is held before each time (k,).
        readings: Of each stream the index of its reading at each time (k,); -1 for none.
    """

    ts: np.ndarray
    held: np.ndarray
    readings: tuple[np.ndarray, ...]


class Estimate(eqx.Module):
    """Filtered states: at each time the distribution given all readings up to it.

    Attributes:
        ts: Times (k,), s.
        means: The means, points with a leading axis k.
        factors: Triangular factors of the covariances (k, n, n), of errors by ``error``.
        predictions: The distributions before each time's readings, with what a smoother needs.
        nis: Of each stream, by the name of its measurement, the squared normalized residuals (k,); NaN where there was
            no reading.
        gated: Of each stream the readings that its gate kept out (k,).
        loglikelihood: The logarithm of the density of all readings that were used.
        names: The names of the components of the error.
        dims: The name of each stream and the number of components of its readings.
    """

    ts: Float[np.ndarray, "*batch k"] | Float[Array, "*batch k"]
    means: Point
    factors: Float[Array, "*batch k n n"]
    error: Action
    predictions: Prediction
    nis: dict[str, Float[Array, "*batch k"]]
    gated: dict[str, Bool[Array, "*batch k"]]
    loglikelihood: Float[Array, "*batch"]
    names: tuple[str, ...] = eqx.field(static=True)
    dims: tuple[tuple[str, int], ...] = eqx.field(static=True)

    @property
    def last(self) -> Gaussian:
        """The distribution at the last time."""
        return self.at(-1)

    def at(self, index: int) -> Gaussian:
        """The distribution at a time, by its index."""
        return Gaussian(jax.tree.map(lambda a: a[index], self.means), self.factors[index], self.error)

    @property
    def deviations(self) -> Float[Array, "*batch k n"]:
        """The standard deviations of the components of the error."""
        return norm(self.factors)

    @property
    def verdict(self) -> Verdict:
        """The verdict on one record: consistency of each stream, and directions that were not observed."""
        nis = {name: np.asarray(values) for name, values in self.nis.items()}
        last = jax.tree.map(lambda a: np.asarray(a[-1]), (self.means, self.factors))
        finite = all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(last))
        return judged(finite, nis, dict(self.dims), self.names, last[1], np.asarray(_unread(self)))


def run(
    method: Filter,
    process: Process,
    start: Gaussian,
    streams: Stream | Sequence[Stream],
    *,
    inputs: Inputs | None = None,
    start_time: float | None = None,
) -> Estimate:
    """Filter recorded readings of any number of streams, each at its own times.

    Between two times of any stream or input the distribution is moved by the process, with the input that was held
    last; at each time it is changed by the readings that are not NaN, in the order of ``streams``. It is one program,
    can be mapped by ``jax.vmap`` over values of streams and inputs and the start, and is differentiable in all of them,
    in the process and in the noise of the measurements. The times are numbers of the program.

    Args:
        method: ``EKF()``, ``InvariantEKF(error=...)``, ``IteratedEKF()`` or ``UKF()``.
        process: How the state moves.
        start: The distribution of the state at ``start_time``.
        streams: The readings.
        inputs: The inputs of the process, if it has any.
        start_time: By default the first time of all streams and inputs, s.

    Raises:
        TypeError: an argument is of the wrong kind.
        ValueError: two streams have one name, a reading is from before the start, an input is missing at the start, or
            shapes do not fit.
    """
    streams = (streams,) if isinstance(streams, Stream) else tuple(streams)
    _check(method, process, start, streams, inputs)
    schedule = scheduled(streams, inputs, start_time)
    start = method.prepared(start)
    measurements = tuple(stream.measurement for stream in streams)
    u = None if inputs is None else jax.tree.map(lambda a: a[0], inputs.values)
    dims = {s.measurement.name: _size(s, u, start) for s in streams}
    limits = tuple(np.inf if s.gate is None else chi_square_quantile(s.gate, dims[s.measurement.name]) for s in streams)
    steps, held, values, there = arranged(schedule, streams, inputs)
    outcome = _filtered(method, process, measurements, start, steps, held, values, there, limits)
    (means, factors, predictions), nis, gated, loglikelihood = outcome
    names = [measurement.name for measurement in measurements]
    return Estimate(
        schedule.ts, means, factors, start.error, predictions, dict(zip(names, nis, strict=True)),
        dict(zip(names, gated, strict=True)), loglikelihood, process.names, tuple(dims.items()),
    )  # fmt: skip


@compiled
def _filtered(
    method: Filter,
    process: Process,
    measurements: tuple[Measurement, ...],
    start: Gaussian,
    steps: Float[Array, " k"],
    held: Any,
    values: tuple[Any, ...],
    there: tuple[Bool[Array, " k"], ...],
    limits: tuple[Any, ...],
) -> Any:
    dtype = start.factor.dtype

    def advance(state: Gaussian, now: Any) -> Any:
        dt, u, readings, present, first = now
        prediction = predicted(method, process, state, u, dt, first)
        state, nis, gated, density = prediction.gaussian, [], [], jnp.zeros((), dtype)
        for measurement, z, is_there, limit in zip(measurements, readings, present, limits, strict=True):
            state, found = used(method, process, measurement, state, u, z, is_there, limit)
            nis.append(found.nis)
            gated.append(found.gated)
            density += found.loglikelihood
        return state, ((state.mean, state.factor, prediction), tuple(nis), tuple(gated), density)

    times = (jnp.asarray(steps, dtype), held, values, there, jnp.arange(len(steps)) == 0)
    _, (states, nis, gated, densities) = jax.lax.scan(advance, start, times)
    return states, nis, gated, jnp.sum(densities)


def predicted(
    method: Filter, process: Process, before: Gaussian, u: Any, dt: Number, first: Bool[Array, ""] | bool = False
) -> Prediction:
    """The distribution after a step of the process; ``first``: at the start of a record nothing moves."""
    operands = (before, u, jnp.asarray(dt, before.factor.dtype), jnp.asarray(first))
    if not process.is_formula:
        return _moved(method, process, *operands)
    # two programs of one trace: what only a smoother needs is not computed without one
    arrays, static = eqx.partition((method, process, *operands), eqx.is_array)
    traced: Any = eqx.filter_closure_convert(lambda arrays: _moved(*eqx.combine(arrays, static)), arrays)
    gaussian = straight_line(lambda arrays: traced(arrays).gaussian)(arrays)
    return Prediction(gaussian, *straight_line(lambda arrays: traced(arrays)[1:])(arrays))


def _moved(
    method: Filter, process: Process, before: Gaussian, u: Any, dt: Array, first: Array | bool = False
) -> Prediction:
    """A step of a process; ``first`` as in ``predicted``."""
    state = Gaussian(before.mean, jnp.triu(before.factor), before.error)
    moved = method.predict(process, state, u, dt)
    # a discrete process has no step of zero seconds
    still = Prediction(
        state, jnp.eye(*moved.slope.shape, dtype=dt.dtype), jnp.zeros_like(moved.noise), state.factor,
        jnp.zeros_like(moved.rest),
    )  # fmt: skip
    return jax.tree.map(lambda a, b: jnp.where(first, a, b), still, moved)


class Found(NamedTuple):
    """The evidence of one reading, as in ``Estimate``."""

    nis: Float[Array, ""]
    gated: Bool[Array, ""]
    loglikelihood: Float[Array, ""]


def used(
    method: Filter,
    process: Process,
    measurement: Measurement,
    before: Gaussian,
    u: Any,
    z: Any,
    is_there: Bool[Array, ""] | bool = True,
    limit: Number = np.inf,
) -> tuple[Gaussian, Found]:
    """The distribution given a reading, unless it is NaN, not there, or its squared residual beyond the limit."""
    dtype = before.factor.dtype

    def read(
        method: Filter, measurement: Measurement, before: Gaussian, u: Any, z: Any, limit: Array
    ) -> tuple[Gaussian, Found]:
        before = Gaussian(before.mean, jnp.triu(before.factor), before.error)
        gone = missing(z)
        # what is not used must not make a derivative NaN
        safe = jax.tree.map(lambda a, b: jnp.where(gone, b, a), z, measurement.predicted(before.mean, u))
        after, nis, density = method.update(measurement, before, u, safe)
        beyond = nis > limit
        keep = gone | beyond
        state = jax.tree.map(lambda a, b: jnp.where(keep, a, b), before, after)
        return state, Found(jnp.where(gone, np.nan, nis), beyond & ~gone, jnp.where(keep, 0, density))

    def program(before: Gaussian) -> tuple[Gaussian, Found]:
        return process.program(read, method, measurement)(before, u, z, jnp.asarray(limit, dtype))

    def skip(before: Gaussian) -> tuple[Gaussian, Found]:
        return before, Found(jnp.full((), np.nan, dtype), jnp.zeros((), bool), jnp.zeros((), dtype))

    return program(before) if is_there is True else jax.lax.cond(is_there, program, skip, before)


@compiled
def step(
    method: Filter,
    process: Process,
    state: Gaussian,
    dt: Number,
    readings: Sequence[tuple[Measurement, Any]] = (),
    u: Any = None,
) -> tuple[Gaussian, tuple[Float[Array, ""], ...]]:
    """One step of a filter that runs online: the state after the time dt, s, with an input u, given readings there.

    Returns:
        The distribution and the squared normalized residual of each reading; NaN readings are left out.
    """
    whole = process.program(lambda *given: _moved(*given).gaussian, method, process)
    state = whole(state, u, jnp.asarray(dt, state.factor.dtype))
    nis = []
    for measurement, z in readings:
        state, found = used(method, process, measurement, state, u, z)
        nis.append(found.nis)
    return state, tuple(nis)


def scheduled(streams: Sequence[Stream], inputs: Inputs | None, start_time: float | None) -> Schedule:
    """The times of a record.

    Raises:
        ValueError: a reading is from before the start, or no input is held there.
    """
    shown = [stream.ts - stream.delay for stream in streams]
    every = [*shown, *([] if inputs is None else [inputs.ts])]
    first = min(ts[0] for ts in every) if start_time is None else float(start_time)
    for stream, ts in zip(streams, shown, strict=True):
        if ts[0] < first:
            raise ValueError(
                f"ts of '{stream.measurement.name}': expected readings from the start at {first:.9g} s on, got "
                f"one of {ts[0]:.9g} s (its delay included)"
            )
    ts = np.unique(np.concatenate([[first], *shown, *([] if inputs is None else [inputs.ts[inputs.ts >= first]])]))
    held = np.zeros(len(ts), int)
    if inputs is not None:
        if inputs.ts[0] > first:
            raise ValueError(
                f"ts of the inputs: expected an input from the start at {first:.9g} s on, got the first at "
                f"{inputs.ts[0]:.9g} s"
            )
        before = np.concatenate([ts[:1], ts[:-1]])
        held = np.searchsorted(inputs.ts, before, side="right") - 1
        if inputs.ends is not None:
            _check_whole(inputs.ts[held[1:]], inputs.ends[held[1:]], ts)
    readings = []
    for times in shown:
        index = np.full(len(ts), -1)
        index[np.searchsorted(ts, times)] = np.arange(len(times))
        readings.append(index)
    return Schedule(ts, held, tuple(readings))


def _check_whole(starts: np.ndarray, ends: np.ndarray, ts: np.ndarray) -> None:
    """Raise ValueError unless each step is one whole input."""
    wrong = np.flatnonzero((starts != ts[:-1]) | (ends != ts[1:]))
    if len(wrong):
        i = int(wrong[0])
        raise ValueError(
            f"inputs: expected steps from one time of preintegrate to the next, got one from {ts[i]:.9g} to "
            f"{ts[i + 1]:.9g} s in the increment from {starts[i]:.9g} to {ends[i]:.9g} s; give the times of all "
            "readings to preintegrate"
        )


def arranged(schedule: Schedule, streams: Sequence[Stream], inputs: Inputs | None) -> Any:
    """Steps (k,), inputs, and of each stream readings and whether there is one, at the times of a schedule."""
    values = tuple(
        jax.tree.map(lambda a, index=index: a[np.maximum(index, 0)], stream.values)
        for stream, index in zip(streams, schedule.readings, strict=True)
    )
    held = None if inputs is None else jax.tree.map(lambda a: a[schedule.held], inputs.values)
    steps = jnp.asarray(np.diff(schedule.ts, prepend=schedule.ts[0]))
    return steps, held, values, tuple(jnp.asarray(i >= 0) for i in schedule.readings)


def _check(method: Any, process: Any, start: Any, streams: Sequence[Any], inputs: Any) -> None:
    kinds = (("method", method, Filter), ("process", process, Process), ("start", start, Gaussian))
    optional = () if inputs is None else (("inputs", inputs, Inputs),)
    for name, value, kind in (*kinds, *((f"streams[{i}]", s, Stream) for i, s in enumerate(streams)), *optional):
        if not isinstance(value, kind):
            raise TypeError(f"{name}: expected a {kind.__name__}, got {type(value).__name__}")
    if not streams:
        raise ValueError("streams: expected at least one")
    if start.error.dim != process.space.dim:
        raise ValueError(
            f"start: expected a state of {process.space.dim} components of the error, as the process has, got "
            f"{start.error.dim}"
        )
    names = [stream.measurement.name for stream in streams]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"streams: expected one name for each measurement, got '{twice[0]}' twice")


def _size(stream: Stream, u: Any, start: Gaussian) -> int:
    """The number of components of a reading.

    Raises:
        ValueError: readings have another shape than the function of the state.
    """
    measurement = stream.measurement
    predicted = jax.eval_shape(measurement.predicted, start.mean, u)
    one = jax.tree.map(lambda a: a[0], stream.values)
    shapes = [jax.tree.map(lambda a: a.shape, value) for value in (predicted, one)]
    if shapes[0] != shapes[1]:
        raise ValueError(
            f"values of '{measurement.name}': expected readings of the shape {shapes[0]}, as h has, got {shapes[1]}"
        )
    return len(jax.eval_shape(measurement.residual, predicted, one))


@compiled
def _unread(estimate: Estimate) -> Float[Array, "n n"]:
    """The factor at the last time if there had been no reading, by the same linearizations."""

    def advance(factor: Array, found: Any) -> tuple[Array, None]:
        slope, noise = found
        return triangular(jnp.concatenate([noise, slope @ factor], axis=1)), None

    first = estimate.predictions.gaussian.factor[0]
    rest = jax.tree.map(lambda a: a[1:], (estimate.predictions.slope, estimate.predictions.noise))
    return jax.lax.scan(advance, first, rest)[0]
