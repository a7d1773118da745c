"""The solution of an adaptive integration with its result codes."""

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
    """The result of an adaptive integration; the text gives the remedy."""

    successful = ""
    event_occurred = "An event ended the integration."
    max_steps_reached = (
        "max_steps were taken before t1. Raise max_steps or the tolerances, or check whether the motion became stiff."
    )
    stalled = (
        "The step shrank until it no longer changed the time. The field is not finite from here on, or the solution "
        "grows without bound: check the field at the last state, y."
    )
    nonfinite = "The last state is not finite. Take a controller that rejects steps, such as the default one."


class Solution(eqx.Module):
    """The result of ``solve``: the final state, the saved states, and the reason for the end.

    Attributes:
        t: the time reached, (): t1, the time of an event, or the time at which the integration failed.
        y: the state at the time t.
        ts: the saved times, (saved,); infinity after the end of the integration. None if nothing was requested.
        ys: the states at the saved times, each leaf with the leading axis of ``ts``; infinity where ``ts`` is. None if
            nothing was requested.
        accepted: the number of accepted steps, ().
        rejected: the number of rejected steps, ().
        event: True for the event that ended the integration, bool, shape (events,); None without events.
        result: ``RESULTS.successful``, ``RESULTS.event_occurred`` or the failure.
        interpolation: the dense output, or None.
        saved_steps: True if ``ts`` are t0 and the ends of the accepted steps.
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
        """The reason for the end, with the time; empty after a success. Outside ``jax.jit`` only."""
        text = RESULTS[self.result]
        return f"t = {float(self.t):.9g}: {text}" if text else ""

    @property
    def step_sizes(self) -> Float[Array, " accepted"]:
        """The lengths of the accepted steps, (accepted,), after ``save_steps=True``. Outside ``jax.jit`` only.

        They are exact to rounding of the times: step k went from ``ts[k]`` to ``ts[k + 1]``.

        Raises:
            ValueError: the steps were not saved.
        """
        if not self.saved_steps:
            raise ValueError("step_sizes: the ends of the steps are not known; pass save_steps=True to solve")
        return jnp.diff(cast(Array, self.ts)[: int(self.accepted) + 1])

    def evaluate(self, t: Real[ArrayLike, "*n"]) -> Point:
        """The state at the time t, or at the times of an array (n,); NaN outside the integrated interval.

        The states are interpolated by a quartic in the algebra over each step, with an error of fifth order in it.

        Raises:
            ValueError: the solution has no dense output.
        """
        if self.interpolation is None:
            raise ValueError("evaluate: there is no dense output; pass dense=True to solve")
        times = jnp.asarray(t, self.t.dtype)
        evaluate = self.interpolation.evaluate
        return jax.vmap(lambda time: evaluate(time))(times) if times.ndim else evaluate(times)
