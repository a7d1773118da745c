"""What a part of an actuator is: a two-port that takes a signal and the motion of its shaft, with states of its own."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

Numbers = Float[Array, "*n"]
"""A number of all actuators, or one for each, (n,)."""
Signal = Float[Array, " n"]
Rows = Float[Array, "rows n"]
"""The states of a stage: some for each actuator."""


class Shaft(NamedTuple):
    """The motion of the shafts at one place of n actuators.

    Attributes:
        angle: Angles or distances (n,), rad or m.
        speed: Their rates (n,), rad/s or m/s.
    """

    angle: Signal
    speed: Signal


def number() -> Any:
    """A field that holds a number of all actuators or one for each; numbers and lists become arrays."""
    return eqx.field(converter=jnp.asarray)


class Stage(eqx.Module):
    """A part of n actuators, between the command and the joints: ``(signal out, z') = f(signal in, shaft, z)``.

    Signals run from the command to the joints, motion runs from the joints to the motor: a stage sees the shaft on its
    side of the joints, and says by ``inner_shaft`` what the stages before it see. Its fields are arrays, each of which
    is differentiable, can be sampled in a study, and is found by ``lgsim.identify.ActuatorParameter``.

    To add one, make a file in ``lgsim/actuators`` with a subclass: ``respond``, and where it has states ``rows``, the
    number of states of each actuator, and ``start``.
    """

    @property
    def rows(self) -> int:
        """Number of states of each actuator."""
        return 0

    @property
    def is_sampled(self) -> bool:
        """Whether states jump at times of the stage's own clock, by ``sample``."""
        return False

    def start(self, shaft: Shaft) -> Rows:
        """The states (rows, n) of actuators that are at rest at a shaft, zero by default."""
        return jnp.zeros((self.rows, *shaft.angle.shape), shaft.angle.dtype)

    def inner_shaft(self, shaft: Shaft, states: Rows) -> Shaft:
        """The motion that stages before this one see, by default the same."""
        del states
        return shaft

    @abstractmethod
    def respond(self, signal: Signal, shaft: Shaft, states: Rows) -> tuple[Signal, Rows]:
        """(signal out (n,), time derivatives of the states (rows, n)).

        Args:
            signal: What the stage before gives, (n,), or the command.
            shaft: The motion of the shaft on the joints' side of the stage.
            states: The states (rows, n).
        """

    def sample(self, signal: Signal, shaft: Shaft, states: Rows, dt: Float[Array, ""]) -> Rows:
        """The states at the start of a step of the simulation, where ``is_sampled``.

        Args:
            signal: As of ``respond``.
            shaft: As of ``respond``.
            states: As of ``respond``.
            dt: The step that begins, s.
        """
        del signal, shaft, dt
        return states

    def settle(self, states: Rows) -> Rows:
        """The states at the end of a step of the simulation, where ``is_sampled``: bounds, by default none."""
        return states


def spread(x: Numbers, like: Signal) -> Signal:
    """A number of all actuators, or one for each, as one for each (n,)."""
    return jnp.broadcast_to(x, like.shape)
