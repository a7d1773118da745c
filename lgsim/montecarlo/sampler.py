"""Sample i of a study, from the seed and i alone."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lgsim.montecarlo.distributions import Distribution
from lgsim.montecarlo.low_discrepancy import Points, Sequence

Latents = dict[str, Array]
"""The standard normal numbers of each distribution, by its name."""


class Sample(NamedTuple):
    """What differs from sample to sample.

    Attributes:
        values: The value of each distribution, by its name.
        log_weight: Logarithm of the density wanted over the density sampled; 0 without importance sampling.
    """

    values: dict[str, Any]
    log_weight: Array


class ImportanceTilt(eqx.Module):
    """Another density for a distribution's normal numbers: ``z = shift + scale y`` with y standard normal.

    A shift towards the failure makes rare failures common; weights ``p(z)/p_tilted(z)`` undo it in every estimate. With
    a scale below 1 weights are unbounded in the tails: take 1 or a little more.

    Attributes:
        shift: A number, or one for each normal number of the distribution (dim,).
        scale: Positive; of the same shapes.
    """

    shift: Array = eqx.field(converter=jnp.asarray, default=0.0)
    scale: Array = eqx.field(converter=jnp.asarray, default=1.0)

    def __check_init__(self) -> None:
        if not np.all(np.isfinite(np.asarray(self.shift))):
            raise ValueError(f"shift: expected finite numbers, got {self.shift}")
        if not np.all(np.isfinite(np.asarray(self.scale)) & (np.asarray(self.scale) > 0)):
            raise ValueError(f"scale: expected positive numbers, got {self.scale}")


class Sampler(eqx.Module):
    """Independent distributions by name, and the sequence that feeds them.

    Each takes its own normal numbers: of plain random sampling from ``fold_in(fold_in(key(seed), i), crc32(name))``, so
    that no other distribution changes them; of a sequence the next coordinates of point i, names in alphabetical order.
    Processes are always random.

    Attributes:
        distributions: By name.
        seed: The words of the key, (2,), uint32.
        points: Of the sequence, or None for plain random sampling.
        tilts: For importance sampling, by the distribution's name.
        names: In alphabetical order.
    """

    distributions: dict[str, Distribution]
    seed: Array
    points: Points | None
    tilts: dict[str, ImportanceTilt]

    def __init__(
        self,
        distributions: Mapping[str, Distribution],
        seed: int,
        samples: int,
        sequence: Sequence | None = None,
        tilts: Mapping[str, ImportanceTilt] | None = None,
    ) -> None:
        for name, distribution in distributions.items():
            if not isinstance(distribution, Distribution):
                raise TypeError(f"{name}: expected a distribution of lgsim.montecarlo, got {distribution!r}")
        self.distributions, self.tilts = dict(distributions), dict(tilts or {})
        for name in self.tilts:
            if name not in self.distributions:
                raise ValueError(f"tilts: expected names of distributions, {sorted(distributions)}, got {name!r}")
        self.seed = jnp.asarray(np.array([seed >> 32, seed & 0xFFFFFFFF], np.uint32))
        self.points = None if sequence is None or not self.width else sequence.points(seed, samples, self.width)

    @property
    def names(self) -> list[str]:
        """The names of the distributions, in alphabetical order."""
        return sorted(self.distributions)

    @property
    def width(self) -> int:
        """How many normal numbers a sequence has to give."""
        return sum(each.dim for each in self.distributions.values() if not each.process)

    def latents(self, i: Array) -> Latents:
        """The standard normal numbers of sample i, tilts being still to come."""
        key = jax.random.fold_in(jax.random.wrap_key_data(self.seed, impl="threefry2x32"), i)
        found, start = {}, 0
        for name in self.names:
            each = self.distributions[name]
            if each.process or self.points is None:
                own = jax.random.fold_in(key, zlib.crc32(name.encode()))
                found[name] = jax.random.normal(own, (each.dim,), each.dtype)
            else:
                found[name] = self.points.normal(i, each.dtype)[start : start + each.dim]
                start += each.dim
        return found

    def sample(self, latents: Latents) -> Sample:
        """What the normal numbers stand for."""
        weight = jnp.zeros(())
        tilted = dict(latents)
        for name, tilt in sorted(self.tilts.items()):
            y = latents[name]
            scale = jnp.broadcast_to(tilt.scale.astype(y.dtype), y.shape)
            z = jnp.broadcast_to(tilt.shift.astype(y.dtype), y.shape) + scale * y
            tilted[name] = z
            weight = weight + jnp.sum(0.5 * (y * y - z * z) + jnp.log(scale)).astype(weight.dtype)
        return Sample({name: self.distributions[name](tilted[name]) for name in self.names}, weight)

    def draw(self, i: Array) -> Sample:
        """Sample i."""
        return self.sample(self.latents(i))
