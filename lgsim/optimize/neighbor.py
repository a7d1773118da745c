"""Controls near a stationary trajectory with a lower cost, which distinguish a saddle from a minimum."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float

from lgsim._compile.xla import compiled, control_flow, scan_last
from lgsim.lie.action import Point
from lgsim.optimize.augmented_lagrangian import with_penalties
from lgsim.optimize.constraint_rows import constraint_values
from lgsim.optimize.constraints.constraint import Constraint
from lgsim.optimize.constraints.penalties import Penalties
from lgsim.optimize.cost import move_node, zero_tangent
from lgsim.optimize.linear_quadratic import (
    CostToGo,
    LinearQuadratic,
    add_curvature,
    backward_step,
    linearize,
    nodes_of,
    split_nodes,
)
from lgsim.optimize.optimality import control_sizes, room_to_bounds, rounding_of_cost
from lgsim.optimize.problem import Problem

_SIZES = 10.0 ** np.arange(-6.0, 1.0)
"""Sizes of the changes, relative to a control."""
_FAR = 0.01
"""Smallest change from which a solver continues although the cost is not lower there."""
_NEAR = 0.1
"""Largest change that shows the curvature at a trajectory."""
_SHAPES = 4
"""Number of changes of each size, half of them constant in time."""
_STIFFER = 100.0
"""Factor of the penalties that makes the active rows stiff, so that the remaining curvature is that along them."""
_SHIFTS = 4.0 ** np.arange(-16.0, 12.0)
"""Shifts of inverse iteration, relative to the mean second derivative of the cost by the controls."""
_ROUNDS = 8
"""Number of inverse iterations."""


@compiled
def neighbor(
    problem: Problem, us: Float[Array, "horizon nu"], cost: Float[Array, ""]
) -> tuple[Float[Array, "horizon nu"], Bool[Array, ""]]:
    """Controls near to us and True if their cost is lower, to continue from where the gradient vanishes.

    At a saddle, such as a stretched arm with a target further in or a hanging pendulum, the Gauss-Newton model may have
    its minimum. Changes in both directions, from a millionth of the controls to their size, reveal the saddle. The best
    of them is returned, or if none is lower the best of those of at least a hundredth.
    """
    shapes = np.random.default_rng(0).normal(size=(_SHAPES, *us.shape))
    shapes[::2] = shapes[::2, :1]
    tried, costs, parts = _changed(problem, us, jnp.asarray(shapes, us.dtype))
    lower = _falls(costs, cost)
    far = jnp.where(parts >= _FAR, costs, jnp.inf)
    return tried[jnp.argmin(jnp.where(lower, costs, far))], lower


@compiled
def has_curved_constraints(
    problem: Problem, ys: Point, us: Float[Array, "horizon nu"], penalties: Penalties
) -> Bool[Array, ""]:
    """True if an active row has second derivatives at a trajectory, in tangent coordinates of its nodes."""
    action = problem.dynamics.action

    def curvature(k: Array | int, y: Point, u: Array | None, terms: list[tuple[Constraint, Array]]) -> Array:
        def weighted(z: Array) -> Array:
            moved = move_node(action, y, u, z)
            return sum((m @ c.value(problem.time(k), *moved, problem.args) for c, m in terms), start=0 * jnp.sum(z))

        return jax.hessian(weighted)(zero_tangent(action, y, u))

    path, end = ([c for c in problem.constraints if c.on_path], [c for c in problem.constraints if c.at_end])
    before, last = split_nodes(ys)[0], jax.tree.map(lambda y: y[-1], ys)
    at_nodes = jax.vmap(lambda k, y, u, m: curvature(k, y, u, list(zip(path, m, strict=True))))
    H = at_nodes(jnp.arange(problem.horizon), before, us, penalties.path)
    P = curvature(problem.horizon, last, None, list(zip(end, penalties.end, strict=True)))
    return jnp.any(H != 0) | jnp.any(P != 0)


@compiled
def neighbor_along_constraints(
    problem: Problem, ys: Point, us: Float[Array, "horizon nu"], penalties: Penalties
) -> tuple[Float[Array, "horizon nu"], Bool[Array, ""]]:
    """Controls near to a KKT point, and True if the Lagrangian is lower there along the active constraints.

    With a large penalty the augmented Lagrangian has a minimum where the Lagrangian has one along the active rows.
    Where its Hessian, with the second derivatives of costs and constraints but not of the steps, is not positive
    definite, inverse iteration with shifts finds directions of negative curvature. The lowest point along them is
    returned; costs are those of rollouts, so that what the Hessian leaves out makes no saddle of a minimum.

    Args:
        penalties: The multipliers of the trajectory, as ``AugmentedLagrangian`` returns them.

    Source: Nocedal and Wright, Numerical Optimization, 2nd ed., th. 12.5 and 17.5.
    """
    problem = with_penalties(problem, _stiffer(problem, ys, us, penalties))
    return _along_negative_curvature(problem, us, problem.cost(ys, us), linearize(problem, ys, us, True)[0])


@compiled
def neighbor_by_curvature(
    problem: Problem, us: Float[Array, "horizon nu"], cost: Float[Array, ""]
) -> tuple[Float[Array, "horizon nu"], Bool[Array, ""]]:
    """Controls near to a stationary trajectory, and True if the cost is lower there, from the exact Hessian.

    Directions of negative curvature that need several controls at once, such as driving and steering of a car at rest,
    are not among the arbitrary ones of ``neighbor``.
    """
    ys = problem.rollout(us)
    lq, multipliers = linearize(problem, ys, us, True)
    return _along_negative_curvature(problem, us, cost, add_curvature(problem, ys, us, lq, multipliers))


def _along_negative_curvature(
    problem: Problem, us: Float[Array, "horizon nu"], cost: Float[Array, ""], lq: LinearQuadratic
) -> tuple[Float[Array, "horizon nu"], Bool[Array, ""]]:
    """The controls of lowest cost along directions of negative curvature of a quadratic model, and True if lower."""
    lq = _among(lq, problem, us)
    noise = jnp.asarray(np.random.default_rng(0).normal(size=us.shape), us.dtype)
    _, definite = _newton(lq, noise, jnp.zeros((), us.dtype))

    def search() -> tuple[Array, Array]:
        def turn(shapes: Array, _: Array) -> tuple[Array, None]:
            steps, _ = jax.vmap(_newton, (None, 0, 0))(lq, shapes, jnp.asarray(_SHIFTS, us.dtype))
            size = jnp.max(jnp.abs(steps), axis=(1, 2), keepdims=True)
            return jnp.where(size > 0, steps / jnp.where(size > 0, size, 1), 0), None

        start = jnp.broadcast_to(noise, (len(_SHIFTS), *us.shape))
        shapes, _ = control_flow.scan(turn, start, jnp.arange(_ROUNDS))
        tried, costs, parts = _changed(problem, us, shapes)
        # the mean of both sides: a gradient that is not quite zero, and another valley far away, make no saddle
        means = jnp.where(parts <= _NEAR, costs, jnp.inf).reshape(2, -1).mean(axis=0)
        return tried[jnp.argmin(costs)], _falls(means, cost)

    return jax.lax.cond(definite, lambda: (us, jnp.array(False)), search)


def _changed(
    problem: Problem, us: Float[Array, "horizon nu"], shapes: Float[Array, "shapes horizon nu"]
) -> tuple[Float[Array, "tries horizon nu"], Float[Array, " tries"], Float[np.ndarray, " tries"]]:
    """Controls changed in both directions by shapes of all sizes, their costs, and the sizes."""
    parts = np.repeat(np.concatenate([_SIZES, -_SIZES]), len(shapes))
    changes = jnp.asarray(parts, us.dtype)[:, None, None] * jnp.tile(shapes, (2 * len(_SIZES), 1, 1))
    tried = problem.clip(us[None] + changes * control_sizes(problem, us)[None, None])
    costs = jax.vmap(lambda us: problem.cost(problem.rollout(us), us))(tried)
    return tried, jnp.where(jnp.isfinite(costs), costs, jnp.inf), np.abs(parts)


def _falls(costs: Float[Array, " tries"], cost: Float[Array, ""]) -> Bool[Array, ""]:
    """True if one of the costs is lower than a given one by more than rounding."""
    return jnp.min(costs) < cost - 10 * rounding_of_cost(costs.dtype) * jnp.abs(cost)


def _stiffer(problem: Problem, ys: Point, us: Float[Array, "horizon nu"], penalties: Penalties) -> Penalties:
    """Larger penalties with the same slopes of all rows at a trajectory."""
    stiff = eqx.tree_at(lambda p: p.weight, penalties, _STIFFER * penalties.weight)
    path, end = constraint_values(problem, ys, us)

    def shifted(constraints: list[Constraint], *numbers: tuple[Array, ...]) -> tuple[Array, ...]:
        return tuple(_kept_slope(c, *each) for c, *each in zip(constraints, *numbers, strict=True))

    rows = (
        shifted([c for c in problem.constraints if c.on_path], penalties.path, path, stiff.path_weights),
        shifted([c for c in problem.constraints if c.at_end], penalties.end, end, stiff.end_weights),
    )
    return eqx.tree_at(lambda p: (p.path, p.end), stiff, rows)


def _kept_slope(constraint: Constraint, m: Array, c: Array, rho: Array) -> Array:
    """The multipliers with which ``m + rho c`` is m at the values c of the rows."""
    most = jnp.broadcast_to(jnp.asarray(constraint.price.linear, m.dtype), m.shape)
    # a row that is not active has no slope, and one at its linear price keeps that
    return jnp.where((m == 0) | (jnp.abs(m) >= most), m, m - jnp.broadcast_to(rho, c.shape) * c)


def _among(lq: LinearQuadratic, problem: Problem, us: Float[Array, "horizon nu"]) -> LinearQuadratic:
    """The problem with controls at their bounds fixed, in units of the controls' sizes."""
    size = control_sizes(problem, us)
    free = jnp.ones_like(us, dtype=bool)
    if problem.bounded:
        below, above = room_to_bounds(problem, us)
        free = (below > 0) & (above > 0)
    scale = jnp.where(free, size[None], 0)
    R = scale[:, :, None] * lq.R * scale[:, None, :]
    mean = jnp.mean(jnp.abs(jnp.diagonal(R, axis1=1, axis2=2)))
    held = jnp.where(free, 0, jnp.where(mean > 0, mean, 1))
    return lq._replace(
        B=lq.B * scale[:, None, :], N=lq.N * scale[:, None, :], R=R + jax.vmap(jnp.diag)(held), c=jnp.zeros_like(lq.c)
    )


def _newton(
    lq: LinearQuadratic, slopes: Float[Array, "horizon m"], shift: Float[Array, ""]
) -> tuple[Float[Array, "horizon m"], Bool[Array, ""]]:
    """Solution of ``(H + shift) u = slopes``, zero if H + shift is not positive definite, and True if it is."""
    zero = jnp.zeros_like(lq.p)
    size = jnp.mean(jnp.abs(jnp.diagonal(lq.R, axis1=1, axis2=2)))
    R = lq.R + (shift * size * jnp.eye(lq.R.shape[1], dtype=lq.R.dtype))[None]
    nodes = nodes_of(lq._replace(R=R, q=jnp.zeros_like(lq.q), r=-slopes))
    nothing = jnp.zeros((), zero.dtype)
    _, steps = scan_last(
        lambda ahead, node: backward_step(ahead, node, nothing), CostToGo.at_end(lq.P, zero), nodes, reverse=True
    )

    def forward(x: Array, node: tuple[Array, Array, Array, Array]) -> tuple[Array, Array]:
        A, B, K, k = node
        u = K @ x + k
        return A @ x + B @ u, u

    _, us = control_flow.scan(forward, zero, (lq.A, lq.B, steps.K, steps.k))
    definite = jnp.all(steps.definite)
    return jnp.where(definite, us, 0), definite
