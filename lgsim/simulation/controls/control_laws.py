"""Joint-space and model-based controllers, and external wrenches on a frame."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float

from lgsim._compile.xla import number_field
from lgsim.actuators.torque_speed_limit import limited_by_speed
from lgsim.dynamics.forces import gravity_forces
from lgsim.dynamics.inverse_dynamics import inverse_dynamics
from lgsim.dynamics.kinematics import forward_kinematics, frame_index
from lgsim.dynamics.loops.loop_functions import actuated_inverse_dynamics
from lgsim.integrators.method import Number
from lgsim.lie import quaternion, se3
from lgsim.lie.group import norm
from lgsim.multibody.inertia import rotational_inertia
from lgsim.multibody.loops.refusal import refuse_loops
from lgsim.multibody.model import Model
from lgsim.multibody.topology import WORLD, ModelError

Configuration = Float[Array, " nq"]
Velocity = Float[Array, " nv"]
Force = Float[Array, " nv"]
Gain = int | float | Float[np.ndarray, "..."] | Float[Array, "..."]
"""A scalar, or one value for each degree of freedom (nv,)."""
Target = Configuration | Callable[[Number], tuple[Configuration, Velocity, Velocity]]
"""A constant configuration (nq,), or ``target(t)`` with configuration, velocity and acceleration."""


def _names(actuated: Sequence[str] | None) -> Sequence[str] | None:
    """The names as a tuple, which can be hashed; a single string is kept for the error message of its user."""
    return actuated if actuated is None or isinstance(actuated, str) else tuple(actuated)


class ControlLaw(eqx.Module):
    """A feedback controller; ``a + b`` is the controller that adds the forces of both."""

    @property
    def by_joints(self) -> bool:
        """True if each force depends only on the coordinate and the velocity of its own degree of freedom.

        Linearly implicit steps then cost O(n) for models whose joints are all revolute or prismatic.
        """
        return False

    @abstractmethod
    def __call__(self, t: Number, q: Configuration, v: Velocity, model: Model) -> Force:
        """The joint forces of the controller.

        Args:
            t: Time, s.
            q: Configuration (nq,).
            v: Velocity (nv,), rad/s or m/s.

        Returns:
            Joint forces (nv,), N m or N.
        """

    def __add__(self, other: Callable) -> ControlSum:
        return ControlSum((self, other))


class ControlSum(ControlLaw):
    """The sum of controls.

    Attributes:
        terms: Functions ``(t, q, v, model) -> joint forces (nv,)``.
    """

    terms: tuple[Callable, ...]

    @property
    def by_joints(self) -> bool:
        """True if all terms act joint by joint."""
        return all(getattr(term, "by_joints", False) for term in self.terms)

    def __call__(self, t: Number, q: Configuration, v: Velocity, model: Model) -> Force:
        """The sum of the terms' forces (nv,), N m or N."""
        return sum((term(t, q, v, model) for term in self.terms), jnp.zeros_like(v))


class GravityCompensation(ControlLaw):
    """The joint forces that compensate gravity, without those of a floating base, which has no motors.

    In a model with closed kinematic loops the driven joints provide them, ``S tau + J' f = g(q)``, see
    ``actuated_inverse_dynamics``.

    Attributes:
        actuated: Names of the driven joints of a model with loops; None without loops.
    """

    actuated: Sequence[str] | None = eqx.field(static=True, default=None, converter=_names)

    def __call__(self, t: Number, q: Configuration, v: Velocity, model: Model) -> Force:
        """The gravity forces ``g(q)`` (nv,), N m or N, zero on a floating base.

        Raises:
            ModelError: the model has loops and no joints are named, or it has none and some are.
        """
        _check_actuated(self, self.actuated, model)
        if self.actuated is not None:
            still = jnp.zeros_like(v)
            return actuated_inverse_dynamics(model, q, still, still, self.actuated).tau
        return _zero_on_base(model, gravity_forces(model, q))


class PD(ControlLaw):
    """A spring and a damper towards a target: ``stiffness e + damping (v_t - v)``, ``q_t = retract(q, e)``.

    Attributes:
        target: Configuration (nq,), or a function of time that gives (q, v, v').
        stiffness: N m/rad or N/m, a number or (nv,).
        damping: N m s/rad or N s/m, a number or (nv,).
    """

    target: Target
    stiffness: Gain = number_field()
    damping: Gain = number_field()

    @property
    def by_joints(self) -> bool:
        """True: each joint has its own spring and damper."""
        return True

    def __call__(self, t: Number, q: Configuration, v: Velocity, model: Model) -> Force:
        """The spring and damper forces (nv,), N m or N, zero on a floating base."""
        target_q, target_v, _ = _target_motion(self.target, t, v)
        tau = jnp.add(self.stiffness * model.difference(q, target_q), self.damping * (target_v - v))
        return _zero_on_base(model, tau)


class ComputedTorque(ControlLaw):
    """Inverse dynamics of the target with feedback: the error obeys ``e'' + damping e' + stiffness e = 0``.

    In a model with closed kinematic loops the driven joints provide the forces, see ``actuated_inverse_dynamics``. The
    target must satisfy the loops. The error then obeys that equation to first order, since the loops are curved.

    Attributes:
        target: Configuration (nq,), or a function of time that gives (q, v, v').
        stiffness: 1/s^2, a number or (nv,).
        damping: 1/s, a number or (nv,).
        actuated: Names of the driven joints of a model with loops; None without loops.
    """

    target: Target
    stiffness: Gain = number_field()
    damping: Gain = number_field()
    actuated: Sequence[str] | None = eqx.field(static=True, default=None, converter=_names)

    def __call__(self, t: Number, q: Configuration, v: Velocity, model: Model) -> Force:
        """The forces ``M(q) (v_t' + damping (v_t - v) + stiffness e) + h(q, v)`` (nv,), N m or N; zero on a base.

        Raises:
            ModelError: the model has loops and no joints are named, or it has none and some are.
        """
        target_q, target_v, target_a = _target_motion(self.target, t, v)
        a = target_a + self.damping * (target_v - v) + self.stiffness * model.difference(q, target_q)
        _check_actuated(self, self.actuated, model)
        if self.actuated is not None:
            return actuated_inverse_dynamics(model, q, v, a, self.actuated).tau
        return _zero_on_base(model, inverse_dynamics(model, q, v, a))


class MotorLimits(ControlLaw):
    """Another control, saturated at the limits of the model's motors.

    ``|tau| <= effort_limit``, and in the direction of motion at most ``effort_limit (1 - |v|/velocity_limit)``, the
    straight torque-speed line of a motor between stall and no load. An infinite or zero limit, which files write for a
    missing one, counts as no limit. Without a velocity limit the effort limit holds at any speed; without an effort
    limit the forces are unbounded.

    ``lgsim.actuators.TorqueSpeedLimit`` is the same law with parameters of its own, as an actuator stage.

    Attributes:
        control: ``control(t, q, v, model)``, joint forces (nv,).
    """

    control: Callable

    def __call__(self, t: Number, q: Configuration, v: Velocity, model: Model) -> Force:
        """The forces of the control within the limits, (nv,), N m or N."""
        tau = self.control(t, q, v, model)
        return limited_by_speed(tau, v, model.effort_limit, model.velocity_limit)


class Hover(ControlLaw):
    """Position control of a quadrotor: thrust along the z axis of a floating base, moments for attitude and heading.

    ``F = m (-stiffness (p - place) - damping p' - g)``, thrust ``F . R e3`` between 0 and its limit, and moments
    ``J (-attitude e_R - spin w) + w x J w`` with ``hat(e_R) = (R_d^T R - R^T R_d) / 2``, R_d e3 along F. Mass and
    inertia are those assumed by the controller; the model's may differ, as in each sample of a Monte Carlo study. The
    controller is undefined where F vanishes or is parallel to the heading.

    Source: Lee, Leok, McClamroch, Geometric tracking control of a quadrotor UAV on SE(3), IEEE Conference on Decision
    and Control, 2010, for a constant position and with z up.

    Attributes:
        place: The desired position of the body's origin in the world, (3,), m.
        mass: The assumed mass m, kg.
        inertia: The assumed inertia J about the body's origin in its axes, (3, 3), kg m^2.
        gravity: The gravitational acceleration g in the world, (3,), m/s^2.
        stiffness: Gain on the position, 1/s^2.
        damping: Gain on the velocity, 1/s.
        attitude: Gain on the attitude e_R, 1/s^2.
        spin: Gain on the angular velocity w, 1/s.
        thrust_limit: The largest thrust, N.
        heading: The desired angle of the x axis about the vertical, rad.
    """

    place: Float[Array, " 3"] = eqx.field(converter=jnp.asarray)
    mass: Number
    inertia: Float[Array, "3 3"]
    gravity: Float[Array, " 3"]
    stiffness: Number = 4.0
    damping: Number = 4.0
    attitude: Number = 100.0
    spin: Number = 20.0
    thrust_limit: Number = np.inf
    heading: Number = 0.0

    @classmethod
    def from_model(cls, model: Model, place: Float[ArrayLike, " 3"], **gains: Number) -> Hover:
        """The controller with the mass, the inertia and the gravity of a single-body model.

        Args:
            model: A single body with a floating base.
            place: The desired position in the world, (3,), m.
            gains: Further attributes of the controller by name.

        Raises:
            ValueError: the model is not a single body with a floating base.
        """
        if not model.topology.floats:
            raise ValueError("model: expected a model with a floating base")
        if len(model.inertias) != 1:
            raise ValueError(f"model: expected a single body, got {len(model.inertias)}")
        numbers = {name: jnp.asarray(x, model.dtype) for name, x in gains.items()}
        body, place = model.inertias[0], jnp.asarray(place, model.dtype)
        return cls(place, body[0], rotational_inertia(body), model.gravity, **numbers)

    def __call__(self, t: Number, q: Configuration, v: Velocity, model: Model) -> Force:
        """The forces (nv,), zero except on the floating base: a body wrench (f, n), N and N m."""
        del t, model
        R, w = quaternion.Ad(q[3:7]), v[3:6]
        velocity = _rotate(R, v[:3])
        demand = -self.stiffness * (q[:3] - self.place) - self.damping * velocity - self.gravity
        F = jnp.multiply(self.mass, demand)
        # R_d: the z axis along F, the x axis towards the heading
        third = F / norm(F)
        first = jnp.stack([jnp.cos(self.heading), jnp.sin(self.heading), jnp.zeros_like(self.heading)])
        second = jnp.cross(third, first.astype(F.dtype))
        second = second / norm(second)
        R_d = jnp.stack([jnp.cross(second, third), second, third], axis=1)
        # cross products of the columns of R_d and R: the vector of the skew part of R_d^T R, in body axes
        error = 0.5 * _rotate(R.T, jnp.sum(jnp.cross(R_d.T, R.T), axis=0))
        gyroscopic = jnp.cross(w, _rotate(self.inertia, w))
        moments = _rotate(self.inertia, jnp.subtract(-self.attitude * error, self.spin * w)) + gyroscopic
        thrust = jnp.clip(jnp.sum(F * R[:, 2]), 0, self.thrust_limit)
        base = jnp.concatenate([jnp.zeros_like(w[:2]), thrust[None], moments])
        return jnp.zeros_like(v).at[:6].set(base)


class FrameWrench(eqx.Module):
    """An external wrench (f, n) at the origin of a frame, N and N m, for ``wrenches``.

    Attributes:
        frame: Name of a frame of the model.
        wrench: (6,), or a function of time that returns it.
        world: True if the wrench is in world axes, False if in the frame's own.
    """

    frame: str = eqx.field(static=True)
    wrench: Float[ArrayLike, " 6"] | Callable[[Number], Float[Array, " 6"]]
    world: bool = eqx.field(static=True, default=False)

    def __call__(self, t: Number, q: Configuration, v: Velocity, model: Model) -> Float[Array, "bodies 6"]:
        """The wrenches on all bodies (bodies, 6) in the bodies' frames, N and N m.

        Raises:
            ValueError: there is no such frame, or it is fixed to the world.
        """
        tree = model.topology
        index = frame_index(tree, self.frame)
        F = jnp.asarray(self.wrench(t) if callable(self.wrench) else self.wrench, model.dtype)
        if self.world:
            R = forward_kinematics(model, q)[index, :3, :3]
            F = jnp.concatenate([R.T @ F[:3], R.T @ F[3:]])
        body = index
        if index >= tree.bodies:
            body = tree.frame_bodies[index - tree.bodies]
            if body == WORLD:
                raise ValueError(f"frame: expected one that moves, got {self.frame!r}, which is fixed to the world")
            F = se3.Ad_dual_action(se3.inverse(model.frames[index - tree.bodies]), F)
        is_body = np.arange(tree.bodies) == body
        return jnp.where(is_body[:, None], F[None, :], 0)


def _target_motion(target: Target, t: Number, v: Velocity) -> tuple[Configuration, Velocity, Velocity]:
    """Configuration, velocity and acceleration of a target at the time t; a constant target is at rest."""
    if callable(target):
        return target(t)
    return target, jnp.zeros_like(v), jnp.zeros_like(v)


def _zero_on_base(model: Model, tau: Force) -> Force:
    """The joint forces with the six entries of a floating base set to zero."""
    return tau.at[:6].set(0) if model.topology.floats else tau


def _check_actuated(law: ControlLaw, actuated: Sequence[str] | None, model: Model) -> None:
    """Check that driven joints are named if and only if the model has loops.

    Raises:
        ModelError: it has loops and no joints are named, or none and some are.
    """
    name = type(law).__name__
    if actuated is None:
        why = "it does not know which joints are driven"
        refuse_loops(model.topology, f"{name}() without actuated", why, f"take {name}(..., actuated=[names of joints])")
    elif not model.topology.loops:
        raise ModelError(f"actuated: {name} takes names of driven joints only for models with loops; this has none")


def _rotate(M: Float[Array, "3 3"], x: Float[Array, " 3"]) -> Float[Array, " 3"]:
    """The product M x of a matrix and a vector."""
    return jnp.sum(M * x[None, :], axis=1)
