"""Real-time iteration of an augmented Lagrangian: one outer iteration per control step, from the last multipliers."""

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
"""Penalty of the iterations: ratio of the reduction of a row's violation in an update to the remainder."""
_FALL = 0.8
"""A multiplier grows only if an iteration leaves at most this fraction of its row's violation."""


def few_iterations(solver: Solver, problem: Problem, us: Float[Array, "horizon nu"], ys: Point) -> Solution:
    """The solution after a solver's iterations, without the final evaluation of ``ILQR.run``."""
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
    """One outer iteration: the inner solver's iterations with the given multipliers, then the update of the
    multipliers.

    It starts from the rollout with the last feedback, which has no gap to the measured state: closing a gap against
    stiff penalties would require short steps.

    Rows of the first node that no control affects do not enter the penalty. The multiplier of a row whose violation the
    iteration hardly reduces, because no control can, stays constant: otherwise it would grow without bound, and
    dominate the trajectory once the row can be satisfied. The penalty stays constant.

    Args:
        solver: Its maximum of outer iterations and the growth of its penalty are not used.
        us: Guess of the controls.
        ys: Guess of the states, the first one measured.
        gains: Feedback about the guess; None to start from the guess itself.
        penalties: Multipliers and penalty of the last step, shifted to the time of this one.

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
    """The multipliers of a solution, with the penalty for the iterations.

    They are zero if the solution has none of this kind, or violates a constraint: then they only indicate which rows
    contradict each other, and scale with the penalty.
    """
    ys, us, given = solution.ys, solution.us, solution.multipliers
    zeros = jax.tree.map(jnp.zeros_like, constraint_values(problem, ys, us))
    path, end = (given.path, given.end) if isinstance(given, Penalties) else zeros
    met = (solution.result != RESULTS.constraints_violated) & (solution.result != RESULTS.infeasible)
    path, end = jax.tree.map(lambda m, zero: jnp.where(met, m, zero), (path, end), zeros)
    weight = jnp.clip(_STIFFNESS, solver.penalty, solver.penalty_max).astype(problem.dtype)
    return Penalties(path, end, weight, *natural_sizes(problem, ys, us), start_rows(problem, us))


def shifted(penalties: Penalties) -> Penalties:
    """The multipliers one node later in time; the last node with a control, and the end, keep their own."""
    path = tuple(jnp.concatenate([m[1:], m[-1:]]) for m in penalties.path)
    return eqx.tree_at(lambda p: p.path, penalties, path)


def _under_feedback(
    problem: Problem, ys: Point, us: Float[Array, "horizon nu"], gains: Float[Array, "horizon nu n"]
) -> tuple[Point, Float[Array, "horizon nu"]]:
    """(states, controls) from y0 with ``u + gains difference(y, y_now)``, or the guess if these are not finite."""
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
    """The shifted multipliers, except for rows whose violation an iteration hardly reduced."""
    stuck = (before * after > 0) & (jnp.abs(after) > _FALL * jnp.abs(before)) & (jnp.abs(moved) > jnp.abs(multiplier))
    return jnp.where(stuck, multiplier, moved)
