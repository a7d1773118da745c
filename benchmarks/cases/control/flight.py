"""A quadrotor, one rigid body on SE(3) with four nonnegative thrusts: a flip, and a landing on a wall."""

import jax.numpy as jnp
import numpy as np

import lgsim
from cases.control.task import COMMON, POSE, Task, common, quaternion
from lgsim.optimize import (
    ILQR,
    AugmentedLagrangian,
    ControlEffort,
    EndConstraint,
    JointVelocity,
    MultibodyDynamics,
    Problem,
    StateDistance,
)

MASS, ARM, DRAG, LIMIT = 0.5, 0.17, 0.016, 4.0
"""kg; m from the center to a rotor; torque about the rotor's axis by its thrust, m; N of one rotor."""


def quadrotor(dt: float) -> MultibodyDynamics:
    """Rotors in front, left, behind and right; those in front and behind rotate in the opposite direction."""
    model = (
        lgsim.ModelBuilder()
        .add_body("body", "world", lgsim.joints.Free(), mass=MASS, inertia=np.diag([2.3e-3, 2.3e-3, 4e-3]))
        .build()
    )
    up = np.array([[0, 0, 1]] * 4).T
    about = np.array([[0, -ARM, -DRAG], [ARM, 0, DRAG], [0, ARM, -DRAG], [-ARM, 0, DRAG]]).T
    return MultibodyDynamics(model, dt, selection=np.vstack([up, about]))


def flip(quick: bool = False) -> Task:
    """A full rotation about the forward axis within 0.9 s, from hover to hover at the same position.

    The costs track the angular velocity of the flip, which also selects its direction.
    """
    horizon, time, start, end = (30 if quick else 60), 0.9, 0.2, 0.7
    dynamics = quadrotor(time / horizon)

    def turning(t, y, u, args):
        wanted = jnp.where((t > start) & (t < end), 2 * jnp.pi / (end - start), 0.0)
        return 0.05 * dynamics.dt * (y[10] - wanted) ** 2

    return _flight("quadrotor flip", dynamics, horizon, dynamics.state(), turning, 1)


def perch(quick: bool = False) -> Task:
    """From hover to rest on a wall 1.5 m ahead and 0.5 m up, with the belly to the wall, within 1.2 s."""
    horizon = 30 if quick else 60
    dynamics = quadrotor(1.2 / horizon)
    at_wall = np.concatenate([[1.5, 0, 0.5], quaternion([0, 1, 0], -np.pi / 2)])
    return _flight("quadrotor perch", dynamics, horizon, dynamics.state(at_wall), None, 0)


def _flight(name, dynamics, horizon, goal, more, turns) -> Task:
    model, hover = dynamics.model, MASS * 9.81 / 4
    running = ControlEffort(0.1 * dynamics.dt, hover) + JointVelocity(model, 1e-3 * dynamics.dt)
    arrive = StateDistance(dynamics.action, goal)
    problem = Problem(
        dynamics,
        dynamics.state(),
        horizon=horizon,
        running=running if more is None else running + more,
        lower=0.0,
        upper=LIMIT,
        constraints=[EndConstraint(arrive)],
    )

    def errors(result):
        end = np.abs(np.asarray(arrive.end_residual(0.0, result.ys[-1], None)))
        return {
            "position [m]": float(np.max(end[:3])), "attitude [rad]": float(np.max(end[3:6])),
            "speed [m/s, rad/s]": float(np.max(end[6:])), "missing turns": float(abs(turned(result) - turns)),
        } | common(problem, result)  # fmt: skip

    def turned(result):
        """Rotation angle of the body about its forward axis."""
        return np.sum(np.asarray(result.ys[1:, 10])) * float(dynamics.dt) / (2 * np.pi)

    bounds = {"position [m]": POSE, "attitude [rad]": POSE, "speed [m/s, rad/s]": POSE, "missing turns": 0.25} | COMMON
    guess = jnp.full((horizon, 4), hover)
    return Task(name, problem, AugmentedLagrangian(ILQR(max_iterations=30)), errors, bounds, guess)
