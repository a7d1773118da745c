"""The front door: one call for every solver, in one go, or in chunks that show their iterations and are kept."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int

from lgsim._compile.xla import compiled, opened, strongly_typed
from lgsim.lie.action import Point
from lgsim.optimize.augmented_lagrangian import AugmentedLagrangian
from lgsim.optimize.ilqr import ILQR
from lgsim.optimize.implicit_derivative import solution
from lgsim.optimize.neighbor import neighbor, neighbor_along_constraints
from lgsim.optimize.problem import Problem
from lgsim.optimize.solver import RESULTS, IterativeSolver, Solution, Solver, start
from lgsim.optimize.unknowns.extended_problem import contracted, extended, extended_guess, is_extended
from lgsim.optimize.unknowns.extension import phases_of
from lgsim.support.check import is_traced
from lgsim.support.checkpoint import Checkpoint
from lgsim.support.chunks import paced, run_in_chunks
from lgsim.support.fingerprint import fingerprint


class Iteration(NamedTuple):
    """One row of the ``History`` of a solver, as plain numbers.

    Attributes:
        number: Number of the iteration, from 1.
        cost: Cost of the trajectory at the start of the iteration.
        gradient: Largest entry of the cost's gradient by the controls that the bounds leave free.
        feasibility: Largest gap of the trajectory; in outer iterations the largest violation of the constraints.
        step: Length of the step taken, 0 if none was; in outer iterations the number of inner iterations.
        regularization: Number added to the Hessian of the controls; in outer iterations the penalty.
    """

    number: int
    cost: float
    gradient: float
    feasibility: float
    step: float
    regularization: float


Progress = Callable[[Iteration], Any]
"""``progress(iteration)`` is called after each iteration, or after several at once for each of them."""


def solve(
    problem: Problem,
    us: Any = None,
    ys: Any = None,
    *,
    solver: Solver | None = None,
    progress: Progress | None = None,
    checkpoint: str | Path | None = None,
    nan_derivatives: bool = False,
) -> Solution:
    """A locally optimal trajectory of a problem.

    Compiled once for each structure and horizon; new numbers (states, targets, models, bounds, tolerances) never
    compile again. A pure function of arrays: map it over anything with ``jax.vmap``, for example
    ``jax.vmap(lambda y0: solve(problem.replace(y0=y0)))(starts)``.

    Where ``ILQR`` stays at its guess and nearby controls cost less, or ``AugmentedLagrangian`` ends at a saddle of the
    Lagrangian along the active constraints, the search restarts from there; not inside of ``jit`` and ``vmap``.

    Differentiable in both modes by the implicit function theorem: ts, ys, us and cost of the result have the first
    derivatives of the optimum by all numbers of the problem (start, targets, weights, models, bounds, args, what costs
    and dynamics close over), found from one linear-quadratic problem with all second derivatives, see
    ``implicit_derivative.solution``. The search is not differentiated; guesses and tolerances have no derivative.
    Controls at a bound move with the bound alone, and active constraints of an ``AugmentedLagrangian`` stay active.
    Derivatives of a trajectory that is no optimum are wrong: computing them gives a ``RuntimeWarning``, once for a
    batch, also inside of ``jit``; or they are NaN, see ``nan_derivatives``.

    Args:
        problem: What to solve.
        us: Guess of the controls (H, controls), by default zero; put within their bounds.
        ys: Guess of the states, each leaf with the leading axis H + 1; they need not follow the dynamics (multiple
            shooting). By default those that ``us`` gives; where these go astray, the goal at every node is better.
        solver: By default ``ILQR()``, with constraints ``AugmentedLagrangian()``.
        progress: Called with each ``Iteration`` while the solver works, such as ``print``. What it raises goes through,
            but Ctrl-C (``KeyboardInterrupt``) ends the iterations and the best trajectory so far is returned.
        checkpoint: A file that keeps the solver's state every few seconds and at the end. If it exists, the solver
            goes on from it, to the same numbers that it finds without a break.

            With progress or checkpoint the iterations are compiled apart from the rest, and the numbers agree with
            those of one program to rounding; neither can be taken inside of ``jit`` and ``vmap``.
        nan_derivatives: Make the derivatives of ts, ys, us and cost NaN where the trajectory is no optimum, in a batch
            those of each entry by itself, in place of a warning.

    Returns:
        The trajectory, its feedback, a record of the iterations, and a result code that is a sentence
        (``result.message``). Where something is not finite it says in which node and which quantity.

    Raises:
        TypeError: an argument is of the wrong kind; or progress or checkpoint is given, and the solver runs in one
            piece or an argument is traced.
        ValueError: shapes do not fit, constraints that the solver does not handle, or a cost that is not finite at the
            guess.
        CheckpointError: the checkpoint is of another problem, guess or solver, or no file can be written there.
        OSError: the checkpoint cannot be written, for example because the disk is full.
    """
    if solver is None:
        solver = AugmentedLagrangian() if isinstance(problem, Problem) and _is_constrained(problem) else ILQR()
    if isinstance(problem, Problem) and is_extended(problem):
        # the guess is looked at in the words of the problem itself
        us, ys = start(eqx.tree_at(lambda p: p.free, problem, ()), solver, us, ys)
        guess = extended_guess(problem, us, ys)
        found = solve(
            extended(problem),
            *guess,
            solver=solver,
            progress=progress,
            checkpoint=checkpoint,
            nan_derivatives=nan_derivatives,
        )
        return contracted(problem, found)
    us, ys = start(problem, solver, us, ys)
    numbers = jax.tree.map(lambda x: jnp.asarray(x, problem.dtype) if isinstance(x, float) else x, solver)
    if progress is not None or checkpoint is not None:
        found = _run_in_chunks(problem, us, ys, numbers, progress, checkpoint)
    else:
        found = _run(opened(problem), us, ys, numbers, bool(nan_derivatives))
    if is_traced(found):
        return found
    if isinstance(solver, AugmentedLagrangian):
        return _off_constrained_saddle(problem, found, numbers, bool(nan_derivatives))
    return _off_saddle(problem, found, numbers, bool(nan_derivatives))


def _off_saddle(problem: Problem, found: Solution, solver: Solver, nan_derivatives: bool) -> Solution:
    """The solution, or where it is the guess and no minimum the one from controls nearby."""
    if not _stayed(solver, found):
        return found
    near, lower = neighbor(opened(problem), found.us, found.cost)
    if not lower and found.result == RESULTS.successful:
        return found
    other = _run(opened(problem), near, None, solver, nan_derivatives)
    return other if other.cost < found.cost else found


def _off_constrained_saddle(
    problem: Problem, found: Solution, solver: AugmentedLagrangian, nan_derivatives: bool
) -> Solution:
    """The solution, or where the Lagrangian is no minimum along the active constraints the one from nearby."""
    penalties = found.multipliers
    if penalties is None or found.result != RESULTS.successful or not any(c.curved for c in problem.constraints):
        return found
    near, lower = neighbor_along_constraints(opened(problem), found.ys, found.us, penalties)
    if not lower:
        return found
    other = _run(opened(problem), near, None, solver, nan_derivatives)
    if other.result == RESULTS.successful and other.cost < found.cost:
        return other
    return eqx.tree_at(lambda s: s.result, found, RESULTS.saddle)


def _is_constrained(problem: Problem) -> bool:
    """Whether a problem or a phase of it has constraints beyond the bounds of the controls."""
    return bool(problem.constraints) or any(phase.constraints for phase in phases_of(problem).phases)


def _stayed(solver: Solver, found: Solution) -> bool:
    """Whether a solver found no slope at its guess."""
    if not isinstance(solver, ILQR) or found.iterations.ndim or np.any(found.history.step):
        return False
    return bool((found.result == RESULTS.successful) | (found.result == RESULTS.saddle))


def _run_in_chunks(
    problem: Problem,
    us: Float[Array, "horizon nu"],
    ys: Point | None,
    solver: Solver,
    progress: Progress | None,
    path: str | Path | None,
) -> Solution:
    """What ``solve`` does if it is given ``progress`` or ``checkpoint``."""
    if not isinstance(solver, IterativeSolver):
        raise TypeError(
            f"solver: {type(solver).__name__} runs in one piece; without progress and checkpoint it can be taken"
        )
    if is_traced(problem, us, ys, solver):
        raise TypeError("progress, checkpoint: expected a problem of numbers; inside of jit and vmap leave both out")
    given, kept = (problem, us, ys, solver), None
    if path is not None:
        kept = Checkpoint(path, fingerprint(*given), owner="problem, guess or solver")
    state, interrupted = run_in_chunks(
        _begin(problem, us, ys, solver),
        paced(lambda state, iterations: _advance(problem, state, solver, jnp.array(iterations))),
        lambda state: bool(state.done) or int(state.i) >= solver.turns,
        progress=None if progress is None else _rows_for(progress),
        checkpoint=kept,
    )
    result = _finish(problem, state, solver)
    return eqx.tree_at(lambda r: r.result, result, RESULTS.interrupted) if interrupted else result


def _rows_for(progress: Progress) -> Callable[[Any, Any], None]:
    """The progress of ``run_in_chunks`` that shows each iteration between two states."""

    def show(before: Any, after: Any) -> None:
        first, stop = int(before.i), int(after.i)
        columns = [np.asarray(getattr(after.history, name)[first:stop]).tolist() for name in Iteration._fields[1:]]
        for i, numbers in enumerate(zip(*columns, strict=True)):
            progress(Iteration(first + i + 1, *numbers))

    return show


@compiled
def _run(
    problem: Problem, us: Float[Array, "horizon nu"], ys: Point | None, solver: Solver, nan_derivatives: bool
) -> Solution:
    return solution(problem, us, ys, solver, nan_derivatives)


@compiled
def _begin(problem: Problem, us: Float[Array, "horizon nu"], ys: Point | None, solver: IterativeSolver) -> Any:
    return strongly_typed(solver.begin(problem, us, ys))


@compiled
def _advance(problem: Problem, state: Any, solver: IterativeSolver, iterations: Int[Array, ""]) -> Any:
    return solver.advance(problem, state, iterations)


@compiled
def _finish(problem: Problem, state: Any, solver: IterativeSolver) -> Solution:
    return solver.finish(problem, state)
