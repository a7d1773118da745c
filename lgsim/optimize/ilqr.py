"""Trial steps of a trajectory along a policy, and the merit that accepts them."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lgsim.lie.action import Point
from lgsim.linalg.dense import matvec
from lgsim.optimize.backward_pass import BackwardPass, backward_pass, parallel_backward_pass, second_order_backward_pass
from lgsim.optimize.linearize import split_nodes
from lgsim.optimize.problem import Problem
from lgsim.optimize.results import RESULTS, History, Result, first_nonfinite
from lgsim.optimize.solver import IterativeSolver
from lgsim.xla import scan_last, where_last, while_last

ARMIJO = 1e-4
"""Share of the predicted decrease that a step must bring."""
SHORTER = 0.25
"""Length of a step in parts of the one that was tried before."""


class Trial(NamedTuple):
    """A trajectory after a step of some length, with its cost."""

    ys: Point
    us: Array
    cost: Array


class LineSearch(NamedTuple):
    """The outcome: the last trial, its length, and whether it lowers the merit."""

    trial: Trial
    length: Array
    accepted: Array


def trial(problem: Problem, ys: Point, us: Array, found: BackwardPass, length: Array) -> Trial:
    """The trajectory under ``u + length k + K difference(y, y_new)``, whose gaps are ``1 - length`` of the old ones.

    Args:
        problem: The problem.
        ys, us: The trajectory.
        found: The feedback, and the gaps of the steps.
        length: From 0 to 1.

    Source: Mastalli et al. 2020, Crocoddyl, sec. III (feasibility-driven DDP).
    """
    action = problem.dynamics.action
    before, _ = split_nodes(ys)

    def step(now: Point, node: tuple) -> tuple[Point, tuple[Point, Array]]:
        i, y, u, gap, K, k = node
        u = problem.clip(u + length * k + matvec(K, action.difference(y, now)))
        after = action.move((length - 1) * gap, problem.step(i, now, u))
        return after, (after, u)

    nodes = (jnp.arange(problem.horizon), before, us, found.gaps, found.K, found.k)
    _, (rest, controls) = scan_last(step, problem.y0, nodes)
    states = jax.tree.map(lambda y, more: jnp.concatenate([y[None], more]), problem.y0, rest)
    return Trial(states, controls, problem.cost(states, controls))


def search(
    problem: Problem, ys: Point, us: Array, found: BackwardPass,
    cost: Array, slope: Array, weight: Array, slack: Array, trials: Any,
) -> LineSearch:  # fmt: skip
    """Shorten the step until ``merit = cost + weight * sum |gaps|`` falls enough.

    Args:
        problem, ys, us, found: See ``trial``.
        cost: Of the trajectory.
        slope: The derivative of the merit by the length at zero, negative.
        weight: Of the gaps.
        slack: What rounding may add to the merit.
        trials: Lengths, at most; with none the trajectory itself comes back.
    """
    total = jnp.sum(jnp.abs(found.gaps))

    def attempt(length: Array) -> tuple[Trial, Array]:
        tried = trial(problem, ys, us, found, length)
        merit = tried.cost + weight * (1 - length) * total
        # a trial that is not finite fails every comparison
        enough = merit <= cost + weight * total + ARMIJO * length * slope + slack
        finite = jnp.array(True)
        for leaf in jax.tree.leaves(tried):
            finite = finite & jnp.all(jnp.isfinite(leaf))
        return tried, enough & finite

    def going(state: tuple[Array, Array, Trial, Array]) -> Array:
        tried, _, _, accepted = state
        return ~accepted & (tried < trials)

    def shorten(state: tuple[Array, Array, Trial, Array]) -> tuple[Array, Array, Trial, Array]:
        tried, length, _, _ = state
        length = jnp.where(tried == 0, length, SHORTER * length)
        return (tried + 1, length, *attempt(length))

    none = Trial(ys, us, cost)
    first = (jnp.array(0), jnp.ones((), us.dtype), none, jnp.array(False))
    _, length, last, accepted = while_last(going, shorten, first)
    return LineSearch(last, length, accepted)


MERIT_SHARE = 0.5
"""Of the weight of the gaps: how far above the least one that makes a step a descent."""
ROUNDING = 4
"""By how many units in the last decimal place rounding may raise the cost of a good step."""


class ILQR(IterativeSolver):
    """Iterative LQR on a manifold: a quadratic model of the problem about the trajectory, its Riccati solution, a
    nonlinear rollout along its feedback. All in tangent coordinates of the nodes, so no quaternion is ever added to.

    A guess of states need not follow the dynamics: its gaps are part of the model, and a step of length s closes the
    share s of them. Bounds of the controls are met at every iteration by a projected Newton step at each node.

    Attributes:
        max_iterations: At most.
        gradient_tolerance: Of the largest entry of the cost's gradient by the free controls, in the unit of the cost
            by that of the controls; by default 1e-6 in float64 and 4e-3 in float32.
        decrease_tolerance: Relative decrease of the cost that counts as rounding: a smaller predicted one ends the
            iterations; by default 1e-13 in float64 and 4e-6 in float32.
        gap_tolerance: Of the largest gap; by default 1e-9 in float64 and 1e-4 in float32.
        full_costs: Second derivatives of costs that are squares too; by default Gauss-Newton's.
        second_order: Second derivatives of the steps, and of costs that are squares, as in differential dynamic
            programming, wherever the model with them has a minimum; without them elsewhere.
        parallel: Solve the Riccati equation by an associative scan over time; not with bounds.
        trials: Lengths of a step that are tried, at most: 1, 1/4, 1/16 and so on; where none is accepted,
            regularisation grows. Few are best: a short step in a poor direction costs as much as a better direction.
        regularisation: The first one, added to the Hessian of the controls; as all of them relative to the mean of the
            running cost's second derivatives by the controls of the same node, so that its unit changes nothing.
        least: What regularisation grows to at least, where no step is accepted.
        smallest, largest: The least regularisation that is not zero, and the one at which the solver gives up.
        growth: By which it grows, and more with each step in a row that is not accepted: growth, growth^2, ...
        factor: By which it falls at most, where the cost falls as its model says; it does not where a step was short.

    Source: Nielsen 1999, Damping parameter in Marquardt's method (the rule of the regularisation).
    """

    max_iterations: int = eqx.field(static=True, default=200)
    gradient_tolerance: float | None = None
    decrease_tolerance: float | None = None
    gap_tolerance: float | None = None
    full_costs: bool = eqx.field(static=True, default=False)
    second_order: bool = eqx.field(static=True, default=False)
    parallel: bool = eqx.field(static=True, default=False)
    trials: int = eqx.field(static=True, default=2)
    regularisation: float = 0.0
    least: float = 10.0
    smallest: float = 1e-3
    largest: float = 1e8
    growth: float = 4.0
    factor: float = 3.0

    def __check_init__(self):
        if self.max_iterations < 1 or self.trials < 1:
            given = f"{self.max_iterations} and {self.trials}"
            raise ValueError(f"max_iterations, trials: expected at least 1, got {given}")

    @property
    def iteration_limit(self) -> int:
        return self.max_iterations

    def begin(self, problem: Problem, us: Array, ys: Point | None) -> "_State":
        if self.parallel and problem.bounded:
            raise ValueError(
                "solver: the parallel Riccati solution takes no bounds of the controls; use parallel=False"
            )
        ys = problem.rollout(us) if ys is None else ys
        cost = problem.cost(ys, us)
        place, quantity = _unusable(problem, ys, us)
        code = RESULTS.where(place < 0, RESULTS.successful, RESULTS.nonfinite_start)
        zero = jnp.zeros((), problem.dtype)
        n = problem.dynamics.action.dim
        gains = jnp.zeros((problem.horizon, problem.controls, n), problem.dtype)
        history = History.empty(self.max_iterations, problem.dtype)
        reg = jnp.asarray(self.regularisation, problem.dtype)
        return _State(
            jnp.array(0), place >= 0, ys, us, cost, zero, zero, reg, jnp.array(False), zero + self.growth, zero, gains,
            history, code, place, quantity,
        )  # fmt: skip

    def finish(self, problem: Problem, s: "_State") -> Result:
        zero = jnp.zeros((), problem.dtype)
        code = RESULTS.where(s.done, s.code, RESULTS.max_iterations)
        ts = problem.time(jnp.arange(problem.horizon + 1))
        return Result(
            ts, s.ys, s.us, s.cost, s.gradient, s.feasibility, zero, s.gains, s.history, s.i, code,
            s.place, s.quantity,
        )  # fmt: skip

    def iterate(self, problem: Problem, s: "_State") -> "_State":
        way = (
            second_order_backward_pass
            if self.second_order
            else parallel_backward_pass
            if self.parallel
            else backward_pass
        )
        found = way(problem, s.ys, s.us, s.reg, self.full_costs)
        s = s._replace(gradient=found.gradient, feasibility=jnp.max(jnp.abs(found.gaps)))
        closed = s.feasibility <= self._tolerance("gap_tolerance", 0.6, problem.dtype)
        small = closed & (s.gradient <= self._tolerance("gradient_tolerance", 0.4, problem.dtype))
        broken = found.place >= 0
        record = {"cost": s.cost, "gradient": s.gradient, "feasibility": s.feasibility}
        s = s._replace(
            done=small | broken,
            gains=where_last(found.definite & ~broken, found.K, s.gains),
            code=RESULTS.where(broken, RESULTS.nonfinite_derivative, s.code),
            place=found.place,
            quantity=found.quantity,
            history=s.history.record(s.i, **record, step=jnp.zeros_like(s.cost), regularisation=s.reg),
        )
        return self._step(problem, s, found, closed)._replace(i=s.i + 1)

    def _step(self, problem: Problem, s: "_State", found: BackwardPass, closed: Array) -> "_State":
        """The step that the sweep found, or more regularisation where there is none; nothing where all is done."""
        total = jnp.sum(jnp.abs(found.gaps))
        need = found.down + jnp.maximum(found.bend, 0) / 2
        least = jnp.where((need > 0) & (total > 0), need / ((1 - MERIT_SHARE) * jnp.where(total > 0, total, 1)), 0)
        weight = jnp.maximum(s.weight, least)
        slope = found.down - weight * total
        enough = self._tolerance("decrease_tolerance", 0.9, problem.dtype)
        flat = found.definite & closed & (jnp.abs(slope) <= enough * jnp.abs(s.cost))
        rounding = ROUNDING * 10.0 ** -np.finfo(problem.dtype).precision
        slack = jnp.maximum(enough, rounding) * jnp.abs(s.cost)
        descends = found.definite & (slope < 0)

        # one problem alone need not try what it does not take
        trials = jnp.where(s.done | ~descends, 0, self.trials)
        tried = search(problem, s.ys, s.us, found, s.cost, slope, weight, slack, trials)
        better = tried.accepted
        length = jnp.where(better, tried.length, 0)
        promised = -length * (slope + length * found.bend / 2)
        brought = s.cost - tried.trial.cost + weight * total * length
        share = jnp.clip(jnp.where(promised > 0, brought / jnp.where(promised > 0, promised, 1), 1), 0, 1)
        change = jnp.where(length < 1, 1, jnp.maximum(1 / self.factor, 1 - (2 * share - 1) ** 3))
        calmer = jnp.where(s.reg * change < self.smallest, 0, s.reg * change)
        reg = jnp.where(better, calmer, jnp.maximum(s.reg * s.rate, self.least))
        reg = jnp.where(flat | s.done, s.reg, reg)
        lost = reg > self.largest
        ys, us, cost = where_last(better, tried.trial, Trial(s.ys, s.us, s.cost))
        return s._replace(
            # a first step that rounding hides from the cost still lowers the gradient
            done=s.done | (flat & (s.flat | ~better)) | lost,
            flat=flat,
            ys=ys,
            us=us,
            cost=cost,
            reg=reg,
            rate=jnp.where(better, self.growth, s.rate * self.growth),
            weight=weight,
            history=eqx.tree_at(lambda h: h.step, s.history, s.history.step.at[s.i].set(length)),
            code=RESULTS.where(lost & ~s.done, RESULTS.stalled, s.code),
        )

    def _tolerance(self, name: str, digits: float, dtype: Any) -> Any:
        """The tolerance given, or 10 to the minus that share of the digits of the dtype."""
        given = getattr(self, name)
        return 10.0 ** (-digits * np.finfo(dtype).precision) if given is None else given


class _State(NamedTuple):
    i: Array
    done: Array
    ys: Point
    us: Array
    cost: Array
    gradient: Array
    feasibility: Array
    reg: Array
    flat: Array
    rate: Array
    weight: Array
    gains: Array
    history: History
    code: RESULTS
    place: Array
    quantity: Array


def _unusable(problem: Problem, ys: Point, us: Array) -> tuple[Array, Array]:
    """(node, quantity) of what is not finite at the guess, or (-1, -1)."""
    end = problem.at_end().value(problem.time(problem.horizon), jax.tree.map(lambda y: y[-1], ys), None, problem.args)
    return first_nonfinite({
        0: (ys, 0), 1: (problem.running_values(ys, us), 0), 2: (end[None], problem.horizon)
    })  # fmt: skip
