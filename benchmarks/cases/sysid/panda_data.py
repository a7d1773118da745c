"""Records of a Panda simulated by MuJoCo in C, which shares no code with lgsim.

The robot of example-robot-data, its fingers locked. MuJoCo integrates it at 5 kHz with its own dry friction
(``frictionloss``, a constraint that sticks), damping and rotor inertia. A controller follows a motion at that rate:
torques of inverse dynamics and friction plus proportional and derivative terms, clipped at the limits of the joints.
Recorded at 1 kHz are

- the encoders' positions, rounded to 2^-17 of a revolution (4.8e-5 rad),
- the controller's torques with white normal noise of 5 % of each joint's root mean square.
"""

from functools import cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import robots
from peers import export

import lgsim

RATE, SUBSTEPS = 1000, 5
ENCODER = 2 * np.pi / 2**17
TORQUE_NOISE = 0.05
ACCELERATION = np.array([15, 7.5, 10, 12.5, 15, 20, 20.0])
"""Limits of the accelerations that the maker gives, rad/s^2."""
ARMATURE = np.array([0.20, 0.20, 0.15, 0.15, 0.05, 0.05, 0.05])
DAMPING = np.array([1.0, 1.2, 0.9, 1.1, 0.4, 0.5, 0.3])
FRICTION = np.array([0.6, 0.8, 0.5, 0.7, 0.3, 0.25, 0.2])
STICKING = 2e-3
"""Time in which dry friction stops a joint, s; MuJoCo's standard of 20 ms would let it creep."""
COMPENSATION = 0.02
"""Speed below which the controller fades its compensation of friction out, rad/s."""
GAINS = np.array([1200, 1200, 1000, 1000, 400, 300, 150.0])


class Recorded(NamedTuple):
    """Sensor data at 1 kHz, and the true values.

    Attributes:
        time: s, (n,).
        q: Encoders' positions (n, 7), rad.
        tau: Torques with noise (n, 7), N m.
        noise: Standard deviation of that noise (7,).
        true_q, true_v, true_a, true_tau: Values of the simulator (n, 7).
    """

    time: np.ndarray
    q: np.ndarray
    tau: np.ndarray
    noise: np.ndarray
    true_q: np.ndarray
    true_v: np.ndarray
    true_a: np.ndarray
    true_tau: np.ndarray


@cache
def true_model():
    """The parameters of the robot in MuJoCo, as a model of lgsim with the steepest dry friction."""
    model = robots.robot("Panda", "float64")
    return model.replace(armature=ARMATURE, damping=DAMPING, friction=FRICTION, friction_speed=2e-3)


def simulator(model):
    """The same robot in MuJoCo."""
    machine = mujoco.MjModel.from_xml_string(export.mjcf(export.bodies(model)))
    machine.opt.timestep = 1 / (RATE * SUBSTEPS)
    machine.opt.disableflags &= ~int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    machine.dof_armature[:] = np.asarray(model.armature)
    machine.dof_damping[:] = np.asarray(model.damping)
    machine.dof_frictionloss[:] = np.asarray(model.friction)
    machine.dof_solref[:] = STICKING, 1.0
    data = mujoco.MjData(machine)
    mujoco.mj_setConst(machine, data)
    return machine, data


def record(motion, seconds=10.0, seed=0, model=None):
    """``Recorded`` along a motion.

    Args:
        motion: Function of times (n,) to (q, v, a), each (n, 7), such as ``OptimalExcitation.motion``.
        seconds: Duration.
        seed: Seed of the torque noise.
        model: The robot, by default ``true_model()``.
    """
    model = true_model() if model is None else model
    machine, data = simulator(model)
    steps = round(seconds * RATE) * SUBSTEPS
    q, v, a = jax.jit(motion)(jnp.arange(steps) / (RATE * SUBSTEPS))
    forward = np.asarray(_forward(model.replace(friction_speed=COMPENSATION), q, v, a))
    q, v = np.asarray(q), np.asarray(v)
    limit, kp, kd = np.asarray(model.effort_limit), GAINS, 2 * np.sqrt(GAINS)
    rows = np.empty((steps // SUBSTEPS, 4, model.nv))
    data.qpos[:], data.qvel[:] = q[0], v[0]
    for k in range(steps):
        tau = forward[k] + kp * (q[k] - data.qpos) + kd * (v[k] - data.qvel)
        data.qfrc_applied[:] = np.clip(tau, -limit, limit)
        if k % SUBSTEPS:
            mujoco.mj_step(machine, data)
        else:
            rows[k // SUBSTEPS, :2] = data.qpos, data.qvel
            mujoco.mj_step(machine, data)
            rows[k // SUBSTEPS, 2:] = data.qacc, data.qfrc_applied
    true_q, true_v, true_a, true_tau = rows.transpose(1, 0, 2)
    noise = TORQUE_NOISE * np.sqrt(np.mean(true_tau**2, axis=0))
    tau = true_tau + noise * np.random.default_rng(seed).normal(size=true_tau.shape)
    time = np.arange(len(rows)) / RATE
    return Recorded(time, np.round(true_q / ENCODER) * ENCODER, tau, noise, true_q, true_v, true_a, true_tau)


def torques(raw, seeds):
    """The recorded torques (seeds, n, 7) with the noise of other seeds from 0 on; the one of a record is among them."""
    noise = [np.random.default_rng(seed).normal(size=raw.true_tau.shape) for seed in range(seeds)]
    return raw.true_tau + raw.noise * np.stack(noise)


@jax.jit
def _forward(model, q, v, a):
    return lgsim.inverse_dynamics(model, q, v, a) - lgsim.dynamics.passive_forces(model, q, v)
