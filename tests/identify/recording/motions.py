"""Recorded motion of an arm whose torques MuJoCo computes, with faults to order."""

import functools

import mujoco
import numpy as np

import lgsim
from lgsim.identify import Recording

DT = 2e-3
SECONDS = 4.0


@functools.cache
def arm():
    return lgsim.load_urdf(lgsim.data.arm7())


def fourier(time, seed=3, terms=4, base=0.25):
    """(q, v, a) of seven joints: sums of sines about the middle of the arm's ranges, with their derivatives."""
    rng = np.random.default_rng(seed)
    model = arm()
    middle = (np.asarray(model.lower) + np.asarray(model.upper)) / 2
    rates = 2 * np.pi * base * np.arange(1, terms + 1)
    sizes = rng.uniform(0.1, 0.4, (model.nv, terms)) / np.arange(1, terms + 1)
    phases = rng.uniform(0, 2 * np.pi, (model.nv, terms))
    angle = time[:, None, None] * rates + phases
    q = middle + np.sum(sizes * np.sin(angle), axis=-1)
    return q, np.sum(sizes * rates * np.cos(angle), axis=-1), -np.sum(sizes * rates**2 * np.sin(angle), axis=-1)


def torques(q, v, a):
    """The drives' torques by MuJoCo, which reads the same file."""
    machine = mujoco.MjModel.from_xml_path(str(lgsim.data.arm7()))
    machine.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT  # lgsim's arm has none
    machine.dof_damping[:] = np.asarray(arm().damping)
    machine.dof_armature[:] = np.asarray(arm().armature)
    machine.dof_frictionloss[:] = 0
    data = mujoco.MjData(machine)
    out = np.empty_like(v)
    for i in range(len(q)):
        data.qpos, data.qvel, data.qacc = q[i], v[i], a[i]
        mujoco.mj_inverse(machine, data)
        out[i] = data.qfrc_inverse
    return out


@functools.cache
def clean(noise=0.0, seed=0):
    """Four seconds at 500 Hz; noise is a part of each torque's standard deviation, and of 0.1 mrad in positions."""
    time = DT * np.arange(round(SECONDS / DT))
    q, v, a = fourier(time)
    tau = torques(q, v, a)
    rng = np.random.default_rng(seed)
    tau = tau + noise * tau.std(axis=0) * rng.standard_normal(tau.shape)
    q = q + noise * 1e-3 * rng.standard_normal(q.shape)
    v = v + noise * 0.2 * rng.standard_normal(v.shape)
    return Recording(arm(), time, q, v, tau=tau)


@functools.cache
def simulated():
    """Motion of a heavier-geared arm than the model knows, by MuJoCo: friction, armature, encoders of 17 bits, noise.

    A controller follows the same sines; its torques are recorded with 5 % of noise.
    """
    machine = mujoco.MjModel.from_xml_path(str(lgsim.data.arm7()))
    machine.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT  # lgsim's arm has none
    machine.dof_damping[:], machine.dof_armature[:], machine.dof_frictionloss[:] = 0.5, 0.1, 0.4
    machine.opt.timestep, machine.opt.integrator = DT, mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    time = DT * np.arange(round(SECONDS / DT))
    wanted = fourier(time)
    data, model = mujoco.MjData(machine), mujoco.MjData(machine)
    data.qpos, data.qvel = wanted[0][0], wanted[1][0]
    stiff = np.array([400, 400, 400, 400, 100, 100, 50])
    rows = []
    for q, v, a in zip(*wanted, strict=True):
        model.qpos, model.qvel, model.qacc = q, v, a
        mujoco.mj_inverse(machine, model)
        tau = model.qfrc_inverse + stiff * (q - data.qpos) + stiff / 10 * (v - data.qvel)
        rows.append([data.qpos.copy(), data.qvel.copy(), tau])
        data.qfrc_applied = tau
        mujoco.mj_step(machine, data)
    q, v, tau = np.moveaxis(np.array(rows), 1, 0)
    tau = tau + 0.05 * tau.std(axis=0) * np.random.default_rng(0).standard_normal(tau.shape)
    quantum = 2 * np.pi / 2**17
    return Recording(arm(), time, quantum * np.round(q / quantum), v, tau=tau)


def single(joint):
    """A model of one body on a joint."""
    return lgsim.ModelBuilder().add_body("body", "world", joint, mass=1.0, inertia=np.eye(3)).build()


def changed(recording, **arrays):
    """The recording with channels replaced."""
    given = {name: getattr(recording, name) for name in ("time", "q", "v", "a", "tau")} | arrays
    return Recording(recording.model, **given)
