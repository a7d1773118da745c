"""Results of a study: running moments, quantiles, failure probabilities, and all samples."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Integer, Shaped

from lgsim.lie.group import LieGroup
from lgsim.montecarlo.accuracy.step_error import StudyStepError
from lgsim.montecarlo.estimators.input_effects import InputEffects, input_effects
from lgsim.montecarlo.estimators.quantiles import (
    SORTED,
    order_levels,
    parts_quantiles,
    sorted_quantiles,
    stored_quantiles,
)
from lgsim.montecarlo.intervals import Numbers, clopper_pearson, student_quantile
from lgsim.montecarlo.known_values import BLOWN_UP, NOT_FINITE, PARTIAL, Mask
from lgsim.montecarlo.moments import Moments, error_of_mean, running_spread
from lgsim.montecarlo.spaces import IntrinsicMoments, Space, intrinsic_moments
from lgsim.montecarlo.store import OTHER_PROGRAM, Chunk, Store, StoreMetadata, package_versions
from lgsim.montecarlo.study import DIVERGED, FAILED, INPUT, WEIGHT, Study
from lgsim.montecarlo.traced_programs import study_fingerprint
from lgsim.multibody.model import Model
from lgsim.simulation import Trajectory
from lgsim.support.check import unknown_name
from lgsim.support.messages import counted


class RunningStatistics:
    """Running moments of all columns, and counts.

    They are merged tile by tile in the order of the samples, so that they are bitwise identical for any chunk size.
    Diverged samples are counted, but enter no moments; a sample without a value of an output is missing there only.
    """

    def __init__(self, study: Study) -> None:
        self.study = study
        columns = {name: kind for name, kind in study.columns().items() if name not in (DIVERGED, WEIGHT)}
        self._shapes = {name: kind.shape for name, kind in columns.items()}
        self._truths = {name for name, kind in columns.items() if kind.dtype == bool}
        self._slices = self._places(self._shapes)
        width = sum(math.prod(shape) for shape in self._shapes.values())
        # columns that have had values of the same samples share their counts
        self._groups = {tuple(self._shapes): Moments.of(np.zeros((0, width)))}
        self.known_values = study.known_values
        self._spread = running_spread(study.sampler.points, width)
        self.samples = self.diverged = 0
        self.stopped = False

    def _places(self, names: Iterable[str]) -> dict[str, slice]:
        """The columns of each output in an array with those of some outputs."""
        names, found, start = tuple(names), {}, 0
        for name in names:
            size = math.prod(self._shapes[name])
            found[name], start = slice(start, start + size), start + size
        return found

    def add(self, chunk: Chunk) -> None:
        """Add the next samples, until the study stops.

        Args:
            chunk: Samples that continue the previous chunk, starting at the first sample of a tile.

        Raises:
            ValueError: the samples are not the next ones.
        """
        if chunk.start != self.samples:
            raise ValueError(f"chunk: expected samples from {self.samples} on, got {chunk.start} on")
        n, tile, rule = chunk.count, self.study.tile, self.study.stop
        numbers = np.concatenate([chunk.columns[name].reshape(n, -1).astype(float) for name in self._shapes], axis=1)
        codes = chunk.columns[DIVERGED]
        lost = (codes == NOT_FINITE) | (codes == BLOWN_UP)
        kept = {name: self.known_values.mask(codes, chunk.columns, name) for name in self._shapes}
        partial = codes == PARTIAL
        weights = np.exp(chunk.columns[WEIGHT].astype(float)) if WEIGHT in chunk.columns else None
        for first in range(0, n, tile):
            part = slice(first, min(first + tile, n))
            own = {name: mask[part] for name, mask in kept.items()}
            if partial[part].any():
                self._split(own)
            for names, moments in self._groups.items():
                mask, x = own[names[0]], numbers[part]
                if len(self._groups) > 1:
                    x = np.concatenate([x[:, self._slices[name]] for name in names], axis=1)
                self._groups[names] = moments.merge(
                    Moments.of(x[mask], None if weights is None else weights[part][mask])
                )
            if self._spread is not None:
                counted = np.repeat(
                    np.stack(list(own.values()), axis=1), [math.prod(x) for x in self._shapes.values()], axis=1
                )
                w = 1.0 if weights is None else weights[part][:, None]
                self._spread.add(self.samples, numbers[part], np.where(counted, w, 0.0))
            self.samples += part.stop - part.start
            self.diverged += int(np.sum(lost[part]))
            if rule is not None:
                half = self.moments(rule.output).half_width(rule.level)
                if rule.is_met(half, self.samples):
                    self.stopped = True
                    return

    def _split(self, masks: Mapping[str, Mask]) -> None:
        """Divide groups whose columns have values of different samples."""
        for names, moments in list(self._groups.items()):
            parts: dict[bytes, list[str]] = {}
            for name in names:
                parts.setdefault(masks[name].tobytes(), []).append(name)
            if len(parts) > 1:
                places = self._places(names)
                del self._groups[names]
                for own in parts.values():
                    self._groups[tuple(own)] = moments.columns(np.concatenate([np.r_[places[name]] for name in own]))

    def moments(self, name: str) -> Moments:
        """The moments of an output or, as ``"failed <name>"``, of a failure, whose mean is its probability.

        Raises:
            KeyError: the output does not exist.
        """
        shape, part = self._shapes[name], self._slices[name]
        names = next(names for names in self._groups if name in names)
        place = np.reshape(np.r_[self._places(names)[name]], shape).astype(int)
        found = self._groups[names].columns(place)
        if not found.count:
            unknown = np.full(shape, np.nan)
            found = replace(found, mean=unknown, low=unknown, high=unknown)
        if self._spread is not None:
            found = self._spread.complete(found, part)
        return replace(found, truth=name in self._truths, missing=self.samples - found.count)

    def imputed(self, columns: Mapping[str, Shaped[np.ndarray, "k ..."]]) -> dict[str, Shaped[np.ndarray, "k ..."]]:
        """Columns of some samples with the mean in place of single missing values, which do not change the mean."""
        partial, found = columns[DIVERGED] == PARTIAL, dict(columns)
        if partial.any():
            found[DIVERGED] = np.where(partial, 0, columns[DIVERGED])
            for name in set(columns) & set(self._shapes):
                x = columns[name]
                lost = partial.reshape(-1, *(1,) * (x.ndim - 1)) & ~np.isfinite(x.astype(float))
                found[name] = np.where(lost, self.moments(name).mean.astype(x.dtype), x)
        return found

    @property
    def names(self) -> list[str]:
        """The names of the columns that have moments: outputs and failures."""
        return list(self._shapes)


EFFECTIVE = 1000
"""Effective number of weighted samples from which intervals of means hold: those of tilted normal numbers cover 0.95 at
1500, 0.89 at 500 and 0.4 at 8.
"""


ProbabilityInterval = Callable[[Numbers, Numbers, float], tuple[Numbers, Numbers]]
"""A function ``interval(failures, count, level)``: the confidence interval (low, high) of a probability."""


def _weighted_interval(first: float, second: float, count: int, level: float) -> tuple[float, float]:
    """The confidence interval (low, high) of a probability from ``sum w`` and ``sum w^2`` over the failed samples.

    It is that of the plain mean of ``w 1(failed)``, since the normalization of the weights is known.
    """
    p, effective = first / count, first**2 / second
    error = math.sqrt(max(second / count - p * p, 0.0) / (count - 1))
    half = float(student_quantile(level, effective - 1)) * error
    return max(0.0, float(p - half)), min(1.0, float(p + half))


class Failures(NamedTuple):
    """Number and estimated probability of a failure.

    Attributes:
        count: Number of failed samples.
        samples: Number of samples of which it is known: they did not diverge, and have the outputs that it uses.
        probability: Estimated failure probability, weighted under importance sampling.
        interval: Confidence interval (low, high) of the probability; under importance sampling Student's, (0, 1)
            while no sample failed.
        effective: Effective number of samples; under importance sampling ``(sum w)^2 / sum w^2`` over the failed
            samples.
        indices: Indices of the failed samples, (count,): ``study.replay(i)`` simulates one again.
    """

    count: int
    samples: int
    probability: float
    interval: tuple[float, float]
    effective: float
    indices: Integer[np.ndarray, " count"]


class Histogram(NamedTuple):
    """A histogram of an output.

    Attributes:
        counts: Number of samples in each bin, (bins,); under importance sampling sums of weights.
        edges: Edges of the bins, (bins + 1,).
    """

    counts: Float[np.ndarray, " bins"]
    edges: Float[np.ndarray, " bins_1"]


class Results:
    """The samples of a study and their statistics, each of the samples that have its value.

    Diverged samples are excluded from all. An output that is NaN excludes its sample from the statistics of that output
    and from the failures that use it. An infinite output of a ``Rollout`` is an event that did not happen: it counts in
    failures and quantiles, not in moments.

    Attributes:
        study: The study that was run.
        source: Its store, or its chunks in memory.
        finished: True if all samples are available, or as many as the study's rule to stop requires.
        step_error: The integration error of every statistic; None if the rollout has no steps, or the check was not
            run.
    """

    def __init__(
        self,
        study: Study,
        source: Store | Sequence[Chunk],
        finished: bool = True,
        running: RunningStatistics | None = None,
    ) -> None:
        self.study, self.source, self.finished = study, source, finished
        self.step_error: StudyStepError | None = None
        if running is not None:
            self.running = running

    @classmethod
    def open(cls, study: Study, path: str | Path) -> Results:
        """Load the results from a store, whichever process computed them.

        Args:
            study: The study of the samples.
            path: The folder of the store.

        Raises:
            FileNotFoundError: the store does not exist.
            ValueError: the store belongs to another study: its program, numbers, seed, columns or tiles differ.
        """
        store = Store(path)
        if wrong := _difference(study, store.metadata):
            raise ValueError(
                f"{path}: expected the store of this study, got that of another one: {wrong}; open it with the study"
                " that was run"
            )
        found = cls(study, store, store.finished is not None)
        found.step_error = store.step_error
        return found

    def chunks(self) -> Iterator[Chunk]:
        """The samples in order, chunk by chunk."""
        for chunk in self._stored():
            if chunk.start < self.samples:
                yield chunk.part(chunk.start, min(chunk.start + chunk.count, self.samples))

    def _stored(self) -> Iterable[Chunk]:
        """The available chunks; of an interrupted study also those behind the sample at which it stops."""
        return self.source.read_all() if isinstance(self.source, Store) else self.source

    @cached_property
    def running(self) -> RunningStatistics:
        """The moments of all columns."""
        found = RunningStatistics(self.study)
        for chunk in self._stored():
            if found.stopped:
                break
            found.add(chunk)
        return found

    @property
    def samples(self) -> int:
        """The number of samples."""
        return self.running.samples

    def moments(self, name: str) -> Moments:
        """Count, mean, variance, standard error, smallest and largest value of an output.

        Raises:
            ValueError: the output does not exist.

        Warns:
            RuntimeWarning: under importance sampling the effective number of samples is so small that the intervals are
                too narrow.
        """
        found = self.running.moments(self._known(name))
        if found.scores is not None and 0 < found.effective < EFFECTIVE:
            warnings.warn(
                f"moments: the {found.count} weighted samples have an effective number of {found.effective:.3g}, below"
                f" {EFFECTIVE}: intervals of means are too narrow; use smaller tilts or more samples",
                RuntimeWarning,
                stacklevel=2,
            )
        return found

    def column(self, name: str) -> Shaped[np.ndarray, "samples ..."]:
        """An output of all samples in memory, including those that diverged.

        Raises:
            ValueError: the output does not exist.
        """
        if name not in (DIVERGED, WEIGHT):
            self._known(name)
        return np.concatenate([chunk.columns[name] for chunk in self.chunks()])

    @property
    def inputs(self) -> dict[str, Shaped[np.ndarray, " samples"]]:
        """The random numbers of all samples in memory, by name, such as "v0[2]", including those that diverged.

        Without constants, paths of processes, and numbers that are proportional to an earlier one of the same array,
        such as the inertia of a body with a random mass. Older stores do not have them: they are drawn again.
        """
        found = self.head(self.samples, lambda name: name.startswith(INPUT))
        return {name.removeprefix(INPUT): x for name, x in found.items() if name.startswith(INPUT)}

    def head(
        self, count: int, chosen: Callable[[str], bool] = lambda name: True
    ) -> dict[str, Shaped[np.ndarray, "count ..."]]:
        """The columns of the first samples in memory: outputs, failures, divergence, and inputs as "input.v0[2]".

        Args:
            count: Number of samples; fewer if there are not as many.
            chosen: True for the names of the columns that are read.
        """
        parts: dict[str, list[np.ndarray]] = {}
        for chunk in self.chunks():
            if chunk.start >= count:
                break
            for name in filter(chosen, chunk.columns):
                parts.setdefault(name, []).append(chunk.columns[name][: count - chunk.start])
        found = {name: np.concatenate(part) for name, part in parts.items()}
        if not any(name.startswith(INPUT) for name in found):
            drawn = self.study.inputs(min(count, self.samples))
            found |= {INPUT + name: x for name, x in drawn.items() if chosen(INPUT + name)}
        return found

    def correlations(self, outputs: Sequence[str] | None = None, *, samples: int = 100_000) -> InputEffects:
        """Rank correlations, partial rank correlations and regression of outputs on the random inputs.

        Args:
            outputs: Names of outputs and failures; by default all.
            samples: Largest number of samples, the first ones.

        Raises:
            ValueError: an output does not exist, samples have weights, or no input is stored.
        """
        names = self.running.names if outputs is None else [self._known(name) for name in outputs]
        if self.study.sampler.tilts:
            raise ValueError("correlations: not available under importance sampling; leave tilts out")
        columns = self.head(samples, lambda name: name in names or name == DIVERGED or name.startswith(INPUT))
        inputs = {name.removeprefix(INPUT): x for name, x in columns.items() if name.startswith(INPUT)}
        if not inputs:
            raise ValueError("correlations: expected random inputs, got processes or constants only")
        masks = {name: self.running.known_values.mask(columns[DIVERGED], columns, name) for name in names}
        return input_effects(inputs, {name: columns[name] for name in names}, masks)

    def covariance(self, name: str) -> Float[np.ndarray, "n n"]:
        """The covariance of an output of n numbers, flattened; see ``intrinsic`` for points of a group.

        Raises:
            ValueError: the output does not exist.
        """
        mean = self.running.moments(self._known(name)).mean.ravel()
        total = np.zeros((len(mean), len(mean)))
        for values, weights in self._good(name):
            gaps = values.reshape(len(values), -1) - mean
            total += (gaps * weights[:, None]).T @ gaps
        m = self.running.moments(self._known(name))
        return total / m.weight * (m.effective / (m.effective - 1)) if m.effective > 1 else np.full_like(total, np.nan)

    def intrinsic(
        self, name: str, space: Model | LieGroup | Space, *, tolerance: float = 1e-12, iterations: int = 100
    ) -> IntrinsicMoments:
        """The intrinsic mean and covariance of an output that is a point of a group, see ``IntrinsicMoments``.

        Args:
            name: Name of an output whose values are points of the space.
            space: An ``lgsim.Model`` for configurations, an ``lgsim.LieGroup`` for elements, or a ``Space``.
            tolerance: Convergence threshold on the change of the mean, rad or m.
            iterations: Maximum number of iterations, each of which reads all samples once.

        Raises:
            ValueError: the output does not exist, its shape is not the space's, or all samples diverged.
            TypeError: ``space`` has another type.
        """
        self._known(name)
        return intrinsic_moments(lambda: self._good(name), space, self.study.tile, tolerance, iterations)

    def quantiles(self, name: str, levels: Sequence[float]) -> Float[np.ndarray, " levels *shape"]:
        """The quantiles of each number of an output.

        They interpolate linearly between the sorted samples. For an output with more than a million numbers in a store
        they come from a t-digest that reads each chunk once, whose error in the level is far below
        ``level (1 - level) / 100``.

        Args:
            name: Name of an output, of shape (*shape).
            levels: The levels, between 0 and 1.

        Raises:
            ValueError: the output does not exist, a level is not between 0 and 1, or samples have weights.
        """
        self._check_levels(levels)
        q = np.asarray(levels, float)
        m = self.running.moments(self._known(name))
        complete = m.missing == self.running.diverged
        if isinstance(self.source, Store) and complete and self.samples * m.mean.size > SORTED:
            return stored_quantiles(self.source, name, q, self.samples)
        values = np.concatenate([values for values, _ in self._good(name, events=True)])
        return sorted_quantiles(values.astype(float), q)

    def quantile_intervals(
        self, name: str, levels: Sequence[float], level: float = 0.95
    ) -> tuple[Float[np.ndarray, " levels *shape"], Float[np.ndarray, " levels *shape"]]:
        """The confidence intervals (low, high) of the quantiles of each number of an output.

        For independent and antithetic samples they are order statistics, for any distribution with at least the
        confidence ``level``, and infinite where there are too few samples. For the parts of a sequence they are
        Student's, from the quantiles of the parts.

        Args:
            levels: The levels of the quantiles, between 0 and 1.
            level: Confidence level, between 0 and 1.

        Raises:
            ValueError: the output does not exist, a level is not between 0 and 1, or samples have weights.
        """
        self._check_levels(levels)
        q, m = np.asarray(levels, float), self.running.moments(self._known(name))
        if m.replicates is None:
            low, high = order_levels(q, m.count, m.independent, level)
            ends = self.quantiles(name, np.clip([*low, *high], 0, 1).tolist())
            unknown = np.concatenate([low < 0, high > 1]).reshape(-1, *(1,) * m.mean.ndim)
            first, last = np.split(np.where(unknown, np.inf, ends), 2)
            return np.where(unknown[: len(q)], -first, first), last
        values, codes = self.column(name).astype(float), self.column(DIVERGED)
        known = self.running.known_values.mask(codes, {name: values}, name, True)
        each = parts_quantiles(values, known, q, len(m.replicates[0]))
        middle, half = each.mean(axis=0), student_quantile(level, m.degrees) * error_of_mean(each)
        return middle - half, middle + half

    def histogram(self, name: str, bins: int | Sequence[float] = 50) -> Histogram:
        """The histogram of an output.

        Args:
            name: Name of the output; all its entries are counted.
            bins: The edges, or a number of equal bins from the smallest to the largest value.

        Raises:
            ValueError: the output does not exist.
        """
        m = self.running.moments(self._known(name))
        edges = np.asarray(bins, float) if np.ndim(bins) else np.histogram_bin_edges(
            np.array([m.low.min(), m.high.max()]), int(bins)  # type: ignore[arg-type]
        )  # fmt: skip
        counts = np.zeros(len(edges) - 1)
        for values, weights in self._good(name):
            each = np.broadcast_to(weights.reshape(-1, *(1,) * (values.ndim - 1)), values.shape)
            counts += np.histogram(values.astype(float), edges, weights=each)[0]
        return Histogram(counts, edges)

    @property
    def diverged(self) -> dict[int, str]:
        """Indices of the diverged samples, each with "not finite" or "blown up"."""
        words, found = {NOT_FINITE: "not finite", BLOWN_UP: "blown up"}, {}
        for chunk in self.chunks():
            codes = chunk.columns[DIVERGED]
            lost = np.flatnonzero(np.isin(codes, list(words)))
            found |= {int(chunk.start + i): words[int(codes[i])] for i in lost}
        return found

    def failures(self, name: str, level: float = 0.95, interval: ProbabilityInterval = clopper_pearson) -> Failures:
        """The number, the probability and the samples of one of the study's failures.

        A sample that diverged, or without a value of an output that the failure uses, may have failed or not: the
        interval covers both cases.

        Args:
            level: Confidence level, between 0 and 1.
            interval: ``clopper_pearson``, with at least the coverage ``level``, or ``wilson``, which is shorter.

        Raises:
            ValueError: the study has no such failure.
        """
        if name not in self.study.failures:
            raise unknown_name("failures: expected one of the study", name, list(self.study.failures))
        column, indices = FAILED + name, []
        # sums of the weights and of their squares: of failed samples, and of those that may have failed
        failed, unknown = np.zeros(2), np.zeros(2)
        for chunk in self.chunks():
            hit = chunk.columns[column]
            open_ = ~self.running.known_values.mask(chunk.columns[DIVERGED], chunk.columns, column)
            indices.append(chunk.start + np.flatnonzero(hit))
            w = np.exp(chunk.columns[WEIGHT].astype(float)) if WEIGHT in chunk.columns else np.ones(chunk.count)
            failed += [w[hit].sum(), (w[hit] ** 2).sum()]
            unknown += [w[open_].sum(), (w[open_] ** 2).sum()]
        m = self.running.moments(column)
        where, count, lost = np.concatenate([np.zeros(0, int), *indices]), m.count, m.missing
        # the known samples have this weight; that of all is their number
        known = count + lost - float(unknown[0])
        p = float(failed[0]) / known if count and known > 0 else float("nan")
        if not self.study.sampler.tilts:
            share = m.independent
            low, high = (interval(share * (failed[0] + k), share * (count + lost), level)[i]
                         for i, k in enumerate((0, lost)))  # fmt: skip
            return Failures(len(where), count, p, (float(low), float(high)), float(count), where)
        effective = float(failed[0] ** 2 / failed[1]) if failed[1] else 0.0
        if not effective > 1:
            return Failures(len(where), count, p, (0.0, 1.0), effective, where)
        ends = (_weighted_interval(float(a), float(b), count + lost, level) for a, b in (failed, failed + unknown))
        (low, _), (_, high) = ends
        return Failures(len(where), count, p, (low, high), effective, where)

    def undecided(self, level: float = 0.95) -> dict[str, str]:
        """The failures whose probability depends on the samples of unknown outcome, each with a message.

        The confidence interval is more than twice as wide as that of as many known samples.

        Args:
            level: Confidence level, between 0 and 1.
        """
        messages = {}
        for name in self.study.failures:
            m = self.running.moments(FAILED + name)
            if not m.missing:
                continue
            low, high = replace(m, count=m.count + m.missing, missing=0).interval(level)
            wide = self.failures(name, level).interval
            if not m.count or wide[1] - wide[0] > 2 * (high - low):
                messages[name] = (
                    f"the probability of {name!r} is open: {counted(m.missing, 'sample')} of {self.samples:,} diverged"
                    f" or have no value, so that it is between {wide[0]:.2g} and {wide[1]:.2g}"
                )
        return messages

    def replay(self, i: int) -> Trajectory:
        """The motion of sample i, see ``Study.replay``."""
        return self.study.replay(i)

    def _check_levels(self, levels: Sequence[float]) -> None:
        """Validate the levels of quantiles."""
        q = np.asarray(levels, float)
        if not np.all((q >= 0) & (q <= 1)):
            raise ValueError(f"levels: expected numbers between 0 and 1, got {levels}")
        if self.study.sampler.tilts:
            raise ValueError("quantiles: not available under importance sampling; use failures or a histogram")

    def _known(self, name: str) -> str:
        """Validate the name of an output."""
        if name not in self.running.names:
            raise unknown_name("name: expected an output", name, self.running.names)
        return name

    def _good(
        self, name: str, events: bool = False
    ) -> Iterator[tuple[Shaped[np.ndarray, " n *shape"], Float[np.ndarray, " n"]]]:
        """(values, weights) of the samples that have a value, tile by tile."""
        for chunk in self.chunks():
            known = self.running.known_values.mask(chunk.columns[DIVERGED], chunk.columns, name, events)
            for first in range(0, chunk.count, self.study.tile):
                part = slice(first, first + self.study.tile)
                good = known[part]
                values = chunk.columns[name][part][good]
                weights = np.ones(len(values))
                if WEIGHT in chunk.columns:
                    weights = np.exp(chunk.columns[WEIGHT][part][good].astype(float))
                yield values, weights


def _difference(study: Study, stored: StoreMetadata) -> str:
    """The differences of a study from that of a store, as text; empty if they agree."""
    kinds = {name: (str(kind.dtype), kind.shape) for name, kind in study.columns().items()}
    if wrong := stored.difference(study.seed, study.tile, kinds):
        return wrong
    # the text of a program may depend on the versions
    if stored.versions != package_versions() or stored.study == (wanted := study_fingerprint(study)):
        return ""
    return f"{OTHER_PROGRAM} (fingerprint {stored.study} in the store, {wanted} here)"
