"""The solution of an adaptive integration and the ways in which it can end."""

from __future__ import annotations

from typing import cast

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Bool, Float, Int, Real

from lgsim.lie.action import Point


class RESULTS(eqx.Enumeration):
    """How an adaptive integration ended; the text says what to do."""

    successful = ""
    event_occurred = "An event ended the integration."
    max_steps_reached = (
        "max_steps were taken before t1. Raise max_steps or the tolerances, or look whether the motion became stiff."
    )
    stalled = (
        "The step shrank until it no longer changed the time. The field is not finite from here on, or the solution "
        "grows without bound: look at the field at the last state, y."
    )
    nonfinite = "The last state is not finite. Take a controller that rejects steps, such as the default one."


class Solution(eqx.Module):
    """The result of ``solve``: the last state, the states that were saved, and how the integration ended.

    Attributes:
        t: the time reached, (): t1, the time of an event, or the time at which the integration failed.
        y: the state at the time t.
        ts: the saved times, (saved,); infinity where the integration ended before. None if nothing was asked for.
        ys: the states at the saved times, each leaf with the leading axis of ``ts``; infinity where ``ts`` is. None if
            nothing was asked for.
        accepted: the number of accepted steps, ().
        rejected: the number of rejected steps, ().
        event: which event ended the integration, bool, shape (events,); None without events.
        result: ``RESULTS.successful``, ``RESULTS.event_occurred`` or what went wrong.
        interpolation: the dense output, or None.
        saved_steps: whether ``ts`` are t0 and the ends of the accepted steps.
    """

    t: Float[Array, ""]
    y: Point
    ts: Float[Array, " saved"] | None
    ys: Point | None
    accepted: Int[Array, ""]
    rejected: Int[Array, ""]
    event: Bool[Array, " events"] | None
    result: RESULTS
    interpolation: diffrax.DenseInterpolation | None
    saved_steps: bool = eqx.field(static=True, default=False)

    @property
    def message(self) -> str:
        """How the integration ended, in words and with the time; empty after a success. Outside of ``jax.jit`` only."""
        text = RESULTS[self.result]
        return f"t = {float(self.t):.9g}: {text}" if text else ""

    @property
    def step_sizes(self) -> Float[Array, " accepted"]:
        """The lengths of the accepted steps, (accepted,), after ``save_steps=True``. Outside of ``jax.jit`` only.

        They are exact to rounding of the times: the step k went from ``ts[k]`` to ``ts[k + 1]``.

        Raises:
            ValueError: the ends of the steps were not saved.
        """
        if not self.saved_steps:
            raise ValueError("step_sizes: the ends of the steps are not known; pass save_steps=True to solve")
        return jnp.diff(cast(Array, self.ts)[: int(self.accepted) + 1])

    def evaluate(self, t: Real[ArrayLike, "*n"]) -> Point:
        """The state at the time t, or at the times of an array (n,); NaN outside of the integrated time.

        The states lie on a quartic in the algebra over each step, whose error falls with the fifth power of the step.

        Raises:
            ValueError: the solution was made without ``dense=True``.
        """
        if self.interpolation is None:
            raise ValueError("evaluate: there is no dense output; pass dense=True to solve")
        times = jnp.asarray(t, self.t.dtype)
        evaluate = self.interpolation.evaluate
        return jax.vmap(lambda time: evaluate(time))(times) if times.ndim else evaluate(times)
