"""Distributions of random inputs: maps from independent standard normal numbers to values.

A distribution maps ``dim`` standard normal numbers z to its value, for any sequence of z. So z = 0 is its median, the
first-order covariance of an output is ``J J^T`` with J its Jacobian with respect to z at zero, and importance sampling
and variance-based sensitivity act on z only.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.special import ndtr
from jax.typing import ArrayLike
from jaxtyping import Float, PyTree

from lgsim.lie.group import LieGroup
from lgsim.montecarlo.spaces import Space, as_space
from lgsim.multibody.joints import Free, Spherical
from lgsim.multibody.model import Model

Numbers = ArrayLike | Sequence[Any]
"""A number, an array, or nested lists of numbers."""


class Distribution(eqx.Module):
    """A random value as a function of standard normal numbers."""

    @property
    @abstractmethod
    def dim(self) -> int:
        """The number of standard normal numbers of a value."""

    @property
    @abstractmethod
    def dtype(self) -> jnp.dtype:
        """The dtype of z."""

    @property
    def is_process(self) -> bool:
        """True if z is so long that it comes from the sample's key, not from a sequence."""
        return False

    @property
    def is_physical(self) -> bool:
        """True if every value is a valid parameter of a model, so that none is checked."""
        return False

    @abstractmethod
    def __call__(self, z: Float[Array, " dim"]) -> PyTree:
        """The value for z."""


class Uniform(Distribution):
    """Independent uniform numbers between two bounds.

    Attributes:
        low: The lower bounds; their shape is the shape of the value.
        high: The upper bounds, of the same shape.
    """

    low: Float[Array, "*shape"]
    high: Float[Array, "*shape"]

    def __init__(self, low: Numbers, high: Numbers) -> None:
        self.low, self.high = _finite_arrays(low=low, high=high)
        require("high", bool(np.all(np.asarray(self.high) >= np.asarray(self.low))), "at least low", high)

    @property
    def dim(self) -> int:
        return self.low.size

    @property
    def dtype(self) -> jnp.dtype:
        return self.low.dtype

    def __call__(self, z: Float[Array, " dim"]) -> Float[Array, "*shape"]:
        """``low + (high - low) Phi(z)`` with the standard normal distribution function Phi."""
        return self.low + (self.high - self.low) * ndtr(z).reshape(self.low.shape)


class Normal(Distribution):
    """Normal numbers with a mean, independent or with a covariance.

    Attributes:
        mean: The mean; its shape is the shape of the value.
        root: Standard deviations of that shape, or a matrix R (n, k) with the covariance ``R R^T`` of the n entries.
    """

    mean: Float[Array, "*shape"]
    root: Float[Array, " ..."]

    def __init__(self, mean: Numbers, std: Numbers | None = None, *, covariance: Numbers | None = None) -> None:
        self.root = _covariance_root(np.size(mean), np.shape(mean), std, covariance, float_dtype_of(mean))
        (self.mean,) = _finite_arrays(mean=mean)

    @property
    def dim(self) -> int:
        return _root_dim(self.root, self.mean.shape)

    @property
    def dtype(self) -> jnp.dtype:
        return self.mean.dtype

    def __call__(self, z: Float[Array, " dim"]) -> Float[Array, "*shape"]:
        """``mean + R z``."""
        return self.mean + _deviation(self.root, z, self.mean.shape)


class LogNormal(Distribution):
    """Positive numbers whose logarithms are independent and normal, such as masses, friction coefficients, gains.

    Attributes:
        median: The medians, positive, or zero for a constant zero; their shape is the shape of the value.
        log_std: Standard deviations of the logarithm, for small values close to the relative standard deviations; of
            that shape. ``with_mean`` takes means and relative standard deviations instead.
    """

    median: Float[Array, "*shape"]
    log_std: Float[Array, "*shape"]

    def __init__(self, median: Numbers, log_std: Numbers) -> None:
        middle, wide = np.asarray(median), np.asarray(log_std)
        require("median", bool(np.all(np.isfinite(middle) & (middle >= 0))), "positive numbers", median)
        require("log_std", bool(np.all(np.isfinite(wide) & (wide >= 0))), "finite nonnegative numbers", log_std)
        (self.median,) = _finite_arrays(median=median)
        self.log_std = broadcast("log_std", log_std, self.median.shape, self.median.dtype)

    @classmethod
    def with_mean(cls, mean: Numbers, relative: Numbers) -> LogNormal:
        """The distribution with given means and relative standard deviations r.

        Its log_std is ``sqrt(log(1 + r^2))``, its median ``mean / sqrt(1 + r^2)``.

        Raises:
            ValueError: a mean or a relative standard deviation is negative or not finite.
        """
        middle, wide = np.asarray(mean), np.asarray(relative)
        require("mean", bool(np.all(np.isfinite(middle) & (middle >= 0))), "positive numbers", mean)
        require("relative", bool(np.all(np.isfinite(wide) & (wide >= 0))), "finite nonnegative numbers", relative)
        variance = np.log1p(wide.astype(float) ** 2)
        dtype = middle.dtype if np.issubdtype(middle.dtype, np.floating) else float
        return cls((middle * np.exp(-variance / 2)).astype(dtype), np.sqrt(variance))

    @property
    def dim(self) -> int:
        return self.median.size

    @property
    def dtype(self) -> jnp.dtype:
        return self.median.dtype

    @property
    def is_physical(self) -> bool:
        return True

    def __call__(self, z: Float[Array, " dim"]) -> Float[Array, "*shape"]:
        """``median exp(log_std z)``."""
        return self.median * jnp.exp(self.log_std * z.reshape(self.median.shape))


class TangentNormal(Distribution):
    """A normal distribution in the tangent space at a point.

    ``x = retract(mean, R z)``, which is ``mean exp(R z)`` on a group.

    Attributes:
        space: The space of the values; an ``lgsim.Model`` (its configurations) or an ``lgsim.LieGroup`` is converted.
        mean: The base point, of the space's shape.
        root: Standard deviations (dim,), or R (dim, k) with the covariance ``R R^T`` of body tangents.
    """

    space: Space
    mean: Float[Array, "*shape"]
    root: Float[Array, " dim"] | Float[Array, "dim k"]

    def __init__(
        self,
        space: Model | LieGroup | Space,
        mean: Numbers,
        std: Numbers | None = None,
        *,
        covariance: Numbers | None = None,
    ) -> None:
        self.space = as_space(space)
        (self.mean,) = _finite_arrays(mean=mean)
        require("mean", self.mean.shape == self.space.shape, f"shape {self.space.shape}", self.mean.shape)
        n = self.space.dim
        self.root = _covariance_root(n, (n,), std, covariance, self.mean.dtype)

    @property
    def dim(self) -> int:
        return _root_dim(self.root, (self.space.dim,))

    @property
    def dtype(self) -> jnp.dtype:
        return self.mean.dtype

    def __call__(self, z: Float[Array, " dim"]) -> Float[Array, "*shape"]:
        """``retract(mean, R z)``."""
        return self.space.retract(self.mean, _deviation(self.root, z, (self.space.dim,)))


class Haar(Distribution):
    """A configuration with attitudes that are uniform on SO(3); all other coordinates are constant.

    Four independent normal numbers divided by their norm are uniform on the sphere of unit quaternions.

    Attributes:
        quaternions: The four indices in q of each quaternion.
    """

    q: Float[Array, " nq"]
    quaternions: tuple[tuple[int, ...], ...] = eqx.field(static=True)

    def __init__(self, model: Model, joints: Sequence[str] = ("root_joint",), q: Numbers | None = None) -> None:
        self.q = jnp.asarray(model.neutral() if q is None else q, model.dtype)
        require("q", self.q.shape == (model.nq,), f"shape ({model.nq},)", self.q.shape)
        kinds = dict(zip(model.joint_names, model.topology.joints, strict=True))
        known = [name for name, kind in kinds.items() if isinstance(kind, Free | Spherical)]
        indices = []
        for name in joints:
            require("joints", name in known, f"free or spherical joints, one of {known}", name)
            indices.append(tuple(range(*model.q_slices[name].indices(model.nq)))[-4:])
        self.quaternions = tuple(indices)

    @property
    def dim(self) -> int:
        return 4 * len(self.quaternions)

    @property
    def dtype(self) -> jnp.dtype:
        return self.q.dtype

    def __call__(self, z: Float[Array, " dim"]) -> Float[Array, " nq"]:
        """The configuration with the quaternions ``z / |z|``."""
        parts = z.reshape(-1, 4)
        unit = parts / jnp.sqrt(jnp.sum(parts * parts, axis=-1, keepdims=True))
        return self.q.at[np.array(self.quaternions)].set(unit)


class FunctionDistribution(Distribution):
    """A user-defined function of standard normal numbers.

    Attributes:
        function: ``function(z)`` returns the value for z (size,); JAX traces it.
        size: The number of standard normal numbers.
        like: An array of the dtype of z.
    """

    function: Callable[[Float[Array, " size"]], PyTree]
    size: int = eqx.field(static=True)
    like: Float[Array, " ..."] = eqx.field(converter=jnp.asarray, default=0.0)

    @property
    def dim(self) -> int:
        return self.size

    @property
    def dtype(self) -> jnp.dtype:
        return self.like.dtype

    def __call__(self, z: Float[Array, " size"]) -> PyTree:
        """``function(z)``."""
        return self.function(z)


def require(name: str, holds: bool, expected: str, got: Any) -> None:
    """Raise ValueError with the expected and the given value of an argument, unless the condition holds."""
    if not holds:
        raise ValueError(f"{name}: expected {expected}, got {got}")


def float_dtype_of(value: Numbers) -> jnp.dtype:
    """The dtype of a floating-point array, else JAX's default one."""
    found = jnp.asarray(value).dtype
    return found if jnp.issubdtype(found, jnp.floating) else jnp.zeros(()).dtype


def broadcast(name: str, value: Numbers, shape: tuple[int, ...], dtype: jnp.dtype) -> Float[Array, " ..."]:
    """Broadcast a scalar to a shape, or check the shape of an array.

    Raises:
        ValueError: the value has another shape.
    """
    array = jnp.asarray(value, dtype)
    require(name, array.ndim == 0 or array.shape == shape, f"a number or shape {shape}", array.shape)
    return jnp.broadcast_to(array, shape)


def _finite_arrays(**named: Numbers) -> list[Array]:
    """Convert to arrays of finite numbers with the dtype and the shape of the first one."""
    first = next(iter(named.values()))
    dtype, shape = float_dtype_of(first), np.shape(first)
    for name, value in named.items():
        require(name, bool(np.all(np.isfinite(np.asarray(value)))), "finite numbers", value)
    return [broadcast(name, value, shape, dtype) for name, value in named.items()]


def _covariance_root(
    size: int, shape: tuple[int, ...], std: Numbers | None, covariance: Numbers | None, dtype: jnp.dtype
) -> Float[Array, " ..."]:
    """Standard deviations of a shape, or a square root (size, size) of a covariance."""
    if (std is None) == (covariance is None):
        raise ValueError("std, covariance: expected exactly one of them")
    if std is not None:
        wide = np.asarray(std)
        require("std", bool(np.all(np.isfinite(wide) & (wide >= 0))), "finite nonnegative numbers", std)
        return broadcast("std", std, shape, dtype)
    matrix = np.asarray(covariance, float)
    require("covariance", matrix.shape == (size, size), f"shape ({size}, {size})", matrix.shape)
    require("covariance", bool(np.all(np.isfinite(matrix))), "finite numbers", covariance)
    require("covariance", bool(np.allclose(matrix, matrix.T)), "a symmetric matrix", covariance)
    values, axes = np.linalg.eigh(matrix)
    rounding = 64 * size * np.finfo(np.float32).eps * np.abs(values).max(initial=0)
    require("covariance", bool(np.all(values >= -rounding)), "no negative eigenvalue", values)
    return jnp.asarray(axes * np.sqrt(np.maximum(values, 0)), dtype)


def _root_dim(root: Float[Array, " ..."], shape: tuple[int, ...]) -> int:
    """The number of standard normal numbers of a root."""
    return root.size if root.shape == shape else root.shape[1]


def _deviation(root: Float[Array, " ..."], z: Float[Array, " dim"], shape: tuple[int, ...]) -> Float[Array, " ..."]:
    """``R z``, by explicit sums, independent of the precision of matrix products."""
    if root.shape == shape:
        return root * z.reshape(shape)
    return jnp.sum(root * z[None, :], axis=1).reshape(shape)
