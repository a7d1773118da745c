"""A sampled servo: a discrete-time controller with zero-order hold and dead time."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from lgsim.actuators.stage import Numbers, Rows, Shaft, Signal, Stage, number


class SampledServo(Stage):
    """A digital servo: each period it samples command and shaft, and its output is held until the next one.

    ``u_k = stiffness (command - x) - damping x'`` at the times k T, and between k T and (k + 1) T the output is
    ``u_(k-d)`` with a dead time of d periods. For fractional d it is interpolated linearly, which is its
    mean over a period, so that the derivative with respect to d exists.

    A period is a whole number of the simulation's steps; otherwise it begins at the nearest step. The first period
    begins with the motion. The output is zero until the first delayed output is due.

    Attributes:
        stiffness: Output per rad or m: N m/rad, V/rad or A/rad.
        damping: Output per rad/s or m/s.
        period: T, s, the same for all; derivatives with respect to it are zero.
        dead_time: d, periods, from zero to ``longest``.
        longest: The largest dead time, periods; static.
    """

    stiffness: Numbers = number()
    damping: Numbers = number()
    period: Numbers = number()
    dead_time: Numbers = eqx.field(converter=jnp.asarray, default=0.0)
    longest: int = eqx.field(static=True, default=1)

    @property
    def rows(self) -> int:
        """The outputs of the current and previous periods, and the time to the next period."""
        return self.longest + 2

    @property
    def is_sampled(self) -> bool:
        """True."""
        return True

    def respond(self, signal: Signal, shaft: Shaft, states: Rows) -> tuple[Signal, Rows]:
        """(the held output, no rates)."""
        late = jnp.broadcast_to(self.dead_time, signal.shape)
        past = jnp.arange(self.longest + 1, dtype=states.dtype)[:, None]
        # linear interpolation between the outputs of neighboring periods
        weight = jnp.maximum(1 - jnp.abs(late[None] - past), 0)
        return jnp.sum(weight * states[:-1], axis=0), jnp.zeros_like(states)

    def sample(self, signal: Signal, shaft: Shaft, states: Rows, dt: Array) -> Rows:
        """The states with the output of a new period, if one begins with this step."""
        outputs, clock = states[:-1], states[-1]
        begins = clock < dt / 2
        new = self.stiffness * (signal - shaft.angle) - self.damping * shaft.speed
        moved = jnp.concatenate([new[None], outputs[:-1]])
        # the clock has no derivative with respect to the period: nothing depends on its time
        clock = clock + jnp.where(begins, self.period, 0) - dt
        return jnp.concatenate([jnp.where(begins[None], moved, outputs), clock[None]])
