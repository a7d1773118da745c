"""Backlash between a rotor and its load."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from lgsim.actuators.stage import Numbers, Rows, Shaft, Signal, Stage, number


class Backlash(Stage):
    """A rotor that drives its shaft through a gap: free within the gap, a spring and a damper beyond.

    The rotor, at the angle r, obeys ``inertia r'' = signal - damping r' - F`` and gives the shaft, at the angle x,
    ``F = stiffness D(r - x) + contact_damping D'(r - x) (r' - x')``, with the smooth dead zone
    ``D(e) = w (softplus((e - gap)/w) - softplus((-e - gap)/w))``: zero within the gap and e minus the gap beyond it,
    except within a few w of its ends. Stages before this one see the rotor's motion, as a motor encoder does.

    Attributes:
        inertia: Rotor inertia, kg m^2 or kg, reflected to this shaft.
        damping: Rotor damping, N m s/rad or N s/m.
        stiffness: Contact stiffness, N m/rad or N/m.
        contact_damping: Contact damping, N m s/rad or N s/m.
        gap: Half of the play, rad or m.
        width: w, rad or m, positive.
    """

    inertia: Numbers = number()
    damping: Numbers = number()
    stiffness: Numbers = number()
    contact_damping: Numbers = number()
    gap: Numbers = number()
    width: Numbers = number()

    @property
    def rows(self) -> int:
        """Two: angle and speed of the rotor."""
        return 2

    def start(self, shaft: Shaft) -> Rows:
        """The rotor in the middle of the gap, at the speed of the shaft."""
        return jnp.stack([shaft.angle, shaft.speed])

    def inner_shaft(self, shaft: Shaft, states: Rows) -> Shaft:
        """The rotor's motion."""
        del shaft
        return Shaft(states[0], states[1])

    def respond(self, signal: Signal, shaft: Shaft, states: Rows) -> tuple[Signal, Rows]:
        """(the force F on the shaft, the rates of the rotor's angle and speed)."""
        r, speed = states
        e, w = r - shaft.angle, self.width
        above, below = (e - self.gap) / w, (-e - self.gap) / w
        beyond = w * (jax.nn.softplus(above) - jax.nn.softplus(below))
        touch = jax.nn.sigmoid(above) + jax.nn.sigmoid(below)
        force = self.stiffness * beyond + self.contact_damping * touch * (speed - shaft.speed)
        return force, jnp.stack([speed, (signal - self.damping * speed - force) / self.inertia])
