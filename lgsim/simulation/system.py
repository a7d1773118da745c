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


def joint_forces(model: Model, control: Control | None, torques: Array | None, t: Any, q: Array, v: Array) -> Array:
    """What the drives do (nv,): given torques plus the control's."""
    tau = jnp.zeros_like(v) if torques is None else torques
    return tau if control is None else tau + control(t, q, v, model)


def acceleration(model: Model, tau: Array, wrenches: Wrenches | None, t: Any, q: Array, v: Array) -> Array:
    """``v'`` under the drives' forces, the model's own dampers and springs, and external wrenches."""
    external = None if wrenches is None else wrenches(t, q, v, model)
    return forward_dynamics(model, q, v, tau + passive_forces(model, q, v), external)
