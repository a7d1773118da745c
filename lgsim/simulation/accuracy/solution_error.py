"""The error of the steps of a ``Solution``, on any manifold whose action gives differences."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import PyTree, Shaped

from lgsim.integrators.integrate import Solution, integrate
from lgsim.integrators.method import Field, Method, Number, state
from lgsim.lie.action import Action, Point
from lgsim.simulation.accuracy.trajectory_error import RESTS, Motion, Scale, StepError, Timeline, motion_error
from lgsim.support import check

CHUNK = 512
"""Steps of a compiled program, about."""


def solution_error(
    solution: Solution,
    method: Method,
    action: Action,
    field: Field,
    *,
    dt: Number,
    save_every: int = 1,
    args: Any = None,
    inputs: PyTree[Shaped[ArrayLike, "steps ..."]] = None,
) -> StepError:
    """The error that the steps left in a solution of ``integrate``, from the same motion with other steps.

    A motion of up to 2048 steps is computed again with dt/2, a longer one with 2 dt and 4 dt, and with 5/6 dt where
    those do not converge as the method should; with ``inputs`` always with dt/2. All by one compiled program. Errors
    are measured by the largest way that the motion goes in any component of the algebra. All other arguments are those
    that ``integrate`` was given.

    Args:
        solution: What ``integrate`` returned; of one state, not a batch.

    Returns:
        The estimate at the saved states, in the components of an algebra vector, with the observed order, and whether
        the motion is resolved; where it is not and neighboring motions part, their rate.

    Raises:
        NotImplementedError: the action has no ``difference``.
        ValueError: the solution holds nothing but its start.
    """
    nodes = len(solution.ts) - 1
    if nodes < 1:
        raise ValueError("solution: expected a state after the start, got none")
    y0, dtype = state(jax.tree.map(lambda x: x[0], solution.ys))
    states = jax.tree.map(np.asarray, solution.ys)
    h, t0 = float(dt), float(solution.ts[0])
    save_every = check.count("save_every", save_every)
    count = save_every * min(nodes, max(1, CHUNK // save_every))

    def advance(y: Point, node: int, ratio: tuple[int, int]) -> Point:
        a, b = ratio
        done = node * save_every
        # a shorter step has the input of the step that it lies in
        at = np.minimum((done + np.arange(count)) * b // a, nodes * save_every - 1)
        rows = None if inputs is None else jax.tree.map(lambda x: jnp.asarray(x)[at], inputs)
        found = integrate(
            method, action, field, y, t0=jnp.asarray(t0 + done * h * b / a, dtype), dt=jnp.asarray(h * b / a, dtype),
            steps=count, args=args, inputs=rows, save_every=save_every, throw=False,
        )  # fmt: skip
        return jax.tree.map(lambda x: x[1:], found.ys)

    difference = jax.jit(jax.vmap(action.difference))
    start = jax.tree.map(lambda x: np.broadcast_to(x[0], x.shape), states)
    way = np.abs(np.asarray(difference(start, states), float))
    eps = float(np.finfo(dtype).eps)
    size = np.full(action.dim, max(float(way.max()), RESTS * eps))
    magnitude = np.maximum(np.abs(np.asarray(action.sizes(y0), float)), size)
    scale = Scale(size, magnitude, dtype, tuple(map(str, range(action.dim))), ("",) * action.dim, action.dim)
    line = Timeline.even(nodes, save_every, abs(h))
    return motion_error(Motion(states, line, scale, method.order, difference, action.move), advance, inputs is None)
