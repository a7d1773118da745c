"""Levenberg-Marquardt steps for a plant and a chain of initial states, in time linear in the number of windows."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.scipy.linalg import solve_triangular
from jaxtyping import Float

from lgsim._compile.linalg.box_qp import box_minimum
from lgsim._compile.linalg.levenberg_marquardt import LinearStep, Proposal
from lgsim._compile.xla import control_flow
from lgsim.identify.estimators.multiple_shooting import ShootingNormalEquations
from lgsim.identify.estimators.uncertainty import rank_tolerance


class Elimination(NamedTuple):
    """Block Cholesky factorization ``L L^T`` of the block-tridiagonal matrix of the states, applied to the border
    blocks.

    Attributes:
        diagonal: Cholesky factors (windows, n, n).
        below: Subdiagonal blocks of L (windows, n, n), the first one unused.
        forward: ``L^-1 [sx, g]`` (windows, n, p + 1).
    """

    diagonal: Float[Array, "windows n n"]
    below: Float[Array, "windows n n"]
    forward: Float[Array, "windows n columns"]


def eliminate(
    linear: ShootingNormalEquations, damping: Float[Array, "windows n"]
) -> tuple[Float[Array, "p p"], Float[Array, " p"], Elimination]:
    """(Schur complement, gradient, factors) for the coordinates after elimination of the states.

    Args:
        damping: Values added to the diagonal of the states.
    """
    windows, n = linear.gs.shape
    if not n:
        none = jnp.zeros((windows, 0, 0), linear.xx.dtype)
        return linear.xx, linear.gx, Elimination(none, none, jnp.zeros((windows, 0, len(linear.gx) + 1), none.dtype))
    right = jnp.concatenate([linear.xs, linear.gs[:, None]], axis=1).swapaxes(1, 2)
    before = jnp.concatenate([jnp.zeros_like(linear.near[:1]), linear.near[:-1]])
    D = linear.ss + damping[:, :, None] * jnp.eye(n, dtype=damping.dtype)[None]

    def step(carry: tuple[Array, Array], block: tuple[Array, Array, Array]) -> tuple[Any, Any]:
        C, y = carry
        D, N, b = block
        below = solve_triangular(C, N, lower=True).T
        C = jnp.linalg.cholesky(D - below @ below.T)
        y = solve_triangular(C, b - below @ y, lower=True)
        return (C, y), (C, below, y)

    start = jnp.eye(n, dtype=D.dtype), jnp.zeros_like(right[0])
    _, (C, below, y) = control_flow.scan(step, start, (D, before, right))
    Y, z = y[..., :-1], y[..., -1]
    schur = linear.xx - jnp.einsum("wnp,wnq->pq", Y, Y)
    return schur, linear.gx - jnp.einsum("wnp,wn->p", Y, z), Elimination(C, below, y)


def substitute(factors: Elimination, dx: Float[Array, " p"]) -> Float[Array, "windows n"]:
    """The tangents of the optimal states after a change of the coordinates."""
    return _back(factors, factors.forward[..., :-1] @ dx[:, None] + factors.forward[..., -1:])[..., 0]


def state_sensitivities(factors: Elimination) -> Float[Array, "windows n p"]:
    """The derivatives of the optimal states with respect to the coordinates."""
    return _back(factors, factors.forward[..., :-1])


def draw_tangents(
    factors: Elimination, schur: Float[Array, "p p"], draws: int
) -> tuple[Float[Array, "draws p"], Float[Array, "draws windows n"]]:
    """Draws of coordinates and tangents of the states whose covariance is the inverse of the Hessian; always the same.

    Args:
        schur: The Schur complement; combinations without information are not drawn.
    """
    diagonal = jnp.diagonal(schur)
    scale = jnp.where(diagonal > 0, 1 / jnp.sqrt(jnp.where(diagonal > 0, diagonal, 1)), 0)
    values, vectors = jnp.linalg.eigh(scale[:, None] * schur * scale[None])
    kept = values > rank_tolerance(schur.dtype) ** 2 * values[-1]
    root = scale[:, None] * vectors * jnp.where(kept, 1 / jnp.sqrt(jnp.where(kept, values, 1)), 0)[None]
    windows, n = factors.diagonal.shape[:2]
    one, two = jax.random.split(jax.random.key(0))
    dx = jax.random.normal(one, (draws, len(schur)), schur.dtype) @ root.T
    z = jax.random.normal(two, (windows, n, draws), schur.dtype)
    ds = _back(factors, factors.forward[..., :-1] @ dx.T - z)
    return dx, jnp.moveaxis(ds, -1, 0)


def _back(factors: Elimination, right: Float[Array, "windows n columns"]) -> Float[Array, "windows n columns"]:
    """``-L^-T right``."""
    if not factors.diagonal.shape[1]:
        return -right
    after = jnp.concatenate([factors.below[1:], jnp.zeros_like(factors.below[:1])])

    def step(following: Array, block: tuple[Array, Array, Array]) -> tuple[Array, Array]:
        C, below, b = block
        d = solve_triangular(C, -b - below.T @ following, lower=True, trans=1)
        return d, d

    return control_flow.scan(step, jnp.zeros_like(right[0]), (factors.diagonal, after, right), reverse=True)[1]


def _predicted_decrease(
    linear: ShootingNormalEquations, dx: Float[Array, " p"], ds: Float[Array, "windows n"]
) -> Float[Array, ""]:
    """The decrease of the quadratic model of the cost along a step."""
    slope = linear.gx @ dx + jnp.sum(linear.gs * ds)
    curvature = dx @ linear.xx @ dx + 2 * jnp.einsum("p,wpn,wn->", dx, linear.xs, ds)
    curvature = curvature + jnp.einsum("wn,wnm,wm->", ds, linear.ss, ds)
    curvature = curvature + 2 * jnp.einsum("wn,wnm,wm->", ds, linear.near, jnp.roll(ds, -1, axis=0))
    return -(slope + curvature / 2)


class StructuredStep(LinearStep):
    """The step of the normal equations of a chain of states, for ``LevenbergMarquardt``.

    The states are eliminated, so that the time of a step is linear in the number of windows. x are the coordinates of
    the plant, the other unknowns are the initial states of the windows.
    """

    def gradient(self, normal: ShootingNormalEquations) -> Float[Array, " p"]:
        return normal.gx

    def diagonals(self, normal: ShootingNormalEquations) -> tuple[Float[Array, " p"], Float[Array, "windows n"]]:
        return jnp.diagonal(normal.xx), jnp.diagonal(normal.ss, axis1=1, axis2=2)

    def propose(
        self,
        normal: ShootingNormalEquations,
        D: tuple[Float[Array, " p"], Float[Array, "windows n"]],
        mu: Float[Array, ""] | float,
        x: Float[Array, " p"],
        lower: Float[Array, " p"],
        upper: Float[Array, " p"],
    ) -> Proposal:
        schur, g, factors = eliminate(normal, mu * D[1])
        dx, _ = box_minimum(schur + mu * jnp.diag(D[0]), g, lower - x, upper - x)
        dx = jnp.clip(x + dx, lower, upper) - x
        ds = substitute(factors, dx)
        return Proposal(x + dx, ds, _predicted_decrease(normal, dx, ds))
