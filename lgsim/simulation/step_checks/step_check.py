"""The error of a simulation's steps, from the same machine moved again with other steps."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from lgsim.integrators.step_error import Scale, StepError, Timeline, estimate, parting_rate, verdict
from lgsim.integrators.step_grids import Difference, compare
from lgsim.multibody.model import Model
from lgsim.simulation.actuated_control import ActuatedControl
from lgsim.simulation.equations_of_motion import state_space
from lgsim.simulation.fixed_steps import FixedSteps
from lgsim.simulation.rollout import Drive, StateHistory
from lgsim.simulation.state_space import StateSpace
from lgsim.simulation.step_checks.step_advice import advice
from lgsim.simulation.trajectory import v_names

NODES = 64
"""Nodes at which motions are compared, at least, where a motion has so many steps."""

RESTS = 1e5
"""The number of rounding units, of 1 rad, 1 m, 1 rad/s ..., that count as no motion."""


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
    """The error of the steps at all nodes of a motion.

    Args:
        fixed: How the motion was computed; the same program computes it with other steps.
        states: Its states at the nodes, the start first.
    """
    model, space = fixed.model, state_space(fixed.model, fixed.control)
    difference, claimed = differences(space), fixed.method.order
    scale = motion_scale(model, states, fixed.control)
    line = Timeline.even(len(states) - 1, fixed.every, fixed.dt)

    def advance(y: Array, node: int, ratio: tuple[int, int]) -> Float[np.ndarray, "count state"]:
        return joined_state(fixed.motion(y, node * fixed.every, ratio))[1:]

    def neighbor_rate() -> float:
        start, apart = neighbor(space, states[0], scale)
        gaps, _ = compare(advance, difference, states, (1, 1), scale.size, start=start)
        return parting_rate(line, scale, gaps, apart)

    sampled = isinstance(fixed.control, ActuatedControl) and fixed.control.actuators.is_sampled
    divisible = (fixed.rows is None or fixed.rows.steady) and not sampled
    found = estimate(line, scale, claimed, advance, difference, states, divisible)
    error = verdict(line, scale, claimed, found, neighbor_rate)
    if error.resolved or np.isfinite(error.rate):
        return error
    segment = fixed.rows if fixed.rows is None or fixed.rows.steady else None
    what = advice(model, fixed.method, fixed.dt, fixed.every, states, error, fixed.control, fixed.wrenches, segment)
    return replace(error, reason=f"{error.reason}; {what}")


def neighbor(space: StateSpace, y: Float[np.ndarray, " state"], scale: Scale) -> tuple[Float[Array, " state"], float]:
    """A start near another one, and how far away it is, as a share of the sizes."""
    apart = float(np.sqrt(scale.eps))
    # along no axis of symmetry
    away = apart * scale.size * np.random.default_rng(0).choice([-1.0, 1.0], len(scale.size))
    return space.move(jnp.asarray(away, y.dtype), jnp.asarray(y)), apart


def motion_scale(model: Model, states: Float[np.ndarray, "nodes state"], drive: Drive = None) -> Scale:
    """The sizes of a motion in the components of its algebra.

    Turns, slides and the velocities and forces of either are measured alike, by the largest one; where they do not
    move at all, by what rounding would move them; of states of actuators each one by its own largest value.
    """
    space, tree = state_space(model, drive), model.topology
    eps = float(np.finfo(states.dtype).eps)
    start = np.broadcast_to(states[0], states.shape)
    size = np.abs(np.asarray(differences(space)(start, states), float)).max(axis=0)
    further = np.abs(np.asarray(states[:, tree.nq :], float)).max(axis=0)
    size[tree.nv :] = further
    magnitude = np.concatenate([np.full(tree.nv, np.abs(states[:, : tree.nq]).max(initial=1.0)), further])
    turns = np.array([row.turns for i, joint in enumerate(tree.joints) if tree.mimics[i] is None for row in joint.rows])
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
    return Scale(size, magnitude, eps, tuple(names), tuple(units), tree.nv)


@cache
def differences(space: StateSpace) -> Difference:
    """The function that gives the differences (count, dim) of states (count, ...)."""
    if not space.topology.groups:
        return lambda y0, y1: y1 - y0
    return jax.jit(jax.vmap(space.difference))
