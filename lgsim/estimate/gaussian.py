"""Gaussian distributions of points of a manifold: a mean, and the covariance of the error in the algebra."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.linalg import block_diag
from jax.typing import ArrayLike
from jaxtyping import Float

from lgsim._compile.xla import compiled
from lgsim.estimate.factors import check_deviations, cholesky, triangular
from lgsim.lie.action import Action, LeftTranslation, Point, Product, RightTranslation
from lgsim.lie.group import LieGroup, norm
from lgsim.support.check import is_traced


def as_action(name: str, value: Any) -> Action:
    """The action by which an error moves a point; of a group, its right translation.

    Raises:
        TypeError: the value is no action and no group, or the action has no ``difference``.
    """
    if isinstance(value, LieGroup):
        return RightTranslation(value)
    if not isinstance(value, Action):
        raise TypeError(
            f"{name}: expected an action such as lgsim.actions.RightTranslation(lgsim.SE3), or a group, got "
            f"{type(value).__name__}"
        )
    if not value.provides("difference"):
        raise TypeError(f"{name}: expected an action with a difference of points, but {type(value).__name__} has none")
    return value


class Gaussian(eqx.Module):
    """A random point ``x = move(U n, mean)``, n standard normal: the error is Gaussian in the algebra.

    The action of the error says in which axes it is: with ``RightTranslation(G)`` it is ``log(mean^-1 x)``, in the axes
    of the body (the left-invariant error of the literature), with ``LeftTranslation(G)`` it is ``log(x mean^-1)``, in
    those of the world (right-invariant), in R^n the difference. States of a model have the error of their state space,
    tuples that of a ``Product``.

    Attributes:
        mean: The mean, a point of the manifold.
        factor: Upper triangular U (n, n), the covariance is ``U U^T``; units of the algebra.
        error: The action of the error.

    Source: Barrau and Bonnabel 2017, The invariant extended Kalman filter as a stable observer.
    """

    mean: Point = eqx.field(converter=lambda mean: jax.tree.map(_as_array, mean))
    factor: Float[Array, "*batch n n"]
    error: Action = eqx.field(converter=lambda error: as_action("error", error))

    def __check_init__(self) -> None:
        """Check a Gaussian outside of traced functions.

        Raises:
            ValueError: the factor is not upper triangular, of another size than the error, or not finite; the mean is
                no point.
        """
        check_factor("factor", self.factor, self.error.dim)
        if self.factor.shape[-1] != self.error.dim or not (is_traced(self.factor) or _is_triangular(self.factor)):
            raise ValueError(
                f"factor: expected an upper triangular matrix ({self.error.dim}, {self.error.dim}); "
                "Gaussian.from_factor takes any factor"
            )
        self.error.check_point(self.mean, "mean")

    @staticmethod
    def from_factor(mean: Point, factor: ArrayLike, error: Action | LieGroup) -> Gaussian:
        """The Gaussian of any factor (n, m) of the covariance, also of a singular one.

        Raises:
            ValueError: the factor has another number of rows than the error has components, or is not finite.
        """
        error = as_action("error", error)
        factor = jnp.asarray(factor, _dtype(mean))
        check_factor("factor", factor, error.dim)
        return Gaussian(mean, triangular(factor), error)

    @staticmethod
    def from_covariance(
        mean: Point, covariance: ArrayLike | Sequence[Sequence[float | int]], error: Action | LieGroup
    ) -> Gaussian:
        """The Gaussian of a covariance (n, n), positive definite.

        Raises:
            ValueError: the covariance is not symmetric or not positive definite.
        """
        P = jnp.asarray(covariance, _dtype(mean))
        if P.ndim < 2 or P.shape[-1] != P.shape[-2]:
            raise ValueError(f"covariance: expected a square matrix, got the shape {P.shape}")
        if not is_traced(P):
            check_covariance("covariance", np.asarray(P))
        return Gaussian(mean, cholesky(P), error)

    @staticmethod
    def from_deviations(
        mean: Point, deviations: ArrayLike | Sequence[float | int], error: Action | LieGroup
    ) -> Gaussian:
        """The Gaussian of independent components of the error with these standard deviations (n,), or one for all.

        Raises:
            ValueError: a deviation is negative or not finite.
        """
        error = as_action("error", error)
        deviations = jnp.broadcast_to(jnp.asarray(deviations, _dtype(mean)), (error.dim,))
        check_deviations("deviations", deviations)
        return Gaussian(mean, jnp.diag(deviations), error)

    @staticmethod
    def joint(*parts: Gaussian) -> Gaussian:
        """The Gaussian of the tuple of independent points."""
        return Gaussian(
            tuple(part.mean for part in parts),
            block_diag(*(part.factor for part in parts)),
            Product(*(part.error for part in parts)),
        )

    @property
    def covariance(self) -> Float[Array, "*batch n n"]:
        """``U U^T``."""
        return self.factor @ jnp.swapaxes(self.factor, -1, -2)

    @property
    def deviations(self) -> Float[Array, "*batch n"]:
        """The standard deviation of each component of the error."""
        return norm(self.factor)

    def transform(
        self, f: Callable[[Point], Point], error: Action | LieGroup | None = None, *, order: int = 1
    ) -> Gaussian:
        """The Gaussian of f(x), to first or second order in the deviations.

        With J and H_i the first and second derivatives of the error of f(x) with respect to that of x, the covariance
        is ``J P J^T`` and to second order ``J P J^T + tr(H_i P H_j P) / 2`` about the mean ``f(mean)`` moved by
        ``tr(H_i P) / 2``.

        Args:
            f: A differentiable function of a point.
            error: The action of the result's error, by default that of x.
            order: 1 or 2.

        Raises:
            ValueError: ``order`` is neither.
        """
        if order not in (1, 2):
            raise ValueError(f"order: expected 1 or 2, got {order}")
        error = self.error if error is None else as_action("error", error)
        mean = f(self.mean)

        def along(n: Array) -> Array:
            return error.difference(mean, f(self.error.move(self.factor @ n, self.mean)))

        zero = jnp.zeros(self.factor.shape[-1], self.factor.dtype)
        slope = jax.jacfwd(along)(zero)
        if order == 1:
            return Gaussian(mean, triangular(slope), error)
        second = jax.jacfwd(jax.jacfwd(along))(zero)
        shift = jnp.trace(second, axis1=1, axis2=2) / 2
        columns = second.reshape(error.dim, -1) / math.sqrt(2)
        return Gaussian(error.move(shift, mean), triangular(jnp.concatenate([slope, columns], axis=1)), error)

    @compiled
    def with_error(self, error: Action | LieGroup) -> Gaussian:
        """The same distribution with the error of another action, to first order."""
        return self.transform(lambda x: x, error)

    @compiled
    def inverse(self, *, order: int = 1) -> Gaussian:
        """The Gaussian of ``x^-1`` of an element of a group.

        Raises:
            TypeError: x is no element of a group.
        """
        return self.transform(self._group().inverse, order=order)

    @compiled
    def compose(self, other: Gaussian, *, order: int = 1) -> Gaussian:
        """The Gaussian of ``x y``, y independent of x.

        Raises:
            TypeError: x is no element of a group.
        """
        group = self._group()
        return Gaussian.joint(self, other).transform(lambda pair: group.compose(*pair), self.error, order=order)

    @compiled
    def sample(self, key: Array) -> Point:
        """A random point."""
        n = jax.random.normal(key, self.factor.shape[-1:], self.factor.dtype)
        return self.error.move(self.factor @ n, self.mean)

    def _group(self) -> LieGroup:
        if not isinstance(self.error, LeftTranslation | RightTranslation):
            raise TypeError(f"error: expected that of elements of a group, got {type(self.error).__name__}")
        return self.error.group


def check_covariance(name: str, P: np.ndarray) -> None:
    """Raise ValueError unless a covariance is finite, symmetric and positive definite."""
    if not np.isfinite(P).all():
        raise ValueError(f"{name}: expected finite numbers, got NaN or infinity")
    scale = np.abs(P).max(initial=0)
    if np.abs(P - np.swapaxes(P, -1, -2)).max(initial=0) > 10.0 ** (-np.finfo(P.dtype).precision / 2) * scale:
        raise ValueError(f"{name}: expected a symmetric matrix")
    try:
        np.linalg.cholesky(P)
    except np.linalg.LinAlgError:
        lowest = np.linalg.eigvalsh(P).min()
        raise ValueError(
            f"{name}: expected a positive definite matrix, but its lowest eigenvalue is {lowest:.3g}; "
            "Gaussian.from_factor takes factors of singular ones"
        ) from None


def check_factor(name: str, factor: Array, rows: int) -> None:
    """Raise ValueError unless a factor has this number of rows and, outside of traced functions, finite numbers."""
    if factor.ndim < 2 or factor.shape[-2] != rows:
        raise ValueError(
            f"{name}: expected {rows} rows, one for each component of the error, got the shape {factor.shape}"
        )
    if not is_traced(factor) and not np.isfinite(factor).all():
        raise ValueError(f"{name}: expected finite numbers, got NaN or infinity")


def _dtype(mean: Point) -> jnp.dtype:
    return jax.tree.leaves(jax.tree.map(_as_array, mean))[0].dtype


def _as_array(leaf: ArrayLike) -> Array:
    array = jnp.asarray(leaf)
    return array if jnp.issubdtype(array.dtype, jnp.floating) else array.astype(float)


def _is_triangular(factor: Array) -> bool:
    return not np.tril(np.asarray(factor), -1).any()
