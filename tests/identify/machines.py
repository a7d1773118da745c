"""Machines with motions from closed-form equations and scipy's DOP853, for estimators that simulate."""

import functools

import jax.numpy as jnp
import numpy as np
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

import lgsim

G = 9.81


def pendulum(first=1.0, second=1.2, damping=0.05):
    """Two rods that hang one from the other; masses of the rods, kg."""
    down = np.eye(4)
    down[2, 3] = -1.0

    def rod(m):
        return {"mass": m, "center": [0, 0, -0.5], "inertia": 0.1 * m * np.eye(3), "damping": damping}

    hinge = {"axis": [0, 1, 0]}
    builder = lgsim.ModelBuilder().add_body("upper", "world", lgsim.joints.Revolute(), **hinge, **rod(first))
    return builder.add_body("lower", "upper", lgsim.joints.Revolute(), **hinge, placement=down, **rod(second)).build()


def pendulum_field(t, y, m1=1.0, m2=1.2, d=0.05):
    """Lagrange's equations of the same, by hand; angles of the second rod are to the first."""
    q1, q2, v1, v2 = y
    c = 0.5
    i1, i2 = 0.1 * m1, 0.1 * m2
    M = np.array([
        [i1 + m1 * c**2 + i2 + m2 * (1 + c**2 + 2 * c * np.cos(q2)), i2 + m2 * (c**2 + c * np.cos(q2))],
        [i2 + m2 * (c**2 + c * np.cos(q2)), i2 + m2 * c**2],
    ])  # fmt: skip
    h = m2 * c * np.sin(q2) * np.array([-(2 * v1 * v2 + v2**2), v1**2])
    fall = G * np.array([(m1 * c + m2) * np.sin(q1) + m2 * c * np.sin(q1 + q2), m2 * c * np.sin(q1 + q2)])
    return np.concatenate([[v1, v2], np.linalg.solve(M, -h - fall - d * np.array([v1, v2]))])


@functools.cache
def pendulum_angles(steps, dt, start=(2.0, 1.0, 0.0, 0.0)):
    """(steps + 1, 2)."""
    times = dt * np.arange(steps + 1)
    return solve_ivp(pendulum_field, (0, times[-1]), start, "DOP853", times, rtol=1e-12, atol=1e-12).y[:2].T


BODY = {
    "mass": 2.0,
    "center": np.array([0.05, -0.02, 0.08]),
    "inertia": np.array([[0.05, 0.004, -0.003], [0.004, 0.07, 0.002], [-0.003, 0.002, 0.06]]),
}
"""The inertia is about the centre of mass."""


def body(mass=BODY["mass"], center=BODY["center"], inertia=BODY["inertia"]):
    """A body in space, without gravity."""
    return (
        lgsim.ModelBuilder(gravity=[0, 0, 0])
        .add_body("body", "world", lgsim.joints.Free(), mass=mass, center=center, inertia=inertia)
        .build()
    )


@functools.cache
def body_motion(steps, dt, seed=0):
    """((p, quaternion wxyz) (steps + 1, 7), body twists (steps + 1, 6), wrenches (steps, 6) in the body, held)."""
    m, c, central = BODY["mass"], BODY["center"], BODY["inertia"]
    rng = np.random.default_rng(seed)
    wrenches = rng.normal(size=(steps, 6)) * np.array([10, 10, 10, 1, 1, 1])

    def field(t, y, f, n):
        # Newton and Euler about the centre of mass, in the world and in the body
        velocity, quaternion, w = y[3:6], y[6:10], y[10:13]
        R = Rotation.from_quat(quaternion, scalar_first=True).as_matrix()
        turn = np.linalg.solve(central, n - np.cross(c, f) - np.cross(w, central @ w))
        a, b = quaternion[0], quaternion[1:]
        rate = 0.5 * np.concatenate([[-b @ w], a * w + np.cross(b, w)])
        return np.concatenate([velocity, R @ f / m, rate, turn])

    y = np.concatenate([c, [0.1, 0.2, -0.1], [1, 0, 0, 0], [0.5, -1.0, 0.8]])
    rows = [y]
    for F in wrenches:
        y = solve_ivp(field, (0, dt), y, "DOP853", args=(F[:3], F[3:]), rtol=1e-12, atol=1e-13).y[:, -1]
        y[6:10] /= np.linalg.norm(y[6:10])
        rows.append(y)
    y = np.array(rows)
    R = Rotation.from_quat(y[:, 6:10], scalar_first=True)
    origin = y[:, :3] - R.apply(c)
    speed = R.inv().apply(y[:, 3:6]) - np.cross(y[:, 10:13], c)
    return np.concatenate([origin, y[:, 6:10]], axis=1), np.concatenate([speed, y[:, 10:13]], axis=1), wrenches


def poses(q):
    """Homogeneous matrices (n, 4, 4) of (p, quaternion) (n, 7)."""
    T = np.tile(np.eye(4), (len(q), 1, 1))
    T[:, :3, :3] = Rotation.from_quat(q[:, 3:], scalar_first=True).as_matrix()
    T[:, :3, 3] = q[:, :3]
    return jnp.asarray(T)
