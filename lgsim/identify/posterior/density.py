"""The posterior density of the unknowns in coordinates without bounds, which samplers of other packages take."""

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
        s: Tangents of unknown first states at their guesses, window by window (size,).
        u: Coordinates of the noise: logarithms of the deviations, where they are sampled.
        c: Coordinates of the noise's correlations, where they are sampled.
        log_jacobian: The sum of ``log |dx/dz|``.
    """

    x: Float[Array, " p"]
    s: Float[Array, " _"]
    u: Float[Array, " _"]
    c: Float[Array, " _"]
    log_jacobian: Float[Array, ""]


class LogDensity(eqx.Module):
    """The logarithm of a posterior density, a function of coordinates z without bounds, and what z stands for.

    ``log p(z) = log p(records | x, s, u, c) + log p(x) + log |dx/dz| + log p(s) + log p(u) + log p(c)`` up to a
    constant. It is a density of z itself, with respect to Lebesgue measure: coordinates x within bounds bring their
    Jacobian, so that a flat prior stays flat in x. z has, in order: the plant's coordinates by an ``IntervalChart``
    (those without bounds are x), tangents of unknown first states at their guesses, logarithms of sampled deviations of
    the noise, coordinates of its correlations. ``names`` tells them.

    A pytree: an argument of ``jit``, so that other numbers of the records do not compile again, and batched by
    ``jax.vmap``. Pure and differentiable to any order in both modes.

    Attributes:
        correlation: How the noise remembers, or None.
        start: Coordinates z from which a search may start; not a draw.
        columns: A name for each column of the records.
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
        """Numbers of coordinates of the plant, of first states, of the noise and of its correlations."""
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
        """A name for each coordinate z."""
        _, _, u, c = self.sizes
        states, dim = self.records.start_shape
        names = [f"z of {name}" for name in self.parameters.names]
        names += [f"state {i} of window {w}" for w in range(states) for i in range(dim)]
        names += [f"log noise of {name}" for name in self.columns[:u]]
        return names + [f"correlation coordinate of {name}" for name in self.columns[:c]]

    def has_own_prior(self) -> Bool[np.ndarray, " size"]:
        """Which coordinates z have a prior of their own that can be normalized; outside of ``jit``."""
        parameters = self.parameters
        deviations = parameters.prior_deviations(np.full(parameters.size, np.nan))
        lower, upper = map(np.asarray, parameters.bounds())
        own = ~np.isnan(deviations) | (np.isfinite(lower) & np.isfinite(upper))
        for prior in self.physical_priors:
            own[parameters.slices[prior.block]] = True
        _, s, u, c = self.sizes
        # first states are measured, or have a prior by their guess; both show in the curvature
        return np.concatenate([own, np.zeros(s, bool), np.ones(u + c, bool)])

    def unknowns(self, z: Float[Array, " size"]) -> Unknowns:
        """What coordinates z stand for."""
        p, s, u, _ = self.sizes
        x, log_jacobian = self.chart.point(z[:p])
        return Unknowns(x, z[p : p + s], z[p + s : p + s + u], z[p + s + u :], log_jacobian)

    def plant_at(self, z: Float[Array, " size"]) -> Plant:
        """The plant at coordinates z; ``jax.vmap`` makes a batch of plants of a batch of draws."""
        return self.parameters.plant_at(self.unknowns(z).x)

    def model_at(self, z: Float[Array, " size"]) -> Model:
        """The machine at coordinates z; ``jax.vmap`` makes a batch of machines of a batch of draws."""
        return self.plant_at(z).model

    def values(self, z: Float[Array, " size"]) -> dict[str, Float[Array, ""]]:
        """The physical numbers at coordinates z, by name and unit, sampled deviations and correlations included."""
        at = self.unknowns(z)
        out = dict(self.parameters.values(at.x))
        if self.noise.is_sampled:
            out |= {f"noise of {name}": jnp.exp(at.u[i]) for i, name in enumerate(self.columns)}
        if self.correlation is not None and self.correlation.is_sampled:
            a = self.correlation.coefficients(at.c, len(self.columns))
            out |= {f"correlation of {name}": a[i] for i, name in enumerate(self.columns)}
        return out

    def residuals(self, z: Float[Array, " size"]) -> Float[Array, "rows columns"]:
        """What the plant at z gives less what was recorded, in the records' units."""
        at = self.unknowns(z)
        return self.records.residuals(at.x, at.s).reshape(-1, len(self.columns))

    def noise_deviations(self, z: Float[Array, " size"], key: Key[Array, ""] | None = None) -> Float[Array, " columns"]:
        """Standard deviations of the noise at z, (columns,); with a key a draw where they are integrated out."""
        at = self.unknowns(z)
        return self.noise.deviations(at.u, self._sums(at), key)

    def replicate(self, z: Float[Array, " size"], key: Key[Array, ""]) -> Float[Array, "rows columns"]:
        """A draw of what new records of the same motion would show less what was recorded, in the records' units.

        The plant at z with new noise of the model, also where a reading has no weight. Over draws of z this is the
        posterior predictive distribution: where the model is right, zero lies within its quantiles as often as these
        say.
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
            s: Tangents of first states, by default zero: the guesses.
            deviations: Deviations of the noise where they are sampled, by default those of the residuals.
            correlations: Correlations of the noise where they are sampled, by default zero.
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
    """The logarithm of the posterior density of a problem in coordinates without bounds, up to a constant.

    A function of z (size,) or (*batch, size): blackjax takes it as ``logdensity_fn``, numpyro as
    ``potential_fn=lambda z: -density(z)`` or by ``numpyro.factor``. The records are prepared once, by one program:
    joint forces that are affine in the unknowns are compressed, so that an evaluation does not go through the samples.

    Args:
        problem: Unknowns, records and noise.

    Raises:
        TypeError: the problem is none, or a dtype is not the model's.
        ValueError: a shape is wrong, a number with a weight is not finite, or bounds leave no room.
    """
    if not isinstance(problem, PosteriorProblem):
        raise TypeError(
            f"problem: expected a PosteriorProblem, got {type(problem).__name__}; PosteriorProblem.from_fit(fit) makes"
            " one"
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
    """How far coordinates may be moved for nothing in the prior: half of its deviation, or a hundredth of a unit."""
    J = jax.jacfwd(density.parameters.prior_residuals)(x)
    information = jnp.sum(J**2, axis=0)
    known = information > 0
    return jnp.where(known, 0.5 / jnp.sqrt(jnp.where(known, information, 1)), 0.01)
