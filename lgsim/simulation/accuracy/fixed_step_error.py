"""Integration error of a fixed-step simulation, estimated from a second simulation with other steps."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import jax
import numpy as np
from jax import Array
from jaxtyping import Float

from lgsim.multibody.model import Model
from lgsim.simulation.accuracy.advice import shorter_step
from lgsim.simulation.accuracy.step_grids import Difference
from lgsim.simulation.accuracy.stiffness import turning
from lgsim.simulation.accuracy.trajectory_error import RESTS, Motion, Scale, StepError, Timeline, motion_error
from lgsim.simulation.actuated_control import ActuatedControl
from lgsim.simulation.equations_of_motion import state_space
from lgsim.simulation.fixed_steps import FixedSteps
from lgsim.simulation.rollout import Drive, StateHistory
from lgsim.simulation.state_space import StateSpace
from lgsim.simulation.trajectory import v_names

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


def check_steps(fixed: FixedSteps, states: Float[np.ndarray, "nodes state"]) -> StepError:
    """The integration error at all nodes of a motion.

    Args:
        fixed: The model, the method and the steps; the same compiled program runs with other steps.
        states: The states at the nodes, starting with the initial state.
    """
    line = Timeline.even(len(states) - 1, fixed.every, fixed.dt)
    motion = known_motion(fixed.model, fixed.control, states, line, fixed.method.order)

    def advance(y: Array, node: int, ratio: tuple[int, int]) -> Float[np.ndarray, "count state"]:
        return joined_state(fixed.motion(y, node * fixed.every, ratio))[1:]

    sampled = isinstance(fixed.control, ActuatedControl) and fixed.control.actuators.is_sampled
    error = motion_error(motion, advance, (fixed.rows is None or fixed.rows.steady) and not sampled)
    if error.resolved or np.isfinite(error.rate):
        return error
    return replace(error, reason=f"{error.reason}; {shorter_step(fixed, states, error)}")


def known_motion(
    model: Model, drive: Drive, states: Float[np.ndarray, "nodes state"], line: Timeline, order: int
) -> Motion:
    """The motion of a model whose integration error is estimated; arguments as for ``Motion``.

    All rotational coordinates share one scale, the largest of them; so do all translational ones, and likewise their
    velocities and forces. Where none of them moves, the scale is the effect of rounding. Each actuator state is scaled
    by its own largest value.
    """
    space, tree = state_space(model, drive), model.topology
    difference = differences(space)
    eps = float(np.finfo(states.dtype).eps)
    start = np.broadcast_to(states[0], states.shape)
    size = np.abs(np.asarray(difference(start, states), float)).max(axis=0)
    further = np.abs(np.asarray(states[:, tree.nq :], float)).max(axis=0)
    size[tree.nv :] = further
    magnitude = np.concatenate([np.full(tree.nv, np.abs(states[:, : tree.nq]).max(initial=1.0)), further])
    turns = np.array(turning(model))
    mechanical = 2 * tree.nv
    for first in range(0, mechanical, tree.nv):
        for part in (turns, ~turns):
            block = np.arange(first, first + tree.nv)[part]
            size[block] = max(size[block].max(initial=0.0), RESTS * eps)
            magnitude[block] = magnitude[block].max(initial=0.0)
    size[mechanical:] = np.maximum(size[mechanical:], RESTS * eps)
    names = [f"{kind} {name[: name.rindex(' [')]}" for kind in ("q", "v") for name in v_names(model)]
    units = [name[name.rindex("[") + 1 : -1] for name in v_names(model)] * 2
    units[: tree.nv] = np.where(turns, "rad", "m").tolist()
    names += [f"state {i} of the actuators" for i in range(space.dim - mechanical)]
    units += [""] * (space.dim - mechanical)
    scale = Scale(size, magnitude, states.dtype, tuple(names), tuple(units), tree.nv)
    return Motion(states, line, scale, order, difference, space.move)


@cache
def differences(space: StateSpace) -> Difference:
    """The function that returns the differences (count, dim) between states (count, ...)."""
    if not space.topology.groups:
        return lambda y0, y1: y1 - y0
    return jax.jit(jax.vmap(space.difference))
