"""Minimum of a small convex quadratic with inequality constraints per block, on the central path.

    min  1/2 sum_i x_i . x_i + 1/(2 give) |b - sum_i B_i x_i|^2 - rounding^2 sum_i sum_r log (C_i x_i + d_i)_r

over blocks x_i. With the multipliers y = (b - sum B x)/give and l, the optimality conditions are

    x_i = B_i^T y + C_i^T l_i,    b - sum_i B_i x_i = give y,    l_ir (C_i x_i + d_i)_r = rounding^2,

They have one solution for any b if the inequalities have interior points; it is a smooth function of all data.
"""

from __future__ import annotations

from functools import reduce
from typing import NamedTuple

import jax
import jax.flatten_util
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from lgsim._compile.linalg import dense
from lgsim._compile.xla import batch_last, control_flow
from lgsim._compile.xla.batch_primitive import change_along

ITERATIONS = 30
"""Number of interior-point steps; ten suffice, and twenty if b is far from feasible."""
SHARE = 0.1
"""Target of the complementarity after a full step, relative to that before."""
_TO_THE_EDGE = 0.99
"""Largest step relative to the distance to the nearest inequality."""


class ConeQP(NamedTuple):
    """Data of the problem, for k blocks of n unknowns with r inequalities each, and m equations.

    Attributes:
        B: Equations (m, n, k, *batch).
        b: Their right-hand sides (m, *batch).
        C: Rows of the inequalities ``C x + d >= 0``, (r, n, k, *batch), with interior points.
        d: Constants of the inequalities, (r, k, *batch).
        give: Compliance of the equations, positive, (*batch).
        rounding: Square root of the product of multiplier and inequality on the central path, positive, (*batch).
    """

    B: Float[Array, "m n k *#batch"]
    b: Float[Array, "m *#batch"]
    C: Float[Array, "r n k *#batch"]
    d: Float[Array, "r k *#batch"]
    give: Float[Array, "*#batch"]
    rounding: Float[Array, "*#batch"]


class ConeMinimum(NamedTuple):
    """The minimum of a ``ConeQP``.

    Attributes:
        x: Unknowns (n, k, *batch).
        y: Multipliers of the equations (m, *batch).
        multipliers: Multipliers of the inequalities (r, k, *batch), positive.
    """

    x: Float[Array, "n k *batch"]
    y: Float[Array, " m *batch"]
    multipliers: Float[Array, "r k *batch"]


def cone_minimum(problem: ConeQP) -> ConeMinimum:
    """The minimum of one problem as a native function; batch it by ``jax.vmap``.

    Derivatives of any order are those of the minimum by the implicit function theorem. The number of steps is fixed:
    lack of convergence, which occurs only for values near the limits of the dtype, is visible in the conditions.

    Source: Nocedal and Wright, Numerical Optimization, 2nd ed., alg. 14.3 and sec. 16.6, with a point on the central
    path instead of its end.
    """
    return _native(problem)


class _State(NamedTuple):
    """Unknowns, multipliers, and inequalities c, which stay positive and converge to ``C x + d``."""

    x: Array
    y: Array
    force: Array
    c: Array


def _search(p: ConeQP) -> ConeMinimum:
    """The minimum by interior-point steps."""
    m, n, k = p.B.shape[:3]
    batch = jnp.broadcast_shapes(*(array.shape[rank:] for array, rank in zip(p, (3, 1, 3, 2, 0, 0), strict=True)))
    size = jnp.sqrt(dense.dot(p.b, p.b) + p.rounding * p.rounding)
    ones = jnp.ones((len(p.d), k, *batch), p.b.dtype)
    start = _State(
        jnp.zeros((n, k, *batch), p.b.dtype), jnp.zeros((m, *batch), p.b.dtype),
        ones * size[None, None], ones * size[None, None],
    )  # fmt: skip
    goal = jnp.broadcast_to(p.rounding * p.rounding, batch)

    def step(_: Array, s: _State) -> _State:
        # a fixed reduction of the gap: predictor steps stall at the tip of a cone
        aim = jnp.maximum(goal, SHARE * _mean(s.force * s.c))
        move = _newton(p, s, aim[None, None] - s.force * s.c)
        length = _length(s, move)
        return jax.tree.map(
            lambda x, dx: x + length.reshape((1,) * (x.ndim - length.ndim) + length.shape) * dx, s, move
        )

    end = control_flow.fori_loop(0, ITERATIONS, step, start)
    return ConeMinimum(end.x, end.y, end.force)


def _newton(p: ConeQP, s: _State, change: Float[Array, "r k *batch"]) -> _State:
    """The Newton step that solves the linearized conditions and changes ``l c`` by ``change``."""
    at = s.c.shape[2:]
    n, k = s.x.shape[:2]
    weight = s.force / s.c
    C = jnp.broadcast_to(p.C, (*p.C.shape[:3], *at))
    B = jnp.broadcast_to(p.B, (*p.B.shape[:3], *at))
    Ct, Bt = dense.transpose(C), dense.transpose(B)
    unit = jnp.eye(n, dtype=s.x.dtype).reshape((n, n) + (1,) * (1 + len(at)))
    # eliminate c, l and x per block: K^-1 = (1 + C^T (l/c) C)^-1
    inverse = dense.inverse(dense.product(Ct, C * weight[:, None]) + unit)
    # Schur complement of the equations, S = sum B K^-1 B^T + give
    KB = dense.product(inverse, Bt)
    S = _over_blocks(dense.product(B, KB), 2)
    give = jnp.eye(len(p.b), dtype=s.x.dtype).reshape((len(p.b),) * 2 + (1,) * len(at)) * p.give[None, None]
    S_inverse = dense.inverse(S + give)
    # residuals of the three conditions, with c in place of C x + d
    off_x = s.x - dense.times(Bt, jnp.broadcast_to(s.y[:, None], (len(p.b), k, *at))) - dense.times(Ct, s.force)
    off_y = p.b - _over_blocks(dense.times(B, s.x), 1) - p.give[None] * s.y
    off_c = dense.times(C, s.x) + p.d - s.c
    pull = (change - s.force * off_c) / s.c
    g = dense.times(Ct, pull) - off_x
    # back substitution: dy, then dx, dc and dl
    solved = dense.times(inverse, g)
    dy = dense.times(S_inverse, off_y - _over_blocks(dense.times(B, solved), 1))
    dx = solved + dense.times(KB, jnp.broadcast_to(dy[:, None], (len(p.b), k, *at)))
    dc = dense.times(C, dx) + off_c
    return _State(dx, dy, (change - s.force * dc) / s.c, dc)


def _mean(x: Float[Array, "r k *batch"]) -> Float[Array, "*batch"]:
    """The mean over the first two axes."""
    rows = dense.sum_rows(x)
    return sum((rows[i] for i in range(1, len(rows))), rows[0]) / (x.shape[0] * x.shape[1])


def _over_blocks(x: Array, own: int) -> Array:
    """The sum over the blocks, the axis after the own axes of a vector or a matrix."""
    terms = [jax.lax.index_in_dim(x, i, own, keepdims=False) for i in range(x.shape[own])]
    return sum(terms[1:], terms[0])


def _length(s: _State, move: _State) -> Float[Array, "*batch"]:
    """The fraction of a step that keeps multipliers and inequalities positive, at most 1."""
    most = jnp.minimum(_room(s.force, move.force), _room(s.c, move.c))
    return jnp.minimum(_TO_THE_EDGE * most, jnp.ones_like(most))


def _room(x: Array, dx: Array) -> Float[Array, "*batch"]:
    """The largest step along dx until an entry of x is zero."""
    falls = dx < 0
    ratio = jnp.where(falls, -x / jnp.where(falls, dx, -jnp.ones_like(dx)), jnp.inf)
    least = control_flow.fori_loop(1, len(x), lambda i, least: jnp.minimum(least, ratio[i]), ratio[0])
    return reduce(jnp.minimum, (least[i] for i in range(x.shape[1])))


def _conditions(p: ConeQP, x: Array, y: Array, multipliers: Array) -> tuple[Array, Array, Array]:
    """Residuals of the optimality conditions of one problem."""
    return (
        x - jnp.einsum("mnk,m->nk", p.B, y) - jnp.einsum("rnk,rk->nk", p.C, multipliers),
        p.b - jnp.einsum("mnk,nk->m", p.B, x) - p.give * y,
        multipliers * (jnp.einsum("rnk,nk->rk", p.C, x) + p.d) - p.rounding**2,
    )


def _moved(args: tuple, changes: tuple) -> tuple[ConeMinimum, ConeMinimum]:
    """The minimum of one problem and its change with the data of the problem."""
    (p,) = args
    found = _native(p)
    flat, unflatten = jax.flatten_util.ravel_pytree(found)

    def off(z: Array) -> Array:
        return jax.flatten_util.ravel_pytree(_conditions(p, *unflatten(z)))[0]

    moved = change_along(lambda p: _conditions(p, *found), args, changes)
    if moved is None:
        return found, jax.tree.map(jnp.zeros_like, found)
    with jax.default_matmul_precision("highest"):
        slopes = jax.jacfwd(off)(flat)
        change = -jnp.linalg.solve(slopes, jax.flatten_util.ravel_pytree(moved)[0])
    return found, unflatten(change)


_native = batch_last(_search, _moved)
