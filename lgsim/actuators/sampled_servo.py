"""A servo that computes its output at a rate of its own and holds it, with dead time."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from lgsim.actuators.stage import Numbers, Rows, Shaft, Signal, Stage, number


class SampledServo(Stage):
    """A servo in a processor: each period it reads command and shaft, and its output is held until the next one.

    ``u_k = stiffness (command - x) - damping x'`` at the times k T, and between k T and (k + 1) T the output is
    ``u_(k-d)`` with a dead time of d periods. Between whole numbers d the output is the mean over a period of what such
    a dead time gives, so that the derivative by d exists.

    A period is a whole number of the simulation's steps; with other steps it begins at the step that is nearest. The
    first one begins with the motion. Before the first output that is late the output is zero.

    Attributes:
        stiffness: Output for each rad or m: N m/rad, V/rad or A/rad.
        damping: Output for each rad/s or m/s.
        period: T, s, the same for all; derivatives by it are zero.
        dead_time: d, periods, of zero to ``longest``.
        longest: The largest dead time, periods; static.
    """

    stiffness: Numbers = number()
    damping: Numbers = number()
    period: Numbers = number()
    dead_time: Numbers = eqx.field(converter=jnp.asarray, default=0.0)
    longest: int = eqx.field(static=True, default=1)

    @property
    def rows(self) -> int:
        """The outputs of this period and of those before, and the time to the next period."""
        return self.longest + 2

    @property
    def is_sampled(self) -> bool:
        """True."""
        return True

    def respond(self, signal: Signal, shaft: Shaft, states: Rows) -> tuple[Signal, Rows]:
        """(the output that is held, no rates)."""
        late = jnp.broadcast_to(self.dead_time, signal.shape)
        past = jnp.arange(self.longest + 1, dtype=states.dtype)[:, None]
        weight = jnp.maximum(1 - jnp.abs(late[None] - past), 0)
        return jnp.sum(weight * states[:-1], axis=0), jnp.zeros_like(states)

    def sample(self, signal: Signal, shaft: Shaft, states: Rows, dt: Array) -> Rows:
        """The states with the output of a new period, where one begins with this step."""
        outputs, clock = states[:-1], states[-1]
        begins = clock < dt / 2
        new = self.stiffness * (signal - shaft.angle) - self.damping * shaft.speed
        moved = jnp.concatenate([new[None], outputs[:-1]])
        # the derivative of a clock by the period would be that of a time which nothing follows
        clock = clock + jnp.where(begins, self.period, 0) - dt
        return jnp.concatenate([jnp.where(begins[None], moved, outputs), clock[None]])
