"""Constraints on states and controls by an augmented Lagrangian around any solver."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float, Int

from lgsim._compile.xla import control_flow, number_field
from lgsim.lie.action import Point
from lgsim.optimize.constraint_rows import (
    ConstraintReport,
    Rows,
    constraint_values,
    natural_sizes,
    report_of,
    rows_of,
    start_rows,
)
from lgsim.optimize.constraints.penalties import Penalties
from lgsim.optimize.cost import Scaled
from lgsim.optimize.ilqr import ILQR
from lgsim.optimize.optimality import control_sizes
from lgsim.optimize.problem import Problem
from lgsim.optimize.solver import RESULTS, History, IterativeSolver, Solution, Solver, tolerance_of
from lgsim.support import check

_STUCK = 3
"""Number of consecutive outer iterations without progress after which the violation alone is minimized."""
_LEAST = 0.5
"""Fraction of the last violation above which an iteration made no progress."""
_SHAKE = 0.01
"""Relative perturbation of the controls before the violation is minimized, to leave its saddles."""


class AugmentedLagrangian(IterativeSolver):
    """Solve a sequence of unconstrained problems with penalties and multipliers in the cost, each from the last.

    The multipliers are updated by ``m <- m + rho c / s^2`` for equalities and ``max(m + rho c / s^2, 0)`` for
    inequalities ``c <= 0``. The natural size s of each row (see ``natural_sizes``) makes the method independent of the
    units of costs, controls and constraints; rho grows where the violation did not decrease enough. At an optimum of
    the problem the multipliers stay constant: the constraints are satisfied, and no inactive one has a multiplier. One
    row of the history is an outer iteration, with the penalty as its regularization, the violation of the worst row as
    its feasibility and the number of inner iterations as its step.

    After three consecutive outer iterations without progress in the violation, or none before the last iteration, the
    next one minimizes ``1/2 sum (violation / s)^2`` without the costs, from nearby controls. If that minimum is not
    zero, the constraints are infeasible there: the result is ``RESULTS.infeasible``, and the trajectory is that of the
    least violation, with the ``optimality`` of this sum. Otherwise the iterations continue from it.

    At the first node, rows that no control affects are left out.

    Attributes:
        inner: The solver of the unconstrained problems; by default with eight trial steps, since the curvature of
            penalties jumps where inequalities become active.
        max_iterations: Largest number of outer iterations.
        tolerance: Bound of the violations and of ``Optimality.complementarity``, in the constraints' units. By default
            they are compared with the size of their terms, see ``ConstraintReport``, to 1e-6 in float64 and 1e-3 in
            float32.
        penalty: The first rho: with 1, one iteration halves the error of the multiplier of an isolated row.
        penalty_increase: Factor by which rho grows.
        progress: Fraction of the last change of the multipliers above which rho grows.
        penalty_max: The largest rho.

    Raises:
        ValueError: max_iterations is less than 1.

    Source: Nocedal and Wright, Numerical Optimization, 2nd ed., alg. 17.4.
    """

    inner: Solver = ILQR(line_search_steps=8)
    max_iterations: int = eqx.field(static=True, default=20)
    tolerance: float | None = None
    penalty: float = number_field(1.0)
    penalty_increase: float = number_field(10.0)
    progress: float = number_field(0.25)
    penalty_max: float = number_field(1e8)

    def __check_init__(self):
        check.count("max_iterations", self.max_iterations)

    @property
    def handles_constraints(self) -> bool:
        return True

    @property
    def iteration_limit(self) -> int:
        return self.max_iterations

    def begin(self, problem: Problem, us: Float[Array, "horizon nu"], ys: Point | None) -> _State:
        # the first problem starts from a trajectory of the dynamics or from the guess with its gaps
        ys = problem.rollout(us) if ys is None else ys
        rows, end_rows = jax.tree.map(jnp.zeros_like, constraint_values(problem, ys, us))
        sizes = natural_sizes(problem, ys, us)
        penalties = Penalties(rows, end_rows, jnp.asarray(self.penalty, problem.dtype), *sizes, start_rows(problem, us))
        history = History.empty(self.max_iterations, problem.dtype)
        kinds = self.inner.solution_kinds(with_penalties(problem, penalties), us, ys)
        solution = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), kinds)
        solution = eqx.tree_at(lambda r: (r.us, r.ys, r.bad_node), solution, (us, ys, jnp.array(-1)))
        infinite = jnp.asarray(jnp.inf, problem.dtype)
        zero = jnp.zeros((), problem.dtype)
        report = jax.eval_shape(lambda: report_of(problem, rows_of(problem, ys, us, penalties), zero, False))
        report = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), report)
        report = replace(report, violation=infinite, relative=infinite, complementarity=infinite)
        no, none = jnp.array(False), jnp.array(0)
        return _State(none, no, solution, penalties, report, infinite, infinite, none, no, no, no, history)

    def finish(self, problem: Problem, s: _State) -> Solution:
        inner, report = s.solution, s.report
        result = RESULTS.where(s.infeasible, RESULTS.infeasible, self.verdict(problem, inner.result, report))
        return Solution(
            ts=problem.time(jnp.arange(problem.horizon + 1)),
            ys=inner.ys,
            us=inner.us,
            cost=problem.cost(inner.ys, inner.us),
            gradient=inner.gradient,
            feasibility=inner.feasibility,
            violation=report.violation,
            gains=inner.gains,
            optimality=eqx.tree_at(lambda o: o.complementarity, inner.optimality, report.complementarity),
            history=s.history,
            iterations=s.i,
            result=RESULTS.where(inner.bad_node >= 0, inner.result, result),
            bad_node=inner.bad_node,
            bad_quantity=inner.bad_quantity,
            multipliers=s.penalties,
            constraints=report,
        )

    def verdict(self, problem: Problem, inner: RESULTS, report: ConstraintReport) -> RESULTS:
        """The result of an outer iteration, from that of its inner solution and the constraints."""
        tolerance = tolerance_of(self.tolerance, 0.4, problem.dtype)
        result = RESULTS.where(report.complementarity <= tolerance, inner, RESULTS.not_complementary)
        return RESULTS.where(report.relative <= tolerance, result, RESULTS.constraints_violated)

    def iterate(self, problem: Problem, s: _State) -> _State:
        restoring, last = s.restoring, s.solution
        none = jax.tree.map(jnp.zeros_like, (s.penalties.path, s.penalties.end))
        plain = eqx.tree_at(lambda p: (p.path, p.end, p.weight), s.penalties, (*none, jnp.ones((), problem.dtype)))
        penalties = _where(restoring, plain, s.penalties)
        us, ys, priced = last.us, last.ys, problem
        if self._restores:
            us = jnp.where(restoring, _shaken(problem, us), us)
            ys = control_flow.cond(restoring, lambda: problem.rollout(us), lambda: last.ys)
            # the same program with and without the costs
            priced = _with_share(problem, jnp.where(restoring, 0, jnp.ones((), problem.dtype)))
        solution = self.inner.run(with_penalties(priced, penalties), us, ys)
        lost = restoring & (solution.bad_node >= 0)
        solution = _where(lost, last, solution)

        rows = rows_of(problem, solution.ys, solution.us, s.penalties)
        cost = problem.cost(solution.ys, solution.us)
        report = report_of(problem, rows, cost, self.tolerance is not None)
        # what minimizes the violation says nothing about multipliers
        report = replace(report, complementarity=jnp.where(restoring, jnp.inf, report.complementarity))
        tolerance = tolerance_of(self.tolerance, 0.4, problem.dtype)
        met, feasible = report.complementarity <= tolerance, report.relative <= tolerance
        rho = s.penalties.weight
        history = s.history.record(
            s.i, cost=cost, gradient=solution.gradient, feasibility=report.violation,
            step=solution.iterations.astype(problem.dtype), regularization=rho,
        )  # fmt: skip
        size = _largest(rho, (x.change / x.natural for x in rows))
        violation = _largest(rho, (jnp.where(x.start, x.violation, 0) / x.natural for x in rows))
        held = ~feasible & ~restoring & ~(violation <= _LEAST * s.violation)
        stuck = jnp.where(held, s.stuck + 1, 0)
        out = held & (s.i + 2 == self.max_iterations)
        broken, going = solution.bad_node >= 0, solution.result == RESULTS.max_iterations
        # a larger penalty is no help to an inner search that is not done
        slow = (size > self.progress * s.change) & ~(met & going)
        after = with_multipliers(
            s.penalties, rows, jnp.where(slow, jnp.minimum(rho * self.penalty_increase, self.penalty_max), rho)
        )
        infeasible = restoring & ~lost & ~feasible & _at_least(solution)
        return _State(
            i=s.i + 1,
            done=(met & ~going) | broken | infeasible,
            solution=solution,
            penalties=_where(restoring, s.penalties, after),
            report=report,
            violation=violation,
            change=jnp.where(restoring, s.change, size),
            stuck=stuck,
            restoring=((stuck >= _STUCK) | out) & ~s.restored & self._restores,
            restored=s.restored | restoring,
            infeasible=infeasible,
            history=history,
        )

    @property
    def _restores(self) -> bool:
        """True if there are enough iterations to minimize the violation in one of them."""
        return self.max_iterations > _STUCK


class _State(NamedTuple):
    """The state of ``AugmentedLagrangian``; its order is that of checkpoints.

    Attributes:
        penalties: Multipliers and penalty of the next one.
        report: How the last one meets the constraints.
        violation: Largest violation of a row in the last one, by its natural size.
        change: Largest change of a multiplier in the last one with costs, by its penalty and its row's natural size.
        stuck: Number of outer iterations in a row that hardly lowered the violation.
        restoring: Whether the next one minimizes the violation.
        restored: Whether one did.
        infeasible: Whether it ended at a minimum that is not zero.
    """

    i: Int[Array, ""]
    done: Bool[Array, ""]
    solution: Solution
    penalties: Penalties
    report: ConstraintReport
    violation: Float[Array, ""]
    change: Float[Array, ""]
    stuck: Int[Array, ""]
    restoring: Bool[Array, ""]
    restored: Bool[Array, ""]
    infeasible: Bool[Array, ""]
    history: History


def with_penalties(problem: Problem, penalties: Penalties) -> Problem:
    """The problem with penalties added to its costs."""
    return eqx.tree_at(lambda p: p.penalties, problem, penalties, is_leaf=lambda x: x is None)


def _with_share(problem: Problem, share: Float[Array, ""]) -> Problem:
    """The problem with its costs and the prices of its soft constraints multiplied by a factor."""
    parts = Scaled(problem.running, share), Scaled(problem.terminal, share)
    parts = (*parts, tuple(c.priced(share) for c in problem.constraints))
    return eqx.tree_at(lambda p: (p.running, p.terminal, p.constraints), problem, parts)


def _shaken(problem: Problem, us: Float[Array, "horizon nu"]) -> Float[Array, "horizon nu"]:
    """Slightly perturbed controls."""
    noise = np.random.default_rng(0).normal(size=us.shape)
    return problem.clip(us + jnp.asarray(_SHAKE * noise, us.dtype) * control_sizes(problem, us)[None])


def _at_least(solution: Solution) -> Bool[Array, ""]:
    """True if a sum of squares is at a minimum, by its decrement or its potential."""
    digits = np.finfo(solution.cost.dtype).precision
    promised = jnp.minimum(solution.optimality.decrement, solution.optimality.potential)
    # a sum of squares of few rows has directions without curvature, which rounding may bend
    ended = (solution.result == RESULTS.successful) | (solution.result == RESULTS.saddle)
    return ended & (promised <= 10.0 ** (-0.25 * digits))


def with_multipliers(penalties: Penalties, rows: list[Rows], weight: Float[Array, ""]) -> Penalties:
    """The penalties after an outer iteration."""
    path, end = (
        tuple(x.updated for x in rows[a:b]) for a, b in ((0, len(penalties.path)), (len(penalties.path), None))
    )
    return eqx.tree_at(lambda p: (p.path, p.end, p.weight), penalties, (path, tuple(m[0] for m in end), weight))


def _where(chosen: Bool[Array, ""], a: Any, b: Any) -> Any:
    """The pytree a if chosen, else b."""
    return jax.tree.map(lambda x, y: jnp.where(chosen, x, y), a, b)


def _largest(zero: Float[Array, ""], numbers: Iterable[Float[Array, ...]]) -> Float[Array, ""]:
    """The largest of all numbers in the dtype of ``zero``, which is the result without any."""
    return jnp.max(jnp.stack([jnp.zeros_like(zero), *(jnp.max(x, initial=0) for x in numbers)]))
