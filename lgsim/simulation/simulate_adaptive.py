"""Simulation with step-size control by a tolerance, ended by a time or an event."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float

from lgsim._compile.xla import compiled
from lgsim.actuators.actuators import Actuators, ActuatorSum
from lgsim.dynamics.contacts.start_depth import check_start_depth
from lgsim.dynamics.joint_inertia import describe_missing_inertia
from lgsim.integrators.method import Method
from lgsim.integrators.methods import MK54
from lgsim.multibody.model import Model
from lgsim.simulation.accuracy.tolerance_error import check_tolerance
from lgsim.simulation.accuracy.trajectory_error import StepError
from lgsim.simulation.actuated_control import ActuatedControl, actuated, given_commands
from lgsim.simulation.equations_of_motion import (
    Control,
    TorqueSegment,
    Wrenches,
    actuator_part,
    drives,
    initial_state,
    split_state,
    state_space,
    torque_segments,
)
from lgsim.simulation.events import ThresholdEvent
from lgsim.simulation.fixed_steps import GOLDEN
from lgsim.simulation.methods import method_name
from lgsim.simulation.motion_field import MOTION_FIELD
from lgsim.simulation.rollout import Drive, checked_equations_of_motion
from lgsim.simulation.simulate import Progress
from lgsim.simulation.trajectory import Trajectory
from lgsim.support import check
from lgsim.support.chunks import run_in_chunks
from lgsim.support.packages import own_version

MAX_STEPS = 100_000
"""The default limit of the number of steps."""
LOOKS = 64
"""The smallest number of further states between the saved ones, at which extents and events are looked up."""
SAVED, STEPS = 1024, 8192
"""The largest number of saved states and of steps in a chunk, between two checks."""

_EVENT = "event reached"
"""The beginning of ``result`` for a motion that ended at an event."""


def simulate_adaptive(
    model: Model,
    q0: Float[ArrayLike, " nq"] | None = None,
    v0: Float[ArrayLike, " nv"] | None = None,
    *,
    duration: float,
    rtol: float = 1e-6,
    atol: float = 1e-9,
    method: Method = MK54,
    control: Control | None = None,
    torques: Float[ArrayLike, " nv"] | None = None,
    wrenches: Wrenches | None = None,
    actuators: Actuators | ActuatorSum | None = None,
    commands: Float[ArrayLike, " _"] | None = None,
    actuator_state: Float[ArrayLike, " _"] | None = None,
    save_at: ArrayLike | Sequence[float] | None = None,
    dt_out: float = 0.01,
    events: Any = (),
    max_step: float | None = None,
    jump_times: Float[ArrayLike, " jumps"] | Sequence[float] | None = None,
    max_steps: int | None = None,
    step_check: bool = True,
    progress: Progress | None = None,
) -> Trajectory:
    """Simulate a model with adaptive step-size control, until a time or an event.

    The equations are those of ``rollout``, the steps those of ``lgsim.integrators.adaptive.solve``: the error e of each
    step in the algebra satisfies ``rms(e_i / (atol + rtol w_i)) < 1`` with w = 1 rad or 1 m for the configuration and
    ``|v|`` for velocities. The error at the end is proportional to the tolerance. Saved states between the steps are
    interpolated by quartics, with an error of the same order. Needs the extra ``adaptive``; for gradients call
    ``solve`` itself.

    Ctrl-C ends the simulation between chunks of at most ``SAVED`` states and ``STEPS`` steps; the states computed so
    far are returned.

    Args:
        model: The model, e.g. from ``lgsim.load_urdf``.
        q0: Initial configuration (nq,), by default ``model.neutral()``.
        v0: Initial velocity (nv,), rad/s or m/s, by default zero.
        duration: Simulated time, s.
        rtol: Tolerance of one step, relative to w.
        atol: Tolerance of one step, rad, m, rad/s or m/s.
        method: Method with an error estimate: MK54, CF32a, CF32b, CF43.
        control: See ``rollout``; it should be smooth but at ``jump_times``; each other jump costs many steps.
        torques: Constant joint forces (nv,), N m or N; by default none.
        wrenches: As ``control``.
        actuators: See ``rollout``; without sample times.
        commands: Constant commands (n,) of the actuators.
        actuator_state: See ``rollout``.
        save_at: Times of the states to save, (n,), increasing, in [0, duration], s; by default ``dt_out`` apart.
        dt_out: Time between saved states, s, from 0 to the end; the last interval may be 0.5 to 1.5 of it.
        events: ``lgsim.integrators.adaptive.Event``, one or several, such as those of ``lgsim.simulation.events``; the
            first one to occur ends the motion. A crossing inside a step is found if a saved state, or one of the
            ``LOOKS`` states between them, lies beyond it.
        max_step: The largest step, s; by default the largest time between saved states. A pulse of a force, a thin
            obstacle or a pair of crossings of an event that lasts less than half of it can be missed.
        jump_times: Times (n,) at which the control or the wrenches jump, s: steps end just before them and begin just
            after them, so that a pulse is not missed. At the end of a chunk the tolerance limits the error of a jump.
        max_steps: The largest number of steps, including rejected ones; by default 100 000, or ten for each saved state
            if that is more.
        step_check: True to estimate the integration error of a complete motion from simulations with 10 and 100 times
            the tolerance, in about the same time, see ``StepError``.
        progress: Called after each chunk with the number of states saved and in total.

    Returns:
        The trajectory with the drives' joint forces at the saved states. If it ended before ``duration``, ``result``
        gives the time and the reason, with the quantity, joint and body if something is not finite. Its last state is
        the one reached, at an event the event state. ``dt`` is NaN and ``method`` contains the tolerances.

    Raises:
        ModuleNotFoundError: diffrax is missing.
        TypeError: an argument is of the wrong kind or dtype.
        ValueError: a shape is wrong, a time or a tolerance is not positive, the method has no error estimate, or a
            contact starts deeper than the size of its shape.
    """
    from lgsim.integrators import adaptive

    for name, value in (("duration", duration), ("dt_out", dt_out)):
        check.number(name, value)
        if not (math.isfinite(value) and value > 0):
            raise ValueError(f"{name}: expected a positive number of seconds, got {value}")
    if getattr(actuators, "is_sampled", False):
        raise ValueError(
            "actuators: some have clocks or bounds that act at steps of a fixed length; use simulate, with fixed steps"
        )
    control = actuated(model, actuators, control)
    y0 = initial_state(model, q0, v0, control, actuator_state)
    check_start_depth(model, y0[: model.nq])
    row = _constant(model, given_commands(actuators, torques, commands), control)
    events = (events,) if isinstance(events, adaptive.Event) else tuple(events)
    times = _times(model, save_at, duration, dt_out)
    most = max(MAX_STEPS, 10 * len(times)) if max_steps is None else check.count("max_steps", max_steps)
    longest = np.max(np.diff(times, prepend=0.0, append=duration)) if max_step is None else max_step
    args = ((model, control, wrenches), row)
    solve = partial(
        adaptive.solve,
        method,
        state_space(model, control),
        MOTION_FIELD,
        args=args,
        atol=atol,
        rtol=rtol,
        max_step=longest,
        jump_times=None if jump_times is None else np.asarray(jump_times, float),
        events=events,
    )
    blame = partial(_blame, args)
    missed = partial(_missed_crossing, events, args, rtol)
    motion = partial(
        _solve_in_chunks, times=times, duration=duration, max_steps=most, events=events, blame=blame, missed=missed
    )
    time, states, between, result, steps = motion(solve, y0, progress=progress)
    again = partial(_again, motion, solve, y0, (float(rtol), float(atol), float(longest)), method.order, result)
    whole = step_check and len(time) and (not result or result.startswith(_EVENT))
    error = check_tolerance(model, again, y0, time, (states, between), steps, control) if whole else None
    return _trajectory(model, control, row, time, states, (method, float(rtol), float(atol)), result, error)


def _trajectory(
    model: Model, control: Drive, row: TorqueSegment | None, time: Float[np.ndarray, " saved"],
    states: Float[np.ndarray, "saved state"], chosen: tuple[Method, float, float], result: str,
    error: StepError | None,
) -> Trajectory:  # fmt: skip
    """The trajectory of saved states with the drives' forces; ``chosen`` contains the method, rtol and atol."""
    method, rtol, atol = chosen
    q, v = split_state(model, jnp.asarray(states))
    sequence = None if row is None else jnp.broadcast_to(row.force, (len(v), row.force.size))
    tau = drives(model, control, sequence, jnp.asarray(time), q, v, actuator_part(model, jnp.asarray(states)))
    q, v, tau = (np.asarray(x) for x in (q, v, tau))
    name = f"{method_name(method)}, rtol {rtol:g}, atol {atol:g}"
    return Trajectory(model, time, q, v, tau, name, float("nan"), result, own_version(), error)


def _again(
    motion: Callable[..., Any], solve: Callable[..., Any], y0: Float[Array, " state"],
    limits: tuple[float, float, float], order: int, result: str, factor: float,
    start: Float[Array, " state"] | None = None,
) -> tuple[Float[np.ndarray, "saved state"], bool]:  # fmt: skip
    """The saved states with tolerances scaled by a factor, and True if they end as the motion with this result does.

    Args:
        limits: rtol, atol and the largest step, whose error is scaled by the factor too.
        order: The order of the method.
    """
    rtol, atol, longest = limits
    other = partial(solve, rtol=factor * rtol, atol=factor * atol, max_step=longest * factor ** (1 / order))
    _, states, _, how, _ = motion(other, y0 if start is None else start, progress=None)
    return states, how.startswith(_EVENT) if result else not how


class _SimulationState(NamedTuple):
    """State of an adaptive simulation between two chunks.

    Attributes:
        t: Time reached, s.
        y: State (q, v, w) at that time.
        chunks: Number of pieces computed, including the initial state.
        steps: Number of steps done, including rejected ones.
    """

    t: Float[Array, ""]
    y: Float[Array, " state"]
    saved: int
    chunks: int
    steps: int
    result: str


def _solve_in_chunks(
    solve: Callable[..., Any],
    y0: Float[Array, " state"],
    times: Float[np.ndarray, " n"],
    duration: float,
    max_steps: int,
    events: tuple[Any, ...],
    progress: Progress | None,
    blame: Callable[[Array, Array], str],
    missed: Callable[[np.ndarray, np.ndarray, Array], np.ndarray | None],
) -> tuple[Float[np.ndarray, " saved"], Float[np.ndarray, "saved state"], Float[np.ndarray, "looks state"], str, int]:
    """(times, states, states between them, reason for the end, steps): ``solve`` in chunks, to the end, an event, a
    failure, or Ctrl-C.
    """
    end, size, first = jnp.asarray(duration, times.dtype), min(SAVED, len(times)), int(times[0] == 0)
    # computed pieces; only the first ``_SimulationState.chunks`` entries of this list are valid
    start = np.asarray(y0)[None]
    motions = [(times[:first], start[:first], start[:0])]
    # fractions of the intervals that have no period, as a motion may have the period of the saved states
    more = max(1, LOOKS // max(len(times) - first, 1))
    part = (np.arange(more) + (GOLDEN * np.arange(len(times)) % 1)[:, None]) / more
    looks = times[:, None] - (1 - part) * np.diff(times, prepend=0.0)[:, None]

    def advance(state: _SimulationState) -> _SimulationState:
        del motions[state.chunks :]
        window = times[state.saved : state.saved + size]
        last = window[-1] if state.saved + size < len(times) else np.asarray(end)
        inner = np.maximum(looks[state.saved : state.saved + size], state.t)  # a chunk may end within an interval
        rows = np.append(inner, window[:, None], axis=1).astype(times.dtype)
        full = np.pad(rows, ((0, size - len(window)), (0, 0)), constant_values=last).ravel()
        most = min(STEPS, max_steps - state.steps)
        found = solve(state.y, t0=state.t, t1=jnp.asarray(last), save_at=full, max_steps=most)
        steps = state.steps + int(found.accepted) + int(found.rejected)
        around = missed(np.append(state.t, full), np.concatenate([np.asarray(state.y)[None], found.ys]), found.ts)
        if around is not None:  # a step that ends at the state before the crossing, the next one at that behind it
            until = around[0] if around[0] > state.t else around[1]
            again = solve(state.y, t0=state.t, t1=jnp.asarray(until), save_at=np.minimum(full, until), max_steps=most)
            steps += int(again.accepted) + int(again.rejected)
            found, last = (again, until) if until == around[0] or again.event.any() else (found, last)
        shape = (len(window), more + 1)
        known = np.isfinite(np.asarray(found.ts)[: rows.size]).reshape(shape) & (rows <= last)
        ys = np.asarray(found.ys)[: rows.size].reshape(*shape, len(state.y))
        count = int(known[:, -1].sum())
        motions.append((window[:count], ys[:count, -1], ys[:, :-1][known[:, :-1]]))
        result = _ended(found, events, steps, max_steps, duration, blame)
        return _SimulationState(found.t, found.y, state.saved + count, len(motions), steps, result)

    state, interrupted = run_in_chunks(
        _SimulationState(jnp.zeros((), times.dtype), y0, first, 1, 0, ""),
        advance,
        lambda state: not state.t < end or bool(state.result),
        progress=None if progress is None else lambda _, state: progress(state.saved, len(times)),
    )
    result = f"interrupted at {float(state.t):g} s of {duration:g} s" if interrupted else state.result
    time, states, between = (np.concatenate(parts) for parts in zip(*motions[: state.chunks], strict=True))
    if result and (not len(time) or state.t > time[-1]) and np.isfinite(state.y).all():
        time, states = np.append(time, np.asarray(state.t)), np.append(states, np.asarray(state.y)[None], axis=0)
    return time, states, between, result, state.steps


def _missed_crossing(
    events: tuple[Any, ...], args: Any, rtol: float, times: Float[np.ndarray, " n"],
    states: Float[np.ndarray, "n state"], reached: Float[Array, " saved"],
) -> Float[np.ndarray, " two"] | None:  # fmt: skip
    """The times of the states around the first crossing of an event; or None.

    Args:
        times: The times of the initial state and of others.
        reached: The times of the others; infinite after the end.
    """
    if not events:
        return None
    values = np.asarray(_conditions(events, args, jnp.asarray(times), jnp.asarray(states)))
    values = values[np.append(True, np.isfinite(reached))]
    # signs of values that the error of the states may change are none
    sides = np.where(np.abs(values) > rtol * np.nanmax(np.abs(values), axis=0, initial=0.0), np.sign(values), 0.0)
    rising = np.array([np.nan if event.rising is None else 2.0 * event.rising - 1 for event in events])
    crossed = (sides[:-1] * sides[1:] < 0) & ~(sides[1:] * rising < 0)
    first = np.flatnonzero(crossed.any(axis=1))
    return times[first[0] : first[0] + 2] if first.size else None


@compiled
def _conditions(
    events: tuple[Any, ...], args: Any, t: Float[Array, " n"], y: Float[Array, "n state"]
) -> Float[Array, "n events"]:
    """The conditions of the events at n states."""
    return jax.vmap(lambda t, y: jnp.stack([event.condition(t, y, args) for event in events]))(t, y)


def _times(
    model: Model, save_at: ArrayLike | Sequence[float] | None, duration: float, dt_out: float
) -> Float[np.ndarray, " n"]:
    """The times of the states to save, s, in the model's dtype."""
    if save_at is None:
        return np.append(dt_out * np.arange(max(1, round(duration / dt_out))), duration).astype(model.dtype)
    times = np.asarray(save_at, float).astype(model.dtype)
    if times.ndim != 1 or not times.size:
        raise ValueError(f"save_at: expected times of shape (n,), got shape {times.shape}")
    if not (times[0] >= 0 and times[-1] <= np.asarray(duration, times.dtype) and np.all(np.diff(times) > 0)):
        raise ValueError(f"save_at: expected increasing times from 0 to {duration:g} s, got {times}")
    return times


def _constant(model: Model, torques: ArrayLike | None, control: Drive) -> TorqueSegment | None:
    """The constant joint forces or commands."""
    name, width, what = "torques", model.nv, "forces"
    if isinstance(control, ActuatedControl):
        name, width, what = "commands", control.actuators.commands, "commands"
    if torques is not None and jnp.shape(torques) != (width,):
        raise ValueError(
            f"{name}: expected shape ({width},), constant over time, got {jnp.shape(torques)}; give {what} that"
            " change as control, a function of time"
        )
    return torque_segments(model, torques, 1, 0.0, 1.0, control)


def _blame(args: Any, t: Float[Array, ""], y: Float[Array, " state"]) -> str:
    """A description of why the equations are not finite just after a state; empty if they are."""
    model = args[0][0]
    missing = describe_missing_inertia(model, y[: model.nq])
    if missing:
        return missing
    try:
        checked_equations_of_motion(jnp.nextafter(t, jnp.inf), y, (args, (jnp.array(0), None)))
    except FloatingPointError as error:
        return str(error).partition("s): ")[2]
    return ""


def _ended(
    found: Any,
    events: tuple[Any, ...],
    steps: int,
    max_steps: int,
    duration: float,
    blame: Callable[[Array, Array], str],
) -> str:
    """A description of how a chunk, a ``Solution`` of ``adaptive.solve``, ended the motion; empty if it continues."""
    from lgsim.integrators.adaptive import RESULTS

    at = f"at {float(str(np.asarray(found.t))):.9g} s"
    if found.result == RESULTS.successful:
        return ""
    if found.result == RESULTS.event_occurred:
        place = int(np.argmax(found.event))
        condition = events[place].condition
        return f"{_EVENT} {at}: {condition if isinstance(condition, ThresholdEvent) else f'events[{place}]'}"
    if found.result == RESULTS.max_steps_reached:
        if steps >= max_steps:
            return (
                f"stopped {at} of {duration:g} s after {steps} steps: raise max_steps or the tolerances, or check"
                " whether the motion became stiff"
            )
        if found.accepted:
            return ""
    unknown = "the accelerations are not finite from here on, or the motion grows without bound"
    fault = blame(found.t, found.y) or unknown
    return f"stalled {at}: the steps shrank until they no longer changed the time; {fault}"
