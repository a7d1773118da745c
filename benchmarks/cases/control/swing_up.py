"""Swing-up of a pendulum and a cart-pole with motors too weak for a direct lift."""

import jax.numpy as jnp
import numpy as np

import lgsim
from cases.control.task import COMMON, POSE, Task, common, pose
from lgsim.optimize import (
    ILQR,
    AugmentedLagrangian,
    ControlEffort,
    EndConstraint,
    MultibodyDynamics,
    Problem,
    StateDistance,
)


def pendulum(quick: bool = False) -> Task:
    """A rod of 1 kg and 1 m, hanging at zero, to the top in 3 s; gravity needs 4.9 N m, the motor has 3 N m."""
    rod = {"mass": 1.0, "center": [0, 0, -0.5], "inertia": np.diag([1 / 12, 1 / 12, 1e-3])}
    model = (
        lgsim.ModelBuilder()
        .add_body("rod", "world", lgsim.joints.Continuous(), axis=[0, 1, 0], damping=0.05, **rod)
        .build()
    )
    return _swing_up("pendulum swing-up", MultibodyDynamics(model, 0.1 if quick else 0.03), 30 if quick else 100, 3.0)


def cart_pole(quick: bool = False) -> Task:
    """A cart of 1 kg and a pole of 0.3 kg and 1 m, hanging at zero, to its top at the start in 2.5 s."""
    model = (
        lgsim.ModelBuilder()
        .add_body("cart", "world", lgsim.joints.Prismatic(), axis=[1, 0, 0], mass=1.0, inertia=1e-2 * np.eye(3))
        .add_body(
            "pole", "cart", lgsim.joints.Continuous(), axis=[0, 1, 0], placement=pose(p=[0, -0.1, 0]),
            mass=0.3, center=[0, 0, -0.5], inertia=np.diag([0.025, 0.025, 1e-4]),
        )
        .build()
    )  # fmt: skip
    pushed = jnp.array([[1.0], [0.0]])
    dynamics = MultibodyDynamics(model, 0.0625 if quick else 0.025, selection=pushed)
    return _swing_up("cart-pole swing-up", dynamics, 40 if quick else 100, 15.0)


def _swing_up(name: str, dynamics: MultibodyDynamics, horizon: int, limit: float) -> Task:
    """The last joint from zero to 180 degrees, all else at zero and at rest."""
    model = dynamics.model
    goal = dynamics.state(jnp.zeros(model.nq).at[-1].set(jnp.pi))
    at_top = StateDistance(dynamics.action, goal)
    problem = Problem(
        dynamics,
        dynamics.state(),
        horizon=horizon,
        running=ControlEffort(0.1 * dynamics.dt),
        lower=-limit,
        upper=limit,
        constraints=[EndConstraint(at_top)],
    )

    def errors(result):
        end = np.abs(np.asarray(result.ys[-1] - goal))
        nq = model.nq
        return {"pose [rad, m]": float(np.max(end[:nq])), "speed [rad/s, m/s]": float(np.max(end[nq:]))} | common(
            problem, result
        )

    solver = AugmentedLagrangian(ILQR(exact_hessian=True))
    return Task(name, problem, solver, errors, {"pose [rad, m]": POSE, "speed [rad/s, m/s]": POSE} | COMMON)
