"""The step of a Riccati equation whose controls have bounds."""

from __future__ import annotations

from jax import Array

from lgsim.optimize import small
from lgsim.spatial.box import box_minimum


def box_step(H: Array, G: Array, g: Array, lower: Array, upper: Array) -> tuple[Array, Array, Array]:
    """(K, k, whether H is definite): k minimises ``1/2 u . H u + g . u`` in the box; ``K = -H_ff^-1 G_f`` on free rows.

    Args:
        H: (m, m).
        G: (m, n), how g changes with the state.
        g: (m,).
        lower, upper: Bounds (m,), such that zero lies between them.

    Source: Tassa, Mansard and Todorov 2014, sec. III.
    """
    definite = small.definite(H)
    k, free = box_minimum(H, g, lower, upper, solve_free)
    K = -solve_free(H, G, free)
    return K, k, definite


def solve_free(H: Array, rhs: Array, free: Array) -> Array:
    """``H_ff^-1 rhs_f`` in the free rows, zero in the others; rhs (m, columns)."""
    return small.solve_free(H, rhs, free.astype(H.dtype))
