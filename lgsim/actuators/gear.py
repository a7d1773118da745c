"""The ratio and the losses of a gear."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp

from lgsim.actuators.stage import Numbers, Rows, Shaft, Signal, Stage, number


class Gear(Stage):
    """A gear of ratio N: the motor's shaft turns by N x, and the joint's by x with N times the motor's torque t.

    With an efficiency e the torque at the joint is e N t where the motor drives the joint and N t / e where the joint
    drives the motor: ``N t e^(sign(N t) tanh(x' / c))``, smooth in the speed like dry friction, which this is, of a
    size that is proportional to the load.

    Attributes:
        ratio: N, turns of the motor for each of the joint; of a slide rad/m. Negative ones turn the other way.
        efficiency: e, above zero and at most 1.
        changeover: c, rad/s or m/s at the joint, the speed below which the loss is like a damper.
    """

    ratio: Numbers = number()
    efficiency: Numbers = eqx.field(converter=jnp.asarray, default=1.0)
    changeover: Numbers = eqx.field(converter=jnp.asarray, default=0.1)

    def inner_shaft(self, shaft: Shaft, states: Rows) -> Shaft:
        """The motor's shaft: N times the motion."""
        del states
        return Shaft(self.ratio * shaft.angle, self.ratio * shaft.speed)

    def respond(self, signal: Signal, shaft: Shaft, states: Rows) -> tuple[Signal, Rows]:
        """(the torque at the joint, no rates)."""
        torque = self.ratio * signal
        return torque * self.efficiency ** (jnp.sign(torque) * jnp.tanh(shaft.speed / self.changeover)), states
