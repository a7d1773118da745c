"""Spaces of samples: manifolds with a chart about each point, and means and covariances on them.

Configurations, attitudes and poses cannot be added, so that means, covariances and normal distributions are expressed
in tangent vectors of a chart: ``retract(x, u)`` is the point at a tangent vector, ``difference(x, y)`` the tangent
vector to a point.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from lgsim._compile.xla import compiled
from lgsim.lie.group import LieGroup
from lgsim.multibody import configuration
from lgsim.multibody.model import Model
from lgsim.multibody.topology import Topology


class Space(eqx.Module):
    """A manifold whose points are arrays, with a chart about each point."""

    @property
    @abstractmethod
    def dim(self) -> int:
        """The dimension of a tangent vector."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """The shape of a point."""

    @abstractmethod
    def retract(self, x: Float[Array, "*shape"], u: Float[Array, " dim"]) -> Float[Array, "*shape"]:
        """The point at the tangent vector u of the chart about x."""

    @abstractmethod
    def difference(self, x: Float[Array, "*shape"], y: Float[Array, "*shape"]) -> Float[Array, " dim"]:
        """The smallest tangent vector u with ``retract(x, u) = y``."""


class ConfigurationSpace(Space):
    """The configurations q (nq,) of a model, with ``model.retract`` and ``model.difference``."""

    topology: Topology = eqx.field(static=True)

    @property
    def dim(self) -> int:
        """The number of degrees of freedom, nv."""
        return self.topology.nv

    @property
    def shape(self) -> tuple[int, ...]:
        """(nq,)."""
        return (self.topology.nq,)

    def retract(self, x: Float[Array, " nq"], u: Float[Array, " nv"]) -> Float[Array, " nq"]:
        """The configuration ``model.retract(x, u)``, reached from x along the tangent vector u, rad or m."""
        return configuration.retract(self.topology, x, u)

    def difference(self, x: Float[Array, " nq"], y: Float[Array, " nq"]) -> Float[Array, " nv"]:
        """The tangent vector from x to y, the inverse of ``retract``: ``model.difference(x, y)``, rad or m."""
        return configuration.difference(self.topology, x, y)


class GroupSpace(Space):
    """The elements of a group that are arrays, with body tangents: ``retract(g, u) = g exp(u)``.

    Attributes:
        group: The group, such as ``lgsim.SO3`` or ``lgsim.UnitQuaternion``.
    """

    group: LieGroup

    def __check_init__(self) -> None:
        if not isinstance(self.group, LieGroup) or not hasattr(self.group.identity(), "shape"):
            raise TypeError(f"group: expected an lgsim.LieGroup whose elements are arrays, got {self.group!r}")

    @property
    def dim(self) -> int:
        """The dimension of the group."""
        return self.group.dim

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of an element."""
        return tuple(self.group.shapes)

    def retract(self, x: Float[Array, "*shape"], u: Float[Array, " dim"]) -> Float[Array, "*shape"]:
        """``x exp(u)``."""
        return self.group.compose(x, self.group.exp(u))

    def difference(self, x: Float[Array, "*shape"], y: Float[Array, "*shape"]) -> Float[Array, " dim"]:
        """``log(x^-1 y)``."""
        return self.group.log(self.group.compose(self.group.inverse(x), y))


class VectorSpace(Space):
    """The vector space of arrays of one shape."""

    array_shape: tuple[int, ...] = eqx.field(static=True)

    @property
    def dim(self) -> int:
        """The number of entries."""
        return math.prod(self.array_shape)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the arrays."""
        return self.array_shape

    def retract(self, x: Float[Array, "*shape"], u: Float[Array, " dim"]) -> Float[Array, "*shape"]:
        """``x + u``."""
        return x + u.reshape(self.array_shape)

    def difference(self, x: Float[Array, "*shape"], y: Float[Array, "*shape"]) -> Float[Array, " dim"]:
        """``y - x``."""
        return (y - x).ravel()


def as_space(given: Model | LieGroup | Space) -> Space:
    """The space of a model's configurations or of a group's elements; a space is returned unchanged.

    Raises:
        TypeError: the argument has another type.
    """
    if isinstance(given, Model):
        return ConfigurationSpace(given.topology)
    if isinstance(given, LieGroup):
        return GroupSpace(given)
    if isinstance(given, Space):
        return given
    raise TypeError(f"space: expected an lgsim.Model, an lgsim.LieGroup or a Space, got {type(given).__name__}")


PointStream = Callable[[], Iterable[tuple[Float[np.ndarray, " n *shape"], Float[np.ndarray, " n"]]]]
"""A function that iterates over blocks of points (n, ...) with their weights (n,), from the first one at each call."""


class IntrinsicMoments(NamedTuple):
    """The mean m of points x_i on a manifold, where the mean of ``difference(m, x_i)`` is zero, and their covariance.

    On a compact group m is the Karcher mean, which minimizes the sum of squared distances; it is unique if all points
    lie within a ball of radius 90 degrees. The covariance is that of ``difference(m, x_i)``, in body tangents.

    Attributes:
        covariance: The covariance, (dim, dim), in squared units of the tangent vectors.
        converged: True if the iteration converged; attitudes distributed over all of SO(3) have no mean.
    """

    mean: Float[np.ndarray, "*shape"]
    covariance: Float[np.ndarray, "dim dim"]
    count: int
    iterations: int
    converged: bool


def intrinsic_moments(
    points: PointStream, space: Model | LieGroup | Space, tile: int, tolerance: float, iterations: int
) -> IntrinsicMoments:
    """Mean and covariance by the fixed point of ``m <- retract(m, mean of difference(m, x_i))`` from the first point.

    Each pass reads the points again, so that the result is exact and needs the memory of one tile. Moments about
    another point x0 cannot be corrected afterwards, since those of ``difference(m, x)`` do not follow from those of
    ``difference(x0, x)``.

    Source: Moakher, Means and averaging in the group of rotations, SIAM Journal on Matrix Analysis and Applications
    24(1), 2002; for rigid motions Pennec, Arsigny, Exponential barycenters of the canonical Cartan connection and
    invariant means on Lie groups, in Matrix Information Geometry, 2013, algorithm 1.

    Args:
        points: The points and their weights, in blocks of at most ``tile``.
        tile: The number of points to which each block is padded, so that one program serves all.
        tolerance: Convergence threshold on the change of the mean, in units of the tangent vectors.

    Raises:
        ValueError: the points do not have the space's shape, or there are none.
    """
    manifold = as_space(space)
    first = next((x for x, _ in points() if len(x)), None)
    if first is None:
        raise ValueError("intrinsic: expected at least one sample that did not diverge")
    if first.shape[1:] != manifold.shape:
        raise ValueError(f"intrinsic: expected an output of the space's shape {manifold.shape}, got {first.shape[1:]}")
    m, passes, converged = first[0], 0, False
    while passes < iterations and not converged:
        passes += 1
        total, weight = np.zeros(manifold.dim), 0.0
        for u, w in _differences(points, manifold, m, tile):
            total, weight = total + w @ u, weight + w.sum()
        step = total / weight
        m = np.asarray(_retract(manifold, jnp.asarray(m), jnp.asarray(step, first.dtype)))
        converged = bool(np.linalg.norm(step) <= max(tolerance, 8 * np.finfo(first.dtype).resolution))
    square, weights = np.zeros((manifold.dim, manifold.dim)), np.zeros(3)
    for u, w in _differences(points, manifold, m, tile):
        square, weights = square + (u * w[:, None]).T @ u, weights + np.array([w.sum(), w @ w, len(w)])
    weight, count = weights[0], int(weights[2])
    n = weight**2 / weights[1]
    covariance = square / weight * (n / (n - 1)) if n > 1 else np.full_like(square, np.nan)
    return IntrinsicMoments(m, covariance, count, passes, converged)


def _differences(
    points: PointStream, space: Space, m: Float[np.ndarray, "*shape"], tile: int
) -> Iterable[tuple[Float[np.ndarray, "n dim"], Float[np.ndarray, " n"]]]:
    """Iterate over the tangent vectors from m to the points, with the points' weights, block by block."""
    for x, w in points():
        if len(x):
            # constant shape, so that it is compiled once
            padded = np.concatenate([x, np.broadcast_to(x[-1:], (tile - len(x), *x.shape[1:]))])
            yield np.asarray(_difference(space, jnp.asarray(m), jnp.asarray(padded)), float)[: len(x)], w


@compiled
def _difference(space: Space, m: Float[Array, "*shape"], x: Float[Array, " n *shape"]) -> Float[Array, "n dim"]:
    return jax.vmap(partial(space.difference, m))(x)


@compiled
def _retract(space: Space, m: Float[Array, "*shape"], u: Float[Array, " dim"]) -> Float[Array, "*shape"]:
    return space.retract(m, u)
