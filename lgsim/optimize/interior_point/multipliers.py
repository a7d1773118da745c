"""Multipliers of a trajectory by least squares on its optimality conditions, independent of those of the iterations."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.flatten_util import ravel_pytree
from jaxtyping import Bool, Float, Int

from lgsim._compile.xla import while_last
from lgsim.lie.action import Point
from lgsim.optimize.cost import zero_tangent
from lgsim.optimize.interior_point.kkt import (
    Conditions,
    Rows,
    added,
    compliance,
    condition_derivatives,
    factorize,
    moved,
    pulled_back,
    pushed,
    refined,
    row_compliance,
    stiffness_of,
)
from lgsim.optimize.linear_quadratic import costates, linearize_step, split_nodes
from lgsim.optimize.problem import Problem

_ROUNDS = 40
"""Largest number of active sets that are tried."""
_PATIENCE = 3
"""Number of active sets without progress after which single rows change."""
_SWEEPS = 12
"""Number of solutions of each linear system."""


class FirstOrder(NamedTuple):
    """First derivatives of a problem at a trajectory.

    Attributes:
        A: Derivatives of the steps with respect to the state (H, n, n).
        B: Derivatives of the steps with respect to the control (H, n, m).
        costs: Gradients of the costs with respect to (x, u) at the nodes (H, n + m), and at the end (n,).
        rows: Derivatives of the rows.
    """

    A: Float[Array, "horizon n n"]
    B: Float[Array, "horizon n m"]
    costs: tuple[Float[Array, "horizon nz"], Float[Array, " n"]]
    rows: Conditions

    def lagrangian(self, multipliers: Conditions) -> tuple[Float[Array, "horizon nz"], Float[Array, " n"]]:
        """The gradient of the costs plus rows times multipliers, at the nodes and at the end."""
        return added(self.costs, *(pulled_back(C, m) for C, m in zip(self.rows, multipliers, strict=True)))

    def reduced(self, multipliers: Conditions) -> tuple[Float[Array, "horizon m"], Float[Array, "horizon n"]]:
        """(gradient of the same with respect to the controls under the steps, multipliers of the steps)."""
        path, end = self.lagrangian(multipliers)
        n = self.A.shape[1]
        following = costates(self.A, path[:, :n], end)[1:]
        return path[:, n:] + jnp.einsum("kij,ki->kj", self.B, following), following


def first_order(
    problem: Problem, ys: Point, us: Float[Array, "horizon m"], live: Conditions
) -> tuple[FirstOrder, Float[Array, "horizon n"]]:
    """(first derivatives at a trajectory, gaps of its steps)."""
    action = problem.dynamics.action
    before, after = split_nodes(ys)
    last = jax.tree.map(lambda y: y[-1], ys)
    ks = jnp.arange(problem.horizon)
    A, B, gaps = jax.vmap(lambda *node: linearize_step(problem, *node))(ks, before, us, after)

    def node(k: Array, y: Point, u: Array) -> Array:
        def f(z: Array) -> Array:
            return problem.node_cost(k).value(problem.time(k), *moved(problem, y, u, z), problem.args)

        return jax.grad(f)(zero_tangent(action, y, u))

    def at_end(z: Array) -> Array:
        return problem.end_cost().value(problem.time(problem.horizon), action.move(z, last), None, problem.args)

    costs = jax.vmap(node)(ks, before, us), jax.grad(at_end)(zero_tangent(action, last, None))
    return FirstOrder(A, B, costs, live_derivatives(problem, ys, us, live)), gaps


def live_derivatives(problem: Problem, ys: Point, us: Float[Array, "horizon m"], live: Conditions) -> Conditions:
    """The derivatives of rows; zero of rows that are not constraints, and with respect to the initial state."""
    derivatives = condition_derivatives(problem, ys, us)
    derivatives = jax.tree.map(lambda J, on: jnp.where(on[..., None], J, 0), derivatives, live)
    n = problem.dynamics.action.dim
    return Conditions(*(C._replace(path=C.path.at[0, :, :n].set(0)) for C in derivatives))


def least_squares_multipliers(
    first: FirstOrder,
    slacks: Rows,
    live: Conditions,
    guess: Conditions,
    sizes: Float[Array, "horizon m"],
    regularization: Float[Array, ""] | float,
    wanted: Bool[Array, ""],
) -> Conditions:
    """The multipliers with the smallest residual of the optimality conditions of a trajectory.

    They minimize ``sum (D r)^2 + sum (s z)^2``, both terms in the unit of the cost, with the gradient r of the
    Lagrangian with respect to the controls, their sizes D, the slacks s and the multipliers z >= 0 of the inequalities.
    The dual of that problem is the steepest step within the linearized constraints,

        minimize g . d + 1/2 |d / D|^2   subject to   C d = 0 (equalities),   C d - s^2 z <= 0 (inequalities),

    which block principal pivoting solves, with one Riccati factorization for each active set. Residuals decide about an
    optimum, not the origin of the multipliers: where pivoting ends at another set, the residual is larger, and nothing
    is claimed.

    Args:
        slacks: Slacks of the inequalities.
        live: Rows that are constraints.
        guess: Multipliers to start from.
        sizes: Size of each control, zero for those that are fixed.
        regularization: Dual regularization relative to the compliance of a row.
        wanted: False to return the guess without any work.

    Source: Nocedal and Wright, Numerical Optimization, 2nd ed., eq. 18.21 (least-squares multipliers); Judice and Pires
    1994, A block principal pivoting algorithm for large-scale strictly monotone linear complementarity problems.
    """
    free = (sizes > 0).astype(sizes.dtype)
    squares = jnp.where(sizes > 0, sizes, 1) ** 2
    n, m = first.B.shape[1:]
    horizon = len(first.A)
    W = jnp.zeros((horizon, n + m, n + m), sizes.dtype).at[:, n:, n:].set(jax.vmap(jnp.diag)(1 / squares))
    P = jnp.zeros((n, n), sizes.dtype)
    soft = Conditions(jax.tree.map(jnp.zeros_like, guess.equal), jax.tree.map(jnp.square, slacks))

    def solved(on: Conditions) -> tuple[Conditions, Conditions]:
        """The multipliers for a set of active rows, and True for those to be active."""
        states = compliance(first.A, first.B, free * squares)
        dual = Conditions(*(row_compliance(C, states, free * squares) for C in first.rows))
        dual = jax.tree.map(lambda d: regularization * d, dual)
        start = jax.tree.map(lambda x, on: jnp.where(on, x, 0), guess, on)
        weights = jax.tree.map(
            lambda k, d, on: jnp.where(on & (k + d > 0), 1 / jnp.where(k + d > 0, k + d, 1), 0), soft, dual, on
        )
        more, more_end = W, P
        for C, w in zip(first.rows, weights, strict=True):
            path, end = stiffness_of(C, w)
            more, more_end = more + path, more_end + end
        F = factorize(first.A, first.B, more, more_end, free)
        values = jax.tree.map(lambda k, x: -k * x, soft, start)
        change, step = refined(
            F, first.rows, weights, soft, values, first.lagrangian(start), (W, P, jnp.zeros_like(sizes)),
            jnp.zeros(first.B.shape[:2], sizes.dtype), _SWEEPS,
        )  # fmt: skip
        found = jax.tree.map(lambda x, d, on: jnp.where(on, x + d, 0), start, change, on)
        along = pushed(first.rows.less, step)
        less = jax.tree.map(
            lambda on, z, a, there: there & jnp.where(on, z > 0, a > 0), on.less, found.less, along, live.less
        )
        return found, Conditions(live.equal, less)

    def going(tried: _Tried) -> Bool[Array, ""]:
        return (tried.wrong > 0) & (tried.i < _ROUNDS)

    def turn(tried: _Tried) -> _Tried:
        found, after = solved(tried.on)
        found = found._replace(less=jax.tree.map(lambda z: jnp.maximum(z, 0), found.less))
        slopes, _ = first.reduced(found)
        terms = jax.tree.map(lambda x, z: jnp.sum((x * z) ** 2), slacks, found.less)
        residual = jnp.sum((slopes * sizes) ** 2) + terms.path + terms.end
        better = residual < tried.residual
        (on, back), (after, _) = ravel_pytree(tried.on), ravel_pytree(after)
        change = on != after
        wrong = jnp.sum(change)
        fewer = wrong < tried.least
        patience = jnp.where(fewer, _PATIENCE, tried.patience - 1)
        # single changes end where whole sets repeat themselves
        rows = jnp.arange(change.size)
        one = rows == jnp.max(jnp.where(change, rows, -1), initial=-1)
        on = jnp.where(patience > 0, after, jnp.where(one, after, on))
        return _Tried(
            tried.i + 1,
            back(on),
            jax.tree.map(lambda new, old: jnp.where(better, new, old), found, tried.found),
            jnp.where(better, residual, tried.residual),
            wrong,
            jnp.minimum(wrong, tried.least),
            patience,
        )

    on = Conditions(live.equal, jax.tree.map(lambda z, there: there & (z > 0), guess.less, live.less))
    many = jnp.array(ravel_pytree(on)[0].size + 1)
    infinite = jnp.full((), jnp.inf, sizes.dtype)
    start = _Tried(jnp.array(0), on, guess, infinite, jnp.where(wanted, many, 0), many, jnp.array(_PATIENCE))
    return while_last(going, turn, start).found


class _Tried(NamedTuple):
    """The state of the active-set method.

    Attributes:
        on: The next active set.
        found: Multipliers of the best one.
        residual: Their residual.
        wrong: Number of rows that the last one had wrong.
        least: The smallest of these numbers.
        patience: Number of sets that may follow without a smaller one.
    """

    i: Int[Array, ""]
    on: Conditions
    found: Conditions
    residual: Float[Array, ""]
    wrong: Int[Array, ""]
    least: Int[Array, ""]
    patience: Int[Array, ""]
