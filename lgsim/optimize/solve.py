"""The front door: one call for every solver."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from lgsim.lie.action import Point
from lgsim.optimize.ilqr import ILQR
from lgsim.optimize.implicit_derivative import solution
from lgsim.optimize.problem import Problem
from lgsim.optimize.resumable import Progress, in_pieces
from lgsim.optimize.solver import Solution, Solver, start
from lgsim.xla.closures import opened


def solve(
    problem: Problem,
    us: Any = None,
    ys: Any = None,
    *,
    solver: Solver | None = None,
    progress: Progress | None = None,
    checkpoint: str | Path | None = None,
) -> Solution:
    """A locally optimal trajectory of a problem.

    Compiled once for each structure and horizon; new numbers (states, targets, models, bounds, tolerances) never
    compile again. A pure function of arrays: map it over anything with ``jax.vmap``, for example
    ``jax.vmap(lambda y0: solve(problem.replace(y0=y0)))(starts)``.

    Differentiable in both modes by the implicit function theorem: ts, ys, us and cost of the result have the first
    derivatives of the optimum by all numbers of the problem (start, targets, weights, models, bounds, args, what costs
    and dynamics close over), found from one linear-quadratic problem with all second derivatives, see
    ``implicit_derivative.solution``. The search is not differentiated; guesses and tolerances have no derivative.
    Controls at a bound move with the bound alone, and active constraints of an ``AugmentedLagrangian`` stay active. The
    derivative belongs to a converged solution: look at ``result.gradient``.

    Args:
        problem: What to solve.
        us: Guess of the controls (H, controls), by default zero; put within their bounds.
        ys: Guess of the states, each leaf with the leading axis H + 1; they need not follow the dynamics (multiple
            shooting). By default those that ``us`` gives; where these go astray, the goal at every node is better.
        solver: By default ``ILQR()``.
        progress: Called with each ``Iteration`` while the solver works, such as ``print``. What it raises goes through,
            but Ctrl-C (``KeyboardInterrupt``) ends the iterations and the best trajectory so far is returned.
        checkpoint: A file that keeps the solver's state every few seconds and at the end. If it exists, the solver
            goes on from it, to the same numbers that it finds without a break.

    Returns:
        The trajectory, its feedback, a record of the iterations, and a result code that is a sentence
        (``result.message``). Where something is not finite it says in which node and which quantity.

    Raises:
        TypeError: an argument is of the wrong kind.
        ValueError: shapes do not fit, constraints that the solver does not handle, or a cost that is not finite at the
            guess; or a checkpoint of another problem, guess or solver.
    """
    solver = ILQR() if solver is None else solver
    us, ys = start(problem, solver, us, ys)
    numbers = jax.tree.map(lambda x: jnp.asarray(x, problem.dtype) if isinstance(x, float) else x, solver)
    if progress is not None or checkpoint is not None:
        return in_pieces(problem, us, ys, numbers, progress, checkpoint)
    return _run(opened(problem), us, ys, numbers)


@eqx.filter_jit
def _run(problem: Problem, us: Array, ys: Point | None, solver: Solver) -> Solution:
    return solution(problem, us, ys, solver)
