"""The equations of motion of a machine with all that drives it, as a field that the integrators take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax import Array

from lgsim.dynamics.forward_dynamics import forward_dynamics
from lgsim.dynamics.passive import passive_forces
from lgsim.multibody.model import Model

Control = Callable[[Any, Array, Array, Model], Array]
"""``control(t, q, v, model)``: joint forces (nv,), N m or N."""
Wrenches = Callable[[Any, Array, Array, Model], Array]
"""``wrenches(t, q, v, model)``: external wrenches (bodies, 6) on the bodies, in their frames, N and N m."""

Solve = Callable[[Model, Array, Array, Array, Any], Array]
"""``solve(model, q, v, tau, wrenches)``: accelerations."""


def joint_forces(model: Model, control: Control | None, torques: Array | None, t: Any, q: Array, v: Array) -> Array:
    """What the drives do (nv,): given torques plus the control's."""
    tau = jnp.zeros_like(v) if torques is None else torques
    return tau if control is None else tau + control(t, q, v, model)


def lagged(model: Model, command: Array, held: Array | None) -> tuple[Array, Array | None]:
    """(joint forces, their rate) of drives that follow a command by ``T tau' = command - tau``; T = 0 is the command.

    Args:
        model: The machine, T being its ``actuator_time``.
        command: What is wanted, (nv,).
        held: The drives' forces as states of the motion (nv,), of those without a lag any numbers; None where no drive
            of the machine lags.
    """
    if held is None:
        return command, None
    lags = model.actuator_time > 0
    rate = (command - held) / jnp.where(lags, model.actuator_time, 1)
    return jnp.where(lags, held, command), jnp.where(lags, rate, 0)


def acceleration(
    model: Model, tau: Array, wrenches: Wrenches | None, t: Any, q: Array, v: Array, solve: Solve = forward_dynamics
) -> Array:
    """``v'`` under the drives' forces, the model's own dampers and springs, and external wrenches.

    ``solve`` is the forward dynamics, with the rule of differentiation that fits the use.
    """
    external = None if wrenches is None else wrenches(t, q, v, model)
    return solve(model, q, v, tau + passive_forces(model, q, v), external)
