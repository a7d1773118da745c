"""What varies from sample to sample: maps from independent standard normal numbers to values.

A distribution makes its value of ``dim`` standard normal numbers z, whatever sequence draws them. So z = 0 is its
median, the covariance of an output to first order is ``J J^T`` with J its Jacobian in z at zero, and importance
sampling and variance-based sensitivity act on z alone.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.special import ndtr

from lgsim.montecarlo.spaces import Space, space_of
from lgsim.multibody.joints import Free, Spherical
from lgsim.multibody.model import Model


class Distribution(eqx.Module):
    """A random value, as a function of standard normal numbers."""

    @property
    @abstractmethod
    def dim(self) -> int:
        """How many standard normal numbers it takes."""

    @property
    @abstractmethod
    def dtype(self) -> jnp.dtype:
        """The type of these numbers."""

    @property
    def process(self) -> bool:
        """Whether it takes so many numbers that they come from the sample's key, whatever sequence others follow."""
        return False

    @abstractmethod
    def __call__(self, z: Array) -> Any:
        """The value that z (dim,) stands for."""


class Uniform(Distribution):
    """Independent numbers between two bounds.

    Attributes:
        low, high: Of one shape, that of the value.
    """

    low: Array
    high: Array

    def __init__(self, low: Any, high: Any) -> None:
        self.low, self.high = _arrays(low=low, high=high)
        require("high", bool(np.all(np.asarray(self.high) >= np.asarray(self.low))), "at least low", high)

    @property
    def dim(self) -> int:
        return self.low.size

    @property
    def dtype(self) -> jnp.dtype:
        return self.low.dtype

    def __call__(self, z: Array) -> Array:
        """``low + (high - low) Phi(z)``."""
        return self.low + (self.high - self.low) * ndtr(z).reshape(self.low.shape)


class Normal(Distribution):
    """Gaussian numbers about a mean, independent or with a covariance.

    Attributes:
        mean: The value's shape.
        root: Standard deviations of that shape, or a matrix R (n, k) with the covariance ``R R^T`` of the n entries.
    """

    mean: Array
    root: Array

    def __init__(self, mean: Any, std: Any = None, *, covariance: Any = None) -> None:
        self.root = _root(np.size(mean), np.shape(mean), std, covariance, dtype_of(mean))
        (self.mean,) = _arrays(mean=mean)

    @property
    def dim(self) -> int:
        return _width(self.root, self.mean.shape)

    @property
    def dtype(self) -> jnp.dtype:
        return self.mean.dtype

    def __call__(self, z: Array) -> Array:
        """``mean + R z``."""
        return self.mean + _spread(self.root, z, self.mean.shape)


class LogNormal(Distribution):
    """Positive numbers whose logarithms are independent Gaussians: masses, frictions, gains.

    Attributes:
        median: Positive, or zero for what stays zero; the value's shape.
        spread: Standard deviation of the logarithm, nearly the relative one where it is small; of that shape.
    """

    median: Array
    spread: Array

    def __init__(self, median: Any, spread: Any) -> None:
        found, wide = np.asarray(median), np.asarray(spread)
        require("median", bool(np.all(np.isfinite(found) & (found >= 0))), "positive numbers", median)
        require("spread", bool(np.all(np.isfinite(wide) & (wide >= 0))), "finite numbers of at least zero", spread)
        (self.median,) = _arrays(median=median)
        self.spread = in_shape("spread", spread, self.median.shape, self.median.dtype)

    @property
    def dim(self) -> int:
        return self.median.size

    @property
    def dtype(self) -> jnp.dtype:
        return self.median.dtype

    def __call__(self, z: Array) -> Array:
        """``median exp(spread z)``."""
        return self.median * jnp.exp(self.spread * z.reshape(self.median.shape))


class TangentNormal(Distribution):
    """A Gaussian on the tangent space about a point of a group: ``x = move(mean, R z)``, ``mean exp(R z)`` on a group.

    Attributes:
        space: Where it lives; made of an ``lgsim.Model`` (its configurations) or an ``lgsim.LieGroup``.
        mean: The point about which.
        root: Standard deviations (dim,), or R (dim, k) with the covariance ``R R^T`` of body tangents.
    """

    space: Space
    mean: Array
    root: Array

    def __init__(self, space: Any, mean: Any, std: Any = None, *, covariance: Any = None) -> None:
        self.space = space_of(space)
        (self.mean,) = _arrays(mean=mean)
        require("mean", self.mean.shape == self.space.shape, f"shape {self.space.shape}", self.mean.shape)
        n = self.space.dim
        self.root = _root(n, (n,), std, covariance, self.mean.dtype)

    @property
    def dim(self) -> int:
        return _width(self.root, (self.space.dim,))

    @property
    def dtype(self) -> jnp.dtype:
        return self.mean.dtype

    def __call__(self, z: Array) -> Array:
        """``move(mean, R z)``."""
        return self.space.move(self.mean, _spread(self.root, z, (self.space.dim,)))


class Haar(Distribution):
    """A configuration whose attitudes are uniform on SO(3), all else as given.

    Four independent Gaussian numbers over their norm are uniform on the sphere of unit quaternions.

    Attributes:
        q: The configuration (nq,).
        places: Where the quaternions stand in it, (quaternions, 4).
    """

    q: Array
    places: tuple[tuple[int, ...], ...] = eqx.field(static=True)

    def __init__(self, model: Model, joints: Any = ("root_joint",), q: Any = None) -> None:
        self.q = jnp.asarray(model.neutral() if q is None else q, model.dtype)
        require("q", self.q.shape == (model.nq,), f"shape ({model.nq},)", self.q.shape)
        kinds = dict(zip(model.joint_names, model.topology.joints, strict=True))
        turning = [name for name, kind in kinds.items() if isinstance(kind, Free | Spherical)]
        places = []
        for name in joints:
            require("joints", name in turning, f"free or spherical joints, of which there are {turning}", name)
            places.append(tuple(range(*model.q_slices[name].indices(model.nq)))[-4:])
        self.places = tuple(places)

    @property
    def dim(self) -> int:
        return 4 * len(self.places)

    @property
    def dtype(self) -> jnp.dtype:
        return self.q.dtype

    def __call__(self, z: Array) -> Array:
        """The configuration with quaternions ``z / |z|``."""
        parts = z.reshape(-1, 4)
        unit = parts / jnp.sqrt(jnp.sum(parts * parts, axis=-1, keepdims=True))
        return self.q.at[np.array(self.places)].set(unit)


class FunctionDistribution(Distribution):
    """Any function of standard normal numbers.

    Attributes:
        function: ``function(z)`` gives the value; JAX traces it.
        size: How many numbers it takes.
        like: An array of the dtype of these.
    """

    function: Callable[[Array], Any]
    size: int = eqx.field(static=True)
    like: Array = eqx.field(converter=jnp.asarray, default=0.0)

    @property
    def dim(self) -> int:
        return self.size

    @property
    def dtype(self) -> jnp.dtype:
        return self.like.dtype

    def __call__(self, z: Array) -> Any:
        """``function(z)``."""
        return self.function(z)


def require(name: str, holds: bool, expected: str, got: Any) -> None:
    """Raises ValueError, with what was expected of an argument and what came, unless that holds."""
    if not holds:
        raise ValueError(f"{name}: expected {expected}, got {got}")


def dtype_of(value: Any) -> jnp.dtype:
    """The dtype of a floating array, else JAX's default one."""
    found = jnp.asarray(value).dtype
    return found if jnp.issubdtype(found, jnp.floating) else jnp.zeros(()).dtype


def _arrays(**named: Any) -> list[Array]:
    """Finite arrays of one dtype and shape."""
    first = next(iter(named.values()))
    dtype, shape = dtype_of(first), np.shape(first)
    for name, value in named.items():
        require(name, bool(np.all(np.isfinite(np.asarray(value)))), "finite numbers", value)
    return [in_shape(name, value, shape, dtype) for name, value in named.items()]


def in_shape(name: str, value: Any, shape: tuple[int, ...], dtype: jnp.dtype) -> Array:
    """A number or an array of a shape, as an array of that shape."""
    array = jnp.asarray(value, dtype)
    require(name, array.ndim == 0 or array.shape == shape, f"a number or shape {shape}", array.shape)
    return jnp.broadcast_to(array, shape)


def _root(size: int, shape: tuple[int, ...], std: Any, covariance: Any, dtype: jnp.dtype) -> Array:
    """Standard deviations of a shape, or a root (size, size) of a covariance."""
    if (std is None) == (covariance is None):
        raise ValueError("std, covariance: expected one of the two")
    if covariance is None:
        wide = np.asarray(std)
        require("std", bool(np.all(np.isfinite(wide) & (wide >= 0))), "finite numbers of at least zero", std)
        return in_shape("std", std, shape, dtype)
    matrix = np.asarray(covariance, float)
    require("covariance", matrix.shape == (size, size), f"shape ({size}, {size})", matrix.shape)
    require("covariance", bool(np.all(np.isfinite(matrix))), "finite numbers", covariance)
    require("covariance", bool(np.allclose(matrix, matrix.T)), "a symmetric matrix", covariance)
    values, axes = np.linalg.eigh(matrix)
    rounding = 64 * size * np.finfo(np.float32).eps * np.abs(values).max(initial=0)
    require("covariance", bool(np.all(values >= -rounding)), "no negative eigenvalue", values)
    return jnp.asarray(axes * np.sqrt(np.maximum(values, 0)), dtype)


def _width(root: Array, shape: tuple[int, ...]) -> int:
    return root.size if root.shape == shape else root.shape[1]


def _spread(root: Array, z: Array, shape: tuple[int, ...]) -> Array:
    if root.shape == shape:
        return root * z.reshape(shape)
    return jnp.sum(root * z[None, :], axis=1).reshape(shape)
