"""Springs, dampers and dry friction of tendons and joints, which take no commands."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from lgsim.actuators.actuators import Actuators, States
from lgsim.actuators.stage import Numbers, Rows, Shaft, Signal, Stage, number
from lgsim.actuators.transmission import Transmission
from lgsim.multibody.model import Model


class PolynomialSpring(Stage):
    """``force = signal - u (k0 + k1 u + k2 u^2 + ...) - x' (d0 + d1 |x'| + d2 x'^2 + ... + c |u|)`` at the length x.

    u is the length beyond the range of rest: ``x - upper`` above it, ``x - lower`` below it, 0 within. With k0 and c it
    is a stop as those at joint limits, see ``lgsim.with_stops``.

    Attributes:
        stiffness: k of each spring (n, k): N/m, N/m^2, ... or N m/rad, ...
        damping: d of each damper (n, k): N s/m, N s^2/m^2, ... or N m s/rad, ...
        lower: Lower end of the range of rest, m or rad.
        upper: Its upper end, m or rad.
        impact_damping: c of each spring, N s/m^2 or N m s/rad^2.
    """

    stiffness: Numbers = number()
    damping: Numbers = number()
    lower: Numbers = number()
    upper: Numbers = number()
    impact_damping: Numbers = eqx.field(converter=jnp.asarray, default=0.0)

    def respond(self, signal: Signal, shaft: Shaft, states: Rows) -> tuple[Signal, Rows]:
        """(the force, no rates)."""
        u = shaft.angle - jnp.clip(shaft.angle, self.lower, self.upper)
        spring = u * jnp.sum(self.stiffness * _powers(u, self.stiffness), axis=-1)
        damper = shaft.speed * jnp.sum(self.damping * _powers(jnp.abs(shaft.speed), self.damping), axis=-1)
        return signal - spring - damper - self.impact_damping * jnp.abs(u) * shaft.speed, states


class DryFriction(Stage):
    """``force = signal - friction tanh(x' / friction_speed)``, as joints have it, see ``lgsim.passive_forces``.

    Attributes:
        friction: Its magnitude at high speeds, N m or N.
        friction_speed: The speed below which it acts as a damper, rad/s or m/s.
    """

    friction: Numbers = number()
    friction_speed: Numbers = number()

    def respond(self, signal: Signal, shaft: Shaft, states: Rows) -> tuple[Signal, Rows]:
        """(the force, no rates)."""
        return signal - self.friction * jnp.tanh(shaft.speed / self.friction_speed), states


def _powers(x: Signal, of: Numbers) -> Float[Array, "n k"]:
    """1, x, x^2, ... for each spring."""
    powers = [jnp.ones_like(x)]
    while len(powers) < of.shape[-1]:
        powers.append(powers[-1] * x)
    return jnp.stack(powers, axis=-1)


class PassiveSprings(Actuators):
    """Springs and dampers at the shafts of a transmission: actuators without commands."""

    def __init__(self, transmission: Transmission, *stages: Stage) -> None:
        super().__init__(transmission, *stages, names=())

    @property
    def commands(self) -> int:
        """None: 0."""
        return 0

    def respond(
        self, model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"], states: States, command: Signal
    ) -> tuple[Float[Array, " nv"], States]:
        """See ``Actuators.respond``; the command is empty."""
        return super().respond(model, q, v, states, jnp.zeros(self.transmission.count, v.dtype))
