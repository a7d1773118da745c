"""The minimum of a small quadratic in a box, by a projected Newton method."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array

from lgsim.linalg import dense
from lgsim.xla import batch_last

SolveFree = Callable[[Array, Array, Array], Array]
ITERATIONS = 32
"""At most; each one is a full step on the free entries, and few are needed."""
HALVINGS = 12
ARMIJO = 0.1


def box_minimum(H: Array, g: Array, lower: Array, upper: Array, solve: SolveFree | None = None) -> tuple[Array, Array]:
    """(u, which of its entries are free) that minimises ``1/2 u . H u + g . u`` for lower <= u <= upper.

    Args:
        H: Positive definite (m, m, *batch).
        g: (m, *batch).
        lower, upper: Bounds (m, *batch).
        solve: ``H_ff^-1 rhs_f`` in the free rows of rhs (m, *batch), zero in the others; by default by Cholesky, for
            one problem.

    Source: Bertsekas 1982, Projected Newton methods for optimization problems with simple constraints.
    """
    solve = _factored if solve is None else solve

    # loops instead of products of matrices, which in a batch call a library for each problem
    def slope_at(u: Array) -> Array:
        return jax.lax.fori_loop(0, len(g), lambda j, sum: sum + H[:, j] * u[j][None], g)

    def value(u: Array) -> Array:
        terms = u * (slope_at(u) + g)
        return jax.lax.fori_loop(0, len(g), lambda j, sum: sum + terms[j] / 2, jnp.zeros_like(g[0]))

    def free_of(u: Array, slope: Array) -> Array:
        return ~(((u <= lower) & (slope > 0)) | ((u >= upper) & (slope < 0)))

    def search(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        u, going, i = state
        slope = slope_at(u)
        free, now = free_of(u, slope), value(u)
        direction = -solve(H, slope, free)

        # whether to go on is part of the state: in a batch, computed once to end the loop and once to hold those that
        # are done, it could differ in its last digit, and the loop would not end
        def too_long(length: Array) -> Array:
            trial = jnp.clip(u + length[None] * direction, lower, upper)
            return value(trial) > now + ARMIJO * _total(slope * (trial - u))

        def shorter(s: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
            length, halved, long = s
            length, halved = jnp.where(long, length / 2, length), jnp.where(long, halved + 1, halved)
            return length, halved, long & too_long(length) & (halved < HALVINGS)

        one = jnp.ones_like(now)
        first = (one, jnp.zeros(now.shape, int), too_long(one))
        length, halved, _ = jax.lax.while_loop(lambda s: jnp.any(s[2]), shorter, first)
        trial = jnp.clip(u + length[None] * direction, lower, upper)
        found = halved < HALVINGS
        moved = jnp.where((going & found)[None], trial, u)
        # a full step that meets no new bound is the minimum
        changed = _some(free_of(moved, slope_at(moved)) != free)
        return moved, going & found & (changed | (halved > 0)), i + 1

    start = jnp.clip(jnp.zeros_like(g), lower, upper)
    everywhere = jnp.ones(g.shape[1:], bool)
    u, _, _ = jax.lax.while_loop(
        lambda s: jnp.any(s[1]) & (s[2] < ITERATIONS), search, (start, everywhere, jnp.array(0))
    )
    return u, free_of(u, slope_at(u))


def _total(x: Array) -> Array:
    return jax.lax.fori_loop(0, len(x), lambda j, sum: sum + x[j], jnp.zeros_like(x[0]))


def _some(x: Array) -> Array:
    return jax.lax.fori_loop(0, len(x), lambda j, some: some | x[j], jnp.zeros_like(x[0]))


def _factored(H: Array, rhs: Array, free: Array) -> Array:
    pair = free[:, None] & free[None, :]
    L = jnp.linalg.cholesky(jnp.where(pair, H, jnp.eye(len(H), dtype=H.dtype)))
    return jax.scipy.linalg.cho_solve((L, True), jnp.where(free, rhs, 0))


def box_step(H: Array, G: Array, g: Array, lower: Array, upper: Array) -> tuple[Array, Array, Array]:
    """``box_step`` of arrays whose batch is on the last axes, as part of a native function."""
    k, free = box_minimum(H, g, lower, upper, _solve_free_rows)
    share = free.astype(H.dtype)
    return -dense.solve_free(H, G, share), k, dense.inverse_if_definite(H)[1]


def _solve_free_rows(H: Array, rhs: Array, free: Array) -> Array:
    return dense.solve_free(H, rhs[:, None], free.astype(H.dtype))[:, 0]


@batch_last
def native_box_minimum(H: Array, g: Array, lower: Array, upper: Array) -> tuple[Array, Array]:
    """``box_minimum`` as one native function."""
    return box_minimum(H, g, lower, upper, _solve_free_rows)


@batch_last
def native_box_step(H: Array, G: Array, g: Array, lower: Array, upper: Array) -> tuple[Array, Array, Array]:
    """(K, k, whether H is definite): k minimises ``1/2 u . H u + g . u`` in the box; ``K = -H_ff^-1 G_f`` on free rows.

    Args:
        H: (m, m).
        G: (m, n), how g changes with the state.
        g: (m,).
        lower, upper: Bounds (m,), such that zero lies between them.

    Source: Tassa, Mansard and Todorov 2014, sec. III.
    """
    return box_step(H, G, g, lower, upper)
