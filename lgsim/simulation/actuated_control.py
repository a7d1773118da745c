"""Actuators that replace joint forces: their commands, and integration steps between which their states jump."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import equinox as eqx
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float

from lgsim.actuators.actuators import Actuators, ActuatorSum, check
from lgsim.integrators.method import Field, Method, Number
from lgsim.lie.action import Action, Point
from lgsim.multibody.model import Model, check_model


class ActuatedControl(eqx.Module):
    """Actuators together with the control that commands them, to be used as the control of a simulation.

    Attributes:
        control: ``control(t, q, v, model)``, commands (n,) that are added to prescribed ones, or None.
    """

    actuators: Actuators | ActuatorSum
    control: Callable[..., Array] | None

    @property
    def states(self) -> int:
        """Number of states of the actuators."""
        return self.actuators.states

    def command(
        self,
        given: Float[Array, " n"] | None,
        t: Number,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
        model: Model,
    ) -> Float[Array, " n"]:
        """The commands (n,): prescribed ones plus those of the control; zero if there are neither."""
        u = jnp.zeros(self.actuators.commands, v.dtype) if given is None else given
        if self.control is None:
            return u
        return u + control_output(self.control(t, q, v, model), len(u), v.dtype, "commands", "one for each actuator")


def control_output(value: Any, length: int, dtype: Any, what: str, meaning: str) -> Array:
    """The output of a control as an array (length,).

    Args:
        what: Name of the output for messages, such as "joint forces".
        meaning: Meaning of the length for messages, such as "nv".

    Raises:
        TypeError: it is not an array of the model's dtype.
        ValueError: its shape differs; a scalar would otherwise act on every joint.
    """
    came = getattr(value, "dtype", None)
    if came is None or came != dtype:
        got = type(value).__name__ if came is None else f"one of {came}"
        raise TypeError(f"control: expected {what}, an array ({length},) of {dtype}, got {got}")
    if value.shape != (length,):
        raise ValueError(f"control: expected {what} of shape ({length},), that is {meaning}, got {value.shape}")
    return jnp.asarray(value)


def actuated(model: Model, actuators: Actuators | ActuatorSum | None, control: Any) -> Any:
    """The control itself, or the actuators that it commands.

    Raises:
        TypeError: the actuators are of a wrong type, or of another dtype than the model.
        ValueError: they do not fit the model.
    """
    if actuators is None:
        return control
    check_model(model)
    check(actuators, model)
    return ActuatedControl(actuators, control)


def given_commands(
    actuators: Actuators | ActuatorSum | None, torques: ArrayLike | None, commands: ArrayLike | None
) -> Any:
    """The torques of a model without actuators, or the commands of one with actuators.

    Raises:
        ValueError: commands are given without actuators, or torques together with actuators.
    """
    if actuators is None and commands is not None:
        raise ValueError("commands: expected actuators that take them, got none; give actuators, or torques instead")
    if actuators is not None and torques is not None:
        raise ValueError("torques: expected none with actuators, which make the joint forces; give commands instead")
    return torques if actuators is None else commands


@runtime_checkable
class SampledField(Protocol):
    """A field with states that jump at the start or the end of a step."""

    def sample(self, t: Float[Array, ""], y: Point, dt: Float[Array, ""], args: Any) -> Point:
        """The state at the start of a step dt, after the jumps there."""
        ...

    def settle(self, y: Point, args: Any) -> Point:
        """The state at the end of a step, after its bounds are applied."""
        ...


class SampledMethod(Method):
    """A method for systems whose states jump between steps, such as actuators with sample times or bounds."""

    inner: Method

    @property
    def tableau(self) -> Any:
        """The coefficients of the inner method."""
        return self.inner.tableau

    @property
    def requires(self) -> tuple[str, ...]:
        """The action operations that the inner method needs."""
        return self.inner.requires

    def step(
        self, action: Action, field: Field, t: Float[Array, ""], y: Point, dt: Float[Array, ""], args: Any
    ) -> tuple[Point, Float[Array, "*estimate"] | None]:
        """``field.sample``, a step of the inner method, and ``field.settle``."""
        return self.monitored_step(action, field, t, y, dt, args)[:2]

    def monitored_step(
        self, action: Action, field: Field, t: Float[Array, ""], y: Point, dt: Float[Array, ""], args: Any
    ) -> tuple[Point, Float[Array, "*estimate"] | None, Float[Array, ""] | None]:
        """A ``step`` that also returns the residual of an implicit method."""
        if not isinstance(field, SampledField):
            return self.inner.monitored_step(action, field, t, y, dt, args)
        now = field.sample(t, y, dt, args)
        by: Any = field
        y1, error, residual = self.inner.monitored_step(action, by, t, now, dt, args)
        return field.settle(y1, args), error, residual

    def largest_residual(self, dtype: Any) -> float | Array | None:
        """The largest accepted residual of the inner method."""
        return self.inner.largest_residual(dtype)


def sampled_method(method: Method, drive: Any) -> Method:
    """The method for a motion under a control or actuators, wrapped if these have sample times."""
    actuators = drive.actuators if isinstance(drive, ActuatedControl) else drive
    sampled = isinstance(actuators, Actuators | ActuatorSum) and actuators.is_sampled
    if isinstance(method, SampledMethod) or not sampled:
        return method
    return SampledMethod(inner=method)  # pyright: ignore[reportCallIssue]  (its tableau is a property)
