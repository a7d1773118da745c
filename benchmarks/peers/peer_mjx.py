"""mujoco-mjx: its smooth dynamics, without contacts, constraints and actuators, and its Runge-Kutta 4;
scenes with contacts, by its own steps.
"""

import conventions
import gait as trot
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


def stand(file, q, v, dt, steps):
    """Steps of standing robots; the final height of each."""
    model = mujoco.MjModel.from_binary_path(file)
    model.opt.timestep = dt
    model, start = mjx.put_model(model), mjx.make_data(model)

    def end(q, v):
        moved = jax.lax.scan(lambda x, _: (mjx.step(model, x), None), start.replace(qpos=q, qvel=v), length=int(steps))
        return moved[0].qpos[2]

    return jax.vmap(end), (q, v)


def trotted(file, gait, q, dt, steps):
    """The way of a trot and its gradient, in forward mode: the solver's loop has no reverse mode."""
    model = mujoco.MjModel.from_binary_path(file)
    model.opt.timestep = dt
    model, start = mjx.put_model(model), mjx.make_data(model).replace(qpos=jnp.asarray(q))

    def way(gait):
        def step(data, k):
            force = jnp.concatenate([jnp.zeros(6), trot.torques(gait, k * dt, jnp)])
            return mjx.step(model, data.replace(qfrc_applied=force)), None

        return jax.lax.scan(step, start, jnp.arange(int(steps)))[0].qpos[0]

    return lambda x: jnp.concatenate([way(x)[None], jax.jacfwd(way)(x)]), (gait,)


def distances(file, q, first, second):
    """Distances of pairs of geoms by collision detection with a margin, and rows of derivatives in forward mode.

    The nearest of several points of a pair counts; NaN for a pair without points.
    """
    model = mujoco.MjModel.from_binary_path(file)
    data, made = mjx.make_data(model), mjx.put_model(model)

    def depths(q):
        return mjx.collision(made, mjx.kinematics(made, data.replace(qpos=q)))._impl.contact

    pairs = np.sort(np.asarray(depths(jnp.asarray(q[0])).geom), axis=1)
    own = [np.flatnonzero((pairs == sorted(pair)).all(axis=1)) for pair in zip(first, second, strict=True)]
    most = max(map(len, own))
    places = np.array([np.resize(x, most) if len(x) else np.full(most, -1) for x in own])

    def all_of(q):
        def nearest(q):
            return jnp.min(jnp.where(places < 0, jnp.nan, depths(q).dist[places]), axis=1)

        return jnp.concatenate([nearest(q)[:, None], jax.jacfwd(nearest)(q)], axis=1)

    return jax.vmap(all_of), (q,)


SCENES = {"stand": stand, "trot": trotted, "distances": distances}
