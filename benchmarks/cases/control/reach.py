"""An arm from rest to a pose at rest, within its torque limits."""

import jax
import jax.numpy as jnp
import numpy as np
import robots

import lgsim
from cases.control.task import COMMON, POSE, Task, common
from lgsim.optimize import (
    ILQR,
    AugmentedLagrangian,
    ControlEffort,
    EndConstraint,
    FramePose,
    JointVelocity,
    MultibodyDynamics,
    Problem,
)

START = np.array([0.0, -0.3, 0.0, -2.2, 0.0, 2.0, 0.8])
AIM = np.array([0.9, 0.5, -0.4, -1.3, 0.6, 1.4, 1.6])
"""Joint angles, rad; the target is the pose of the frame there, not the angles."""


def panda(quick: bool = False) -> Task:
    """Franka's Panda of example-robot-data with its fingers locked, in 1 s."""
    model = robots.robot("Panda", float)
    return _reach("Panda reach", model, "panda_hand_tcp", quick, 1)


def arm7(quick: bool = False) -> Task:
    """The arm that comes with lgsim, with the dry and viscous friction of its joints, in 1 s."""
    # friction slows the last joints within 2 ms, which explicit methods must resolve: steps of 4 to 5 ms
    return _reach("arm7 reach", lgsim.load_urdf(lgsim.data.arm7(), dtype=float), "flange", quick, 12 if quick else 5)


def _reach(name: str, model: lgsim.Model, frame: str, quick: bool, substeps: int) -> Task:
    horizon = 20 if quick else 50
    dynamics = MultibodyDynamics(model, 1.0 / horizon, substeps=substeps)
    start = jnp.asarray(START, model.dtype)
    still = lgsim.gravity_forces(model, start)
    there = lgsim.forward_kinematics(model, jnp.asarray(AIM, model.dtype))
    target = there[model.frame_names.index(frame)]
    arrive, rest = FramePose(model, frame, target), JointVelocity(model)
    problem = Problem(
        dynamics,
        dynamics.state(start),
        horizon=horizon,
        running=ControlEffort(dynamics.dt / model.effort_limit**2, still)
        + JointVelocity(model, dynamics.dt / model.velocity_limit**2),
        lower=-model.effort_limit,
        upper=model.effort_limit,
        constraints=[EndConstraint(arrive), EndConstraint(rest)],
    )

    def errors(result):
        end = result.ys[-1]
        gap, speed = (np.abs(np.asarray(r.end_residual(0.0, end, None))) for r in (arrive, rest))
        return {
            "position [m]": float(np.max(gap[:3])), "attitude [rad]": float(np.max(gap[3:])),
            "speed [rad/s]": float(np.max(speed)),
        } | common(problem, result)  # fmt: skip

    bounds = {"position [m]": POSE, "attitude [rad]": POSE, "speed [rad/s]": POSE} | COMMON
    guess = jax.tree.map(lambda x: jnp.broadcast_to(x, (horizon, model.nv)), still)
    return Task(name, problem, AugmentedLagrangian(ILQR()), errors, bounds, guess)
