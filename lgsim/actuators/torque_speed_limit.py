"""The torque-speed limit of a motor."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool

from lgsim.actuators.stage import Numbers, Rows, Shaft, Signal, Stage, number, spread


class TorqueSpeedLimit(Stage):
    """A force saturated at the torque-speed limit of a motor.

    ``|tau| <= effort``, and in the direction of motion at most ``effort (1 - |v|/speed)``, the straight line between
    stall and no load. An infinite or zero parameter means no limit.

    Attributes:
        effort: Largest force at zero speed, N m or N.
        speed: The no-load speed, at which the force in the direction of motion vanishes, rad/s or m/s.
    """

    effort: Numbers = number()
    speed: Numbers = number()

    def respond(self, signal: Signal, shaft: Shaft, states: Rows) -> tuple[Signal, Rows]:
        """(the force within its limits, no rates)."""
        return limited_by_speed(signal, shaft.speed, spread(self.effort, signal), spread(self.speed, signal)), states


def limited_by_speed(tau: Signal, v: Signal, effort: Signal, speed: Signal) -> Signal:
    """The forces tau at speeds v, saturated by ``TorqueSpeedLimit``, all (n,)."""
    (effort, strong), (fastest, fast) = _given(effort), _given(speed)
    share = jnp.where(fast, v / fastest, 0)
    upper = jnp.minimum(1 - share, 1)
    lower = jnp.maximum(-1 - share, -1)
    clipped = jnp.clip(tau, effort * jnp.minimum(lower, 0), effort * jnp.maximum(upper, 0))
    return jnp.where(strong, clipped, tau)


def _given(limit: Signal) -> tuple[Array, Bool[Array, " n"]]:
    """(the limit, replaced by 1 if missing, so that derivatives are finite; True where it is given)."""
    given = jnp.isfinite(limit) & (limit != 0)
    return jnp.where(given, limit, 1), given
