"""The minimum of a small quadratic in a box, by a projected Newton method."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array

SolveFree = Callable[[Array, Array, Array], Array]
ITERATIONS = 32
"""At most; each one is a full step on the free entries, and few are needed."""
HALVINGS = 12
ARMIJO = 0.1


def box_minimum(
    H: Array, g: Array, lower: Array, upper: Array, solve: SolveFree | None = None
) -> tuple[Array, Array]:
    """(u, which of its entries are free) that minimises ``1/2 u . H u + g . u`` for lower <= u <= upper.

    Args:
        H: Positive definite (m, m).
        g: (m,).
        lower, upper: Bounds (m,).
        solve: ``H_ff^-1 rhs_f`` in the free rows of rhs (m, columns), zero in the others; by default by Cholesky.

    Source: Bertsekas 1982, Projected Newton methods for optimization problems with simple constraints.
    """
    solve = _factored if solve is None else solve

    # sums instead of products of matrices, which in a batch call a library for each problem
    def slope_at(u: Array) -> Array:
        return jnp.sum(H * u[None], axis=1) + g

    def value(u: Array) -> Array:
        return jnp.sum(u * (slope_at(u) + g)) / 2

    def free_of(u: Array) -> Array:
        slope = slope_at(u)
        return ~(((u <= lower) & (slope > 0)) | ((u >= upper) & (slope < 0)))

    def search(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        u, _, i = state
        slope, free = slope_at(u), free_of(u)
        direction = -solve(H, slope[:, None], free)[:, 0]

        # whether to go on is part of the state: in a batch, computed once to end the loop and once to hold those that
        # are done, it could differ in its last digit, and the loop would not end
        def too_long(length: Array) -> Array:
            trial = jnp.clip(u + length * direction, lower, upper)
            return value(trial) > value(u) + ARMIJO * jnp.sum(slope * (trial - u))

        def shorter(s: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
            length, halved = s[0] / 2, s[1] + 1
            return length, halved, too_long(length) & (halved < HALVINGS)

        one = jnp.ones((), u.dtype)
        first = (one, jnp.array(0), too_long(one))
        length, halved, _ = jax.lax.while_loop(lambda s: s[2], shorter, first)
        trial = jnp.clip(u + length * direction, lower, upper)
        moved = jnp.where(halved < HALVINGS, trial, u)
        # a full step that meets no new bound is the minimum
        settled = jnp.all(free_of(moved) == free) & (halved == 0) | (halved >= HALVINGS)
        return moved, settled, i + 1

    def going(state: tuple[Array, Array, Array]) -> Array:
        return ~state[1] & (state[2] < ITERATIONS)

    start = jnp.clip(jnp.zeros_like(g), lower, upper)
    u, _, _ = jax.lax.while_loop(going, search, (start, jnp.array(False), jnp.array(0)))
    return u, free_of(u)


def _factored(H: Array, rhs: Array, free: Array) -> Array:
    pair = free[:, None] & free[None, :]
    L = jnp.linalg.cholesky(jnp.where(pair, H, jnp.eye(len(H), dtype=H.dtype)))
    return jax.scipy.linalg.cho_solve((L, True), jnp.where(free[:, None], rhs, 0))
