"""mujoco-mjx: its smooth dynamics, without contacts, constraints and actuators."""

import conventions
import jax
import mujoco
from mujoco import mjx
from mujoco.mjx._src import smooth  # the solve with the factored mass matrix has no public name


class Peer(conventions.World):
    """One state at a time, in the peer's numbers."""

    def __init__(self, robot):
        model = mujoco.MjModel.from_xml_path(robot.file("xml"))
        super().__init__(robot, [model.joint(i).name for i in range(model.njnt) if model.jnt_type[i] != 0])
        self.model = mjx.put_model(model)
        self.data = mjx.make_data(self.model)

    def forward_dynamics(self, q, v, tau):
        data = self._placed(q, v)
        data = smooth.factor_m(self.model, smooth.crb(self.model, data))
        data = mjx.rne(self.model, mjx.com_vel(self.model, data))
        return smooth.solve_m(self.model, data, tau - data.qfrc_bias)

    def inverse_dynamics(self, q, v, a):
        data = mjx.com_vel(self.model, self._placed(q, v).replace(qacc=a))
        return mjx.rne(self.model, data, flg_acc=True).qfrc_bias

    def mass_matrix(self, q):
        return mjx.full_m(self.model, smooth.crb(self.model, self._placed(q, self.data.qvel)))

    def _placed(self, q: jax.Array, v: jax.Array):
        data = mjx.kinematics(self.model, self.data.replace(qpos=q, qvel=v))
        return mjx.com_pos(self.model, data)
