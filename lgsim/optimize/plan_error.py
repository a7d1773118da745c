"""The error of the steps of a plan: its controls once more, by steps of half the length."""

from __future__ import annotations

from dataclasses import replace

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from lgsim._compile.xla import compiled, control_flow
from lgsim.integrators.step_error import StepError, Timeline, by_shorter_steps, verdict
from lgsim.integrators.step_grids import Gaps
from lgsim.optimize.dynamics import Machine
from lgsim.optimize.problem import Problem
from lgsim.optimize.solver import Solution
from lgsim.optimize.trajectory import machine_motion
from lgsim.simulation.step_checks.step_check import differences, motion_scale


def plan_error(problem: Problem, solution: Solution) -> StepError:
    """How far a machine is from the states of a solution, at its nodes, when its controls drive it.

    The controls are applied once more from the same start by the same integrator with half its step. What gaps the
    solver left between the states of the nodes is part of the error. It holds for the plan without its feedback.

    Args:
        problem: The problem; its dynamics are those of a machine, as for ``to_trajectory``.
        solution: The solution that ``solve`` returned for it; of one problem, not a batch.

    Raises:
        TypeError: the dynamics are not those of a machine.
        ValueError: the solution is a batch or belongs to another problem.
    """
    machine, ys, us = machine_motion(problem, solution)
    states = np.asarray(ys)
    scale = motion_scale(machine.model, states, machine.drive)
    line = Timeline.even(len(us), 1, abs(float(machine.own_step)))
    gap = differences(machine.action)(states[1:], np.asarray(_halved(machine, ys[0], us)))
    gaps = Gaps(np.arange(1, len(us) + 1), np.abs(np.asarray(gap, float)), True)
    method = getattr(machine, "method", None)
    claimed = 1 if method is None else method.order
    found = by_shorter_steps(line, scale, claimed, gaps, 2.0, None)
    error = verdict(line, scale, claimed, found, lambda: float("nan"))
    what = "take more steps" if method is None else "take more substeps"
    return error if error.resolved else replace(error, reason=f"{error.reason}; {what}")


@compiled
def _halved(machine: Machine, y0: Float[Array, " n"], us: Float[Array, "horizon nu"]) -> Float[Array, "horizon n"]:
    """The states at the nodes after the first one, by half the step."""
    half = eqx.tree_at(lambda machine: machine.dt, machine, machine.dt / 2)

    def step(y: Array, u: Array) -> tuple[Array, Array]:
        for _ in range(2):
            y = half.step(jnp.zeros((), y.dtype), y, u, None)
        return y, y

    return control_flow.scan(step, y0, us)[1]
