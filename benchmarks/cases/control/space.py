"""Free fall: a satellite with reaction wheels, and three bodies that reorient without wheels."""

import jax.numpy as jnp
import numpy as np
from systems.three_body import chain

import lgsim
from cases.control.task import COMMON, POSE, Task, common
from lgsim.optimize import (
    ILQR,
    AugmentedLagrangian,
    ControlEffort,
    EndConstraint,
    FrameAttitude,
    MultibodyDynamics,
    Problem,
)

SLEW = np.deg2rad(220.0)
AXIS = np.array([1.0, -0.6, 0.8]) / np.linalg.norm([1.0, -0.6, 0.8])
MOMENTUM = 1e-8
"""Bound of the drift of the total momentum, kg m/s and kg m^2/s."""


def satellite(quick: bool = False) -> Task:
    """A bus of 60 kg with three wheels along its axes, from rest to rest by 220 degrees about a skew axis in 60 s.

    The shorter rotation to the final attitude is 140 degrees; the costs track the rate of the longer one.
    """
    builder = lgsim.ModelBuilder(gravity=(0.0, 0.0, 0.0))
    builder.add_body("bus", "world", lgsim.joints.Spherical(), mass=60.0, inertia=np.diag([4.0, 5.0, 6.0]))
    for i, name in enumerate("xyz"):
        axis = np.eye(3)[i]
        inertia = 0.01 * (np.eye(3) + np.outer(axis, axis))
        builder.add_body(f"wheel {name}", "bus", lgsim.joints.Continuous(), axis=axis, mass=2.0, inertia=inertia)
    model = builder.build()
    horizon, time = (20 if quick else 60), 60.0
    dynamics = MultibodyDynamics(model, time / horizon, selection=np.vstack([np.zeros((3, 3)), np.eye(3)]))

    def long_way(t, y, u, args):
        speed = 2 * SLEW / time * jnp.sin(jnp.pi * t / time) ** 2
        gap = y[model.nq : model.nq + 3] - speed * jnp.asarray(AXIS)
        return 300 * dynamics.dt * jnp.sum(gap**2)

    arrive = FrameAttitude(model, "bus", lgsim.so3.exp(jnp.asarray(SLEW * AXIS)))
    problem = Problem(
        dynamics,
        dynamics.state(),
        horizon=horizon,
        running=ControlEffort(dynamics.dt) + long_way,
        lower=-0.3,
        upper=0.3,
        constraints=[EndConstraint(arrive), EndConstraint(_base_rate)],
    )

    def errors(result):
        attitude = np.asarray(arrive.end_residual(0.0, result.ys[-1], None))
        rates = np.asarray(result.ys[:, model.nq : model.nq + 3])
        return {
            "attitude [rad]": float(np.max(np.abs(attitude))), "rate [rad/s]": float(np.max(np.abs(rates[-1]))),
            "remaining rotation [rad]": float(abs(np.sum(rates @ AXIS) * float(dynamics.dt) - SLEW)),
        } | common(problem, result)  # fmt: skip

    bounds = {"attitude [rad]": POSE, "rate [rad/s]": POSE, "remaining rotation [rad]": 0.2} | COMMON
    return Task("satellite slew", problem, AugmentedLagrangian(ILQR(max_iterations=100)), errors, bounds)


def falling_cat(quick: bool = False) -> Task:
    """The three bodies of Park and Chung, by their two joints only: the base rotates by 60 degrees and comes to rest.

    Start and end have zero momentum; the path of the joints rotates the base. 20 steps between the nodes conserve
    the momentum; a short horizon takes one.
    """
    model = chain(float)
    time, horizon, substeps = (12.0, 40, 1) if quick else (20.0, 60, 20)
    joints = np.vstack([np.zeros((6, 2)), np.eye(2)])
    dynamics = MultibodyDynamics(model, time / horizon, selection=joints, substeps=substeps)
    arrive = FrameAttitude(model, "base", lgsim.so3.exp(jnp.asarray(np.deg2rad(60) * np.array([0.6, 0.0, 0.8]))))
    problem = Problem(
        dynamics,
        dynamics.state(),
        horizon=horizon,
        running=ControlEffort(1e-3 * dynamics.dt),
        constraints=[EndConstraint(arrive), EndConstraint(_joint_rates)],
    )

    def errors(result):
        attitude = np.asarray(arrive.end_residual(0.0, result.ys[-1], None))
        return {
            "attitude [rad]": float(np.max(np.abs(attitude))),
            "joint rates [rad/s]": float(np.max(np.abs(result.ys[-1, -2:]))),
            "momentum": momentum_drift(problem, result, 1),
        } | common(problem, result)

    bounds = {"attitude [rad]": POSE, "joint rates [rad/s]": POSE} | COMMON
    bounds |= {} if quick else {"momentum": MOMENTUM}
    solver = AugmentedLagrangian(ILQR(max_iterations=100, exact_hessian=True))
    return Task("falling cat", problem, solver, errors, bounds)


def momentum_drift(problem: Problem, result, substeps: int) -> float:
    """Largest total momentum about the origin of the world, with smaller steps and the same controls."""
    machine = problem.dynamics
    model, pieces = machine.model, machine.substeps * substeps
    torques = jnp.repeat(result.us @ machine.selection.T, pieces, axis=0)
    y0 = problem.y0
    motion = lgsim.rollout(
        model, y0[: model.nq], y0[model.nq :], dt=machine.dt / pieces, steps=len(torques), torques=torques,
        method=machine.method, save_every=pieces,
    )  # fmt: skip
    time, q, v = (np.asarray(x) for x in (motion.time, motion.q, motion.v))
    return float(np.max(np.abs(lgsim.Trajectory(model, time, q, v, 0 * v).momentum)))


def _base_rate(t, y, args):
    return y[7:10]


def _joint_rates(t, y, args):
    return y[-2:]
