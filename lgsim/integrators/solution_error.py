"""The error of the steps of a ``Solution``, on any manifold whose action gives differences."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Float, PyTree, Shaped

from lgsim.integrators.integrate import Solution, integrate
from lgsim.integrators.method import Field, Method, Number, state
from lgsim.integrators.step_error import Scale, StepError, Timeline, estimate, parting_rate, verdict
from lgsim.integrators.step_grids import compare
from lgsim.lie.action import Action, Point
from lgsim.support import check

CHUNK = 512
"""Steps of a compiled program, about."""

RESTS = 1e5
"""The number of rounding units that count as no motion."""


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
    are measured by the largest way that the motion goes in any component of the algebra.

    Args:
        solution: What ``integrate`` returned; of one state, not a batch.
        method: What ``integrate`` was given.
        action: What it was given.
        field: What it was given.
        dt: What it was given.
        save_every: What it was given.
        args: What it was given.
        inputs: What it was given.

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
    line = Timeline.even(nodes, save_every, abs(h))
    count = save_every * min(nodes, max(1, CHUNK // save_every))
    between = jax.jit(jax.vmap(action.difference))

    def difference(one: Point, two: Point) -> Float[np.ndarray, "count dim"]:
        return np.asarray(between(one, two), float)

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

    eps = float(np.finfo(dtype).eps)
    start = jax.tree.map(lambda x: np.broadcast_to(x[0], x.shape), states)
    way, weight = np.abs(difference(start, states)), np.abs(np.asarray(action.sizes(y0), float))
    size = np.full(action.dim, max(float(way.max()), RESTS * eps))
    scale = Scale(
        size, np.maximum(weight, size), eps, tuple(map(str, range(action.dim))), ("",) * action.dim, action.dim
    )

    def neighbor_rate() -> float:
        apart = float(np.sqrt(eps))
        away = jnp.asarray(apart * size * np.random.default_rng(0).choice([-1.0, 1.0], len(size)), dtype)
        gaps, _ = compare(advance, difference, states, (1, 1), size, start=action.move(away, y0))
        return parting_rate(line, scale, gaps, apart)

    found = estimate(line, scale, method.order, advance, difference, states, inputs is None)
    return verdict(line, scale, method.order, found, neighbor_rate)
