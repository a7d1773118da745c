"""The current loop of a motor amplifier, with lag and saturation."""

from __future__ import annotations

import jax.numpy as jnp

from lgsim.actuators.stage import Numbers, Rows, Shaft, Signal, Stage, number


class CurrentLoop(Stage):
    """Torque K i of a current-controlled motor: ``T i' = clip(command, -limit, limit) - i``.

    Attributes:
        torque_constant: K, N m/A; 1 where commands are torques.
        time_constant: T, s, positive.
        limit: Largest current, A; infinity for none.
    """

    torque_constant: Numbers = number()
    time_constant: Numbers = number()
    limit: Numbers = number()

    @property
    def rows(self) -> int:
        """One: the current i, A."""
        return 1

    def respond(self, signal: Signal, shaft: Shaft, states: Rows) -> tuple[Signal, Rows]:
        """(the torque N m, the rate of the current A/s)."""
        current = states[0]
        wanted = jnp.clip(signal, -self.limit, self.limit)
        return self.torque_constant * current, ((wanted - current) / self.time_constant)[None]
