"""Methods that carry a model through a motion in states other than configuration and velocity."""

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
    """A method for models only. A motion of many steps starts it once, and asks for states (q, v) at nodes only.

    Its own ``step`` takes one step from a state (q, v) to the next one, as in any method.
    """

    @property
    @abstractmethod
    def inner(self) -> Method:
        """The method that advances a state of its own by one step."""

    @abstractmethod
    def space(self, model: Model) -> Action:
        """The space of its own states."""

    @abstractmethod
    def check_machine(self, model: Model, size: int) -> None:
        """Raise ValueError if the method does not support the model, or the actuator states in a state of that size."""

    @abstractmethod
    def start(self, model: Model, y: Float[Array, " state"], dt: Float[Array, ""]) -> Float[Array, " own"]:
        """Its own initial state of a motion with steps dt, from a state (q, v).

        Raises:
            ValueError: the model has states that the method does not support.
        """

    @abstractmethod
    def state(self, model: Model, y: Float[Array, " own"]) -> Float[Array, " state"]:
        """The state (q, v) for one of its own."""

    @abstractmethod
    def why_unsolved(self, model: Model, y: Float[np.ndarray, " state"], dt: float) -> tuple[str, str]:
        """(the joint at fault, the remedy) for a step near a state (q, v) that was not solved."""


@runtime_checkable
class MachineField(Protocol):
    """A field that exposes the model that it moves."""

    def machine(self, args: Any) -> tuple[tuple[Model, Any, Any], Any]:
        """((model, control, wrenches), segment of joint forces or None) of the arguments of the field."""
        ...
