"""LuGre friction with presliding: bristles that bend before they slip."""

from __future__ import annotations

import jax.numpy as jnp

from lgsim.actuators.stage import Numbers, Rows, Shaft, Signal, Stage, number


class LuGreFriction(Stage):
    """LuGre friction ``F = s0 z + s1 z' + s2 v`` of bristles with deflection z: ``z' = v - s0 |v| z / g(v)``.

    ``g(v) = coulomb + (static - coulomb) exp(-(v / stribeck_speed)^2)``. At rest it is a spring of stiffness s0, at a
    constant speed ``g(v) sign(v) + s2 v``. The output is the signal minus the friction.

    Attributes:
        stiffness: s0, bristle stiffness, N m/rad or N/m.
        bristle_damping: s1, N m s/rad or N s/m.
        viscous: s2, N m s/rad or N s/m.
        coulomb: Friction at speeds well above ``stribeck_speed``, N m or N, positive.
        static: Friction at which the bristles begin to slip, N m or N.
        stribeck_speed: rad/s or m/s, positive.

    Source: Canudas de Wit, Olsson, Astrom, Lischinsky, A new model for control of systems with friction, IEEE
    Transactions on Automatic Control 40(3), 1995, eq. (1) to (4).
    """

    stiffness: Numbers = number()
    bristle_damping: Numbers = number()
    viscous: Numbers = number()
    coulomb: Numbers = number()
    static: Numbers = number()
    stribeck_speed: Numbers = number()

    @property
    def rows(self) -> int:
        """One: the deflection z, rad or m."""
        return 1

    def respond(self, signal: Signal, shaft: Shaft, states: Rows) -> tuple[Signal, Rows]:
        """(the signal minus the friction, the rate of the deflection)."""
        z, v = states[0], shaft.speed
        level = self.coulomb + (self.static - self.coulomb) * jnp.exp(-((v / self.stribeck_speed) ** 2))
        rate = v - self.stiffness * jnp.abs(v) * z / level
        return signal - (self.stiffness * z + self.bristle_damping * rate + self.viscous * v), rate[None]
