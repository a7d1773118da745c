"""Extremes and times of crossing of a quantity between the saved states of a motion, interpolated on the group."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float, Int

from lgsim._compile.xla import control_flow
from lgsim.integrators.hermite import hermite
from lgsim.integrators.method import Number
from lgsim.multibody.model import Model
from lgsim.simulation.state_space import StateSpace

Quantity = Callable[[Number, Float[Array, " nq"], Float[Array, " nv"], Model], Float[Array, ""]]
"""``quantity(t, q, v, model)``: a scalar of the model's dtype."""
_GRID = 9
"""Number of points of each refinement of an extreme, which divides its interval by 4."""


class States(NamedTuple):
    """States at increasing times.

    Attributes:
        time: Times, s, (n,).
        q: Configurations (n, nq).
        v: Velocities (n, nv), rad/s or m/s.
    """

    time: Float[Array, " n"]
    q: Float[Array, "n nq"]
    v: Float[Array, "n nv"]


def interpolate_state(
    model: Model,
    q0: Float[Array, " nq"],
    v0: Float[Array, " nv"],
    q1: Float[Array, " nq"],
    v1: Float[Array, " nv"],
    h: Float[Array, ""],
    s: Float[Array, ""],
) -> tuple[Float[Array, " nq"], Float[Array, " nv"]]:
    """Configuration and velocity at the fraction s of an interval h between two states."""
    action = StateSpace(model.topology)
    y0, y1 = jnp.concatenate([q0, v0]), jnp.concatenate([q1, v1])
    # only q of the cubic through (q, v) is used, so that the accelerations at the ends do not matter
    slope0, slope1 = (jnp.concatenate([h * v, jnp.zeros_like(v)]) for v in (v0, v1))
    q, rate = jax.jvp(lambda s: hermite(action, y0, y1, slope0, slope1, s)[: model.nq], (s,), (jnp.ones_like(s),))
    return q, model.velocity(q, rate / h)


def with_middles(
    model: Model,
    states: States,
    middles: tuple[Float[Array, "intervals nq"], Float[Array, "intervals nv"]],
    known: Bool[Array, ""],
) -> States:
    """States with those at the middle of each interval: the given ones if they are known, else interpolated."""
    time, q, v = states
    h = jnp.diff(time)
    own = jax.vmap(interpolate_state, in_axes=(None, 0, 0, 0, 0, 0, None))(
        model, q[:-1], v[:-1], q[1:], v[1:], h, jnp.asarray(0.5, q.dtype)
    )
    inner = (time[:-1] + h / 2, *(jnp.where(known, x, y) for x, y in zip(middles, own, strict=True)))

    def merged(ends: Array, between: Array) -> Array:
        pairs = jnp.stack([ends[:-1], between], axis=1)
        return jnp.concatenate([pairs.reshape(-1, *ends.shape[1:]), ends[-1:]])

    return States(*(merged(x, y) for x, y in zip(states, inner, strict=True)))


def extreme(
    quantity: Quantity, sign: int | Float[Array, ""], model: Model, states: States
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """The largest or the smallest value of a quantity over a motion, and its time, s.

    q between two states is the cubic in the algebra that matches their velocities, with an error O(h^4), v its velocity
    (O(h^3)). The quantity is evaluated at the states and, in each interval, where the cubic through its values and
    rates is stationary; the extreme of these is refined. Derivatives are those of the value at a fixed time, which
    are exact where the extreme is stationary.

    Args:
        sign: 1 for the largest value, -1 for the smallest; as an array both have one program.
    """
    fixed = jax.lax.stop_gradient((model, states))

    def signed(t: Number, q: Float[Array, " nq"], v: Float[Array, " nv"], model: Model) -> Float[Array, ""]:
        return sign * quantity(t, q, v, model)

    values, places = _samples(signed, *fixed)
    best = jnp.argmax(values)  # the index of a NaN, if there is one
    base, low, high = _bracket(places, best - 1, best, best + 1)

    def refine(ends: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], None]:
        grid = ends[0] + (ends[1] - ends[0]) * jnp.linspace(0, 1, _GRID, dtype=values.dtype)
        found = jnp.argmax(jax.vmap(lambda s: _at(signed, *fixed, base, s))(grid))
        return (grid[jnp.maximum(found - 1, 0)], grid[jnp.minimum(found + 1, _GRID - 1)]), None

    rounds = jnp.finfo(values.dtype).nmant // 4 + 1  # half of the digits: values are quadratic about an extreme
    (low, high), _ = control_flow.scan(refine, (low, high), None, length=rounds)
    # the sample itself, which a corner at a state needs
    candidates = jnp.stack([places[1][best], (low + high) / 2, low, high])
    s = candidates[jnp.argmax(jax.vmap(lambda s: _at(signed, *fixed, base, s))(candidates))]
    return _at(quantity, model, states, base, s), _time(states.time, base, s)


def first_crossing(
    quantity: Quantity, value: Float[Array, ""], rising: bool | None, model: Model, states: States
) -> Float[Array, ""]:
    """The first time at which a quantity crosses a value, s; infinite if it does not.

    It is a root of the quantity along the interpolated motion, see ``extreme``. A motion that starts at the value
    crosses it when it returns. The derivative is that of the implicit function.

    Args:
        rising: True for upward crossings only, False for downward ones only, None for both.
    """
    fixed = jax.lax.stop_gradient((model, states))
    values, places = _samples(quantity, *fixed)
    gaps = values - jax.lax.stop_gradient(value)
    before, after = gaps[:-1], gaps[1:]
    up, down = (before < 0) & (after >= 0), (before > 0) & (after <= 0)
    crossed = up | down if rising is None else up if rising else down
    first = jnp.argmax(crossed)
    base, low, high = _bracket(places, first, first, first + 1)
    side = jnp.sign(before[first])

    def halve(ends: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], None]:
        middle = (ends[0] + ends[1]) / 2
        same = side * (_at(quantity, *fixed, base, middle) - jax.lax.stop_gradient(value)) > 0
        return (jnp.where(same, middle, ends[0]), jnp.where(same, ends[1], middle)), None

    (low, high), _ = control_flow.scan(halve, (low, high), None, length=jnp.finfo(gaps.dtype).nmant + 2)
    s = (low + high) / 2
    # one step of Newton's method, of which only the derivative remains
    gap = _at(quantity, model, states, base, s) - value
    slope = jax.jvp(lambda s: _at(quantity, *fixed, base, s), (s,), (jnp.ones_like(s),))[1]
    s = s - (gap - jax.lax.stop_gradient(gap)) / jnp.where(slope == 0, 1, slope)
    never = jnp.where(jnp.any(jnp.isnan(gaps)), jnp.nan, jnp.inf).astype(gaps.dtype)
    return jnp.where(jnp.any(crossed), _time(states.time, base, s), never)


Places = tuple[Int[Array, " points"], Float[Array, " points"]]
"""Indices of intervals, and the fractions in them."""


def _samples(quantity: Quantity, model: Model, states: States) -> tuple[Float[Array, " points"], Places]:
    """(values, places) of a quantity at the states and where its cubic in an interval is stationary."""
    k = jnp.arange(len(states.time) - 1)
    zero, one = (jnp.full(k.shape, x, states.q.dtype) for x in (0, 1))

    def rate(k: Array, s: Array) -> tuple[Array, Array]:
        return jax.jvp(lambda s: _at(quantity, model, states, k, s), (s,), (jnp.ones_like(s),))

    (g0, g1), (d0, d1) = jax.vmap(jax.vmap(rate), (None, 0))(k, jnp.stack([zero, one]))
    # d0 + 2 b s + 3 a s^2 = 0, the derivative of the cubic
    rise = g1 - g0
    a, b = d0 + d1 - 2 * rise, 3 * rise - 2 * d0 - d1
    disc = b * b - 3 * a * d0
    q = -(b + jnp.where(b < 0, -1, 1) * jnp.sqrt(jnp.maximum(disc, 0)))
    first = jnp.where(a != 0, q / jnp.where(a != 0, 3 * a, 1), 0)
    second = jnp.where(q != 0, d0 / jnp.where(q != 0, q, 1), 0)
    roots = jnp.where(disc >= 0, jnp.clip(jnp.stack([first, second]), 0, 1), jnp.asarray([[1 / 3], [2 / 3]]))
    s1, s2 = jnp.sort(roots.astype(zero.dtype), axis=0)
    inner = jax.vmap(jax.vmap(lambda k, s: _at(quantity, model, states, k, s)), (None, 0))(k, jnp.stack([s1, s2]))
    values = jnp.append(jnp.stack([g0, *inner], axis=1).ravel(), g1[-1])
    index = jnp.append(jnp.repeat(k, 3), k[-1])
    part = jnp.append(jnp.stack([zero, s1, s2], axis=1).ravel(), one[-1])
    return values, (index, part)


def _bracket(places: Places, first: Array, middle: Array, last: Array) -> tuple[Array, Array, Array]:
    """(interval, low, high): the fractions of two points relative to the interval of a third, from -1 to 2."""
    index, part = places
    base = index[middle]
    ends = (jnp.clip(i, 0, len(index) - 1) for i in (first, last))
    low, high = ((index[i] - base).astype(part.dtype) + part[i] for i in ends)
    return base, low, high


def _place(base: Array, s: Array, count: int) -> tuple[Array, Array]:
    """The interval and the fraction in it for a fraction relative to another interval, which may lie beyond it."""
    k = jnp.clip(base + jnp.floor(jax.lax.stop_gradient(s)).astype(base.dtype), 0, count - 2)
    return k, s - (k - base).astype(s.dtype)


def _time(time: Float[Array, " n"], base: Array, s: Array) -> Float[Array, ...]:
    k, s = _place(base, s, len(time))
    return time[k] + s * (time[k + 1] - time[k])


def _at(quantity: Quantity, model: Model, states: States, base: Array, s: Array) -> Float[Array, ""]:
    """The quantity at a fraction relative to an interval."""
    time, q, v = states
    k, s = _place(base, s, len(time))
    found = interpolate_state(model, q[k], v[k], q[k + 1], v[k + 1], time[k + 1] - time[k], s)
    return jnp.asarray(quantity(time[k] + s * (time[k + 1] - time[k]), *found, model))
