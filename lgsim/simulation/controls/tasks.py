"""Tasks of operational-space control: desired accelerations that are linear in the joint accelerations."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from lgsim._compile.xla import number_field
from lgsim.dynamics.jacobians import Reference, frame_jacobian, frame_jacobian_rate
from lgsim.dynamics.kinematics import forward_kinematics, frame_index
from lgsim.integrators.method import Number
from lgsim.lie import quaternion
from lgsim.lie.conversions import quaternion_from_matrix
from lgsim.multibody.model import Model
from lgsim.simulation.controls.control_laws import Configuration, Gain, Target, Velocity

Place = Float[Array, " 3"]
PlaceTarget = Place | Callable[[Number], tuple[Place, Place, Place]]
"""A constant point of the world (3,), m, or ``target(t)`` with position, velocity and acceleration."""
Turn = Float[Array, " 4"]
TurnTarget = Turn | Callable[[Number], tuple[Turn, Place, Place]]
"""A constant unit quaternion (4,), or ``target(t)`` with it, its body angular velocity and the derivative of that."""


class TaskMotion(NamedTuple):
    """A task of k components, ``x'' = jacobian v' + drift``, with its desired acceleration.

    Attributes:
        jacobian: J (k, nv).
        drift: ``J' v`` (k,).
        wanted: The desired x'' from the feedback (k,).
    """

    jacobian: Float[Array, "k nv"]
    drift: Float[Array, " k"]
    wanted: Float[Array, " k"]


class Task(eqx.Module):
    """Base class of tasks. A new kind is a subclass with ``motion``."""

    @abstractmethod
    def motion(self, t: Number, q: Configuration, v: Velocity, model: Model) -> TaskMotion:
        """The task Jacobian, its drift and the desired acceleration at a state.

        Args:
            t: Time, s.
            q: Configuration (nq,).
            v: Velocity (nv,).

        Raises:
            ValueError: there is no such frame.
        """


class FramePlace(Task):
    """Position of a frame's origin: ``x'' = x_d'' + damping (x_d' - x') + stiffness (x_d - x)``.

    Attributes:
        target: The point in the world, or a function of time with its position, velocity and acceleration.
        stiffness: 1/s^2, a number or one for each axis of the world (3,).
        damping: 1/s, likewise.
    """

    frame: str = eqx.field(static=True)
    target: PlaceTarget
    stiffness: Gain = number_field(100.0)
    damping: Gain = number_field(20.0)

    def motion(self, t: Number, q: Configuration, v: Velocity, model: Model) -> TaskMotion:
        """The position task in world axes, m, (3,)."""
        zero = jnp.zeros((3,), v.dtype)
        x_d, u_d, a_d = self.target(t) if callable(self.target) else (self.target, zero, zero)
        x = forward_kinematics(model, q)[frame_index(model.topology, self.frame), :3, 3]
        J = frame_jacobian(model, q, self.frame, Reference.WORLD)[:3]
        drift = frame_jacobian_rate(model, q, v, self.frame, Reference.WORLD)[:3] @ v
        return TaskMotion(J, drift, a_d + self.damping * (u_d - J @ v) + self.stiffness * (x_d - x))


class FrameTurn(Task):
    """Orientation of a frame: ``w' = w_d' - w x w_d - spin (w - w_d) - attitude e``, ``(e_0, e) = +- q_d^-1 q``.

    Near zero, e is half of the rotation vector, and e_0 >= 0; w is in the axes of the frame, into which w_d is rotated.

    Attributes:
        target: A unit quaternion, or a function of time with it, its body angular velocity and the derivative of that.
        attitude: Gain on e, 1/s^2, a number or one for each axis of the frame (3,).
        spin: Gain on w, 1/s, likewise.

    Source: Wendlandt, Control and simulation of multibody systems, 1997, (4.26).
    """

    frame: str = eqx.field(static=True)
    target: TurnTarget
    attitude: Gain = number_field(200.0)
    spin: Gain = number_field(20.0)

    def motion(self, t: Number, q: Configuration, v: Velocity, model: Model) -> TaskMotion:
        """The orientation task in the frame's axes, rad, (3,)."""
        zero = jnp.zeros((3,), v.dtype)
        turn, w_d, a_d = self.target(t) if callable(self.target) else (self.target, zero, zero)
        R = forward_kinematics(model, q)[frame_index(model.topology, self.frame), :3, :3]
        J = frame_jacobian(model, q, self.frame)[3:]
        drift = frame_jacobian_rate(model, q, v, self.frame)[3:] @ v
        w = J @ v
        error = quaternion.compose(quaternion.inverse(turn), quaternion_from_matrix(R))
        e = jnp.where(error[0] < 0, -error[1:], error[1:])
        relative = R.T @ quaternion.Ad(turn)
        w_d, a_d = relative @ w_d, relative @ a_d
        return TaskMotion(J, drift, a_d - jnp.cross(w, w_d) - self.spin * (w - w_d) - self.attitude * e)


class Posture(Task):
    """Configuration of all joints: ``v' = v_d' + damping (v_d - v) + stiffness e``. As the last task it uses the joint
    motions that the other tasks leave free.

    Attributes:
        target: Configuration (nq,), or a function of time that gives (q, v, v').
        stiffness: 1/s^2, a number or (nv,).
        damping: 1/s, a number or (nv,).
    """

    target: Target
    stiffness: Gain = number_field(25.0)
    damping: Gain = number_field(10.0)

    def motion(self, t: Number, q: Configuration, v: Velocity, model: Model) -> TaskMotion:
        """The posture task in the degrees of freedom, (nv,)."""
        zero = jnp.zeros_like(v)
        q_d, v_d, a_d = self.target(t) if callable(self.target) else (self.target, zero, zero)
        wanted = a_d + self.damping * (v_d - v) + self.stiffness * model.difference(q, q_d)
        return TaskMotion(jnp.eye(model.nv, dtype=v.dtype), zero, wanted)
