"""Nonlinear least squares of recorded joint torques: the inverse-dynamics residual."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Bool, Float, Int

from lgsim._compile.linalg.levenberg_marquardt import (
    BoxStep,
    LevenbergMarquardt,
    NormalEquations,
    Proposal,
    Solution,
)
from lgsim._compile.xla import control_flow
from lgsim.identify.estimators.estimator import (
    NEGLIGIBLE,
    RESULTS,
    Estimate,
    Estimator,
    FitRounds,
    RoundStart,
    StepwiseEstimator,
)
from lgsim.identify.estimators.friction_objective import friction_objective
from lgsim.identify.estimators.loss import Loss, SquaredLoss
from lgsim.identify.estimators.samples import TorqueSamples
from lgsim.identify.estimators.torque_objective import (
    TILE,
    TorqueObjective,
    torque_residual_jacobian,
    torque_residuals,
)
from lgsim.identify.estimators.uncertainty import covariance
from lgsim.identify.goodness import Signals, torque_signals
from lgsim.identify.recording.coordinates import dof_names
from lgsim.identify.unknowns.parameters import Parameters
from lgsim.identify.unknowns.plant import NumbersLike, refuse_contacts
from lgsim.support import check

FINEST = 1e-6
"""The smallest noise of a recorded torque, relative to its root mean square."""
SATURATED = 1e-3
"""The smallest share of the values of a signal that the unknowns must leave for an estimate of its noise."""
SETTLED = 0.01
"""Change of an estimate of the noise, relative to its own standard error, below which it has settled."""
ROUNDS = 3
"""Number of rounds after which a round that fails ends the search, and whose iterations are all recorded."""
FALL, FALLS = 5.0, 3
"""Factor by which the barriers of bodies without a prior decrease from round to round, and the number of these rounds.
"""


class TorqueEstimator(Estimator):
    """An estimator from joint torques, which takes ``TorqueSamples``."""

    def check(self, parameters: Parameters, samples: Any) -> int:
        if not isinstance(samples, TorqueSamples):
            kind = type(samples).__name__
            raise TypeError(
                f"samples: expected TorqueSamples, got {kind}; create them with TorqueSamples.from_recording"
            )
        refuse_contacts(parameters.plant.model)
        samples.check(parameters.plant.model)
        return int(np.sum(np.asarray(samples.weight) > 0))

    def within_record(self, parameters: Parameters, samples: TorqueSamples) -> Parameters:
        moved = any(block.has_speeds for block in parameters.blocks)
        return parameters.within_speeds(*samples.speed_range()) if moved else parameters

    def columns(self, parameters: Parameters, samples: TorqueSamples) -> list[str]:
        return dof_names(parameters.plant.model)

    def padded(self, samples: TorqueSamples) -> TorqueSamples:
        return samples.padded(TILE)

    def rounding(self, samples: TorqueSamples) -> Float[Array, " nv"]:
        return noise_floor(samples)

    def residuals(
        self, parameters: Parameters, x: Float[Array, " p"], samples: TorqueSamples
    ) -> tuple[Float[Array, "n nv"], Float[Array, "n nv"]]:
        return torque_residuals(parameters, x, samples), samples.weight

    def deviations(
        self, parameters: Parameters, x: Float[Array, " p"], covariance: Float[Array, "p p"], samples: TorqueSamples
    ) -> Float[Array, "n nv"]:
        def one(tile: TorqueSamples) -> Float[Array, "t nv"]:
            _, J = torque_residual_jacobian(parameters, x, tile)
            return jnp.sqrt(jnp.maximum(jnp.einsum("tjp,pq,tjq->tj", J, covariance, J), 0))

        out = jax.lax.map(one, samples.tiles(TILE))
        return out.reshape(-1, out.shape[-1])[: len(samples)]


class TorqueFit(StepwiseEstimator, TorqueEstimator):
    """Weighted nonlinear least squares of joint torques over the coordinates of any blocks.

    ``min_x 1/2 sum_t sum_j w_tj rho(r_tj^2 / noise_j^2) + 1/2 |prior_residuals(x)|^2``, ``r = signals(q, v, a; x) -
    recorded``. With log-Cholesky coordinates every iterate is physically consistent.

    Unless it is given, the noise of each signal is estimated after each round of iterations, until it settles:
    ``noise_j = deviation_j / sqrt(1 - k_j / n_j)``. Here deviation_j is ``loss.deviation`` of the residuals, n_j the
    number of values, and ``k_j = trace(C H_j)`` the number of unknowns that the signal determines: H_j is its
    information and C the covariance of x. For least squares this is the estimate of restricted maximum likelihood. The
    noise of a signal that determines as many unknowns as it has values stays at the initial guess, the root mean square
    of the signal.

    Attributes:
        noise: Standard deviations of the signals (nv,); None to estimate them.
        noise_updates: The largest number of rounds, each followed by an estimate of the noise. They end if it changes
            by less than a hundredth of its own standard error. There are at least four rounds for bodies without a
            prior, whose solution approaches the limit of physical consistency round by round.
        lags: Treatment of correlated noise in the covariance. None: from the correlation time of each signal's
            residuals, ``correlation_times``; 0: as white noise; a number of samples: from the covariance of the scores
            over so many lags, correct if the motion changes as fast as the noise, but only with far more samples than
            unknowns.
        max_iterations: Maximum number of iterations of each round.
        tolerance: As in ``LevenbergMarquardt``; by default a thousandth of a squared residual.

    Source: Newey and West 1987, A simple, positive semi-definite, heteroskedasticity and autocorrelation consistent
    covariance matrix, Econometrica 55(3), for correlated noise; Harville 1977, Maximum likelihood approaches to
    variance component estimation, J. Am. Stat. Assoc. 72, for the noise.
    """

    loss: Loss = SquaredLoss()
    noise: NumbersLike | None = None
    noise_updates: int = eqx.field(static=True, default=50)
    lags: int | None = eqx.field(static=True, default=None)
    max_iterations: int = eqx.field(static=True, default=300)
    tolerance: ArrayLike | None = None

    def __check_init__(self) -> None:
        check.count("max_iterations", self.max_iterations)
        check.count("noise_updates", self.noise_updates)

    def signals(self, parameters: Parameters, samples: TorqueSamples) -> Signals:
        return torque_signals(parameters.plant.model, samples, self.noise, self.loss)

    def in_rounds(self, parameters: Parameters, samples: TorqueSamples) -> FitRounds:
        count = jnp.maximum(jnp.sum(samples.weight > 0, dtype=samples.weight.dtype), 1)
        tolerance = 2e-3 / count if self.tolerance is None else self.tolerance
        objective = friction_objective(parameters, samples, self.loss)
        noise, floor = initial_noise(self.noise, samples), noise_floor(samples)
        bounds = parameters.bounds(search=True)
        return NoiseRounds(self, parameters, objective, bounds, noise, floor, counts(samples), tolerance)


class NoiseRounds(FitRounds):
    """Rounds of minimization with an estimate of the noise after each one until it settles, unless it is given.

    Attributes:
        noise: Standard deviations of the signals (nv,) in the first round.
        floor: The smallest estimate of the noise (nv,).
        counts: Number of values of each signal (nv,).
        tolerance: As in ``LevenbergMarquardt``.
    """

    fit: TorqueFit
    parameters: Parameters
    objective: TorqueObjective
    bounds: tuple[Float[Array, " p"], Float[Array, " p"]]
    noise: Float[Array, " nv"]
    floor: Float[Array, " nv"]
    counts: Float[Array, " nv"]
    tolerance: ArrayLike

    @property
    def least(self) -> int:
        """The smallest number of rounds."""
        least = 1 if self.objective.held_at_first() is None else 2
        return 1 + FALLS if self.parameters.has_barrier else least

    @property
    def count(self) -> int:
        return self.least if self.fit.noise is not None else max(self.fit.noise_updates, self.least)

    @property
    def recorded(self) -> int:
        return min(self.count, max(ROUNDS, self.least))

    def ended(self, start: RoundStart, number: Int[Array, ""], found: Solution) -> Bool[Array, ""]:
        failed = (number >= self.recorded) & ~(found.result == RESULTS.successful)
        return (number >= self.count) | failed | (number >= self.least) & self.settled(start)

    def settled(self, start: RoundStart) -> Bool[Array, ""]:
        """True if the noise of no signal changed in the previous round."""
        return noise_settled(start.noise_before, start.noise, self.floor, self.counts)

    def opening(self) -> RoundStart:
        start = jnp.clip(self.objective.start(), *self.bounds)
        return RoundStart(start, None, self.noise, self.noise)

    def descent(self, start: RoundStart, number: Int[Array, ""]) -> LevenbergMarquardt:
        parameters, objective, noise = self.parameters, self.objective, start.noise
        # from the center of the physically consistent set to its boundary, round by round: near a wrong point of the
        # boundary only short steps leave it; hence also tolerances in proportion to the barriers
        left = jnp.maximum(FALLS - number, 0) if parameters.has_barrier else jnp.zeros_like(number)
        barrier = FALL ** left.astype(noise.dtype)
        return LevenbergMarquardt(
            lambda x, _: _descent_equations(parameters, x, objective.normal_equations(x, noise), barrier),
            lambda x, _: parameters.prior_cost(x, barrier) + objective.cost(x, noise),
            *self.bounds_in(start, number), self.fit.max_iterations, self.tolerance * barrier,
            linear_step=StraightStep(parameters), results=RESULTS, negligible=NEGLIGIBLE + objective.rounding(noise),
        )  # fmt: skip

    def bounds_in(self, start: RoundStart, number: Int[Array, ""]) -> tuple[Float[Array, " p"], Float[Array, " p"]]:
        """The bounds in a round."""
        held = self.objective.held_at_first()
        if held is None:
            return self.bounds
        lower, upper = (jnp.where(held & (number == 0), start.x, bound) for bound in self.bounds)
        return lower, upper

    def noise_after(self, start: RoundStart, found: Solution) -> Float[Array, " nv"]:
        if self.fit.noise is not None:
            return start.noise
        return estimate_noise(self.parameters, self.objective, found.x, start.noise, ~found.held, self.floor)

    def estimate(self, end: RoundStart, found: Solution) -> Estimate:
        estimate = torque_estimate(self.parameters, self.objective, end.x, end.noise, self.fit.lags, found)
        if self.fit.noise is not None:
            return estimate
        fine = self.settled(end) | ~(found.result == RESULTS.successful)
        return estimate._replace(result=RESULTS.where(fine, found.result, RESULTS.noise_not_settled))


def initial_noise(given: NumbersLike | None, samples: TorqueSamples) -> Float[Array, " nv"]:
    """Standard deviations of the signals: the given ones, or the root mean squares of the signals."""
    if given is not None:
        return jnp.broadcast_to(jnp.asarray(given, samples.signals.dtype), samples.signals.shape[-1:])
    size = SquaredLoss().deviation(samples.signals, samples.weight)
    # a joint without any signal or weight must not divide by zero
    return jnp.where(size > 0, size, 1)


def counts(samples: TorqueSamples) -> Float[Array, " nv"]:
    """The number of values of each signal: the sum of its weights."""
    return jnp.sum(samples.weight, axis=0)


def noise_floor(samples: TorqueSamples) -> Float[Array, " nv"]:
    """The smallest noise that is estimated, relative to each signal's root mean square.

    Normal equations resolve residuals down to the square root of the rounding error, 7e-4 in float32.
    """
    resolved = 2 * float(np.sqrt(np.finfo(samples.signals.dtype).eps))
    return max(FINEST, resolved) * initial_noise(None, samples)


def estimate_noise(
    parameters: Parameters,
    objective: TorqueObjective,
    x: Float[Array, " p"],
    noise: Float[Array, " nv"],
    free: Bool[Array, " p"],
    floor: Float[Array, " nv"],
    C: Float[Array, "p p"] | None = None,
) -> Float[Array, " nv"]:
    """Standard deviations of the noise at x, by the equation of ``TorqueFit``.

    Args:
        noise: Previous standard deviations.
        free: The coordinates without an active bound.
        floor: The smallest result.
        C: The covariance of x if it is known already.
    """
    each = objective.informations(x, noise)
    if C is None:
        zero = NormalEquations(jnp.zeros((), x.dtype), jnp.zeros_like(x), jnp.sum(each, axis=0))
        C = covariance(with_priors(parameters, x, zero).hessian, free)
    weight = jnp.sum(objective.tiles.weight, axis=(0, 1))
    left = 1 - jnp.einsum("pq,jqp->j", C, each) / jnp.where(weight > 0, weight, 1)
    fine = (left > SATURATED) & (weight > 0)
    found = objective.residual_deviations(x) / jnp.sqrt(jnp.where(fine, left, 1))
    return jnp.where(fine, jnp.maximum(found, floor), noise)


def noise_settled(
    before: Float[Array, " nv"], noise: Float[Array, " nv"], floor: Float[Array, " nv"], counts: Float[Array, " nv"]
) -> Bool[Array, ""]:
    """True if an estimate of the noise changed by much less than its standard error, ``noise / sqrt(2 n)``.

    Args:
        floor: The smallest estimate: the rounding errors of the squares are its square.
        counts: Number n of values of each signal.
    """
    bound = SETTLED / jnp.sqrt(2 * jnp.maximum(counts, 1)) + (floor / noise) ** 2
    # noise that is not finite does not change
    return ~jnp.any(jnp.abs(jnp.log(noise / before)) > bound)


class StraightStep(BoxStep):
    """The step of ``BoxStep`` along a straight line in the physical parameters, so that the curvature of the
    coordinates has no effect.

    A step that would leave the physically consistent set is shortened as a whole: changes of several bodies compensate
    each other, so that a part must not be shortened alone.
    """

    parameters: Parameters

    def propose(
        self,
        normal: NormalEquations,
        D: Float[Array, " p"],
        mu: Float[Array, ""] | float,
        x: Float[Array, " p"],
        lower: Float[Array, " p"],
        upper: Float[Array, " p"],
    ) -> Proposal:
        whole = super().propose(normal, D, mu, x, lower, upper)
        dx = whole.x - x
        dx = self.parameters.reach(x, dx) * dx
        predicted = -(normal.gradient @ dx + dx @ normal.hessian @ dx / 2)
        there = jnp.clip(self.parameters.straight(x, dx), lower, upper)
        return Proposal(there, None, predicted, whole.predicted)


def _descent_equations(
    parameters: Parameters, x: Float[Array, " p"], data: NormalEquations, barrier: ArrayLike = 1.0
) -> NormalEquations:
    """Normal equations of records and priors; curvature of the priors along straight steps counts if it is positive."""
    J = jax.jacfwd(parameters.prior_residuals)(x)

    def cost(dx: Float[Array, " p"]) -> Float[Array, ""]:
        return parameters.prior_cost(parameters.straight(x, dx), barrier)

    zero = jnp.zeros_like(x)
    gradient, hessian = jax.grad(cost)(zero), jax.jacfwd(jax.grad(cost))(zero)
    # derivatives of a fit do not depend on that of the curvature, and equal eigenvalues have none
    values, vectors = jnp.linalg.eigh(jax.lax.stop_gradient(hessian - J.T @ J))
    hessian = J.T @ J + (vectors * jnp.maximum(values, 0)[None]) @ vectors.T
    total = data.cost + parameters.prior_cost(x, barrier)
    return NormalEquations(total, data.gradient + gradient, data.hessian + hessian)


def with_priors(parameters: Parameters, x: Float[Array, " p"], data: NormalEquations) -> NormalEquations:
    """Add the priors to the normal equations of the records."""
    r, J = parameters.prior_residuals(x), jax.jacfwd(parameters.prior_residuals)(x)
    return NormalEquations(data.cost + r @ r / 2, data.gradient + J.T @ r, data.hessian + J.T @ J)


def torque_estimate(
    parameters: Parameters,
    objective: TorqueObjective,
    x: Float[Array, " p"],
    noise: Float[Array, " nv"],
    lags: int | None,
    found: Solution,
) -> Estimate:
    """The estimate at the solution x with its covariance; noise is correlated according to ``TorqueFit.lags``."""
    each = objective.informations(x, noise)
    data = jnp.sum(each, axis=0)
    priors = with_priors(parameters, x, NormalEquations(jnp.zeros((), x.dtype), jnp.zeros_like(x), data)).hessian - data
    if lags is None:
        scores = jnp.einsum("j,jpq->pq", objective.correlation_times(x, noise), each)
    else:
        scores = long_run_covariance(objective.scores(x, noise), lags) if lags else None
    C = covariance(data + priors, ~found.held, None if scores is None else scores + priors)
    return Estimate(
        x, C, data, noise, found.costs, found.path, found.iterations, found.result, score_covariance=scores
    )  # fmt: skip


def long_run_covariance(scores: Float[Array, "n p"], lags: int) -> Float[Array, "p p"]:
    """The covariance of the sum of scores that are correlated over some lags, with the Bartlett window."""

    def add(total: Float[Array, "p p"], lag: Int[Array, ""]) -> tuple[Float[Array, "p p"], None]:
        moved = jnp.roll(scores, -lag, axis=0)
        kept = (jnp.arange(len(scores)) < len(scores) - lag)[:, None]
        part = scores.T @ jnp.where(kept, moved, 0)
        weight = 1 - lag.astype(scores.dtype) / (lags + 1)
        return total + weight * (part + part.T), None

    return control_flow.scan(add, scores.T @ scores, jnp.arange(1, lags + 1))[0]
