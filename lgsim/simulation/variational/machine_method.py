"""Methods that carry other states of a machine through a motion than its configuration and velocity."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jax import Array
from jaxtyping import Float

from lgsim.integrators.method import Method
from lgsim.lie.action import Action
from lgsim.multibody.model import Model


class MachineMethod(Method):
    """A method that knows machines. A motion of many steps starts it once, and asks for states (q, v) at nodes alone.

    Its own ``step`` takes one step from a state (q, v) to the next one, as any method does.
    """

    @property
    @abstractmethod
    def inner(self) -> Method:
        """The method that takes a step from a state of its own to the next one."""

    @abstractmethod
    def space(self, model: Model) -> Action:
        """The space of its own states."""

    @abstractmethod
    def check_machine(self, model: Model, size: int) -> None:
        """Raise ValueError if the method does not take the machine, or parts beside (q, v) of a state of that size."""

    @abstractmethod
    def start(self, model: Model, y: Float[Array, " state"], dt: Float[Array, ""]) -> Float[Array, " own"]:
        """Its own state at the start of a motion with steps dt, of a state (q, v).

        Raises:
            ValueError: the machine has states that the method does not take.
        """

    @abstractmethod
    def state(self, model: Model, y: Float[Array, " own"]) -> Float[Array, " state"]:
        """The state (q, v) of one of its own."""

    @abstractmethod
    def why_unsolved(self, model: Model, y: Float[np.ndarray, " state"], dt: float) -> tuple[str, str]:
        """(the joint that is to blame, what to do) for a step from about a state (q, v) that was not solved."""


@runtime_checkable
class MachineField(Protocol):
    """A field that tells what moves."""

    def machine(self, args: Any) -> tuple[tuple[Model, Any, Any], Any]:
        """((model, control, wrenches), segment of joint forces or None) of the arguments of the field."""
        ...
