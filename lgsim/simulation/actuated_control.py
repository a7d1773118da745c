"""Actuators in the place of joint forces: what a control then commands, and steps between which their states jump."""

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
    """Actuators with what commands them, in the place that a control has in a simulation.

    Attributes:
        control: ``control(t, q, v, model)``, commands (n,) that are added to given ones, or None.
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
        """The commands (n,): given ones plus those of the control, zero without either."""
        u = jnp.zeros(self.actuators.commands, v.dtype) if given is None else given
        if self.control is None:
            return u
        return u + control_output(self.control(t, q, v, model), len(u), v.dtype, "commands", "one for each actuator")


def control_output(value: Any, length: int, dtype: Any, what: str, meaning: str) -> Array:
    """What a control gave, an array (length,).

    Args:
        dtype: Its dtype, that of the model.
        what: What it is, in words, such as "joint forces".
        meaning: What the length is, in words, such as "nv".

    Raises:
        TypeError: it is no array of the model's dtype.
        ValueError: its shape is another one: a single number would else become the force of every joint.
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
        TypeError: the actuators are none, or of another dtype than the model.
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
    """The torques of a machine without actuators, or the commands of one with them.

    Raises:
        ValueError: there are commands without actuators or torques beside them.
    """
    if actuators is None and commands is not None:
        raise ValueError("commands: there are no actuators that take them; give actuators, or joint forces as torques")
    if actuators is not None and torques is not None:
        raise ValueError("torques: the actuators make the joint forces; give what they take as commands")
    return torques if actuators is None else commands


@runtime_checkable
class SampledField(Protocol):
    """A field some of whose states jump where steps begin and end."""

    def sample(self, t: Float[Array, ""], y: Point, dt: Float[Array, ""], args: Any) -> Point:
        """The state at the start of a step dt, after what jumps there."""
        ...

    def settle(self, y: Point, args: Any) -> Point:
        """The state at the end of a step, after what bounds it there."""
        ...


class SampledMethod(Method):
    """A method between whose steps states jump, as in actuators with clocks and bounds of their own."""

    inner: Method

    @property
    def tableau(self) -> Any:
        """The coefficients of the inner method."""
        return self.inner.tableau

    @property
    def requires(self) -> tuple[str, ...]:
        """The verbs that the inner method needs."""
        return self.inner.requires

    def step(
        self, action: Action, field: Field, t: Float[Array, ""], y: Point, dt: Float[Array, ""], args: Any
    ) -> tuple[Point, Float[Array, "*estimate"] | None]:
        """``field.sample``, a step of the inner method, and ``field.settle``."""
        return self.monitored_step(action, field, t, y, dt, args)[:2]

    def monitored_step(
        self, action: Action, field: Field, t: Float[Array, ""], y: Point, dt: Float[Array, ""], args: Any
    ) -> tuple[Point, Float[Array, "*estimate"] | None, Float[Array, ""] | None]:
        """As ``step``, with the residual of an implicit method."""
        if not isinstance(field, SampledField):
            return self.inner.monitored_step(action, field, t, y, dt, args)
        now = field.sample(t, y, dt, args)
        by: Any = field
        y1, error, residual = self.inner.monitored_step(action, by, t, now, dt, args)
        return field.settle(y1, args), error, residual

    def largest_residual(self, dtype: Any) -> float | Array | None:
        """That of the inner method."""
        return self.inner.largest_residual(dtype)


def sampled_method(method: Method, drive: Any) -> Method:
    """The method of a motion under a control or actuators, which is another one where these have clocks."""
    actuators = drive.actuators if isinstance(drive, ActuatedControl) else drive
    sampled = isinstance(actuators, Actuators | ActuatorSum) and actuators.is_sampled
    if isinstance(method, SampledMethod) or not sampled:
        return method
    return SampledMethod(inner=method)  # pyright: ignore[reportCallIssue]  (its tableau is a property)
