"""Fixed-step motion in compiled chunks, with the given step or with a multiple of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int, Shaped

from lgsim._compile.xla import compiled
from lgsim.integrators.integrate import FirstSteps
from lgsim.integrators.method import Method
from lgsim.multibody.model import Model
from lgsim.simulation.equations_of_motion import TorqueSegment, Wrenches
from lgsim.simulation.rollout import Drive, StateHistory, integrate_motion

GOLDEN = (5**0.5 - 1) / 2
"""The fraction whose multiples are spread evenly, without a period."""


@dataclass(frozen=True)
class Steps:
    """A model, its drives, and the steps of a method.

    Attributes:
        rows: Joint forces or commands, constant or for each step; None if there are none.
        dt: Step, s.
    """

    model: Model
    control: Drive
    wrenches: Wrenches | None
    rows: TorqueSegment | None
    method: Method
    dt: float


@dataclass(frozen=True)
class FixedSteps(Steps):
    """All inputs of a fixed-step motion except its initial state.

    Attributes:
        chunk: Number of steps between two checks of the motion.
        every: Number of steps between nodes, the states that are checked; a divisor of ``chunk``.
        length: The capacity of the compiled program in steps; the same for motions of any length and any nodes, which
            then share the program.
    """

    chunk: int
    every: int
    length: int

    def motion(
        self,
        y: Shaped[np.ndarray, " state"] | Float[Array, " state"],
        done: int,
        ratio: tuple[int, int] = (1, 1),
        count: int | None = None,
        *,
        all_steps: bool = False,
    ) -> StateHistory:
        """A chunk of steps of length dt b / a.

        Args:
            y: State after ``done`` such steps.
            ratio: (a, b).
            count: The number of steps; by default a whole chunk.
            all_steps: True for the states after all steps, of which ``nodes`` selects the nodes.

        Returns:
            The nodes of the chunk, starting with y, as numpy arrays: slices of JAX arrays would be compiled for each
            size.
        """
        count = self.chunk if count is None else count
        steps = {"count": jnp.asarray(count), "method": self.method, "steps": self.length}
        found = _chunk(*self.arguments(y, done, ratio), **steps)
        states = jax.tree.map(lambda x: np.asarray(x)[: count + 1], found)
        return states if all_steps else self.nodes(states)

    def nodes(self, states: StateHistory) -> StateHistory:
        """The nodes among the states after all steps, with the largest residual since the previous node."""
        nodes = jax.tree.map(lambda x: x[:: self.every], states)
        if states.residuals is None or self.every == 1:
            return nodes
        largest = states.residuals[1:].reshape(-1, self.every).max(axis=1)
        return nodes._replace(residuals=np.concatenate([nodes.residuals[:1], largest]))

    def between(self, states: StateHistory, done: int) -> StateHistory:
        """The initial state, after ``done`` steps, and one in each interval of nodes, at fractions without a period."""
        at = np.arange(0, len(states.time) - 1, self.every)
        within = ((done + at) // self.every * GOLDEN % 1 * self.every).astype(int)
        return jax.tree.map(lambda x: x[np.append(0, at + within)], states)

    def arguments(
        self, y: Shaped[np.ndarray, " state"] | Float[Array, " state"], done: int, ratio: tuple[int, int] = (1, 1)
    ) -> tuple[Any, ...]:
        """(model, y, time, step, joint forces, control, wrenches) of a chunk; arguments as for ``motion``."""
        a, b = ratio
        h, rows = self.dt * b / a, self.rows
        if rows is not None and not rows.steady:
            # a shorter step takes the row of the step that contains it; beyond the end the last row repeats
            at = np.minimum((done + np.arange(self.length)) * b // a, len(rows.force) - 1)
            rows = jax.tree.map(lambda x: x[at], rows)
        t0, h = jnp.asarray(done * h, self.model.dtype), jnp.asarray(h, self.model.dtype)
        return self.model, jnp.asarray(y), t0, h, rows, self.control, self.wrenches


@compiled  # not jax.jit: a control may be any function
def _chunk(
    model: Model,
    y0: Float[Array, " state"],
    t0: Float[Array, ""],
    dt: Float[Array, ""],
    rows: TorqueSegment | None,
    control: Drive,
    wrenches: Wrenches | None,
    *,
    count: Int[Array, ""],
    method: Method,
    steps: int,
) -> StateHistory:
    """The motion over ``count`` of at most ``steps`` steps from the state y0 at the time t0, with all states."""
    return integrate_motion((model, control, wrenches), y0, dt, steps, rows, method, t0, 1, FirstSteps(count))
