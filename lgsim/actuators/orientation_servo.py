"""A servo of the orientation of a ball joint."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from lgsim.actuators.actuators import Actuators, States
from lgsim.actuators.stage import Signal
from lgsim.actuators.transmission import Transmission
from lgsim.lie import quaternion
from lgsim.lie.group import norm
from lgsim.multibody.model import Model


class OrientationServo(Actuators):
    """The torque ``kp log(q^-1 target) - kd w`` on a ball joint, of at most a largest norm, in the axes of the child.

    The commands are the rotation vector of the target, rad, or its quaternion wxyz of any norm; zero means no rotation.

    Attributes:
        joint: Name of the joint; static.
        stiffness: kp, N m/rad.
        damping: kd, N m s/rad.
        torque_limit: The largest norm of the torque, N m; infinity for none.
        lower: Lower bounds of the commands (commands,).
        upper: Upper bounds of the commands (commands,).

    Source: MuJoCo's documentation, chapter "XML reference", element "actuator/orientation".
    """

    joint: str = eqx.field(static=True)
    stiffness: Float[Array, ""]
    damping: Float[Array, ""]
    torque_limit: Float[Array, ""]
    lower: Signal
    upper: Signal

    def __init__(self, model: Model, joint: str, names: tuple[str, ...], *numbers: Any) -> None:
        super().__init__(Transmission.of_joints(model, [joint]), names=names)
        self.joint = joint
        values = (jnp.asarray(x, model.dtype) for x in numbers)
        self.stiffness, self.damping, self.torque_limit, self.lower, self.upper = values

    @property
    def commands(self) -> int:
        """Three for a rotation vector, four for a quaternion."""
        return len(self.names)

    def respond(
        self, model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"], states: States, command: Signal
    ) -> tuple[Float[Array, " nv"], States]:
        """See ``Actuators.respond``."""
        target = jnp.clip(command, self.lower, self.upper)
        if self.commands == 4:
            target = jnp.where(jnp.any(target != 0), target, quaternion.identity(target.dtype))
        else:
            target = quaternion.exp(target)
        error = quaternion.log(quaternion.compose(quaternion.inverse(q[model.q_slices[self.joint]]), target))
        tau = self.stiffness * error - self.damping * v[model.v_slices[self.joint]]
        size = norm(tau)
        exceeds = size > self.torque_limit
        tau = tau * jnp.where(exceeds, self.torque_limit / jnp.where(exceeds, size, 1), 1)
        return self.transmission.joint_forces(model, q, tau), states
