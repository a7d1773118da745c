"""Multiple shooting: motion of a plant from the first states of windows, its readings, and the gaps between windows."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from lgsim.dynamics.derivatives import forward_dynamics_by_jacobians
from lgsim.dynamics.passive_forces import passive_forces
from lgsim.identify.estimators.loss import Loss
from lgsim.identify.estimators.records import Channel, Windows
from lgsim.identify.estimators.sensors import Instant
from lgsim.identify.unknowns.parameters import Parameters
from lgsim.identify.unknowns.plant import Plant
from lgsim.identify.unknowns.sensor_plant import HALO, InstrumentedPlant, instruments
from lgsim.integrators.integrate import integrate
from lgsim.integrators.method import Method
from lgsim.simulation.rollout import actuator_dynamics, split_state, state_space


class Shooting(NamedTuple):
    """What is the same for all windows.

    Attributes:
        parameters: The unknowns of the plant.
        channels: Of the records, of which sensors and deviations count here.
        dt: Step, s.
        method: Of integration.
        loss: Of the squared residuals in standard deviations.
        deviations: Of the gaps (2 nv + lagging drives,).
        belief: Standard deviations of the first state of each data set about its guess, of that size, or None.
        known: Whether these first states are the guesses themselves.
        tile: Windows whose Jacobians are made at once, or None for all.
    """

    parameters: Parameters
    channels: Mapping[str, Channel]
    dt: Array
    method: Method
    loss: Loss
    deviations: Array
    belief: Array | None
    known: bool
    tile: int | None

    def free(self, windows: Windows) -> bool:
        """Whether any first state is unknown."""
        return not self.known or bool(windows.start.shape[0] > 1)


def drive(t: Array, y: Array, args: Any) -> Array:
    """(v, v', tau' of drives that lag) of a plant under signals and wrenches: args are (plant, (signals, wrenches))."""
    plant, (signals, wrenches) = args
    model = plant.model
    q, v, z = split_state(model, y)
    tau, rate = actuator_dynamics(model, plant.scale * signals - plant.offset, z)
    a = forward_dynamics_by_jacobians(model, q, v, tau + passive_forces(model, q, v) - plant.friction(v), wrenches)
    return jnp.concatenate([v, a] if rate is None else [v, a, rate])


def late(signals: Array, delay: Array, steps: int) -> Array:
    """The means over each step (steps, nv) of signals (HALO + steps, nv), held over steps, that arrive later.

    Args:
        signals: With those of ``HALO`` steps before.
        delay: In steps.
        steps: How many.
    """
    whole = jnp.clip(jnp.floor(delay), 0, HALO - 1)
    part = delay - whole
    first = HALO - whole.astype(int)
    now = jax.lax.dynamic_slice_in_dim(signals, first, steps)
    before = jax.lax.dynamic_slice_in_dim(signals, first - 1, steps)
    return (1 - part) * now + part * before


def motion(shooting: Shooting, plant: Plant, window: Windows, y0: Array) -> tuple[Array, Array]:
    """(states at the nodes (steps + 1, ...), signals that drive each step (steps, nv)) of one window."""
    steps = window.signals.shape[0] - HALO
    signals = window.signals[HALO:]
    if isinstance(plant, InstrumentedPlant):
        signals = late(window.signals, plant.input_delay / shooting.dt, steps)
    inputs = (signals, window.wrenches)
    zero = jnp.zeros((), y0.dtype)
    space = state_space(plant.model)
    ys = integrate(
        shooting.method, space, drive, y0, t0=zero, dt=shooting.dt, steps=steps, args=plant, inputs=inputs,
        checkpoint="step",
    ).ys  # fmt: skip
    return ys, signals


def residuals(shooting: Shooting, plant: Plant, window: Windows, y0: Array) -> tuple[Array, Array]:
    """(readings less measurements in standard deviations (steps + 1, columns), the last state) of one window."""
    model = plant.model
    ys, signals = motion(shooting, plant, window, y0)
    perfect = not isinstance(plant, InstrumentedPlant)
    own = instruments(plant)
    q, v, _ = split_state(model, ys)
    needs = any(c.sensor.ACCELERATION for c in shooting.channels.values()) or bool(own.delays)
    a = None
    if needs:
        last = jnp.concatenate([signals, signals[-1:]])
        pushes = None if window.wrenches is None else jnp.concatenate([window.wrenches, window.wrenches[-1:]])
        a = jax.vmap(lambda y, s, w: drive(y[0], y, (plant, (s, w)))[model.nv : 2 * model.nv],
                     in_axes=(0, 0, None if pushes is None else 0))(ys, last, pushes)  # fmt: skip
    columns = []
    for name, channel in shooting.channels.items():

        def off(at: Instant, measured: Array, channel: Channel = channel, name: str = name) -> Array:
            if not perfect and name in own.delays:
                at = before(plant, at, own.delays[name])
            r = channel.sensor.difference(model, measured, channel.sensor.read(model, at))
            return (r + own.biases[name] if not perfect and name in own.biases else r) / channel.deviation

        columns.append(jax.vmap(off)(Instant(q, v, a), window.values[name]))
    return jnp.concatenate(columns, axis=-1), ys[-1]


def before(plant: Plant, at: Instant, delay: Array) -> Instant:
    """The state some time before, by a parabola."""
    assert at.a is not None
    q = plant.model.retract(at.q, -delay * at.v + delay**2 / 2 * at.a)
    return Instant(q, at.v - delay * at.a, at.a)


def weights(shooting: Shooting, window: Windows) -> Array:
    """Weights of the residuals, in their order (..., steps + 1, columns)."""
    return jnp.concatenate([window.weights[name] for name in shooting.channels], axis=-1)


class Linear(NamedTuple):
    """Normal equations of plant and first states: cost, gradients and the blocks of the Gauss-Newton Hessian.

    Attributes:
        cost: Half the sum of the losses of records, gaps and beliefs.
        gx: Gradient by the coordinates (p,).
        gs: By tangents of the first states (windows, n); n = 0 where none is unknown.
        xx: (p, p).
        xs: (windows, p, n).
        ss: Of each window (windows, n, n).
        near: With the next window (windows, n, n), zero where none follows.
        beliefs: What beliefs about the plant add to xx (p, p).
        squares: Sums of weighted squares of each column, with robust weights, and of the weights (2, columns).
        gap: Largest gap, in its deviations.
    """

    cost: Array
    gx: Array
    gs: Array
    xx: Array
    xs: Array
    ss: Array
    near: Array
    beliefs: Array
    squares: Array
    gap: Array


def slopes(
    shooting: Shooting, window: Windows, x: Array, y0: Array, y1: Array, n: int
) -> tuple[Array, Array, Array, Array]:
    """(derivatives of residuals (steps + 1, columns, p + n) and gap, residuals, gap) of a window by (x, tangent of y0).

    Args:
        shooting, window: The problem.
        x: Coordinates (p,).
        y0, y1: First states of this window and the next.
        n: Of the space of states, or 0 to leave them out.
    """
    p = x.size
    space = state_space(shooting.parameters.plant.model)
    # a first state that is known does not move
    moves = 1 - window.first if shooting.known else jnp.ones_like(window.first)

    def f(z: Array) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        start = space.move(z[p:] * moves, y0) if n else y0
        r, end = residuals(shooting, shooting.parameters.put(z[:p]), window, start)
        gap = space.difference(y1, end)
        return (r, gap), (r, gap)

    (J, A), (r, gap) = jax.jacfwd(f, has_aux=True)(jnp.concatenate([x, jnp.zeros(n, x.dtype)]))
    return J, A, r, gap


def linearize(shooting: Shooting, windows: Windows, x: Array, starts: Array) -> Linear:
    """Normal equations at coordinates x and first states, by forward mode over both, in one batch of all windows."""
    p, free = x.size, shooting.free(windows)
    space = state_space(shooting.parameters.plant.model)
    n = space.dim if free else 0
    following = jnp.roll(starts, -1, axis=0)
    gamma = 1 / shooting.deviations**2

    def one(part: tuple[Windows, Array, Array]) -> tuple[Array, ...]:
        window, y0, y1 = part
        J, A, r, gap = slopes(shooting, window, x, y0, y1, n)
        w = weights(shooting, window)
        r, J = jnp.where(w > 0, r, 0), jnp.where((w > 0)[..., None], J, 0)
        s = r**2
        robust = w * shooting.loss.weight(s)
        cost = jnp.sum(w * shooting.loss.cost(s)) / 2
        g = jnp.einsum("kmz,km->z", J, robust * r)
        J = J.reshape(-1, p + n) * jnp.sqrt(robust).reshape(-1, 1)
        H = J.T @ J
        squares = jnp.stack([jnp.sum(robust * s, axis=0), jnp.sum(w, axis=0)])
        if not n:
            return cost, g, H, squares, jnp.zeros((), x.dtype)
        B = jax.jacfwd(lambda d: space.difference(space.move(d, y1), end_of(gap, y1)))(jnp.zeros(n, x.dtype))
        linked = window.linked
        gap, A, B = gap * linked, A * linked, B * linked
        WA, WB = gamma[:, None] * A, gamma[:, None] * B
        return (
            cost + gap @ (gamma * gap) / 2, g + A.T @ (gamma * gap), H + A.T @ WA, squares,
            jnp.max(jnp.abs(gap) * jnp.sqrt(gamma)), B.T @ (gamma * gap), B.T @ WB, WA.T @ B,
        )  # fmt: skip

    def end_of(gap: Array, y1: Array) -> Array:
        return space.move(gap, y1)

    given = (windows, starts, following)
    out = jax.lax.map(one, given, batch_size=shooting.tile) if shooting.tile else jax.vmap(one)(given)
    cost, g, H, squares, gap = out[:5]
    r = shooting.parameters.beliefs_at(x)
    J = jax.jacfwd(shooting.parameters.beliefs_at)(x)
    total, gx, xx = jnp.sum(cost) + r @ r / 2, jnp.sum(g[:, :p], axis=0) + J.T @ r, jnp.sum(H[:, :p, :p], axis=0)
    gs, xs, ss, near = g[:, p:], H[:, :p, p:], H[:, p:, p:], jnp.zeros((len(starts), n, n), x.dtype)
    if n:
        next_g, next_ss, cross = out[5:]
        near = cross[:, p:]
        gs = gs + jnp.roll(next_g, 1, axis=0)
        ss = ss + jnp.roll(next_ss, 1, axis=0)
        xs = xs + jnp.roll(cross[:, :p], 1, axis=0)
        if shooting.belief is not None:
            given = partial(add_priors, shooting, shooting.belief)
            each, add_g, add_H = jax.vmap(given)(windows.start, starts, windows.first)
            total, gs, ss = total + jnp.sum(each), gs + add_g, ss + add_H
        if shooting.known:
            ss = ss + windows.first[:, None, None] * jnp.eye(n, dtype=x.dtype)[None]
    return Linear(total, gx, gs, xx + J.T @ J, xs, ss, near, J.T @ J, jnp.sum(squares, axis=0), jnp.max(gap))


def add_priors(
    shooting: Shooting, deviations: Array, guess: Array, start: Array, first: Array
) -> tuple[Array, Array, Array]:
    """(cost, gradient, Hessian) of the belief about the first state of a data set."""
    space = state_space(shooting.parameters.plant.model)

    def f(d: Array) -> Array:
        return first * space.difference(guess, space.move(d, start)) / deviations

    zero = jnp.zeros(space.dim, start.dtype)
    r, J = f(zero), jax.jacfwd(f)(zero)
    return r @ r / 2, J.T @ r, J.T @ J


def stacked(
    shooting: Shooting, cut: Windows, x: Array, starts: Array, following: Array | None = None
) -> tuple[Array, ...]:
    """Vectors whose squares sum to twice the cost: of the sensors, the gaps, beliefs about the start and the plant.

    Args:
        shooting: The problem.
        cut: Windows.
        x: Coordinates.
        starts: First states of the windows.
        following: Those of the windows after them, by default the next in the row.
    """
    space = state_space(shooting.parameters.plant.model)
    plant = shooting.parameters.put(x)
    after = jnp.roll(starts, -1, axis=0) if following is None else following
    r, ends = jax.vmap(lambda w, s: residuals(shooting, plant, w, s))(cut, starts)
    w = weights(shooting, cut)
    s = jnp.where(w > 0, r, 0) ** 2
    # of a robust loss the root, with the sign of the residual
    bent = jnp.sqrt(jnp.where(s > 0, shooting.loss.cost(s) / jnp.where(s > 0, s, 1), 1))
    gaps = jax.vmap(space.difference)(after, ends) * cut.linked[:, None]
    out = [jnp.sqrt(w) * jnp.where(w > 0, r, 0) * bent, gaps / shooting.deviations[None]]
    if shooting.belief is not None:
        first = jax.vmap(space.difference)(cut.start, starts) * cut.first[:, None]
        out.append(first / shooting.belief[None])
    return (*out, shooting.parameters.beliefs_at(x))


def part_cost(shooting: Shooting, part: Windows, x: Array, starts: Array, following: Array) -> Array:
    """The cost of some windows, of their gaps to those after them and of beliefs about the start."""
    vectors = stacked(shooting, part, x, starts, following)[:-1]
    return sum((jnp.sum(v**2) for v in vectors), jnp.zeros((), x.dtype)) / 2
