"""The sweep of a solver backwards through a trajectory: its linear-quadratic problem, solved as it is made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from lgsim.lie.action import Point
from lgsim.optimize.linearize import Node, curved, linear_quadratic_at, linearize, split_nodes
from lgsim.optimize.parallel_riccati import parallel_riccati, parallel_rollout_policy
from lgsim.optimize.problem import Problem
from lgsim.optimize.results import first_nonfinite
from lgsim.optimize.riccati import (
    BackwardStep,
    CostToGo,
    all_finite,
    backward_step,
    bounded_backward_step,
    damped,
    models,
    nodes_of,
)
from lgsim.xla import scan_last


class BackwardPass(NamedTuple):
    """A step from a trajectory and what it promises; the leading axis is time.

    Attributes:
        K, k: The policy ``du = K dx + k`` (H, controls, n), (H, controls).
        gaps: Of the steps (H, n).
        definite: Whether the policy is a minimum.
        down, bend: The cost changes along a step of length s by ``s down + s^2 bend / 2`` in the model.
        gradient: The largest entry of the cost's slope by the free controls.
        place, quantity: The first slope or derivative of a step that is not finite, else the last Hessian that is not,
            else (-1, -1); see ``first_nonfinite``. By ``parallel_sweep`` the first of any kind.
    """

    K: Array
    k: Array
    gaps: Array
    definite: Array
    down: Array
    bend: Array
    gradient: Array
    place: Array
    quantity: Array


def backward_pass(problem: Problem, ys: Point, us: Array, damping: Array, full_costs: bool) -> BackwardPass:
    """Linearise the steps and the costs, and solve their linear-quadratic problem.

    Args:
        problem: The problem.
        ys, us: The trajectory: states with the leading axis H + 1, controls (H, controls).
        damping: Added to the Hessian of the controls, relative to the mean of R's diagonal.
        full_costs: Second derivatives of the costs instead of Gauss-Newton's.
    """
    before, after = split_nodes(ys)
    xs = jnp.arange(problem.horizon), before, us, after

    def ready(x: tuple) -> tuple[Node, Array]:
        k, y, u, y_next = x
        return linear_quadratic_at(problem, k, y, u, y_next, full_costs), u

    end = problem.end_model(jax.tree.map(lambda y: y[-1], ys), full_costs)
    return _solved(problem, xs, ready, end.hessian, end.gradient, problem.dynamics.cuts, damping)


def second_order_backward_pass(
    problem: Problem, ys: Point, us: Array, damping: Array, full_costs: bool
) -> BackwardPass:
    """The same with the second derivatives of the steps, and of all costs, wherever that model has a minimum."""
    lq, costates = linearize(problem, ys, us, full_costs)
    exact = curved(problem, ys, us, lq, costates, not full_costs)
    plain, newton = (_solved(problem, (nodes_of(x), us), lambda x: x, x.P, x.p, None, damping) for x in (lq, exact))
    return jax.tree.map(lambda a, b: jnp.where(newton.definite, a, b), newton, plain)


def parallel_backward_pass(problem: Problem, ys: Point, us: Array, damping: Array, full_costs: bool) -> BackwardPass:
    """The same by associative scans over time; without bounds."""
    lq, costates = linearize(problem, ys, us, full_costs)
    policy = parallel_riccati(lq._replace(R=jax.vmap(damped, (0, None))(lq.R, damping)))
    down, bend = models(lq, *parallel_rollout_policy(lq, policy.K, policy.k))
    slope = lq.r + jnp.einsum("kij,ki->kj", lq.B, costates[1:])
    place = first_nonfinite({
        3: (jnp.concatenate([lq.q, lq.r], axis=1), 0), 4: ((lq.Q, lq.N, lq.R), 0), 5: (lq.A, 0), 6: (lq.B, 0)
    })  # fmt: skip
    place = _or(place, first_nonfinite({3: (lq.p[None], len(lq.q)), 4: (lq.P[None], len(lq.q))}))
    return BackwardPass(policy.K, policy.k, lq.c, policy.definite, down, bend, jnp.max(jnp.abs(slope)), *place)


def _solved(
    problem: Problem, xs: Any, ready: Any, P: Array, p: Array, cuts: Sequence[int] | None, damping: Array
) -> BackwardPass:
    """The Riccati solution backwards over what ``ready`` gives: (Node, control) of each step."""

    def back(ahead: CostToGo, x: tuple[Node, Array]) -> tuple[CostToGo, tuple]:
        node, u = x
        if problem.bounded:
            now, step = bounded_backward_step(ahead, node, damping, problem.lower - u, problem.upper - u)
        else:
            now, step = backward_step(ahead, node, damping)
        return now, (step, jnp.max(jnp.abs(u - problem.clip(u - step.slope))), node.c)

    first, (steps, slopes, gaps) = scan_last(back, CostToGo.at_end(P, p, cuts), xs, prepare=ready, reverse=True)
    definite = jnp.all(steps.definite)
    place = _nonfinite(steps, first, p)
    return BackwardPass(steps.K, steps.k, gaps, definite, first.down, first.bend, jnp.max(slopes), *place)


def _nonfinite(steps: BackwardStep, first: CostToGo, p: Array) -> tuple[Array, Array]:
    """The first slope or derivative of a step that is not finite; without any the Hessian that is not."""
    sound = jnp.where(steps.sound, 0.0, jnp.nan)
    place = first_nonfinite({quantity: (sound[:, i], 0) for i, quantity in enumerate((3, 5, 6))})
    place = _or(place, first_nonfinite({3: (p[None], len(sound))}))
    # it spoils V there and in all nodes before
    smooth = jnp.concatenate([all_finite(first.V)[None], steps.smooth])
    last = jnp.max(jnp.where(smooth, -1, jnp.arange(len(smooth))))
    return _or(place, (last, jnp.where(last < 0, -1, 4)))


def _or(place: tuple[Array, Array], other: tuple[Array, Array]) -> tuple[Array, Array]:
    return jax.tree.map(lambda a, b: jnp.where(place[0] < 0, b, a), place, other)
