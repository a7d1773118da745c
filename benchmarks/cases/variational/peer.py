"""MuJoCo for a model of free, spherical, revolute and prismatic joints, with states in lgsim's coordinates."""

import jax.numpy as jnp
import mujoco
import mujoco.rollout
import numpy as np
from peers.mujoco_model import mujoco_model

from lgsim.formats.interop import mujoco as tool

mujoco.set_mju_user_warning(lambda text: None)  # otherwise it writes a file of warnings; divergence is detected here
INTEGRATORS = {"MuJoCo RK4": "mjINT_RK4", "MuJoCo implicitfast": "mjINT_IMPLICITFAST"}
CHUNK = 4096
"""Steps of one call, whose states are all kept for its time."""


class Peer:
    """A model with the same parameters, armature and springs included, without contacts, limits and friction."""

    def __init__(self, model, integrator):
        self.ours, self.model = model, mujoco_model(model)
        self.model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_AUTORESET
        self.model.opt.integrator = getattr(mujoco.mjtIntegrator, INTEGRATORS[integrator])
        self.model.dof_armature[:] = np.asarray(model.armature)
        stiff = {self.model.jnt_dofadr[j]: j for j in range(self.model.njnt)}
        for dof, value in enumerate(np.asarray(model.stiffness)):
            if dof in stiff:
                self.model.jnt_stiffness[stiff[dof]] = value
        self.data = mujoco.MjData(self.model)
        mujoco.mj_setConst(self.model, self.data)

    def start(self, q, v):
        """MuJoCo's states (batch, 1 + nq + nv) of lgsim's (batch, nq), (batch, nv)."""
        q, v = jnp.atleast_2d(q), jnp.atleast_2d(v)
        return np.concatenate([np.zeros((len(q), 1)), tool.q_to(self.ours, q), tool.v_to(self.ours, q, v)], axis=1)

    def states(self, rows):
        """States (q, v) of lgsim of MuJoCo's states (batch, 1 + nq + nv)."""
        q, v = np.split(rows[:, 1:], [self.model.nq], axis=1)
        q = tool.q_from(self.ours, jnp.asarray(q))
        return q, tool.v_from(self.ours, q, jnp.asarray(v))

    def motion(self, q, v, dt, steps, every):
        """States (q, v) of lgsim at each ``every``-th of the steps, the initial one first; NaN after divergence."""
        self.model.opt.timestep = dt
        found = [self.start(q, v)]
        with mujoco.rollout.Rollout(nthread=0) as runner:
            while steps:
                count = min(steps, every * (CHUNK // every))
                states = runner.rollout(self.model, self.data, found[-1][-1:], nstep=count)[0][0]
                found.append(states[every - 1 :: every])
                steps -= count
        return self.states(np.concatenate(found))

    def many(self, rows, dt, steps):
        """The states (batch, ...) after some steps of each of a batch, one after another in MuJoCo's own loop."""
        self.model.opt.timestep = dt
        with mujoco.rollout.Rollout(nthread=0) as runner:
            return runner.rollout(self.model, self.data, rows, nstep=steps)[0][:, -1]
