"""Filters with linearized models: the extended Kalman filter and its iterated form, on any manifold."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from lgsim.estimate.factors import conditioned, diagonal, solved, triangular
from lgsim.estimate.gaussian import Gaussian, as_action
from lgsim.estimate.measurement import Measurement
from lgsim.estimate.processes import Process
from lgsim.integrators.method import Number
from lgsim.lie.action import Action


class Prediction(NamedTuple):
    """A state before a reading, and what ties its error to that of the state before.

    Attributes:
        gaussian: The predicted state.
        slope: The derivative of its error with respect to that of the state before (n, n).
        noise: A factor of the covariance of the noise of the process (n, m).
        image: The error that comes from the columns of the factor before (n, n): ``slope @ factor``, or its mean over
            the points of an unscented filter.
        rest: A factor of the covariance of the rest of the error (n, j).
    """

    gaussian: Gaussian
    slope: Float[Array, "n n"]
    noise: Float[Array, "n m"]
    image: Float[Array, "n n"]
    rest: Float[Array, "n j"]


class Update(NamedTuple):
    """A state after a reading.

    Attributes:
        gaussian: The state given the reading.
        nis: The squared residual, normalized by its predicted covariance; chi-square with m degrees of freedom.
        loglikelihood: The logarithm of the density of the reading.
    """

    gaussian: Gaussian
    nis: Float[Array, ""]
    loglikelihood: Float[Array, ""]


class Filter(eqx.Module):
    """A method of filtering: how a distribution is moved by a process, and how it is changed by a reading."""

    def prepared(self, start: Gaussian) -> Gaussian:
        """The start in the error that the method works with."""
        return start

    @abstractmethod
    def predict(self, process: Process, before: Gaussian, u: Any, dt: Number) -> Prediction:
        """The distribution after the time dt, s."""

    @abstractmethod
    def update(self, measurement: Measurement, before: Gaussian, u: Any, z: Any) -> Update:
        """The distribution given a reading z."""


class EKF(Filter):
    """The extended Kalman filter on a manifold: first derivatives of ``step`` and ``h`` at the mean, exact by automatic
    differentiation, in the error of the start.

    With a group and the error of its right translation it is the left-invariant filter, with that of its left
    translation the right-invariant one, provided that the process is group-affine.

    Attributes:
        reset: Whether the covariance is moved to the new mean after an update, ``J P J^T`` with the derivative J of the
            error there. By default it stays as it is in the algebra, as in the literature on invariant filters.

    Source: Barrau and Bonnabel 2017; for ``reset`` Mueller, Hehn and D'Andrea 2017, Covariance correction step for
    Kalman filtering with an attitude.
    """

    reset: bool = eqx.field(static=True, default=False)

    def predict(self, process: Process, before: Gaussian, u: Any, dt: Number) -> Prediction:
        state, slope, noise = process.transition(before.error, before.mean, u, dt)
        image = slope @ before.factor
        factor = triangular(jnp.concatenate([noise, image], axis=1))
        return Prediction(Gaussian(state, factor, before.error), slope, noise, image, noise)

    def update(self, measurement: Measurement, before: Gaussian, u: Any, z: Any) -> Update:
        r, H, N = measurement.linearized(before.error, before.mean, u, z)
        S, cross, factor = conditioned(before.factor, H, N)
        whitened = solved(S, r)
        return Update(moved(before, cross @ whitened, factor, self.reset), *density(S, whitened))


class InvariantEKF(EKF):
    """The extended Kalman filter in the error of a given action, to which the start is converted.

    For a group-affine process the error of the estimate then moves by itself, whatever the state is, so that a wrong
    start does not make the covariance wrong. ``RightTranslation`` (errors in the body's axes) suits measurements of
    what a body knows about the world, as a position; ``LeftTranslation`` (errors in the world's axes) those that a body
    makes of fixed points.

    Attributes:
        error: The action of the error, or a group for its right translation.

    Source: Barrau and Bonnabel 2017, The invariant extended Kalman filter as a stable observer.
    """

    error: Action = eqx.field(converter=lambda error: as_action("error", error), kw_only=True)

    def prepared(self, start: Gaussian) -> Gaussian:
        return start.with_error(self.error)


class IteratedEKF(EKF):
    """The extended Kalman filter whose updates are Gauss-Newton steps to the most probable state.

    Attributes:
        iterations: The number of steps; 1 is the extended Kalman filter.

    Source: Bell and Cathey 1993, The iterated Kalman filter update as a Gauss-Newton method.
    """

    iterations: int = eqx.field(static=True, default=3)

    def __check_init__(self) -> None:
        if self.iterations < 1:
            raise ValueError(f"iterations: expected at least 1, got {self.iterations}")

    def update(self, measurement: Measurement, before: Gaussian, u: Any, z: Any) -> Update:
        error, U = before.error, before.factor
        zero = jnp.zeros(error.dim, U.dtype)

        def residual(e: Array) -> Array:
            return measurement.residual(measurement.predicted(error.move(e, before.mean), u), z)

        def improved(e: Array, _: None) -> tuple[Array, None]:
            slope = jax.jacfwd(residual)(e)
            S, cross = conditioned(U, -slope, N)[:2]
            return cross @ solved(S, residual(e) - slope @ e), None

        r = residual(zero)
        N = measurement.factor(r.shape[0], r.dtype)
        S, _, _ = conditioned(U, -jax.jacfwd(residual)(zero), N)
        e, _ = jax.lax.scan(improved, zero, None, length=self.iterations)
        _, _, factor = conditioned(U, -jax.jacfwd(residual)(e), N)
        return Update(moved(before, e, factor, self.reset), *density(S, solved(S, r)))


def moved(before: Gaussian, e: Float[Array, " n"], factor: Float[Array, "n n"], reset: bool = False) -> Gaussian:
    """The Gaussian with the mean moved by an error e; with ``reset`` its covariance is about the new mean."""
    error = before.error
    mean = error.move(e, before.mean)
    if reset:

        def about(d: Array) -> Array:
            return error.difference(mean, error.move(e + d, before.mean))

        factor = triangular(jax.jacfwd(lambda n: about(factor @ n))(jnp.zeros_like(e)))
    return Gaussian(mean, factor, error)


def density(S: Float[Array, "m m"], whitened: Float[Array, " m"]) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """The squared normalized residual, and the logarithm of the density of a residual with covariance ``S S^T``."""
    nis = whitened @ whitened
    size = jnp.sum(jnp.log(jnp.abs(diagonal(S))))
    return nis, -nis / 2 - size - len(whitened) / 2 * math.log(2 * math.pi)
