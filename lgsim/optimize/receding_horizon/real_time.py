"""One iteration of an augmented Lagrangian for each step of a controller, from the multipliers of the last step."""

from __future__ import annotations

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from lgsim._compile.linalg.dense import matvec
from lgsim._compile.xla import scan_last
from lgsim.lie.action import Point
from lgsim.optimize.augmented_lagrangian import AugmentedLagrangian, with_multipliers, with_penalties
from lgsim.optimize.constraint_rows import constraint_values, natural_sizes, report_of, rows_of, start_rows
from lgsim.optimize.constraints.penalties import Penalties
from lgsim.optimize.ilqr import ILQR
from lgsim.optimize.linear_quadratic import split_nodes
from lgsim.optimize.problem import Problem
from lgsim.optimize.solver import RESULTS, History, Solution, Solver

_STIFFNESS = 1e5
"""Penalty of the iterations: an update takes so many times as much of a row's violation as it leaves."""
_FALL = 0.8
"""A multiplier grows only where an iteration leaves at most this share of its row's violation."""


def few_iterations(solver: Solver, problem: Problem, us: Float[Array, "horizon nu"], ys: Point) -> Solution:
    """The solution after a solver's iterations, without the look at its end that ``ILQR.run`` takes."""
    if not isinstance(solver, ILQR):
        return solver.run(problem, us, ys)
    return solver.finish(problem, solver.advance(problem, solver.begin(problem, us, ys), solver.max_iterations))


def real_time_iteration(
    solver: AugmentedLagrangian,
    problem: Problem,
    us: Float[Array, "horizon nu"],
    ys: Point,
    gains: Float[Array, "horizon nu n"] | None,
    penalties: Penalties,
) -> Solution:
    """One outer iteration: the inner solver's iterations with the given multipliers, then the update of these.

    It starts from the trajectory under the last feedback, which has no gap to the measured state: a gap that closes
    past stiff penalties would have to do so in short steps.

    Rows of the first node that no control moves have no part in the penalty. The multiplier of a row that the
    iteration hardly brings nearer, because no control can, stays as it is: it would grow without end, and hold the
    trajectory once the row can be met. The penalty stays as it is.

    Args:
        solver: Its limit of outer iterations and the growth of its penalty are not used.
        us: Guess of the controls.
        ys: Guess of the states, the first one measured.
        gains: Feedback about the guess; None to start from the guess itself.
        penalties: Multipliers and penalty, those of the last step in the time of this one.

    Returns:
        The solution, whose ``multipliers`` are those for the next step, not yet shifted.

    Source: Diehl, Bock and Schlöder 2005, sec. 3, for one iteration with initial value embedding; Nocedal and Wright,
    Numerical Optimization, 2nd ed., eq. 17.39 and 17.60 for the multipliers.
    """
    before = constraint_values(problem, ys, us)
    if gains is not None:
        ys, us = _under_feedback(problem, ys, us, gains)
    penalties = eqx.tree_at(lambda p: p.start_rows, penalties, start_rows(problem, us))
    inner = few_iterations(solver.inner, with_penalties(problem, penalties), us, ys)
    rows = rows_of(problem, inner.ys, inner.us, penalties)
    cost = problem.cost(inner.ys, inner.us)
    report = report_of(problem, rows, cost, solver.tolerance is not None)
    update = with_multipliers(penalties, rows, penalties.weight)
    kept, moved = ((p.path, p.end) for p in (penalties, update))
    after = constraint_values(problem, inner.ys, inner.us)
    held = jax.tree.map(_unless_stuck, kept, moved, before, after)
    return replace(
        inner,
        cost=cost,
        violation=report.violation,
        optimality=eqx.tree_at(lambda o: o.complementarity, inner.optimality, report.complementarity),
        history=History.empty(0, problem.dtype),
        result=RESULTS.where(inner.bad_node >= 0, inner.result, solver.verdict(problem, inner.result, report)),
        multipliers=eqx.tree_at(lambda p: (p.path, p.end), update, held),
        constraints=report,
    )


def first_multipliers(solver: AugmentedLagrangian, problem: Problem, solution: Solution) -> Penalties:
    """The multipliers of a solution, with the penalty for iterations about it.

    They are zero where the solution has none of this kind, or breaks a constraint: then they only show which rows
    contradict each other, and are as large as the penalty became.
    """
    ys, us, given = solution.ys, solution.us, solution.multipliers
    zeros = jax.tree.map(jnp.zeros_like, constraint_values(problem, ys, us))
    path, end = (given.path, given.end) if isinstance(given, Penalties) else zeros
    met = (solution.result != RESULTS.constraints_violated) & (solution.result != RESULTS.infeasible)
    path, end = jax.tree.map(lambda m, zero: jnp.where(met, m, zero), (path, end), zeros)
    weight = jnp.clip(_STIFFNESS, solver.penalty, solver.penalty_max).astype(problem.dtype)
    return Penalties(path, end, weight, *natural_sizes(problem, ys, us), start_rows(problem, us))


def shifted(penalties: Penalties) -> Penalties:
    """The multipliers one node later in time; the last node with a control, and the end, take their own again."""
    path = tuple(jnp.concatenate([m[1:], m[-1:]]) for m in penalties.path)
    return eqx.tree_at(lambda p: p.path, penalties, path)


def _under_feedback(
    problem: Problem, ys: Point, us: Float[Array, "horizon nu"], gains: Float[Array, "horizon nu n"]
) -> tuple[Point, Float[Array, "horizon nu"]]:
    """(states, controls) from y0 under ``u + gains difference(y, y_now)``, or the guess where these are not finite."""
    before, _ = split_nodes(ys)

    def step(now: Point, node: tuple) -> tuple[Point, tuple[Point, Array]]:
        k, y, u, K = node
        u = problem.clip_at(k, u + matvec(K, problem.dynamics.action.difference(y, now)))
        after = problem.step(k, now, u)
        return after, (after, u)

    _, (rest, controls) = scan_last(step, problem.y0, (jnp.arange(problem.horizon), before, us, gains))
    states = jax.tree.map(lambda y, more: jnp.concatenate([y[None], more]), problem.y0, rest)
    finite = jnp.all(jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves((states, controls))]))
    return jax.tree.map(lambda a, b: jnp.where(finite, a, b), (states, controls), (ys, us))


def _unless_stuck(multiplier: Array, moved: Array, before: Array, after: Array) -> Array:
    """The moved multipliers but of rows that an iteration left violated almost as before."""
    stuck = (before * after > 0) & (jnp.abs(after) > _FALL * jnp.abs(before)) & (jnp.abs(moved) > jnp.abs(multiplier))
    return jnp.where(stuck, multiplier, moved)
