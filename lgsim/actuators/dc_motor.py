"""The direct-current motor."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
from jax.typing import ArrayLike

from lgsim.actuators.stage import Numbers, Rows, Shaft, Signal, Stage, number


class DCMotor(Stage):
    """Torque K i of a DC motor at a voltage u: ``L i' = u - R i - k w``, or without inductance ``i = (u - k w) / R``.

    At a constant voltage and without inductance the torque falls linearly from the stall torque ``K u / R`` to zero at
    the speed ``u / k``. The rotor's inertia belongs to the model's ``armature`` or to ``Backlash``.

    Attributes:
        resistance: R, ohm.
        torque_constant: K, N m/A.
        back_emf: k, V s/rad; in SI units equal to K.
        inductance: L, henry, positive, with the current as a state; None to neglect it.

    Source: Hughes and Drury, Electric Motors and Drives, fourth edition, section 3.3.
    """

    resistance: Numbers = number()
    torque_constant: Numbers = number()
    back_emf: Numbers = number()
    inductance: Numbers | None = eqx.field(converter=lambda x: None if x is None else jnp.asarray(x), default=None)

    @classmethod
    def from_line(cls, voltage: ArrayLike, stall_torque: ArrayLike, no_load_speed: ArrayLike) -> DCMotor:
        """A motor without inductance and with equal constants, from its torque-speed line at a voltage.

        Args:
            voltage: u, V, a number or (n,).
            stall_torque: Torque at zero speed, N m.
            no_load_speed: Speed at zero torque, rad/s.
        """
        constant = jnp.asarray(voltage) / jnp.asarray(no_load_speed)
        return cls(constant * jnp.asarray(voltage) / jnp.asarray(stall_torque), constant, constant)

    @property
    def rows(self) -> int:
        """One, the current, A, if there is an inductance."""
        return 0 if self.inductance is None else 1

    def respond(self, signal: Signal, shaft: Shaft, states: Rows) -> tuple[Signal, Rows]:
        """(the torque N m, the rate of the current A/s)."""
        left = signal - self.back_emf * shaft.speed
        if self.inductance is None:
            return self.torque_constant * left / self.resistance, states
        current = states[0]
        return self.torque_constant * current, ((left - self.resistance * current) / self.inductance)[None]
