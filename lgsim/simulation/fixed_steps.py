"""A motion by steps of one length, a compiled chunk of them at a time, at that length or another one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Shaped

from lgsim.integrators.method import Method
from lgsim.multibody.model import Model
from lgsim.simulation.equations_of_motion import TorqueSegment, Wrenches
from lgsim.simulation.rollout import Drive, StateHistory, integrate_motion


@dataclass(frozen=True)
class FixedSteps:
    """What a motion is computed from, but for its start.

    Attributes:
        model: The machine.
        control, wrenches: See ``rollout``.
        rows: Joint forces or commands, all the time the same or of each step; None for none.
        method: The method.
        dt: Step, s.
        chunk: Number of steps of the compiled program.
        every: Number of steps from one node, a state that the program gives, to the next; a divisor of ``chunk``.
    """

    model: Model
    control: Drive
    wrenches: Wrenches | None
    rows: TorqueSegment | None
    method: Method
    dt: float
    chunk: int
    every: int

    def motion(
        self, y: Shaped[np.ndarray, " state"] | Float[Array, " state"], done: int, ratio: tuple[int, int] = (1, 1)
    ) -> StateHistory:
        """A chunk of steps of length dt b / a.

        Args:
            y: State after ``done`` such steps.
            done: Their number.
            ratio: (a, b).

        Returns:
            The nodes of the chunk, y the first of them.
        """
        return _chunk(*self.arguments(y, done, ratio), method=self.method, steps=self.chunk, save_every=self.every)

    def arguments(
        self, y: Shaped[np.ndarray, " state"] | Float[Array, " state"], done: int, ratio: tuple[int, int] = (1, 1)
    ) -> tuple[Any, ...]:
        """(model, y, time, step, joint forces, control, wrenches) of a chunk, arguments as of ``motion``."""
        a, b = ratio
        h, rows = self.dt * b / a, self.rows
        if rows is not None and not rows.steady:
            # a shorter step has the row of the step that it lies in; beyond the end the last one again
            at = np.minimum((done + np.arange(self.chunk)) * b // a, len(rows.force) - 1)
            rows = jax.tree.map(lambda x: x[at], rows)
        t0, h = jnp.asarray(done * h, self.model.dtype), jnp.asarray(h, self.model.dtype)
        return self.model, jnp.asarray(y), t0, h, rows, self.control, self.wrenches


@eqx.filter_jit  # not jax.jit: a control may be any function
def _chunk(
    model: Model,
    y0: Float[Array, " state"],
    t0: Float[Array, ""],
    dt: Float[Array, ""],
    rows: TorqueSegment | None,
    control: Drive,
    wrenches: Wrenches | None,
    *,
    method: Method,
    steps: int,
    save_every: int,
) -> StateHistory:
    """The motion over some steps from the state y0 at the time t0."""
    return integrate_motion(model, y0, dt, steps, rows, control, wrenches, method, t0, save_every, None)
