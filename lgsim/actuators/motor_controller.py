"""The controller of a motor: a voltage from several commands."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from lgsim.actuators.stage import Numbers, Rows, Shaft, Signal, Stage, number, spread


class MotorController(Stage):
    """The voltage ``clip(R/K tau + K x', -limit, limit) + u`` for the torque of a PID controller.

    ``tau = kp (p - x) + ki z + kd (s - x') + f`` with the commands p of the position, s of the speed, f of the torque
    and u of the voltage, and the integral ``z' = p - x`` within bounds. A motor of resistance R and constant K delivers
    tau. Commands that an actuator does not take are zero; without p, s and f the voltage is u.

    Attributes:
        inputs: True for each of the commands p, s, f and u that an actuator takes, for n actuators; static.
        resistance: R, ohm.
        torque_constant: K, N m/A.
        gains: kp, ki and kd (n, 3): N m/rad, N m/(rad s), N m s/rad.
        voltage_limit: V; infinity for none.
        lower: Lower bounds of p, s, f and u (n, 4).
        upper: Their upper bounds (n, 4).
        integral_limit: Bound of the size of z, rad s, applied after each step of a simulation; None without integrals.

    Source: MuJoCo's documentation, chapter "XML reference", element "actuator/dcmotor", attribute "controller".
    """

    inputs: tuple[tuple[bool, ...], ...] = eqx.field(static=True)
    resistance: Numbers = number()
    torque_constant: Numbers = number()
    gains: Numbers = number()
    voltage_limit: Numbers = number()
    lower: Numbers = number()
    upper: Numbers = number()
    integral_limit: Numbers | None = None

    @property
    def rows(self) -> int:
        """One, z, with integrals."""
        return 0 if self.integral_limit is None else 1

    @property
    def is_sampled(self) -> bool:
        """True with integrals."""
        return self.integral_limit is not None

    def commands(self, count: int) -> int:
        """The number of all commands."""
        return int(np.sum(self.inputs))

    def respond(self, signal: Float[Array, " commands"], shaft: Shaft, states: Rows) -> tuple[Signal, Rows]:
        """(the voltages, the rate of z)."""
        given = np.array(self.inputs, bool)
        u = jnp.zeros(given.shape, shaft.angle.dtype).at[np.nonzero(given)].set(signal)
        p, s, f, voltage = jnp.clip(u, self.lower, self.upper).T
        kp, ki, kd = self.gains.T
        tau = kp * (p - shaft.angle) + kd * (s - shaft.speed) + f + (ki * states[0] if self.rows else 0)
        controlled = given[:, :3].any(axis=1)
        K = jnp.where(controlled, self.torque_constant, 1)
        driven = jnp.clip(self.resistance / K * tau + K * shaft.speed, -self.voltage_limit, self.voltage_limit)
        rate = (p - shaft.angle)[None] if self.rows else states
        return jnp.where(controlled, driven, 0) + voltage, rate

    def settle(self, states: Array) -> Rows:
        """The integrals within their bounds."""
        if self.integral_limit is None:
            return states
        limit = spread(self.integral_limit, states[0])[None]
        return jnp.clip(states, -limit, limit)
