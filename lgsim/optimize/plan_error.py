"""Integration error of a plan: its controls simulated again with half the step."""

from __future__ import annotations

from dataclasses import replace

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from lgsim._compile.xla import compiled, control_flow
from lgsim.optimize.dynamics import Machine
from lgsim.optimize.problem import Problem
from lgsim.optimize.solver import Solution
from lgsim.optimize.trajectory import machine_motion
from lgsim.simulation.accuracy.fixed_step_error import known_motion
from lgsim.simulation.accuracy.step_grids import Gaps
from lgsim.simulation.accuracy.trajectory_error import StepError, Timeline, by_shorter_steps, verdict


def plan_error(problem: Problem, solution: Solution) -> StepError:
    """Estimated error of a solution's states at its nodes, from its controls simulated with half the step.

    The controls are applied again from the same initial state by the same integrator with half its step. Gaps that the
    solver left between the states of the nodes are part of the error. The estimate is for the plan without its
    feedback.

    Args:
        problem: The problem; its dynamics are those of a model, as in ``to_trajectory``.
        solution: The solution of ``solve``; of one problem, not a batch.

    Raises:
        TypeError: the dynamics are not those of a model.
        ValueError: the solution is a batch or belongs to another problem.
    """
    machine, ys, us = machine_motion(problem, solution)
    method = getattr(machine, "method", None)
    line = Timeline.even(len(us), 1, abs(float(machine.own_step)))
    order = 1 if method is None else method.order
    motion = known_motion(machine.model, machine.drive, np.asarray(ys), line, order)
    gap = motion.difference(motion.states[1:], np.asarray(_halved(machine, ys[0], us)))
    gaps = Gaps(np.arange(1, len(us) + 1), np.abs(np.asarray(gap, float)), True)
    error = verdict(motion, by_shorter_steps(motion, gaps, 2.0))
    what = "increase the number of steps" if method is None else "increase substeps"
    return error if error.resolved else replace(error, reason=f"{error.reason}; {what}")


@compiled
def _halved(machine: Machine, y0: Float[Array, " n"], us: Float[Array, "horizon nu"]) -> Float[Array, "horizon n"]:
    """The states at the nodes after the first one, with half the step."""
    half = eqx.tree_at(lambda machine: machine.dt, machine, machine.dt / 2)

    def step(y: Array, u: Array) -> tuple[Array, Array]:
        for _ in range(2):
            y = half.step(jnp.zeros((), y.dtype), y, u, None)
        return y, y

    return control_flow.scan(step, y0, us)[1]
