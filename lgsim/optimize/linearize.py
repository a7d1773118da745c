"""A problem about a trajectory as a linear-quadratic one, in tangent coordinates of its nodes."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from lgsim.lie.action import Point
from lgsim.optimize.cost import Cost, origin
from lgsim.optimize.dynamics import Transition, matrices
from lgsim.optimize.problem import Problem


class Node(NamedTuple):
    """A step of a linear-quadratic problem, and the Hessian and the slope of its cost by z = (x, u)."""

    step: Transition
    c: Array
    H: Array
    g: Array


class LinearQuadratic(NamedTuple):
    """Minimise ``sum_k 1/2 (x, u)^T [[Q, N], [N^T, R]] (x, u) + q . x + r . u`` plus ``1/2 x_H^T P x_H + p . x_H``
    under ``x_{k+1} = A x_k + B u_k + c``, x_0 = 0; the leading axis is time.
    """

    A: Array
    B: Array
    c: Array
    Q: Array
    R: Array
    N: Array
    q: Array
    r: Array
    P: Array
    p: Array


def linearize_step(problem: Problem, k: Array, y: Point, u: Array, y_next: Point) -> tuple[Array, Array, Array]:
    """(A, B, c) of ``difference(y_next, step(move(dx, y), u + du)) = A dx + B du + c``, as the dynamics give them."""
    return problem.dynamics.linearized(problem.time(k), y, u, y_next, problem.args)


def step_in_chart(problem: Problem, k: Array, y: Point, u: Array, y_next: Point, z: Array) -> Array:
    """``difference(y_next, step(move(dx, y), u + du))`` of z = (dx, du)."""
    action = problem.dynamics.action
    n = action.dim
    return action.difference(y_next, problem.step(k, action.move(z[:n], y), u + z[n:]))


def linear_quadratic_at(problem: Problem, k: Array, y: Point, u: Array, y_next: Point, full_costs: bool) -> Node:
    """The step and the cost of node k."""
    action = problem.dynamics.action
    step, c = problem.dynamics.transition(problem.time(k), y, u, y_next, problem.args)
    cost = problem.running_at(k).quadratic(action, problem.time(k), y, u, problem.args, full_costs)
    return Node(step, c, cost.hessian, cost.gradient)


def linearize(problem: Problem, ys: Point, us: Array, full_costs: bool) -> tuple[LinearQuadratic, Array]:
    """(the linear-quadratic problem about a trajectory, multipliers of the steps (H + 1, n)).

    Args:
        problem: The problem.
        ys: States with the leading axis H + 1; they need not follow each other.
        us: Controls (H, controls).
        full_costs: Second derivatives of the costs instead of Gauss-Newton's.
    """
    before, after = split_nodes(ys)

    def at(k: Array, y: Point, u: Array, y_next: Point) -> Node:
        return linear_quadratic_at(problem, k, y, u, y_next, full_costs)

    nodes = jax.vmap(at)(jnp.arange(problem.horizon), before, us, after)
    end = problem.end_model(jax.tree.map(lambda x: x[-1], ys), full_costs)
    A, B = jax.vmap(matrices)(nodes.step)
    n, H, g = A.shape[1], nodes.H, nodes.g
    costs = H[:, :n, :n], H[:, n:, n:], H[:, :n, n:], g[:, :n], g[:, n:]
    lq = LinearQuadratic(A, B, nodes.c, *costs, P=end.hessian, p=end.gradient)
    return lq, costates(lq.A, lq.q, lq.p)


def curved(
    problem: Problem, ys: Point, us: Array, lq: LinearQuadratic, multipliers: Array, costs: bool = False
) -> LinearQuadratic:
    """The problem with the second derivatives of the steps, weighted by the multipliers, added to its Hessians.

    Args:
        problem, ys, us: See ``linearize``, which gave ``lq`` and ``multipliers``.
        lq: The problem without them.
        multipliers: Of the steps (H + 1, n).
        costs: Add what Gauss-Newton's model leaves out of the costs as well.
    """
    action = problem.dynamics.action
    before, after = split_nodes(ys)

    def bend(k: Array, y: Point, u: Array, y_next: Point, weight: Array) -> Array:
        along = partial(step_in_chart, problem, k, y, u, y_next)
        step = jax.hessian(lambda z: weight @ along(z))(origin(action, y, u))
        return step + left_out(problem.running_at(k), problem.time(k), y, u) if costs else step

    def left_out(cost: Cost, t: Array, y: Point, u: Array | None) -> Array:
        full, part = (cost.quadratic(action, t, y, u, problem.args, whole).hessian for whole in (True, False))
        return full - part

    ks, n = jnp.arange(problem.horizon), action.dim
    H = jax.vmap(bend)(ks, before, us, after, multipliers[1:])
    P = lq.P
    if costs:
        last = jax.tree.map(lambda x: x[-1], ys)
        P = P + left_out(problem.at_end(), problem.time(problem.horizon), last, None)
    return lq._replace(Q=lq.Q + H[:, :n, :n], R=lq.R + H[:, n:, n:], N=lq.N + H[:, :n, n:], P=P)


def costates(A: Array, q: Array, p: Array) -> Array:
    """The multipliers ``lambda_k = q_k + A_k^T lambda_{k+1}``, lambda_H = p, (H + 1, n)."""

    def back(after: Array, node: tuple[Array, Array]) -> tuple[Array, Array]:
        A, q = node
        now = q + A.T @ after
        return now, now

    _, found = jax.lax.scan(back, p, (A, q), reverse=True)
    return jnp.concatenate([found, p[None]])


def split_nodes(ys: Point) -> tuple[Point, Point]:
    """(all nodes but the last, all but the first)."""
    return jax.tree.map(lambda x: x[:-1], ys), jax.tree.map(lambda x: x[1:], ys)
