"""mujoco-mjx: its smooth dynamics, without contacts, constraints and actuators, and its Runge-Kutta 4."""

import conventions
import jax
import jax.numpy as jnp
import mujoco
import numpy as np
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


class Motion:
    """``mjx.step`` with RK4 on any MJCF without constraints; states in MuJoCo's own numbers."""

    def __init__(self, xml, gravity, steps, every):
        """For runs of multiples of ``steps`` steps, of which one in ``every`` is saved."""
        model = mujoco.MjModel.from_xml_string(xml)
        model.opt.gravity[:] = gravity
        model.opt.integrator = mujoco.mjtIntegrator.mjINT_RK4
        model, self.steps = mjx.put_model(model), steps
        data = mjx.make_data(model)

        def saved(state, dt):
            # without constraints a step depends on nothing but q and v; a loop that carries all of Data is slower
            def step(state, _):
                moved = mjx.step(model.tree_replace({"opt.timestep": dt}), data.replace(qpos=state[0], qvel=state[1]))
                return (moved.qpos, moved.qvel), None

            state = jax.lax.scan(step, state, length=every)[0]
            return state, state

        def program(q, v, dt):
            return jax.lax.scan(lambda state, _: saved(state, dt), (q, v), length=steps // every)[1]

        self.program = jax.jit(program)

    def run(self, q, v, dt, steps):
        """Saved states, the first included."""
        pieces = [(np.array([q]), np.array([v]))]
        for _ in range(steps // self.steps):
            pieces.append(self.program(*(jnp.asarray(x[-1]) for x in pieces[-1]), jnp.asarray(dt)))
        return tuple(np.concatenate(parts) for parts in zip(*pieces, strict=True))
