"""The step of a Riccati equation whose controls have bounds."""

from __future__ import annotations

from jax import Array

from lgsim.optimize import small
from lgsim.spatial import batch_last
from lgsim.spatial.box import box_minimum


def least(H: Array, G: Array, g: Array, lower: Array, upper: Array) -> tuple[Array, Array, Array]:
    """``box_step`` of arrays whose batch is on the last axes, as part of a native function."""
    k, free = box_minimum(H, g, lower, upper, _solve_free)
    share = free.astype(H.dtype)
    return -small.solve_free(H, G, share), k, small.inverse_if_definite(H)[1]


def _solve_free(H: Array, rhs: Array, free: Array) -> Array:
    return small.solve_free(H, rhs[:, None], free.astype(H.dtype))[:, 0]


@batch_last
def minimum(H: Array, g: Array, lower: Array, upper: Array) -> tuple[Array, Array]:
    """``box_minimum`` as one native function."""
    return box_minimum(H, g, lower, upper, _solve_free)


@batch_last
def box_step(H: Array, G: Array, g: Array, lower: Array, upper: Array) -> tuple[Array, Array, Array]:
    """(K, k, whether H is definite): k minimises ``1/2 u . H u + g . u`` in the box; ``K = -H_ff^-1 G_f`` on free rows.

    Args:
        H: (m, m).
        G: (m, n), how g changes with the state.
        g: (m,).
        lower, upper: Bounds (m,), such that zero lies between them.

    Source: Tassa, Mansard and Todorov 2014, sec. III.
    """
    return least(H, G, g, lower, upper)
