"""Parameters from recorded joint forces: the inverse dynamics against the signals."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lgsim.identify.estimators.estimator import (
    RESULTS,
    Estimate,
    Estimator,
    FitRounds,
    StepwiseEstimator,
    SummedCost,
    SummedCostEstimator,
)
from lgsim.identify.estimators.loss import Loss, SquaredLoss
from lgsim.identify.estimators.normal_equations import (
    TILE,
    NormalEquationsSource,
    deviations,
    linearized,
    normal_equations,
    residual,
)
from lgsim.identify.estimators.samples import TorqueSamples
from lgsim.identify.estimators.sensors import of_velocities
from lgsim.identify.estimators.uncertainty import covariance
from lgsim.identify.unknowns.parameters import Parameters
from lgsim.linalg.levenberg_marquardt import LevenbergMarquardt, NormalEquations, Solution, State


class OfJointForces(Estimator):
    """What estimators from joint forces share: they take ``Samples``."""

    def check(self, parameters: Parameters, samples: Any) -> int:
        if not isinstance(samples, TorqueSamples):
            raise TypeError(f"samples: expected Samples, got {type(samples).__name__}; Samples.of makes them")
        samples.check(parameters.plant.model)
        return int(np.sum(np.asarray(samples.weight) > 0))

    def columns(self, parameters: Parameters, samples: TorqueSamples) -> list[str]:
        return of_velocities(parameters.plant.model)

    def residuals(self, parameters: Parameters, x: Array, samples: TorqueSamples) -> tuple[Array, Array]:
        return residual(parameters, x, samples), samples.weight

    def deviations(self, parameters: Parameters, x: Array, covariance: Array, samples: TorqueSamples) -> Array:
        def one(tile: TorqueSamples) -> Array:
            _, J = linearized(parameters, x, tile)
            return jnp.sqrt(jnp.maximum(jnp.einsum("tjp,pq,tjq->tj", J, covariance, J), 0))

        out = jax.lax.map(one, samples.tiles(TILE))
        return out.reshape(-1, out.shape[-1])[: len(samples)]


class TorqueFit(OfJointForces, SummedCostEstimator, StepwiseEstimator):
    """Weighted nonlinear least squares of the joint forces in the coordinates of any blocks.

    ``min_x 1/2 sum_t sum_j w_tj rho(r_tj^2 / noise_j^2) + 1/2 |beliefs(x)|^2``, ``r = signals(q, v, a; x) - recorded``.
    The noise of each joint is estimated from its residuals, in ``rounds``, unless it is given. With log-Cholesky
    coordinates every iterate is a machine that can exist.

    Attributes:
        loss: Of the squared residuals.
        noise: Standard deviations (nv,), or None.
        rounds: How often the noise is estimated.
        lags: Samples over which the noise is correlated: the covariance then counts it (Newey and West 1987, A simple,
            positive semi-definite, heteroskedasticity and autocorrelation consistent covariance matrix); 0 for white.
        max_iterations: At most, in each round.
        tolerance: See ``LevenbergMarquardt``; by default a thousandth of a residual's square.
    """

    loss: Loss = SquaredLoss()
    noise: Any = None
    rounds: int = eqx.field(static=True, default=3)
    lags: int = eqx.field(static=True, default=0)
    max_iterations: int = eqx.field(static=True, default=100)
    tolerance: Any = None

    def run(self, parameters: Parameters, samples: TorqueSamples) -> Estimate:
        return self.in_rounds(parameters, samples).whole()

    def in_rounds(self, parameters: Parameters, samples: TorqueSamples) -> FitRounds:
        tolerance = 2e-3 / samples.signals.size if self.tolerance is None else self.tolerance
        records = normal_equations(parameters, samples, self.loss)
        return NoiseRounds(self, parameters, records, parameters.bounds(), first_noise(self.noise, samples), tolerance)

    def pieces(self, parameters: Parameters, samples: TorqueSamples) -> SummedCost:
        x = jnp.zeros(parameters.size, parameters.dtype)
        records = normal_equations(parameters, samples, self.loss)
        noise = first_noise(self.noise, samples)
        if self.noise is None:
            noise = records.spread(x, noise, jnp.zeros((), x.dtype))
        return Rows(start=(x,), fit=self, parameters=parameters, samples=samples, noise=noise)


class NoiseRounds(FitRounds):
    """Rounds after each of which the noise is estimated anew, unless it is given; they carry (x, noise)."""

    fit: TorqueFit
    parameters: Parameters
    records: NormalEquationsSource
    bounds: tuple[Array, Array]
    noise: Array
    tolerance: Any

    @property
    def count(self) -> int:
        return 1 if self.fit.noise is not None else self.fit.rounds

    def opening(self) -> tuple[Array, Array]:
        return jnp.zeros(self.parameters.size, self.parameters.dtype), self.noise

    def descent(self, carry: tuple[Array, Array], number: Array) -> LevenbergMarquardt:
        parameters, records, noise = self.parameters, self.records, carry[1]
        return LevenbergMarquardt(
            lambda x, _: with_beliefs(parameters, x, records.normal(x, noise)),
            lambda x, _: beliefs_cost(parameters, x) + records.cost(x, noise),
            *self.bounds, self.fit.max_iterations, self.tolerance, results=RESULTS,
        )  # fmt: skip

    def begin(self, carry: tuple[Array, Array], number: Array) -> tuple[LevenbergMarquardt, State]:
        descent = self.descent(carry, number)
        return descent, descent.begin(carry[0])

    def close(self, carry: tuple[Array, Array], found: Solution) -> tuple[Array, Array]:
        if self.fit.noise is not None:
            return found.x, carry[1]
        return found.x, again_noise(self.parameters, self.records, found.x, carry[1], ~found.held)

    def conclude(self, carry: tuple[Array, Array], found: Solution) -> Estimate:
        return concluded(self.parameters, self.records, *carry, self.fit.lags, joined(found))


class Rows(SummedCost):
    """Samples one by one; the first residuals set the noise where it is not given."""

    fit: TorqueFit
    parameters: Parameters
    samples: TorqueSamples
    noise: Array
    start: tuple[Array, ...]

    @property
    def count(self) -> int:
        return len(self.samples)

    def cost(self, unknowns: tuple[Array, ...], chosen: Array) -> Array:
        some = jax.tree.map(lambda a: a[chosen], self.samples)
        s = (residual(self.parameters, unknowns[0], some) / self.noise[None]) ** 2
        return jnp.sum(some.weight * self.fit.loss.cost(s)) / 2

    def conclude(self, unknowns: tuple[Array, ...], costs: Array, path: Array, status: RESULTS) -> Estimate:
        x, records = unknowns[0], normal_equations(self.parameters, self.samples, self.fit.loss)
        free = jnp.ones(x.shape, bool)
        given = self.fit.noise is not None
        noise = self.noise if given else again_noise(self.parameters, records, x, self.noise, free)
        end = Solution(x, None, records.normal(x, noise), ~free, costs, path, jnp.array(len(costs)), status)
        return concluded(self.parameters, records, x, noise, self.fit.lags, end)


def joined(rounds: Solution) -> Solution:
    """The last of some rounds of iterations (rounds, ...), with the costs and the points of all."""
    last = jax.tree.map(lambda a: a[-1], rounds)
    costs = rounds.costs.reshape(-1)
    # those of a round end with NaN
    order = jnp.argsort(jnp.isnan(costs), stable=True)
    costs = costs[order]
    path = rounds.path.reshape(-1, last.x.size)[order]
    path = jnp.where(jnp.isnan(costs)[:, None], last.x[None], path)
    return last._replace(costs=costs, path=path, iterations=jnp.sum(rounds.iterations))


def first_noise(given: Any, samples: TorqueSamples) -> Array:
    """Standard deviations of the signals (nv,): those given, or the signals' own size."""
    if given is not None:
        return jnp.broadcast_to(jnp.asarray(given, samples.signals.dtype), samples.signals.shape[-1:])
    w = samples.weight
    return deviations(jnp.sum(jnp.where(w > 0, samples.signals, 0) ** 2 * w, axis=0), jnp.sum(w, axis=0))


def again_noise(
    parameters: Parameters, records: NormalEquationsSource, x: Array, noise: Array, free: Array, C: Array | None = None
) -> Array:
    """Standard deviations of the residuals at x, for the number of unknowns that the records decide.

    C is the covariance where it is known already.
    """
    data = records.normal(x, noise)
    C = covariance(with_beliefs(parameters, x, data).hessian, free) if C is None else C
    return records.spread(x, noise, jnp.sum(C * data.hessian))


def beliefs_cost(parameters: Parameters, x: Array) -> Array:
    """Half the squares of priors and beliefs."""
    r = parameters.beliefs_at(x)
    return r @ r / 2


def with_beliefs(parameters: Parameters, x: Array, data: NormalEquations) -> NormalEquations:
    """Normal equations of the records with those of priors and beliefs."""
    r, J = parameters.beliefs_at(x), jax.jacfwd(parameters.beliefs_at)(x)
    return NormalEquations(data.cost + r @ r / 2, data.gradient + J.T @ r, data.hessian + J.T @ J)


def concluded(
    parameters: Parameters, records: NormalEquationsSource, x: Array, noise: Array, lags: int, found: Solution
) -> Estimate:
    """The estimate at x with its uncertainty, for the noise found."""
    data = records.normal(x, noise)
    whole = with_beliefs(parameters, x, data)
    meat = long_run(records.scores(x, noise), lags) + whole.hessian - data.hessian if lags else None
    C = covariance(whole.hessian, ~found.held, meat)
    return Estimate(x, C, data.hessian, noise, found.costs, found.path, found.iterations, found.result)


def long_run(scores: Array, lags: int) -> Array:
    """The covariance (p, p) of the sum of scores (n, p) that are correlated over some lags, by Bartlett's window."""

    def add(total: Array, lag: Array) -> tuple[Array, None]:
        moved = jnp.roll(scores, -lag, axis=0)
        kept = (jnp.arange(len(scores)) < len(scores) - lag)[:, None]
        part = scores.T @ jnp.where(kept, moved, 0)
        weight = 1 - lag.astype(scores.dtype) / (lags + 1)
        return total + weight * (part + part.T), None

    return jax.lax.scan(add, scores.T @ scores, jnp.arange(1, lags + 1))[0]
