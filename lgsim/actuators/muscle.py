"""Muscles: activation dynamics, and forces by length and speed."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from lgsim.actuators.stage import Numbers, Rows, Shaft, Signal, Stage, number


class Muscle(Stage):
    """Muscles as MuJoCo has them: ``force = -F (FL(l) FV(w) a + FP(l))`` with the activation a, which shortens them.

    ``l = (x - s) / l0`` and ``w = x' / (l0 vmax)`` are the length and speed of the fiber, normalized by its optimal
    length. FL is 1 at l = 1 and 0 outside of (lmin, lmax), FV is 0 at w = -1, 1 at 0 and fvmax for fast lengthening; FP
    starts at l = 1 and is fpmax / 2 at (1 + lmax) / 2. All are continuously differentiable. The excitation u in [0, 1],
    the signal, drives the activation: ``a' = (u - a) / T``, ``T = T_up (1 + 3 a) / 2`` where it rises, else
    ``T = 2 T_down / (1 + 3 a)``.

    Attributes:
        peak_force: F, N, the largest isometric force.
        optimal_length: l0, in the unit of the shaft's x.
        slack_length: s, the part of x that is not fiber, in the same unit.
        shortest: lmin, below 1.
        longest: lmax, above 1.
        fastest: vmax, the speed of shortening without force, in optimal lengths per second.
        passive: fpmax, relative to F.
        eccentric: fvmax, the force of fast lengthening relative to F, above 1.
        rise_time: T_up, s.
        fall_time: T_down, s.
        smoothing: Range of u - a over which T changes from T_down to T_up; 0 for a switch.
        muscles: True for each of the n actuators that is a muscle; the signals of others pass; static, None for all.

    Source: MuJoCo's documentation, chapter "Modeling", section "Muscles"; Millard et al. 2013,
    doi.org/10.1115/1.4023390, for T.
    """

    peak_force: Numbers = number()
    optimal_length: Numbers = number()
    slack_length: Numbers = number()
    shortest: Numbers = eqx.field(converter=jnp.asarray, default=0.5)
    longest: Numbers = eqx.field(converter=jnp.asarray, default=1.6)
    fastest: Numbers = eqx.field(converter=jnp.asarray, default=1.5)
    passive: Numbers = eqx.field(converter=jnp.asarray, default=1.3)
    eccentric: Numbers = eqx.field(converter=jnp.asarray, default=1.2)
    rise_time: Numbers = eqx.field(converter=jnp.asarray, default=0.01)
    fall_time: Numbers = eqx.field(converter=jnp.asarray, default=0.04)
    smoothing: Numbers = eqx.field(converter=jnp.asarray, default=0.0)
    muscles: tuple[bool, ...] | None = eqx.field(static=True, default=None)

    @property
    def rows(self) -> int:
        """One: a."""
        return 1

    def respond(self, signal: Signal, shaft: Shaft, states: Rows) -> tuple[Signal, Rows]:
        """(the force, the rate of a)."""
        a = states[0]
        length = (shaft.angle - self.slack_length) / self.optimal_length
        speed = shaft.speed / (self.optimal_length * self.fastest)
        force = -self.peak_force * (self._active(length) * self._moving(speed) * a + self._stretched(length))
        rate = self._rate(jnp.clip(signal, 0, 1), a)
        if self.muscles is not None:
            force, rate = (jnp.where(np.array(self.muscles), x, y) for x, y in ((force, signal), (rate, 0)))
        return force, rate[None]

    def _active(self, length: Signal) -> Signal:
        """FL: four parabolas."""
        low, high = (self.shortest + 1) / 2, (self.longest + 1) / 2
        inner = 1 - 0.5 * ((length - 1) / jnp.where(length <= 1, 1 - low, high - 1)) ** 2
        below, above = length <= low, length > high
        outer = jnp.where(below, (length - self.shortest) / (low - self.shortest), (self.longest - length) / (
            self.longest - high))  # fmt: skip
        within = (self.shortest <= length) & (length <= self.longest)
        return jnp.where(within, jnp.where(below | above, 0.5 * outer**2, inner), 0)

    def _moving(self, speed: Signal) -> Signal:
        """FV: two parabolas."""
        more = self.eccentric - 1
        slow = jnp.where(speed <= 0, (speed + 1) ** 2, self.eccentric - (more - speed) ** 2 / more)
        return jnp.where(speed <= -1, 0, jnp.where(speed <= more, slow, self.eccentric))

    def _stretched(self, length: Signal) -> Signal:
        """FP: a parabola, then a line."""
        x = (length - 1) / ((self.longest - 1) / 2)
        return self.passive * jnp.where(x <= 0, 0, jnp.where(x <= 1, 0.5 * x**2, x - 0.5))

    def _rate(self, u: Signal, a: Signal) -> Signal:
        """The rate of the activation."""
        held = 0.5 + 1.5 * jnp.clip(a, 0, 1)
        rise, fall = self.rise_time * held, self.fall_time / held
        smooth = self.smoothing > 0
        share = jnp.clip((u - a) / jnp.where(smooth, self.smoothing, 1) + 0.5, 0, 1)
        share = jnp.where(smooth, share**3 * (3 * share * (2 * share - 5) + 10), jnp.where(u > a, 1.0, 0.0))
        return (u - a) / (fall + (rise - fall) * share)
