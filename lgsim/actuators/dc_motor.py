"""The direct-current motor."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from lgsim.actuators.stage import Numbers, Rows, Shaft, Signal, Stage, number


class DCMotor(Stage):
    """Torque K i of a DC motor at a voltage u: ``L i' = u - R i - k w``, or without inductance ``i = (u - k w) / R``.

    At a constant voltage and without inductance the torque falls linearly from the stall torque ``K u / R`` to zero at
    the speed ``u / k``. The rotor's inertia belongs to the model's ``armature`` or to ``Backlash``.

    A winding heats by ``C T' = R i^2 - T/H``, with its temperature T above the ambient one; its resistance then is
    ``R (1 + a (T + Ta))``, and L/R stays the same.

    Attributes:
        resistance: R, ohm.
        torque_constant: K, N m/A.
        back_emf: k, V s/rad; in SI units equal to K.
        inductance: L, henry, positive, with the current as a state; None to neglect it.
        heating: H, C, a and Ta of each motor (n, 4): K/W, J/K, 1/K, K, where Ta is the ambient temperature above that
            at which the resistance is R; None for a constant resistance.
        current_rate: Largest rate of the current, A/s; infinity for none.

    Source: Hughes and Drury, Electric Motors and Drives, fourth edition, section 3.3; MuJoCo's technical note on DC
    motors, section 1.3, for heating.
    """

    resistance: Numbers = number()
    torque_constant: Numbers = number()
    back_emf: Numbers = number()
    inductance: Numbers | None = eqx.field(converter=lambda x: None if x is None else jnp.asarray(x), default=None)
    heating: Numbers | None = None
    current_rate: Numbers = eqx.field(converter=jnp.asarray, default=np.inf)

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
        """The current, A, if there is an inductance, and T, K, if there is heating."""
        return (self.inductance is not None) + (self.heating is not None)

    def respond(self, signal: Signal, shaft: Shaft, states: Rows) -> tuple[Signal, Rows]:
        """(the torque N m, the rates of the current A/s and of T K/s)."""
        left, warmer, rates = signal - self.back_emf * shaft.speed, jnp.ones_like(signal), []
        if self.heating is not None:
            H, C, a, ambient = self.heating.T
            warmer = 1 + a * (states[-1] + ambient)
        R = self.resistance * warmer
        if self.inductance is None:
            current = left / R
        else:
            current = states[0]
            rate = (left / warmer - self.resistance * current) / self.inductance
            rates.append(jnp.clip(rate, -self.current_rate, self.current_rate))
        if self.heating is not None:
            rates.append((R * current**2 - states[-1] / H) / C)
        return self.torque_constant * current, jnp.stack(rates) if rates else states


class Cogging(Stage):
    """The force plus a cogging torque ``A sin(N x + phase)``, by which a motor prefers some angles.

    Attributes:
        amplitude: A, N m.
        poles: N, periods per revolution.
        phase: rad.
    """

    amplitude: Numbers = number()
    poles: Numbers = number()
    phase: Numbers = number()

    def respond(self, signal: Signal, shaft: Shaft, states: Rows) -> tuple[Signal, Rows]:
        """(the force with the cogging torque, no rates)."""
        return signal + self.amplitude * jnp.sin(self.poles * shaft.angle + self.phase), states
