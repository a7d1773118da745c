"""Conditions on states and controls by an augmented Lagrangian around any solver."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float, Int

from lgsim._compile.xla import number_field
from lgsim.lie.action import Point
from lgsim.optimize.constraints import Constraint, Penalties
from lgsim.optimize.ilqr import ILQR
from lgsim.optimize.problem import Problem
from lgsim.optimize.solver import RESULTS, History, IterativeSolver, Solution, Solver, tolerance_of
from lgsim.support import check

Rows = tuple[tuple[Float[Array, "horizon _"], ...], tuple[Float[Array, " _"], ...]]
"""(rows of the constraints on the path, each (H, rows), rows of those at the end, each (rows,))."""


class AugmentedLagrangian(IterativeSolver):
    """Solve a sequence of problems without conditions whose costs have penalties with multipliers, each from the last.

    ``m <- m + rho c`` for equalities, ``max(m + rho c, 0)`` for inequalities ``c <= 0``; rho grows where the violation
    did not fall enough. An optimum of the problem is one of the last of those problems whose multipliers stay as they
    are: constraints are met, and none that is not active has a multiplier. One row of the history is an outer
    iteration, with the penalty as its regularization, the violation as its feasibility and the number of inner
    iterations as its step.

    What the start breaks and no control mends counts as met at the first node.

    Attributes:
        inner: The solver of the problems without conditions.
        max_iterations: Largest number of outer iterations.
        tolerance: Bound of the largest violation and of ``Optimality.complementarity``, in the constraints' units; by
            default 1e-6 in float64, 1e-3 in float32.
        penalty: The first rho.
        penalty_increase: Factor by which rho grows.
        progress: Share of the last violation above which rho grows.
        penalty_max: The largest rho.

    Raises:
        ValueError: max_iterations is less than 1.

    Source: Nocedal and Wright, Numerical Optimization, 2nd ed., alg. 17.4.
    """

    inner: Solver = ILQR()
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
        rows, end_rows = constraint_values(problem, ys, us)
        zeros = Penalties(
            jax.tree.map(jnp.zeros_like, rows), jax.tree.map(jnp.zeros_like, end_rows),
            jnp.asarray(self.penalty, problem.dtype),
        )  # fmt: skip
        history = History.empty(self.max_iterations, problem.dtype)
        kinds = self.inner.solution_kinds(with_penalties(problem, zeros), us, ys)
        solution = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), kinds)
        solution = eqx.tree_at(lambda r: (r.us, r.ys, r.bad_node), solution, (us, ys, jnp.array(-1)))
        infinite = jnp.asarray(jnp.inf, problem.dtype)
        return _State(jnp.array(0), jnp.array(False), solution, zeros, infinite, infinite, history)

    def finish(self, problem: Problem, s: _State) -> Solution:
        inner = s.solution
        tolerance = tolerance_of(self.tolerance, 0.4, problem.dtype)
        result = RESULTS.where(s.complementarity <= tolerance, inner.result, RESULTS.not_complementary)
        result = RESULTS.where(s.violation <= tolerance, result, RESULTS.constraints_violated)
        return Solution(
            ts=problem.time(jnp.arange(problem.horizon + 1)),
            ys=inner.ys,
            us=inner.us,
            cost=problem.cost(inner.ys, inner.us),
            gradient=inner.gradient,
            feasibility=inner.feasibility,
            violation=s.violation,
            gains=inner.gains,
            optimality=eqx.tree_at(lambda o: o.complementarity, inner.optimality, s.complementarity),
            history=s.history,
            iterations=s.i,
            result=RESULTS.where(inner.bad_node >= 0, inner.result, result),
            bad_node=inner.bad_node,
            bad_quantity=inner.bad_quantity,
            multipliers=s.penalties,
        )

    def iterate(self, problem: Problem, s: _State) -> _State:
        penalties = s.penalties
        solution = self.inner.run(with_penalties(problem, penalties), s.solution.us, s.solution.ys)
        rows, end_rows = constraint_values(problem, solution.ys, solution.us)
        on_path = tuple(c for c in problem.constraints if c.on_path)
        rows = tuple(_without_start(problem, c, x, solution.us[0]) for c, x in zip(on_path, rows, strict=True))
        at_end = tuple(c for c in problem.constraints if c.at_end)
        rho = penalties.weight
        both = (*zip(on_path, penalties.path, rows, strict=True), *zip(at_end, penalties.end, end_rows, strict=True))
        worst = _largest(rho, (_violations(c, x) for c, _, x in both))
        change = _largest(rho, (_updated(c, m, x, rho) - m for c, m, x in both)) / rho
        history = s.history.record(
            s.i, cost=problem.cost(solution.ys, solution.us), gradient=solution.gradient, feasibility=worst,
            step=solution.iterations.astype(problem.dtype), regularization=rho,
        )  # fmt: skip
        slow = change > self.progress * s.complementarity
        after = Penalties(
            tuple(_updated(c, m, x, rho) for c, m, x in zip(on_path, penalties.path, rows, strict=True)),
            tuple(_updated(c, m, x, rho) for c, m, x in zip(at_end, penalties.end, end_rows, strict=True)),
            jnp.where(slow, jnp.minimum(rho * self.penalty_increase, self.penalty_max), rho),
        )
        met = change <= tolerance_of(self.tolerance, 0.4, problem.dtype)
        going = solution.result == RESULTS.max_iterations
        done = (met & ~going) | (solution.bad_node >= 0)
        return _State(s.i + 1, done, solution, after, worst, change, history)


class _State(NamedTuple):
    """The state of ``AugmentedLagrangian``; its order is that of checkpoints.

    Attributes:
        penalties: Multipliers and penalty of the next one.
        violation: Largest violation of the constraints in the last one.
        complementarity: Largest change of a multiplier in the last one, by its penalty: see ``Optimality``.
    """

    i: Int[Array, ""]
    done: Bool[Array, ""]
    solution: Solution
    penalties: Penalties
    violation: Float[Array, ""]
    complementarity: Float[Array, ""]
    history: History


def with_penalties(problem: Problem, penalties: Penalties) -> Problem:
    """The problem with penalties added to its costs."""
    return eqx.tree_at(lambda p: p.penalties, problem, penalties, is_leaf=lambda x: x is None)


def constraint_values(problem: Problem, ys: Point, us: Float[Array, "horizon nu"]) -> Rows:
    """The values of the constraints on a trajectory: those on the path, and those at the end."""
    ks = jnp.arange(problem.horizon)
    before, last = jax.tree.map(lambda y: y[:-1], ys), jax.tree.map(lambda y: y[-1], ys)

    def on_path(c: Constraint) -> Array:
        return jax.vmap(lambda k, y, u: c.value(problem.time(k), y, u, problem.args))(ks, before, us)

    end = problem.time(problem.horizon)
    return (
        tuple(on_path(c) for c in problem.constraints if c.on_path),
        tuple(c.value(end, last, None, problem.args) for c in problem.constraints if c.at_end),
    )


def _without_start(
    problem: Problem, constraint: Constraint, values: Float[Array, "horizon _"], u: Float[Array, " nu"]
) -> Float[Array, "horizon _"]:
    """The values on the path, without what the start alone decides: rows of the first node that its control u does not
    move are met there.
    """
    by_control = jax.jacfwd(lambda u: constraint.value(problem.time(0), problem.y0, u, problem.args))(u)
    met = jnp.zeros_like(values[0]) if constraint.equality else jnp.minimum(values[0], 0)
    return values.at[0].set(jnp.where(jnp.all(by_control == 0, axis=1), met, values[0]))


def _violations(constraint: Constraint, value: Float[Array, "*rows"]) -> Float[Array, "*rows"]:
    """The violations of a constraint's rows."""
    return jnp.abs(value) if constraint.equality else jnp.maximum(value, 0)


def _largest(zero: Float[Array, ""], numbers: Iterable[Float[Array, ...]]) -> Float[Array, ""]:
    """The largest size of all numbers, of the dtype of one more; zero without any."""
    return jnp.max(jnp.stack([jnp.zeros_like(zero), *(jnp.max(jnp.abs(x)) for x in numbers)]))


def _updated(
    constraint: Constraint, multiplier: Float[Array, "*rows"], value: Float[Array, "*rows"], rho: Float[Array, ""]
) -> Float[Array, "*rows"]:
    """The multipliers of a constraint after an outer iteration."""
    moved = multiplier + rho * value
    return moved if constraint.equality else jnp.maximum(moved, 0)
