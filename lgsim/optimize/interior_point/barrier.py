"""Newton step of a barrier problem and its line search, invariant to units: the core of the interior-point method."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float, Int

from lgsim._compile.xla import while_last
from lgsim.integrators.method import Number
from lgsim.lie.action import Point
from lgsim.optimize.interior_point.kkt import (
    Conditions,
    Factorization,
    Rows,
    Step,
    compliance,
    condition_values,
    control_bounds,
    node_values,
    pushed,
    refined,
    row_compliance,
    rows_that_hold,
)
from lgsim.optimize.linear_quadratic import (
    LinearQuadratic,
    costates,
    split_nodes,
)
from lgsim.optimize.optimality import part_of, rounding_of_cost
from lgsim.optimize.problem import Problem
from lgsim.optimize.solver import (
    RESULTS,
    History,
    tolerance_of,
)

_ARMIJO = 1e-4
"""Minimum fraction of the expected decrease for an accepted step (Armijo condition)."""
_SHORTER = 0.5
"""Ratio of consecutive step lengths in the line search."""
_FIRST_SLACK = 0.01
"""The smallest slack of the guess, relative to the natural scale of its row."""
_BAND = 1e10
"""Largest ratio of slack times multiplier to the barrier, and of its inverse."""
_KEPT = 0.995
"""Smallest fraction of a slack or multiplier that remains after a step (fraction to the boundary)."""
_DUAL = 0.45
"""Dual regularization relative to the compliance of a row, as a fraction of the digits."""
UNSEEN = 1e-10
"""Fraction of the initial cost that serves as a scale if the cost itself approaches zero."""


class TrialPoint(NamedTuple):
    """A trajectory with the slacks of its inequalities."""

    ys: Point
    us: Float[Array, "horizon m"]
    slacks: Rows
    cost: Float[Array, ""]


class Dual(NamedTuple):
    """Multipliers of all constraints.

    Attributes:
        gaps: Multipliers of the steps (H, n).
    """

    conditions: Conditions
    gaps: Float[Array, "horizon n"]


class State(NamedTuple):
    """The state of ``InteriorPoint``; its order is that of checkpoints.

    Attributes:
        resting: True if the next pass is the last one, without a step and with the best multipliers.
        weights: Weights of the violations in the merit function.
        natural: Scales of the rows' values, equal at all nodes.
        live: Mask of the rows that are constraints: with a finite bound, a control that is not fixed, and a dependence
            on controls.
        barrier: The target of the product of each slack and its multiplier.
        scale: The scale of the cost.
        first_cost: The scale of the guess.
        reach: Largest change of each control in the last Newton step (m,).
        reg: The last nonzero regularization.
        boost: True if the last step was rejected or cut short.
        definite: True if the Hessian of the last iteration was positive definite with almost no regularization.
        decrement: Predicted decrease of the last Newton step, relative to the cost.
        step: Its size, relative to the controls.
    """

    i: Int[Array, ""]
    resting: Bool[Array, ""]
    done: Bool[Array, ""]
    point: TrialPoint
    multipliers: Dual
    weights: Dual
    natural: Dual
    live: Conditions
    barrier: Float[Array, ""]
    scale: Float[Array, ""]
    first_cost: Float[Array, ""]
    reach: Float[Array, " m"]
    reg: Float[Array, ""]
    boost: Bool[Array, ""]
    definite: Bool[Array, ""]
    decrement: Float[Array, ""]
    step: Float[Array, ""]
    gains: Float[Array, "horizon m n"]
    history: History
    result: RESULTS
    bad_node: Int[Array, ""]
    bad_quantity: Int[Array, ""]


class Sizes(NamedTuple):
    """The scales of a point.

    Attributes:
        control: Half of the range of each control, or its largest absolute value (H, m).
        free: 1 for controls whose bounds differ (H, m).
        stiffness: Second derivatives of the cost with respect to the controls, bounded below by a value from its scale
            (H, m).
        dual: Dual regularization of the rows.
        scale: The scale of the cost.
        whole: The cost to which tolerances are relative.
        count: Number of inequalities.
    """

    control: Float[Array, "horizon m"]
    free: Float[Array, "horizon m"]
    stiffness: Float[Array, "horizon m"]
    dual: Conditions
    scale: Float[Array, ""]
    whole: Float[Array, ""]
    count: Float[Array, ""]


class Model(NamedTuple):
    """Derivatives and residuals of a point.

    Attributes:
        W: Hessians of the Lagrangian at the nodes (H, n + m, n + m).
        P: The Hessian at the end (n, n).
        costs: Gradients of the costs, at the nodes and at the end.
        gradient: The same with constraints times their multipliers.
        slopes: Gradient of the Lagrangian with respect to the controls (H, m).
        stationarity: Gradient times scales of the controls.
        gap: Sum of slacks times multipliers.
        priced: Violations times multipliers.
        violation: Largest violation, relative to its natural scale.
        largest: Largest violation.
    """

    lq: LinearQuadratic
    W: Float[Array, "horizon nz nz"]
    P: Float[Array, "n n"]
    values: Conditions
    derivatives: Conditions
    costs: tuple[Array, Array]
    gradient: tuple[Array, Array]
    slopes: Float[Array, "horizon m"]
    violations: Dual
    stationarity: Float[Array, ""]
    gap: Float[Array, ""]
    priced: Float[Array, ""]
    violation: Float[Array, ""]
    largest: Float[Array, ""]
    bad_node: Int[Array, ""]
    bad_quantity: Int[Array, ""]


class NewtonStep(NamedTuple):
    """The Newton step.

    Attributes:
        primal: Changes of states and controls.
        slacks: Changes of the slacks.
        dual: The multipliers after a full step.
        slope: Derivative of the cost and its barrier with respect to the length.
        primal_length: Longest step that keeps a fraction of all slacks, at most 1.
        dual_length: The same for the multipliers of inequalities.
    """

    primal: Step
    slacks: Rows
    dual: Dual
    slope: Float[Array, ""]
    primal_length: Float[Array, ""]
    dual_length: Float[Array, ""]


class Trial(NamedTuple):
    """The last trial point, its step length, and True if it decreases the merit function sufficiently."""

    point: TrialPoint
    length: Float[Array, ""]
    accepted: Bool[Array, ""]


def sizes_about(
    problem: Problem, s: State, lq: LinearQuadratic, values: Conditions, derivatives: Conditions
) -> tuple[Sizes, State]:
    """The scales about a point, and the state with the scales that it stores."""
    us, first = s.point.us, s.i == 0
    size = jnp.broadcast_to(jnp.maximum(jnp.max(jnp.abs(us), axis=0), s.reach)[None], us.shape)
    free = jnp.ones_like(us)
    lower, upper = control_bounds(problem)
    if problem.bounded:
        free = (upper > lower).astype(us.dtype)
        size = jnp.where(jnp.isfinite(upper - lower), (upper - lower) / 2, size)
    count = tree_sum(jax.tree.map(lambda on: on.astype(us.dtype), s.live.less))
    slopes = lq.r + jnp.einsum("kij,ki->kj", lq.B, costates(lq.A, lq.q, lq.p)[1:])
    scale = jnp.abs(s.point.cost) + jnp.where(first, jnp.sum(jnp.abs(slopes) * size * free), count * s.barrier)
    stiffness = jnp.maximum(jnp.diagonal(lq.R, axis1=1, axis2=2), 0)
    stiffness = stiffness + jnp.where(size > 0, scale / (us.size * jnp.where(size > 0, size, 1) ** 2), 0)
    stiffness = jnp.where(stiffness > 0, stiffness, 1)
    states = compliance(lq.A, lq.B, free / stiffness)
    compliances = Conditions(*(row_compliance(C, states, free / stiffness) for C in derivatives))
    # the cost of satisfying a row, if it were the only one
    violated = Conditions(values.equal, jax.tree.map(lambda c: jnp.maximum(c, 0), values.less))
    price = jax.tree.map(lambda c, d: jnp.where(d > 0, c * c / jnp.where(d > 0, d, 1), 0), violated, compliances)
    scale = scale + jnp.where(first, tree_max(scale, price), 0)
    scale = jnp.where(scale > 0, scale, 1)
    first_cost = jnp.where(first, scale, s.first_cost)
    # relative to a cost that an infeasible problem has increased, every violation is small
    normal = jnp.minimum(scale, first_cost)
    natural = jax.tree.map(lambda d: jnp.sqrt(d * normal), compliances)
    natural = Conditions(*(Rows(jnp.zeros_like(x.path) + jnp.max(x.path, axis=0)[None], x.end) for x in natural))
    if problem.bounded:
        width = jnp.concatenate([upper - lower, upper - lower], axis=1)
        at = natural.less.path.shape[1] - width.shape[1]
        bounds = jnp.where(jnp.isfinite(width), width, natural.less.path[:, at:])
        natural = natural._replace(less=natural.less._replace(path=natural.less.path.at[:, at:].set(bounds)))
    motion = jax.vmap(problem.dynamics.action.difference, (None, 0))(problem.y0, s.point.ys)
    moved = jnp.sqrt(jnp.diagonal(states, axis1=1, axis2=2) * normal)
    gaps = jnp.maximum(jnp.max(jnp.abs(motion), axis=0), jnp.max(moved, axis=0))
    dual = jax.tree.map(lambda d: digits(problem, _DUAL) * d, compliances)
    whole = jnp.abs(s.point.cost) + UNSEEN * first_cost
    sizes = Sizes(size, free, stiffness, dual, scale, whole, count)
    natural = Dual(natural, jnp.broadcast_to(gaps[None], lq.c.shape))
    return sizes, s._replace(natural=natural, scale=scale, first_cost=first_cost)


def first_slacks(s: State, less: Rows, sizes: Sizes, barrier: Number) -> State:
    """The state with slacks and multipliers of inequalities in its first iteration."""
    first = s.i == 0
    mu = jnp.where(first, barrier * sizes.scale / jnp.maximum(sizes.count, 1), s.barrier)

    def slack(old: Array, c: Array, size: Array, live: Array) -> Array:
        return jnp.where(first & live, jnp.maximum(-c, jnp.where(size > 0, _FIRST_SLACK * size, 1)), old)

    slacks = jax.tree.map(slack, s.point.slacks, less, s.natural.conditions.less, s.live.less)
    z = s.multipliers.conditions.less
    z = jax.tree.map(lambda z, x, live: jnp.where(first & live, mu / x, z), z, slacks, s.live.less)
    multipliers = Dual(Conditions(s.multipliers.conditions.equal, z), s.multipliers.gaps)
    return s._replace(point=s.point._replace(slacks=slacks), multipliers=multipliers, barrier=mu)


def row_weights(s: State, sizes: Sizes) -> Conditions:
    """The stiffness of rows in the Newton matrix: the inverse of s / z (zero for equalities) plus the dual
    regularization.
    """
    soft_rows = softness(s)
    return jax.tree.map(
        lambda soft, dual, on: jnp.where(on & (soft + dual > 0), 1 / jnp.where(soft + dual > 0, soft + dual, 1), 0),
        soft_rows, sizes.dual, s.live,
    )  # fmt: skip


def softness(s: State) -> Conditions:
    """``s / z`` for inequalities, zero for equalities."""
    equal, z = s.multipliers.conditions
    soft = jax.tree.map(lambda x, z, on: jnp.where(on, x / jnp.where(on, z, 1), 0), s.point.slacks, z, s.live.less)
    return Conditions(jax.tree.map(jnp.zeros_like, equal), soft)


def newton_step(s: State, at: Model, sizes: Sizes, F: Factorization, reg: Float[Array, ""], sweeps: int) -> NewtonStep:
    """The Newton step for a factorization and the barrier of a state.

    The equations of the slacks are ``C d + ds = -(c + s)`` and ``s dz + z ds = mu - s z``. Elimination of ds gives ``C
    d - (s / z) dz = -(c + mu / z)`` for each row, and ``C d = -c`` for an equality. The matrix also contains the dual
    regularization; iterative refinement uses the residual of the equations without it as the next right-hand side.
    """
    conditions, slacks, live, mu = s.multipliers.conditions, s.point.slacks, s.live.less, s.barrier
    weights, soft_rows = row_weights(s, sizes), softness(s)
    values = Conditions(
        at.values.equal,
        jax.tree.map(
            lambda c, z, on: jnp.where(on, c + mu / jnp.where(on, z, 1), 0), at.values.less, conditions.less, live
        ),
    )
    change, step = refined(
        F, at.derivatives, weights, soft_rows, values, at.gradient, (at.W, at.P, reg * sizes.stiffness), at.lq.c, sweeps
    )
    misses = at.violations.conditions.less
    ds = jax.tree.map(lambda r, a, on: jnp.where(on, -r - a, 0), misses, pushed(at.derivatives.less, step), live)
    dual, dz = jax.tree.map(jnp.add, conditions, change), change.less
    moves = jnp.concatenate([step.x[:-1], step.u], axis=1)
    slope = jnp.sum(at.costs[0] * moves) + at.costs[1] @ step.x[-1]
    slope = slope - mu * tree_sum(jax.tree.map(jnp.divide, ds, slacks))
    keep = jnp.maximum(1 - mu * sizes.count / sizes.scale, jnp.asarray(_KEPT, mu.dtype))
    return NewtonStep(
        step,
        ds,
        Dual(dual, step.costates[1:]),
        slope,
        longest_step(slacks, ds, keep),
        longest_step(conditions.less, dz, keep),
    )


def disturbed(
    gradient: tuple[Array, Array], sizes: Sizes, share: Float[Array, ""]
) -> tuple[Float[Array, "horizon nz"], Float[Array, " n"]]:
    """The gradient plus an arbitrary perturbation with respect to the controls, relative to their curvature times
    scale.
    """
    path, end = gradient
    shape = sizes.control.shape
    index = jnp.arange(sizes.control.size, dtype=path.dtype).reshape(shape)
    # a deterministic sequence without a pattern
    size = jnp.where(sizes.control > 0, sizes.control, jnp.sqrt(sizes.scale / sizes.stiffness))
    more = share * jnp.cos(index * index * 0.7) * sizes.stiffness * size
    return path.at[:, path.shape[1] - shape[1] :].add(more), end


def longest_step(x: Rows, dx: Rows, share: Float[Array, ""]) -> Float[Array, ""]:
    """The largest step length up to 1 that takes at most a given fraction of each positive entry."""
    length = jnp.ones_like(share)
    for a, d in zip(jax.tree.leaves(x), jax.tree.leaves(dx), strict=True):
        if a.size:
            length = jnp.minimum(length, jnp.min(jnp.where(d < 0, -share * a / jnp.where(d < 0, d, 1), 1)))
    return length


def moved_multipliers(s: State, step: NewtonStep, slacks: Rows, length: Float[Array, ""]) -> Dual:
    """The multipliers after a step; those of inequalities stay in a band about the barrier over the new slacks."""
    move = lambda m, new, a: m + a * (new - m)  # noqa: E731
    (y, z), mu = s.multipliers.conditions, s.barrier

    def inside(z: Array, new: Array, x: Array, live: Array) -> Array:
        moved = jnp.clip(move(z, new, step.dual_length), mu / (_BAND * x), _BAND * mu / x)
        return jnp.where(live, moved, 0)

    y = jax.tree.map(lambda m, new: move(m, new, length), y, step.dual.conditions.equal)
    z = jax.tree.map(inside, z, step.dual.conditions.less, slacks, s.live.less)
    return Dual(Conditions(y, z), move(s.multipliers.gaps, step.dual.gaps, length))


def search(
    problem: Problem, s: State, at: Model, step: NewtonStep, weights: Dual, trials: Int[Array, ""] | int
) -> Trial:
    """The step, shortened until ``cost - barrier sum log s + weights . |violations|`` decreases sufficiently."""
    action, live = problem.dynamics.action, s.live
    ks = jnp.arange(problem.horizon)

    def barrier(slacks: Rows) -> Array:
        return -s.barrier * tree_sum(jax.tree.map(lambda x, on: jnp.where(on, jnp.log(x), 0), slacks, live.less))

    def penalty(violations: Dual) -> Array:
        return tree_dot(weights, jax.tree.map(jnp.abs, violations))

    priced, logs = penalty(at.violations), barrier(s.point.slacks)
    merit, slope = s.point.cost + logs + priced, step.slope - priced
    rounding = 10 * rounding_of_cost(problem.dtype) * (jnp.abs(s.point.cost) + jnp.abs(logs) + priced)

    def attempt(length: Array) -> tuple[TrialPoint, Array]:
        ys = jax.vmap(action.move)(length * step.primal.x, s.point.ys)
        us = s.point.us + length * step.primal.u
        values = masked_rows(condition_values(problem, ys, us), live)
        # a slack is at least the margin of its row
        slacks = jax.tree.map(
            lambda x, dx, c, on: jnp.where(on, jnp.maximum(x + length * dx, -c), x),
            s.point.slacks, step.slacks, values.less, live.less,
        )  # fmt: skip
        misses = jax.tree.map(lambda c, x, on: jnp.where(on, c + x, 0), values.less, slacks, live.less)
        before, after = split_nodes(ys)
        gaps = jax.vmap(lambda k, y, u, to: action.difference(to, problem.step(k, y, u)))(ks, before, us, after)
        cost = problem.cost(ys, us)
        reached = cost + barrier(slacks) + penalty(Dual(Conditions(values.equal, misses), gaps))
        enough = jnp.isfinite(reached) & (reached <= merit + _ARMIJO * length * slope + rounding)
        return TrialPoint(ys, us, slacks, cost), enough

    def going(tried: tuple[Array, Array, TrialPoint, Array]) -> Array:
        return ~tried[3] & (tried[0] < trials)

    def shorten(tried: tuple[Array, Array, TrialPoint, Array]) -> tuple[Array, Array, TrialPoint, Array]:
        length = jnp.where(tried[0] == 0, tried[1], _SHORTER * tried[1])
        return (tried[0] + 1, length, *attempt(length))

    first = jnp.array(0), step.primal_length, s.point, jnp.array(False)
    _, length, point, accepted = while_last(going, shorten, first)
    return Trial(point, length, accepted)


def live_rows(problem: Problem, less: Rows, equal: Rows, us: Float[Array, "horizon m"]) -> Conditions:
    """A mask of the rows that are constraints: finite, of free controls, and at the first node of rows that its control
    affects.
    """
    moves = (jnp.any(J != 0, axis=1) for J in jax.jacfwd(lambda u: node_values(problem, 0, problem.y0, u))(us[0]))
    equal, less = jax.tree.map(lambda c: c > -jnp.inf, (equal, less))
    equal, less = (
        rows._replace(path=rows.path.at[0].set(rows.path[0] & moved))
        for rows, moved in zip((equal, less), moves, strict=True)
    )
    if problem.bounded:
        lower, upper = control_bounds(problem)
        free = jnp.concatenate([upper > lower, upper > lower], axis=1)
        at = less.path.shape[1] - free.shape[1]
        less = less._replace(path=less.path.at[:, at:].set(less.path[:, at:] & free))
    held = rows_that_hold(problem, Conditions(equal, less))
    return jax.tree.map(jnp.logical_and, Conditions(equal, less), held)


def masked_rows(values: Conditions, live: Conditions) -> Conditions:
    """The values, with inactive ones for rows that are not constraints."""
    equal = jax.tree.map(lambda c, on: jnp.where(on, c, 0), values.equal, live.equal)
    return Conditions(equal, jax.tree.map(lambda c, on: jnp.where(on, c, -1), values.less, live.less))


def relative_violation(values: Conditions, natural: Dual) -> Float[Array, ""]:
    """The largest violation, relative to the natural scales of the rows."""
    parts = jax.tree.map(lambda c, w: part_of(c, w), violations_of(values), natural.conditions)
    return tree_max(natural.gaps[0, 0], parts)


def largest_violation(values: Conditions) -> Float[Array, ""]:
    """The largest violation, over rows of any unit."""
    found = jax.tree.leaves(violations_of(values))
    return jnp.max(jnp.concatenate([jnp.zeros(1, found[0].dtype), *(x.ravel() for x in found)]))


def violations_of(values: Conditions) -> Conditions:
    """The violations of all rows."""
    return Conditions(jax.tree.map(jnp.abs, values.equal), jax.tree.map(lambda c: jnp.maximum(c, 0), values.less))


def digits(problem: Problem, share: float) -> Float[Array, ""] | float:
    """10 to the minus a fraction of the decimal digits of the problem's dtype."""
    return tolerance_of(None, share, problem.dtype)


def tree_dot(a: Any, b: Any) -> Array:
    """The inner product of two trees."""
    return tree_sum(jax.tree.map(jnp.multiply, a, b))


def tree_sum(tree: Any) -> Array:
    """The sum of all entries of a tree."""
    leaves = jax.tree.leaves(tree)
    return sum((jnp.sum(x) for x in leaves[1:]), jnp.sum(leaves[0]))


def tree_max(zero: Float[Array, ""], tree: Any) -> Float[Array, ""]:
    """The largest entry of a tree, at least zero, in the dtype of a further argument."""
    return jnp.max(jnp.concatenate([jnp.zeros_like(zero)[None], *(x.ravel() for x in jax.tree.leaves(tree))]))
