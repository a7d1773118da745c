"""Integration error of a fixed-step simulation, estimated from a second simulation with other steps."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import jax
import numpy as np
from jax import Array
from jaxtyping import Bool, Float, Int

from lgsim.actuators.actuators import ActuatorSum
from lgsim.actuators.stage import Stage
from lgsim.multibody.joint import GroupJoint
from lgsim.multibody.model import Model
from lgsim.simulation.accuracy.advice import shorter_step
from lgsim.simulation.accuracy.step_grids import Difference
from lgsim.simulation.accuracy.stiffness import turning
from lgsim.simulation.accuracy.trajectory_error import (
    RESTS,
    Motion,
    Scale,
    StepError,
    Timeline,
    largest_of,
    motion_error,
)
from lgsim.simulation.accuracy.unseen_forces import UnseenForces, unseen_forces
from lgsim.simulation.actuated_control import ActuatedControl
from lgsim.simulation.equations_of_motion import state_space
from lgsim.simulation.fixed_steps import FixedSteps
from lgsim.simulation.rollout import Drive, StateHistory
from lgsim.simulation.state_space import StateSpace
from lgsim.simulation.trajectory import v_names
from lgsim.support.verdict import RESOLVED

NODES = 64
"""The smallest number of nodes at which motions are compared, if the motion has that many steps."""


def node_steps(steps: int, save_every: int, chunk: int) -> int:
    """The number of steps between nodes: the largest divisor of ``save_every`` that makes ``NODES`` of them, or 1.

    Args:
        chunk: The largest number of steps between nodes.
    """
    most = min(save_every, chunk, steps // NODES)
    return next((d for d in range(most, 0, -1) if save_every % d == 0), 1)


def joined_state(motion: StateHistory) -> Float[np.ndarray, "saved state"]:
    """The states (saved, state) of a history."""
    return np.concatenate([np.asarray(x) for x in motion.state_parts if x is not None], axis=-1)


def check_steps(
    fixed: FixedSteps, states: Float[np.ndarray, "nodes state"], between: Float[np.ndarray, "nodes state"]
) -> StepError:
    """The integration error at all nodes of a motion.

    Args:
        fixed: The model, the method and the steps; the same compiled program runs with other steps.
        states: The states at the nodes, starting with the initial state.
        between: As many states, at steps between the nodes.
    """
    line = Timeline.even(len(states) - 1, fixed.every, fixed.dt)
    motion = known_motion(fixed.model, fixed.control, states, line, fixed.method.order, between)

    def advance(y: Array, node: int, ratio: tuple[int, int]) -> Float[np.ndarray, "count state"]:
        return joined_state(fixed.motion(y, node * fixed.every, ratio))[1:]

    sampled = isinstance(fixed.control, ActuatedControl) and fixed.control.actuators.is_sampled
    error = motion_error(motion, advance, (fixed.rows is None or fixed.rows.steady) and not sampled)
    if error.resolved:
        unseen = unseen_forces(fixed, states)
        return error if unseen is None or np.isnan(unseen.time) else _with_unseen(error, motion, unseen)
    if np.isfinite(error.rate):
        return error
    return replace(error, reason=f"{error.reason}; {shorter_step(fixed, states, error)}")


def _with_unseen(error: StepError, motion: Motion, unseen: UnseenForces) -> StepError:
    """The error with the effect of forces between the stages, which a motion at rest does not show at all."""
    error = replace(error, value=error.value + unseen.effect)
    nv, reason = error.places, f"{unseen.source} jumps at t = {unseen.time:.4g} s, between the stages of the steps"
    start = np.broadcast_to(motion.states[0], motion.states.shape)
    way = np.abs(np.asarray(motion.difference(start, motion.states), float))[:, :nv].max(axis=0)
    rounding = motion.rounding[-1, :nv]
    limit = np.where(way > RESTS * rounding, error.tolerance[:nv], RESTS * rounding)
    share = (unseen.effect[:, nv:] / error.size[nv:]).max(axis=1, initial=0.0)
    if (unseen.effect[:, :nv] <= limit).all() and np.sqrt(np.mean(share**2)) <= RESOLVED:
        return error
    return replace(
        error, until=unseen.time, reason=f"{reason}; take a dt that resolves it, or a longer, smoother force"
    )


def known_motion(
    model: Model,
    drive: Drive,
    states: Float[np.ndarray, "nodes state"],
    line: Timeline,
    order: int,
    between: Float[np.ndarray, "looks state"] | None = None,
) -> Motion:
    """The motion of a model whose integration error is estimated; arguments as for ``Motion``.

    Each component has its own scale, which the rotations of a group joint share, and so do its translations. One that
    moves by rounding only has the largest scale of its kind in its tree; if that is at rest, its magnitude. The held
    outputs of sampled actuators have an infinite one, since they jump.

    Args:
        between: Further states, between the nodes, which may coincide with a period of the motion.
    """
    space, tree = state_space(model, drive), model.topology
    difference, nv, mechanical = differences(space), tree.nv, 2 * tree.nv
    eps = float(np.finfo(states.dtype).eps)
    size, further = np.zeros(space.dim), np.zeros(space.dim - nv)
    start = np.broadcast_to(states[0], states.shape)
    # fixed length, so that the difference is compiled once
    for some in (states, start if between is None else np.concatenate([between, start])[: len(start)]):
        away = np.abs(np.asarray(difference(start, some), float))
        size = np.maximum(size, away.max(axis=0))
        further = np.maximum(further, np.abs(np.asarray(some[:, tree.nq :], float)).max(axis=0))
    size[nv:] = further
    part, coupled = _labels(model, space.dim)
    largest = np.ones(nv)
    for i, mimic in enumerate(tree.mimics):
        if mimic is None and tree.joints[i].nv:
            own, x = tree.v_slice(i), np.abs(states[:, tree.q_slice(i)]).max(axis=0)
            largest[own] = np.maximum(x if len(x) == own.stop - own.start else x.max(), 1.0)
    magnitude = largest_of(np.concatenate([largest, further]), part)
    unit = np.maximum(np.where(np.arange(space.dim) < nv, magnitude, 0.0), 1.0)
    rest = RESTS * eps * np.sqrt(line.steps[-1]) * unit
    size = largest_of(size, part)
    span = largest_of(size, coupled)
    span = np.where(span > rest, span, unit)
    size = np.where(size > rest, size, span)
    size[mechanical:][_jumps(drive)] = span[mechanical:][_jumps(drive)] = np.inf
    names = [f"{kind} {name[: name.rindex(' [')]}" for kind in ("q", "v") for name in v_names(model)]
    units = [name[name.rindex("[") + 1 : -1] for name in v_names(model)] * 2
    units[:nv] = np.where(turning(model), "rad", "m").tolist()
    names += [f"state {i} of the actuators" for i in range(space.dim - mechanical)]
    units += [""] * (space.dim - mechanical)
    scale = Scale(size, span, magnitude, states.dtype, tuple(names), tuple(units), nv, part, coupled)
    return Motion(states, line, scale, order, difference, space.move)


def _labels(model: Model, dim: int) -> tuple[Int[np.ndarray, " dim"], Int[np.ndarray, " dim"]]:
    """Labels of components that share a scale, and of those of one kind in one tree of bodies."""
    tree = model.topology
    roots: list[int] = []
    for i, parent in enumerate(tree.parents):
        roots.append(i if parent < 0 else roots[parent])
    joints = [(i, joint) for i, joint in enumerate(tree.joints) if tree.mimics[i] is None]
    dofs = [(i, isinstance(joint, GroupJoint), row.turns) for i, joint in joints for row in joint.rows]
    parts = [(i, turns, 0 if group else k) for k, (i, group, turns) in enumerate(dofs)]
    found = []
    for keys in (parts, [(roots[i], turns) for i, _, turns in dofs]):
        kinds = list(dict.fromkeys(keys))
        label = np.array([kinds.index(key) for key in keys], int)
        further = np.arange(dim - 2 * len(dofs)) + 2 * len(kinds)
        found.append(np.concatenate([label, label + len(kinds), further]))
    return found[0], found[1]


def _jumps(drive: Drive) -> Bool[np.ndarray, " states"]:
    """True for each state of the actuators that jumps at the start of a step."""
    actuators = drive.actuators if isinstance(drive, ActuatedControl) else ActuatorSum(())
    terms = actuators.terms if isinstance(actuators, ActuatorSum) else (actuators,)
    stages = [(stage, term.transmission.count) for term in terms for stage in term.stages]
    jumps = [np.full(stage.rows * n, type(stage).sample is not Stage.sample) for stage, n in stages]
    return np.concatenate([np.zeros(0, bool), *jumps])


@cache
def differences(space: StateSpace) -> Difference:
    """The function that returns the differences (count, dim) between states (count, ...)."""
    if not space.topology.groups:
        return lambda y0, y1: y1 - y0
    return jax.jit(jax.vmap(space.difference))
