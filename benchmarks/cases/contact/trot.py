"""Gradient of one second of a trot with respect to gait parameters, compared with MuJoCo."""

import harness

import tempfile
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
from peers import client
from peers import gait as trot

import lgsim
from cases.contact import quadruped
from cases.contact.standing import MILD

DT, STEPS = 2.5e-4, 4000
"""Feet that strike press several times as hard as those that stand: steps of 1 ms would not bear their friction."""
GAIT = np.array([0.2, 0.3, 0.0, 0.05, 0.05, 2.5])
"""Swings of thighs and shanks, rad; shanks later by, rad; thighs and shanks off the stand, rad; frequency, Hz."""
WAYS = (1e-4, 1e-6)
"""Of central differences, in each number's unit."""


def gradients(report):
    """The distance of one second and its gradient, by each library."""
    model, q = quadruped.machine(MILD), quadruped.standing()[1]
    steps = 400 if report.quick else STEPS

    def way(gait):
        def law(t, q, v, model):
            return jnp.concatenate([jnp.zeros(6), trot.torques(gait, t, jnp)])

        return lgsim.rollout(model, q, jnp.zeros(18), dt=DT, steps=steps, save_every=steps, control=law).q[-1, 0]

    gait = jnp.asarray(GAIT)
    program, compiling = harness.compiled(jax.value_and_grad(way), gait)
    forward, _ = harness.compiled(way, gait)
    report.figure("gradient of a trot", compiling, "s to compile")
    (value, slope), seconds = _timed(lambda: jax.block_until_ready(program(gait)))
    rows = [["lgsim MK4, reverse mode", value, np.linalg.norm(slope), seconds, bool(np.isfinite(slope).all()), 0.0]]
    for e in WAYS:
        found, seconds = _timed(lambda e=e: _differences(lambda x: float(forward(jnp.asarray(x))), e))
        off = np.linalg.norm(found - slope) / np.linalg.norm(slope)
        rows.append([f"lgsim MK4, differences of {e:g}", value, np.linalg.norm(found), seconds, True, off])
    report.bound("gradient of a trot: difference from central differences", off, at_most=1e-5)

    peer = _Twin(q, steps)
    first = None
    for e in WAYS:
        found, seconds = _timed(lambda e=e: _differences(peer.way, e))
        first = found if first is None else first
        off = np.linalg.norm(found - first) / np.linalg.norm(first)
        rows.append([f"MuJoCo C, differences of {e:g}", peer.way(GAIT), np.linalg.norm(found), seconds, True, off])
    row = None if report.quick else _mjx_row(peer, steps)
    if row is not None:
        rows.append(row)
    report.table(
        f"Gradient of the distance in {steps * DT:g} s of a trot with respect to six parameters, and its difference"
        " from the first row of the same library",
        ["by", "distance, m", "norm of the gradient", "s", "finite", "difference"], rows,
    )  # fmt: skip


def _timed(f):
    begin = time.perf_counter()
    return f(), time.perf_counter() - begin


def _differences(f, e):
    moves = e * np.eye(len(GAIT))
    return np.array([(f(GAIT + move) - f(GAIT - move)) / (2 * e) for move in moves])


class _Twin:
    """The robot in MuJoCo C, with spring references set before each step."""

    def __init__(self, q, steps):
        self.model, self.q, self.steps = quadruped.twin(quadruped.standing()[0]), np.asarray(q), steps
        self.model.opt.timestep = DT
        self.data = mujoco.MjData(self.model)

    def way(self, gait):
        """Distance of the trunk after all steps, m."""
        mujoco.mj_resetData(self.model, self.data)
        self.data.qpos[:] = self.q
        for k in range(self.steps):
            self.data.qfrc_applied[6:] = trot.torques(gait, k * DT)
            mujoco.mj_step(self.model, self.data)
        return self.data.qpos[0]


def _mjx_row(peer, steps):
    """MJX in forward mode, if its environment is built."""
    python = client.available().get("mjx")
    if python is None:
        return None
    with tempfile.TemporaryDirectory() as folder, client.Peer("mjx", python, limit=600.0) as worker:
        file, numbers = Path(folder) / "machine.mjb", Path(folder) / "numbers.npz"
        mujoco.mj_saveModel(peer.model, str(file))
        np.savez(numbers, gait=GAIT, q=peer.q, dt=DT, steps=steps)
        try:
            worker.scene("trot", file, numbers)
            value, *slope = worker.value()
            seconds = worker.turn(1e-3)
        except client.PeerError as failure:
            return [f"MJX, forward mode: {failure}"[:60], *["-"] * 5]
    first = _differences(peer.way, WAYS[0])
    off = np.linalg.norm(slope - first) / np.linalg.norm(first)
    return ["MJX, forward mode", value, np.linalg.norm(slope), seconds, bool(np.isfinite(slope).all()), off]
