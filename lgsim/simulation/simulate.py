"""Simulation: a rollout that shows its progress, can be interrupted, and tells what went wrong."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lgsim.integrators.method import Method
from lgsim.integrators.methods import METHODS, MK4
from lgsim.multibody.model import Model
from lgsim.simulation.finite_checks import plain_errors
from lgsim.simulation.rollout import (
    Control,
    StateHistory,
    TorqueSegment,
    Wrenches,
    actuator_dynamics,
    commanded_forces,
    initial_state,
    integrate_checked_motion,
    integrate_motion,
    split_state,
    torque_segments,
)
from lgsim.simulation.trajectory import Trajectory
from lgsim.support.version import own_version

Progress = Callable[[int, int], Any]
"""``progress(done, steps)`` is called now and then."""

CHUNK = 512
"""Steps between two looks at the state."""


def simulate(
    model: Model,
    q0: Any = None,
    v0: Any = None,
    *,
    duration: float,
    dt: float,
    method: Method = MK4,
    torques: Any = None,
    control: Control | None = None,
    wrenches: Wrenches | None = None,
    tau0: Any = None,
    save_every: int = 1,
    check: bool = False,
    progress: Progress | None = None,
) -> Trajectory:
    """Simulate a machine for some time and keep what came of it.

    ``rollout`` in pieces: after each the state is looked at. Where it is not finite the simulation ends, and where it
    is interrupted (Ctrl-C) too; what was computed is returned, and ``result`` says why it ended and when.

    Args:
        model: The machine, as of ``lgsim.load_urdf``.
        q0: Configuration at the start, by default ``model.neutral()``.
        v0: Velocity at the start, by default zero.
        duration: s; rounded to a whole number of ``save_every`` steps.
        dt: Step, s.
        method: Of ``lgsim.METHODS``.
        torques, control, wrenches, tau0: See ``rollout``.
        save_every: Keep each ``save_every``-th state.
        check: Where the motion diverges, go there again slowly, and let ``result`` say which quantity was the first
            that was not finite, with its joint, body and step, see ``rollout``.
        progress: Called with the number of steps done and of all.

    Returns:
        The trajectory with the drives' joint forces at the saved states.

    Raises:
        TypeError: an argument is of the wrong kind or dtype.
        ValueError: a shape is wrong, dt or duration is not positive.
    """
    for name, value in (("duration", duration), ("dt", dt)):
        if not (math.isfinite(value) and value > 0):
            raise ValueError(f"{name}: expected a positive number of seconds, got {value}")
    y0 = initial_state(model, q0, v0, tau0)
    steps = max(1, round(duration / dt / save_every)) * save_every
    rows = torque_segments(model, torques, steps, 0.0, dt)
    chunk = save_every * max(1, min(CHUNK, steps) // save_every)
    run = partial(_piece, method=method, steps=chunk, save_every=save_every)
    kept = [StateHistory(jnp.zeros(1, model.dtype), *split_state(model, y0[None]))]
    tau, result, done = [_forces(model, control, rows, np.zeros(1, int), kept[0])], "", 0
    try:
        while done < steps and not result:
            now = rows if rows is None or rows.steady else jax.tree.map(partial(_rows_from, done, chunk), rows)
            t0, h = jnp.asarray(done * dt, model.dtype), jnp.asarray(dt, model.dtype)
            y0 = jnp.concatenate([x[-1] for x in kept[-1][1:] if x is not None])
            piece = run(model, y0, t0, h, now, control, wrenches)
            piece = _cut(piece, slice(1, 1 + min(chunk, steps - done) // save_every))
            good, result = _finite(model, piece, done, dt, save_every, method)
            if result and check:
                again = partial(
                    integrate_checked_motion,
                    model,
                    y0,
                    h,
                    chunk,
                    now,
                    control,
                    wrenches,
                    method,
                    t0,
                    save_every,
                    None,
                    done,
                )
                result = _first_fault(again, result)
            if len(good.time):
                at = done + save_every * np.arange(1, len(good.time) + 1)
                tau.append(_forces(model, control, rows, at, good))
                kept.append(good)
            done += len(piece.time) * save_every
            if progress is not None:
                progress(done, steps)
    except KeyboardInterrupt:
        result = f"interrupted at {done * dt:g} s of {steps * dt:g} s"
    time, q, v = (np.concatenate([np.asarray(part[i]) for part in kept]) for i in range(3))
    return Trajectory(
        model, np.asarray(save_every * dt * np.arange(len(time)), time.dtype), q, v, np.concatenate(tau)[: len(time)],
        method_name(method), float(dt), result, own_version(),
    )  # fmt: skip


@eqx.filter_jit  # not jax.jit: a control may be any function
def _piece(model, y0, t0, dt, rows, control, wrenches, *, method, steps, save_every):
    return integrate_motion(model, y0, dt, steps, rows, control, wrenches, method, t0, save_every, None)


def _first_fault(again: Callable[[], StateHistory], found: str) -> str:
    """How a piece diverged, in words, found by computing it again."""
    try:
        with plain_errors():
            jax.block_until_ready(again())
            jax.effects_barrier()
    except FloatingPointError as error:
        return f"diverged: not finite: {error}; {found.removeprefix('diverged: ')}"
    return found


def _cut(motion: StateHistory, part: slice) -> StateHistory:
    return jax.tree.map(lambda x: x[part], motion)


def _rows_from(start: int, count: int, rows: Array) -> Array:
    """``count`` rows from a place on; beyond the end the last one again."""
    return rows[np.minimum(np.arange(start, start + count), len(rows) - 1)]


def _forces(
    model: Model, control: Control | None, rows: TorqueSegment | None, at: np.ndarray, motion: StateHistory
) -> np.ndarray:
    """The drives' forces at states after ``at`` steps; of a held row what acts just after the state."""
    if rows is None:
        torques = None
    elif rows.steady:
        torques = jnp.broadcast_to(rows.force, motion.v.shape)
    else:
        # the last state has no row after it: the end of the last one
        since, force, slope = jax.tree.map(lambda x: x[np.minimum(at, len(x) - 1)], rows)
        torques = force + slope * (motion.time - since)[:, None]
    return np.asarray(drives(model, control, torques, *motion))


@eqx.filter_jit
def drives(
    model: Model, control: Control | None, torques: Array | None, t: Array, q: Array, v: Array, z: Array | None
) -> Array:
    """The drives' forces at many states (t, q, v) with the forces z of those that lag."""

    def force(torques: Array | None, t: Array, q: Array, v: Array, z: Array | None) -> Array:
        return actuator_dynamics(model, commanded_forces(model, control, torques, t, q, v), z)[0]

    given = (torques, t, q, v, z)
    return jax.vmap(force, tuple(None if x is None else 0 for x in given))(*given)


def _finite(
    model: Model, piece: StateHistory, done: int, dt: float, save_every: int, method: Method
) -> tuple[StateHistory, str]:
    """The saved states before the first one that is not finite, and what to say of it."""
    bad = ~np.all([np.isfinite(x).all(axis=1) for x in piece[1:] if x is not None], axis=0)
    if not bad.any():
        return piece, ""
    first = int(np.argmax(bad))
    step = done + (first + 1) * save_every
    force = None if piece.drive_forces is None else np.asarray(piece.drive_forces[first])
    joint = worst_joint(model, np.asarray(piece.q[first]), np.asarray(piece.v[first]), force)
    return _cut(piece, slice(first)), (
        f"diverged: the state is not finite at {step * dt:g} s (step {step}), first at the joint {joint!r}; take a"
        f" smaller dt than {dt:g} s or a method of higher order than {method_name(method)}"
    )


def worst_joint(model: Model, q: np.ndarray, v: np.ndarray, z: np.ndarray | None = None) -> str:
    """The first joint whose velocity, or else configuration or drive, is not finite."""
    for array, slices in ((v, model.v_slices), (q, model.q_slices), (z, model.v_slices)):
        for name, part in slices.items():
            if array is not None and not np.isfinite(array[part]).all():
                return name
    return model.joint_names[0]


def method_name(method: Method) -> str:
    """As in ``METHODS``, or else the method's own."""
    return next((name for name, known in METHODS.items() if known == method), method.name)
