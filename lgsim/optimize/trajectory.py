"""Conversion of a solution to a ``Trajectory`` for plots, 3D animation and files."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from lgsim.optimize.dynamics import Dynamics, Machine, RateControlledDynamics
from lgsim.optimize.problem import Problem
from lgsim.optimize.solver import Solution
from lgsim.optimize.unknowns.extended_problem import settled_problem
from lgsim.simulation.equations_of_motion import actuator_part, drives, split_state
from lgsim.simulation.trajectory import Trajectory
from lgsim.support.packages import own_version


def to_trajectory(problem: Problem, solution: Solution) -> Trajectory:
    """Convert a solution to a motion of the model, one state for each node, with the joint torques of its drives.

    The last node, which has no control, repeats that of the step before it. ``trajectory.result`` is the solver's
    message, so that a failed solution is marked as such.

    Args:
        problem: The problem; its dynamics are ``MultibodyDynamics`` or ``SymplecticEulerDynamics``, or
            ``RateControlledDynamics`` around them.
        solution: The solution of ``solve``; of one problem, not a batch.

    Raises:
        TypeError: the dynamics are not those of a model.
        ValueError: the solution is a batch or belongs to another problem.
    """
    machine, ys, us = machine_motion(problem, solution)
    u = jnp.concatenate([us, us[-1:]])
    tau = u if machine.selection is None else u @ machine.selection.T
    model = machine.model
    q, v = split_state(model, ys)
    forces = drives(model, machine.drive, tau, solution.ts, q, v, actuator_part(model, ys))
    time, q, v, forces = (np.asarray(x) for x in (solution.ts, q, v, forces))
    name, step = machine.method_name, float(machine.own_step)
    return Trajectory(model, time, q, v, forces, name, step, solution.message, own_version())


def machine_motion(
    problem: Problem, solution: Solution
) -> tuple[Machine, Float[Array, "nodes n"], Float[Array, "nodes-1 nu"]]:
    """The model's dynamics of a problem, the states of a solution at its nodes, the controls between them.

    Raises:
        TypeError: the dynamics are not those of a model.
        ValueError: the solution is a batch or belongs to another problem.
    """
    if problem.free:
        problem = settled_problem(problem, solution)
    machine, ys, us = _of_machine(problem.dynamics, solution.ys, solution.us)
    expected = (problem.horizon + 1, machine.action.length)
    if ys.shape != expected:
        raise ValueError(
            f"solution: expected states of shape {expected}, got {ys.shape}; select one of a batch with"
            " jax.tree.map(lambda x: x[i], solution)"
        )
    return machine, ys, us


def _of_machine(
    dynamics: Dynamics, ys: Any, us: Float[Array, "... nu"]
) -> tuple[Machine, Float[Array, "... n"], Float[Array, "... nu"]]:
    """The model's dynamics, its states (H + 1, n), its controls (H, nu); leading axes may be a batch."""
    if isinstance(dynamics, RateControlledDynamics):
        inner, controls = ys
        # a step is driven by the control at its end
        return _of_machine(dynamics.inner, inner, controls[..., 1:, :])
    if not isinstance(dynamics, Machine):
        raise TypeError(
            "problem: expected MultibodyDynamics or SymplecticEulerDynamics, alone or in RateControlledDynamics, got"
            f" {type(dynamics).__name__}, whose states are not a motion of a model; use solution.ts, ys and us"
        )
    return dynamics, ys, us
