"""Where values live that have no sum: what means, covariances and Gaussians on a group need of it."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lgsim.lie.group import LieGroup
from lgsim.multibody import configuration
from lgsim.multibody.model import Model
from lgsim.multibody.topology import Topology


class Space(eqx.Module):
    """A manifold whose points are arrays, with a chart about each point."""

    @property
    @abstractmethod
    def dim(self) -> int:
        """Length of a tangent vector."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """Shape of a point."""

    @abstractmethod
    def move(self, x: Array, u: Array) -> Array:
        """The point at the tangent vector u (dim,) of the chart about x."""

    @abstractmethod
    def gap(self, x: Array, y: Array) -> Array:
        """The u (dim,) with ``move(x, u) = y``, the smallest of them."""


class ConfigurationSpace(Space):
    """The configurations q of a machine, with ``model.retract`` and ``model.difference``."""

    topology: Topology = eqx.field(static=True)

    @property
    def dim(self) -> int:
        """The degrees of freedom."""
        return self.topology.nv

    @property
    def shape(self) -> tuple[int, ...]:
        """(nq,)."""
        return (self.topology.nq,)

    def move(self, x: Array, u: Array) -> Array:
        """``model.retract(x, u)``."""
        return configuration.retract(self.topology, x, u)

    def gap(self, x: Array, y: Array) -> Array:
        """``model.difference(x, y)``."""
        return configuration.difference(self.topology, x, y)


class GroupSpace(Space):
    """The elements of a group that are arrays, with body tangents: ``move(g, u) = g exp(u)``."""

    group: LieGroup

    def __check_init__(self) -> None:
        if not isinstance(self.group, LieGroup) or not hasattr(self.group.identity(), "shape"):
            raise TypeError(f"group: expected an lgsim.LieGroup whose elements are arrays, got {self.group!r}")

    @property
    def dim(self) -> int:
        """Dimension of the group."""
        return self.group.dim

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of an element."""
        return tuple(self.group.shapes)

    def move(self, x: Array, u: Array) -> Array:
        """``x exp(u)``."""
        return self.group.compose(x, self.group.exp(u))

    def gap(self, x: Array, y: Array) -> Array:
        """``log(x^-1 y)``."""
        return self.group.log(self.group.compose(self.group.inverse(x), y))


class VectorSpace(Space):
    """Arrays of plain numbers of any shape."""

    of: tuple[int, ...] = eqx.field(static=True)

    @property
    def dim(self) -> int:
        """How many numbers."""
        return math.prod(self.of)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape given."""
        return self.of

    def move(self, x: Array, u: Array) -> Array:
        """``x + u``."""
        return x + u.reshape(self.of)

    def gap(self, x: Array, y: Array) -> Array:
        """``y - x``."""
        return (y - x).ravel()


def space_of(given: Any) -> Space:
    """The space of a machine's configurations, of a group's elements, or the one given.

    Raises:
        TypeError: it is none of these.
    """
    if isinstance(given, Model):
        return ConfigurationSpace(given.topology)
    if isinstance(given, LieGroup):
        return GroupSpace(given)
    if isinstance(given, Space):
        return given
    raise TypeError(f"space: expected an lgsim.Model, an lgsim.LieGroup or a Space, got {type(given).__name__}")


Stream = Callable[[], Iterable[tuple[np.ndarray, np.ndarray]]]
"""Points (n, ...) and their weights (n,), again from the start at each call."""


class IntrinsicMoments(NamedTuple):
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


def mean(points: Stream, space: Any, tile: int, tolerance: float, iterations: int) -> IntrinsicMoments:
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
    return IntrinsicMoments(m, covariance, count, passes, converged)


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
