"""Iterative LQR: the backward pass over a trajectory, the line search along its policy, and the iterations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float, Int

from lgsim._compile.linalg.dense import matvec
from lgsim._compile.xla import number_field, scan_last, where_last, while_last
from lgsim.lie.action import Point
from lgsim.optimize.linear_quadratic import (
    BackwardStep,
    CostToGo,
    LinearQuadratic,
    Node,
    add_curvature,
    all_finite,
    backward_step,
    bounded_backward_step,
    expected_change,
    linear_quadratic_at,
    linearize,
    nodes_of,
    regularized,
    split_nodes,
)
from lgsim.optimize.optimality import (
    FLOOR,
    Optimality,
    Promise,
    free_slopes,
    is_optimal,
    optimality,
    rounding_of_cost,
)
from lgsim.optimize.parallel_riccati import parallel_riccati, parallel_rollout_policy
from lgsim.optimize.problem import Problem
from lgsim.optimize.solver import (
    RESULTS,
    History,
    IterativeSolver,
    Solution,
    first_nonfinite,
    nonfinite_values,
    tolerance_of,
)
from lgsim.support import check

ARMIJO = 1e-4
"""Minimum fraction of the expected decrease for an accepted step (Armijo condition)."""
_SHORTER = 0.25
"""Ratio of consecutive step lengths in the line search."""
_MERIT_SHARE = 0.5
"""Excess of the weight of the gaps over the smallest one for which a step is a descent direction, relative."""

Place = tuple[Int[Array, ""], Int[Array, ""]]
"""(node, quantity) of the first value that is not finite, or (-1, -1)."""


class BackwardPass(NamedTuple):
    """A policy about a trajectory with its predicted change of the cost; the leading axis is time.

    Attributes:
        K: Gains of the policy ``du = K dx + k`` (H, m, n).
        k: Its feedforward terms (H, m).
        gaps: Gaps of the steps (H, n).
        definite: True if the policy is a minimum.
        linear: The predicted change of the cost for a step of length s is ``s linear + s^2 quadratic / 2``.
        slopes: Gradient of the cost with respect to the controls (H, m).
        bad_node: The node of the first gradient or step derivative that is not finite, else of the last Hessian that is
            not, else -1; for ``parallel_backward_pass`` the first one of any kind.
        bad_quantity: Index of the quantity, else -1; see ``first_nonfinite``.
    """

    K: Float[Array, "horizon m n"]
    k: Float[Array, "horizon m"]
    gaps: Float[Array, "horizon n"]
    definite: Bool[Array, ""]
    linear: Float[Array, ""]
    quadratic: Float[Array, ""]
    slopes: Float[Array, "horizon m"]
    bad_node: Int[Array, ""]
    bad_quantity: Int[Array, ""]

    @property
    def promise(self) -> Promise:
        """The predicted change of the cost for a full step."""
        return Promise(self.k, self.definite, -(self.linear + self.quadratic / 2), self.slopes)


def backward_pass(
    problem: Problem, ys: Point, us: Float[Array, "horizon m"], regularization: Float[Array, ""], exact: bool
) -> BackwardPass:
    """The policy of the linear-quadratic problem about a trajectory, which is built during its solution.

    Args:
        ys: States with the leading axis H + 1; they may have gaps.
        regularization: Factor of the mean of R's diagonal that is added to Quu.
        exact: True for exact second derivatives of least-squares costs instead of Gauss-Newton.
    """
    before, after = split_nodes(ys)
    xs = jnp.arange(problem.horizon), before, us, after

    def prepare(x: tuple) -> tuple[Node, Array, Array]:
        k, y, u, y_next = x
        return linear_quadratic_at(problem, k, y, u, y_next, exact), u, k

    end = problem.end_model(ys, exact)
    return _solved(problem, xs, prepare, end.hessian, end.gradient, problem.dynamics.block_sizes, regularization)


def second_order_backward_pass(
    problem: Problem, ys: Point, us: Float[Array, "horizon m"], regularization: Float[Array, ""], exact: bool
) -> BackwardPass:
    """The policy with second derivatives of steps and costs if that model has a minimum, otherwise without them.

    Source: Jacobson and Mayne 1970, Differential dynamic programming.
    """
    lq, costates = linearize(problem, ys, us, exact)
    newton = add_curvature(problem, ys, us, lq, costates, not exact)

    def solved(lq: LinearQuadratic) -> BackwardPass:
        return _solved(
            problem, (nodes_of(lq), us, jnp.arange(problem.horizon)), lambda x: x, lq.P, lq.p, None, regularization
        )

    first = solved(newton)
    # in a batch both are computed
    return jax.lax.cond(first.definite, lambda: first, lambda: solved(lq))


def parallel_backward_pass(
    problem: Problem, ys: Point, us: Float[Array, "horizon m"], regularization: Float[Array, ""], exact: bool
) -> BackwardPass:
    """The policy of ``backward_pass`` by associative scans over time; without bounds."""
    lq, costates = linearize(problem, ys, us, exact)
    policy = parallel_riccati(lq._replace(R=jax.vmap(regularized, (0, None))(lq.R, regularization)))
    linear, quadratic = expected_change(lq, *parallel_rollout_policy(lq, policy.K, policy.k))
    slope = lq.r + jnp.einsum("kij,ki->kj", lq.B, costates[1:])
    place = first_nonfinite({
        3: (jnp.concatenate([lq.q, lq.r], axis=1), 0), 4: ((lq.Q, lq.N, lq.R), 0), 5: (lq.A, 0), 6: (lq.B, 0)
    })  # fmt: skip
    place = _first(place, first_nonfinite({3: (lq.p[None], len(lq.q)), 4: (lq.P[None], len(lq.q))}))
    return BackwardPass(policy.K, policy.k, lq.c, policy.definite, linear, quadratic, slope, *place)


def _solved(
    problem: Problem,
    xs: Any,
    prepare: Callable[[Any], tuple[Node, Array, Array]],
    P: Float[Array, "n n"],
    p: Float[Array, " n"],
    block_sizes: Sequence[int] | None,
    regularization: Float[Array, ""],
) -> BackwardPass:
    """The backward Riccati recursion over the output of ``prepare``: (Node, control, index) of each step."""

    def back(ahead: CostToGo, x: tuple[Node, Array, Array]) -> tuple[CostToGo, tuple]:
        node, u, k = x
        if problem.bounded:
            lower, upper = problem.bounds_at(k)
            now, step = bounded_backward_step(ahead, node, regularization, lower - u, upper - u)
        else:
            now, step = backward_step(ahead, node, regularization)
        return now, (step, node.c)

    first, (steps, gaps) = scan_last(back, CostToGo.at_end(P, p, block_sizes), xs, prepare=prepare, reverse=True)
    definite = jnp.all(steps.definite)
    place = _nonfinite(steps, first, p)
    return BackwardPass(steps.K, steps.k, gaps, definite, first.linear, first.quadratic, steps.slope, *place)


def _nonfinite(steps: BackwardStep, first: CostToGo, p: Float[Array, " n"]) -> Place:
    """The first gradient or step derivative that is not finite; without any, the Hessian that is not."""
    derivatives = jnp.where(steps.finite_derivatives, jnp.zeros((), p.dtype), jnp.nan)
    place = first_nonfinite({quantity: (derivatives[:, i], 0) for i, quantity in enumerate((3, 5, 6))})
    place = _first(place, first_nonfinite({3: (p[None], len(derivatives))}))
    # it makes Vxx invalid there and at all previous nodes
    hessians = jnp.concatenate([all_finite(first.Vxx)[None], steps.finite_hessian])
    last = jnp.max(jnp.where(hessians, -1, jnp.arange(len(hessians))))
    return _first(place, (last, jnp.where(last < 0, -1, 4)))


def _first(a: Place, b: Place) -> Place:
    """The first location if it exists, else the second."""
    return jnp.where(a[0] < 0, b[0], a[0]), jnp.where(a[0] < 0, b[1], a[1])


class Trial(NamedTuple):
    """A trajectory after a step of given length.

    Attributes:
        ys: States with the leading axis H + 1.
        us: Controls (H, m).
    """

    ys: Point
    us: Float[Array, "horizon m"]
    cost: Float[Array, ""]


class LineSearch(NamedTuple):
    """The outcome of a line search.

    Attributes:
        trial: The last trial trajectory.
        length: Length of its step.
        accepted: True if it decreases the merit function sufficiently.
    """

    trial: Trial
    length: Float[Array, ""]
    accepted: Bool[Array, ""]


def _forward_pass(
    problem: Problem, ys: Point, us: Float[Array, "horizon m"], policy: BackwardPass, length: Float[Array, ""]
) -> Trial:
    """The trajectory with ``u + length k + K difference(y, y_new)``, whose gaps are ``1 - length`` of the previous
    ones.

    Args:
        policy: The policy, and the gaps of the steps.
        length: Length of the step, from 0 to 1.

    Source: Mastalli et al. 2020, Crocoddyl, sec. III (feasibility-driven DDP).
    """
    action = problem.dynamics.action
    before, _ = split_nodes(ys)

    def step(now: Point, node: tuple) -> tuple[Point, tuple[Point, Array]]:
        i, y, u, gap, K, k = node
        u = problem.clip_at(i, u + length * k + matvec(K, action.difference(y, now)))
        after = action.move((length - 1) * gap, problem.step(i, now, u))
        return after, (after, u)

    nodes = (jnp.arange(problem.horizon), before, us, policy.gaps, policy.K, policy.k)
    _, (rest, controls) = scan_last(step, problem.y0, nodes)
    states = jax.tree.map(lambda y, more: jnp.concatenate([y[None], more]), problem.y0, rest)
    return Trial(states, controls, problem.cost(states, controls))


def _line_search(
    problem: Problem,
    ys: Point,
    us: Float[Array, "horizon m"],
    policy: BackwardPass,
    cost: Float[Array, ""],
    slope: Float[Array, ""],
    weight: Float[Array, ""],
    slack: Float[Array, ""],
    trials: Int[Array, ""] | int,
) -> LineSearch:
    """The step of ``_forward_pass``, shortened until ``merit = cost + weight * sum |gaps|`` decreases sufficiently.

    Args:
        slope: Derivative of the merit with respect to the length at zero, negative.
        slack: Tolerance of the merit for rounding.
        trials: Maximum number of lengths; zero returns the trajectory itself.
    """
    total = jnp.sum(jnp.abs(policy.gaps))

    def attempt(length: Array) -> tuple[Trial, Array]:
        tried = _forward_pass(problem, ys, us, policy, length)
        merit = tried.cost + weight * (1 - length) * total
        # comparisons with a trial that is not finite are false
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
        length = jnp.where(tried == 0, length, _SHORTER * length)
        return (tried + 1, length, *attempt(length))

    first = (jnp.array(0), jnp.ones((), us.dtype), Trial(ys, us, cost), jnp.array(False))
    _, length, last, accepted = while_last(going, shorten, first)
    return LineSearch(last, length, accepted)


class ILQR(IterativeSolver):
    """Iterative LQR on a manifold, and differential dynamic programming.

    Each iteration builds a quadratic model of the problem about the trajectory, solves it by a Riccati recursion, and
    rolls out the nonlinear dynamics with the feedback. All is in tangent coordinates of the nodes, so that quaternions
    stay normalized.

    A guess of states need not satisfy the dynamics (multiple shooting): its gaps are part of the model, and a step of
    length s closes the fraction s of them. Bounds of the controls hold at every iteration by a projected Newton step at
    each node.

    Attributes:
        gradient_tolerance: Bound of the largest entry of the cost's gradient with respect to the controls without an
            active bound, in the unit of the cost over the unit of the controls. A trajectory is optimal if it satisfies
            this or decrease_tolerance. By default neither is given: then iterations continue while a step is predicted
            to decrease the cost by more than 1e-12 of it (2e-5 in float32), and ``optimality.is_optimal`` classifies
            the last trajectory.
        decrease_tolerance: Bound of ``Solution.optimality.decrement``.
        gap_tolerance: Bound of the largest gap; by default 1e-9 in float64 and 1e-4 in float32.
        exact_cost_hessian: Exact second derivatives of least-squares costs; by default Gauss-Newton.
        exact_hessian: Exact second derivatives of the steps and of all costs, as in differential dynamic programming,
            if the model with them has a minimum; otherwise without them.
        parallel: Solve the Riccati equation by an associative scan over time; not available with bounds.
        line_search_steps: Maximum number of step lengths in the line search: 1, 1/4, 1/16 and so on; if none is
            accepted, the regularization increases. Small numbers are best: a short step in a poor direction costs as
            much as a better direction.
        regularization: Initial regularization of the Hessian of the controls; like all of them relative to the mean of
            the running cost's second derivatives with respect to the controls of the same node, hence independent of
            units.
        reg_restart: The minimum regularization after a rejected step, unless that of the last full step was larger than
            the rejected one: then that is tried first.
        reg_min: Regularization below this value is set to zero, or to 1e-8 if the policy otherwise has no minimum. If a
            step is rejected then, regularizations a tenth as large are tried before zero from there on.
        reg_max: The regularization above which the solver fails.
        reg_increase: Factor of increase after a rejected step, which grows with consecutive rejections: reg_increase,
            reg_increase^2, ...
        reg_decrease: Maximum factor of decrease, applied if the cost decreases as predicted; after a shortened step the
            regularization is kept.

    Raises:
        ValueError: max_iterations or line_search_steps is less than 1.

    Source: Li and Todorov 2004, Iterative linear quadratic regulator design for nonlinear biological movement systems;
    Nielsen 1999, Damping parameter in Marquardt's method (the update of the regularization).
    """

    max_iterations: int = eqx.field(static=True, default=200)
    gradient_tolerance: float | None = None
    decrease_tolerance: float | None = None
    gap_tolerance: float | None = None
    exact_cost_hessian: bool = eqx.field(static=True, default=False)
    exact_hessian: bool = eqx.field(static=True, default=False)
    parallel: bool = eqx.field(static=True, default=False)
    line_search_steps: int = eqx.field(static=True, default=2)
    regularization: float = number_field(0.0)
    reg_restart: float = number_field(10.0)
    reg_min: float = number_field(1e-3)
    reg_max: float = number_field(1e16)
    reg_increase: float = number_field(4.0)
    reg_decrease: float = number_field(3.0)

    def __check_init__(self):
        check.count("max_iterations", self.max_iterations)
        check.count("line_search_steps", self.line_search_steps)

    @property
    def iteration_limit(self) -> int:
        return self.max_iterations

    @property
    def turns(self) -> int:
        # the last iteration takes no step: it evaluates the returned trajectory
        return self.max_iterations + 1

    def begin(self, problem: Problem, us: Float[Array, "horizon m"], ys: Point | None) -> _State:
        if self.parallel and problem.bounded:
            raise ValueError(
                "solver: the parallel Riccati solution does not support bounds of the controls; use parallel=False"
            )
        ys = problem.rollout(us) if ys is None else ys
        running, terminal = problem.running_values(ys, us), problem.terminal_value(ys)
        bad_node, bad_quantity = nonfinite_values(ys, running, terminal)
        result = RESULTS.where(bad_node < 0, RESULTS.successful, RESULTS.nonfinite_start)
        zero, cost = jnp.zeros((), problem.dtype), jnp.sum(running) + terminal
        n = problem.dynamics.action.dim
        return _State(
            i=jnp.array(0),
            done=bad_node >= 0,
            ys=ys,
            us=us,
            cost=cost,
            first_cost=cost,
            gradient=zero,
            feasibility=zero,
            optimality=Optimality(*(jnp.full_like(cost, jnp.inf) for _ in range(3)), complementarity=zero),
            reg=jnp.asarray(self.regularization, problem.dtype),
            reg_least=zero,
            reg_full=zero,
            reg_min=zero + self.reg_min,
            bent=jnp.array(False),
            optimal=jnp.array(False),
            flat=jnp.array(False),
            reg_growth=zero + self.reg_increase,
            weight=zero,
            gains=jnp.zeros((problem.horizon, problem.controls, n), problem.dtype),
            history=History.empty(self.max_iterations, problem.dtype),
            result=result,
            bad_node=bad_node,
            bad_quantity=bad_quantity,
        )

    def finish(self, problem: Problem, s: _State) -> Solution:
        return Solution(
            ts=problem.time(jnp.arange(problem.horizon + 1)),
            ys=s.ys,
            us=s.us,
            cost=s.cost,
            gradient=s.gradient,
            feasibility=s.feasibility,
            violation=jnp.zeros((), problem.dtype),
            gains=s.gains,
            optimality=s.optimality,
            history=s.history,
            iterations=jnp.minimum(s.i, self.max_iterations),
            result=RESULTS.where(s.done, s.result, RESULTS.max_iterations),
            bad_node=s.bad_node,
            bad_quantity=s.bad_quantity,
        )

    def iterate(self, problem: Problem, s: _State) -> _State:
        solve = (
            second_order_backward_pass
            if self.exact_hessian
            else parallel_backward_pass
            if self.parallel
            else backward_pass
        )
        policy = solve(problem, s.ys, s.us, s.reg, self.exact_cost_hessian)
        s = s._replace(
            gradient=jnp.max(jnp.abs(free_slopes(problem, s.us, policy.slopes))),
            feasibility=jnp.max(jnp.abs(policy.gaps)),
            optimality=optimality(problem, s.us, s.cost, s.first_cost, policy.promise),
        )
        closed = s.feasibility <= tolerance_of(self.gap_tolerance, 0.6, problem.dtype)
        last = s.i >= self.max_iterations
        if self.gradient_tolerance is None and self.decrease_tolerance is None:
            optimal = closed & is_optimal(s.optimality, s.reg)
            flat = optimal & (s.optimality.decrement <= self._least_decrease(problem))
            # a first step whose decrease of the cost is rounding still decreases the gradient
            still = s.optimality.decrement <= 10.0 ** -np.finfo(problem.dtype).precision
            ends = (flat & (s.flat | still)) | (optimal & last)
        else:
            optimal = flat = ends = closed & self._meets_tolerances(s)
        # a step of the dynamics from a guess of states may be not finite, such as an implicit step without a solution
        stuck = first_nonfinite({0: (policy.gaps, 1)})
        bad_node, bad_quantity = _first(stuck, (policy.bad_node, policy.bad_quantity))
        broken = bad_node >= 0
        ended = RESULTS.where(stuck[0] >= 0, RESULTS.nonfinite_start, RESULTS.nonfinite_derivative)
        row = {"cost": s.cost, "gradient": s.gradient, "feasibility": s.feasibility}
        s = s._replace(
            done=ends | broken,
            optimal=optimal,
            flat=flat,
            gains=where_last(policy.definite & ~broken, policy.K, s.gains),
            result=RESULTS.where(broken, ended, s.result),
            bad_node=bad_node,
            bad_quantity=bad_quantity,
            history=s.history.record(s.i, **row, step=jnp.zeros_like(s.cost), regularization=s.reg),
        )
        return self._step(problem, s, policy, closed, last)._replace(i=s.i + 1)

    def _meets_tolerances(self, s: _State) -> Bool[Array, ""]:
        """True if a trajectory satisfies a given tolerance."""
        met = jnp.array(False)
        if self.gradient_tolerance is not None:
            met = met | (s.gradient <= self.gradient_tolerance)
        if self.decrease_tolerance is not None:
            met = met | ((s.optimality.decrement <= self.decrease_tolerance) & (s.reg <= FLOOR))
        return met

    def _least_decrease(self, problem: Problem) -> Float[Array, ""] | float:
        """The decrement below which the iterations end."""
        return tolerance_of(self.decrease_tolerance, 0.8, problem.dtype)

    def _step(
        self, problem: Problem, s: _State, policy: BackwardPass, closed: Bool[Array, ""], last: Bool[Array, ""]
    ) -> _State:
        """Take a step along the policy, or increase the regularization if none is accepted; no change when done.

        Args:
            closed: True if there are no gaps.
            last: True to take no step.
        """
        total = jnp.sum(jnp.abs(policy.gaps))
        need = policy.linear + jnp.maximum(policy.quadratic, 0) / 2
        least = jnp.where((need > 0) & (total > 0), need / ((1 - _MERIT_SHARE) * jnp.where(total > 0, total, 1)), 0)
        weight = jnp.maximum(s.weight, least)
        slope = policy.linear - weight * total
        slack = rounding_of_cost(problem.dtype) * jnp.abs(s.cost)
        descends = policy.definite & (slope < 0)

        # a single problem can skip the unused branch
        trials = jnp.where(s.done | last | ~descends, 0, self.line_search_steps)
        tried = _line_search(problem, s.ys, s.us, policy, s.cost, slope, weight, slack, trials)
        better = tried.accepted
        length = jnp.where(better, tried.length, 0)
        expected = -length * (slope + length * policy.quadratic / 2)
        brought = s.cost - tried.trial.cost + weight * total * length
        share = jnp.clip(jnp.where(expected > 0, brought / jnp.where(expected > 0, expected, 1), 1), 0, 1)
        least_change = jnp.ones_like(share) / self.reg_decrease  # a Python float would be a float64 here
        change = jnp.where(length < 1, 1, jnp.maximum(least_change, 1 - (2 * share - 1) ** 3))
        # without regularization a policy may have no minimum
        reg_least = jnp.where(policy.definite | (s.reg > 0), s.reg_least, jnp.asarray(FLOOR, problem.dtype))
        # if only the regularization hides a decrease, try without it
        near = closed & (s.optimality.decrement * (1 + s.reg) <= self._least_decrease(problem)) & (s.reg > FLOOR)
        bent = ~better & (s.bent | (~policy.definite & (s.reg > 0) & (s.reg <= FLOOR)))
        saddle = near & bent
        less = jnp.where((s.reg * change < s.reg_min) | near, reg_least, s.reg * change)
        # zero may be too far from the regularization of the last full step
        below = ~better & (s.reg < s.reg_full)
        more = jnp.where(below, s.reg_full, jnp.maximum(s.reg * s.reg_growth, self.reg_restart))
        more = jnp.where(reg_least > s.reg, reg_least, more)
        reg = jnp.where(better | near, less, more)
        # an optimum is accepted for any regularization
        ends = s.done | (s.optimal & ~better) | saddle
        reg = jnp.where(ends | last, s.reg, reg)
        lost = reg > self.reg_max
        result = RESULTS.where(saddle & ~s.done, RESULTS.saddle, s.result)
        result = RESULTS.where(lost & ~ends, RESULTS.stalled, result)
        ys, us, cost = where_last(better, tried.trial, Trial(s.ys, s.us, s.cost))
        return s._replace(
            done=ends | lost,
            ys=ys,
            us=us,
            cost=cost,
            reg=reg,
            reg_least=reg_least,
            reg_full=jnp.where(length == 1, s.reg, s.reg_full),
            reg_min=jnp.where(below, 0.1 * s.reg_min, s.reg_min),
            bent=bent,
            reg_growth=jnp.where(better, self.reg_increase, s.reg_growth * self.reg_increase),
            weight=weight,
            history=eqx.tree_at(lambda h: h.step, s.history, s.history.step.at[s.i].set(length)),
            result=result,
        )


class _State(NamedTuple):
    """The state of ``ILQR``, with the fields of ``Solution``; its order is that of checkpoints.

    Attributes:
        first_cost: The cost of the guess.
        reg: The regularization of the next iteration.
        reg_least: The minimum regularization: zero, or the amount for which the policy has a minimum.
        reg_full: The regularization of the last full step.
        reg_min: The regularization below which it is set to zero: less than that of the solver after a rejected step
            with zero.
        bent: True if a policy had no minimum at this trajectory with almost no regularization.
        optimal: True if the trajectory before the last step is an optimum.
        flat: True if a step hardly decreases its cost.
        reg_growth: Factor of increase of the regularization if the next step is rejected.
    """

    i: Int[Array, ""]
    done: Bool[Array, ""]
    ys: Point
    us: Float[Array, "horizon m"]
    cost: Float[Array, ""]
    first_cost: Float[Array, ""]
    gradient: Float[Array, ""]
    feasibility: Float[Array, ""]
    optimality: Optimality
    reg: Float[Array, ""]
    reg_least: Float[Array, ""]
    reg_full: Float[Array, ""]
    reg_min: Float[Array, ""]
    bent: Bool[Array, ""]
    optimal: Bool[Array, ""]
    flat: Bool[Array, ""]
    reg_growth: Float[Array, ""]
    weight: Float[Array, ""]
    gains: Float[Array, "horizon m n"]
    history: History
    result: RESULTS
    bad_node: Int[Array, ""]
    bad_quantity: Int[Array, ""]
