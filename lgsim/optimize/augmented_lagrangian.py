"""Conditions on states and controls by an augmented Lagrangian around any solver."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lgsim.lie.action import Point
from lgsim.optimize.constraints import Penalties
from lgsim.optimize.ilqr import ILQR
from lgsim.optimize.problem import Problem
from lgsim.optimize.results import RESULTS, History, Result
from lgsim.optimize.solver import IterativeSolver, Solver


class AugmentedLagrangian(IterativeSolver):
    """Solve a row of problems without conditions whose costs have penalties with multipliers, each from the one before.

    ``m <- m + rho c`` for equalities, ``max(m + rho c, 0)`` for inequalities ``c <= 0``; rho grows where the violation
    did not fall enough. One row of the history is an outer iteration, with the penalty as its regularisation, the
    violation as its feasibility and the number of inner iterations as its step.

    Attributes:
        inner: The solver of the problems without conditions.
        max_iterations: Outer iterations, at most.
        tolerance: Of the largest violation, in the constraints' units; by default 1e-6 in float64, 1e-3 in float32.
        penalty: The first rho.
        factor: By which rho grows.
        progress: The share of the last violation above which rho grows.
        largest: Of rho.

    Source: Nocedal and Wright, Numerical Optimization, 2nd ed., alg. 17.4.
    """

    inner: Solver = ILQR()
    max_iterations: int = eqx.field(static=True, default=20)
    tolerance: float | None = None
    penalty: float = 1.0
    factor: float = 10.0
    progress: float = 0.25
    largest: float = 1e8

    @property
    def handles_constraints(self) -> bool:
        return True

    @property
    def iteration_limit(self) -> int:
        return self.max_iterations

    def begin(self, problem: Problem, us: Array, ys: Point | None) -> "_State":
        # the first problem starts from a trajectory of the dynamics or from the guess with its gaps
        ys = problem.rollout(us) if ys is None else ys
        rows, end_rows = conditions(problem, ys, us)
        zeros = Penalties(
            jax.tree.map(jnp.zeros_like, rows), jax.tree.map(jnp.zeros_like, end_rows),
            jnp.asarray(self.penalty, problem.dtype),
        )  # fmt: skip
        history = History.empty(self.max_iterations, problem.dtype)
        blank = jax.eval_shape(lambda: self.inner.run(with_penalties(problem, zeros), us, ys))
        result = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), blank)
        result = eqx.tree_at(lambda r: (r.us, r.ys, r.place), result, (us, ys, jnp.array(-1)))
        infinite = jnp.asarray(jnp.inf, problem.dtype)
        return _State(jnp.array(0), jnp.array(False), result, zeros, infinite, history)

    def finish(self, problem: Problem, s: "_State") -> Result:
        found = s.result
        code = RESULTS.where(s.violation <= self._limit(problem), found.result, RESULTS.constraints_violated)
        code = RESULTS.where(found.place >= 0, found.result, code)
        ts = problem.time(jnp.arange(problem.horizon + 1))
        return Result(
            ts, found.ys, found.us, problem.cost(found.ys, found.us), found.gradient, found.feasibility,
            s.violation, found.gains, s.history, s.i, code, found.place, found.quantity, s.penalties,
        )  # fmt: skip

    def iterate(self, problem: Problem, s: "_State") -> "_State":
        penalties = s.penalties
        result = self.inner.run(with_penalties(problem, penalties), s.result.us, s.result.ys)
        rows, end_rows = conditions(problem, result.ys, result.us)
        along = tuple(c for c in problem.constraints if c.along)
        at_end = tuple(c for c in problem.constraints if c.end)
        rho = penalties.weight
        worst = jnp.maximum(_violation(along, rows, rho), _violation(at_end, end_rows, rho))
        history = s.history.record(
            s.i, cost=problem.cost(result.ys, result.us), gradient=result.gradient, feasibility=worst,
            step=result.iterations.astype(problem.dtype), regularisation=rho,
        )  # fmt: skip
        slow = worst > self.progress * s.violation
        after = Penalties(
            tuple(_shifted(c, m, x, rho) for c, m, x in zip(along, penalties.along, rows, strict=True)),
            tuple(_shifted(c, m, x, rho) for c, m, x in zip(at_end, penalties.end, end_rows, strict=True)),
            jnp.where(slow, jnp.minimum(rho * self.factor, self.largest), rho),
        )
        done = (worst <= self._limit(problem)) | (result.place >= 0)
        return _State(s.i + 1, done, result, after, worst, history)

    def _limit(self, problem: Problem) -> Any:
        """Of the largest violation."""
        return 10.0 ** (-0.4 * np.finfo(problem.dtype).precision) if self.tolerance is None else self.tolerance


class _State(NamedTuple):
    i: Array
    done: Array
    result: Result
    penalties: Penalties
    violation: Array
    history: History


def with_penalties(problem: Problem, penalties: Penalties) -> Problem:
    """The problem with penalties added to its costs."""
    return eqx.tree_at(lambda p: p.penalties, problem, penalties, is_leaf=lambda x: x is None)


def conditions(problem: Problem, ys: Point, us: Array) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    """The values of the constraints along the way, each (H, rows), and at the end, each (rows,)."""
    ks = jnp.arange(problem.horizon)
    before, last = jax.tree.map(lambda y: y[:-1], ys), jax.tree.map(lambda y: y[-1], ys)

    def along(c):
        return jax.vmap(lambda k, y, u: c.value(problem.time(k), y, u, problem.args))(ks, before, us)

    end = problem.time(problem.horizon)
    return (
        tuple(along(c) for c in problem.constraints if c.along),
        tuple(c.value(end, last, None, problem.args) for c in problem.constraints if c.end),
    )


def _violation(constraints, values, rho: Array) -> Array:
    sizes = [jnp.max(jnp.abs(x) if c.equality else jnp.maximum(x, 0)) for c, x in zip(constraints, values, strict=True)]
    return jnp.max(jnp.stack([jnp.zeros_like(rho), *sizes]))


def _shifted(constraint, multiplier: Array, value: Array, rho: Array) -> Array:
    moved = multiplier + rho * value
    return moved if constraint.equality else jnp.maximum(moved, 0)
