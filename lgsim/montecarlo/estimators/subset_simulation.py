"""Subset simulation: rare probabilities as products of conditional ones, sampled by Markov chains."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float, Integer

from lgsim.montecarlo.engine import Engine
from lgsim.montecarlo.estimators.input_effects import rank_correlations
from lgsim.montecarlo.intervals import clopper_pearson, student_quantile
from lgsim.montecarlo.study import DIVERGED, Latents, Sampler, Study
from lgsim.support import check
from lgsim.support.check import unknown_name

_ACCEPTANCE = 0.44
"""Acceptance rate at which chains mix best (Papaioannou et al., section 4.2)."""
_FIRST_SCALE = 0.6
"""Scale of the candidates at the first level (the same)."""
_STUCK = 0.9
"""Rank correlation of the first and the last outputs of the chains above which they do not mix: 0.1 for a normal."""

_FEWEST_CHAINS = 10
"""The smallest number of chains whose rank correlation shows whether they mix."""


class GivenLatents(Sampler):
    """A sampler whose standard normal numbers are given.

    Attributes:
        z: The numbers of each sample, distributions in alphabetical order, (n, dims).
    """

    z: Float[Array, "n dims"]

    def __init__(self, sampler: Sampler, z: Float[np.ndarray, "n dims"]) -> None:
        self.distributions, self.seed, self.points, self.tilts = sampler.distributions, sampler.seed, None, {}
        self.z = jnp.asarray(z)

    def latents(self, i: Integer[Array, ""]) -> Latents:
        """Row i of ``z``."""
        found, start = {}, 0
        for name in self.names:
            each = self.distributions[name]
            found[name] = self.z[i, start : start + each.dim].astype(each.dtype)
            start += each.dim
        return found


class RareEvent(NamedTuple):
    """The probability that an output exceeds a threshold, by independent runs of subset simulation.

    Attributes:
        probability: The mean of ``runs``; NaN if a run has no estimate.
        runs: The estimate of each run, (runs,); those of runs without one are NaN.
        upper: The same with diverged samples as failed instead of as not failed; ``runs`` if none diverged.
        samples: Number of samples of each level of a run.
        levels: Intermediate thresholds of each run.
        evaluations: Number of motions.
        diverged: Number of motions that diverged.
        reasons: Reasons why the estimate is not valid; empty if it is.
    """

    probability: float
    runs: Float[np.ndarray, " runs"]
    upper: Float[np.ndarray, " runs"]
    samples: int
    levels: list[list[float]]
    evaluations: int
    diverged: int
    reasons: tuple[str, ...]

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """The confidence interval: Student's of the independent runs, for the logarithm of their mean.

        ``mean exp(+- t s / mean)`` with the standard error s of the mean. It covers diverged samples as failed and as
        not failed, and is (0, 1) if the estimate is not valid. Where no run needed a threshold, it is that of Clopper
        and Pearson. It cannot cover a failure region that no run has found.
        """
        if self.reasons:
            return 0.0, 1.0
        if not any(self.levels):
            count = self.samples * len(self.runs)
            low, high = (clopper_pearson(np.rint(x.mean() * count), count, level) for x in (self.runs, self.upper))
            return float(low[0]), float(high[1])
        (low, _), (_, high) = (_log_interval(runs, level) for runs in (self.runs, self.upper))
        return low, min(high, 1.0)


def _log_interval(runs: Float[np.ndarray, " runs"], level: float) -> tuple[float, float]:
    mean = runs.mean()
    ratio = student_quantile(level, len(runs) - 1) * runs.std(ddof=1) / math.sqrt(len(runs)) / mean
    return float(mean * np.exp(-ratio)), float(mean * np.exp(ratio))


def subset_simulation(
    study: Study,
    output: str,
    above: float,
    *,
    samples: int = 1000,
    runs: int = 8,
    fraction: float = 0.1,
    smallest: float = 1e-9,
) -> RareEvent:
    """Estimate the probability that a scalar output exceeds a threshold; for probabilities down to ``smallest``.

    ``P(y > above) = P(y >= b_1) P(y >= b_2 | y >= b_1) ...`` with thresholds such that each factor is ``fraction``.
    The samples of a level are Markov chains from those of the level before that exceed its threshold, with candidates
    ``sqrt(1 - s^2) z + s xi`` that are accepted above the threshold. The chains need a continuous output: return the
    distance to the failure, not a Boolean. For the other direction return its negative.

    Source: Au, Beck, Estimation of small failure probabilities in high dimensions by subset simulation, Probabilistic
    Engineering Mechanics 16(4), 2001; the chains: Papaioannou, Betz, Zwirglmaier, Straub, MCMC algorithms for subset
    simulation, Probabilistic Engineering Mechanics 41, 2015, section 3.4, with a scale that changes between levels
    only, so that each chain has an invariant distribution.

    Args:
        study: A study without tilts; its sequence and its number of samples are ignored, its seed is used.
        samples: Number of samples of each level of a run; a multiple of ``1 / fraction``, at least ten times as many.
        runs: Number of independent runs, at least 2, whose spread gives the confidence interval.
        fraction: The probability of each level, the inverse of an integer.

    Warns:
        RuntimeWarning: the estimate is not valid: ``RareEvent.reasons``.

    Raises:
        ValueError: the output does not exist, or an argument is out of range.
        TypeError: the output is Boolean or not a scalar.
    """
    _check_arguments(study, output, above, fraction, smallest)
    length = round(1 / fraction)
    if check.count("samples", samples) % length or samples < _FEWEST_CHAINS * length:
        raise ValueError(
            f"samples: expected a multiple of {length}, the number of samples of a chain, and at least"
            f" {_FEWEST_CHAINS * length}, got {samples}"
        )
    if check.count("runs", runs) < 2:
        raise ValueError(f"runs: expected at least 2, whose spread gives the interval, got {runs}")
    evaluate = _Evaluation(study, output)
    levels = math.ceil(math.log(smallest) / math.log(fraction))
    chains = _Chains(evaluate, above, samples, length, levels, study.seed)
    lower = [chains.run(k, -math.inf) for k in range(runs)]
    found, upper = lower, lower
    if evaluate.diverged:
        upper = [chains.run(k, math.inf) for k in range(runs)]
        found = lower + upper
    low, high = (np.array([run.probability for run in each]) for each in (lower, upper))
    reasons = tuple(dict.fromkeys(reason for run in found for reason in run.reasons))
    if reasons:
        several = sum(bool(run.reasons) for run in found)
        warnings.warn(
            f"{output}: {several} of {len(found)} runs have no estimate: {reasons[0]}", RuntimeWarning, stacklevel=2
        )
    return RareEvent(
        float(low.mean()), low, high, samples, [run.levels for run in lower], evaluate.count, evaluate.diverged, reasons
    )


def _check_arguments(study: Study, output: str, above: float, fraction: float, smallest: float) -> None:
    kinds = study.columns()
    if output not in kinds:
        raise unknown_name("output: expected one of the study", output, list(kinds))
    if kinds[output].shape or not jnp.issubdtype(kinds[output].dtype, jnp.number):
        raise TypeError(
            f"{output}: expected a scalar number that grows towards the failure, got {kinds[output].dtype} of shape"
            f" {kinds[output].shape}; return the distance to the failure"
        )
    if study.sampler.tilts:
        raise ValueError("study: expected a study without tilts, got some; the chains replace them")
    if not math.isfinite(above):
        raise ValueError(f"above: expected a finite number, got {above}")
    if not 0 < fraction <= 0.5 or not math.isclose(1 / fraction, round(1 / fraction)):
        raise ValueError(f"fraction: expected the inverse of an integer, at most 0.5, got {fraction}")
    if not 0 < smallest < 1:
        raise ValueError(f"smallest: expected a probability between 0 and 1, got {smallest}")


class _Evaluation:
    """The output as a function of standard normal numbers, by the engine of the study.

    Attributes:
        count: Number of motions so far.
        diverged: Number of those that diverged.
    """

    def __init__(self, study: Study, output: str) -> None:
        self.output, self.count, self.diverged = output, 0, 0
        self.dim = sum(each.dim for each in study.sampler.distributions.values())
        # as many rows in each call, so that one program serves all
        rows = np.zeros((study.tile, self.dim))
        self.engine = Engine(eqx.tree_at(lambda s: s.sampler, study, GivenLatents(study.sampler, rows)))
        self.tile = study.tile

    def __call__(self, z: Float[np.ndarray, "n dims"]) -> Float[np.ndarray, " n"]:
        """The outputs; NaN for diverged samples."""
        parts = []
        for first in range(0, len(z), self.tile):
            rows = z[first : first + self.tile]
            padded = np.concatenate([rows, np.zeros((self.tile - len(rows), self.dim))])
            columns = self.engine.from_sampler(GivenLatents(self.engine.study.sampler, padded), len(rows))
            parts.append(np.where(columns[DIVERGED] == 0, columns[self.output].astype(float), np.nan))
        y = np.concatenate(parts)
        self.count, self.diverged = self.count + len(y), self.diverged + int(np.isnan(y).sum())
        return y


class _Run(NamedTuple):
    """One run: its estimate, its intermediate thresholds, and reasons why the estimate is not valid."""

    probability: float
    levels: list[float]
    reasons: list[str]


class _Chains(NamedTuple):
    """Subset simulation with fixed numbers of samples.

    Attributes:
        samples: Number of samples of a level.
        length: Number of samples of a chain.
        levels: Maximum number of levels.
    """

    evaluate: Callable[[Float[np.ndarray, "n dims"]], Float[np.ndarray, " n"]]
    above: float
    samples: int
    length: int
    levels: int
    seed: int

    def run(self, index: int, missing: float) -> _Run:
        """An independent run; ``missing`` replaces the outputs of diverged samples."""
        rng = np.random.default_rng([self.seed, index])

        def outputs(z: Float[np.ndarray, "n dims"]) -> Float[np.ndarray, " n"]:
            y = self.evaluate(z)
            return np.where(np.isnan(y), missing, y)

        z = rng.normal(size=(self.samples, self.evaluate.dim))
        y = outputs(z)
        probability, levels, scale = 1.0, [], _FIRST_SCALE
        for _ in range(self.levels):
            failed, chosen = y > self.above, _next_level(y, self.above, self.samples // self.length)
            few = np.mean(failed) * self.length < 1
            if few and chosen is None and np.mean(failed) * self.length < _FEWEST:
                return _Run(math.nan, levels, [_discrete(y, failed)])
            if not few or chosen is None:
                return _Run(probability * float(np.mean(failed)), levels, [])
            kept = y >= chosen
            if np.mean(kept) * self.length < _FEWEST:
                return _Run(math.nan, levels, [_discrete(y, kept)])
            probability *= float(np.mean(kept))
            levels.append(float(chosen))
            z, y, moved = self._level(rng, z[kept], y[kept], chosen, scale, outputs)
            if moved.correlation > _STUCK:
                return _Run(math.nan, levels, [
                    f"chains do not move at the level {chosen:.6g}: {moved.acceptance:.1%} of the candidates are"
                    f" accepted; use a smoother output or more samples"
                ])  # fmt: skip
            scale = min(1.0, scale * math.exp(moved.acceptance - _ACCEPTANCE))
        return _Run(math.nan, levels, [
            f"the threshold {self.above:.6g} is not reached at a probability of {probability:.1e}, where the largest"
            f" output is {y.max():.6g}: it may be unreachable, or smallest must be smaller"
        ])  # fmt: skip

    def _level(
        self,
        rng: np.random.Generator,
        z: Float[np.ndarray, "seeds dims"],
        y: Float[np.ndarray, " seeds"],
        level: float,
        scale: float,
        outputs: Callable[[Float[np.ndarray, "n dims"]], Float[np.ndarray, " n"]],
    ) -> tuple[Float[np.ndarray, "n dims"], Float[np.ndarray, " n"], _Movement]:
        """The samples of the next level: chains from the samples above the threshold, in a random order."""
        seeds = np.resize(rng.permutation(len(z)), self.samples // self.length)
        zs, ys, accepted = [z[seeds]], [y[seeds]], []
        for _ in range(self.length - 1):
            candidate = math.sqrt(1 - scale**2) * zs[-1] + scale * rng.normal(size=zs[-1].shape)
            found = outputs(candidate)
            accept = found >= level
            accepted.append(accept.mean())
            zs.append(np.where(accept[:, None], candidate, zs[-1]))
            ys.append(np.where(accept, found, ys[-1]))
        moved = _Movement(float(np.mean(accepted)), _rank_correlation(ys[0], ys[-1]))
        return np.concatenate(zs), np.concatenate(ys), moved


class _Movement(NamedTuple):
    """Acceptance rate of a level, and the rank correlation of the first and the last outputs of its chains."""

    acceptance: float
    correlation: float


_FEWEST = 0.1
"""The smallest fraction of the samples that may exceed a level, relative to that of a continuous output."""


def _next_level(y: Float[np.ndarray, " n"], above: float, seeds: int) -> float | None:
    """The value up to ``above`` and above the smallest one that about ``seeds`` samples reach; None if no value does.

    For a continuous output exactly that many reach it; for a discrete one the nearest number in logarithms.
    """
    values, counts = np.unique(y, return_counts=True)
    reached = np.cumsum(counts[::-1])[::-1]
    valid = (values > values[0]) & (values <= above)
    if not valid.any():
        return None
    gap = np.where(valid, np.abs(np.log(reached / seeds)), math.inf)
    return float(values[np.argmin(gap)])


_MOST_DIVERGED = 0.5
"""Fraction of diverged samples from which they, not an output with few values, are the reason of a failed run."""


def _discrete(y: Float[np.ndarray, " n"], kept: Bool[np.ndarray, " n"]) -> str:
    """The reason for an output with too few values."""
    if np.isneginf(y.min()) and np.mean(y == y.min()) > _MOST_DIVERGED:
        return f"{np.mean(np.isneginf(y)):.1%} of the samples of a level diverged; reduce the step"
    return (
        f"{np.mean(y == y.min()):.1%} of the samples of a level have the same output {y.min():.6g}, and"
        f" {kept.sum()} of {len(y)} the next one: it is discrete; return the number behind it"
    )


def _rank_correlation(a: Float[np.ndarray, " n"], b: Float[np.ndarray, " n"]) -> float:
    """Spearman's rank correlation; 0 where an output is constant."""
    return float(np.nan_to_num(rank_correlations(a[:, None], b[:, None])[0, 0]))
