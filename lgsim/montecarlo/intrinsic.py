"""Mean and covariance on a group."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lgsim.montecarlo.spaces import Space, space_of

Stream = Callable[[], Iterable[tuple[np.ndarray, np.ndarray]]]
"""Points (n, ...) and their weights (n,), again from the start at each call."""


class Intrinsic(NamedTuple):
    """The mean m of points x_i on a group, where the mean of ``gap(m, x_i)`` is zero, and their covariance there.

    On a compact group that is Karcher's mean, the least sum of squared distances; it is unique where all points lie
    within a quarter of a turn. The covariance is that of ``gap(m, x_i)``, in body tangents.

    Attributes:
        mean: A point.
        covariance: (dim, dim).
        count: How many points.
        iterations: Passes over the points.
        converged: Whether the mean was found; of attitudes all around there is none.
    """

    mean: np.ndarray
    covariance: np.ndarray
    count: int
    iterations: int
    converged: bool


def mean(points: Stream, space: Any, tile: int, tolerance: float, iterations: int) -> Intrinsic:
    """The fixed point of ``m <- move(m, mean of gap(m, x_i))``, from the first point on.

    Each pass reads the points again, so that the result is exact and the memory that of a tile. Moments about another
    point cannot be corrected afterwards: ``gap(m, x)`` is no function of ``gap(x0, x)``'s moments.

    Source: Moakher, Means and averaging in the group of rotations, SIAM Journal on Matrix Analysis and Applications
    24(1), 2002; for rigid motions Pennec, Arsigny, Exponential barycenters of the canonical Cartan connection and
    invariant means on Lie groups, in Matrix Information Geometry, 2013, algorithm 1.

    Raises:
        ValueError: the points have another shape, or there are none.
    """
    where = space_of(space)
    first = next((x for x, _ in points() if len(x)), None)
    if first is None:
        raise ValueError("intrinsic: expected at least one sample that did not diverge")
    if first.shape[1:] != where.shape:
        raise ValueError(f"intrinsic: expected an output of shape {where.shape}, the space's, got {first.shape[1:]}")
    m, passes, converged = first[0], 0, False
    while passes < iterations and not converged:
        passes += 1
        total, weight = np.zeros(where.dim), 0.0
        for u, w in _gaps(points, where, m, tile):
            total, weight = total + w @ u, weight + w.sum()
        step = total / weight
        m = np.asarray(_moved(where, jnp.asarray(m), jnp.asarray(step, first.dtype)))
        converged = bool(np.linalg.norm(step) <= max(tolerance, 8 * np.finfo(first.dtype).resolution))
    square, weights = np.zeros((where.dim, where.dim)), np.zeros(3)
    for u, w in _gaps(points, where, m, tile):
        square, weights = square + (u * w[:, None]).T @ u, weights + np.array([w.sum(), w @ w, len(w)])
    weight, count = weights[0], int(weights[2])
    n = weight**2 / weights[1]
    covariance = square / weight * (n / (n - 1)) if n > 1 else np.full_like(square, np.nan)
    return Intrinsic(m, covariance, count, passes, converged)


def _gaps(points: Stream, space: Space, m: np.ndarray, tile: int) -> Iterable[tuple[np.ndarray, np.ndarray]]:
    for x, w in points():
        if len(x):
            # always the same shape, so that it is compiled once
            padded = np.concatenate([x, np.broadcast_to(x[-1:], (tile - len(x), *x.shape[1:]))])
            yield np.asarray(_gap(space, jnp.asarray(m), jnp.asarray(padded)), float)[: len(x)], w


@eqx.filter_jit
def _gap(space: Space, m: Array, x: Array) -> Array:
    return jax.vmap(partial(space.gap, m))(x)


@eqx.filter_jit
def _moved(space: Space, m: Array, u: Array) -> Array:
    return space.move(m, u)
