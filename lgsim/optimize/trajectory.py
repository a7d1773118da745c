"""The solution of a problem of a machine as a ``Trajectory``: to plot, to look at in 3D, to save."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from lgsim.optimize.dynamics import Dynamics, Machine, RateControlledDynamics
from lgsim.optimize.problem import Problem
from lgsim.optimize.results import Result
from lgsim.simulation.rollout import split_state
from lgsim.simulation.simulate import drives
from lgsim.simulation.trajectory import Trajectory
from lgsim.support.version import own_version


def to_trajectory(problem: Problem, result: Result) -> Trajectory:
    """The motion that a solver found for a machine, one state for each node, with the forces of its drives.

    The last node, which has no control, keeps that of the step before it. ``trajectory.result`` is the solver's
    message, so that a motion which is no solution says so.

    Args:
        problem: Its dynamics are ``MachineDynamics`` or ``EulerDynamics``, or ``RateControlled`` around them.
        result: What ``solve`` returned for it; one problem, not a batch.

    Raises:
        TypeError: the dynamics are not those of a machine.
        ValueError: the result is a batch or belongs to another problem.
    """
    machine, ys, us = _of_machine(problem.dynamics, result.ys, result.us)
    wanted = (problem.horizon + 1, machine.action.length)
    if ys.shape != wanted:
        raise ValueError(
            f"result: expected states of shape {wanted}, got {ys.shape}; take one of a batch by "
            "jax.tree.map(lambda x: x[i], result)"
        )
    u = jnp.concatenate([us, us[-1:]])
    tau = u if machine.selection is None else u @ machine.selection.T
    model = machine.model
    q, v, z = split_state(model, ys)
    forces = drives(model, None, tau, result.ts, q, v, z)
    time, q, v, forces = (np.asarray(x) for x in (result.ts, q, v, forces))
    name, step = machine.method_name, float(machine.own_step)
    return Trajectory(model, time, q, v, forces, name, step, result.message, own_version())


def _of_machine(dynamics: Dynamics, ys: Any, us: Array) -> tuple[Machine, Array, Array]:
    """(the machine's dynamics, its states (H + 1, ...), its controls (H, ...))."""
    if isinstance(dynamics, RateControlledDynamics):
        inner, held = ys
        # a step is driven by the control at its end
        return _of_machine(dynamics.inner, inner, held[..., 1:, :])
    if not isinstance(dynamics, Machine):
        raise TypeError(
            "problem: expected MachineDynamics or EulerDynamics, alone or in RateControlled, got "
            f"{type(dynamics).__name__}, whose states are no motion of a machine; read result.ts, ys and us"
        )
    return dynamics, ys, us
