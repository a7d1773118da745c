"""Saturation of a signal."""

from __future__ import annotations

import jax.numpy as jnp

from lgsim.actuators.stage import Numbers, Rows, Shaft, Signal, Stage, number


class Saturation(Stage):
    """A signal saturated at two bounds: ``min(max(signal, lower), upper)``.

    Attributes:
        lower: Lower bound, in the unit of the signal; -infinity for none.
        upper: Upper bound, infinity for none.
    """

    lower: Numbers = number()
    upper: Numbers = number()

    def respond(self, signal: Signal, shaft: Shaft, states: Rows) -> tuple[Signal, Rows]:
        """(the signal within the bounds, no rates)."""
        return jnp.clip(signal, self.lower, self.upper), states
