"""Multiple shooting: simulation in windows, sensor readings, gaps between windows, normal equations."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, Int

from lgsim._compile.xla import control_flow
from lgsim.dynamics.forward_dynamics import forward_dynamics_by_jacobians
from lgsim.dynamics.passive_forces import passive_forces
from lgsim.identify.estimators.loss import Loss
from lgsim.identify.estimators.records import Channel, Windows
from lgsim.identify.estimators.sensors import Instant
from lgsim.identify.unknowns.parameters import Parameters
from lgsim.identify.unknowns.plant import Plant
from lgsim.identify.unknowns.sensor_plant import MAX_DELAY_STEPS, InstrumentedPlant, with_instruments
from lgsim.integrators.integrate import integrate
from lgsim.integrators.method import Method
from lgsim.simulation.actuated_control import actuated, sampled_method
from lgsim.simulation.equations_of_motion import (
    TorqueSegment,
    actuator_part,
    external_wrenches,
    sample_actuators,
    settle_actuators,
    split_state,
    state_space,
)
from lgsim.simulation.state_space import StateSpace

Inputs = tuple[Float[Array, "*steps _"], Float[Array, "*steps bodies 6"] | None]
"""Signals of the drives or commands of actuators, and external wrenches, constant over each step."""


class Shooting(NamedTuple):
    """The settings of multiple shooting, without the windows of records.

    Initial states of windows are (state,): q, v and the actuator states; their tangents are (n,).

    Attributes:
        channels: The channels of the records, of which sensors and standard deviations are used.
        dt: The step of the simulation, s.
        loss: The loss of the squared normalized residuals.
        gap_deviations: Standard deviations of the gaps between windows (n,), in the units of a tangent, and of the
            distances of initial states from the constraint manifold of a model with closed loops.
        start_deviations: Standard deviations of the initial state of each data set about its guess (n,), or None.
        known_start: True to fix these initial states at the guesses.
        tile: Number of windows whose Jacobians are computed at once, or None for all.
    """

    parameters: Parameters
    channels: Mapping[str, Channel]
    dt: Float[Array, ""]
    method: Method
    loss: Loss
    gap_deviations: Float[Array, " n"]
    start_deviations: Float[Array, " n"] | None
    known_start: bool
    tile: int | None
    substeps: Int[Array, ""] | None = None

    def has_free_starts(self, windows: Windows) -> bool:
        """True if any initial state is unknown."""
        return not self.known_start or bool(windows.start.shape[0] > 1)


def plant_space(plant: Plant) -> StateSpace:
    """The space of the plant's states: q, v and the actuator states."""
    return state_space(plant.model, plant.actuators)


class ShootingNormalEquations(NamedTuple):
    """Normal equations in plant coordinates and initial states: cost, gradients and blocks of the Gauss-Newton Hessian.

    Attributes:
        cost: Half the sum of the losses of records, gaps and priors.
        gx: Gradient with respect to the coordinates (p,).
        gs: Gradient with respect to tangents of the initial states (windows, n); n = 0 if all are known.
        xx: Hessian with respect to the coordinates (p, p).
        xs: Mixed Hessian of the coordinates and each window's initial state (windows, p, n).
        ss: Hessian with respect to each window's initial state (windows, n, n).
        near: Mixed Hessian of the initial states of a window and the next (windows, n, n), zero if none follows.
        prior_hessian: The contribution of the plant's priors to xx (p, p).
        deviations: Standard deviations of the normalized residuals of each column by ``Loss.deviation``, 1 for a column
            without weights (columns,).
        gap: Largest gap, in standard deviations.
    """

    cost: Float[Array, ""]
    gx: Float[Array, " p"]
    gs: Float[Array, "windows n"]
    xx: Float[Array, "p p"]
    xs: Float[Array, "windows p n"]
    ss: Float[Array, "windows n n"]
    near: Float[Array, "windows n n"]
    prior_hessian: Float[Array, "p p"]
    deviations: Float[Array, " columns"]
    gap: Float[Array, ""]


def equations_of_motion(
    t: Float[Array, ""], y: Float[Array, " state"], args: tuple[Plant, Inputs]
) -> Float[Array, " n"]:
    """Time derivative of (q, v, actuator states) of a plant in a state y under (signals, wrenches)."""
    plant, (signals, wrenches) = args
    model = plant.model
    q, v = split_state(model, y)
    rate = None
    if plant.actuators is None:
        tau = plant.scale * signals - plant.offset
    else:
        w = actuator_part(model, y)
        states = jnp.zeros(0, y.dtype) if w is None else w
        tau, rate = plant.actuators.respond(model, q, v, states, signals)
    given = None if wrenches is None else lambda *_: wrenches
    pushes = external_wrenches(model, given, t, q, v)
    a = forward_dynamics_by_jacobians(model, q, v, tau + passive_forces(model, q, v), pushes)
    return jnp.concatenate([part for part in (v, a, rate) if part is not None])


class PlantField(eqx.Module):
    """``equations_of_motion`` with the discrete updates of actuators between steps."""

    def __call__(
        self, t: Float[Array, ""], y: Float[Array, " state"], args: tuple[Plant, Inputs]
    ) -> Float[Array, " n"]:
        """See ``equations_of_motion``."""
        return equations_of_motion(t, y, args)

    def sample(
        self, t: Float[Array, ""], y: Float[Array, " state"], dt: Float[Array, ""], args: tuple[Plant, Inputs]
    ) -> Float[Array, " state"]:
        """The state at the start of a step dt."""
        return sample_actuators(t, y, dt, self.machine(args))

    def settle(self, y: Float[Array, " state"], args: tuple[Plant, Inputs]) -> Float[Array, " state"]:
        """The state at the end of a step."""
        return settle_actuators(y, self.machine(args))

    def machine(self, args: tuple[Plant, Inputs]) -> Any:
        """The arguments of a simulation's field: commands of the drives or actuators and wrenches, constant over a
        step.
        """
        plant, (signals, wrenches) = args
        command = signals if plant.actuators is not None else plant.scale * signals - plant.offset
        row = TorqueSegment(jnp.zeros((), signals.dtype), command, jnp.zeros_like(command))
        held = None if wrenches is None else lambda t, q, v, model: wrenches
        return (plant.model, actuated(plant.model, plant.actuators, None), held), row


class Sensitivities(NamedTuple):
    """Residuals of all windows with their derivatives; all but ``residuals`` are zero for readings without weight.

    Attributes:
        residuals: Normalized residuals r (windows, nodes, columns).
        scores: ``sqrt(w) rho'(r^2) r``, for the weights w of the readings, (windows, nodes, columns).
        weights: The robust weights ``rho'(r^2)`` (windows, nodes, columns).
        slopes: Derivatives of ``sqrt(w) r`` with respect to (x, tangent of the initial state) (windows, nodes, columns,
            p + n).
    """

    residuals: Float[Array, "windows nodes columns"]
    scores: Float[Array, "windows nodes columns"]
    weights: Float[Array, "windows nodes columns"]
    slopes: Float[Array, "windows nodes columns unknowns"]


_PLANT_FIELD = PlantField()


class WindowMotion(NamedTuple):
    """The motion of one window against its records.

    Attributes:
        residuals: Readings minus measurements in standard deviations (nodes, columns).
        first: The state (state,) at the start of the simulation: the initial state, projected on the constraint
            manifold of a model with closed loops.
        last: The final state.
    """

    residuals: Float[Array, "*windows nodes columns"]
    first: Float[Array, "*windows state"]
    last: Float[Array, "*windows state"]


def _delay_signals(
    signals: Float[Array, "rows width"], delay: Float[Array, ""], steps: int
) -> Float[Array, "{steps} width"]:
    """Step means of signals that are piecewise constant and arrive delayed.

    Args:
        signals: Signals of ``MAX_DELAY_STEPS + steps`` steps; those from before the window come first.
        delay: The delay in steps.
        steps: Number of steps of the window.
    """
    whole = jnp.clip(jnp.floor(delay), 0, MAX_DELAY_STEPS - 1)
    part = delay - whole
    first = MAX_DELAY_STEPS - whole.astype(int)
    now = jax.lax.dynamic_slice_in_dim(signals, first, steps)
    before = jax.lax.dynamic_slice_in_dim(signals, first - 1, steps)
    return (1 - part) * now + part * before


def _simulate_window(
    shooting: Shooting,
    plant: Plant,
    window: Windows,
    y0: Float[Array, " state"],
    substeps: Int[Array, ""] | None = None,
) -> tuple[Float[Array, "nodes state"], Float[Array, "steps _"]]:
    """Simulate one window from its initial state; returns the states at the nodes and the signals of each step.

    Args:
        y0: The initial state.
        substeps: Number of integration steps within each step, an operand of the program; None for one.
    """
    steps = window.signals.shape[0] - MAX_DELAY_STEPS
    signals = window.signals[MAX_DELAY_STEPS:]
    if isinstance(plant, InstrumentedPlant):
        signals = _delay_signals(window.signals, plant.input_delay / shooting.dt, steps)
    inputs = (signals, window.wrenches)
    zero = jnp.zeros((), y0.dtype)
    space, method = state_space(plant.model, plant.actuators), sampled_method(shooting.method, plant.actuators)
    # during the search the initial state of a model with closed loops need not satisfy the closure
    y0 = space.restore(_PLANT_FIELD, y0, (plant, jax.tree.map(lambda x: x[0], inputs)))
    if shooting.substeps is not None:
        substeps = shooting.substeps if substeps is None else shooting.substeps * substeps
    if substeps is None:
        ys = integrate(
            method, space, _PLANT_FIELD, y0, t0=zero, dt=shooting.dt, steps=steps, args=plant,
            inputs=inputs, checkpoint="step",
        ).ys  # fmt: skip
        return ys, signals
    h = shooting.dt / substeps.astype(shooting.dt.dtype)

    def step(y: Array, row: Inputs) -> tuple[Array, Array]:
        def shorter(_: Array, y: Array) -> Array:
            args = (plant, row)
            return integrate(method, space, _PLANT_FIELD, y, t0=zero, dt=h, steps=1, args=args, checkpoint=None).ys[-1]

        y = control_flow.fori_loop(0, substeps, shorter, y)
        return y, y

    _, ys = control_flow.scan(step, y0, inputs)
    return jnp.concatenate([y0[None], ys]), signals


def window_residuals(
    shooting: Shooting,
    plant: Plant,
    window: Windows,
    y0: Float[Array, " state"],
    substeps: Int[Array, ""] | None = None,
) -> WindowMotion:
    """The motion of one window; arguments as in ``_simulate_window``."""
    model = plant.model
    ys, signals = _simulate_window(shooting, plant, window, y0, substeps)
    perfect = not isinstance(plant, InstrumentedPlant)
    own = with_instruments(plant)
    q, v = split_state(model, ys)
    needs_acceleration = any(c.sensor.ACCELERATION for c in shooting.channels.values()) or bool(own.delays)
    a = None
    if needs_acceleration:
        last = jnp.concatenate([signals, signals[-1:]])
        pushes = None if window.wrenches is None else jnp.concatenate([window.wrenches, window.wrenches[-1:]])
        a = jax.vmap(lambda y, s, w: equations_of_motion(y[0], y, (plant, (s, w)))[model.nv : 2 * model.nv],
                     in_axes=(0, 0, None if pushes is None else 0))(ys, last, pushes)  # fmt: skip
    columns = []
    for name, channel in shooting.channels.items():

        def off(
            at: Instant, measured: Float[Array, "*shape"], channel: Channel = channel, name: str = name
        ) -> Float[Array, " size"]:
            if not perfect and name in own.delays:
                at = _earlier_instant(plant, at, own.delays[name])
            r = channel.sensor.difference(model, measured, channel.sensor.read(model, at))
            return (r + own.biases[name] if not perfect and name in own.biases else r) / channel.deviation

        columns.append(jax.vmap(off)(Instant(q, v, a), window.values[name]))
    return WindowMotion(jnp.concatenate(columns, axis=-1), ys[0], ys[-1])


def _count_gaps(space: StateSpace) -> int:
    """Dimension of ``_window_gap``."""
    return 2 if space.topology.loops else 1


def _window_gap(
    space: StateSpace, motion: WindowMotion, start: Float[Array, " state"], following: Float[Array, " state"]
) -> Float[Array, " gaps"]:
    """The tangent from the next initial state to the end of a window. For models with closed loops also the tangent
    from the initial state to the start of the simulation, without which the components that open the loops would be
    undetermined.

    Args:
        space: The space of states.
        motion: The motion of the window.
        start: Its initial state.
        following: Initial state of the next window.
    """
    gap = space.difference(following, motion.last)
    return jnp.concatenate([gap, space.difference(start, motion.first)]) if space.topology.loops else gap


def _gap_factors(shooting: Shooting, windows: Windows) -> Float[Array, "*windows gaps"]:
    """Factors of ``_window_gap``: 1 if the next window is linked, 1 if an initial state is unknown, else 0."""
    space = plant_space(shooting.parameters.plant)
    known = windows.first if shooting.known_start else jnp.zeros_like(windows.first)
    factors = jnp.stack([windows.linked, 1 - known][: _count_gaps(space)], axis=-1)
    return jnp.repeat(factors, space.dim, axis=-1, total_repeat_length=_count_gaps(space) * space.dim)


def gap_vectors(
    shooting: Shooting,
    windows: Windows,
    motions: WindowMotion,
    starts: Float[Array, "windows state"],
    following: Float[Array, "windows state"],
) -> Float[Array, "windows gaps"]:
    """``_window_gap`` of all windows in standard deviations, zero for unlinked windows.

    Args:
        motions: Their motions.
        starts: Their initial states.
        following: Initial states of the next windows.
    """
    space = plant_space(shooting.parameters.plant)
    gaps = jax.vmap(lambda *given: _window_gap(space, *given))(motions, starts, following)
    return gaps * _gap_factors(shooting, windows) / jnp.tile(shooting.gap_deviations, _count_gaps(space))[None]


def _earlier_instant(plant: Plant, at: Instant, delay: Float[Array, ""]) -> Instant:
    """The state of a plant at an earlier time, by a parabola."""
    assert at.a is not None
    q = plant.model.retract(at.q, -delay * at.v + delay**2 / 2 * at.a)
    return Instant(q, at.v - delay * at.a, at.a)


def _residual_weights(shooting: Shooting, windows: Windows) -> Float[Array, "*windows nodes columns"]:
    """Weights of the residuals of one or several windows, columns in the order of the residuals."""
    return jnp.concatenate([windows.weights[name] for name in shooting.channels], axis=-1)


def window_jacobian(
    shooting: Shooting,
    window: Windows,
    x: Float[Array, " p"],
    y0: Float[Array, " state"],
    y1: Float[Array, " state"],
    n: int,
    substeps: Int[Array, ""] | None = None,
) -> tuple[
    Float[Array, "nodes columns unknowns"],
    Float[Array, "gaps unknowns"],
    Float[Array, "nodes columns"],
    Float[Array, " gaps"],
]:
    """Derivatives of residuals and of ``_window_gap`` with respect to (x, tangent of y0), p + n unknowns; residuals and
    gap.

    Args:
        y0: Initial state of this window.
        y1: Initial state of the next window.
        n: Dimension of the state space, or 0 to leave the states out.
        substeps: See ``_simulate_window``.
    """
    p = x.size
    space = plant_space(shooting.parameters.plant)
    # a known initial state does not move
    moves = 1 - window.first if shooting.known_start else jnp.ones_like(window.first)

    def f(z: Float[Array, " unknowns"]) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        start = space.move(z[p:] * moves, y0) if n else y0
        motion = window_residuals(shooting, shooting.parameters.plant_at(z[:p]), window, start, substeps)
        found = motion.residuals, _window_gap(space, motion, start, y1)
        return found, found

    (J, A), (r, gap) = jax.jacfwd(f, has_aux=True)(jnp.concatenate([x, jnp.zeros(n, x.dtype)]))
    return J, A, r, gap


def linearize(
    shooting: Shooting,
    windows: Windows,
    x: Float[Array, " p"],
    starts: Float[Array, "windows state"],
    substeps: Int[Array, ""] | None = None,
) -> ShootingNormalEquations:
    """Normal equations at coordinates x and initial states, by forward mode over both, for all windows in one batch.

    Args:
        starts: Initial states of the windows.
        substeps: See ``_simulate_window``.
    """
    return linearize_keeping(shooting, windows, x, starts, substeps, False)[0]


def linearize_keeping(
    shooting: Shooting,
    windows: Windows,
    x: Float[Array, " p"],
    starts: Float[Array, "windows state"],
    substeps: Int[Array, ""] | None,
    keep: bool = True,
) -> tuple[ShootingNormalEquations, Sensitivities | None]:
    """``linearize``, and the derivatives of the residuals that it sums up, unless ``keep`` is False."""
    p, free = x.size, shooting.has_free_starts(windows)
    space = plant_space(shooting.parameters.plant)
    n = space.dim if free else 0
    following = jnp.roll(starts, -1, axis=0)
    gamma = jnp.tile(1 / shooting.gap_deviations**2, _count_gaps(space))

    def one(part: tuple[Windows, Float[Array, " state"], Float[Array, " state"]]) -> tuple[Any, ...]:
        window, y0, y1 = part
        J, A, r, gap = window_jacobian(shooting, window, x, y0, y1, n, substeps)
        w = _residual_weights(shooting, window)
        readings, r, J = r, jnp.where(w > 0, r, 0), jnp.where((w > 0)[..., None], J, 0)
        s = r**2
        robust = w * shooting.loss.weight(s)
        cost = jnp.sum(w * shooting.loss.cost(s)) / 2
        g = jnp.einsum("kmz,km->z", J, robust * r)
        slopes, J = J, J.reshape(-1, p + n) * jnp.sqrt(robust).reshape(-1, 1)
        H = J.T @ J
        scores = r * shooting.loss.weight(s) * jnp.sqrt(w)
        each = jnp.where(w > 0, shooting.loss.weight(s), 0)
        kept = Sensitivities(readings, scores, each, slopes * jnp.sqrt(w)[..., None]) if keep else None
        if not n:
            return cost, g, H, (r, w), jnp.zeros((), x.dtype), kept
        B = jax.jacfwd(lambda d: space.difference(space.move(d, y1), space.move(gap[:n], y1)))(jnp.zeros(n, x.dtype))
        counted = _gap_factors(shooting, window)
        B = jnp.concatenate([B, jnp.zeros((gap.size - n, n), x.dtype)])
        gap, A, B = gap * counted, A * counted[:, None], B * counted[:, None]
        WA, WB = gamma[:, None] * A, gamma[:, None] * B
        return (
            cost + gap @ (gamma * gap) / 2, g + A.T @ (gamma * gap), H + A.T @ WA, (r, w),
            jnp.max(jnp.abs(gap) * jnp.sqrt(gamma)), kept, B.T @ (gamma * gap), B.T @ WB, WA.T @ B,
        )  # fmt: skip

    given = (windows, starts, following)
    out = jax.lax.map(one, given, batch_size=shooting.tile) if shooting.tile else jax.vmap(one)(given)
    cost, g, H, read, gap, kept = out[:6]
    residuals, weights = (a.reshape(-1, a.shape[-1]) for a in read)
    deviations = jnp.where(jnp.any(weights > 0, axis=0), shooting.loss.deviation(residuals, weights), 1)
    r = shooting.parameters.prior_residuals(x)
    J = jax.jacfwd(shooting.parameters.prior_residuals)(x)
    total, gx, xx = jnp.sum(cost) + r @ r / 2, jnp.sum(g[:, :p], axis=0) + J.T @ r, jnp.sum(H[:, :p, :p], axis=0)
    gs, xs, ss, near = g[:, p:], H[:, :p, p:], H[:, p:, p:], jnp.zeros((len(starts), n, n), x.dtype)
    if n:
        next_g, next_ss, cross = out[6:]
        near = cross[:, p:]
        gs = gs + jnp.roll(next_g, 1, axis=0)
        ss = ss + jnp.roll(next_ss, 1, axis=0)
        xs = xs + jnp.roll(cross[:, :p], 1, axis=0)
        if shooting.start_deviations is not None:
            prior = partial(_start_prior_terms, shooting, shooting.start_deviations)
            each, add_g, add_H = jax.vmap(prior)(windows.start, starts, windows.first)
            total, gs, ss = total + jnp.sum(each), gs + add_g, ss + add_H
        if shooting.known_start:
            ss = ss + windows.first[:, None, None] * jnp.eye(n, dtype=x.dtype)[None]
    normal = ShootingNormalEquations(total, gx, gs, xx + J.T @ J, xs, ss, near, J.T @ J, deviations, jnp.max(gap))
    return normal, kept


def _start_prior_terms(
    shooting: Shooting,
    deviations: Float[Array, " n"],
    guess: Float[Array, " state"],
    start: Float[Array, " state"],
    first: Float[Array, ""],
) -> tuple[Float[Array, ""], Float[Array, " n"], Float[Array, "n n"]]:
    """(cost, gradient, Hessian) of the prior on the initial state of a data set, zero for other windows.

    Args:
        deviations: Standard deviations of the initial state about its guess.
        start: The initial state.
        first: 1 if the window starts a data set, else 0.
    """
    space = plant_space(shooting.parameters.plant)

    def f(d: Float[Array, " n"]) -> Float[Array, " n"]:
        return first * space.difference(guess, space.move(d, start)) / deviations

    zero = jnp.zeros(space.dim, start.dtype)
    r, J = f(zero), jax.jacfwd(f)(zero)
    return r @ r / 2, J.T @ r, J.T @ J
