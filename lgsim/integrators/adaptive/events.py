"""Events: a function of the state crosses zero, and the integration ends there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from lgsim.lie.action import Point


class Event(eqx.Module):
    """The integration ends where ``condition(t, y, args)`` crosses zero.

    The crossing is looked for at the ends of the steps, so two of them inside one step go unseen. A condition that is
    zero at t0 counts as one that crosses there: when you restart from an event, give its ``rising``.

    Attributes:
        condition: a function of the time, the state and ``args``; a scalar of the state's dtype.
        rising: True for crossings upwards only, False for downwards only, None for both, along the integration.
    """

    condition: Callable[[Any, Point, Any], Array]
    rising: bool | None = eqx.field(static=True, default=None)


class Directed(eqx.Module):
    """A condition as diffrax calls it: in its own time, which is ``sign`` times the user's."""

    event: Event
    sign: Array

    def __call__(self, t: Any, y: Point, args: Any, **_: Any) -> Array:
        """The condition's value."""
        return self.event.condition(self.sign * t, y, args)


def locate(
    events: tuple[Event, ...], partial_step: Callable[[Array], Point], t0: Array, t1: Array, args: Any
) -> tuple[Array, Point, Array]:
    """The first crossing inside the step from t0 to t1, by bisection to the last bit of the fraction of the step.

    The state in between is a shorter step of the method, so the crossing is as exact as the step. Derivatives follow
    from the implicit function theorem.

    Args:
        events: one or more events.
        partial_step: the state after a given signed time from the start of the step.
        t0: the start of the step.
        t1: its end.
        args: what the conditions take.

    Returns:
        The time, the state there, and which event it was, shape (events,).
    """
    dt = t1 - t0
    conditions = [
        lambda s, condition=event.condition: condition(t0 + s * dt, partial_step(s * dt), args) for event in events
    ]

    def value(index: Array, s: Array) -> Array:
        return jax.lax.switch(index, conditions, s)

    zero, one = jnp.zeros_like(dt), jnp.ones_like(dt)

    def fraction(index: Array) -> tuple[Array, Array]:
        begin, end = value(index, zero), value(index, one)

        def halve(_: Array, bracket: tuple[Array, Array]) -> tuple[Array, Array]:
            lower, upper = bracket
            middle = (lower + upper) / 2
            before = jnp.sign(value(index, middle)) == jnp.sign(begin)
            return jnp.where(before, middle, lower), jnp.where(before, upper, middle)

        bits = jnp.finfo(dt.dtype).nmant + 1
        _, found = jax.lax.stop_gradient(jax.lax.fori_loop(0, bits, halve, (zero, one)))
        at, slope = jax.jvp(lambda s: value(index, s), (found,), (one,))
        at, slope = at - jax.lax.stop_gradient(at), jax.lax.stop_gradient(slope)
        return found - at / slope, jnp.sign(end) - jnp.sign(begin)

    fractions, turns = jax.vmap(fraction)(jnp.arange(len(events)))
    ways = jnp.asarray([0 if event.rising is None else 1 if event.rising else -1 for event in events], dt.dtype)
    wanted = (turns != 0) & (turns * ways >= 0)
    first = jnp.argmin(jnp.where(wanted, fractions, jnp.inf))
    s = fractions[first]
    return t0 + s * dt, partial_step(s * dt), (jnp.arange(len(events)) == first) & jnp.any(wanted)
