"""A gear with its ratio and losses."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp

from lgsim.actuators.stage import Numbers, Rows, Shaft, Signal, Stage, number


class Gear(Stage):
    """A gear of ratio N: the motor shaft rotates by N x for a joint angle x, the joint torque is N times the motor's t.

    With an efficiency e the torque at the joint is e N t if the motor drives the joint and N t / e if the joint
    backdrives the motor: ``N t e^(sign(N t) tanh(x' / c))``. It is smooth in the speed and acts as a dry friction
    proportional to the load.

    Attributes:
        ratio: N, motor revolutions per joint revolution; for a prismatic joint rad/m. Negative values reverse it.
        efficiency: e, positive and at most 1.
        changeover: c, rad/s or m/s at the joint, the speed below which the loss acts as a damper.
    """

    ratio: Numbers = number()
    efficiency: Numbers = eqx.field(converter=jnp.asarray, default=1.0)
    changeover: Numbers = eqx.field(converter=jnp.asarray, default=0.1)

    def inner_shaft(self, shaft: Shaft, states: Rows) -> Shaft:
        """The motor shaft: N times the joint motion."""
        del states
        return Shaft(self.ratio * shaft.angle, self.ratio * shaft.speed)

    def respond(self, signal: Signal, shaft: Shaft, states: Rows) -> tuple[Signal, Rows]:
        """(the torque at the joint, no rates)."""
        torque = self.ratio * signal
        return torque * self.efficiency ** (jnp.sign(torque) * jnp.tanh(shaft.speed / self.changeover)), states
