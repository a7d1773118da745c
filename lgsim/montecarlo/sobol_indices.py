"""Sobol indices: variance-based sensitivity of an output to each distribution."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Integer, PyTree, Shaped

from lgsim.montecarlo.distributions import Distribution
from lgsim.montecarlo.intervals import Real
from lgsim.montecarlo.low_discrepancy import PointSequence
from lgsim.montecarlo.results import Results
from lgsim.montecarlo.rollout import Rollout
from lgsim.montecarlo.study import DIVERGED, Study
from lgsim.support.check import unknown_name

A, B, MIXED = " A", " B", " mixed"
"""Suffixes of the columns: an output for A, for B, and for A with one distribution from B."""


class SobolIndices(NamedTuple):
    """Fractions of the variance of an output, by the distribution's name; arrays of the output's shape.

    Attributes:
        first: First-order indices ``V[E[y|x_j]] / V[y]``: the reduction if only this distribution is fixed.
        total: Total indices ``E[V[y|others]] / V[y]``: the remainder if all others are fixed, including interactions.
        variance: The variance ``V[y]``.
    """

    first: dict[str, Real]
    total: dict[str, Real]
    variance: Real


class LatentPair(Distribution):
    """Two independent samples of a distribution's standard normal numbers, as a value."""

    distribution: Distribution

    @property
    def dim(self) -> int:
        return 2 * self.distribution.dim

    @property
    def is_process(self) -> bool:
        return self.distribution.is_process

    @property
    def dtype(self) -> jnp.dtype:
        return self.distribution.dtype

    def __call__(self, z: Float[Array, " dim"]) -> Float[Array, "2 dim_of_one"]:
        """The standard normal numbers of A and of B."""
        return z.reshape(2, self.distribution.dim)


class PickFreeze(eqx.Module):
    """The outputs of a study for A, for B, and for A with each single distribution from B."""

    study: Study
    names: tuple[str, ...] = eqx.field(static=True)

    @property
    def stepped(self) -> Rollout | None:
        """The rollout of the study."""
        return self.study.stepped

    def with_substeps(self, substeps: int | Integer[Array, ""]) -> PickFreeze:
        """The rollout with the step divided by a factor."""
        return PickFreeze(self.study.with_substeps(substeps), self.names)

    def __call__(self, values: Mapping[str, Float[Array, "2 _"]]) -> dict[str, Shaped[Array, " ..."]]:
        """The columns of one pair of samples.

        Args:
            values: The standard normal numbers of A and of B, by the distribution's name.
        """
        groups = sorted(values)
        # the sample of each distribution, A or B, case by case
        cases = np.concatenate([[[0] * len(groups)], [[1] * len(groups)], np.eye(len(groups), dtype=int)])

        def outputs(case: Array) -> dict[str, PyTree]:
            latents = {name: values[name][case[j]] for j, name in enumerate(groups)}
            found = self.study.evaluate(self.study.sampler.sample(latents))
            return {name: found[name] for name in self.names}

        out = jax.lax.map(outputs, jnp.asarray(cases))  # one program for any number of distributions
        ends = ((A, 0), (B, 1), (MIXED, slice(2, None)))
        return {name + end: x[part] for name, x in out.items() for end, part in ends}


def sobol_study(
    study: Study,
    outputs: tuple[str, ...] | list[str],
    *,
    samples: int | None = None,
    sequence: PointSequence | None = None,
) -> Study:
    """Build the study for the estimation of Sobol indices; each of its samples is d + 2 motions of the given study.

    Run it like any other study, also into a store; ``sobol_indices`` evaluates its results.

    Args:
        study: A study of d distributions, each of which counts as one variable.
        samples: Number of samples, by default that of the study.
        sequence: A sequence of points, by default random; with ``Sobol()`` the estimates are much more accurate.

    Raises:
        ValueError: an output does not exist, or the study uses importance sampling.
    """
    kinds = study.columns()
    for name in outputs:
        if name not in kinds:
            raise unknown_name("outputs: expected names of outputs of the study", name, list(kinds))
    if study.sampler.tilts:
        raise ValueError(
            "study: expected a study without tilts, since the variance is that of the distributions; leave tilts out"
        )
    pairs = {name: LatentPair(each) for name, each in study.sampler.distributions.items()}
    return Study(
        pairs, PickFreeze(study, tuple(outputs)), samples=samples or study.samples, seed=study.seed, sequence=sequence,
        bound=study.bound, tile=study.tile,
    )  # fmt: skip


def sobol_indices(results: Results, output: str) -> SobolIndices:
    """Estimate the Sobol indices of an output from the results of a ``sobol_study``, in one pass over them.

    ``S_j = mean(f_B (f_j - f_A)) / V`` and ``T_j = mean((f_A - f_j)^2) / 2 V``, with centered f.

    Args:
        results: The results of a ``sobol_study``.
        output: Name of an output of the original study.

    Raises:
        ValueError: the output does not exist.

    Source: Saltelli et al., Variance based sensitivity analysis of model output, Computer Physics Communications
    181(2), 2010, table 2 (b) and, of Jansen, (f).
    """
    m = results.moments(output + A).merge(results.moments(output + B))
    groups = results.study.sampler.names
    first = np.zeros((len(groups), *m.mean.shape))
    total, count = np.zeros_like(first), 0
    for chunk in results.chunks():
        good = chunk.columns[DIVERGED] == 0
        fA, fB = (chunk.columns[output + end][good].astype(float) - m.mean for end in (A, B))
        mixed = chunk.columns[output + MIXED][good].astype(float) - m.mean
        first += (fB[:, None] * (mixed - fA[:, None])).sum(axis=0)
        total += ((fA[:, None] - mixed) ** 2).sum(axis=0)
        count += len(fA)
    variance = m.squared_deviations / m.count
    return SobolIndices(
        dict(zip(groups, first / count / variance, strict=True)),
        dict(zip(groups, total / count / (2 * variance), strict=True)),
        variance,
    )
