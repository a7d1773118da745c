"""A quadruped in the air: it lands in a given posture, with its body upright, by joint torques only."""

import jax.numpy as jnp
import numpy as np
import robots

import lgsim
from cases.control.task import COMMON, POSE, Task, common, quaternion
from lgsim.optimize import (
    ILQR,
    AugmentedLagrangian,
    ControlEffort,
    EndConstraint,
    FrameAttitude,
    JointVelocity,
    MultibodyDynamics,
    Problem,
)

STAND = np.array([-0.1, 0.7, -1.0, 0.1, 0.7, -1.0, -0.1, -0.7, 1.0, 0.1, -0.7, 1.0])
"""Joint angles of all legs (hip, thigh, shank), rad."""
LIMIT = 40.0
"""N m, half of what the drives of ANYmal give."""


def quadruped(quick: bool = False) -> Task:
    """ANYmal, thrown up with a pitch of 20 degrees and a pitch rate, lands upright in its posture 0.4 s later."""
    model = robots.robot("ANYmal", float)
    horizon, time = (20 if quick else 40), 0.4
    selection = np.vstack([np.zeros((6, 12)), np.eye(12)])
    dynamics = MultibodyDynamics(model, time / horizon, lgsim.MK2 if quick else lgsim.MK4, selection)
    tuck = STAND + np.array([0.2, 0.4, -0.6, -0.2, 0.4, -0.6, 0.2, -0.4, 0.6, -0.2, -0.4, 0.6])
    start = np.concatenate([[0, 0, 0.6], quaternion([0, 1, 0], np.deg2rad(20)), tuck])
    thrown = np.zeros(18)
    thrown[2], thrown[4] = 1.9, -0.6
    upright = FrameAttitude(model, "base", jnp.eye(3))
    problem = Problem(
        dynamics,
        dynamics.state(start, thrown),
        horizon=horizon,
        running=ControlEffort(dynamics.dt / LIMIT**2) + JointVelocity(model, 1e-3 * dynamics.dt),
        lower=-LIMIT,
        upper=LIMIT,
        constraints=[EndConstraint(upright), EndConstraint(_landed)],
    )

    def errors(result):
        end = result.ys[-1]
        return {
            "attitude [rad]": _largest(upright.end_residual(0.0, end, None)),
            "posture [rad]": _largest(end[7:19] - STAND),
            "joint speed [rad/s]": _largest(end[model.nq + 6 :]),
        } | common(problem, result)  # fmt: skip

    bounds = {"attitude [rad]": POSE, "posture [rad]": POSE, "joint speed [rad/s]": POSE} | COMMON
    return Task("quadruped in flight", problem, AugmentedLagrangian(ILQR(max_iterations=30)), errors, bounds)


def _landed(t, y, args):
    """All legs in their posture and at rest; q and v of ANYmal have 7 + 12 and 6 + 12 components."""
    return jnp.concatenate([y[7:19] - jnp.asarray(STAND), y[25:]])


def _largest(x) -> float:
    return float(np.max(np.abs(np.asarray(x))))
