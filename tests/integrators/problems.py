"""Initial-value problems that do not commute and depend on state and time, each with a final state made without lgsim.

The references are Jacobi's closed form for the free body and an extrapolation method in extended precision on plain
matrices for the rest; ``test_orders.py`` checks the extrapolation method against the closed form.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import lgsim
from lgsim import actions
from lgsim.systems import free_rigid_body, heavy_top

DATA = Path(__file__).parents[1] / "data"
BODIES = json.loads((DATA / "rigid_body.json").read_text())
ORDERS = json.loads((DATA / "method_orders.json").read_text())


@dataclass(frozen=True)
class Problem:
    """y' = field(t, y, args) . y from t0 over `time`; `final` are all entries of the exact state at t0 + time."""

    action: actions.Action
    field: Callable[[Any, Any, Any], Any]
    initial: Any
    args: Any
    t0: float
    time: float
    final: np.ndarray


def flat(state):
    """All entries of a state in one vector."""
    return np.concatenate([np.asarray(leaf).ravel() for leaf in jax.tree.leaves(state)])


def extrapolate(derivative, y, t0, t1, steps, columns=9):
    """Gragg's extrapolation of the modified midpoint rule in extended precision, order 2 columns.

    Source: Hairer, Norsett, Wanner, Solving ODEs I, section II.9 (without smoothing step: all sequences are even).
    """
    y, t = np.asarray(y, np.longdouble), np.longdouble(t0)
    step = (np.longdouble(t1) - t) / steps
    for _ in range(steps):
        table = []
        for j in range(columns):
            count = 2 * (j + 1)
            h = step / count
            before, now = y, y + h * derivative(t, y)
            for i in range(1, count):
                before, now = now, before + 2 * h * derivative(t + i * h, now)
            row = [now]
            for k in range(1, j + 1):
                ratio = np.longdouble(j + 1) / (j + 1 - k)
                row.append(row[k - 1] + (row[k - 1] - table[k - 1]) / (ratio**2 - 1))
            table = row
        y, t = table[-1], t + step
    return y


def hat(u):
    """Matrix of a rotation vector (3,), of a planar twist (vx, vy, w), or of a twist (v, w), with numpy."""
    if u.size == 6:
        top = np.concatenate([hat(u[3:]), u[:3, None]], axis=1)
        return np.concatenate([top, np.zeros((1, 4), u.dtype)])
    zero = u[0] * 0
    return np.array([[zero, -u[2], u[1]], [u[2], zero, -u[0]], [-u[1], u[0], zero]])


def hat_planar(u):
    """Matrix (3, 3) of a planar twist (vx, vy, w), with numpy."""
    zero = u[0] * 0
    return np.array([[zero, -u[2], u[0]], [u[2], zero, u[1]], [zero, zero, zero]])


def body_derivative(t, y, inertia):
    """Euler's equations with the attitude, entries of R and then the rates."""
    rotation, rates = y[:9].reshape(3, 3), y[9:]
    return np.concatenate([(rotation @ hat(rates)).ravel(), np.cross(inertia * rates, rates) / inertia])


@cache
def free_body(case: int = 1) -> Problem:
    """A torque-free asymmetric body, (R, body rates): Jacobi's elliptic functions for rates and attitude."""
    data = BODIES["free"][case]
    made = free_rigid_body(inertia=data["inertia"], angular_velocity=data["angular_velocity_0"])
    final = flat((np.array(data["attitude"], float), np.array(data["angular_velocity"], float)))
    return Problem(made.action, made.field, made.initial, made.args, 0.0, data["t"], final)


@cache
def top() -> Problem:
    """An asymmetric heavy top, (R, body rates), without a closed form."""
    data = BODIES["tops"]["asymmetric"]
    made = heavy_top(
        inertia=data["inertia"],
        weight_moment=data["weight_moment"],
        up=data["up"],
        arm=data["arm"],
        angular_velocity=data["angular_velocity_0"],
    )
    rates = np.array(data["momentum"], float) / np.array(data["inertia"])
    final = flat((np.array(data["attitude"], float), rates))
    return Problem(made.action, made.field, made.initial, made.args, 0.0, data["t"], final)


def twist(xp, t, pose):
    """A twist that depends on time, attitude and position; bounded, so that the motion stays of size one."""
    x, y, z = pose[0, 3], pose[1, 3], pose[2, 3]
    return xp.stack(
        [
            0.7 + 0.4 * xp.sin(2 * t) - 0.3 * y,
            0.5 * xp.cos(t) * pose[0, 1] - 0.2 * x,
            -0.4 + 0.3 * pose[2, 2] * x - 0.1 * z,
            0.9 - 0.5 * pose[1, 2] + 0.3 * xp.sin(t),
            0.6 * xp.cos(1.5 * t) + 0.4 * z,
            0.8 * pose[2, 0] - 0.5 * xp.sin(t) * pose[1, 1],
        ]
    )


START_POSE = np.array([[0.36, 0.48, -0.8, 0.3], [-0.8, 0.6, 0.0, -0.5], [0.48, 0.64, 0.6, 0.4], [0.0, 0.0, 0.0, 1.0]])


@cache
def moving_frame(side: str = "right") -> Problem:
    """SE(3) with a twist of time and state: body twist, T' = T hat(V), or with "left" space twist, T' = hat(V) T."""
    t0, time = 0.3, 2.0

    def derivative(t, y):
        pose = y.reshape(4, 4)
        matrix = hat(twist(np, t, pose))
        return (pose @ matrix if side == "right" else matrix @ pose).ravel()

    action = {"right": actions.RightTranslation, "left": actions.LeftTranslation}[side](lgsim.SE3)
    return Problem(
        action,
        lambda t, y, args: twist(jnp, t, y),
        jnp.asarray(START_POSE),
        None,
        t0,
        time,
        extrapolate(derivative, START_POSE.ravel(), t0, t0 + time, 30).astype(float),
    )


def coupled_velocity(xp, t, rotation, position, planar):
    """Space angular velocity, velocity and planar body twist, each of all parts and of time."""
    return xp.stack(
        [
            1.0 - 0.4 * position[1] + 0.3 * planar[0, 1],
            0.5 * xp.sin(2 * t) + 0.3 * planar[0, 2],
            0.8 * rotation[2, 0] - 0.2 * position[0],
            rotation[0, 1] - 0.3 * position[2],
            0.4 * xp.cos(t) + 0.2 * planar[1, 2],
            0.5 * rotation[2, 2] * position[0],
            0.3 + 0.4 * rotation[1, 1],
            0.5 * position[0] - 0.3 * planar[0, 0],
            0.9 * xp.cos(t) - 0.6 * rotation[1, 2],
        ]
    )


@cache
def product() -> Problem:
    """SO(3) x R^3 x SE(2) with coupling: left translation, addition, right translation."""
    t0, time = -0.2, 2.0
    start = (START_POSE[:3, :3], np.array([0.4, -0.3, 0.6]), np.array([[0.8, -0.6, 0.2], [0.6, 0.8, -0.1], [0, 0, 1]]))

    def derivative(t, y):
        rotation, position, planar = y[:9].reshape(3, 3), y[9:12], y[12:].reshape(3, 3)
        u = coupled_velocity(np, t, rotation, position, planar)
        return np.concatenate([(hat(u[:3]) @ rotation).ravel(), u[3:6], (planar @ hat_planar(u[6:])).ravel()])

    return Problem(
        actions.Product(
            actions.LeftTranslation(lgsim.SO3), actions.Translation(3), actions.RightTranslation(lgsim.SE2)
        ),
        lambda t, y, args: coupled_velocity(jnp, t, *y),
        tuple(jnp.asarray(part) for part in start),
        None,
        t0,
        time,
        extrapolate(derivative, flat(start), t0, t0 + time, 30).astype(float),
    )


def pull(xp, t, up):
    """Gravity of the pendulum (up the z axis, g/l = 9.81) seen from a shaken pivot."""
    return 9.81 * up + xp.stack([2 * xp.sin(3 * t), 1.5 * xp.cos(2 * t), xp.sin(t)])


@cache
def pendulum() -> Problem:
    """A spherical pendulum with a moving pivot on the tangent sphere: q' = omega x q, omega' = pull(t) x q."""
    t0, time = 0.1, 0.7
    up = np.array([0.0, 0.0, 1.0])
    start = np.array([0.6, 0.0, 0.8, 0.4, 1.3, -0.3])

    def derivative(t, y):
        return np.concatenate([np.cross(y[3:], y[:3]), np.cross(pull(np, t, up.astype(y.dtype)), y[:3])])

    return Problem(
        actions.TangentSphere(),
        lambda t, y, args: jnp.concatenate([pull(jnp, t, args), y[3:]]),
        jnp.asarray(start),
        jnp.asarray(up),
        t0,
        time,
        extrapolate(derivative, start, t0, t0 + time, 30).astype(float),
    )


PROBLEMS: dict[str, Callable[[], Problem]] = {
    "free body": free_body,
    "heavy top": top,
    "SE(3)": moving_frame,
    "product": product,
    "pendulum": pendulum,
}


@cache
def table() -> Problem:
    """The problem on SO(3) of ``tests/data/method_orders.json``, whose errors were made elsewhere."""

    def field(t, y, args):
        return jnp.stack([1 + y[0, 1] + y[2, 2] * y[1, 0], 0.5 - y[1, 2] + y[0, 0] ** 2, y[2, 0] - 0.7 * y[1, 1] + 0.3])

    return Problem(
        actions.LeftTranslation(lgsim.SO3), field, jnp.eye(3), None, 0.0, 1.0, np.ravel(np.array(ORDERS["Y1"]))
    )


class OnlyMove(actions.Action):
    """An action that knows nothing but exponentials."""

    @property
    def dim(self):
        return 3

    def move(self, xi, y):
        return y + xi


def advance(method, problem: Problem):
    """A compiled run(steps, dt) -> (final state, norm of the last error estimate), for any number of steps."""

    def run(steps, dt):
        def step(k, carry):
            y, _ = carry
            y, error = method.step(
                problem.action, problem.field, problem.t0 + k.astype(dt.dtype) * dt, y, dt, problem.args
            )
            return y, jnp.zeros_like(dt) if error is None else jnp.sqrt(jnp.sum(error * error))

        return jax.lax.fori_loop(0, steps, step, (problem.initial, jnp.zeros_like(dt)))

    compiled = jax.jit(run)
    return lambda steps, dt: compiled(jnp.asarray(steps), jnp.asarray(dt, getattr(dt, "dtype", float)))
