"""Minimum of a small convex quadratic in a box, ``min 1/2 u . H u + g . u`` for ``lower <= u <= upper``.

By a projected Newton method: with Cholesky factors for one problem, and as native functions for batches.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float

from lgsim._compile.linalg import dense
from lgsim._compile.xla import batch_last, control_flow

SolveFree = Callable[[Array, Array, Array], Array]
"""``solve(H, rhs, free)``: ``H_ff^-1 rhs_f`` in the free rows f of rhs (m, *batch), zero in the others."""

ITERATIONS = 32
"""Maximum number of Newton steps; each is a full step on the free entries, and few are needed."""
_HALVINGS = 12
"""Maximum number of step halvings."""
ARMIJO = 0.1
"""Required decrease relative to the one predicted by the gradient."""


def box_minimum(
    H: Float[Array, "m m *#batch"],
    g: Float[Array, "m *#batch"],
    lower: Float[Array, "m *#batch"],
    upper: Float[Array, "m *#batch"],
    solve: SolveFree | None = None,
) -> tuple[Float[Array, "m *#batch"], Bool[Array, "m *#batch"]]:
    """(the minimizer u of ``1/2 u . H u + g . u`` in the box, True for entries that are not at a bound).

    Args:
        H: Positive definite Hessian.
        g: Gradient at zero.
        lower: Lower bounds; minus infinity for none.
        upper: Upper bounds; infinity for none.
        solve: Solver for the Newton step of the free entries; by default Cholesky, for one problem without a batch.

    Source: Bertsekas 1982, Projected Newton methods for optimization problems with simple constraints, SIAM J. Control
    and Optimization 20.
    """
    solve = _solve_free_cholesky if solve is None else solve

    # loops instead of matrix products, which call a library for each problem of a batch
    def slope_at(u: Array) -> Array:
        return control_flow.fori_loop(0, len(g), lambda j, sum: sum + H[:, j] * u[j][None], g)

    def value(u: Array) -> Array:
        terms = u * (slope_at(u) + g)
        return control_flow.fori_loop(0, len(g), lambda j, sum: sum + terms[j] / 2, jnp.zeros_like(g[0]))

    def free_at(u: Array, slope: Array) -> Array:
        return ~(((u <= lower) & (slope > 0)) | ((u >= upper) & (slope < 0)))

    def iterate(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        # free set, projected gradient and Newton direction d_f = -H_ff^-1 g_f
        u, going, i = state
        slope = slope_at(u)
        free, now = free_at(u, slope), value(u)
        direction = -solve(H, slope, free)

        # the continuation flag is part of the state: computed twice in a batch, once to end the loop and once to freeze
        # finished problems, it could differ in the last digit, and the loop would not end
        def too_long(length: Array) -> Array:
            trial = jnp.clip(u + length[None] * direction, lower, upper)
            return value(trial) > now + ARMIJO * dense.sum_rows(slope * (trial - u))

        def shorten(s: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
            length, halved, long = s
            length, halved = jnp.where(long, length / 2, length), jnp.where(long, halved + 1, halved)
            return length, halved, long & too_long(length) & (halved < _HALVINGS)

        # Armijo backtracking along the projected arc
        one = jnp.ones_like(now)
        first = (one, jnp.zeros(now.shape, int), too_long(one))
        length, halved, _ = control_flow.while_loop(lambda s: jnp.any(s[2]), shorten, first)
        trial = jnp.clip(u + length[None] * direction, lower, upper)
        found = halved < _HALVINGS
        moved = jnp.where((going & found)[None], trial, u)
        # a full step that reaches no new bound is the minimum
        changed = _any(free_at(moved, slope_at(moved)) != free)
        return moved, going & found & (changed | (halved > 0)), i + 1

    start = jnp.clip(jnp.zeros_like(g), lower, upper)
    everywhere = jnp.ones(g.shape[1:], bool)
    u, _, _ = control_flow.while_loop(
        lambda s: jnp.any(s[1]) & (s[2] < ITERATIONS), iterate, (start, everywhere, jnp.array(0))
    )
    return u, free_at(u, slope_at(u))


def box_step(
    H: Float[Array, "m m *#batch"],
    G: Float[Array, "m n *#batch"],
    g: Float[Array, "m *#batch"],
    lower: Float[Array, "m *#batch"],
    upper: Float[Array, "m *#batch"],
) -> tuple[Float[Array, "m n *#batch"], Float[Array, "m *#batch"], Bool[Array, "*#batch"]]:
    """(K, k, True if H is positive definite), as part of a native function.

    k minimizes ``1/2 u . H u + g . u`` in the box. ``K = -H_ff^-1 G_f`` in the rows f that are not at a bound, zero in
    the others.

    Args:
        H: Hessian of the controls u.
        G: Derivative of g with respect to the state.
        g: Gradient at u = 0.
        lower: Lower bounds, at most zero.
        upper: Upper bounds, at least zero.

    Source: Tassa, Mansard and Todorov 2014, Control-limited differential dynamic programming, sec. III.
    """
    k, free = box_minimum(H, g, lower, upper, _solve_free)
    share = free.astype(H.dtype)
    return -dense.solve_free(H, G, share), k, dense.inverse_if_definite(H)[1]


@batch_last
def native_box_minimum(
    H: Float[Array, "m m *#batch"],
    g: Float[Array, "m *#batch"],
    lower: Float[Array, "m *#batch"],
    upper: Float[Array, "m *#batch"],
) -> tuple[Float[Array, "m *#batch"], Bool[Array, "m *#batch"]]:
    """``box_minimum`` of one problem as a native function; batch it by ``jax.vmap``."""
    return box_minimum(H, g, lower, upper, _solve_free)


def _solve_free(
    H: Float[Array, "m m *#batch"], rhs: Float[Array, "m *#batch"], free: Bool[Array, "m *#batch"]
) -> Float[Array, "m *#batch"]:
    """The solution in the free rows by symmetric sweeps."""
    return dense.solve_free(H, rhs[:, None], free.astype(H.dtype))[:, 0]


def _solve_free_cholesky(
    H: Float[Array, "m m"], rhs: Float[Array, " m"], free: Bool[Array, " m"]
) -> Float[Array, " m"]:
    """The solution in the free rows of one problem."""
    pair = free[:, None] & free[None, :]
    L = jnp.linalg.cholesky(jnp.where(pair, H, jnp.eye(len(H), dtype=H.dtype)))
    return jax.scipy.linalg.cho_solve((L, True), jnp.where(free, rhs, 0))


def _any(x: Bool[Array, "m *#batch"]) -> Bool[Array, "*#batch"]:
    """True if an entry along the first axis is true."""
    return control_flow.fori_loop(0, len(x), lambda j, found: found | x[j], jnp.zeros_like(x[0]))
