"""Fixed-step simulation in chunks, with progress reports, interruption and diagnosis of failures."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float, Int

from lgsim.actuators.actuators import Actuators, ActuatorSum
from lgsim.dynamics.contacts.start_depth import check_start_depth
from lgsim.dynamics.joint_inertia import describe_missing_inertia
from lgsim.dynamics.loops.closure_checks import describe_singular_loop
from lgsim.integrators.method import Method
from lgsim.integrators.methods import MK4
from lgsim.multibody.model import Model
from lgsim.simulation.accuracy.fixed_step_error import check_steps, joined_state, node_steps
from lgsim.simulation.accuracy.stiffness import Automatic, UnstableMode, singular_joint, unstable_mode
from lgsim.simulation.accuracy.trajectory_error import StepError
from lgsim.simulation.actuated_control import actuated, given_commands
from lgsim.simulation.equations_of_motion import (
    Control,
    TorqueSegment,
    Wrenches,
    drives,
    initial_state,
    torque_segments,
)
from lgsim.simulation.finite_checks import plain_errors
from lgsim.simulation.fixed_steps import FixedSteps
from lgsim.simulation.methods import method_name
from lgsim.simulation.rollout import Drive, StateHistory, integrate_checked_motion
from lgsim.simulation.trajectory import Trajectory
from lgsim.simulation.variational.machine_method import MachineMethod
from lgsim.support import check as verify
from lgsim.support.chunks import run_in_chunks
from lgsim.support.packages import own_version
from lgsim.support.padded_batches import in_padded_batches

Progress = Callable[[int, int], Any]
"""``progress(done, steps)`` is called after each chunk with the number of steps done and in total."""

CHUNK = 512
"""Steps of a chunk, between two checks of the state."""
LAST = 32
"""Nodes before the end of a failed motion that are examined for the cause."""


def simulate(
    model: Model,
    q0: Float[ArrayLike, " nq"] | None = None,
    v0: Float[ArrayLike, " nv"] | None = None,
    *,
    duration: float,
    dt: float,
    method: Method | Automatic = MK4,
    torques: Float[ArrayLike, "*rows nv"] | None = None,
    control: Control | None = None,
    wrenches: Wrenches | None = None,
    actuators: Actuators | ActuatorSum | None = None,
    commands: Float[ArrayLike, "*rows _"] | None = None,
    actuator_state: Float[ArrayLike, " _"] | None = None,
    save_every: int = 1,
    check: bool = False,
    step_check: bool = True,
    progress: Progress | None = None,
) -> Trajectory:
    """Simulate a model for a given duration and return the trajectory.

    This runs ``rollout`` in chunks and checks the state after each. The simulation ends early if the state is not
    finite or if Ctrl-C interrupts it. The states up to then are returned, and ``result`` gives the reason and the time.

    Args:
        model: The model, e.g. from ``lgsim.load_urdf``.
        q0: Initial configuration (nq,), by default ``model.neutral()``.
        v0: Initial velocity (nv,), rad/s or m/s, by default zero.
        duration: Simulated time, s; rounded to a whole number of ``save_every`` steps.
        dt: Step, s.
        method: A method, such as those of ``lgsim.METHODS``, ``LINEARLY_IMPLICIT_METHODS`` and ``IMPLICIT_METHODS``; or
            ``Automatic()``, which switches to a stiff one if a rate of the motion is too fast for an explicit one.
        torques: Joint forces, see ``rollout``.
        control: A controller, see ``rollout``.
        wrenches: External wrenches on bodies, see ``rollout``.
        actuators: The map from commands to joint forces, see ``rollout``.
        commands: The actuators' commands, see ``rollout``.
        actuator_state: The actuators' initial states, see ``rollout``.
        save_every: Number of steps between saved states.
        check: True to compute the chunk in which a motion diverges again, slowly: ``result`` then names the first
            quantity that was not finite, with its joint, body and step, see ``rollout``.
        step_check: True to estimate the integration error of a complete motion from a second one with other steps, by
            the same compiled program, see ``StepError``. That takes about as long as the motion itself.
        progress: Called after each chunk with the number of steps done and in total.

    Returns:
        The trajectory with the drives' joint forces at the saved states.

    Raises:
        TypeError: an argument is of the wrong kind or dtype.
        ValueError: a shape is wrong, dt or duration is not positive, or a contact starts deeper than the size of its
            shape.
    """
    save_every = verify.count("save_every", save_every)
    for name, value in (("duration", duration), ("dt", dt)):
        verify.number(name, value)
        if not (math.isfinite(value) and value > 0):
            raise ValueError(f"{name}: expected a positive number of seconds, got {value}")
    control = actuated(model, actuators, control)
    y0 = initial_state(model, q0, v0, control, actuator_state)
    check_start_depth(model, y0[: model.nq])
    steps = max(1, round(duration / dt / save_every)) * save_every
    rows = torque_segments(model, given_commands(actuators, torques, commands), steps, 0.0, dt, control)
    every = node_steps(steps, save_every, CHUNK) if step_check else save_every
    unit = every if save_every > CHUNK else save_every
    chunk = unit * max(1, min(CHUNK, steps) // unit)
    explicit = method if isinstance(method, Method) else method.explicit
    fixed = FixedSteps(model, control, wrenches, rows, explicit, float(dt), chunk, every, max(chunk, CHUNK))
    run = partial(_run, y0=np.asarray(y0), steps=steps, save_every=save_every, check=check, progress=progress)
    remark = ""
    if isinstance(method, Method):
        pieces, state, interrupted = run(fixed)
    else:
        fixed, remark, (pieces, state, interrupted) = _run_automatically(method, fixed, y0, run)
    result = f"interrupted at {state.steps * dt:g} s of {steps * dt:g} s" if interrupted else state.result
    time, q, v = (np.concatenate([np.asarray(motion[i]) for motion in pieces.saved]) for i in range(3))
    error = None if interrupted or not step_check else _step_error(fixed, pieces, save_every)
    return Trajectory(
        model, np.asarray(save_every * dt * np.arange(len(time)), time.dtype), q, v,
        np.concatenate(pieces.forces), method_name(fixed.method), float(dt), result, own_version(), error, remark,
    )  # fmt: skip


Run = tuple["_Pieces", "_SimulationState", bool]
"""The computed states, the reason for the end, and whether the motion was interrupted."""


def _run(
    fixed: FixedSteps, watch: bool = False, *, y0: Float[np.ndarray, " state"], steps: int, save_every: int,
    check: bool, progress: Progress | None,
) -> Run:  # fmt: skip
    """The motion from y0; if it is watched, up to the first chunk with a rate for which the method is unstable."""
    model = fixed.model
    parts: Any = np.split(y0[None], np.cumsum([model.nq, model.nv]), axis=1)
    time: Any = np.zeros(1, model.dtype)
    q, v, w = parts
    first = StateHistory(time, q, v, w if w.size else None)
    forces = _forces(model, fixed.control, fixed.rows, np.zeros(1, int), first)
    pieces = _Pieces([first], [first], [first], [forces])
    state, interrupted = run_in_chunks(
        _SimulationState(0, 1, "", None),
        partial(_advance, fixed, steps, save_every, check, watch, pieces),
        lambda state: state.steps >= steps or bool(state.result) or state.unstable is not None,
        progress=None if progress is None else lambda _, state: progress(state.steps, steps),
    )
    pieces.cut(state.chunks)
    return pieces, state, interrupted


def _run_automatically(
    choice: Automatic, fixed: FixedSteps, y0: Float[Array, " state"], run: Callable[..., Run]
) -> tuple[FixedSteps, str, Run]:
    """(the steps taken, the reason for the stiff method or empty, the motion)."""
    mode, found = _unstable(fixed, np.asarray(y0)[None], 0), None
    if mode is None:
        found = run(fixed, True)
        mode = found[1].unstable
    if found is not None and mode is None:
        return fixed, "", found
    # from the start: with one method for the whole motion its order is known to the error estimate
    remark = f"{mode}: {method_name(choice.stiff)} replaces {method_name(choice.explicit)}"
    stiff = replace(fixed, method=choice.stiff)
    return stiff, remark, run(stiff)


def _step_error(fixed: FixedSteps, pieces: _Pieces, save_every: int) -> StepError | None:
    """The integration error at the saved states; None without steps, or if Ctrl-C interrupted its estimate."""
    states, between = (np.concatenate([joined_state(x) for x in part]) for part in (pieces.nodes, pieces.between))
    if len(states) < 2:
        return None
    try:
        return check_steps(fixed, states, between)[:: save_every // fixed.every]
    except KeyboardInterrupt:
        return None


class _SimulationState(NamedTuple):
    """State of a simulation between two chunks.

    Attributes:
        chunks: Number of pieces computed, including the initial state.
        unstable: The mode for which the method is unstable, if the motion is watched for one.
    """

    steps: int
    chunks: int
    result: str
    unstable: UnstableMode | None


class _Pieces(NamedTuple):
    """Computed pieces of a motion; only the first ``_SimulationState.chunks`` entries of these lists are valid.

    Attributes:
        nodes: The states that the error estimate compares, the saved ones among them.
        between: As many states at steps between the nodes.
        forces: The drives' forces at the saved states (n, nv), N m or N.
    """

    saved: list[StateHistory]
    nodes: list[StateHistory]
    between: list[StateHistory]
    forces: list[Float[np.ndarray, "n nv"]]

    def cut(self, chunks: int) -> None:
        """Discard everything after so many chunks."""
        for pieces in self:
            del pieces[chunks:]


def _advance(
    fixed: FixedSteps, steps: int, save_every: int, check: bool, watch: bool, pieces: _Pieces, state: _SimulationState
) -> _SimulationState:
    """Advance the simulation by one chunk and append its states to the pieces."""
    pieces.cut(state.chunks)
    done, model, every = state.steps, fixed.model, fixed.every
    y = joined_state(pieces.nodes[-1])[-1]
    whole = fixed.motion(y, done, count=min(fixed.chunk, steps - done), all_steps=True)
    motion = _slice(fixed.nodes(whole), slice(1, None))
    good, result = _finite(fixed, motion, done, y)
    if result and check:
        _, start, t0, h, rows, control, wrenches = fixed.arguments(y, done)
        machine = (model, control, wrenches)
        again = partial(
            integrate_checked_motion, machine, start, h, fixed.length, rows, fixed.method, t0, 1, None, done
        )
        result = _first_fault(again, result)
    if len(good.time):
        at = done + every * np.arange(1, len(good.time) + 1)
        at = at[at % save_every == 0]
        saved = _slice(good, (at - done) // every - 1)
        none = np.zeros((0, model.nv), model.dtype)
        pieces.forces.append(_forces(model, fixed.control, fixed.rows, at, saved) if len(at) else none)
        pieces.nodes.append(good)
        pieces.between.append(_slice(fixed.between(whole, done), slice(1, len(good.time) + 1)))
        pieces.saved.append(saved)
    unstable = None
    if watch:
        unstable = _unstable(fixed, np.concatenate([y[None], joined_state(good)]), done)
    return _SimulationState(done + len(motion.time) * every, len(pieces.saved), result, unstable)


def _first_fault(again: Callable[[], StateHistory], found: str) -> str:
    """A description of how a chunk diverged, found by computing it again with all quantities checked."""
    try:
        with plain_errors():
            jax.block_until_ready(again())
            jax.effects_barrier()
    except FloatingPointError as error:
        return f"diverged: not finite: {error}; {found.removeprefix('diverged: ')}"
    return found


def _slice(motion: StateHistory, part: slice | Int[np.ndarray, " n"]) -> StateHistory:
    return jax.tree.map(lambda x: x[part], motion)


def _forces(
    model: Model, control: Drive, rows: TorqueSegment | None, at: Int[np.ndarray, " n"], motion: StateHistory
) -> Float[np.ndarray, "n nv"]:
    """The drives' forces at the states after ``at`` steps, N m or N; with one row per step, the row after the state."""
    if rows is None:
        torques = None
    elif rows.steady:
        torques = jnp.broadcast_to(rows.force, (len(motion.v), rows.force.size))
    else:
        # the last state has no next row: take the end of the last one
        since, force, slope = jax.tree.map(lambda x: x[np.minimum(at, len(x) - 1)], rows)
        torques = force + slope * (motion.time - since)[:, None]
    return in_padded_batches(partial(drives, model, control), torques, motion.time, *motion.state_parts)


def _finite(
    fixed: FixedSteps, motion: StateHistory, done: int, start: Float[np.ndarray, " state"]
) -> tuple[StateHistory, str]:
    """(the nodes before the first one that is not finite or to which a step was not solved, a description of that one);
    ``start`` is the initial state.
    """
    model, dt = fixed.model, fixed.dt
    bad = ~np.all(np.isfinite(joined_state(motion)), axis=1)
    unsolved = _first_unsolved(fixed, motion)
    if unsolved is not None and not bad[:unsolved].any():
        return _slice(motion, slice(unsolved)), _describe_unsolved(fixed, motion, done, unsolved, start)
    if not bad.any():
        return motion, ""
    first = int(np.argmax(bad))
    step = done + (first + 1) * fixed.every
    joint = _worst_joint(model, np.asarray(motion.q[first]), np.asarray(motion.v[first]))
    # a smaller step does not help where the mass matrix is singular
    before = np.concatenate([start[None], joined_state(_slice(motion, slice(first)))])
    advice = describe_missing_inertia(model, jnp.asarray(before[-1, : model.nq])) or _singular(fixed, before[0], done)
    if not advice:
        mode = _unstable(fixed, before, done)
        advice = f"take a smaller dt than {dt:g} s or a method of higher order than {method_name(fixed.method)}"
        if mode is not None:
            advice = f"{mode}: take a dt of {0.5 * mode.largest_step:.1g} s, or a method such as Rodas4"
        singular = describe_singular_loop(model, before[-LAST:, : model.nq])
        advice = f"{singular}; else {advice}" if singular else advice
    return _slice(motion, slice(first)), (
        f"diverged: the state is not finite at {step * dt:g} s (step {step}), first at the joint {joint!r}; {advice}"
    )


def _first_unsolved(fixed: FixedSteps, motion: StateHistory) -> int | None:
    """The first node to which the equations of an implicit step were not solved, or None."""
    largest = fixed.method.largest_residual(fixed.model.dtype)
    if motion.residuals is None or largest is None:
        return None
    unsolved = ~(np.asarray(motion.residuals) <= largest)
    return int(np.argmax(unsolved)) if unsolved.any() else None


def _describe_unsolved(
    fixed: FixedSteps, motion: StateHistory, done: int, node: int, start: Float[np.ndarray, " state"]
) -> str:
    """A description of the steps to a node that were not solved, with joint and remedy."""
    first, last = done + node * fixed.every + 1, done + (node + 1) * fixed.every
    steps = f"step {last}" if first == last else f"one of the steps {first} to {last}"
    residual = np.asarray(motion.residuals)[node]
    before = start if node == 0 else joined_state(_slice(motion, slice(node - 1, node)))[0]
    joint, advice = "", f"take a smaller dt than {fixed.dt:g} s"
    if isinstance(fixed.method, MachineMethod):
        joint, advice = fixed.method.why_unsolved(fixed.model, before, fixed.dt)
    # a smaller step does not help where the mass matrix is singular
    missing = describe_missing_inertia(fixed.model, jnp.asarray(before[: fixed.model.nq]))
    joint, advice = ("", missing) if missing else (joint, advice)
    where = f", first at the joint {joint!r}" if joint else ""
    return (
        f"not solved: Newton's method did not converge in {steps}, up to {last * fixed.dt:g} s{where} (relative "
        f"residual {residual:.1e}); {advice}"
    )


def _singular(fixed: FixedSteps, y: Float[np.ndarray, " state"], done: int) -> str:
    """Advice if the linear system of a step from y is singular, otherwise empty."""
    joint = singular_joint(fixed, fixed.dt * done, y)
    if not joint:
        return ""
    return (
        f"the linear system of a step is singular at the joint {joint!r}, which grows too fast for dt; take half of it"
    )


def _unstable(fixed: FixedSteps, states: Float[np.ndarray, "n state"], done: int) -> UnstableMode | None:
    """The mode that the method's steps amplify at nodes of the motion, starting after ``done`` steps."""
    return unstable_mode(fixed, fixed.dt * (done + fixed.every * np.arange(len(states))), states)


def _worst_joint(
    model: Model,
    q: Float[np.ndarray, " nq"],
    v: Float[np.ndarray, " nv"],
) -> str:
    """The name of the first joint whose velocity v, or else configuration q, is not finite."""
    for array, slices in ((v, model.v_slices), (q, model.q_slices)):
        for name, part in slices.items():
            if not np.isfinite(array[part]).all():
                return name
    return model.joint_names[0]
