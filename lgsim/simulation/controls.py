"""What drives a machine: feedback laws for ``control`` and external wrenches for ``wrenches`` of a simulation.

A control is any function ``(t, q, v, model) -> joint forces (nv,)``; these are such functions whose numbers are leaves,
so that they can be differentiated, mapped and changed without compiling again.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array

from lgsim.dynamics.forces import gravity_forces
from lgsim.dynamics.inverse_dynamics import inverse_dynamics
from lgsim.dynamics.kinematics import forward_kinematics, frame_index
from lgsim.lie import se3
from lgsim.multibody.model import Model
from lgsim.multibody.topology import WORLD

Target = Array | Callable[[Any], tuple[Array, Array, Array]]
"""A configuration (nq,) to hold, or ``target(t)`` with configuration, velocity and acceleration."""


class Law(eqx.Module):
    """A feedback law; ``a + b`` adds the forces of two."""

    @abstractmethod
    def __call__(self, t: Any, q: Array, v: Array, model: Model) -> Array:
        """Joint forces (nv,), N m or N."""

    def __add__(self, other: Callable) -> Sum:
        """Both at once."""
        return Sum((self, other))


class Sum(Law):
    """The sum of controls."""

    parts: tuple[Callable, ...]

    def __call__(self, t: Any, q: Array, v: Array, model: Model) -> Array:
        """The sum of their forces."""
        return sum((part(t, q, v, model) for part in self.parts), jnp.zeros_like(v))


class GravityCompensation(Law):
    """The forces that hold the machine against gravity, less those of a floating base, which no motor gives."""

    def __call__(self, t: Any, q: Array, v: Array, model: Model) -> Array:
        """``g(q)``."""
        return _driven(model, gravity_forces(model, q))


class PD(Law):
    """A spring and a damper towards a target: ``stiffness e + damping (v_t - v)``, ``q_t = retract(q, e)``.

    Attributes:
        target: Configuration (nq,), or a function of time that gives (q, v, v').
        stiffness: N m/rad or N/m, a number or (nv,).
        damping: N m s/rad or N s/m, a number or (nv,).
    """

    target: Any
    stiffness: Any
    damping: Any

    def __call__(self, t: Any, q: Array, v: Array, model: Model) -> Array:
        """The forces of spring and damper; none on a floating base."""
        place, speed, _ = _aim(self.target, t, v)
        return _driven(model, self.stiffness * model.difference(q, place) + self.damping * (speed - v))


class ComputedTorque(Law):
    """Inverse dynamics of the target with feedback: the error obeys ``e'' + damping e' + stiffness e = 0``.

    Attributes:
        target: Configuration (nq,), or a function of time that gives (q, v, v').
        stiffness: 1/s^2, a number or (nv,).
        damping: 1/s, a number or (nv,).
    """

    target: Any
    stiffness: Any
    damping: Any

    def __call__(self, t: Any, q: Array, v: Array, model: Model) -> Array:
        """``M(q) (v_t' + damping (v_t - v) + stiffness e) + h(q, v)``; none on a floating base."""
        place, speed, wanted = _aim(self.target, t, v)
        a = wanted + self.damping * (speed - v) + self.stiffness * model.difference(q, place)
        return _driven(model, inverse_dynamics(model, q, v, a))


class Motor(Law):
    """Another control within what the model's motors give.

    ``|tau| <= effort_limit``, and with the motion at most ``effort_limit (1 - |v|/velocity_limit)``, the straight line
    of a motor between stall and no load.
    """

    control: Callable

    def __call__(self, t: Any, q: Array, v: Array, model: Model) -> Array:
        """The forces of the control, cut at the limits."""
        tau = self.control(t, q, v, model)
        share = v / model.velocity_limit
        most = jnp.minimum(1 - share, 1)
        least = jnp.maximum(-1 - share, -1)
        free = jnp.isinf(model.effort_limit)
        limit = jnp.where(free, 0, model.effort_limit)
        cut = jnp.clip(tau, limit * jnp.minimum(least, 0), limit * jnp.maximum(most, 0))
        return jnp.where(free, tau, cut)


class FrameWrench(eqx.Module):
    """A wrench (f, n) on a frame at its origin, N and N m, for ``wrenches``.

    Attributes:
        frame: Name of a frame of the model.
        wrench: (6,), or a function of time that gives it.
        world: Whether it is in world axes; else in the frame's own.
    """

    frame: str = eqx.field(static=True)
    wrench: Any
    world: bool = eqx.field(static=True, default=False)

    def __call__(self, t: Any, q: Array, v: Array, model: Model) -> Array:
        """Wrenches (bodies, 6) in the bodies' frames."""
        tree = model.topology
        index = frame_index(tree, self.frame)
        given: Any = self.wrench
        F = jnp.asarray(given(t) if callable(given) else given, model.dtype)
        if self.world:
            R = forward_kinematics(model, q)[index, :3, :3]
            F = jnp.concatenate([R.T @ F[:3], R.T @ F[3:]])
        body = index
        if index >= tree.bodies:
            body = tree.frame_bodies[index - tree.bodies]
            if body == WORLD:
                raise ValueError(f"frame: expected one that moves, got {self.frame!r}, which is fixed to the world")
            F = se3.Ad_dual_action(se3.inverse(model.frames[index - tree.bodies]), F)
        here = np.arange(tree.bodies) == body
        return jnp.where(here[:, None], F[None, :], 0)


def _aim(target: Target, t: Any, v: Array) -> tuple[Array, Array, Array]:
    if callable(target):
        return target(t)
    return target, jnp.zeros_like(v), jnp.zeros_like(v)


def _driven(model: Model, tau: Array) -> Array:
    """Without the six of a floating base."""
    return tau.at[:6].set(0) if model.topology.floats else tau
