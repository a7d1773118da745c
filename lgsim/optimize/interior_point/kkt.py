"""KKT systems: constraint rows at the nodes, one Riccati factorization of the Newton step, and a solve for each
right-hand side.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float, Int

from lgsim._compile.linalg import dense
from lgsim._compile.linalg.dense import product, times, transpose
from lgsim._compile.xla import batch_last, control_flow, fusion_barrier, scan_last
from lgsim.lie.action import Point
from lgsim.optimize.constraints.constraint import Constraint
from lgsim.optimize.cost import zero_tangent
from lgsim.optimize.linear_quadratic import split_nodes
from lgsim.optimize.problem import Problem


class Rows(NamedTuple):
    """Values of constraint rows.

    Attributes:
        path: Rows of the nodes with a control (H, rows, ...).
        end: Rows of the last node (rows, ...).
    """

    path: Array
    end: Array


class Conditions(NamedTuple):
    """Values of the equalities ``c = 0`` and of the inequalities ``c <= 0`` of a problem.

    Attributes:
        equal: Rows of the equalities.
        less: Rows of the inequalities; on the path those of ``Problem.constraints``, then lower and upper bounds of the
            controls.
    """

    equal: Rows
    less: Rows


def control_bounds(problem: Problem) -> tuple[Float[Array, "horizon m"], Float[Array, "horizon m"]]:
    """The lower and upper bounds of the controls at each node."""
    shape = (problem.horizon, problem.controls)
    return jnp.broadcast_to(problem.lower, shape), jnp.broadcast_to(problem.upper, shape)


def node_values(problem: Problem, k: Int[Array, ""] | int, y: Point, u: Float[Array, " m"]) -> tuple[Array, Array]:
    """(rows of the equalities, of the inequalities) at node k."""
    t = problem.time(k)

    def values(equality: bool) -> list[Array]:
        return [c.value(t, y, u, problem.args) for c in _some(problem, equality) if c.on_path]

    less = values(False)
    if problem.bounded:
        lower, upper = control_bounds(problem)
        less += [lower[k] - u, u - upper[k]]
    return _joined(problem, values(True)), _joined(problem, less)


def end_values(problem: Problem, y: Point) -> tuple[Array, Array]:
    """(rows of the equalities, of the inequalities) at the last node."""
    t = problem.time(problem.horizon)
    equal, less = (
        _joined(problem, [c.value(t, y, None, problem.args) for c in _some(problem, equality) if c.at_end])
        for equality in (True, False)
    )
    return equal, less


def rows_that_hold(problem: Problem, values: Conditions) -> Conditions:
    """Masks of the rows that apply at each node; bounds apply at all of them."""

    def at(k: Array | int, equality: bool, place: str, size: int) -> Array:
        t = problem.time(k)
        found = []
        for c in _some(problem, equality):
            if getattr(c, place):
                u = jnp.zeros(problem.controls, problem.dtype) if place == "on_path" else None
                rows = eqx.filter_eval_shape(c.value, t, problem.y0, u, problem.args).shape
                found.append(jnp.broadcast_to(c.holds(k, t), rows))
        held = jnp.concatenate([jnp.zeros(0, bool), *found])
        return jnp.pad(held, (0, size - held.size), constant_values=True)

    ks = jnp.arange(problem.horizon)
    return Conditions(*(
        Rows(
            jax.vmap(lambda k, e=equality, r=rows: at(k, e, "on_path", r.path.shape[1]))(ks),
            at(problem.horizon, equality, "at_end", rows.end.size),
        )
        for equality, rows in zip((True, False), values, strict=True)
    ))  # fmt: skip


def _some(problem: Problem, equality: bool) -> tuple[Constraint, ...]:
    """The equality or the inequality constraints of a problem."""
    return tuple(c for c in problem.constraints if c.equality == equality)


def _joined(problem: Problem, rows: list[Array]) -> Float[Array, " rows"]:
    """All rows in one array, which may be empty."""
    return jnp.concatenate([jnp.zeros(0, problem.dtype), *rows])


def condition_values(problem: Problem, ys: Point, us: Float[Array, "horizon m"]) -> Conditions:
    """The values of all constraints on a trajectory."""
    before, last = split_nodes(ys)[0], jax.tree.map(lambda y: y[-1], ys)
    path = jax.vmap(lambda k, y, u: node_values(problem, k, y, u))(jnp.arange(problem.horizon), before, us)
    return Conditions(*(Rows(*rows) for rows in zip(path, end_values(problem, last), strict=True)))


def condition_derivatives(problem: Problem, ys: Point, us: Float[Array, "horizon m"]) -> Conditions:
    """The derivatives of all constraints with respect to z = (dx, du) (H, rows, n + m), at the end to dx (rows, n)."""
    action = problem.dynamics.action
    before, last = split_nodes(ys)[0], jax.tree.map(lambda y: y[-1], ys)

    def at_node(k: Array, y: Point, u: Array) -> tuple[Array, Array]:
        return jax.jacfwd(lambda z: node_values(problem, k, *moved(problem, y, u, z)))(zero_tangent(action, y, u))

    end = jax.jacfwd(lambda z: end_values(problem, action.move(z, last)))(zero_tangent(action, last, None))
    path = jax.vmap(at_node)(jnp.arange(problem.horizon), before, us)
    return Conditions(*(Rows(*rows) for rows in zip(path, end, strict=True)))


def weighted(values: tuple[Array, Array], weights: tuple[Array, Array]) -> Float[Array, ""]:
    """The sum of values times weights; zero weights also cancel infinite values."""
    terms = [jnp.sum(jnp.where(w == 0, 0, w * c)) for w, c in zip(weights, values, strict=True)]
    return terms[0] + terms[1]


def condition_curvature(
    problem: Problem, ys: Point, us: Float[Array, "horizon m"], multipliers: Conditions
) -> tuple[Float[Array, "horizon nz nz"], Float[Array, "n n"]]:
    """The second derivatives of all constraints times their multipliers, with respect to (dx, du), and at the end to
    dx.
    """
    action = problem.dynamics.action
    before, last = split_nodes(ys)[0], jax.tree.map(lambda y: y[-1], ys)

    def at_node(k: Array, y: Point, u: Array, weights: tuple[Array, Array]) -> Array:
        def f(z: Array) -> Array:
            return weighted(node_values(problem, k, *moved(problem, y, u, z)), weights)

        return jax.hessian(f)(zero_tangent(action, y, u))

    path, end = zip(*multipliers, strict=True)
    H = jax.vmap(at_node)(jnp.arange(problem.horizon), before, us, path)
    f = lambda z: weighted(end_values(problem, action.move(z, last)), end)  # noqa: E731
    return H, jax.hessian(f)(zero_tangent(action, last, None))


def moved(problem: Problem, y: Point, u: Float[Array, " m"], z: Float[Array, " nz"]) -> tuple[Point, Array]:
    """The state and control at tangent coordinates z = (dx, du) of a node."""
    action = problem.dynamics.action
    return action.move(z[: action.dim], y), u + z[action.dim :]


def added(*pairs: tuple[Array, Array]) -> tuple[Array, Array]:
    """The sum of two pairs of arrays, at the nodes and at the end."""
    path, end = pairs[0]
    for more, end_more in pairs[1:]:
        path, end = path + more, end + end_more
    return path, end


def pulled_back(C: Rows, weights: Rows) -> tuple[Float[Array, "horizon nz"], Float[Array, " n"]]:
    """``C^T weights`` of derivatives C of rows, at the nodes and at the end."""
    return jnp.einsum("kri,kr->ki", C.path, weights.path), C.end.T @ weights.end


def pushed(C: Rows, step: Step) -> Rows:
    """The changes ``C z`` of rows along a step."""
    z = jnp.concatenate([step.x[:-1], step.u], axis=1)
    return Rows(jnp.einsum("kri,ki->kr", C.path, z), C.end @ step.x[-1])


def stiffness_of(C: Rows, weights: Rows) -> tuple[Float[Array, "horizon nz nz"], Float[Array, "n n"]]:
    """``C^T diag(weights) C`` of derivatives C of rows, at the nodes and at the end."""
    path = jnp.einsum("kri,kr,krj->kij", C.path, weights.path, C.path)
    return path, jnp.einsum("ri,r,rj->ij", C.end, weights.end, C.end)


def row_compliance(C: Rows, states: Float[Array, "nodes n n"], controls: Float[Array, "nodes-1 m"]) -> Rows:
    """The compliance of rows, ``C_x S C_x^T + C_u diag(controls) C_u^T``; see ``compliance``."""
    n = states.shape[1]
    x, u = C.path[:, :, :n], C.path[:, :, n:]
    path = jnp.einsum("kri,kij,krj->kr", x, states[:-1], x) + jnp.einsum("kri,ki,kri->kr", u, controls, u)
    return Rows(path, jnp.einsum("ri,ij,rj->r", C.end, states[-1], C.end))


class Factorization(NamedTuple):
    """The Riccati factorization of ``min sum_k 1/2 z . W z + g . z``, z = (x, u), subject to ``x_{k+1} = A x_k + B u_k
    + c_k``.

    Attributes:
        A: Derivatives of the steps with respect to the state (H, n, n).
        B: Derivatives of the steps with respect to the control (H, n, m).
        K: Feedback (H, m, n).
        V: Hessians of the costs to go (H + 1, n, n).
        inverse: Inverse of Quu in the free controls, zero in others (H, m, m).
        definite: True if Quu is positive definite at every node, i.e. the Hessian is so on the null space of the steps.
    """

    A: Float[Array, "horizon n n"]
    B: Float[Array, "horizon n m"]
    K: Float[Array, "horizon m n"]
    V: Float[Array, "horizon+1 n n"]
    inverse: Float[Array, "horizon m m"]
    definite: Bool[Array, ""]


class Step(NamedTuple):
    """A solution of the linear-quadratic problem.

    Attributes:
        x: Changes of the states (H + 1, n).
        u: Changes of the controls (H, m).
        costates: Multipliers of the steps to the nodes; the first one is the derivative with respect to the initial
            state (H + 1, n).
    """

    x: Float[Array, "horizon+1 n"]
    u: Float[Array, "horizon m"]
    costates: Float[Array, "horizon+1 n"]


def factorize(
    A: Float[Array, "horizon n n"],
    B: Float[Array, "horizon n m"],
    W: Float[Array, "horizon nz nz"],
    P: Float[Array, "n n"],
    free: Float[Array, "horizon m"],
) -> Factorization:
    """The factorization of a linear-quadratic problem.

    Args:
        W: Hessians of the running costs with respect to (x, u), symmetric.
        P: Hessian of the terminal cost.
        free: 1 for controls that may change, 0 for others.
    """

    def back(V: Array, node: tuple) -> tuple[Array, tuple]:
        V, *policy = _riccati_step(V, *node)
        return V, (V, *policy)

    _, (V, K, inverse, definite) = scan_last(back, P, (A, B, W, free), reverse=True)
    return Factorization(A, B, K, jnp.concatenate([V, P[None]]), inverse, jnp.all(definite))


@batch_last
def _riccati_step(V: Array, A: Array, B: Array, W: Array, free: Array) -> tuple[Array, Array, Array, Array]:
    """(V of the node, K, inverse of Quu, True if it is definite), all with the batch last."""
    n, m = B.shape[:2]
    Q, N, R = W[:n, :n], W[n:, :n], W[n:, n:]
    Bt = transpose(B)
    VA, VB = fusion_barrier((product(V, A), product(V, B)))
    Qux, Quu = fusion_barrier((product(Bt, VA, start=N), product(Bt, VB, start=R)))
    eye = jnp.eye(m, dtype=R.dtype).reshape((m, m) + (1,) * (R.ndim - 2))
    both = free[:, None] * free[None]
    Quu = fusion_barrier(both * (Quu + transpose(Quu)) / 2 + eye * (1 - free)[None])
    inverse, definite = dense.inverse_if_definite(Quu)
    # rejects a pivot at the rounding level of its diagonal entry
    digits = 64 * jnp.finfo(R.dtype).eps
    for i in range(m):
        definite = definite & (Quu[i, i] * inverse[i, i] * digits < 1)
    inverse = fusion_barrier(jnp.where(definite[None, None], inverse * both, 0))
    K = fusion_barrier(-product(inverse, Qux))
    # as a sum of squares, without the cancellation in Qxx - Qxu Quu^-1 Qux for stiff constraints
    closed = fusion_barrier(product(B, K, start=A))
    Vc, RK = fusion_barrier((product(V, closed), product(R, K, start=N)))
    V = product(transpose(closed), Vc, start=product(transpose(N), K, start=Q) + product(transpose(K), RK))
    V = fusion_barrier(V)
    return (V + transpose(V)) / 2, K, inverse, definite


def respond(
    f: Factorization, c: Float[Array, "horizon n"], g: Float[Array, "horizon nz"], p: Float[Array, " n"]
) -> Step:
    """The solution for gaps c of the steps and gradients g of the running costs and p of the terminal one; x_0 = 0."""

    def back(v: Array, node: tuple) -> tuple[Array, tuple[Array, Array]]:
        v, k = _gradient_step(v, *node)
        return v, (v, k)

    def forth(x: Array, node: tuple) -> tuple[Array, tuple[Array, Array]]:
        x, u = _forward_step(x, *node)
        return x, (x, u)

    _, (v, k) = scan_last(back, p, (f.A, f.B, f.K, f.V[1:], f.inverse, c, g), reverse=True)
    _, (x, u) = scan_last(forth, jnp.zeros_like(p), (f.A, f.B, f.K, k, c))
    x = jnp.concatenate([jnp.zeros_like(p)[None], x])
    return Step(x, u, jnp.einsum("kij,kj->ki", f.V, x) + jnp.concatenate([v, p[None]]))


def refined(
    F: Factorization,
    C: Conditions,
    weights: Conditions,
    soft: Conditions,
    values: Conditions,
    gradient: tuple[Float[Array, "horizon nz"], Float[Array, " n"]],
    hessian: tuple[Float[Array, "horizon nz nz"], Float[Array, " n n"], Float[Array, "horizon m"]],
    gaps: Float[Array, "horizon n"],
    sweeps: int,
) -> tuple[Conditions, Step]:
    """The solution (m, z) of ``H z + C^T m = -gradient``, ``C z - soft m = -values`` under the steps, with refinement.

    The factorization contains the rows with finite weights ``1 / (soft + dual regularization)``. Each further sweep has
    the residual of the equations without the dual regularization as its right-hand side.

    Args:
        F: Factorization of the matrix ``H + C^T weights C``.
        C: Derivatives of the rows.
        hessian: H at the nodes and at the end, and its regularization for each control.
        gaps: Constants of the steps.
    """
    W, P, more_stiffness = hessian
    horizon, m, n = F.K.shape

    def pushed_all(step: Step) -> Conditions:
        return Conditions(*(pushed(rows, step) for rows in C))

    def sweep(_: Any, found: tuple[Conditions, Step]) -> tuple[Conditions, Step]:
        dual, step = found
        before, after, costate = step.x[:-1], step.x[1:], step.costates[1:]
        left = jax.tree.map(lambda c, a, k, m: c + a - k * m, values, pushed_all(step), soft, dual)
        pulls = jax.tree.map(lambda m, w, e: m + w * e, dual, weights, left)
        pulls = [pulled_back(rows, x) for rows, x in zip(C, pulls, strict=True)]
        path, end = added(gradient, *pulls)
        path = path + jnp.einsum("kij,kj->ki", W, jnp.concatenate([before, step.u], axis=1))
        path = path.at[:, :n].add(jnp.einsum("kij,ki->kj", F.A, costate) - step.costates[:-1])
        path = path.at[:, n:].add(jnp.einsum("kij,ki->kj", F.B, costate) + more_stiffness * step.u)
        end = end + P @ step.x[-1] - step.costates[-1]
        misses = gaps + jnp.einsum("kij,kj->ki", F.A, before) + jnp.einsum("kij,kj->ki", F.B, step.u) - after
        more = respond(F, misses, path, end)
        dual = jax.tree.map(lambda m, w, e, a: m + w * (e + a), dual, weights, left, pushed_all(more))
        return dual, jax.tree.map(jnp.add, step, more)

    none = jnp.zeros((horizon + 1, n), gaps.dtype)
    start = jax.tree.map(jnp.zeros_like, values), Step(none, jnp.zeros((horizon, m), gaps.dtype), none)
    return control_flow.fori_loop(0, sweeps, sweep, start)


@batch_last
def _gradient_step(
    v: Array, A: Array, B: Array, K: Array, V: Array, inverse: Array, c: Array, g: Array
) -> tuple[Array, Array]:
    """(gradient of the cost to go of the node, feedforward of its policy), all with the batch last."""
    n = len(A)
    v = fusion_barrier(v + times(V, c))
    r = fusion_barrier(g[n:] + times(transpose(B), v))
    return g[:n] + times(transpose(A), v) + times(transpose(K), r), -times(inverse, r)


@batch_last
def _forward_step(x: Array, A: Array, B: Array, K: Array, k: Array, c: Array) -> tuple[Array, Array]:
    """(change of the next state, change of the control), all with the batch last."""
    u = fusion_barrier(times(K, x) + k)
    return times(A, x) + times(B, u) + c, u


def compliance(
    A: Float[Array, "horizon n n"], B: Float[Array, "horizon n m"], controls: Float[Array, "horizon m"]
) -> Float[Array, "horizon+1 n n"]:
    """The compliance of states per unit of cost, ``S_{k+1} = A S_k A^T + B diag(controls) B^T`` with S_0 = 0.

    A row r = C_x x + C_u u has the compliance ``d = C_x S C_x^T + C_u diag(controls) C_u^T``, in its unit squared over
    the unit of the cost: the minimum of ``1/2 sum u^2 / controls`` for a change r is ``r^2 / (2 d)``.

    Args:
        controls: Compliance of each control (H, m), the inverse of a second derivative of the cost.
    """

    def forth(S: Array, node: tuple) -> tuple[Array, Array]:
        A, B, D = node
        S = A @ S @ A.T + (B * D[None]) @ B.T
        return S, S

    start = jnp.zeros_like(A[0])
    _, S = scan_last(forth, start, (A, B, controls))
    return jnp.concatenate([start[None], S])
