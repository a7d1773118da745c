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
from lgsim.lie import quaternion, se3
from lgsim.lie.group import norm
from lgsim.multibody.inertia import rotational_inertia
from lgsim.multibody.model import Model
from lgsim.multibody.topology import WORLD

Target = Array | Callable[[Any], tuple[Array, Array, Array]]
"""A configuration (nq,) to hold, or ``target(t)`` with configuration, velocity and acceleration."""


class ControlLaw(eqx.Module):
    """A feedback law; ``a + b`` adds the forces of two."""

    @abstractmethod
    def __call__(self, t: Any, q: Array, v: Array, model: Model) -> Array:
        """Joint forces (nv,), N m or N."""

    def __add__(self, other: Callable) -> Sum:
        """Both at once."""
        return Sum((self, other))


class Sum(ControlLaw):
    """The sum of controls."""

    parts: tuple[Callable, ...]

    def __call__(self, t: Any, q: Array, v: Array, model: Model) -> Array:
        """The sum of their forces."""
        return sum((part(t, q, v, model) for part in self.parts), jnp.zeros_like(v))


class GravityCompensation(ControlLaw):
    """The forces that hold the machine against gravity, less those of a floating base, which no motor gives."""

    def __call__(self, t: Any, q: Array, v: Array, model: Model) -> Array:
        """``g(q)``."""
        return _driven(model, gravity_forces(model, q))


class PD(ControlLaw):
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


class ComputedTorque(ControlLaw):
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


class MotorLimits(ControlLaw):
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


class Hover(ControlLaw):
    """Thrust along a floating base's z axis and moments that keep it at a place, with a heading.

    ``F = m (-stiffness (p - place) - damping p' - g)``, thrust ``F . R e3`` between 0 and its limit, and moments
    ``J (-attitude e_R - spin w) + w x J w`` with ``hat(e_R) = (R_d^T R - R^T R_d) / 2``, R_d e3 along F. Mass and
    inertia are what the law takes them for, those of the machine being others in each sample of a study. Not defined
    where F vanishes or lies along the heading.

    Source: Lee, Leok, McClamroch, Geometric tracking control of a quadrotor UAV on SE(3), IEEE Conference on Decision
    and Control, 2010, for a place that does not move; z up here.

    Attributes:
        place: Where, in the world, (3,), m.
        mass: m, kg.
        inertia: J about the body's origin in its axes, (3, 3), kg m^2.
        gravity: g, (3,), m/s^2.
        stiffness: 1/s^2.
        damping: 1/s.
        attitude: 1/s^2.
        spin: 1/s.
        thrust_limit: N.
        heading: Of the x axis about the vertical, rad.
    """

    place: Array = eqx.field(converter=jnp.asarray)
    mass: Any
    inertia: Any
    gravity: Any
    stiffness: Any = 4.0
    damping: Any = 4.0
    attitude: Any = 100.0
    spin: Any = 20.0
    thrust_limit: Any = np.inf
    heading: Any = 0.0

    @classmethod
    def of(cls, model: Model, place: Any, **gains: Any) -> Hover:
        """The law that takes the numbers of a machine of one body for what they are.

        Raises:
            ValueError: the machine is no single body that moves freely.
        """
        if not model.topology.floats:
            raise ValueError("model: expected a machine with a floating base")
        if len(model.inertias) != 1:
            raise ValueError(f"model: expected a single body, got {len(model.inertias)}")
        numbers = {name: jnp.asarray(x, model.dtype) for name, x in gains.items()}
        body, place = model.inertias[0], jnp.asarray(place, model.dtype)
        return cls(place, body[0], rotational_inertia(body), model.gravity, **numbers)

    def __call__(self, t: Any, q: Array, v: Array, model: Model) -> Array:
        """Forces on the floating base alone: a body wrench (f, n)."""
        del t, model
        R, w = quaternion.Ad(q[3:7]), v[3:6]
        speed = _rotated(R, v[:3])
        F = self.mass * (-self.stiffness * (q[:3] - self.place) - self.damping * speed - self.gravity)
        third = F / norm(F)
        ahead = jnp.stack([jnp.cos(self.heading), jnp.sin(self.heading), jnp.zeros_like(self.heading)])
        second = jnp.cross(third, ahead.astype(F.dtype))
        second = second / norm(second)
        wanted = jnp.stack([jnp.cross(second, third), second, third], axis=1)
        # the columns of R_d and R crossed: the vector of the skew part of R_d^T R, in body axes
        error = 0.5 * _rotated(R.T, jnp.sum(jnp.cross(wanted.T, R.T), axis=0))
        moments = _rotated(self.inertia, -self.attitude * error - self.spin * w) + jnp.cross(
            w, _rotated(self.inertia, w)
        )
        thrust = jnp.clip(jnp.sum(F * R[:, 2]), 0, self.thrust_limit)
        base = jnp.concatenate([jnp.zeros_like(w[:2]), thrust[None], moments])
        return jnp.zeros_like(v).at[:6].set(base)


def _rotated(M: Array, x: Array) -> Array:
    return jnp.sum(M * x[None, :], axis=1)
