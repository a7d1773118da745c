"""Solution of a trajectory optimization problem with any solver, optionally with progress and checkpoints."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int

from lgsim._compile.xla import closure_to_pytree, compiled, strongly_typed
from lgsim.lie.action import Point
from lgsim.optimize.augmented_lagrangian import AugmentedLagrangian
from lgsim.optimize.ilqr import ILQR
from lgsim.optimize.implicit_derivative import solution
from lgsim.optimize.neighbor import (
    has_curved_constraints,
    neighbor,
    neighbor_along_constraints,
    neighbor_by_curvature,
)
from lgsim.optimize.optimality import is_at_rest
from lgsim.optimize.problem import Problem
from lgsim.optimize.solver import RESULTS, IterativeSolver, Solution, Solver, start, tolerance_of
from lgsim.optimize.unknowns.extended_problem import contracted, extended, extended_guess, is_extended
from lgsim.optimize.unknowns.extension import phases_of
from lgsim.support.check import is_traced
from lgsim.support.checkpoint import Checkpoint
from lgsim.support.chunks import paced, run_in_chunks
from lgsim.support.fingerprint import fingerprint


class Iteration(NamedTuple):
    """One row of the ``History`` of a solver, as Python numbers.

    Attributes:
        number: Number of the iteration, from 1.
        cost: Cost of the trajectory at the start of the iteration.
        gradient: Largest entry of the cost's gradient with respect to the free controls.
        feasibility: Largest gap of the trajectory; in outer iterations the largest violation of the constraints.
        step: Accepted step length, 0 if none was accepted; in outer iterations the number of inner iterations.
        regularization: Number added to the Hessian of the controls; in outer iterations the penalty.
    """

    number: int
    cost: float
    gradient: float
    feasibility: float
    step: float
    regularization: float


_RESTARTS = 3
"""Largest number of restarts from saddles of a constrained problem."""
Progress = Callable[[Iteration], Any]
"""Callback ``progress(iteration)``, called for each iteration, possibly for several at once."""


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

    Compiled once for each structure and horizon; new values (states, targets, models, bounds, tolerances) do not
    recompile. ``jax.vmap`` maps it over any of its arrays, for example
    ``jax.vmap(lambda y0: solve(problem.replace(y0=y0)))(starts)``.

    If ``ILQR`` stays at its guess and nearby controls cost less, or ``AugmentedLagrangian`` ends at a saddle of the
    Lagrangian along the active constraints, the search restarts from there. If ``AugmentedLagrangian`` meets the
    constraints but not the optimum, it continues with ``ILQR(exact_hessian=True)``. Inside ``jit`` and ``vmap`` neither
    happens.

    Differentiable in both modes by the implicit function theorem: ts, ys, us and cost of the result have the first
    derivatives of the optimum with respect to all values of the problem (start, targets, weights, models, bounds, args,
    arrays in closures of costs and dynamics), from one linear-quadratic problem with all second derivatives, see
    ``implicit_derivative.solution``. The search is not differentiated; guesses and tolerances have no derivative.
    Controls at a bound move with the bound only, and active constraints of an ``AugmentedLagrangian`` stay active.
    Derivatives of a trajectory that is not an optimum are wrong: computing them gives a ``RuntimeWarning``, once for a
    batch, also inside of ``jit``; or they are NaN, see ``nan_derivatives``.

    Args:
        us: Guess of the controls (H, controls), by default zero; clipped to their bounds.
        ys: Guess of the states, each leaf with the leading axis H + 1; they need not satisfy the dynamics (multiple
            shooting). By default those of a rollout of ``us``; if it diverges, use the goal at every node.
        solver: By default ``ILQR()``, with constraints ``AugmentedLagrangian()``.
        progress: Called with each ``Iteration`` while the solver works, such as ``print``. Its exceptions propagate,
            but Ctrl-C (``KeyboardInterrupt``) ends the iterations and returns the best trajectory so far.
        checkpoint: A file for the solver's state, written every few seconds and at the end. If it exists, the solver
            continues from it and gives the same result as without an interruption.

            With progress or checkpoint the iterations are compiled separately; the result agrees with that of one
            program to rounding. Neither works inside ``jit`` and ``vmap``.
        nan_derivatives: Set the derivatives of ts, ys, us and cost to NaN if the trajectory is not an optimum, for each
            entry of a batch, instead of a warning.

    Returns:
        The trajectory, its feedback gains, a record of the iterations, and a result code with a message
        (``result.message``) that names the node and the quantity of a value that is not finite.

    Raises:
        TypeError: an argument is of the wrong kind; or progress or checkpoint is given, and the solver runs in one
            piece or an argument is traced.
        ValueError: shapes do not match, the solver does not support the constraints, or the cost is not finite at the
            guess.
        CheckpointError: the checkpoint is of another problem, guess or solver, or no file can be written there.
        OSError: the checkpoint cannot be written, for example because the disk is full.
    """
    if solver is None:
        solver = AugmentedLagrangian() if isinstance(problem, Problem) and _is_constrained(problem) else ILQR()
    if isinstance(problem, Problem) and is_extended(problem):
        # messages about the guess refer to the problem without its unknowns
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
        found = _run(closure_to_pytree(problem), us, ys, numbers, bool(nan_derivatives))
    if is_traced(found):
        return found
    if isinstance(solver, AugmentedLagrangian):
        found = _by_second_order(problem, found, numbers, bool(nan_derivatives))
        return _off_constrained_saddle(problem, found, numbers, bool(nan_derivatives))
    return _off_saddle(problem, found, numbers, bool(nan_derivatives))


def _off_saddle(problem: Problem, found: Solution, solver: Solver, nan_derivatives: bool) -> Solution:
    """The solution, or if it is the guess and not a minimum, the one from nearby controls."""
    if not _stayed(solver, found):
        return found
    given = closure_to_pytree(problem)
    near, lower = neighbor(given, found.us, found.cost)
    if not lower and found.result == RESULTS.successful:
        # a guess that is an optimum already has a small step, one that is stationary by its structure has none
        if not is_at_rest(found.optimality):
            return found
        near, lower = neighbor_by_curvature(given, found.us, found.cost)
        if not lower:
            return found
    other = _run(given, near, None, solver, nan_derivatives)
    return other if other.cost < found.cost else found


def _by_second_order(problem: Problem, found: Solution, solver: AugmentedLagrangian, nan_derivatives: bool) -> Solution:
    """The solution, or if it meets the constraints without being an optimum, one with second derivatives of the steps.

    Along a singular arc the costs and the penalties leave controls undetermined to first order.
    """
    inner = solver.inner
    open_ends = (RESULTS.max_iterations, RESULTS.saddle, RESULTS.stalled)
    if not any(bool(found.result == end) for end in open_ends) or not isinstance(inner, ILQR) or inner.exact_hessian:
        return found
    # parallel ones have no second derivatives
    exact = eqx.tree_at(lambda s: s.inner, solver, replace(inner, exact_hessian=True, parallel=False))
    other = _run(closure_to_pytree(problem), found.us, found.ys, exact, nan_derivatives)
    within = other.cost <= found.cost + tolerance_of(None, 0.4, problem.dtype) * jnp.abs(found.cost)
    return other if bool((other.result == RESULTS.successful) & within) else found


def _off_constrained_saddle(
    problem: Problem, found: Solution, solver: AugmentedLagrangian, nan_derivatives: bool
) -> Solution:
    """The solution, or if it is a saddle along the active constraints, the one from nearby controls."""
    given = closure_to_pytree(problem)
    for restarts in range(_RESTARTS + 1):
        penalties = found.multipliers
        if penalties is None or found.result != RESULTS.successful:
            return found
        # a small program spares most problems the larger one
        if not has_curved_constraints(given, found.ys, found.us, penalties):
            return found
        near, lower = neighbor_along_constraints(given, found.ys, found.us, penalties)
        if not lower:
            return found
        other = found if restarts == _RESTARTS else _run(given, near, None, solver, nan_derivatives)
        if not (other.result == RESULTS.successful and other.cost < found.cost):
            break
        found = other
    return eqx.tree_at(lambda s: s.result, found, RESULTS.saddle)


def _is_constrained(problem: Problem) -> bool:
    """True if a problem or one of its phases has constraints besides the bounds of the controls."""
    return bool(problem.constraints) or any(phase.constraints for phase in phases_of(problem).phases)


def _stayed(solver: Solver, found: Solution) -> bool:
    """True if a solver found a zero gradient at its guess."""
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
    """``solve`` with ``progress`` or ``checkpoint``."""
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
