"""Derivatives of a solution by the implicit function theorem: one linear-quadratic problem, not the iterations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float, PyTree

from lgsim._compile.xla import control_flow, warn_where, zeros_beside
from lgsim.lie.action import Point
from lgsim.optimize.augmented_lagrangian import with_penalties
from lgsim.optimize.constraint_rows import Rows, constraint_values, rows_of
from lgsim.optimize.constraints.penalties import Penalties
from lgsim.optimize.cost import move_node, zero_tangent
from lgsim.optimize.linear_quadratic import (
    LinearQuadratic,
    costates,
    linearize_step,
    split_nodes,
    step_in_chart,
)
from lgsim.optimize.optimality import Optimality, Promise, is_optimal, optimality
from lgsim.optimize.problem import Problem
from lgsim.optimize.solver import RESULTS, Solution, Solver, tolerance_of

_STIFFER = 1e3
"""Ratio of the penalty of the derivative to that of the solver: determines the convergence of each sweep."""
_SWEEPS = 4
"""Number of sweeps of the method of multipliers."""
_MARGIN = 30.0
"""Factor by which optimality measures may exceed their limits, since solvers compute them by models without second
derivatives.
"""
_UNCONVERGED = (
    "solve: expected an optimal trajectory for derivatives, but the solution is not optimal. See solution.result and"
    " solution.optimality, and increase the iterations or change the guess; nan_derivatives=True makes such"
    " derivatives NaN."
)

Moves = PyTree
"""A tangent of a pytree: the same structure, with None for constant leaves."""


def solution(
    problem: Problem,
    us: Float[Array, "horizon m"],
    ys: Point | None,
    solver: Solver,
    nan_derivatives: bool = False,
) -> Solution:
    """``solver.run`` with derivatives of the solution: ts, ys, us and cost with respect to the problem's arrays.

    With the Lagrangian ``L = sum_k l_k + lambda_{k+1} . F_k``, differentiating the optimality conditions along a change
    p' of the problem gives another linear-quadratic problem, whose solution (x, u) is the derivative:

        min sum_k 1/2 (x, u) . L_zz (x, u) + (L_zp p') . (x, u)   under   x_{k+1} = F_x x_k + F_u u_k + F_p p'

    with all second derivatives. Controls at an active bound move with it; constraints of an augmented Lagrangian keep
    their active rows at zero, by the method of multipliers. Guesses and the solver's parameters have zero derivatives.
    Time and memory are linear in the horizon and independent of the iterations. Directions in which the optimum is not
    isolated have zero derivatives. Higher derivatives are not supported.

    The theorem holds only at an optimum. If the trajectory is not optimal, by the Newton decrement of that
    linear-quadratic problem or by ``Solution.result``, the derivatives are NaN or a ``RuntimeWarning`` is issued when
    they are computed.

    Args:
        us: The guess of the controls, as in ``Solver.run``.
        nan_derivatives: True for NaN, false for the warning.

    Raises:
        ValueError: while differentiating, a function of the problem closes over a differentiated value.

    Source: Jin et al. 2020, Pontryagin differentiable programming, sec. 5, for the linear-quadratic problem; Amos et
    al. 2018, Differentiable MPC for end-to-end planning and control, sec. 3.2, for the bounds.
    """
    dynamic, static = eqx.partition((problem, us, ys, solver, nan_derivatives), eqx.is_array)

    def run(dynamic: Any) -> Solution:
        problem, us, ys, solver, _ = eqx.combine(dynamic, static)
        return solver.run(problem, us, ys)

    # a JAX rule must not close over differentiated values
    converted, closed = jax.closure_convert(run, dynamic)
    return _found(converted, static, dynamic, closed)


@eqx.filter_custom_jvp
def _found(run: Any, static: PyTree, dynamic: PyTree, closed: list[Array]) -> Solution:
    """The solver's result as a function of the arrays and the rest of its arguments, and of closed-over values."""
    return run(dynamic, *closed)


@_found.def_jvp
def _moved(primals: tuple, tangents: tuple) -> tuple[Solution, Solution]:
    """The solution and its derivative."""
    run, static, dynamic, closed = primals
    _, _, moves, closed_moves = tangents
    if any(move is not None for move in closed_moves):
        raise ValueError(
            "problem: a function closes over a differentiated value; pass the value through args, or make the"
            " function an equinox module with a field for it"
        )
    found = _found(run, static, dynamic, closed)
    problem, *_, nan_derivatives = eqx.combine(dynamic, static)
    change = _change(problem, moves[0], found, nan_derivatives)
    still = jax.tree.map(lambda _: None, found)
    return found, eqx.tree_at(lambda r: (r.ts, r.ys, r.us, r.cost), still, change, is_leaf=lambda x: x is None)


class _Forcing(NamedTuple):
    """The change of the linear-quadratic model due to a change of the problem.

    Attributes:
        c: Change of the next states (H, n).
        slope: Change of the gradients of the running costs with respect to (x, u), (H, n + m).
        end: Change of the gradient of the terminal cost (n,).
    """

    c: Float[Array, "horizon n"]
    slope: Float[Array, "horizon nz"]
    end: Float[Array, " n"]


class _Model(NamedTuple):
    """The linear-quadratic model at a solution, and its Riccati solution in the free controls.

    Attributes:
        K: Feedback (H, m, n).
        Vxx: Hessians of the costs to go (H + 1, n, n).
        inverse: Pseudoinverse of Quu in the free controls (H, m, m).
        k: Newton step of the controls at x = 0 (H, m).
        decrease: Predicted decrease of the cost for the Newton step.
    """

    lq: LinearQuadratic
    K: Float[Array, "horizon m n"]
    Vxx: Float[Array, "horizon+1 n n"]
    inverse: Float[Array, "horizon m m"]
    k: Float[Array, "horizon m"]
    decrease: Float[Array, ""]


def _change(problem: Problem, move: Moves, found: Solution, nan_derivatives: bool) -> tuple[Array, Point, Array, Array]:
    """The derivative of (ts, ys, us, cost) of a solution along a change of the problem."""
    ys, us = found.ys, found.us
    plain, stiff = problem, None
    if found.multipliers is not None:
        stiff = eqx.tree_at(lambda m: m.weight, found.multipliers, found.multipliers.weight * _STIFFER)
        problem = with_penalties(problem, stiff)
    lq, forcing = _model(problem, move, ys, us)
    free, bound_moves = _at_bounds(problem, move, us, lq.r)
    model = _solved(lq, free)
    wrong = ~_is_optimum(plain, found, model)
    if not nan_derivatives:
        wrong = warn_where(wrong, _UNCONVERGED, RuntimeWarning)

    def start(p: Problem) -> Array:
        return p.dynamics.action.difference(problem.y0, p.y0)

    def moved(p: Problem, x: Array, u: Array) -> tuple[Array, Point, Array, Array]:
        states = jax.vmap(problem.dynamics.action.move)(x, ys)
        return p.time(jnp.arange(p.horizon + 1)), states, us + u, p.cost(states, us + u)

    def respond(move: Moves, bound_moves: Array, x0: Array, forcing: _Forcing) -> tuple[Array, Array]:
        x, u = _response(model, bound_moves, x0, forcing)
        if stiff is None:
            return x, u
        answer = lambda f: _response(model, bound_moves, x0, f)  # noqa: E731
        return _conditions_kept(problem, stiff, move, ys, us, x, u, answer, forcing)

    x0 = _product_along(start, (problem,), (move,))
    x, u = _linear_map(respond, move, bound_moves, x0, forcing)
    change = _product_along(moved, (plain, jnp.zeros_like(x), jnp.zeros_like(u)), (move, x, u))
    known = jnp.where(wrong, jnp.nan, jnp.ones((), u.dtype))
    return jax.tree.map(lambda x: x * known, change)


def _is_optimum(problem: Problem, found: Solution, model: _Model) -> Bool[Array, ""]:
    """True if the returned trajectory is optimal, for any reason of termination.

    Without constraints by the Newton step of the model at the trajectory, since a solver's last iteration may be
    regularized. With constraints by the solver's own measures, which include its multipliers.
    """
    if found.multipliers is not None:
        return (found.result == RESULTS.successful) & is_optimal(found.optimality, 0.0)
    promise = Promise(model.k, jnp.array(True), model.decrease, model.lq.r)
    numbers = optimality(problem, found.us, found.cost, found.history.cost[0], promise)
    small = is_optimal(Optimality(*(x / _MARGIN for x in jax.tree.leaves(numbers))), 0.0)
    closed = jnp.max(jnp.abs(model.lq.c)) <= tolerance_of(None, 0.6, problem.dtype)
    return small & closed & (found.result != RESULTS.saddle)


def _linear_map(f: Callable[..., Any], *args: PyTree) -> PyTree:
    """``f(*args)`` for a linear f, with f as its derivative: JAX before 0.7 transposes only loops from its jvp."""
    return jax.jvp(f, jax.tree.map(jnp.zeros_like, args), args)[1]


def _product_along(f: Callable[..., Any], primals: tuple, moves: tuple) -> PyTree:
    """The derivative of f along tangents of its arguments."""
    g, leaves = _of_moving(f, primals, moves)
    return jax.jvp(g, (leaves,), (jax.tree.leaves(moves),))[1]


def _of_moving(f: Callable[..., Any], primals: tuple, moves: tuple) -> tuple[Callable[..., Any], list[Array]]:
    """The function f of the leaves of its arguments that have tangents, and these leaves."""
    moving = jax.tree.map(lambda move: move is not None, moves, is_leaf=lambda x: x is None)
    active, rest = eqx.partition(primals, moving)
    leaves, shape = jax.tree.flatten(active)
    return lambda leaves: f(*eqx.combine(jax.tree.unflatten(shape, leaves), rest)), leaves


def _model(problem: Problem, move: Moves, ys: Point, us: Float[Array, "horizon m"]) -> tuple[LinearQuadratic, _Forcing]:
    """The second-order model of the Lagrangian at a trajectory, and its change along a tangent of the problem."""
    action, ks = problem.dynamics.action, jnp.arange(problem.horizon)
    n, last = action.dim, jax.tree.map(lambda y: y[-1], ys)
    before, after = split_nodes(ys)

    def cost(p: Problem, k: Array, y: Point, u: Array, z: Array) -> Array:
        return p.node_cost(k).value(p.time(k), *move_node(action, y, u, z), p.args)

    def end(p: Problem, z: Array) -> Array:
        return p.end_cost().value(p.time(p.horizon), action.move(z, last), None, p.args)

    def first(k: Array, y: Point, u: Array, y_next: Point) -> tuple[Array, Array]:
        A, _, _ = linearize_step(problem, k, y, u, y_next)
        return A, jax.grad(lambda z: cost(problem, k, y, u, z))(zero_tangent(action, y, u))[:n]

    def node(k: Array, y: Point, u: Array, y_next: Point, costate: Array) -> tuple[tuple, tuple, tuple]:
        def slopes(p: Problem, z: Array) -> tuple[Array, Array]:
            def lagrangian(z: Array) -> tuple[Array, Array]:
                c = step_in_chart(p, k, y, u, y_next, z)
                return cost(p, k, y, u, z) + costate @ c, c

            return jax.grad(lagrangian, has_aux=True)(z)

        return _linear(slopes, problem, move, zero_tangent(action, y, u))

    A, q = jax.vmap(first)(ks, before, us, after)
    p, P, end_slope = _linear(jax.grad(end, 1), problem, move, zeros_beside(n, ys))
    multipliers = costates(A, q, p)[1:]
    (slope, c), (H, F), (more, change) = jax.vmap(node)(ks, before, us, after, multipliers)
    H, F = jnp.swapaxes(H, 1, 2), jnp.swapaxes(F, 1, 2)
    lq = LinearQuadratic(
        F[:, :, :n], F[:, :, n:], c, H[:, :n, :n], H[:, n:, n:], H[:, :n, n:], slope[:, :n], slope[:, n:], P, p
    )
    return lq, _Forcing(change, more, end_slope)


def _linear(
    f: Callable[..., Any], problem: Problem, move: Moves, z: Float[Array, " nz"]
) -> tuple[PyTree, PyTree, PyTree]:
    """f(problem, z), its derivatives with respect to z with a leading axis nz, and its derivative along the problem's
    tangent.
    """
    g, leaves = _of_moving(lambda p: p, (problem,), (move,))
    value, push = jax.linearize(lambda leaves, z: f(g(leaves), z), leaves, z)
    still = jax.tree.map(jnp.zeros_like, leaves)
    by_z = jax.vmap(lambda e: push(still, e))(jnp.eye(z.size, dtype=z.dtype))
    return value, by_z, push(jax.tree.leaves(move), jnp.zeros_like(z))


def _at_bounds(
    problem: Problem, move: Moves, us: Float[Array, "horizon m"], slope: Float[Array, "horizon m"]
) -> tuple[Bool[Array, "horizon m"], Float[Array, "horizon m"]]:
    """Mask of the controls without an active bound, and the motion of the others with their bounds; ``slope`` is the
    cost's gradient.
    """
    if not problem.bounded:
        return jnp.ones(us.shape, bool), jnp.zeros_like(us)

    def bounds(p: Problem) -> tuple[Array, Array]:
        return jnp.broadcast_to(p.lower, us.shape), jnp.broadcast_to(p.upper, us.shape)

    lower, upper = bounds(problem)
    low, high = (us <= lower) & (slope > 0), (us >= upper) & (slope < 0)
    lower, upper = _product_along(bounds, (problem,), (move,))
    return ~(low | high), jnp.where(low, lower, jnp.where(high, upper, 0))


def _solved(lq: LinearQuadratic, free: Bool[Array, "horizon m"]) -> _Model:
    """The Riccati recursion in the free controls; directions without curvature get no step."""
    rtol = 10.0 ** (-0.8 * np.finfo(lq.p.dtype).precision)

    def back(after: tuple[Array, Array], node: tuple) -> tuple[tuple[Array, Array], tuple[Array, ...]]:
        (V, v), (A, B, c, Q, R, N, r, free) = after, node
        Qxx, Qux, Quu = Q + A.T @ V @ A, N.T + B.T @ V @ A, R + B.T @ V @ B
        Quu = jnp.where(free[:, None] & free[None, :], (Quu + Quu.T) / 2, 0)
        inverse = jnp.linalg.pinv(Quu, rtol=rtol, hermitian=True)
        K = -inverse @ Qux
        # the gap enters the gradient with respect to the control only; that with respect to the state is the costate
        v = v + V @ c
        Qu = r + B.T @ v
        k = -inverse @ Qu
        V = Qxx + Qux.T @ K
        V = (V + V.T) / 2
        return (V, A.T @ v + K.T @ Qu), (K, V, inverse, k, -Qu @ k / 2)

    nodes = (lq.A, lq.B, lq.c, lq.Q, lq.R, lq.N, lq.r, free)
    _, (K, V, inverse, k, decrease) = control_flow.scan(back, (lq.P, jnp.zeros_like(lq.p)), nodes, reverse=True)
    return _Model(lq, K, jnp.concatenate([V, lq.P[None]]), inverse, k, jnp.sum(decrease))


def _response(
    model: _Model, bound_moves: Float[Array, "horizon m"], x0: Float[Array, " n"], forcing: _Forcing
) -> tuple[Float[Array, "nodes n"], Float[Array, "horizon m"]]:
    """The minimum (x, u) of the model with a forcing, linear in (bound_moves, x0, forcing)."""
    lq, n = model.lq, x0.size
    # controls that move with their bounds act as a forcing
    c = forcing.c + jnp.einsum("kij,kj->ki", lq.B, bound_moves)
    q = forcing.slope[:, :n] + jnp.einsum("kij,kj->ki", lq.N, bound_moves)
    r = forcing.slope[:, n:] + jnp.einsum("kij,kj->ki", lq.R, bound_moves)

    def back(v: Array, node: tuple) -> tuple[Array, Array]:
        A, B, K, V, inverse, c, q, r = node
        v = v + V @ c
        r = r + B.T @ v
        return q + A.T @ v + K.T @ r, -inverse @ r

    def forth(x: Array, node: tuple) -> tuple[Array, tuple[Array, Array]]:
        A, B, K, k, c = node
        u = K @ x + k
        x = A @ x + B @ u + c
        return x, (x, u)

    _, k = control_flow.scan(
        back, forcing.end, (lq.A, lq.B, model.K, model.Vxx[1:], model.inverse, c, q, r), reverse=True
    )
    _, (x, u) = control_flow.scan(forth, x0, (lq.A, lq.B, model.K, k, c))
    return jnp.concatenate([x0[None], x]), u + bound_moves


def _conditions_kept(
    problem: Problem,
    penalties: Penalties,
    move: Moves,
    ys: Point,
    us: Float[Array, "horizon m"],
    x: Float[Array, "nodes n"],
    u: Float[Array, "horizon m"],
    respond: Callable[[_Forcing], tuple[Array, Array]],
    forcing: _Forcing,
) -> tuple[Float[Array, "nodes n"], Float[Array, "horizon m"]]:
    """(x, u) after sweeps of the method of multipliers that keep the active rows of the constraints at zero."""
    action, n = problem.dynamics.action, problem.dynamics.action.dim
    before, last = split_nodes(ys)[0], jax.tree.map(lambda y: y[-1], ys)

    def values(p: Problem, x: Array, u: Array) -> tuple:
        return constraint_values(p, jax.vmap(action.move)(x, ys), us + u)

    def weights(each: Rows) -> Array:
        shifted = each.multipliers + each.weight * each.c
        # rows that are inactive, or soft with a saturated multiplier, have no reaction
        active = each.kept & (each.updated == shifted)
        return jnp.where(active, each.weight, 0)

    def slopes(multipliers: tuple) -> tuple[Array, Array]:
        pulls = eqx.tree_at(lambda p: (p.path, p.end), penalties, multipliers)

        def node(k: Array, y: Point, u: Array) -> Array:
            def cost(z: Array) -> Array:
                penalty = pulls.at_node(problem.constraints, k)
                return penalty.value(problem.time(k), *move_node(action, y, u, z), problem.args)

            return jax.grad(cost)(zero_tangent(action, y, u))

        def end(z: Array) -> Array:
            cost = pulls.at_end(problem.constraints, problem.horizon)
            return cost.value(problem.time(problem.horizon), action.move(z, last), None, problem.args)

        return jax.vmap(node)(jnp.arange(problem.horizon), before, us), jax.grad(end)(zeros_beside(n, last))

    multipliers = (penalties.path, penalties.end)
    rows, count = rows_of(problem, ys, us, penalties), len(penalties.path)
    active = tuple(weights(x) for x in rows[:count]), tuple(weights(x)[0] for x in rows[count:])

    def sweep(state: tuple, _: None) -> tuple[tuple, None]:
        pull, x, u = state
        change = _product_along(values, (problem, jnp.zeros_like(x), jnp.zeros_like(u)), (move, x, u))
        pull = jax.tree.map(lambda m, weight, c: m + weight * c, pull, active, change)
        slope, end = jax.jvp(slopes, (multipliers,), (pull,))[1]
        more = forcing._replace(slope=forcing.slope + slope, end=forcing.end + end)
        return (pull, *respond(more)), None

    (_, x, u), _ = control_flow.scan(sweep, (jax.tree.map(jnp.zeros_like, multipliers), x, u), None, length=_SWEEPS)
    return x, u
