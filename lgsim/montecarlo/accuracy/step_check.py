"""The check of a study's step size: some samples run again with dt/2 and dt/4, and the effect on every statistic."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float, Int, UInt32

from lgsim._compile.xla import compiled
from lgsim.montecarlo.accuracy.step_advice import Columns, advised, fastest_mode, needed_factor
from lgsim.montecarlo.accuracy.step_error import (
    CONFIDENCE,
    DEVIATION,
    DIGITS,
    MEAN,
    QUANTILE,
    StatisticError,
    Statistics,
    StudyStepError,
)
from lgsim.montecarlo.intervals import Real, clopper_pearson, normal_quantile, student_quantile
from lgsim.montecarlo.moments import Moments, error_of_mean
from lgsim.montecarlo.outputs import FinalAttitude, OutOfBounds
from lgsim.montecarlo.results import Results
from lgsim.montecarlo.rollout import Rollout
from lgsim.montecarlo.study import DIVERGED, FAILED, INPUT, WEIGHT, Sampler
from lgsim.simulation.accuracy.richardson import Convergence, convergence
from lgsim.simulation.simulate import method_name

Refined = Callable[[Int[np.ndarray, " samples"], int], Columns]
"""A function ``refined(samples, substeps)``: the columns of some samples with the step divided by ``substeps``."""

LEVELS = (0.05, 0.5, 0.95)
"""Levels of the quantiles that are checked."""
SHARE = 0.12
"""Maximum fraction of the study's own work for the check."""
MOST, LEAST, FEW = 2**14, 32, 8
"""Maximum number of samples with dt/2, minimum number if that takes about a second, and their ratio to samples with
dt/4.
"""
LIGHT = 10**7
"""Steps times degrees of freedom of about a second's work: one tile is checked for studies of any size."""
_UNKNOWN_INTERVAL = 0.05
"""Without a statistical interval, as for a single sample, this fraction of its absolute value replaces it."""
ROUNDING = 4.0
"""Differences below these units in the last place, times the square root of the number of steps, count as rounding."""
_POOL, _SMALLEST, _ENTRIES = 2**16, 4, 32
"""Maximum number of samples from which those to run again are chosen, number in the smallest stratum, and largest
number of values of an output that are looked at for it.
"""
_BLOCK = 2**10
"""Number of samples whose initial velocities are drawn at once."""
_NEAREST = 5
"""Number of samples closest to a bound that estimate the density there."""
Z = normal_quantile(CONFIDENCE)
"""Half width of a 95 % confidence interval in standard errors."""


class CheckPlan(NamedTuple):
    """The samples that are run again.

    Attributes:
        halved: The samples with dt/2.
        weights: Number of samples of the study that each of them represents, relative to the mean.
        quartered: Positions in ``halved`` of those with dt/4 too.
        tile: Number of samples computed together; None for that of the study.
    """

    halved: Int[np.ndarray, " halved"]
    weights: Float[np.ndarray, " halved"]
    quartered: Int[np.ndarray, " quartered"]
    tile: int | None


def plan(results: Results, width: int, work: int) -> CheckPlan:
    """The samples of a study that a check runs again, at random from strata of equal ``extremeness``.

    Each stratum has half of the samples of the next one, down to a few: a minority of fast samples needs smaller steps
    than most, and may not show it at the end. Within a stratum they are random, since every k-th point of a Sobol
    sequence lies in a part of the cube. They depend only on the arguments.

    Args:
        work: Steps times degrees of freedom of a sample.
    """
    samples, seed = results.samples, results.study.seed
    halved, quartered, tile = _sizes(samples, width, work)
    pool = _spread(samples, min(samples, _POOL), seed)
    chosen, weights = _stratified(extremeness(results, pool), halved, seed)
    return CheckPlan(pool[chosen], weights, _spread(halved, quartered, seed), tile)


def _sizes(samples: int, width: int, work: int) -> tuple[int, int, int | None]:
    """(number of samples with dt/2, with dt/4, tile) of a check."""
    budget, tile = SHARE * samples, None
    if 6 * width <= budget:
        quartered = max(int(budget / (2 * FEW + 4) / width), 1) * width
        halved = min(int((budget - 4 * quartered) / 2 / width) * width, MOST)
    elif 6 * min(max(width, LEAST), samples) * work <= LIGHT:
        halved, quartered = -(-LEAST // width) * width, width
    else:
        # a tile is too expensive: fewer samples, by a program of their own
        halved = max(2, int(budget / (2 + 4 / FEW)))
        quartered = max(1, halved // FEW)
        tile = halved
    halved = min(halved, samples)
    return halved, min(quartered, halved), tile


def extremeness(results: Results, samples: Int[np.ndarray, " k"]) -> Float[np.ndarray, " k"]:
    """The largest distance of any initial velocity, output or failure of a sample from the median, in units of its
    spread; infinite for a diverged sample. Time histories are omitted.

    Args:
        samples: Indices of samples, in order.
    """
    columns = pick(results, samples, _ENTRIES)
    diverged = columns.pop(DIVERGED) != 0
    columns.pop(WEIGHT, None)
    if "v0" in results.study.sampler.distributions:
        # blocks of one size, so that another number of samples compiles nothing
        blocks = [samples[k : k + _BLOCK] for k in range(0, len(samples), _BLOCK)]
        padded = (np.pad(block, (0, _BLOCK - len(block)), mode="edge").astype(np.uint32) for block in blocks)
        drawn = [np.asarray(_initial_velocities(results.study.sampler, jnp.asarray(block))) for block in padded]
        columns["v0"] = np.concatenate(drawn)[: len(samples)]
    found = np.zeros(len(samples))
    for x in columns.values():
        numbers = x.reshape(len(x), -1).astype(float)
        good = numbers[~diverged]
        if not good.size:
            continue
        gaps = np.abs(numbers - np.median(good, axis=0))
        spread = np.median(gaps[~diverged], axis=0)
        spread = np.where(spread > 0, spread, good.std(axis=0))
        found = np.maximum(found, np.divide(gaps, spread, out=np.zeros_like(gaps), where=spread > 0).max(axis=1))
    return np.where(diverged, np.inf, found)


@compiled
def _initial_velocities(sampler: Sampler, indices: UInt32[Array, " k"]) -> Float[Array, "k _"]:
    """The initial velocities of some samples."""
    return jax.vmap(lambda i: sampler.draw(i).values["v0"].reshape(-1))(indices)


def _stratified(
    keys: Float[np.ndarray, " n"], chosen: int, seed: int
) -> tuple[Int[np.ndarray, " chosen"], Float[np.ndarray, " chosen"]]:
    """``chosen`` indices in order with their weights: half of them in proportion to the strata, half evenly.

    A stratum is a range of the samples sorted by their keys; weights are relative to their mean.
    """
    n = len(keys)
    order = np.argsort(-keys, kind="stable")
    strata = 1 + int(math.log2(max(n / _SMALLEST, 1)))
    edges = np.unique([0, *(n >> k for k in range(strata - 1, -1, -1))])
    sizes = np.diff(edges)
    counts = np.minimum(sizes, chosen // (2 * len(sizes)))
    # the rest in proportion, by largest remainders
    while (rest := chosen - counts.sum()) > 0:
        room = sizes - counts
        wanted = rest * room / room.sum()
        more = np.minimum(np.floor(wanted).astype(int), room)
        if not more.any():
            more[np.argsort(-np.where(room > 0, wanted, -1), kind="stable")[:rest]] = 1
        counts = counts + more
    found, weights = [], []
    for first, size, count in zip(edges, sizes, counts, strict=False):
        if not count:
            continue
        found.append(order[first : first + size][_spread(int(size), int(count), seed)])
        weights.append(np.full(count, size / count * chosen / n))
    indices, own = np.concatenate(found), np.concatenate(weights)
    places = np.argsort(indices)
    return indices[places], own[places]


def _spread(count: int, chosen: int, seed: int) -> Int[np.ndarray, " chosen"]:
    """``chosen`` of the ``count`` indices, in order, one at random from each of as many equal strata."""
    edges = np.arange(chosen + 1) * count // chosen
    places = np.random.default_rng([seed, count, chosen]).random(chosen)
    return edges[:-1] + (places * np.diff(edges)).astype(int)


def pick(results: Results, samples: Int[np.ndarray, " k"], most: float | int = math.inf) -> Columns:
    """The columns of some samples of a study.

    Args:
        samples: Indices of samples, in order.
        most: Largest number of values of a sample in a column; larger columns are omitted.

    Returns:
        The columns; the mean of an output where only its value is missing.
    """
    found: dict[str, list[np.ndarray]] = {}
    for chunk in results.chunks():
        here = samples[(samples >= chunk.start) & (samples < chunk.start + chunk.count)] - chunk.start
        for name, x in chunk.columns.items():
            if math.prod(x.shape[1:]) <= most and not name.startswith(INPUT):
                found.setdefault(name, []).append(x[here])
    return results.running.imputed({name: np.concatenate(parts) for name, parts in found.items()})


def study_step_error(results: Results, plan: CheckPlan, refined: Refined) -> StudyStepError:
    """Estimate the integration error of every statistic of a study whose rollout has steps."""
    study = results.study
    stepped = study.stepped
    assert stepped is not None
    again = _Again.run(results, plan, refined)
    order = stepped.method.order
    outputs: dict[str, Statistics] = {}
    verdicts: Statistics = {}
    flipped: dict[str, float] = {}
    needs = []
    crossings: dict[str, float | None] = dict.fromkeys(study.failures)
    errors: dict[str, np.ndarray] = {}
    # errors of the samples relative to the limits of the means; infinite for a sample that is finite with only one step
    moved = np.where((again.own[DIVERGED] == 0) == (again.half[DIVERGED] == 0), 0.0, np.inf)
    for name in results.running.names if again.count else []:
        if name.startswith(FAILED):
            continue
        m = results.running.moments(name)
        floor = _rounding(m, again.own[name].dtype, stepped)
        attitude = isinstance(study.outputs.get(name), FinalAttitude)
        pairs, few, found = again.output(name, attitude, order, floor)
        outputs[name] = pairs.statistics(m, found.order, floor, again.own[name].shape[1:])
        needs.append(needed_factor(outputs[name], few, order, m, floor or 0.0))
        if not len(pairs.own):
            continue
        size = np.abs(pairs.own - pairs.half)
        if floor is not None:
            errors[name] = pairs.error
            limit = np.broadcast_to(np.ravel(outputs[name][MEAN].tolerance), size.shape)
            far = np.divide(size, limit, out=np.zeros_like(size), where=limit > 0)
            moved[again.good] = np.maximum(moved[again.good], far.max(axis=1, initial=0.0))
        for failure, rule in study.failures.items():
            if isinstance(rule, OutOfBounds) and rule.output == name:
                crossings[failure] = pairs.crossing(rule)
    for name, crossing in crossings.items():
        if crossing is None and errors:
            crossing = crossed(results, study.failures[name], errors, again.weights[again.good])
        # a diverged sample has no verdict that a step could change
        m = replace(results.running.moments(FAILED + name), missing=0)
        half_width = float(m.half_width(CONFIDENCE))
        verdicts[FAILED + name], flipped[FAILED + name] = again.verdict(FAILED + name, half_width, crossing)
    low, high = clopper_pearson(results.running.diverged, results.samples)
    verdicts[DIVERGED], flipped[DIVERGED] = again.verdict(DIVERGED, (high - low) / 2, None)
    found = StudyStepError(
        method_name(stepped.method), order, abs(float(stepped.dt)), results.samples, len(plan.halved),
        len(plan.quartered), outputs, verdicts, flipped,
    )  # fmt: skip
    if found.resolved:
        return found
    mode = None
    if study.rollout is stepped:  # the model of the worst sample is known
        worst = int(np.argmax(moved))
        values = jax.tree.map(jnp.asarray, study.sample(int(plan.halved[worst])).values)
        mode = fastest_mode(study, stepped.with_values(values), again.half, worst)
    return advised(found, needs, stepped, mode)


def crossed(
    results: Results,
    failure: Callable[..., Any],
    errors: Mapping[str, Float[np.ndarray, "k m"]],
    weights: Float[np.ndarray, " k"],
) -> float:
    """The fraction of samples whose verdict changes if their outputs change by the errors of random repeated samples.

    Args:
        errors: The errors of some samples, by output.
        weights: The weights of these samples.
    """
    samples = _spread(results.samples, min(results.samples, MOST), results.study.seed)
    columns = pick(results, samples)
    good = columns[DIVERGED] == 0
    own = {name: x[good] for name, x in columns.items() if name in results.running.names and FAILED not in name}
    count, total = int(good.sum()), float(weights.sum())
    if not count or not total > 0:
        return 0.0
    drawn = np.random.default_rng([results.study.seed, count]).choice(len(weights), count, p=weights / total)
    verdict = jax.jit(jax.vmap(lambda y: jnp.asarray(failure(y), bool)))
    wanted, changed = np.asarray(verdict(own)), 0.0
    for sign in (1.0, -1.0):
        moved = {
            name: (x + sign * errors[name][drawn].reshape(x.shape)).astype(x.dtype) if name in errors else x
            for name, x in own.items()
        }
        changed += float(np.mean(np.asarray(verdict(moved)) != wanted)) / 2
    return changed


def _rounding(m: Moments, kind: np.dtype, stepped: Rollout) -> float | None:
    """The effect of rounding on a motion, in the unit of an output; None for integers and Booleans."""
    if not jnp.issubdtype(kind, jnp.inexact):
        return None
    scale = max(float(np.max(np.abs(np.asarray(x)), initial=0.0)) for x in (stepped.q0, stepped.v0, m.low, m.high))
    return ROUNDING * float(jnp.finfo(kind).eps) * math.sqrt(stepped.steps) * scale


class _Again(NamedTuple):
    """The samples that were run again.

    Attributes:
        own: Their columns with dt.
        half: With dt/2.
        quarter: Of some of them with dt/4.
        good: Mask of the samples that are finite with dt and dt/2.
        weights: Their weights, those of importance sampling included.
        represented: As ``CheckPlan.weights``.
        left: ``sqrt(1 - k/n)``: the finite-population correction for k of n samples.
        count: Number of samples of the study that enter its statistics.
    """

    own: Columns
    half: Columns
    quarter: Columns
    quartered: Int[np.ndarray, " quartered"]
    good: Bool[np.ndarray, " halved"]
    weights: Float[np.ndarray, " halved"]
    represented: Float[np.ndarray, " halved"]
    left: float
    count: int
    tilted: bool

    @classmethod
    def run(cls, results: Results, plan: CheckPlan, refined: Refined) -> _Again:
        """The samples of a plan, run by ``refined``."""
        own, half = pick(results, plan.halved), results.running.imputed(refined(plan.halved, 2))
        quarter = results.running.imputed(refined(plan.halved[plan.quartered], 4))
        weights = plan.weights * (np.exp(own[WEIGHT].astype(float)) if WEIGHT in own else 1.0)
        left = math.sqrt(max(0.0, 1 - len(plan.halved) / results.samples))
        good = (own[DIVERGED] == 0) & (half[DIVERGED] == 0)
        count = results.samples - results.running.diverged
        tilted = bool(results.study.sampler.tilts)
        return cls(own, half, quarter, plan.quartered, good, weights, plan.weights, left, count, tilted)

    def output(
        self, name: str, attitude: bool, order: int, floor: float | None
    ) -> tuple[_Pairs, list[Float[np.ndarray, "q m"]], Convergence]:
        """An output of the good samples with dt and dt/2; of those with dt/4, with all steps; and their convergence.

        Args:
            order: The order of the method.
            floor: Effect of rounding on a motion; None for integers and Booleans, which have no order of convergence.
        """
        fine = (self.quarter[DIVERGED] == 0) & self.good[self.quartered]
        at = self.quartered[fine]
        given = (self.own[name][self.good], self.half[name][self.good], self.own[name][at], self.half[name][at],
                 self.quarter[name][fine])  # fmt: skip
        a, b, *few = (x.reshape(len(x), -1).astype(float) for x in given)
        if attitude:
            b, few = _same_side(a, b), [_same_side(few[0], x) for x in few]
        found = Convergence.unknown(a.shape[1])
        if floor is not None and len(few[0]):
            first, second = (np.sqrt(np.mean((x - y) ** 2, axis=0)) for x, y in pairwise(few))
            found = convergence(first, second, order, 8 * floor)
        return _Pairs(a, b, found.factor, self.weights[self.good], self.left, self.tilted), few, found

    def verdict(self, column: str, interval: Real | float, crossing: float | None) -> tuple[StatisticError, float]:
        """(error of the probability of a verdict, fraction of verdicts that change with dt/2).

        Without an order the error is twice the change from dt to dt/2.

        Args:
            column: The column of verdicts.
            interval: Half width of the confidence interval of the probability.
            crossing: The expected fraction of changed verdicts, if it is known although none changed.
        """
        own, half = self.own[column] != 0, self.half[column] != 0
        weights = self.represented if column == DIVERGED else self.weights
        flips = (own.astype(float) - half.astype(float)) * weights
        error = 2 * abs(float(flips.mean()))
        if len(flips) > 1:
            error += 2 * Z * self.left * float(flips.std(ddof=1)) / math.sqrt(len(flips))
        if crossing is not None:
            error = max(error, crossing)
        elif not np.any(flips) and self.left > 0:
            # none of k: less than 3/k at 95 %
            error = 3 / _effective(weights)
            if column == DIVERGED:  # no indication of more than the interval
                error = min(error, interval)
        seen = np.asarray(bool(np.any(flips)) or bool(crossing))
        value, tolerance = np.asarray(min(error, 1.0)), np.asarray(interval, float)
        share = float(self.represented @ (own != half)) / len(own)
        return StatisticError(value, tolerance, np.asarray(np.nan), seen=seen), share


def _effective(weights: Float[np.ndarray, " k"]) -> float:
    """The effective number of weighted samples (Kish)."""
    squares = float(weights @ weights)
    return float(weights.sum()) ** 2 / squares if squares else 0.0


def _same_side(a: Float[np.ndarray, "k 4"], b: Float[np.ndarray, "k 4"]) -> Float[np.ndarray, "k 4"]:
    """Unit quaternions of b with the signs closest to a: q and -q are the same attitude."""
    return np.where(np.sum(a * b, axis=1, keepdims=True) < 0, -b, b)


@dataclass(frozen=True)
class _Pairs:
    """An output of the samples that were run again, at dt and dt/2.

    Attributes:
        half: The numbers at dt/2.
        factor: Ratio of the error at dt to the difference.
        left: ``sqrt(1 - k/n)``: the finite-population correction for k of n samples.
    """

    own: Float[np.ndarray, "k m"]
    half: Float[np.ndarray, "k m"]
    factor: Float[np.ndarray, " m"]
    weights: Float[np.ndarray, " k"]
    left: float
    tilted: bool

    @cached_property
    def error(self) -> Float[np.ndarray, "k m"]:
        """The errors of the samples."""
        return self.factor * (self.own - self.half)

    @cached_property
    def share(self) -> Float[np.ndarray, " k"]:
        """Weights of the samples, normalized to a sum of 1."""
        w = self.weights
        return w / w.sum() if len(w) and w.sum() > 0 else w

    @cached_property
    def effective(self) -> float:
        """Effective number of samples."""
        return _effective(self.weights)

    def statistics(
        self, m: Moments, order: Float[np.ndarray, " m"], floor: float | None, shape: tuple[int, ...]
    ) -> Statistics:
        """The errors of the statistics of the output.

        Args:
            floor: Effect of rounding on a motion; None for integers and Booleans.
        """
        k = len(self.own)
        mean, std, half, spread = (
            np.ravel(np.asarray(x, float)) for x in (m.mean, m.std, m.half_width(CONFIDENCE), m.high - m.low)
        )
        mean_error = np.abs(self.share @ self.error) + Z * self.left * self._standard_error(self.error)
        deviation, kurtosis = self._deviation_error()
        if m.count == 1:  # a single value has no standard deviation that an error could change
            deviation = np.zeros_like(deviation)
        of_deviation = Z * std * np.sqrt(np.maximum(kurtosis - 1, 1) / (4 * m.effective))
        if m.replicates is not None:
            of_deviation = np.ravel(student_quantile(CONFIDENCE, m.degrees) * error_of_mean(m.replicates[1]))
        found = {MEAN: (mean_error, half, mean)}
        if not m.truth:
            found[DEVIATION] = (deviation, of_deviation, std)
        if not self.tilted and not m.truth and k > 1:
            found |= {f"{QUANTILE}{level:g}": self._quantile_error(level, m.count) for level in LEVELS}
        largest = np.max(np.abs([m.low, m.high]), initial=0.0)

        def judged(name: str, error: np.ndarray, interval: np.ndarray, value: np.ndarray) -> StatisticError:
            if not k:
                error = np.full(value.shape, np.nan)
            interval = np.where(np.isnan(interval), _UNKNOWN_INTERVAL * largest, interval)
            limit = np.maximum(np.maximum(interval, DIGITS * np.abs(np.nan_to_num(value))), floor or 0.0)
            seen = error != 0
            if k and self.left > 0:
                # none of k changes, as for most peaks at the initial state: some of the others may (3/k at 95 %)
                possible = spread * 3 / self.effective
                error = np.where(seen, error, possible if name == MEAN else np.minimum(possible, limit))
            error, limit, orders, seen = (x.reshape(shape) for x in (error, limit, order, seen))
            return StatisticError(error, limit, orders, seen=seen)

        return {name: judged(name, *numbers) for name, numbers in found.items()}

    def _standard_error(self, x: Float[np.ndarray, "k m"]) -> Float[np.ndarray, " m"]:
        """The standard error of the weighted mean; for one sample its absolute value."""
        share, n = self.share, self.effective
        if n <= 1:
            return np.abs(share @ x)
        return np.sqrt(share @ (x - share @ x) ** 2 * n / (n - 1) / n)

    def _deviation_error(self) -> tuple[Float[np.ndarray, " m"], Float[np.ndarray, " m"]]:
        """(error of the standard deviation, kurtosis) by the influence function of the standard deviation."""
        share, z = self.share, Z * self.left
        gaps = [x - share @ x for x in (self.own, self.half, self.own - self.half)]
        variances = [share @ gap**2 for gap in gaps]
        sizes = [np.sqrt(x) for x in variances]
        with np.errstate(divide="ignore", invalid="ignore"):
            parts = [np.where(s > 0, gap**2 / (2 * s), 0.0) for gap, s in zip(gaps[:2], sizes[:2], strict=True)]
            kurtosis = np.where(variances[0] > 0, share @ gaps[0] ** 4 / variances[0] ** 2, 3.0)
        change = np.abs(sizes[0] - sizes[1]) + z * self._standard_error(parts[0] - parts[1])
        # bounded by the standard deviation of the errors themselves
        bound = sizes[2] * (1 + z / math.sqrt(2 * max(self.effective, 1)))
        return self.factor * np.minimum(change, bound), kurtosis

    def _quantile_error(
        self, level: float, count: int
    ) -> tuple[Float[np.ndarray, " m"], Float[np.ndarray, " m"], Float[np.ndarray, " m"]]:
        """(error, half width of the confidence interval, value) of a quantile: the mean error of the samples near it.

        Args:
            count: The number of samples of the study.
        """
        a, k = self.own, len(self.own)
        ranks = np.argsort(a, axis=0, kind="stable")
        ordered, below = np.take_along_axis(a, ranks, axis=0), np.cumsum(self.share[ranks], axis=0)
        value = _quantile(ordered, below, level)
        window = min(k, max(5, round(math.sqrt(k))))
        first = np.clip(np.argmax(below >= level, axis=0) - window // 2, 0, k - window)
        near = np.take_along_axis(self.error, np.take_along_axis(ranks, first + np.arange(window)[:, None], 0), axis=0)
        error = np.abs(near.mean(axis=0)) + Z * self.left * near.std(axis=0, ddof=1) / math.sqrt(window)
        if self.left == 0:
            error = self.factor * np.abs(np.quantile(a, level, axis=0) - np.quantile(self.half, level, axis=0))
        # the interval from the spacing of the samples about the quantile
        share = Z * math.sqrt(level * (1 - level) / count)
        wide = min(0.5, max(share, 5 / k))
        edges = max(0.0, level - wide), min(1.0, level + wide)
        low, high = (_quantile(ordered, below, edge) for edge in edges)
        return error, (high - low) * share / (edges[1] - edges[0]), value

    def crossing(self, rule: OutOfBounds) -> float:
        """Expected fraction of samples that errors carry across a bound: their density there times the mean error."""
        total = 0.0
        for j in range(self.own.shape[1]) if rule.entry is None else [rule.entry]:
            for bound in (float(np.asarray(rule.low)), float(np.asarray(rule.high))):
                if not np.isfinite(bound):
                    continue
                gap = np.abs(self.own[:, j] - bound)
                wide = np.sort(gap)[min(len(gap), _NEAREST) - 1]
                near = float(np.mean(self.weights * (gap <= wide)))
                total += near * float(self.share @ np.abs(self.error[:, j])) / (2 * wide) if wide > 0 else near
        return total


def _quantile(
    ordered: Float[np.ndarray, "k m"], below: Float[np.ndarray, "k m"], level: float
) -> Float[np.ndarray, " m"]:
    """The smallest of the sorted samples with at least the share ``level`` of the weights up to it.

    Args:
        below: Cumulative weights, normalized to a sum of 1.
    """
    at = np.argmax(below >= min(level, float(below[-1].min())), axis=0)
    return np.take_along_axis(ordered, at[None], axis=0)[0]
