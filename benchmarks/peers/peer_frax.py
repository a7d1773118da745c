"""frax: its forward dynamics, with the base as a quaternion."""

import conventions
import jax.numpy as jnp
from frax import Robot

GRAVITY = (0.0, 0.0, 9.81, 0.0, 0.0, 0.0)


class Peer(conventions.World):
    """One state at a time, in the peer's numbers."""

    def __init__(self, robot):
        self.dynamics = Robot(
            robot.file("urdf"),
            joint_ordering=list(robot.joints),
            floating_base="quaternion" if robot.floats else None,
        )
        super().__init__(robot, robot.joints)

    def forward_dynamics(self, q, v, tau):
        return self.dynamics.forward_dynamics(q, v, tau, None)

    def inverse_dynamics(self, q, v, a):
        return self.dynamics.rnea(q, v, a, jnp.array(GRAVITY), None)

    def mass_matrix(self, q):
        return self.dynamics.mass_matrix(q)
