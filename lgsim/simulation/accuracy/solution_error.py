"""Integration error of a ``Solution`` on any manifold whose action provides differences."""

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
"""Approximate number of steps of a compiled program."""


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
    """The integration error of a solution of ``integrate``, estimated from the same motion with other steps.

    A motion of up to 2048 steps is computed again with dt/2 and 6/7 dt. A longer one is computed with 2 dt, 4 dt and
    8/5 dt, or with 6/7 dt where those do not converge at the method's order. With ``inputs`` the step is always dt/2.
    One compiled program serves all of them. Errors are relative to the largest distance that the motion covers in any
    component of the algebra. All other arguments are those of ``integrate``.

    Args:
        solution: A result of ``integrate``, of one state, not a batch.

    Returns:
        The estimate at the saved states, in the components of an algebra vector, with the observed order and whether
        the motion has converged in the step size; for a chaotic motion that has not, the largest Lyapunov exponent.

    Raises:
        NotImplementedError: the action has no ``difference``.
        ValueError: the solution holds only its initial state.
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
        # a shorter step takes the input of the step that contains it
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
    line = Timeline.even(nodes, save_every, abs(h))
    magnitude, most = np.abs(np.asarray(action.sizes(y0), float)), float(way.max())
    rest = RESTS * eps * np.sqrt(line.steps[-1])
    size = np.full(action.dim, most if most > rest else max(magnitude.max(), 1.0))
    magnitude = np.maximum(magnitude, most)
    names, alike = tuple(f"component {i}" for i in range(action.dim)), np.zeros(action.dim, int)
    scale = Scale(size, size, magnitude, dtype, names, ("",) * action.dim, action.dim, alike, alike)
    return motion_error(Motion(states, line, scale, method.order, difference, action.move), advance, inputs is None)
