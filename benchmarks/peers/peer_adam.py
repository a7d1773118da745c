"""adam: its articulated-body algorithm; it knows no fixed base, so there M and the bias of the joints and one solve."""

import adam
import conventions
import jax
import jax.numpy as jnp
from adam.jax import KinDynComputations


class Peer(conventions.Body):
    """One state at a time, in the peer's numbers."""

    def __init__(self, robot):
        super().__init__(robot, robot.joints)
        gravity = jnp.array([0.0, 0.0, -9.81, 0.0, 0.0, 0.0])
        self.dynamics = KinDynComputations(robot.file("urdf"), list(robot.joints), gravity=gravity)
        self.dynamics.set_frame_velocity_representation(adam.Representations.BODY_FIXED_REPRESENTATION)

    def forward_dynamics(self, q, v, tau):
        if self.robot.floats:
            return self.dynamics.aba(_pose(q), q[7:], v[:6], v[6:], tau)
        return jax.scipy.linalg.solve(self.mass_matrix(q), tau - self._bias(q, v), assume_a="pos")

    def inverse_dynamics(self, q, v, a):
        """It has only the bias."""
        return self.mass_matrix(q) @ a + self._bias(q, v)

    def mass_matrix(self, q):
        if self.robot.floats:
            return self.dynamics.mass_matrix(_pose(q), q[7:])
        return self.dynamics.mass_matrix(jnp.eye(4), q)[6:, 6:]

    def _bias(self, q, v):
        if self.robot.floats:
            return self.dynamics.bias_force(_pose(q), q[7:], v[:6], v[6:])
        return self.dynamics.bias_force(jnp.eye(4), q, jnp.zeros(6), v)[6:]


def _pose(q):
    """The base's homogeneous matrix, which is what adam takes."""
    w, x, y, z = q[3:7]
    R = jnp.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )
    return jnp.eye(4).at[:3, :3].set(R).at[:3, 3].set(q[:3])
