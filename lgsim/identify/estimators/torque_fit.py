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
    standard_deviations,
    torque_residual_jacobian,
    torque_residuals,
)
from lgsim.identify.estimators.uncertainty import covariance
from lgsim.identify.recording.coordinates import dof_names
from lgsim.identify.unknowns.parameters import Parameters
from lgsim.identify.unknowns.plant import NumbersLike, refuse_contacts
from lgsim.support import check

FINEST = 1e-6
"""The smallest noise of a recorded torque, relative to its root mean square."""
FALL, FALLS = 5.0, 3
"""Factor by which the barriers of bodies without a prior decrease from round to round, and the minimum number of
rounds.
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
    recorded``. The noise of each joint is estimated from its residuals after each round of iterations, unless it is
    given. With log-Cholesky coordinates every iterate is physically consistent.

    Attributes:
        noise: Standard deviations of the signals (nv,); None to estimate them.
        noise_updates: Number of rounds, each followed by an estimate of the noise; at least four for bodies without a
            prior, whose solution approaches the limit of physical consistency round by round.
        lags: Treatment of correlated noise in the covariance. None: from the correlation time of each signal's
            residuals, ``correlation_times``; 0: as white noise; a number of samples: from the covariance of the scores
            over so many lags, correct if the motion changes as fast as the noise, but only with far more samples than
            unknowns.
        max_iterations: Maximum number of iterations of each round.
        tolerance: As in ``LevenbergMarquardt``; by default a thousandth of a squared residual.

    Source: Newey and West 1987, A simple, positive semi-definite, heteroskedasticity and autocorrelation consistent
    covariance matrix, Econometrica 55(3), for correlated noise.
    """

    loss: Loss = SquaredLoss()
    noise: NumbersLike | None = None
    noise_updates: int = eqx.field(static=True, default=3)
    lags: int | None = eqx.field(static=True, default=None)
    max_iterations: int = eqx.field(static=True, default=300)
    tolerance: ArrayLike | None = None

    def __check_init__(self) -> None:
        check.count("max_iterations", self.max_iterations)

    def in_rounds(self, parameters: Parameters, samples: TorqueSamples) -> FitRounds:
        count = jnp.maximum(jnp.sum(samples.weight > 0, dtype=samples.weight.dtype), 1)
        tolerance = 2e-3 / count if self.tolerance is None else self.tolerance
        objective = friction_objective(parameters, samples, self.loss)
        noise = initial_noise(self.noise, samples)
        bounds = parameters.bounds(search=True)
        return NoiseRounds(self, parameters, objective, bounds, noise, noise_floor(samples), tolerance)


class NoiseRounds(FitRounds):
    """Rounds of minimization with an estimate of the noise after each one, unless it is given.

    Attributes:
        noise: Standard deviations of the signals (nv,) in the first round.
        floor: The smallest estimate of the noise (nv,).
        tolerance: As in ``LevenbergMarquardt``.
    """

    fit: TorqueFit
    parameters: Parameters
    objective: TorqueObjective
    bounds: tuple[Float[Array, " p"], Float[Array, " p"]]
    noise: Float[Array, " nv"]
    floor: Float[Array, " nv"]
    tolerance: ArrayLike

    @property
    def count(self) -> int:
        rounds = 1 if self.fit.noise is not None else self.fit.noise_updates
        least = 1 if self.objective.held_at_first() is None else 2
        return max(rounds, 1 + FALLS if self.parameters.has_barrier else least)

    def opening(self) -> RoundStart:
        start = jnp.clip(self.objective.start(), *self.bounds)
        return RoundStart(start, None, self.noise, self.noise)

    def descent(self, start: RoundStart, number: Int[Array, ""]) -> LevenbergMarquardt:
        parameters, objective, noise = self.parameters, self.objective, start.noise
        # from the center of the physically consistent set to its boundary, round by round: near a wrong point of the
        # boundary only short steps leave it; hence also tolerances in proportion to the barriers
        left = jnp.minimum(self.count - 1 - number, FALLS) if parameters.has_barrier else jnp.zeros_like(number)
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
        return torque_estimate(self.parameters, self.objective, end.x, end.noise, self.fit.lags, found)


def initial_noise(given: NumbersLike | None, samples: TorqueSamples) -> Float[Array, " nv"]:
    """Standard deviations of the signals: the given ones, or the root mean squares of the signals."""
    if given is not None:
        return jnp.broadcast_to(jnp.asarray(given, samples.signals.dtype), samples.signals.shape[-1:])
    w = samples.weight
    return standard_deviations(jnp.sum(jnp.where(w > 0, samples.signals, 0) ** 2 * w, axis=0), jnp.sum(w, axis=0))


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
    """Standard deviations of the residuals at x, corrected for the number of unknowns that the records determine.

    Args:
        noise: Previous standard deviations.
        free: The coordinates without an active bound.
        floor: The smallest result.
        C: The covariance of x if it is known already.
    """
    data = objective.normal_equations(x, noise)
    C = covariance(with_priors(parameters, x, data).hessian, free) if C is None else C
    return objective.residual_deviations(x, noise, jnp.sum(C * data.hessian), floor)


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
    values, vectors = jnp.linalg.eigh(hessian - J.T @ J)
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
