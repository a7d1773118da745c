"""The interface of actuator stages: two-ports that take a signal and the motion of their shaft, with own states."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

Numbers = Float[Array, "*n"]
"""A value for all actuators, or one for each, (n,)."""
Signal = Float[Array, " n"]
Rows = Float[Array, "rows n"]
"""The states of a stage: a fixed number for each actuator."""


class Shaft(NamedTuple):
    """The motion of the shafts at one place of n actuators.

    Attributes:
        angle: Angles or distances (n,), rad or m.
        speed: Their rates (n,), rad/s or m/s.
    """

    angle: Signal
    speed: Signal


def number() -> Any:
    """A field for a value of all actuators or one for each; numbers and lists become arrays."""
    return eqx.field(converter=jnp.asarray)


class Stage(eqx.Module):
    """A stage of n actuators, between the command and the joints: ``(signal out, z') = f(signal in, shaft, z)``.

    Signals run from the command to the joints, motion runs from the joints to the motor. A stage sees the shaft on its
    joint side, and ``inner_shaft`` defines the shaft that the stages before it see. The fields are arrays:
    differentiable, available to Monte Carlo studies and to ``lgsim.identify.ActuatorParameter``.

    To add one, create a file in ``lgsim/actuators`` with a subclass that defines ``respond``, and if it has states
    ``rows``, the number of states of each actuator, and ``start``.
    """

    @property
    def rows(self) -> int:
        """Number of states of each actuator."""
        return 0

    @property
    def is_sampled(self) -> bool:
        """True if states jump at sample times of the stage, by ``sample``."""
        return False

    def commands(self, count: int) -> int:
        """Number of commands of n actuators whose first stage it is, by default one each."""
        return count

    def start(self, shaft: Shaft) -> Rows:
        """The states (rows, n) of actuators at rest for a given shaft, zero by default."""
        return jnp.zeros((self.rows, *shaft.angle.shape), shaft.angle.dtype)

    def inner_shaft(self, shaft: Shaft, states: Rows) -> Shaft:
        """The motion that the stages before this one see, by default the same."""
        del states
        return shaft

    @abstractmethod
    def respond(self, signal: Signal, shaft: Shaft, states: Rows) -> tuple[Signal, Rows]:
        """(signal out (n,), time derivatives of the states (rows, n)).

        Args:
            signal: The output of the stage before, (n,), or the command.
            shaft: The motion of the shaft on the joint side of the stage.
            states: The states (rows, n).
        """

    def sample(self, signal: Float[Array, " _"], shaft: Shaft, states: Rows, dt: Float[Array, ""]) -> Rows:
        """The states at the start of a step of the simulation, if ``is_sampled``; other arguments as for ``respond``.

        Args:
            dt: The step that begins, s.
        """
        del signal, shaft, dt
        return states

    def settle(self, states: Rows) -> Rows:
        """The states at the end of a step of the simulation, if ``is_sampled``, within bounds; by default unchanged."""
        return states


def spread(x: Numbers, like: Signal) -> Signal:
    """A value of all actuators, or one for each, as one for each (n,)."""
    return jnp.broadcast_to(x, like.shape)
