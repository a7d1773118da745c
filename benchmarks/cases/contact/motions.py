"""Motions of the quadruped by lgsim, compiled once for all step sizes, lengths and slip speeds, and by MuJoCo."""

import harness

import time
from functools import cache

import jax.numpy as jnp
import mujoco
import numpy as np

import lgsim
from cases.contact import quadruped
from lgsim.integrators import FirstSteps

METHODS = {"MK4": lgsim.MK4, "Rodas4": lgsim.Rodas4}
MOST = 2**18


@cache
def program(name, batch):
    """(``run(model, q, v, dt, steps)``, which returns the final states (q, v) of a batch; compile time, s)."""

    def motion(model, q, v, dt, steps):
        def one(q, v):
            found = lgsim.rollout(
                model, q, v, dt=dt, steps=MOST, save_every=MOST, checkpoint=FirstSteps(steps), method=METHODS[name]
            )
            return found.q[-1], found.v[-1]

        return lgsim.tiled_vmap(one)(q, v)

    q, v = jnp.zeros((batch, 19)), jnp.zeros((batch, 18))
    return harness.compiled(motion, quadruped.machine(0.01), q, v, jnp.asarray(1e-3), jnp.asarray(1))


class Peer:
    """MuJoCo's motions."""

    def __init__(self, model):
        self.model = quadruped.twin(model)
        self.data = mujoco.MjData(self.model)

    def run(self, q, v, dt, steps):
        """(q, v, seconds): the final state; v of the base in MuJoCo's axes, initially those of the world."""
        self.model.opt.timestep = dt
        mujoco.mj_resetData(self.model, self.data)
        self.data.qpos[:], self.data.qvel[:] = np.asarray(q), np.asarray(v)
        begin = time.perf_counter()
        mujoco.mj_step(self.model, self.data, nstep=steps)
        return self.data.qpos.copy(), self.data.qvel.copy(), time.perf_counter() - begin
