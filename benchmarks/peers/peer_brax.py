"""brax: the mass matrix and the bias of its generalized pipeline, and one solve."""

import conventions
import jax
import jax.numpy as jnp
import mujoco
from brax import kinematics
from brax.generalized import dynamics, mass
from brax.generalized.base import State
from brax.io import mjcf


class Peer(conventions.World):
    """One state at a time, in the peer's numbers."""

    def __init__(self, robot):
        model = mujoco.MjModel.from_xml_path(robot.file("xml"))
        super().__init__(robot, [model.joint(i).name for i in range(model.njnt) if model.jnt_type[i] != 0])
        self.system = mjcf.load_model(model)

    def forward_dynamics(self, q, v, tau):
        state = self._placed(q, v)
        force = tau - dynamics.inverse(self.system, state)
        return jax.scipy.linalg.solve(mass.matrix(self.system, state), force, assume_a="pos")

    def inverse_dynamics(self, q, v, a):
        """It has only the bias."""
        state = self._placed(q, v)
        return mass.matrix(self.system, state) @ a + dynamics.inverse(self.system, state)

    def mass_matrix(self, q):
        return mass.matrix(self.system, self._placed(q, jnp.zeros(self.robot.nv)))

    def _placed(self, q, v):
        x, xd = kinematics.forward(self.system, q, v)
        return dynamics.transform_com(self.system, State.init(q, v, x, xd))
