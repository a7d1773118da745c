"""The limit of a motor's torque, which falls with its speed."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool

from lgsim.actuators.stage import Numbers, Rows, Shaft, Signal, Stage, number, spread


class TorqueSpeedLimit(Stage):
    """A force within what a motor gives at its speed.

    ``|tau| <= effort``, and with the motion at most ``effort (1 - |v|/speed)``, the straight line between stall and no
    load. A number that is infinite or zero is no limit.

    Attributes:
        effort: Largest force at speed zero, N m or N.
        speed: The speed at which no force along the motion is left, rad/s or m/s.
    """

    effort: Numbers = number()
    speed: Numbers = number()

    def respond(self, signal: Signal, shaft: Shaft, states: Rows) -> tuple[Signal, Rows]:
        """(the force within its limits, no rates)."""
        return limited_by_speed(signal, shaft.speed, spread(self.effort, signal), spread(self.speed, signal)), states


def limited_by_speed(tau: Signal, v: Signal, effort: Signal, speed: Signal) -> Signal:
    """The forces that ``TorqueSpeedLimit`` makes of tau at speeds v, all (n,)."""
    (effort, strong), (fastest, fast) = _given(effort), _given(speed)
    share = jnp.where(fast, v / fastest, 0)
    upper = jnp.minimum(1 - share, 1)
    lower = jnp.maximum(-1 - share, -1)
    clipped = jnp.clip(tau, effort * jnp.minimum(lower, 0), effort * jnp.maximum(upper, 0))
    return jnp.where(strong, clipped, tau)


def _given(limit: Signal) -> tuple[Array, Bool[Array, " n"]]:
    """A limit with 1 where there is none, so that derivatives are finite, and where there is one."""
    given = jnp.isfinite(limit) & (limit != 0)
    return jnp.where(given, limit, 1), given
