"""Draws of a posterior as physical parameters, models and predictions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Key

from lgsim._compile.xla import compiled
from lgsim.identify.posterior.density import LogDensity
from lgsim.identify.unknowns.parameters import Parameters, value_names
from lgsim.identify.unknowns.plant import Plant
from lgsim.multibody.model import Model

_QUANTILES = (0.05, 0.5, 0.95)


@dataclass(frozen=True)
class PosteriorDraws:
    """Draws of a ``LogDensity`` by a sampler.

    Attributes:
        z: The draws (..., size), with or without an axis of chains.
    """

    density: LogDensity
    z: Float[Array, "*draws size"]

    def __post_init__(self) -> None:
        if self.z.ndim < 2 or self.z.shape[-1] != self.density.size:
            raise ValueError(f"z: expected shape (..., draws, {self.density.size}), got {self.z.shape}")

    @cached_property
    def flat(self) -> Float[Array, "draws size"]:
        """The draws of all chains along one axis."""
        return jnp.reshape(self.z, (-1, self.z.shape[-1]))

    @cached_property
    def values(self) -> dict[str, Float[np.ndarray, "*draws"]]:
        """The physical parameters of all draws, by name and unit, as input for ``numpyro.diagnostics`` and plots."""
        found = np.asarray(_values(self.density, self.flat))
        names = value_names(self.density.values, self.flat[0])
        return {name: found[:, i].reshape(self.z.shape[:-1]) for i, name in enumerate(names)}

    @property
    def plants(self) -> Plant:
        """The plants of all draws, as one plant whose arrays have a leading axis."""
        return _plants(self.density, self.flat)

    @property
    def models(self) -> Model:
        """The models of all draws, as one ``Model`` whose arrays have a leading axis, for ``jax.vmap``."""
        return self.plants.model

    def predictive(self, key: Key[Array, ""]) -> Float[Array, "draws rows columns"]:
        """``LogDensity.replicate`` of each draw: new records of the same motion minus the recorded ones.

        Their quantiles are predictive intervals relative to the records. For other motions, use ``replicate`` of the
        density of other records with the same unknowns, and the same number of unknown initial states if there are any.
        """
        return _predictive(self.density, self.flat, jax.random.split(key, len(self.flat)))

    def prior_values(self, key: Key[Array, ""], count: int = 2000) -> dict[str, Float[np.ndarray, " count"]]:
        """Draws of the physical parameters from the priors, for comparison.

        Coordinates with a ``prior_deviation`` are normal within their bounds, others uniform between two bounds.
        Parameters are NaN if they depend on a coordinate without either, or with a ``PhysicalPrior``, since that prior
        is not a known distribution. ``Parameters.priors``, which are measurements, do not enter.
        """
        first, second, third = jax.random.split(key, 3)
        density, columns = self.density, self.density.columns
        x = _prior_draws(density, first, count)
        found = np.asarray(_plant_values(self.density.parameters, x))
        out = {name: found[:, i] for i, name in enumerate(value_names(density.parameters.values, x[0]))}
        if density.noise.is_sampled:
            noise = np.asarray(density.noise.draw_prior(second, (count, len(columns))))
            out |= {f"noise of {name}": noise[:, i] for i, name in enumerate(columns)}
        if density.correlation is not None and density.correlation.is_sampled:
            a = np.asarray(jax.random.uniform(third, (count, len(columns)), minval=-1.0, maxval=1.0))
            out |= {f"correlation of {name}": a[:, i] for i, name in enumerate(columns)}
        return out

    def summary(self) -> str:
        """A table of the parameters: prior, mean, standard deviation, 5 %, 50 % and 95 % quantiles, as text."""
        start = self.density.parameters.values(jnp.zeros_like(self.density.start[: self.density.parameters.size]))
        width = max(len(name) for name in self.values)
        head = "".join(f"  {word:>12}" for word in ("prior", "mean", "std. dev.", *(f"{q:.0%}" for q in _QUANTILES)))
        lines = [f"{'':{width}}{head}"]
        for name, draws in self.values.items():
            prior = f"{float(start[name]):12.6g}" if name in start else f"{'':12}"
            numbers = (np.mean(draws), np.std(draws), *np.quantile(draws, _QUANTILES))
            lines.append(f"{name:{width}}  {prior}" + "".join(f"  {float(x):12.6g}" for x in numbers))
        return "\n".join(lines)


@compiled
def _values(density: LogDensity, z: Float[Array, "draws size"]) -> Float[Array, "draws values"]:
    return jax.vmap(lambda z: jnp.stack(list(density.values(z).values())))(z)


@compiled
def _plant_values(parameters: Parameters, x: Float[Array, "draws p"]) -> Float[Array, "draws values"]:
    return jax.vmap(parameters.value_array)(x)


@compiled
def _plants(density: LogDensity, z: Float[Array, "draws size"]) -> Plant:
    return jax.vmap(density.plant_at)(z)


@compiled
def _predictive(
    density: LogDensity, z: Float[Array, "draws size"], keys: Key[Array, " draws"]
) -> Float[Array, "draws rows columns"]:
    return jax.vmap(density.replicate)(z, keys)


def _prior_draws(density: LogDensity, key: Key[Array, ""], count: int) -> Float[Array, "count p"]:
    """Draws of the coordinates x from the blocks' priors, NaN where a block has none."""
    parameters = density.parameters
    dtype = parameters.dtype
    missing = np.full(parameters.size, np.nan)
    deviation = jnp.asarray(parameters.prior_deviations(missing), dtype)
    lower, upper = parameters.bounds()
    first, second = jax.random.split(key)
    size = (count, parameters.size)
    ends = (lower / deviation)[None], (upper / deviation)[None]
    normal = jax.random.truncated_normal(first, *ends, size, dtype) * deviation[None]
    between = jnp.isfinite(lower) & jnp.isfinite(upper) & jnp.isnan(deviation)
    low, width = jnp.where(between, lower, jnp.nan), jnp.where(between, upper - lower, jnp.nan)
    uniform = low[None] + width[None] * jax.random.uniform(second, size, dtype)
    x = jnp.where(jnp.isnan(deviation)[None], uniform, normal)
    for prior in density.physical_priors:
        x = x.at[:, parameters.slices[prior.block]].set(jnp.nan)
    return x
