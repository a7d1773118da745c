"""The unscented Kalman filter on a manifold: a distribution is a set of points."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from lgsim._compile.xla import number_field
from lgsim.estimate.factors import solved, triangular
from lgsim.estimate.gaussian import Gaussian
from lgsim.estimate.measurement import Measurement
from lgsim.estimate.methods import Filter, Prediction, Update, density, moved
from lgsim.estimate.processes import Process
from lgsim.integrators.method import Number
from lgsim.lie.action import Point


class Points(eqx.Module):
    """A rule for points: the mean, and n pairs at ``+- spread U e_i``, U the factor and e_i the axes.

    With the weight ``w = 1 / (2 spread^2)`` of each other point, d_i its difference from the mean's own and ``s = w sum
    d_i``, the mean is moved by s and the covariance is ``w sum d_i d_i^T + curvature s s^T``.
    """

    @abstractmethod
    def square(self, n: int) -> Number:
        """The squared distance of a point from the mean in standard deviations, for n components."""

    def spread(self, n: int) -> Array:
        """The distance of a point from the mean in standard deviations."""
        return jnp.sqrt(self.square(n))

    @property
    def curvature(self) -> Number:
        """The weight of s s^T in covariances: -1 plus the difference of the mean's own weights."""
        return -1.0

    def errors(self, U: Float[Array, "n n"]) -> Float[Array, "k n"]:
        """The errors of the points, (2 n + 1, n), that of the mean first."""
        n = U.shape[0]
        return jnp.concatenate([jnp.zeros((1, n), U.dtype), self.spread(n) * U.T, -self.spread(n) * U.T])

    def shift(self, gaps: Float[Array, "k m"]) -> Float[Array, " m"]:
        """s, of values of the points as differences from the first one."""
        return jnp.sum(gaps[1:], axis=0) / (2 * self.square(len(gaps) // 2))

    def columns(self, errors: Float[Array, "k m"]) -> Float[Array, "m j"]:
        """A factor of the covariance of values of the points: ``D (I + c s s^T)`` with ``D D^T = w sum d_i d_i^T``."""
        n = len(errors) // 2
        D = (errors[1:] - errors[:1]).T / (math.sqrt(2) * self.spread(n))
        share = n / self.square(n)
        # (1 + c share)^2 = 1 + curvature share
        c = (jnp.sqrt(1 + self.curvature * share) - 1) / (2 * n)
        return D + c * jnp.sum(D, axis=1, keepdims=True)


class Cubature(Points):
    """Points at sqrt(n), all of equal weight, and none at the mean.

    Source: Arasaratnam and Haykin 2009, Cubature Kalman filters.
    """

    def square(self, n: int) -> Number:
        return float(n)


class Julier(Points):
    """Points at ``sqrt(n + kappa)``; with kappa = 3 - n the fourth moments of Gaussian numbers are right.

    Attributes:
        kappa: Not negative, so that no covariance can be either.

    Source: Julier, Uhlmann and Durrant-Whyte 2000, A new method for the nonlinear transformation of means and
    covariances in filters and estimators.
    """

    kappa: Number = number_field(default=1.0)

    def __check_init__(self) -> None:
        if not self.kappa >= 0:
            raise ValueError(f"kappa: expected a number that is not negative, got {self.kappa}")

    def square(self, n: int) -> Number:
        return n + self.kappa


class Scaled(Points):
    """Points at ``alpha sqrt(n)``, near to the mean, and a share beta of the curvature in covariances.

    Attributes:
        alpha: The scale, above 0 and at most 1.
        beta: 2 is best for Gaussians; at least ``alpha^2``, so that no covariance can be negative.

    Source: Wan and van der Merwe 2000, The unscented Kalman filter for nonlinear estimation, with kappa = 0.
    """

    alpha: Number = number_field(default=0.5)
    beta: Number = number_field(default=2.0)

    def __check_init__(self) -> None:
        if not 0 < self.alpha <= 1:
            raise ValueError(f"alpha: expected a number above 0 and at most 1, got {self.alpha}")
        if not self.beta >= self.alpha**2:
            raise ValueError(f"beta: expected at least alpha^2 = {self.alpha**2:.3g}, got {self.beta}")

    def square(self, n: int) -> Number:
        return self.alpha**2 * n

    @property
    def curvature(self) -> Number:
        return self.beta - self.alpha**2


class UKF(Filter):
    """The unscented Kalman filter in square-root form: points are moved by ``step`` and measured by ``h``, and means on
    the manifold are found by iteration from the image of the mean.

    The noise of the process is added at the end of a step, as ``Process.noise`` of the image of the mean.

    Attributes:
        points: The rule for the points.
        iterations: The number of iterations of a mean on a manifold.

    Source: Brossard, Barrau and Bonnabel 2020, A code for unscented Kalman filtering on manifolds (UKF-M); van der
    Merwe and Wan 2001, The square-root unscented Kalman filter for state and parameter-estimation.
    """

    points: Points = Cubature()
    iterations: int = eqx.field(static=True, default=3)

    def predict(self, process: Process, before: Gaussian, u: Any, dt: Number) -> Prediction:
        error, U = before.error, before.factor
        own = self.points.errors(U)
        states = jax.vmap(lambda e: process.step(error.move(e, before.mean), u, dt))(own)

        def errors(mean: Point) -> Float[Array, "k n"]:
            return jax.vmap(lambda state: error.difference(mean, state))(states)

        def nearer(_: Any, mean: Point) -> Point:
            own = errors(mean)
            return error.move(own[0] + self.points.shift(own - own[:1]), mean)

        center = jax.tree.map(lambda a: a[0], states)
        mean = jax.lax.fori_loop(0, self.iterations, nearer, center)
        columns = self.points.columns(errors(mean))
        n = error.dim
        image = (columns[:, :n] - columns[:, n:]) / math.sqrt(2)
        even = (columns[:, :n] + columns[:, n:]) / math.sqrt(2)
        slope, noise = process.transition(error, before.mean, u, dt)[1:]
        rest = jnp.concatenate([even, noise], axis=1)
        factor = triangular(jnp.concatenate([image, rest], axis=1))
        return Prediction(Gaussian(mean, factor, error), slope, noise, image, rest)

    def update(self, measurement: Measurement, before: Gaussian, u: Any, z: Any) -> Update:
        error, U = before.error, before.factor
        own = self.points.errors(U)
        values = jax.vmap(lambda e: measurement.predicted(error.move(e, before.mean), u))(own)
        at = jax.tree.map(lambda a: a[0], values)
        gaps = jax.vmap(lambda value: measurement.residual(at, value))(values)
        r = measurement.residual(at, z) - self.points.shift(gaps)
        n, N = error.dim, measurement.factor(len(r), r.dtype)
        noise = jnp.concatenate([jnp.zeros((n, N.shape[1]), N.dtype), N])
        columns = self.points.columns(jnp.concatenate([own, gaps], axis=1))
        whole = triangular(jnp.concatenate([columns, noise], axis=1))
        whitened = solved(whole[n:, n:], r)
        after = moved(before, whole[:n, n:] @ whitened, whole[:n, :n])
        return Update(after, *density(whole[n:, n:], whitened))
