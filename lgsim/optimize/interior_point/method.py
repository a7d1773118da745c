"""A primal-dual interior-point method with Riccati factorization, for hard constraints."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float

from lgsim._compile.linalg.dense import matvec
from lgsim._compile.xla import number_field, scan_last, where_last, while_last
from lgsim.lie.action import Point
from lgsim.optimize.constraint_rows import report_of, rows_of
from lgsim.optimize.constraints.penalties import Penalties
from lgsim.optimize.interior_point.barrier import (
    UNSEEN,
    Dual,
    Model,
    Sizes,
    State,
    TrialPoint,
    digits,
    disturbed,
    first_slacks,
    largest_violation,
    live_rows,
    masked_rows,
    moved_multipliers,
    newton_step,
    relative_violation,
    row_weights,
    search,
    sizes_about,
    tree_dot,
    tree_sum,
    violations_of,
)
from lgsim.optimize.interior_point.kkt import (
    Conditions,
    Factorization,
    Rows,
    added,
    condition_curvature,
    condition_values,
    control_bounds,
    factorize,
    pulled_back,
    stiffness_of,
)
from lgsim.optimize.interior_point.multipliers import (
    FirstOrder,
    first_order,
    least_squares_multipliers,
    live_derivatives,
)
from lgsim.optimize.linear_quadratic import (
    add_curvature,
    costates,
    linearize,
    split_nodes,
)
from lgsim.optimize.optimality import (
    FLOOR,
    Optimality,
    control_sizes,
    free_slopes,
    part_of,
    room_to_bounds,
    rounding_of_cost,
)
from lgsim.optimize.problem import Problem
from lgsim.optimize.solver import (
    RESULTS,
    History,
    IterativeSolver,
    Solution,
    first_nonfinite,
    nonfinite_values,
)
from lgsim.support import check

_NEAR = 10.0
"""Error of a barrier problem, relative to its barrier, below which the barrier is reduced."""
_FASTEST, _SLOWEST = 1.5, 0.2
"""The barrier is reduced to this power or this fraction of it, whichever is smaller (Waechter and Biegler)."""
_HELD = 0.02
"""Step length below which the barrier is increased again."""
_SHORT, _CLOSE = 0.2, 1e-2
"""Step fraction below which the regularization increases, if violations are at most this fraction of the rows' scales.
"""
_REG_FIRST = 1e-4
"""The first regularization above ``FLOOR``."""
_FAR = 0.1
"""Slack relative to its natural scale above which a row is far from active."""
_REST = 10
"""Number of iterations without a change of the cost after which the search ends."""
_LEAST_DUAL = 0.65
"""Dual regularization of least-squares multipliers, relative to the compliance of a row, as a fraction of the digits.
"""
_DISTURBANCE = 1e-6
"""Size of the arbitrary part of a step if the Hessian is not definite, relative to the controls."""


class InteriorPoint(IterativeSolver):
    """A primal-dual interior-point method for hard constraints.

    It is Newton's method on the Karush-Kuhn-Tucker conditions, with a barrier that keeps inequalities and bounds
    strictly feasible and tends to zero.

    For equalities ``c(w) = 0``, inequalities ``c(w) + s = 0`` with slacks s > 0 and multipliers z > 0, and steps
    ``y_{k+1} = F(y_k, u_k)`` with multipliers lambda, each iteration takes a Newton step for

        L_w = 0,   c = 0,   c + s = 0,   s z = mu,   F - y_{k+1} = 0

    Slacks are eliminated at each node, equalities by a small dual regularization, whose error is removed by sweeps of
    the method of multipliers. The remaining system is one Riccati recursion, so that the work is linear in the horizon.
    The Hessian of the Lagrangian is exact, including the curvature of steps and constraints; if it is not positive
    definite on the null space of the steps, the controls are regularized. A step keeps a fraction of every slack and
    multiplier. It is shortened until the merit function ``f - mu sum log s + sum nu |violations|`` decreases, with a
    weight for each row. This is multiple shooting: gaps of a guess of states are violations of the steps.

    The method is invariant to units: rows are scaled by their change per unit of cost. Optimality is decided by the
    residuals of the returned point, see ``Optimality``: constraints and steps hold, gradients times distances to the
    bounds and slacks times multipliers are small fractions of the cost, and the Hessian is definite. Rows of the first
    node that its control does not affect count as satisfied, and a control with equal bounds is fixed. Multipliers
    that the iterations do not determine, such as of joints that do not bound the time, are those of least squares. If
    the Hessian is not definite, a millionth of a step is arbitrary, to leave saddle points.

    Attributes:
        max_iterations: Maximum number of iterations.
        exact_hessian: True for the exact Hessian of the Lagrangian; false for Gauss-Newton of least-squares costs,
            without the curvature of steps and constraints.
        barrier: The initial barrier, summed over all rows, relative to the cost of the guess.
        line_search_steps: Maximum number of step lengths in the line search, each half of the previous one.
        sweeps: Number of solutions of each linear system: the first one and iterative refinements; by default 4 in
            float64 and 8 in float32.
        reg_increase: Factor of increase of the regularization of the controls.
        reg_max: The regularization above which the solver fails.

    Raises:
        ValueError: max_iterations, line_search_steps or sweeps is less than 1.

    Source: Waechter and Biegler 2006, On the implementation of an interior-point filter line-search algorithm for
    large-scale nonlinear programming, sec. 2 and 3.1; Nocedal and Wright, Numerical Optimization, 2nd ed., ch. 19 (the
    merit function); Powell 1978, A fast algorithm for nonlinearly constrained optimization calculations (its weights);
    Rao, Wright and Rawlings 1998, Application of interior-point methods to model predictive control (the Riccati
    equation).
    """

    max_iterations: int = eqx.field(static=True, default=200)
    exact_hessian: bool = eqx.field(static=True, default=True)
    barrier: float = number_field(0.1)
    line_search_steps: int = eqx.field(static=True, default=12)
    sweeps: int | None = eqx.field(static=True, default=None)
    reg_increase: float = number_field(8.0)
    reg_max: float = number_field(1e10)

    def __check_init__(self):
        check.count("max_iterations", self.max_iterations)
        check.count("line_search_steps", self.line_search_steps)
        if self.sweeps is not None:
            check.count("sweeps", self.sweeps)

    @property
    def handles_constraints(self) -> bool:
        return True

    @property
    def iteration_limit(self) -> int:
        return self.max_iterations

    @property
    def turns(self) -> int:
        # the last ones take no step: they evaluate the returned trajectory
        return self.max_iterations + 2

    def begin(self, problem: Problem, us: Float[Array, "horizon m"], ys: Point | None) -> State:
        if any(c.price.linear is not np.inf for c in problem.constraints):
            raise ValueError("solver: InteriorPoint does not support Soft constraints; use AugmentedLagrangian()")
        ys = problem.rollout(us) if ys is None else ys
        running, terminal = problem.running_values(ys, us), problem.terminal_value(ys)
        bad_node, bad_quantity = nonfinite_values(ys, running, terminal)
        zero, cost = jnp.zeros((), problem.dtype), jnp.sum(running) + terminal
        n, m, horizon = problem.dynamics.action.dim, problem.controls, problem.horizon
        values = condition_values(problem, ys, us)
        zeros = jax.tree.map(jnp.zeros_like, values)
        gaps = jnp.zeros((horizon, n), problem.dtype)
        return State(
            i=jnp.array(0),
            done=bad_node >= 0,
            resting=jnp.array(False),
            point=TrialPoint(ys, us, jax.tree.map(jnp.ones_like, values.less), cost),
            multipliers=Dual(zeros, gaps),
            weights=Dual(zeros, gaps),
            natural=Dual(zeros, gaps),
            live=live_rows(problem, values.less, values.equal, us),
            barrier=zero,
            scale=zero,
            first_cost=zero,
            reach=jnp.zeros(m, problem.dtype),
            reg=zero,
            boost=jnp.array(False),
            definite=jnp.array(False),
            decrement=zero + jnp.inf,
            step=zero + jnp.inf,
            gains=jnp.zeros((horizon, m, n), problem.dtype),
            history=History.empty(self.max_iterations, problem.dtype),
            result=RESULTS.where(bad_node < 0, RESULTS.successful, RESULTS.nonfinite_start),
            bad_node=bad_node,
            bad_quantity=bad_quantity,
        )

    def iterate(self, problem: Problem, s: State) -> State:
        first, last = s.i == 0, s.resting
        at, sizes, s = self._look(problem, s)
        small = digits(problem, 0.6)
        feasible = ~first & (jnp.maximum(at.violation, at.priced / sizes.whole) <= small)
        met = feasible & (at.gap <= small * sizes.whole)
        # without a change of the cost only the multipliers may be wrong
        still = (s.i >= _REST) & (jnp.ptp(_last_costs(s)) <= rounding_of_cost(problem.dtype) * sizes.whole)
        still = still & feasible & (at.gap <= digits(problem, 0.5) * sizes.whole)
        resting = still | (s.i >= self.max_iterations)
        met = met & (at.stationarity <= digits(problem, 0.55) * sizes.whole)
        s = s._replace(barrier=self._next_barrier(problem, s, at, sizes))
        F, reg = self._factorized(problem, s, at, sizes, met | last)
        broken = at.bad_node >= 0
        # an optimum whose Hessian is not definite, or a point that is not optimal
        ends = met & F.definite
        saddle = ends & (reg > FLOOR)
        # at a saddle point, as in a symmetric problem, the gradient gives no escape direction
        at = at._replace(gradient=disturbed(at.gradient, sizes, jnp.where(reg > FLOOR, _DISTURBANCE * (1 + reg), 0)))
        sweeps = (4 if problem.dtype == jnp.float64 else 8) if self.sweeps is None else self.sweeps
        step = newton_step(s, at, sizes, F, reg, sweeps)
        weights = jax.tree.map(lambda nu, m: jnp.maximum(jnp.abs(m), (nu + jnp.abs(m)) / 2), s.weights, step.dual)
        trials = jnp.where(ends | last | broken | ~F.definite | s.done | resting, 0, self.line_search_steps)
        found = search(problem, s, at, step, weights, trials)
        better = found.accepted
        lost = ~better & (reg * self.reg_increase > self.reg_max) & ~ends & ~resting
        result = RESULTS.where(lost, RESULTS.stalled, s.result)
        result = RESULTS.where(saddle, RESULTS.saddle, result)
        result = RESULTS.where(broken, RESULTS.nonfinite_derivative, result)
        length = jnp.where(better, found.length, 0)
        point = where_last(better, found.point, s.point)
        history = s.history.record(
            s.i, cost=s.point.cost, gradient=jnp.max(jnp.abs(at.slopes)), feasibility=at.largest, step=length,
            regularization=reg,
        )  # fmt: skip
        multipliers = _best_multipliers(problem, s, at, sizes, resting & ~last & ~ends & ~broken)
        shortened = (length < _SHORT * step.primal_length) & (reg > FLOOR) & (at.violation <= _CLOSE)
        reach = jnp.max(jnp.abs(step.primal.u), axis=0)
        return s._replace(
            i=s.i + 1,
            resting=resting,
            done=s.done | ends | lost | broken | last,
            point=point,
            multipliers=where_last(better, moved_multipliers(s, step, point.slacks, length), multipliers),
            weights=where_last(better, weights, s.weights),
            reach=where_last(F.definite, reach, s.reach),
            reg=jnp.where(reg > 0, reg, s.reg),
            boost=~better | shortened,
            definite=F.definite & (reg <= FLOOR),
            decrement=jnp.where(F.definite, part_of(jnp.abs(step.slope), sizes.whole), jnp.inf),
            step=jnp.where(F.definite, jnp.max(part_of(reach, jnp.max(sizes.control, axis=0))), jnp.inf),
            gains=where_last(F.definite, F.K, s.gains),
            history=history,
            result=result,
            bad_node=at.bad_node,
            bad_quantity=at.bad_quantity,
        )

    def _look(self, problem: Problem, s: State) -> tuple[Model, Sizes, State]:
        """Derivatives and residuals of a point, its scales, and the state with its first slacks and multipliers."""
        ys, us, _, _ = s.point
        lq, _ = linearize(problem, ys, us, self.exact_hessian)
        values = masked_rows(condition_values(problem, ys, us), s.live)
        derivatives = live_derivatives(problem, ys, us, s.live)
        sizes, s = sizes_about(problem, s, lq, values, derivatives)
        s = first_slacks(s, values.less, sizes, self.barrier)
        m, z = s.multipliers, s.multipliers.conditions.less
        pulls = [pulled_back(C, x) for C, x in zip(derivatives, m.conditions, strict=True)]
        costs = jnp.concatenate([lq.q, lq.r], axis=1), lq.p
        path, end = added(costs, *pulls)
        n = lq.A.shape[1]
        slopes = path[:, n:] + jnp.einsum("kij,ki->kj", lq.B, costates(lq.A, path[:, :n], end)[1:])
        slopes = slopes * sizes.free
        W, P = jnp.block([[lq.Q, lq.N], [jnp.swapaxes(lq.N, 1, 2), lq.R]]), lq.P
        if self.exact_hessian:
            following = jnp.concatenate([jnp.zeros((1, n), problem.dtype), m.gaps])
            bent = add_curvature(problem, ys, us, lq, following)
            W, P = jnp.block([[bent.Q, bent.N], [jnp.swapaxes(bent.N, 1, 2), bent.R]]), bent.P
            if problem.constraints:
                path_curvature, end_curvature = condition_curvature(problem, ys, us, m.conditions)
                W, P = W + path_curvature, P + end_curvature
        slacks = s.point.slacks
        misses = jax.tree.map(lambda c, x, on: jnp.where(on, c + x, 0), values.less, slacks, s.live.less)
        violations = Dual(Conditions(values.equal, misses), lq.c)
        bad_node, bad_quantity = first_nonfinite({
            3: (jnp.concatenate([lq.q, lq.r], axis=1), 0), 4: (W, 0), 5: (lq.A, 0), 6: (lq.B, 0)
        })  # fmt: skip
        look = Model(
            lq=lq, W=W, P=P, values=values, derivatives=derivatives, costs=costs, slopes=slopes,
            gradient=(path, end), violations=violations,
            stationarity=jnp.sum(jnp.abs(slopes) * sizes.control),
            gap=tree_dot(z, slacks),
            priced=tree_dot(jax.tree.map(jnp.abs, m), jax.tree.map(jnp.abs, violations)),
            violation=jnp.maximum(
                relative_violation(values, s.natural), jnp.max(part_of(jnp.abs(lq.c), s.natural.gaps))
            ),
            largest=jnp.maximum(largest_violation(values), jnp.max(jnp.abs(lq.c))),
            bad_node=bad_node, bad_quantity=bad_quantity,
        )  # fmt: skip
        return look, sizes, s

    def _next_barrier(self, problem: Problem, s: State, at: Model, sizes: Sizes) -> Float[Array, ""]:
        """The barrier of each row, reduced once its problem is solved accurately enough."""
        z, slacks = s.multipliers.conditions.less, s.point.slacks
        off = jax.tree.map(lambda z, x, on: jnp.where(on, jnp.abs(z * x - s.barrier), 0), z, slacks, s.live.less)
        # a violation costs its multiplier or, while that is unknown, the cost of removing it
        error = at.stationarity + at.priced + sizes.scale * at.violation**2 + tree_sum(off)
        least = 0.1 * digits(problem, 0.6) * sizes.whole / jnp.maximum(sizes.count, 1)
        faster = s.barrier * (s.barrier / s.first_cost) ** (_FASTEST - 1)
        lower = jnp.maximum(least, jnp.minimum(_SLOWEST * s.barrier, faster))
        near = (s.i > 0) & (error <= _NEAR * sizes.count * s.barrier)
        # slacks that became zero too early block progress: move them away from zero
        held = (s.i > 0) & ~s.boost & (s.history.step[s.i - 1] < _HELD)
        higher = jnp.minimum(s.barrier / _SLOWEST, self.barrier * s.first_cost / jnp.maximum(sizes.count, 1))
        barrier = jnp.where(held, jnp.maximum(higher, s.barrier), jnp.where(near, lower, s.barrier))
        return jnp.where(sizes.count > 0, barrier, 0)

    def _factorized(
        self, problem: Problem, s: State, at: Model, sizes: Sizes, final: Bool[Array, ""]
    ) -> tuple[Factorization, Float[Array, ""]]:
        """The factorization of the Newton matrix and its regularization: the first one for which it is definite."""
        W, P = at.W, at.P
        for C, w in zip(at.derivatives, row_weights(s, sizes), strict=True):
            path, end = stiffness_of(C, w)
            W, P = W + path, P + end
        n = at.lq.A.shape[1]

        def attempt(reg: Array) -> Factorization:
            more = jnp.pad(sizes.stiffness * reg, ((0, 0), (n, 0)))
            return factorize(at.lq.A, at.lq.B, W + jax.vmap(jnp.diag)(more), P, sizes.free)

        def going(tried: tuple[Array, Factorization]) -> Array:
            return ~tried[1].definite & (tried[0] < self.reg_max) & (at.bad_node < 0)

        def harder(tried: tuple[Array, Factorization]) -> tuple[Array, Factorization]:
            more = jnp.maximum(jnp.maximum(s.reg / 3, _REG_FIRST), tried[0] * self.reg_increase)
            reg = jnp.where(tried[0] < FLOOR, jnp.asarray(FLOOR, W.dtype), more)
            return reg, attempt(reg)

        reg = jnp.where(s.boost & ~final, jnp.maximum(s.reg * self.reg_increase, _REG_FIRST), 0)
        reg, factorization = while_last(going, harder, (reg, attempt(reg)))
        return factorization, reg

    def finish(self, problem: Problem, s: State) -> Solution:
        slacks = s.point.slacks
        z = s.multipliers.conditions.less
        # a multiplier that is only the barrier over the slack of an inactive row
        far = jax.tree.map(lambda x, w: x > _FAR * w, slacks, s.natural.conditions.less)
        z = jax.tree.map(lambda z, far: jnp.where(far, 0, z), z, far)
        stiffness = jax.tree.map(lambda w: s.scale / jnp.where(w > 0, w, 1) ** 2, s.natural.conditions)
        close = jax.tree.map(
            lambda z, x, k, w: (z > k * x) & (x <= digits(problem, 0.5) * w),
            z, slacks, stiffness.less, s.natural.conditions.less,
        )  # fmt: skip
        ys, us = _onto_bounds(problem, s, close.path)
        cost = problem.cost(ys, us)
        whole = jnp.abs(cost) + UNSEEN * s.first_cost
        values = masked_rows(condition_values(problem, ys, us), s.live)
        first, gaps = first_order(problem, ys, us, s.live)
        own = Conditions(s.multipliers.conditions.equal, z)
        conditions, slopes, potential, left = _returned_multipliers(problem, s, us, first, values, own, whole)
        optimality = Optimality(s.decrement, s.step, potential, _complementarity(values, conditions, stiffness))
        met = relative_violation(values, s.natural) <= digits(problem, 0.55)
        closed = jnp.max(part_of(jnp.abs(gaps), s.natural.gaps)) <= digits(problem, 0.55)
        priced = tree_dot(jax.tree.map(jnp.abs, conditions), violations_of(values))
        met = met & (priced <= digits(problem, 0.5) * whole)
        best = (potential <= digits(problem, 0.5)) & (left <= digits(problem, 0.5))
        ended = RESULTS.where(s.result == RESULTS.successful, RESULTS.stalled, s.result)
        ended = RESULTS.where(s.done, ended, RESULTS.max_iterations)
        ended = RESULTS.where(best & closed & s.definite, RESULTS.successful, ended)
        result = RESULTS.where(met, ended, RESULTS.constraints_violated)
        penalties = _penalties(problem, conditions, stiffness, close) if problem.constraints else None
        return Solution(
            ts=problem.time(jnp.arange(problem.horizon + 1)),
            ys=ys,
            us=us,
            cost=cost,
            gradient=jnp.max(jnp.abs(slopes)),
            feasibility=jnp.max(jnp.abs(gaps)),
            violation=largest_violation(values),
            gains=s.gains,
            optimality=optimality,
            history=s.history,
            iterations=jnp.minimum(s.i, self.max_iterations),
            result=RESULTS.where(s.bad_node >= 0, s.result, result),
            bad_node=s.bad_node,
            bad_quantity=s.bad_quantity,
            multipliers=penalties,
            constraints=None
            if penalties is None
            else report_of(problem, rows_of(problem, ys, us, penalties), cost, False),
        )


def _best_multipliers(problem: Problem, s: State, at: Model, sizes: Sizes, wanted: Bool[Array, ""]) -> Dual:
    """The multipliers with the smaller residual: those of the iterations, or if wanted those of least squares.

    A point is optimal if any multipliers satisfy the conditions. In directions that do not change the cost, such as of
    joints that do not bound the time, those of the iterations converge slowly.
    """
    first, own, slacks = FirstOrder(at.lq.A, at.lq.B, at.costs, at.derivatives), s.multipliers, s.point.slacks
    control = jnp.where(sizes.control > 0, sizes.control, jnp.maximum(control_sizes(problem, s.point.us), s.reach))
    found = least_squares_multipliers(
        first, slacks, s.live, own.conditions, control * sizes.free, digits(problem, _LEAST_DUAL), wanted
    )
    slopes, gaps = first.reduced(found)
    residual = jnp.sum(jnp.abs(slopes * sizes.free) * sizes.control) + tree_dot(found.less, slacks)
    return where_last(wanted & (residual < at.stationarity + at.gap), Dual(found, gaps), own)


def _last_costs(s: State) -> Float[Array, " rows"]:
    """The costs of the last iterations."""
    rows = jnp.maximum(s.i - 1 - jnp.arange(_REST), 0)
    return jnp.append(s.history.cost[rows], s.point.cost)


def _returned_multipliers(
    problem: Problem,
    s: State,
    us: Float[Array, "horizon m"],
    first: FirstOrder,
    values: Conditions,
    own: Conditions,
    whole: Float[Array, ""],
) -> tuple[Conditions, Float[Array, "horizon m"], Float[Array, ""], Float[Array, ""]]:
    """(multipliers, gradient of the Lagrangian with respect to the free controls, potential, slacks times multipliers).

    With controls on their bounds the point is not quite that of the iterations: where their multipliers do not satisfy
    the conditions there, those of least squares may.
    """
    slacks = jax.tree.map(lambda c: jnp.maximum(-c, 0), values.less)
    lower, upper = control_bounds(problem)
    sizes = jnp.where(upper > lower, jnp.maximum(control_sizes(problem, us), s.reach), 0)

    def residuals(found: Conditions) -> tuple[Array, Array, Array]:
        # bounds of the controls are part of the potential
        rows = _without_bounds(problem, found)
        slopes = free_slopes(problem, us, first.reduced(rows)[0])
        potential = part_of(_potential(problem, us, s.reach, slopes), whole)
        return slopes, potential, part_of(tree_dot(rows.less, slacks), whole)

    ours = residuals(own)
    wanted = (ours[1] > digits(problem, 0.5)) | (ours[2] > digits(problem, 0.5))
    other = least_squares_multipliers(first, slacks, s.live, own, sizes, digits(problem, _LEAST_DUAL), wanted)
    theirs = residuals(other)
    return where_last(theirs[1] + theirs[2] < ours[1] + ours[2], (other, *theirs), (own, *ours))


def _potential(
    problem: Problem, us: Float[Array, "horizon m"], reach: Float[Array, " m"], slopes: Float[Array, "horizon m"]
) -> Float[Array, ""]:
    """Gradient times the distance to the bounds, or without a bound times the largest absolute value of the control."""
    size = jnp.broadcast_to(jnp.maximum(jnp.max(jnp.abs(us), axis=0), reach)[None], us.shape)
    if problem.bounded:
        below, above = room_to_bounds(problem, us)
        way = jnp.where(slopes > 0, below, above)
        size = jnp.where(jnp.isfinite(way), way, size)
    return jnp.sum(jnp.abs(slopes) * size)


def _onto_bounds(
    problem: Problem, s: State, close: Bool[Array, "horizon rows"]
) -> tuple[Point, Float[Array, "horizon m"]]:
    """The rollout of the dynamics with controls on their active bounds, if it satisfies all constraints, else the
    original trajectory.

    The other controls follow the feedback of the Newton step, which stabilizes stiff constraints.
    """
    ys, us = s.point.ys, s.point.us
    near = us
    if problem.bounded:
        lower, upper = control_bounds(problem)
        below, above = jnp.split(close[:, -2 * us.shape[1] :], 2, axis=1)
        near = jnp.where(below, lower, jnp.where(above, upper, us))

    def step(y: Point, node: tuple) -> tuple[Point, tuple[Point, Array]]:
        k, before, u, fixed, K = node
        back = u + matvec(K, problem.dynamics.action.difference(before, y))
        back = jnp.where(fixed == u, back, fixed)
        after = problem.step(k, y, back)
        return after, (after, back)

    ks = jnp.arange(problem.horizon)
    _, (rest, controls) = scan_last(step, problem.y0, (ks, split_nodes(ys)[0], us, near, s.gains))
    states = jax.tree.map(lambda y, more: jnp.concatenate([y[None], more]), problem.y0, rest)
    controls = problem.clip(controls)
    kept = relative_violation(masked_rows(condition_values(problem, states, controls), s.live), s.natural)
    return where_last(kept <= digits(problem, 0.55), (states, controls), (ys, problem.clip(us)))


def _without_bounds(problem: Problem, multipliers: Conditions) -> Conditions:
    """The multipliers with zero ones of the bounds of the controls."""
    if not problem.bounded:
        return multipliers
    less = multipliers.less
    path = less.path.at[:, less.path.shape[1] - 2 * problem.controls :].set(0)
    return multipliers._replace(less=less._replace(path=path))


def _penalties(problem: Problem, multipliers: Conditions, stiffness: Conditions, close: Rows) -> Penalties:
    """The multipliers of the constraints, by constraint; their penalty is the mean stiffness of the active rows."""
    at = {"path": [0, 0], "end": [0, 0]}
    found: dict[str, list[Array]] = {"path": [], "end": []}
    y0, u0 = problem.y0, jnp.zeros(problem.controls, problem.dtype)
    for c in problem.constraints:
        rows = eqx.filter_eval_shape(c.value, problem.t0, y0, u0 if c.on_path else None, problem.args).shape[0]
        kind = 0 if c.equality else 1
        for place, there in (("path", c.on_path), ("end", c.at_end)):
            if there:
                numbers = getattr(multipliers[kind], place)
                found[place].append(numbers[..., at[place][kind] : at[place][kind] + rows])
                at[place][kind] += rows
    bounds = 2 * problem.controls if problem.bounded else 0
    less = close._replace(path=close.path[:, : close.path.shape[1] - bounds])
    stiff = stiffness.less._replace(path=stiffness.less.path[:, : less.path.shape[1]])
    active = jnp.concatenate([jnp.ones_like(x, bool).ravel() for x in stiffness.equal] + [x.ravel() for x in less])
    logs = jnp.log(jnp.concatenate([x.ravel() for x in (*stiffness.equal, *stiff)]))
    # without an active row, all of them
    active = active | ~jnp.any(active)
    weight = jnp.exp(jnp.sum(jnp.where(active, logs, 0)) / jnp.sum(active.astype(logs.dtype)))
    return Penalties(tuple(found["path"]), tuple(found["end"]), weight)


def _complementarity(values: Conditions, multipliers: Conditions, stiffness: Conditions) -> Float[Array, ""]:
    """The largest ``|c|`` of equalities and ``|max(c, -z / k)|`` of inequalities, where k is the stiffness of a row."""
    less = jax.tree.map(lambda c, z, k: jnp.abs(jnp.maximum(c, -z / k)), values.less, multipliers.less, stiffness.less)
    return largest_violation(Conditions(values.equal, less))
