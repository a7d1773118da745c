"""Smoothing: states given all readings of a record, those of later times included."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.linalg import block_diag
from jaxtyping import Bool, Float

from lgsim._compile.xla import compiled
from lgsim.estimate.factors import small, smoothed, triangular
from lgsim.estimate.gaussian import Gaussian
from lgsim.estimate.linear_smoother import LinearProblem, parallel, sequential
from lgsim.estimate.measurement import Inputs, Measurement, Stream, missing
from lgsim.estimate.methods import EKF
from lgsim.estimate.processes import Process
from lgsim.estimate.record_filter import Estimate, arranged, run, scheduled
from lgsim.lie.action import Action, Point
from lgsim.lie.group import norm

SETTLED = 1e-3
"""The largest last correction of a motion that has converged, in deviations."""


class Smoothed(eqx.Module):
    """States given all readings.

    Attributes:
        ts: Times (k,), s.
        means: The means, points with a leading axis k.
        factors: Triangular factors of the covariances (k, n, n), of errors by ``error``.
        last_step: Of ``maximum_a_posteriori`` the largest correction of its last iteration, in units of the deviations
            of the result; NaN of ``smooth``, which does not iterate.
        names: The names of the components of the error.
    """

    ts: Float[np.ndarray, "*batch k"] | Float[Array, "*batch k"]
    means: Point
    factors: Float[Array, "*batch k n n"]
    error: Action
    last_step: Float[Array, "*batch"]
    names: tuple[str, ...] = eqx.field(static=True)

    def at(self, index: int) -> Gaussian:
        """The distribution at a time, by its index."""
        return Gaussian(jax.tree.map(lambda a: a[index], self.means), self.factors[index], self.error)

    @property
    def deviations(self) -> Float[Array, "*batch k n"]:
        """The standard deviations of the components of the error."""
        return norm(self.factors)

    @property
    def converged(self) -> Bool[Array, "*batch"]:
        """True if the last correction was below 1e-3 deviations, so that the result is the most probable motion."""
        return self.last_step < SETTLED


@compiled
def smooth(estimate: Estimate) -> Smoothed:
    """The smoother of Rauch, Tung and Striebel on a manifold, of a filtered record, by factors.

    Backwards in time with the gain ``G = P F^T P-^-1``: the mean is moved by ``G difference(predicted, smoothed next)``
    and the covariance becomes ``P - G (P- - P_s) G^T``, see ``factors.smoothed``.

    Source: Rauch, Tung and Striebel 1965, Maximum likelihood estimates of linear dynamic systems; on groups Bourmaud,
    Megret, Giremus and Berthoumieu 2016, From intrinsic optimization to iterated extended Kalman filtering on Lie
    groups.
    """
    error = estimate.error
    backward = small(smoothed, error.dim)

    def back(after: tuple[Point, Array], now: Any) -> tuple[tuple[Point, Array], tuple[Point, Array]]:
        mean, factor = after
        own, L, prediction = now
        gap = error.difference(prediction.gaussian.mean, mean)
        e, spread = backward(L, prediction.image, prediction.rest, prediction.gaussian.factor, factor, gap)
        state = error.move(e, own)
        return (state, spread), (state, spread)

    last = jax.tree.map(lambda a: a[-1], (estimate.means, estimate.factors))
    past = jax.tree.map(lambda a: a[:-1], (estimate.means, estimate.factors))
    coming = jax.tree.map(lambda a: a[1:], estimate.predictions)
    _, found = jax.lax.scan(back, last, (*past, coming), reverse=True)
    means, factors = jax.tree.map(lambda a, b: jnp.concatenate([a, b[None]]), found, last)
    return Smoothed(estimate.ts, means, factors, error, jnp.full((), np.nan, estimate.factors.dtype), estimate.names)


def maximum_a_posteriori(
    process: Process,
    start: Gaussian,
    streams: Stream | Sequence[Stream],
    *,
    inputs: Inputs | None = None,
    start_time: float | None = None,
    guess: Point | None = None,
    iterations: int = 10,
    lag: float | None = None,
    in_parallel: bool = False,
) -> Smoothed:
    """The most probable motion given all readings, with the covariances there, by Gauss and Newton.

    It minimizes the sum of squares of the start's error, of the noise of the process in each step and of all residuals,
    each in units of its deviation. Each iteration linearizes about the last motion and solves the linear problem by a
    filter and a smoother, whose cost grows with the number of times alone. Without gates.

    Args:
        guess: The motion to begin with, states with a leading axis for all times; by default that of an ``EKF`` with
            ``smooth``.
        iterations: The number of iterations; ``Smoothed.converged`` says whether they were enough.
        lag: If given, each state is that of the most probable motion given the readings until so many seconds after
            it, as one who waits so long online knows it: what was before is the prediction of an ``EKF``.
        in_parallel: Solve each linear problem by associative scans over time: several times as many operations, which
            a device with many cores does at once.

    Source: Bell 1994, The iterated Kalman smoother as a Gauss-Newton method.
    """
    streams = (streams,) if isinstance(streams, Stream) else tuple(streams)
    filtered = None
    if guess is None or lag is not None:
        filtered = run(EKF(), process, start, streams, inputs=inputs, start_time=start_time)
        guess = smooth(filtered).means if guess is None else guess
    schedule = scheduled(streams, inputs, start_time)
    steps, held, values, there = arranged(schedule, streams, inputs)
    measurements = tuple(stream.measurement for stream in streams)
    if lag is None or filtered is None:
        found = _most_probable(process, measurements, start, guess, steps, held, values, there, iterations, in_parallel)
    else:
        index, live = windows(schedule.ts, lag)
        parts = jax.tree.map(lambda a: a[index], (guess, steps, held, values, there))
        there = tuple(is_there & live for is_there in parts[-1])
        starts = filtered.predictions.gaussian
        found = _of_windows(process, measurements, (starts, *parts[:-1], there), iterations, in_parallel)
    means, factors, last = found
    return Smoothed(schedule.ts, means, factors, start.error, last, process.names)


def windows(ts: np.ndarray, lag: float) -> tuple[np.ndarray, np.ndarray]:
    """The windows of a fixed lag: for each time the indices of those from it on (k, w), and which are within the lag.

    Raises:
        ValueError: the lag is negative or not finite.
    """
    if not 0 <= lag < np.inf:
        raise ValueError(f"lag: expected a time of zero or more seconds, got {lag}")
    k = np.arange(len(ts))
    ends = np.searchsorted(ts, ts + lag, side="right")
    index = k[:, None] + np.arange(np.max(ends - k))
    return np.minimum(index, len(ts) - 1), index < ends[:, None]


@compiled
def _of_windows(
    process: Process,
    measurements: tuple[Measurement, ...],
    each: tuple[Any, ...],
    iterations: int,
    in_parallel: bool,
) -> tuple[Point, Array, Array]:
    """The first state of the most probable motion in each window.

    Args:
        each: Starts, guesses, steps, inputs, readings and whether there is one, with a leading axis of the windows.
    """

    def first(now: tuple[Any, ...]) -> tuple[Point, Array, Array]:
        start, guess, steps, held, values, there = now
        means, factors, last = _most_probable(
            process, measurements, start, guess, steps, held, values, there, iterations, in_parallel
        )
        return (*jax.tree.map(lambda a: a[0], (means, factors)), last)

    means, factors, last = jax.lax.map(first, each)
    return means, factors, jnp.max(last)


@compiled
def _most_probable(
    process: Process,
    measurements: tuple[Measurement, ...],
    start: Gaussian,
    guess: Point,
    steps: Float[Array, " k"],
    held: Any,
    values: tuple[Any, ...],
    there: tuple[Bool[Array, " k"], ...],
    iterations: int,
    in_parallel: bool,
) -> tuple[Point, Array, Array]:
    error = start.error

    def improved(carried: tuple[Point, Array, Array], _: None) -> tuple[tuple[Point, Array, Array], None]:
        motion = carried[0]
        corrections, factors = _corrections(
            process, measurements, start, motion, steps, held, values, there, in_parallel
        )
        motion = jax.vmap(error.move)(corrections, motion)
        size = jnp.sqrt(jnp.sum(factors**2, axis=-1))
        share = jnp.abs(corrections) / jnp.where(size == 0, 1, size)
        return (motion, factors, jnp.max(jnp.where(size == 0, 0, share))), None

    n = error.dim
    first = (guess, jnp.zeros((len(steps), n, n), start.factor.dtype), jnp.zeros((), start.factor.dtype))
    return jax.lax.scan(improved, first, None, length=iterations)[0]


def _corrections(
    process: Process, measurements: tuple[Measurement, ...], start: Gaussian, motion: Point, steps: Any, held: Any,
    values: tuple[Any, ...], there: tuple[Any, ...], in_parallel: bool,
) -> tuple[Float[Array, "k n"], Float[Array, "k n n"]]:  # fmt: skip
    """The errors (k, n) of a motion that are most probable by the problem linearized about it, and their factors."""
    error, dtype = start.error, start.factor.dtype
    n = error.dim
    zero = jnp.zeros(n, dtype)

    def gap(before: Point, after: Point) -> tuple[Array, Array]:
        """The error of a point and its derivative with respect to a correction of it."""
        return error.difference(before, after), jax.jacfwd(lambda e: error.difference(before, error.move(e, after)))(
            zero
        )

    transition = process.program(lambda process, *at: process.transition(error, *at), process)

    def tied(y: Point, following: Point, u: Any, dt: Array) -> tuple[Array, Array, Array]:
        """c, F and G of ``e' = c + F e + G w`` for the corrections of two points in turn."""
        end, slope, noise = transition(y, u, dt)
        c, A = gap(end, following)
        # a correction of y moves the end itself, about which the noise is
        B = jax.jacfwd(lambda e: error.difference(error.move(e, end), following))(zero)
        found = jnp.linalg.solve(A, jnp.concatenate([c[:, None], B @ slope, noise], axis=1))
        return -found[:, 0], -found[:, 1 : n + 1], found[:, n + 1 :]

    ahead = jax.tree.map(lambda a: a[1:], (motion, held, jnp.asarray(steps, dtype)))
    shifts, slopes, noises = jax.vmap(tied)(jax.tree.map(lambda a: a[:-1], motion), *ahead)
    # the first time has no step before it
    c, A = gap(start.mean, jax.tree.map(lambda a: a[0], motion))
    shifts, slopes, noises = (jnp.pad(a, ((1, 0), *[(0, 0)] * (a.ndim - 1))) for a in (shifts, slopes, noises))
    r, H, N = jax.vmap(lambda *at: _stacked(measurements, error, *at))(motion, held, values, there)
    first = jnp.linalg.solve(A, jnp.concatenate([c[:, None], start.factor], axis=1))
    problem = LinearProblem(-first[:, 0], triangular(first[:, 1:]), slopes, shifts, noises, r, H, N)
    return parallel(problem) if in_parallel else sequential(problem)


def _stacked(
    measurements: tuple[Measurement, ...], error: Action, y: Point, u: Any, values: tuple[Any, ...], there: Any
) -> tuple[Float[Array, " m"], Float[Array, "m n"], Float[Array, "m k"]]:
    """The residuals of all readings at a time, their derivatives and the factor of their noise; zero for none."""
    rows = []
    for measurement, z, is_there in zip(measurements, values, there, strict=True):
        used = is_there & ~missing(z)
        safe = jax.tree.map(lambda a, b, used=used: jnp.where(used, a, b), z, measurement.predicted(y, u))
        r, H, N = measurement.linearized(error, y, u, safe)
        rows.append((jnp.where(used, r, 0), jnp.where(used, H, 0), N))
    residuals, slopes, noises = zip(*rows, strict=True)
    return jnp.concatenate(residuals), jnp.concatenate(slopes), block_diag(*noises)
