"""A Panda whose hand follows a circle, at 50 Hz over 25 nodes, with and without an active limit of its first joint."""

import time
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import robots
from jax import Array

import lgsim
from lgsim.optimize import (
    ControlEffort,
    FramePath,
    MultibodyDynamics,
    Problem,
    StateBounds,
    StateDistance,
    joint_limits,
)

from .problems import PANDA_TORQUES, bare

DT, NODES, HAND = 0.02, 25, "panda_hand"
PERIOD, RADIUS = 3.0, 0.15
"""Of the circle, s and m."""
LOWEST = -0.05
"""The lower bound of the first joint, rad, which goes to -0.126 rad without one."""


@dataclass
class Tracking:
    """The problem, the guess of its controls, and the hand's path: times (points,), places (points, 3)."""

    problem: Problem
    us: Array
    times: np.ndarray
    points: np.ndarray


@dataclass
class Run:
    """Result of a closed loop.

    Attributes:
        seconds: CPU time of each step.
        error: Largest distance of the hand from its path, m.
        beyond: Largest violation of the limit of the first joint, rad.
        active: Share of the steps with the joint at its bound.
        compiling: Seconds of the first call.
    """

    seconds: np.ndarray
    error: float
    beyond: float
    active: float
    compiling: float


def tracking(bounded):
    """Joint and velocity limits of the robot, with a smaller range of the first joint, or none."""
    model = bare(robots.robot("Panda", "float64"))
    q0 = jnp.array([0.0, -0.8, 0.0, -2.3, 0.0, 1.6, 0.8])
    start = np.asarray(hand(model, q0))
    times = np.linspace(0, 4 * PERIOD, 601)
    angle, size = 2 * np.pi * times / PERIOD, RADIUS * np.minimum(times / PERIOD, 1)[:, None] ** 2
    points = start + size * np.stack([0 * angle, np.sin(angle), 1 - np.cos(angle)], axis=1)
    dynamics, x0 = MultibodyDynamics(model, DT), jnp.concatenate([q0, jnp.zeros(7)])
    held = lgsim.gravity_forces(model, q0)
    path = FramePath(model, HAND, jnp.asarray(times), jnp.asarray(points), 100.0)
    posture = StateDistance(dynamics.action, x0, jnp.full(14, 0.01))
    limits = joint_limits(model)
    lower = limits.lower.at[0].set(LOWEST)
    bounds = [StateBounds(lower, limits.upper, limits.coordinates)] if bounded else []
    torques = jnp.array(PANDA_TORQUES)
    problem = Problem(
        dynamics, x0, horizon=NODES, running=ControlEffort(1e-5, held) + posture + path, terminal=path + posture,
        lower=-torques, upper=torques, constraints=bounds,
    )  # fmt: skip
    return Tracking(problem, jnp.tile(held, (NODES, 1)), times, points)


def hand(model, q):
    """Position of the hand, m."""
    return lgsim.forward_kinematics(model, q)[model.frame_names.index(HAND), :3, 3]


def follow(task, controller, steps):
    """The closed loop with the model as the robot, one call per step."""
    problem = task.problem
    model, dynamics = problem.dynamics.model, problem.dynamics
    move = jax.jit(lambda y, u: dynamics.step(0.0, y, u, None))
    place = jax.jit(lambda y: hand(model, y[:7]))
    y, plan = problem.y0, controller.plan(us=task.us)
    start = time.perf_counter()
    jax.block_until_ready(controller.step(plan, y))
    compiling = time.perf_counter() - start
    seconds, errors, angles = [], [], []
    for _ in range(steps):
        start = time.process_time()
        u, plan = jax.block_until_ready(controller.step(plan, y))
        seconds.append(time.process_time() - start)
        y = move(y, u)
        wanted = [np.interp(float(plan.t), task.times, task.points[:, i]) for i in range(3)]
        errors.append(float(jnp.linalg.norm(place(y) - jnp.asarray(wanted))))
        angles.append(float(y[0]))
    at_bound = np.mean(np.array(angles) < LOWEST + 1e-4)
    return Run(np.array(seconds), max(errors), LOWEST - min(angles), float(at_bound), compiling)
