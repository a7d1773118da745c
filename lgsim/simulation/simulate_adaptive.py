"""Simulation with steps that a tolerance chooses, and events that end it."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from lgsim.integrators.method import Method
from lgsim.integrators.methods import MK54
from lgsim.multibody.model import Model
from lgsim.simulation.events import ThresholdEvent
from lgsim.simulation.rollout import (
    Control,
    TorqueSegment,
    Wrenches,
    checked_equations_of_motion,
    equations_of_motion,
    initial_state,
    split_state,
    state_space,
    torque_segments,
)
from lgsim.simulation.simulate import Progress, drives, method_name
from lgsim.simulation.trajectory import Trajectory
from lgsim.support.version import own_version

SAVED, STEPS = 1024, 8192
"""Saved states and steps between two looks at what was computed."""


def simulate_adaptive(
    model: Model,
    q0: Any = None,
    v0: Any = None,
    *,
    duration: float,
    rtol: float = 1e-6,
    atol: float = 1e-9,
    method: Method = MK54,
    control: Control | None = None,
    torques: Any = None,
    wrenches: Wrenches | None = None,
    tau0: Any = None,
    save_at: Any = None,
    dt_out: float = 0.01,
    events: Any = (),
    max_steps: int = 100_000,
    progress: Progress | None = None,
) -> Trajectory:
    """Simulate a machine with steps whose error stays below a tolerance, until a time or an event.

    The equations are those of ``rollout``, the steps those of ``lgsim.integrators.adaptive.solve``: the error e of each
    in the algebra keeps ``rms(e_i / (atol + rtol w_i)) < 1`` with w = 1 rad or 1 m for the configuration and ``|v|``
    for velocities. The error at the end is proportional to the tolerance. Saved states lie on quartics between the
    steps, of the same order of error. Needs the extra ``adaptive``; for gradients call ``solve`` itself.

    It goes in pieces of ``SAVED`` states or ``STEPS`` steps: between them Ctrl-C ends it and keeps what there is.

    Args:
        model: The machine, as of ``lgsim.load_urdf``.
        q0: Configuration at the start, by default ``model.neutral()``.
        v0: Velocity at the start, by default zero.
        duration: s.
        rtol: Tolerance of one step, relative to w.
        atol: Tolerance of one step, rad, m, rad/s or m/s.
        method: One with an error estimate: MK54, CF32a, CF32b, CF43.
        control, wrenches: See ``rollout``; they should be smooth, each jump costs many steps.
        torques: Joint forces (nv,) all the time, N m or N; by default none.
        tau0: Forces at the start of drives that lag, by default zero.
        save_at: Times of the states to keep, (n,), increasing, in [0, duration], s; by default ``dt_out`` apart.
        dt_out: Time between saved states, s, from 0 to the end; only the last one may lie half to one and a half times
            that from the one before.
        events: An ``adaptive.Event`` or a tuple of them, such as ``events.joint_reaches`` gives; the first one to
            occur ends the motion.
        max_steps: The largest number of steps, rejected ones included.
        progress: Called with the number of states saved and of all.

    Returns:
        The trajectory with the drives' joint forces at the saved states. Where it ended before ``duration``, ``result``
        says when and why, with the quantity, joint and body where something is not finite; its last state is the one
        that was reached, at an event the state of the event. ``dt`` is NaN and ``method`` holds the tolerances.

    Raises:
        ModuleNotFoundError: diffrax is missing.
        TypeError: an argument is of the wrong kind or dtype.
        ValueError: a shape is wrong, a time or a tolerance is not positive, the method has no error estimate.
    """
    from lgsim.integrators import adaptive

    for name, value in (("duration", duration), ("dt_out", dt_out)):
        if not (math.isfinite(value) and value > 0):
            raise ValueError(f"{name}: expected a positive number of seconds, got {value}")
    y0 = initial_state(model, q0, v0, tau0)
    row = _constant(model, torques)
    events = (events,) if isinstance(events, adaptive.Event) else tuple(events)
    times = _times(model, save_at, duration, dt_out)
    solve = partial(
        adaptive.solve, method, state_space(model), equations_of_motion, args=((model, control, wrenches), row),
        rtol=rtol, atol=atol, events=events,
    )  # fmt: skip
    blame = partial(_blame, ((model, control, wrenches), row))
    time, states, result = _pieces(solve, y0, times, duration, max_steps, events, progress, blame)
    q, v, z = split_state(model, jnp.asarray(states))
    sequence = None if row is None else jnp.broadcast_to(row.force, v.shape)
    tau = drives(model, control, sequence, jnp.asarray(time), q, v, z)
    name = f"{method_name(method)}, rtol {float(rtol):g}, atol {float(atol):g}"
    q, v, tau = (np.asarray(x) for x in (q, v, tau))
    return Trajectory(model, time, q, v, tau, name, float("nan"), result, own_version())


def _pieces(
    solve: Any, y: Array, times: np.ndarray, duration: float, max_steps: int, events: tuple, progress: Progress | None,
    blame: Any,
) -> tuple[np.ndarray, np.ndarray, str]:  # fmt: skip
    """(times, states, how it ended): ``solve`` piece by piece, until the end, an event, a failure or Ctrl-C."""
    t, end = jnp.zeros((), times.dtype), jnp.asarray(duration, times.dtype)
    done, steps, size, result = int(times[0] == 0), 0, min(SAVED, len(times)), ""
    kept = [(times[:done], np.asarray(y)[None][:done])]
    try:
        while t < end and not result:
            window = times[done : done + size]
            last = window[-1] if done + size < len(times) else np.asarray(end)
            full = np.pad(window, (0, size - len(window)), constant_values=last)
            found = solve(y, t0=t, t1=jnp.asarray(last), save_at=full, max_steps=min(STEPS, max_steps - steps))
            count = min(int(np.isfinite(np.asarray(found.ts)).sum()), len(window))
            kept.append((window[:count], np.asarray(found.ys)[:count]))
            t, y, done = found.t, found.y, done + count
            steps += int(found.accepted) + int(found.rejected)
            result = _ended(found, events, steps, max_steps, duration, blame)
            if progress is not None:
                progress(done, len(times))
    except KeyboardInterrupt:
        result = f"interrupted at {float(t):g} s of {duration:g} s"
    time, states = (np.concatenate(parts) for parts in zip(*kept, strict=True))
    if result and (not len(time) or t > time[-1]) and np.isfinite(y).all():
        time, states = np.append(time, np.asarray(t)), np.append(states, np.asarray(y)[None], axis=0)
    return time, states, result


def _times(model: Model, save_at: Any, duration: float, dt_out: float) -> np.ndarray:
    """The times of the states to keep, in the model's dtype."""
    if save_at is None:
        return np.append(dt_out * np.arange(max(1, round(duration / dt_out))), duration).astype(model.dtype)
    times = np.asarray(save_at, float).astype(model.dtype)
    if times.ndim != 1 or not times.size:
        raise ValueError(f"save_at: expected times of shape (n,), got shape {times.shape}")
    if not (times[0] >= 0 and times[-1] <= np.asarray(duration, times.dtype) and np.all(np.diff(times) > 0)):
        raise ValueError(f"save_at: expected increasing times from 0 to {duration:g} s, got {times}")
    return times


def _constant(model: Model, torques: Any) -> TorqueSegment | None:
    """Joint forces that are the same all the time."""
    if torques is not None and jnp.shape(torques) != (model.nv,):
        raise ValueError(
            f"torques: expected shape ({model.nv},), the same all the time, got {jnp.shape(torques)}; give forces that"
            " change as control, a function of time"
        )
    return torque_segments(model, torques, 1, 0.0, 1.0)


def _blame(args: Any, t: Array, y: Array) -> str:
    """What is not finite in the equations just after a state, in words; empty where all is."""
    try:
        checked_equations_of_motion(jnp.nextafter(t, jnp.inf), y, (args, (jnp.array(0), None)))
    except FloatingPointError as error:
        return str(error).partition("s): ")[2]
    return ""


def _ended(found: Any, events: tuple[Any, ...], steps: int, max_steps: int, duration: float, blame: Any) -> str:
    """How a piece ended the motion, in words; empty where it goes on."""
    from lgsim.integrators.adaptive import RESULTS

    at = f"at {float(str(np.asarray(found.t))):.9g} s"
    if found.result == RESULTS.successful:
        return ""
    if found.result == RESULTS.event_occurred:
        place = int(np.argmax(found.event))
        condition = events[place].condition
        return f"event reached {at}: {condition if isinstance(condition, ThresholdEvent) else f'events[{place}]'}"
    if found.result == RESULTS.max_steps_reached:
        if steps >= max_steps:
            return (
                f"stopped {at} of {duration:g} s after {steps} steps: raise max_steps or the tolerances, or look"
                " whether the motion became stiff"
            )
        if found.accepted:
            return ""
    unknown = "the accelerations are not finite from here on, or the motion grows without bound"
    fault = blame(found.t, found.y) or unknown
    return f"stalled {at}: the steps shrank until they no longer changed the time; {fault}"
