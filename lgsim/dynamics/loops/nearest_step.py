"""One step toward the nearest closed configuration: a projection to the closed set, and a step along it.

With the loop errors c and their Jacobian J, the metric M at the configuration, and the gradient g and Hessian A of half
the squared distance from the start,

    back:   n = -M^-1 J' (J M^-1 J' + mu)^-1 c,
    along:  Z' (A + sum_r lambda_r dJ_r + kappa M) Z y = -Z' g,    w = Z y,    lambda = -(J M^-1 J')^+ J M^-1 g,

where Z spans the null space of J: a Levenberg-Marquardt step, and a Newton step for the nearest point.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float

from lgsim._compile.xla import batch_last, fusion_barrier, native_with_derivatives
from lgsim.dynamics import linearization, row_tree
from lgsim.dynamics import rows as row
from lgsim.dynamics.loops import closure, loop_residuals, loop_units
from lgsim.multibody.model import Model


class Metric(NamedTuple):
    """The distance from the start at a configuration, with derivatives.

    Attributes:
        slope: Gradient of half the squared distance.
        free: 1 for moving degrees of freedom, 0 for held ones.
    """

    M: Float[Array, "nv nv"]
    slope: Float[Array, " nv"]
    hessian: Float[Array, "nv nv"]
    free: Float[Array, " nv"]


class Step(NamedTuple):
    """Both steps at a configuration.

    Attributes:
        c: The loop errors, m.
        J: Their Jacobian, held joints included.
        back: The displacement toward the closed set.
        along: The displacement along it.
        definite: True if that decreases the distance.
        XP: ``M^-1 J'`` of the moving joints times the proximal inverse of ``J M^-1 J'``, see ``AcrossStep``.
        bend: The Hessian of the Lagrangian.
        inverse: ``Z (Z' bend Z)^-1 Z'``.
        multipliers: The multipliers lambda.
    """

    c: Float[Array, " r"]
    J: Float[Array, "r nv"]
    back: Float[Array, " nv"]
    along: Float[Array, " nv"]
    definite: Bool[Array, ""]
    XP: Float[Array, "nv r"]
    bend: Float[Array, "nv nv"]
    inverse: Float[Array, "nv nv"]
    multipliers: Float[Array, " r"]


def _misfits(model: Model, q: Array, length: Array) -> tuple[Array, Array]:
    (q,) = row_tree.full((model, length), q)
    return loop_residuals.loop_residuals(model, loop_residuals.placed(model, q), length)


def _curvature(model: Model, q: Array, length: Array, multipliers: Array) -> Array:
    q, multipliers = row_tree.full((model, length), q, multipliers)
    return loop_residuals.curvature(model, loop_residuals.placed(model, q), length, multipliers)


def _length(model: Model, q: Array) -> Array:
    (q,) = row_tree.full(model, q)
    return loop_units.machine_length(model, loop_residuals.placed(model, q))


loop_misfits = batch_last(_misfits)
"""(loop errors (r,), m, their Jacobian (r, nv)) of one state q (nq,), for a length of the model."""
loop_curvature = batch_last(_curvature)
"""The derivative of ``sum_r multipliers_r J_r`` with respect to displacements, (nv, nv), at one state."""
machine_length = batch_last(_length)
"""The length of a model at one state, m."""


def _pushes(model: Model, q: Array, length: Array, multipliers: Array, v: Array) -> tuple[Array, Array, Array]:
    q, multipliers, v = row_tree.full((model, length), q, multipliers, v)
    return loop_residuals.pushes(model, loop_residuals.placed(model, q), length, multipliers, v)


def _momentum(model: Model, q: Array, v: Array) -> Array:
    q, v = row_tree.full(model, q, v)
    frozen = linearization.freeze(model, q, jnp.zeros_like(v), None)
    order = linearization.order(model.topology)
    V = order.down(fusion_barrier(frozen.S * row.speeds(model, v)))
    return (
        row.gathered(model, order.up(fusion_barrier(frozen.inertia.momentum(V))).power(frozen.S)) + model.armature * v
    )


loop_pushes = native_with_derivatives(_pushes)
"""(``J' multipliers`` (nv,), ``J v`` (r,), loop errors (r,)) of one state q (nq,), v (nv,)."""
momentum = native_with_derivatives(_momentum)
"""``M(q) v`` (nv,) of one state."""


class AcrossStep(NamedTuple):
    """The projection step from a configuration to the closed set.

    Attributes:
        c: The loop errors, m.
        J: Their Jacobian, held joints included.
        back: The displacement toward the closed set.
        M: The metric, with 1 on the diagonal for held joints.
        X: ``M^-1 J'`` of the moving joints.
        P: The proximal inverse of ``J M^-1 J'``; dependent or nearly dependent rows exert no force.
    """

    c: Float[Array, " r"]
    J: Float[Array, "r nv"]
    back: Float[Array, " nv"]
    M: Float[Array, "nv nv"]
    X: Float[Array, "nv r"]
    P: Float[Array, "r r"]


def across_step(
    model: Model, q: Float[Array, " nq"], M: Float[Array, "nv nv"], free: Float[Array, " nv"],
    length: Float[Array, ""], mu: Float[Array, ""],
) -> AcrossStep:  # fmt: skip
    """The projection step from q in the metric M, for a length of the model, m.

    It is damped in proportion to the mean diagonal entry of ``J M^-1 J'`` and to the loop errors; the latter makes the
    last steps Newton steps.
    """
    c, J_all = loop_misfits(model, q, length)
    J = J_all * free[None]
    M = M * free[:, None] * free[None] + jnp.diag(1 - free)
    # X = M^-1 J', G = J X in the moving joints
    X = solved(M, J.T)
    G = J @ X
    rounding = float(jnp.finfo(q.dtype).eps ** closure.POWER)
    mu = jnp.maximum(mu * jnp.minimum(jnp.sqrt(c @ c) / length, 1), rounding)
    mean = jnp.trace(G) / len(G)
    eye = jnp.eye(len(G), dtype=q.dtype)
    damping = jnp.where(mean > 0, mean, 1) * mu
    # H = (G + mu)^-1; P is its proximal refinement without components far below mu
    H = solved(G + damping * eye, eye)
    P = H
    for _ in range(closure.STEPS - 1):
        P = P + H @ (eye - G @ P)
    weak = damping * H
    P = P - weak @ (weak @ (weak @ P))
    return AcrossStep(c, J_all, -(X @ (H @ c)), M, X, P)


def nearest_step(
    model: Model, q: Float[Array, " nq"], metric: Metric, length: Float[Array, ""], mu: Float[Array, ""],
    kappa: Float[Array, ""],
) -> Step:  # fmt: skip
    """The steps at q for a length of the model, m, damped by mu, see ``across_step``, and by kappa."""
    free = metric.free
    c, J, back, M, X, P = across_step(model, q, metric.M, free, length, mu)
    XP = X @ P
    slope, J_free = metric.slope * free, J * free[None]
    both = free[:, None] * free[None]
    # lambda, the Hessian of the Lagrangian, and the projector Z to the null space of J
    multipliers = -(XP.T @ slope)
    bend = metric.hessian + loop_curvature(model, q, length, multipliers)
    flat = XP @ J_free
    Z = jnp.diag(free) - flat
    # the Newton system on the null space, with M on its complement to make it invertible
    inside = (bend + kappa * metric.M) * both
    N = Z.T @ (inside + inside.T) @ Z / 2 + flat.T @ (M * both) @ flat + jnp.diag(1 - free)
    inverse = Z @ solved(N, Z.T)
    definite = jnp.all(jnp.isfinite(inverse))
    along = jnp.where(definite, -(inverse @ (slope + J_free.T @ multipliers)), 0)
    return Step(c, J, back, along, definite, XP, bend, inverse, multipliers)


def solved(A: Float[Array, "n n"], B: Float[Array, "n m"]) -> Float[Array, "n m"]:
    """``A^-1 B`` for a symmetric positive definite A; not finite for other A."""
    return jax.scipy.linalg.cho_solve(jax.scipy.linalg.cho_factor((A + A.T) / 2), B)
