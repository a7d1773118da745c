"""jaxsim: its articulated-body algorithm, in body-fixed velocities."""

import conventions
import jax.numpy as jnp
import jaxsim.api as js


class Peer(conventions.Body):
    """One state at a time, in the peer's numbers."""

    def __init__(self, robot):
        self.model = js.model.JaxSimModel.build_from_model_description(robot.file("sdf"), gravity=9.81)
        super().__init__(robot, self.model.joint_names())

    def forward_dynamics(self, q, v, tau):
        base, joints = js.model.forward_dynamics_aba(self.model, self._data(q, v), joint_forces=tau)
        return jnp.concatenate([base[: self.robot.base_v], joints])

    def inverse_dynamics(self, q, v, a):
        return js.model.inverse_dynamics(self.model, self._data(q, v), joint_accelerations=a)[1]

    def mass_matrix(self, q):
        M = js.model.free_floating_mass_matrix(self.model, self._data(q, jnp.zeros(self.robot.nv)))
        return M if self.robot.floats else M[6:, 6:]

    def _data(self, q, v):
        base = {}
        if self.robot.floats:
            base = {
                "base_position": q[:3],
                "base_quaternion": q[3:7],
                "base_linear_velocity": v[:3],
                "base_angular_velocity": v[3:6],
            }
        return js.data.JaxSimModelData.build(
            self.model,
            joint_positions=q[self.robot.base_q :],
            joint_velocities=v[self.robot.base_v :],
            velocity_representation=js.common.VelRepr.Body,
            **base,
        )
