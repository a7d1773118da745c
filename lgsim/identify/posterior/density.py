"""The posterior density of the unknowns in unconstrained coordinates, for samplers of other packages."""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float, Key

from lgsim._compile.xla import compiled
from lgsim.identify.estimators.simulation_fit import SimulationFit
from lgsim.identify.posterior.interval_chart import IntervalChart
from lgsim.identify.posterior.noise_models import NoiseModel, ResidualSums
from lgsim.identify.posterior.physical_prior import PhysicalPrior
from lgsim.identify.posterior.problem import PosteriorProblem
from lgsim.identify.posterior.record_residuals import (
    PreparedRecords,
    SimulatedResiduals,
    simulated_records,
    torque_records,
)
from lgsim.identify.posterior.serial_correlation import SerialCorrelation
from lgsim.identify.unknowns.parameters import Parameters
from lgsim.identify.unknowns.plant import Plant
from lgsim.multibody.model import Model
from lgsim.support.check import is_traced


class Unknowns(NamedTuple):
    """A point of the posterior.

    Attributes:
        x: Coordinates of the plant, within their bounds (p,).
        s: Tangents of unknown initial states at their guesses, window by window (size,).
        u: Coordinates of the noise: logarithms of the standard deviations, if they are sampled.
        c: Coordinates of the noise correlations, if they are sampled.
        log_jacobian: The sum of ``log |dx/dz|``.
    """

    x: Float[Array, " p"]
    s: Float[Array, " _"]
    u: Float[Array, " _"]
    c: Float[Array, " _"]
    log_jacobian: Float[Array, ""]


class LogDensity(eqx.Module):
    """The log density of a posterior as a function of unconstrained coordinates z.

    ``log p(z) = log p(records | x, s, u, c) + log p(x) + log |dx/dz| + log p(s) + log p(u) + log p(c)`` up to a
    constant. It is a density of z with respect to Lebesgue measure: bounded coordinates x contribute their Jacobian, so
    that a flat prior stays flat in x. z contains, in this order: the plant's coordinates by an ``IntervalChart`` (equal
    to x without bounds), tangents of unknown initial states at their guesses, logarithms of sampled standard deviations
    of the noise, coordinates of its correlations. ``names`` lists them.

    A pytree: it can be an argument of ``jit``, so that other records of the same shape do not compile again, and it is
    batched by ``jax.vmap``. Pure and differentiable to any order in both modes.

    Attributes:
        correlation: Serial correlation of the noise, or None.
        start: Coordinates z at which a search may start; not a draw.
        columns: Names of the columns of the records.
    """

    parameters: Parameters
    chart: IntervalChart
    records: PreparedRecords
    noise: NoiseModel
    correlation: SerialCorrelation | None
    physical_priors: tuple[PhysicalPrior, ...]
    start: Float[Array, " size"]
    columns: tuple[str, ...] = eqx.field(static=True)

    def __call__(self, z: Float[Array, "*batch size"]) -> Float[Array, "*batch"]:
        """The logarithm of the density at coordinates z; -inf where the motion is not finite."""
        if z.ndim > 1:
            flat = jax.vmap(self._value)(z.reshape(-1, z.shape[-1]))
            return flat.reshape(z.shape[:-1])
        return self._value(z)

    def _value(self, z: Float[Array, " size"]) -> Float[Array, ""]:
        at = self.unknowns(z)
        sums, change = self.records.sums(at.x, at.s, at.c)
        r = self.parameters.prior_residuals(at.x)
        total = self.noise.log_density(at.u, sums) + change - r @ r / 2 + at.log_jacobian
        total = total + self.records.start_log_density(at.x, at.s)
        if self.correlation is not None and self.correlation.is_sampled:
            total = total + self.correlation.log_prior(at.c)
        for prior in self.physical_priors:
            total = total + prior.log_density(self.parameters, at.x)
        return jnp.where(jnp.isnan(total), -jnp.inf, total)

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        """Dimensions of the coordinates of the plant, of initial states, of the noise and of its correlations."""
        states, dim = self.records.start_shape
        n = len(self.columns)
        sampled = self.correlation is not None and self.correlation.is_sampled
        return self.parameters.size, states * dim, n if self.noise.is_sampled else 0, n if sampled else 0

    @property
    def size(self) -> int:
        """Number of coordinates z."""
        return sum(self.sizes)

    @property
    def names(self) -> list[str]:
        """Names of the coordinates z."""
        _, _, u, c = self.sizes
        states, dim = self.records.start_shape
        names = [f"z of {name}" for name in self.parameters.names]
        names += [f"state {i} of window {w}" for w in range(states) for i in range(dim)]
        names += [f"log noise of {name}" for name in self.columns[:u]]
        return names + [f"correlation coordinate of {name}" for name in self.columns[:c]]

    def has_own_prior(self) -> Bool[np.ndarray, " size"]:
        """A mask of the coordinates z with a proper prior; outside of ``jit``."""
        parameters = self.parameters
        deviations = parameters.prior_deviations(np.full(parameters.size, np.nan))
        lower, upper = map(np.asarray, parameters.bounds())
        own = ~np.isnan(deviations) | (np.isfinite(lower) & np.isfinite(upper))
        for prior in self.physical_priors:
            own[parameters.slices[prior.block]] = True
        _, s, u, c = self.sizes
        # initial states are measured, or have a prior about their guess; both contribute to the curvature
        return np.concatenate([own, np.zeros(s, bool), np.ones(u + c, bool)])

    def unknowns(self, z: Float[Array, " size"]) -> Unknowns:
        """Convert coordinates z to unknowns."""
        p, s, u, _ = self.sizes
        x, log_jacobian = self.chart.point(z[:p])
        return Unknowns(x, z[p : p + s], z[p + s : p + s + u], z[p + s + u :], log_jacobian)

    def plant_at(self, z: Float[Array, " size"]) -> Plant:
        """The plant at coordinates z; ``jax.vmap`` makes a batch of plants of a batch of draws."""
        return self.parameters.plant_at(self.unknowns(z).x)

    def model_at(self, z: Float[Array, " size"]) -> Model:
        """The model at coordinates z; ``jax.vmap`` makes a batch of models of a batch of draws."""
        return self.plant_at(z).model

    def values(self, z: Float[Array, " size"]) -> dict[str, Float[Array, ""]]:
        """The physical parameters at coordinates z, by name and unit, including sampled standard deviations and
        correlations.
        """
        at = self.unknowns(z)
        out = dict(self.parameters.values(at.x))
        if self.noise.is_sampled:
            out |= {f"noise of {name}": jnp.exp(at.u[i]) for i, name in enumerate(self.columns)}
        if self.correlation is not None and self.correlation.is_sampled:
            a = self.correlation.coefficients(at.c, len(self.columns))
            out |= {f"correlation of {name}": a[i] for i, name in enumerate(self.columns)}
        return out

    def residuals(self, z: Float[Array, " size"]) -> Float[Array, "rows columns"]:
        """Predicted minus recorded values of the plant at z, in the records' units."""
        at = self.unknowns(z)
        return self.records.residuals(at.x, at.s).reshape(-1, len(self.columns))

    def noise_deviations(self, z: Float[Array, " size"], key: Key[Array, ""] | None = None) -> Float[Array, " columns"]:
        """Standard deviations of the noise at z, (columns,); with a key, a draw where they are integrated out."""
        at = self.unknowns(z)
        return self.noise.deviations(at.u, self._sums(at), key)

    def replicate(self, z: Float[Array, " size"], key: Key[Array, ""]) -> Float[Array, "rows columns"]:
        """A draw of new records of the same motion minus the recorded ones, in the records' units.

        The prediction at z plus noise from the noise model, also for readings without weight. Over draws of z this is
        the posterior predictive distribution. If the model is correct, zero lies within its quantiles with their
        nominal frequency.
        """
        at = self.unknowns(z)
        first, second = jax.random.split(key)
        deviations = self.noise.deviations(at.u, self._sums(at), first)
        (sets, n, columns), dtype = self.records.weights.shape, z.dtype
        shape = (sets, n, columns)
        if self.correlation is None:
            noise = jax.random.normal(second, shape, dtype)
        else:
            noise = self.correlation.draw(second, at.c, shape, dtype)
        return (self.records.residuals(at.x, at.s) + noise * deviations[None, None]).reshape(-1, columns)

    def coordinates(
        self,
        x: Float[Array, " p"],
        s: Float[Array, " _"] | None = None,
        deviations: Float[Array, " columns"] | None = None,
        correlations: Float[Array, " columns"] | None = None,
    ) -> Float[Array, " size"]:
        """The coordinates z of a point: the inverse of ``unknowns``.

        Args:
            x: Coordinates of the plant, within their bounds.
            s: Tangents of initial states, by default zero: the guesses.
            deviations: Standard deviations of the noise if they are sampled, by default those of the residuals.
            correlations: Correlations of the noise if they are sampled, by default zero.
        """
        _, states, u, c = self.sizes
        s = jnp.zeros(states, x.dtype) if s is None else s
        parts = [self.chart.coordinates(x), s]
        if u:
            if deviations is None:
                r, w = self.records.residuals(x, s), self.records.weights
                squares = jnp.sum(w * jnp.where(w > 0, r, 0) ** 2, axis=(0, 1))
                counts = jnp.sum(w, axis=(0, 1))
                mean = squares / jnp.where(counts > 0, counts, 1)
                deviations = jnp.sqrt(jnp.where(mean > 0, mean, 1))
            parts.append(jnp.log(deviations))
        if c:
            parts.append(2 * jnp.arctanh(jnp.zeros(c, x.dtype) if correlations is None else correlations))
        return jnp.concatenate(parts)

    def _sums(self, at: Unknowns) -> ResidualSums:
        return self.records.sums(at.x, at.s, at.c)[0]


def log_density(problem: PosteriorProblem) -> LogDensity:
    """Build the log posterior density of a problem in unconstrained coordinates, up to a constant.

    The result is a function of z (size,) or (*batch, size): pass it to blackjax as ``logdensity_fn``, to numpyro as
    ``potential_fn=lambda z: -density(z)`` or by ``numpyro.factor``. The records are prepared once, by one program:
    joint torques that are affine in the unknowns are compressed, so that an evaluation does not pass over the samples.

    Args:
        problem: Unknowns, records and noise.

    Raises:
        TypeError: the argument is not a PosteriorProblem, or a dtype differs from the model's.
        ValueError: a shape is wrong, a value with a weight is not finite, or bounds coincide.
    """
    if not isinstance(problem, PosteriorProblem):
        raise TypeError(
            f"problem: expected a PosteriorProblem, got {type(problem).__name__}; create one with"
            " PosteriorProblem.from_fit(fit)"
        )
    if not is_traced(problem):
        problem.check()
    return _prepare(problem)


@compiled
def _prepare(problem: PosteriorProblem) -> LogDensity:
    parameters, estimator, samples = problem.parameters, problem.estimator, problem.samples
    if isinstance(estimator, SimulationFit):
        records: Any = simulated_records(parameters, samples, estimator, problem.correlation)
    else:
        records = torque_records(parameters, samples, estimator.loss, problem.correlation)
    density = LogDensity(
        parameters, IntervalChart(*parameters.bounds()), records, problem.noise, problem.correlation,
        problem.physical_priors, jnp.zeros(0, parameters.dtype), tuple(estimator.columns(parameters, samples)),
    )  # fmt: skip
    s = None
    if isinstance(records, SimulatedResiduals) and problem.starts is not None:
        s = records.tangents(problem.starts)
    x = density.chart.interior(problem.x, _reach(density, problem.x))
    return eqx.tree_at(lambda d: d.start, density, density.coordinates(x, s))


def _reach(density: LogDensity, x: Float[Array, " p"]) -> Float[Array, " p"]:
    """Distances by which coordinates may be moved without effect on the prior: half of its standard deviation, or a
    hundredth of a unit.
    """
    J = jax.jacfwd(density.parameters.prior_residuals)(x)
    information = jnp.sum(J**2, axis=0)
    known = information > 0
    return jnp.where(known, 0.5 / jnp.sqrt(jnp.where(known, information, 1)), 0.01)
