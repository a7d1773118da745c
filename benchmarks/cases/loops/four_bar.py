"""Ten seconds of a four-bar linkage: time, closure error and energy, compared with MuJoCo's equality constraint."""

import harness

import time

import jax
import jax.numpy as jnp
import mujoco
import numpy as np

import lgsim
from cases.loops.machines import at, rod

LENGTHS, GROUND, SECONDS, DT = (0.4, 0.5, 0.45), 0.6, 10.0, 2e-3


def machine():
    """Three moving links about y, the third with a revolute joint to the ground."""
    builder, up, x = lgsim.ModelBuilder(), "world", 0.0
    for i, length in enumerate(LENGTHS):
        rod(builder, f"link{i}", up, at(x), (0, 1, 0), length, 1.0 + 0.3 * i)
        up, x = f"link{i}", length
    hinge = np.array([[1, 0, 0, 0], [0, 0, 1, 0], [0, -1, 0, 0], [0, 0, 0, 1.0]])
    builder.add_frame("end", up, at(x) @ hinge).add_frame("ground", "world", at(GROUND) @ hinge)
    return builder.add_loop("hinge", "ground", "end", lgsim.joints.Revolute()).build()


def start():
    """The first link at 0.6 rad, closed by the law of cosines."""
    first = 0.6
    a, b, c = LENGTHS
    x, z = GROUND - a * np.cos(first), a * np.sin(first)
    d = np.hypot(x, z)
    knee = np.arccos((d * d - b * b - c * c) / (2 * b * c))
    second = np.arctan2(-z, x) - np.arctan2(c * np.sin(knee), b + c * np.cos(knee)) - first
    return np.array([first, second, knee])


def xml():
    """The same in MuJoCo, the loop a connect constraint."""
    bodies = ""
    for i, length in reversed(list(enumerate(LENGTHS))):
        mass = 1.0 + 0.3 * i
        slender = mass * length**2 / 12
        bodies = (
            f'<body name="link{i}" pos="{LENGTHS[i - 1] if i else 0} 0 0"><joint axis="0 1 0"/>'
            f'<inertial pos="{length / 2} 0 0" mass="{mass}" diaginertia="{mass * 2e-4} {slender} {slender}"/>'
            f"{bodies}</body>"
        )
    return (
        f'<mujoco><option timestep="{DT}" integrator="RK4"/><worldbody>{bodies}</worldbody><equality>'
        f'<connect body1="link2" anchor="{LENGTHS[2]} 0 0"/></equality></mujoco>'
    )


def closure(report):
    """Both simulations from one closed state at rest."""
    model, q0 = machine(), start()
    ours, _ = harness.compiled(
        lambda model, q, v: lgsim.rollout(model, q, v, dt=DT, steps=round(SECONDS / DT))[1:3],
        model,
        jnp.asarray(q0),
        jnp.zeros(3),
    )
    rows = []
    begin = time.process_time()
    qs, vs = (np.asarray(x) for x in jax.block_until_ready(ours(model, jnp.asarray(q0), jnp.zeros(3))))
    rows.append(["lgsim, MK4 restored", 1e3 * (time.process_time() - begin), *off(model, qs, vs)])
    peer = mujoco.MjModel.from_xml_string(xml())
    # connect keeps the relative position of the reference configuration: here the initial one
    data = mujoco.MjData(peer)
    data.qpos[:] = q0
    mujoco.mj_forward(peer, data)
    peer.eq_data[0, 3:6] = (GROUND, 0, 0)
    qs, vs = np.empty((round(SECONDS / DT) + 1, 3)), np.empty((round(SECONDS / DT) + 1, 3))
    begin = time.process_time()
    for i in range(len(qs)):
        qs[i], vs[i] = data.qpos, data.qvel
        mujoco.mj_step(peer, data)
    rows.append(["MuJoCo, RK4", 1e3 * (time.process_time() - begin), *off(model, qs, vs)])
    report.table(f"{SECONDS:g} s of a four-bar at {1e3 * DT:g} ms", ["", "ms", "gap, m", "energy, J"], rows)
    report.bound("gap of the four-bar, m", rows[0][2], at_most=1e-12)
    report.figure("gap of the four-bar", rows[0][2], "m")
    report.figure("that of MuJoCo", rows[1][2], "m")


def off(model, qs, vs):
    """(largest gap, largest change of the energy)."""
    q, v = jnp.asarray(qs), jnp.asarray(vs)
    gap = np.linalg.norm(np.asarray(lgsim.loop_residual(model, q))[:, :3], axis=1).max()
    energy = np.asarray(lgsim.kinetic_energy(model, q, v) + lgsim.potential_energy(model, q))
    return gap, np.abs(energy - energy[0]).max()
