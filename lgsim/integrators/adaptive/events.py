"""Events: zero crossings of a function of time and state that end an integration."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float, Int

from lgsim._compile.xla import control_flow
from lgsim.lie.action import Point

Condition = Callable[[Float[Array, ""], Point, Any], Float[Array, ""]]
"""``condition(t, y, args)``: a scalar of the state's dtype, whose zero crossings are detected."""


class Event(eqx.Module):
    """An event that ends an integration where ``condition(t, y, args)`` crosses zero.

    Sign changes are detected at the ends of the steps, so that two crossings inside one step are missed. A condition
    that is zero at t0 counts as a crossing: give ``rising`` when you restart from an event.

    Attributes:
        condition: a function of the time, the state and ``args``; a scalar of the state's dtype.
        rising: True for upward crossings only, False for downward ones only, None for both, along the integration.
    """

    condition: Condition
    rising: bool | None = eqx.field(static=True, default=None)


class DirectedCondition(eqx.Module):
    """The condition of an event as diffrax calls it: in diffrax's own time, which is ``sign`` times the user's.

    Attributes:
        sign: the direction of the integration, 1 or -1, shape ().
    """

    event: Event
    sign: Float[Array, ""]

    def __call__(self, t: Float[Array, ""], y: Point, args: Any, **_: Any) -> Float[Array, ""]:
        """The condition's value at diffrax's time t."""
        return self.event.condition(self.sign * t, y, args)


def locate_event(
    events: tuple[Event, ...],
    partial_step: Callable[[Float[Array, ""]], Point],
    t0: Float[Array, ""],
    t1: Float[Array, ""],
    args: Any,
) -> tuple[Float[Array, ""], Point, Bool[Array, " events"]]:
    """The first crossing inside the step from t0 to t1, by bisection to the last bit of the fraction of the step.

    The state in between comes from a shorter step of the method, so that the crossing is as accurate as the step.
    Derivatives follow from the implicit function theorem.

    Args:
        partial_step: the state after a given signed time from the start of the step.

    Returns:
        The time of the crossing, the state at it, and which event it was, shape (events,).
    """
    dt = t1 - t0
    conditions = [
        lambda s, condition=event.condition: condition(t0 + s * dt, partial_step(s * dt), args) for event in events
    ]

    def value(index: Int[Array, ""], s: Float[Array, ""]) -> Float[Array, ""]:
        return control_flow.switch(index, conditions, s)

    zero, one = jnp.zeros_like(dt), jnp.ones_like(dt)

    def crossing(index: Int[Array, ""]) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """The fraction of the step at which a condition crosses zero, and twice the direction of the crossing."""
        begin, end = value(index, zero), value(index, one)

        def halve(_: Int[Array, ""], bracket: tuple[Float[Array, ""], Float[Array, ""]]) -> tuple[Array, Array]:
            lower, upper = bracket
            middle = (lower + upper) / 2
            same_side = jnp.sign(value(index, middle)) == jnp.sign(begin)
            return jnp.where(same_side, middle, lower), jnp.where(same_side, upper, middle)

        # bisection to the last bit; one Newton step at the root adds its derivative by the implicit function theorem
        bits = jnp.finfo(dt.dtype).nmant + 1
        _, root = jax.lax.stop_gradient(control_flow.fori_loop(0, bits, halve, (zero, one)))
        height, slope = jax.jvp(lambda s: value(index, s), (root,), (one,))
        height, slope = height - jax.lax.stop_gradient(height), jax.lax.stop_gradient(slope)
        return root - height / slope, jnp.sign(end) - jnp.sign(begin)

    fractions, directions = jax.vmap(crossing)(jnp.arange(len(events)))
    # the first crossing in a wanted direction
    rising = jnp.asarray([0 if event.rising is None else 1 if event.rising else -1 for event in events], dt.dtype)
    wanted = (directions != 0) & (directions * rising >= 0)
    first = jnp.argmin(jnp.where(wanted, fractions, jnp.inf))
    s = fractions[first]
    return t0 + s * dt, partial_step(s * dt), (jnp.arange(len(events)) == first) & jnp.any(wanted)
