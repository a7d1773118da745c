"""Preintegration: many readings of an IMU as one input of a process, for a filter or smoother with fewer states."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float

from lgsim._compile.xla import compiled
from lgsim.estimate.factors import triangular
from lgsim.estimate.imu_navigation import NAMES, ImuNavigation, State
from lgsim.estimate.measurement import Inputs, check_times
from lgsim.estimate.processes import Process
from lgsim.integrators.method import Number
from lgsim.lie.action import Action, Product, RightTranslation, Translation
from lgsim.lie.extended_pose import SE23
from lgsim.lie.group import Element

BODY = Product(RightTranslation(SE23), Translation(6))
"""The error in the body's axes, in which the noise of readings does not depend on the state."""


class Increment(NamedTuple):
    """The motion that readings of an IMU make of a body at rest at the origin, without gravity.

    Attributes:
        motion: The motion Y, an extended pose.
        slope: The derivative of the error of Y in the body's axes with respect to the biases (9, 6).
        bias: The biases for which Y was computed (6,).
        noise: A factor of the covariance of the errors of Y and of the biases at the end (15, 15).
        duration: The time from the first to the last, s.
    """

    motion: Element
    slope: Float[Array, "*batch 9 6"]
    bias: Float[Array, "*batch 6"]
    noise: Float[Array, "*batch 15 15"]
    duration: Float[Array, "*batch"]


class PreintegratedNavigation(Process):
    """The motion of a body by increments: ``X' = G F(X) Y exp(J (b - b0))`` for the extended pose X, biases held.

    G is the fall and F the motion without forces over the duration. The step is that of ``ImuNavigation`` over all
    readings, exact in X; in the biases it is exact to first order about b0.

    Attributes:
        gravity: As of ``ImuNavigation``.
        names: As of ``ImuNavigation``.

    Source: Brossard, Barrau, Chauchat and Bonnabel 2021, Associating uncertainty to extended poses for on manifold IMU
    preintegration.
    """

    gravity: Float[Array, " 3"]

    @property
    def space(self) -> Action:
        return BODY

    @property
    def is_formula(self) -> bool:
        return True

    @property
    def names(self) -> tuple[str, ...]:
        return NAMES

    def step(self, y: State, u: Increment, dt: Number) -> State:
        """The state at the end of an increment, whatever dt is."""
        (R, x), bias = y
        v, p = x[:3], x[3:]
        fall = self.gravity.astype(x.dtype) * u.duration
        free = R, jnp.concatenate([v + fall, p + (v + fall / 2) * u.duration])
        moved = SE23.compose(free, u.motion)
        return SE23.compose(moved, SE23.exp(u.slope @ (bias - u.bias))), bias

    def noise(self, y: State, u: Increment, dt: Number) -> Float[Array, "15 15"]:
        return u.noise


def preintegrate(
    process: ImuNavigation, inputs: Inputs, ts: ArrayLike | Sequence[float], bias: ArrayLike = 0.0
) -> tuple[PreintegratedNavigation, Inputs]:
    """A process with one step between each two of the times ts, and its inputs, from the readings of an IMU.

    A record of readings at these times is filtered as by ``process`` with ``inputs``, with a state at these times
    alone. If estimated biases leave ``bias`` far behind, in units of what changes the motion, repeat it about them.

    Args:
        process: The process of single readings.
        inputs: The readings of the IMU (f, w) (n, 6), each held until the next.
        ts: Times (k,), s, ascending: those of all readings of other sensors, and of the start.
        bias: The biases about which the motion is linearized (6,), or a number for all.

    Raises:
        ValueError: ``ts`` are fewer than two or do not ascend, or there is no reading of the IMU at the first one.
    """
    ts = np.asarray(ts, float)
    check_times("ts", ts)
    if len(ts) < 2:
        raise ValueError("ts: expected two or more times, between which there are increments, got one")
    every = np.unique(np.concatenate([ts, inputs.ts[(inputs.ts > ts[0]) & (inputs.ts < ts[-1])]]))
    if inputs.ts[0] > ts[0]:
        raise ValueError(
            f"inputs: expected a reading of the IMU at {ts[0]:.9g} s or before, got the first at {inputs.ts[0]:.9g} s"
        )
    held = jax.tree.map(lambda a: a[np.searchsorted(inputs.ts, every[:-1], side="right") - 1], inputs.values)
    dtype = held.dtype
    b = jnp.broadcast_to(jnp.asarray(bias, dtype), (6,))
    fresh, last = np.isin(every[:-1], ts[:-1]), np.flatnonzero(np.isin(every[1:], ts[1:]))
    y, slopes, noises = _integrated(process, held, jnp.asarray(np.diff(every), dtype), jnp.asarray(fresh), b)
    motion, slope, noise = jax.tree.map(lambda a: a[last], (y[0], slopes, noises))
    steps = np.diff(ts)
    increments = Increment(
        motion, slope[:, :9, 9:], jnp.broadcast_to(b, (len(steps), 6)), noise, jnp.asarray(steps, dtype)
    )
    return PreintegratedNavigation(process.gravity), Inputs(ts[:-1], increments, ts[1:])


@compiled
def _integrated(
    process: ImuNavigation,
    held: Float[Array, "k 6"],
    steps: Float[Array, " k"],
    fresh: Array,
    bias: Float[Array, " 6"],
) -> Any:
    """Motion, slope and noise after each reading, since the last one at which ``fresh`` is true."""
    dtype = held.dtype
    process = eqx.tree_at(lambda p: p.gravity, process, jnp.zeros_like(process.gravity))
    none = (SE23.identity(dtype), bias), jnp.eye(15, dtype=dtype), jnp.zeros((15, 15), dtype)

    def moved(process: ImuNavigation, carried: Any, u: Array, dt: Array, anew: Array) -> Any:
        y, slope, factor = jax.tree.map(lambda a, b: jnp.where(anew, a, b), none, carried)
        y, F, N = process.transition(BODY, y, u, dt)
        return y, F @ slope, triangular(jnp.concatenate([N, F @ jnp.triu(factor)], axis=1))

    def advance(carried: Any, now: Any) -> Any:
        after = process.program(moved, process)(carried, *now)
        return after, after

    return jax.lax.scan(advance, none, (held, steps, fresh))[1]
