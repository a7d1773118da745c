"""Activations: first-order filters and integrators of a signal."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from lgsim.actuators.stage import Numbers, Rows, Shaft, Signal, Stage, number, spread


class Lag(Stage):
    """A first-order filter: ``T z' = signal - z``, with the output z.

    Attributes:
        time_constant: T, s, positive.
    """

    time_constant: Numbers = number()

    @property
    def rows(self) -> int:
        """One: z."""
        return 1

    def respond(self, signal: Signal, shaft: Shaft, states: Rows) -> tuple[Signal, Rows]:
        """(z, its rate)."""
        z = states[0]
        return z, ((signal - z) / self.time_constant)[None]


class Activation(Stage):
    """The activations of MuJoCo's actuators: filters, integrators, or none.

    ``T z' = signal - z`` for filters and ``z' = signal`` for integrators, with the output z. Its bounds are applied
    after each step of a simulation, not within one.

    Attributes:
        filters: True for each of the n actuators that filters; static.
        integrates: True for each that integrates; static.
        time_constant: T of the filters, s, positive.
        lower: Lower bound of z, -infinity for none.
        upper: Upper bound of z, infinity for none.
        is_bounded: True if any bound is given; static.
    """

    filters: tuple[bool, ...] = eqx.field(static=True)
    integrates: tuple[bool, ...] = eqx.field(static=True)
    time_constant: Numbers = number()
    lower: Numbers = eqx.field(converter=jnp.asarray, default=-np.inf)
    upper: Numbers = eqx.field(converter=jnp.asarray, default=np.inf)
    is_bounded: bool = eqx.field(static=True, default=False)

    @property
    def rows(self) -> int:
        """One: z, which is constant for actuators without activation."""
        return 1

    @property
    def is_sampled(self) -> bool:
        """True if bounds are applied after each step."""
        return self.is_bounded

    def respond(self, signal: Signal, shaft: Shaft, states: Rows) -> tuple[Signal, Rows]:
        """(z or the signal, the rate of z)."""
        z, filters, integrates = states[0], np.array(self.filters), np.array(self.integrates)
        rate = jnp.where(filters, (signal - z) / jnp.where(filters, self.time_constant, 1), 0)
        rate = jnp.where(integrates, signal, rate)
        return jnp.where(filters | integrates, z, signal), rate[None]

    def settle(self, states: Rows) -> Rows:
        """The states within their bounds."""
        lower, upper = (spread(bound, states[0])[None] for bound in (self.lower, self.upper))
        return jnp.clip(states, lower, upper)
