"""Linear-quadratic problems: linearization about a trajectory in tangent coordinates, and the Riccati recursion."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float, Int

from lgsim._compile.linalg import box_qp, dense
from lgsim._compile.linalg.dense import SymmetricBlocks, add_symmetric_product, product, times, times_blocks, to_blocks
from lgsim._compile.xla import batch_last, control_flow, fusion_barrier
from lgsim.lie.action import Point
from lgsim.optimize.cost import zero_tangent
from lgsim.optimize.dynamics import Dense, Transition, matrices
from lgsim.optimize.problem import Problem


class Node(NamedTuple):
    """One step of a linear-quadratic problem.

    Attributes:
        step: The matrices A and B of ``x_next = A x + B u + c``.
        c: The gap of the step (n,).
        H: Hessian of the step's cost by z = (x, u), (n + m, n + m).
        g: Its gradient with respect to z at zero (n + m,).
    """

    step: Transition
    c: Float[Array, " n"]
    H: Float[Array, "n+m n+m"]
    g: Float[Array, " n+m"]


class LinearQuadratic(NamedTuple):
    """Minimize ``sum_k 1/2 (x, u)^T [[Q, N], [N^T, R]] (x, u) + q . x + r . u`` plus ``1/2 x_H^T P x_H + p . x_H``
    subject to ``x_{k+1} = A x_k + B u_k + c``, x_0 = 0.

    Attributes:
        A: Derivatives of the steps with respect to the state (H, n, n).
        B: Derivatives of the steps with respect to the control (H, n, m).
        c: Their constants (H, n).
        Q: Hessians of the running costs with respect to the state (H, n, n).
        R: Hessians with respect to the control (H, m, m).
        N: Mixed Hessians (H, n, m).
        q: Gradients of the running costs with respect to the state (H, n).
        r: Gradients with respect to the control (H, m).
        P: Hessian of the terminal cost (n, n).
        p: Its gradient (n,).
    """

    A: Float[Array, "horizon n n"]
    B: Float[Array, "horizon n m"]
    c: Float[Array, "horizon n"]
    Q: Float[Array, "horizon n n"]
    R: Float[Array, "horizon m m"]
    N: Float[Array, "horizon n m"]
    q: Float[Array, "horizon n"]
    r: Float[Array, "horizon m"]
    P: Float[Array, "n n"]
    p: Float[Array, " n"]


def linearize_step(
    problem: Problem, k: Int[Array, ""] | int, y: Point, u: Float[Array, " m"], y_next: Point
) -> tuple[Float[Array, "n n"], Float[Array, "n m"], Float[Array, " n"]]:
    """(A, B, c) of ``difference(y_next, step(move(dx, y), u + du)) = A dx + B du + c``, as the dynamics give them."""
    return problem.dynamics.linearized(problem.time(k), y, u, y_next, problem.args)


def step_in_chart(
    problem: Problem,
    k: Int[Array, ""] | int,
    y: Point,
    u: Float[Array, " m"],
    y_next: Point,
    z: Float[Array, " nz"],
) -> Float[Array, " n"]:
    """``difference(y_next, step(move(dx, y), u + du))`` of z = (dx, du)."""
    action = problem.dynamics.action
    n = action.dim
    return action.difference(y_next, problem.step(k, action.move(z[:n], y), u + z[n:]))


def linear_quadratic_at(
    problem: Problem, k: Int[Array, ""] | int, y: Point, u: Float[Array, " m"], y_next: Point, exact: bool
) -> Node:
    """The step and the cost of node k with the next state y_next; ``exact`` as in ``Cost.quadratic``."""
    action = problem.dynamics.action
    step, c = problem.dynamics.transition(problem.time(k), y, u, y_next, problem.args)
    cost = problem.node_cost(k).quadratic(action, problem.time(k), y, u, problem.args, exact)
    return Node(step, c, cost.hessian, cost.gradient)


def linearize(
    problem: Problem, ys: Point, us: Float[Array, "horizon m"], exact: bool
) -> tuple[LinearQuadratic, Float[Array, "horizon+1 n"]]:
    """The linear-quadratic problem about a trajectory, and the multipliers of its steps, see ``costates``.

    Args:
        ys: States with the leading axis H + 1; they may have gaps.
        us: Controls.
        exact: True for exact second derivatives of least-squares costs instead of Gauss-Newton.
    """
    before, after = split_nodes(ys)

    def at(k: Array, y: Point, u: Array, y_next: Point) -> Node:
        return linear_quadratic_at(problem, k, y, u, y_next, exact)

    nodes = jax.vmap(at)(jnp.arange(problem.horizon), before, us, after)
    end = problem.end_model(ys, exact)
    A, B = jax.vmap(matrices)(nodes.step)
    n, H, g = A.shape[1], nodes.H, nodes.g
    costs = H[:, :n, :n], H[:, n:, n:], H[:, :n, n:], g[:, :n], g[:, n:]
    lq = LinearQuadratic(A, B, nodes.c, *costs, P=end.hessian, p=end.gradient)
    return lq, costates(lq.A, lq.q, lq.p)


def add_curvature(
    problem: Problem,
    ys: Point,
    us: Float[Array, "horizon m"],
    lq: LinearQuadratic,
    multipliers: Float[Array, "horizon+1 n"],
    costs: bool = False,
) -> LinearQuadratic:
    """Add the second derivatives of the steps, weighted by the multipliers, to the Hessians of the problem.

    Args:
        lq: The problem without them, from ``linearize``.
        multipliers: Multipliers of the steps, from ``linearize``.
        costs: True to add the terms of the costs that the Gauss-Newton model omits.
    """
    action = problem.dynamics.action
    before, after = split_nodes(ys)

    def curvature(k: Array, y: Point, u: Array, y_next: Point, weight: Array) -> Array:
        def weighted(z: Array) -> Array:
            moved = action.move(z[: action.dim], y), u + z[action.dim :]
            after = problem.dynamics.step_for_hessian(problem.time(k), *moved, problem.args)
            return weight @ action.difference(y_next, after)

        hessian = jax.hessian(weighted)(zero_tangent(action, y, u))
        if not costs:
            return hessian
        return hessian + problem.node_cost(k).remainder(action, problem.time(k), y, u, problem.args)

    ks, n = jnp.arange(problem.horizon), action.dim
    H = jax.vmap(curvature)(ks, before, us, after, multipliers[1:])
    P = lq.P
    if costs:
        last = jax.tree.map(lambda x: x[-1], ys)
        P = P + problem.end_cost().remainder(action, problem.time(problem.horizon), last, None, problem.args)
    return lq._replace(Q=lq.Q + H[:, :n, :n], R=lq.R + H[:, n:, n:], N=lq.N + H[:, :n, n:], P=P)


def costates(
    A: Float[Array, "horizon n n"], q: Float[Array, "horizon n"], p: Float[Array, " n"]
) -> Float[Array, "horizon+1 n"]:
    """The multipliers ``lambda_k = q_k + A_k^T lambda_{k+1}`` of the steps, with ``lambda_H = p``."""

    def back(after: Array, node: tuple[Array, Array]) -> tuple[Array, Array]:
        A, q = node
        now = q + A.T @ after
        return now, now

    _, before = control_flow.scan(back, p, (A, q), reverse=True)
    return jnp.concatenate([before, p[None]])


def split_nodes(ys: Point) -> tuple[Point, Point]:
    """All nodes but the last, and all but the first, of states with a leading axis of nodes."""
    return jax.tree.map(lambda x: x[:-1], ys), jax.tree.map(lambda x: x[1:], ys)


class CostToGo(NamedTuple):
    """The cost to go from a node as a function of its x; arrays have the batch last.

    Attributes:
        Vxx: Hessian of the minimum cost ``1/2 x . Vxx x + Vx . x`` (n, n), in blocks of ``Dynamics.block_sizes``.
        Vx: Its gradient at zero (n,).
        linear: First-order coefficient of the predicted change of the cost in the step length.
        quadratic: Second-order coefficient: for a step of length s the cost changes by ``s linear + s^2 quadratic /
            2``.
        slope: Gradient with respect to x of the part of the cost that is linear in the trajectory, with feedback (n,).
        costate: The same without feedback: the multiplier of the step to this node (n,).
    """

    Vxx: SymmetricBlocks
    Vx: Float[Array, " n *batch"]
    linear: Float[Array, "*batch"]
    quadratic: Float[Array, "*batch"]
    slope: Float[Array, " n *batch"]
    costate: Float[Array, " n *batch"]

    @classmethod
    def at_end(
        cls, P: Float[Array, "n n"], p: Float[Array, " n"], block_sizes: Sequence[int] | None = None
    ) -> CostToGo:
        """The cost to go at the last node, ``1/2 x . P x + p . x``; by default in one block."""
        zero = jnp.zeros_like(p[0])
        return cls(to_blocks(P, block_sizes or p.shape), p, zero, zero, p, jnp.where(jnp.isfinite(p), p, 0))


class BackwardStep(NamedTuple):
    """The policy of a node with diagnostics for a solver; arrays have the batch last.

    Attributes:
        K: Gains of the policy ``u = K x + k`` (m, n).
        k: Its constant (m,).
        definite: True if Quu is positive definite, so that the policy is a minimum.
        slope: Gradient of the cost of the trajectory with respect to u (m,).
        finite_derivatives: True if the node's own g, its A and c, and its B are finite (3,).
        finite_hessian: True if Vxx of the next node is finite.
    """

    K: Float[Array, "m n *batch"]
    k: Float[Array, " m *batch"]
    definite: Bool[Array, "*batch"]
    slope: Float[Array, " m *batch"]
    finite_derivatives: Bool[Array, " 3 *batch"]
    finite_hessian: Bool[Array, "*batch"]


@batch_last
def backward_step(
    ahead: CostToGo, node: Node, regularization: Float[Array, "*#batch"]
) -> tuple[CostToGo, BackwardStep]:
    """(cost to go, policy) of a node with unbounded controls, as a native function.

    ``Q = (A, B)^T Vxx (A, B) + ((Q, N), (N^T, R))``; ``K = -Quu^-1 Qux``; ``Vxx <- Qxx + Qxu K``.

    Args:
        regularization: Factor of the mean of R's diagonal, or of Quu's if R is zero, that is added to Quu.
    """
    return _backward_step(ahead, node, regularization, None)


@batch_last
def bounded_backward_step(
    ahead: CostToGo,
    node: Node,
    regularization: Float[Array, "*#batch"],
    lower: Float[Array, "m *#batch"],
    upper: Float[Array, "m *#batch"],
) -> tuple[CostToGo, BackwardStep]:
    """(cost to go, policy) of a node with lower <= u <= upper, lower <= 0 <= upper, as a native function.

    k is the minimum in the box at x = 0, and rows of K are zero for controls at an active bound.

    Source: Tassa, Mansard and Todorov 2014, Control-limited differential dynamic programming.
    """
    return _backward_step(ahead, node, regularization, (lower, upper))


def _backward_step(
    ahead: CostToGo, node: Node, regularization: Array, bounds: tuple[Array, Array] | None
) -> tuple[CostToGo, BackwardStep]:
    """One step of the Riccati recursion; see ``backward_step`` and ``bounded_backward_step``."""
    step, c, H, g = node
    n = len(c)
    Vc = fusion_barrier(times_blocks(ahead.Vxx, c))
    Qxx, Qux, Quu = step.congruence(ahead.Vxx, H)
    Qux, Quu = fusion_barrier((Qux, Quu + _relative(H[n:, n:], regularization, Quu)))
    # gradients of the next node seen from this one: with curvature, with feedback, without feedback
    by_x, by_u = step.pullback(fusion_barrier(jnp.stack([ahead.Vx + Vc, ahead.slope, ahead.costate], axis=1)))
    by_x, by_u = fusion_barrier((g[:n, None] + by_x, g[n:, None] + by_u))
    Qu = by_u[:, 0]
    if bounds is None:
        W, definite = dense.inverse_if_definite(Quu)
        W = fusion_barrier(W)
        K, k = -product(W, Qux), -times(W, Qu)
    else:
        K, k, definite = box_qp.box_step(Quu, Qux, Qu, *bounds)
    # a policy from an indefinite Quu or from values that are not finite is zero
    K, k = fusion_barrier((jnp.where(definite[None, None], K, 0), jnp.where(definite[None], k, 0)))
    # multiplies the costate, which is finite, so that NaN is detected here
    finite_derivatives = _finite(g), _finite(by_x[:, 2]) & _finite(c), _finite(by_u[:, 2])
    change = dense.dot(ahead.Vx, c) + (dense.dot(c, Vc) + dense.dot(k, times(Quu, k))) / 2 + dense.dot(Qu, k)
    linear = dense.dot(ahead.slope, c) + dense.dot(by_u[:, 1], k)
    before = CostToGo(
        # nonzero rows of Quu K + Qux belong to controls at an active bound, whose rows of K are zero
        Vxx=add_symmetric_product(Qxx, Qux, K),
        Vx=by_x[:, 0] + times(dense.transpose(Qux), k),
        linear=ahead.linear + linear,
        quadratic=ahead.quadratic + 2 * (change - linear),
        slope=by_x[:, 1] + times(dense.transpose(K), by_u[:, 1]),
        # so that the previous nodes are not reported
        costate=jnp.where(finite_derivatives[0] & finite_derivatives[1] & finite_derivatives[2], by_x[:, 2], 0),
    )
    return before, BackwardStep(K, k, definite, by_u[:, 2], jnp.stack(finite_derivatives), _finite(Vc))


@batch_last
def all_finite(V: SymmetricBlocks) -> Bool[Array, "*batch"]:
    """True if all entries of a symmetric matrix are finite, as a native function."""
    return _finite(jnp.concatenate([dense.sum_rows(block) for row in V for block in row]))


def _finite(x: Float[Array, " n *batch"]) -> Bool[Array, "*batch"]:
    """True if all entries along the first axis are finite."""
    # the difference is zero or NaN
    return jnp.isfinite(dense.sum_rows(x - x))


def regularized(R: Float[Array, "m m"], regularization: Float[Array, ""]) -> Float[Array, "m m"]:
    """R plus the regularization times the mean of its diagonal on its diagonal."""
    return R + _relative(R, regularization)


def _relative(
    R: Float[Array, "m m *#batch"],
    regularization: Float[Array, "*#batch"],
    instead: Float[Array, "m m *#batch"] | None = None,
) -> Float[Array, "m m *#batch"]:
    """The diagonal matrix of the regularization times the mean of R's diagonal, or of another one's if that is zero."""
    m = len(R)
    eye = jnp.eye(m, dtype=R.dtype).reshape((m, m) + (1,) * (R.ndim - 2))
    size = jnp.ones_like(R[0, 0])
    for matrix in (R,) if instead is None else (instead, R):
        mean = sum(abs(matrix[i, i]) for i in range(m)) / m
        size = jnp.where(mean > 0, mean, size)
    return eye * (regularization * size)[None, None]


class Policy(NamedTuple):
    """The policy ``u = K x + k`` at each step, and the cost to go ``1/2 x . Vxx x + Vx . x`` from each node.

    Attributes:
        K: Feedback (H, m, n).
        k: Feedforward (H, m).
        Vxx: Hessians of the costs to go (H + 1, n, n).
        Vx: Their gradients at x = 0 (H + 1, n).
        definite: True if the Hessian of the controls is positive definite at every step, so that the policy is a
            minimum.
    """

    K: Float[Array, "horizon m n"]
    k: Float[Array, "horizon m"]
    Vxx: Float[Array, "horizon+1 n n"]
    Vx: Float[Array, "horizon+1 n"]
    definite: Bool[Array, ""]


def nodes_of(lq: LinearQuadratic) -> Node:
    """The steps of a linear-quadratic problem, with the leading axis of time."""
    H = jnp.block([[lq.Q, lq.N], [jnp.swapaxes(lq.N, 1, 2), lq.R]])
    return Node(Dense(lq.A, lq.B), lq.c, H, jnp.concatenate([lq.q, lq.r], axis=1))


def expected_change(
    lq: LinearQuadratic, x: Float[Array, "nodes n"], u: Float[Array, "nodes-1 m"]
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """(linear part, quadratic part ``z . H z``) of the change of the cost along a trajectory z = (x, u)."""
    before, last = x[:-1], x[-1]
    linear = jnp.sum(lq.q * before) + jnp.sum(lq.r * u) + lq.p @ last
    quadratic = (
        jnp.einsum("ki,kij,kj", before, lq.Q, before)
        + 2 * jnp.einsum("ki,kij,kj", before, lq.N, u)
        + jnp.einsum("ki,kij,kj", u, lq.R, u)
        + last @ lq.P @ last
    )
    return linear, quadratic
