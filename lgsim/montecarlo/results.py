"""Statistics that follow a study while it runs, from chunk to chunk."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lgsim.montecarlo import spaces
from lgsim.montecarlo.engine import Chunk
from lgsim.montecarlo.spaces import IntrinsicMoments
from lgsim.montecarlo.statistics import Moments, normal_quantile, wilson
from lgsim.montecarlo.store import Store, flat_names
from lgsim.montecarlo.study import DIVERGED, FAILED, SAMPLE, WEIGHT, Study
from lgsim.simulation import Trajectory
from lgsim.support.check import unknown_name
from lgsim.support.extras import package


class RunningStatistics:
    """Moments of all columns and counts, of the samples so far.

    They are joined tile by tile in the order of the samples, so that they are the same bit for bit whatever the size
    of the chunks. Samples that diverged are counted and enter no moments.

    Attributes:
        samples: How many so far.
        diverged: How many of them diverged.
        stopped: Whether the study's rule to stop was met.
    """

    def __init__(self, study: Study) -> None:
        self.study = study
        kinds = {name: kind.shape for name, kind in study.columns().items() if name not in (DIVERGED, WEIGHT)}
        sizes = [math.prod(shape) for shape in kinds.values()]
        ends = np.cumsum(sizes).tolist()
        self._shapes = kinds
        self._places = {name: slice(end - size, end) for name, end, size in zip(kinds, ends, sizes, strict=True)}
        self._moments = Moments.of(np.zeros((0, sum(sizes))))
        self.samples = self.diverged = 0
        self.stopped = False

    def add(self, chunk: Chunk) -> None:
        """Go on with the next samples, up to where the study stops.

        Args:
            chunk: That starts where the last one ended, at the first sample of a tile.
        """
        if chunk.start != self.samples:
            raise ValueError(f"chunk: expected samples from {self.samples} on, got them from {chunk.start} on")
        n, tile, rule = chunk.count, self.study.tile, self.study.stop
        numbers = np.concatenate([chunk.columns[name].reshape(n, -1).astype(float) for name in self._shapes], axis=1)
        good = chunk.columns[DIVERGED] == 0
        weights = np.exp(chunk.columns[WEIGHT].astype(float)) if WEIGHT in chunk.columns else None
        for first in range(0, n, tile):
            part = slice(first, min(first + tile, n))
            kept = good[part]
            own = None if weights is None else weights[part][kept]
            self._moments = self._moments.merge(Moments.of(numbers[part][kept], own))
            self.samples += len(kept)
            self.diverged += int(np.sum(~kept))
            if rule is not None and rule.reached({rule.output: self.moments(rule.output)}, self.samples):
                self.stopped = True
                return

    def moments(self, name: str) -> Moments:
        """Those of an output or, as ``"failed <name>"``, of a failure, whose mean is its probability.

        Raises:
            KeyError: there is none.
        """
        m, part, shape = self._moments, self._places[name], self._shapes[name]
        parts = (np.asarray(x)[part].reshape(shape) for x in (m.mean, m.deviation, m.low, m.high))
        return Moments(m.count, m.weight, m.squares, *parts)

    @property
    def names(self) -> list[str]:
        """What there are moments of."""
        return list(self._shapes)


_DELTA = 1000
"""Centroids of the digest: the error in the level is about ``q (1 - q) / 1000``."""


def stored_quantiles(store: Store, name: str, levels: np.ndarray, samples: int) -> np.ndarray:
    """Quantiles (levels, ...) of an output of the first samples that did not diverge, by a t-digest of pyarrow.

    Source: Dunning, Ertl, Computing extremely accurate quantiles using t-digests, arXiv:1902.04023, 2019.
    """
    compute, acero, dataset = _arrow()
    _, shape = store.about.columns[name]
    flat = flat_names(name, shape)
    field = compute.field
    counts = (field(DIVERGED) == 0) & (field(SAMPLE) < samples)
    files = dataset.dataset([str(file) for file in store.files()], format="parquet")
    options = compute.TDigestOptions(q=levels.tolist(), delta=_DELTA)
    # one file ahead: by default the buffers of four grow with a store until they hold as much as its chunks
    scan = acero.ScanNodeOptions(files, columns=[*flat, DIVERGED, SAMPLE], filter=counts, fragment_readahead=1)
    plan = acero.Declaration.from_sequence([
        acero.Declaration("scan", scan),
        acero.Declaration("filter", acero.FilterNodeOptions(counts)),
        acero.Declaration("aggregate", acero.AggregateNodeOptions([(x, "tdigest", options, x) for x in flat])),
    ])  # fmt: skip
    # one thread: batches come in their order, and the digest is the same each time
    table = plan.to_table(use_threads=False)
    return np.stack([table[x].to_numpy() for x in flat], axis=1).reshape(len(levels), *shape)


def _arrow() -> tuple[Any, Any, Any]:
    compute, acero, dataset = (
        package(f"pyarrow.{name}", "montecarlo", "a store") for name in ("compute", "acero", "dataset")
    )
    return compute, acero, dataset


class Failures(NamedTuple):
    """How often something failed.

    Attributes:
        count: Failed samples.
        samples: Samples that did not diverge.
        probability: Of failure; of a tilted study the weighted one.
        interval: Of confidence: Wilson's; of a tilted study that of the central limit theorem.
        effective: The effective number of samples: of a tilted study ``(sum w)^2 / sum w^2`` over those that failed.
        indices: Which samples failed: ``study.replay(i)`` shows one.
    """

    count: int
    samples: int
    probability: float
    interval: tuple[float, float]
    effective: float
    indices: np.ndarray


class Histogram(NamedTuple):
    """How a number is spread.

    Attributes:
        counts: In each bin, (bins,); of a tilted study sums of weights.
        edges: Of the bins, (bins + 1,).
    """

    counts: np.ndarray
    edges: np.ndarray


class Results:
    """The samples of a study that are there, and their statistics. Those that diverged enter none but the counts.

    Args:
        study: What was run.
        source: Its store, or its chunks in memory.
        finished: Whether all samples are there, or as many as the study's rule to stop asks for.
        running: Their moments, where they are known already.
    """

    def __init__(
        self,
        study: Study,
        source: Store | Sequence[Chunk],
        finished: bool = True,
        running: RunningStatistics | None = None,
    ) -> None:
        self.study, self.source, self.finished = study, source, finished
        if running is not None:
            self.running = running

    @classmethod
    def open(cls, study: Study, path: str | Path) -> Results:
        """The results in a store, whoever computed them.

        Raises:
            FileNotFoundError: there is no store.
            ValueError: its columns are not those of the study.
        """
        store = Store(path)
        kinds = {name: (str(kind.dtype), kind.shape) for name, kind in study.columns().items()}
        if kinds != store.about.columns or study.tile != store.about.tile:
            raise ValueError(f"{path}: the store has other columns or tiles than the study: {store.about.columns}")
        return cls(study, store, store.finished is not None)

    def chunks(self) -> Iterator[Chunk]:
        """The samples in their order, in pieces."""
        return self.source.read_all() if isinstance(self.source, Store) else iter(self.source)

    @cached_property
    def running(self) -> RunningStatistics:
        """Moments of all columns."""
        found = RunningStatistics(self.study)
        for chunk in self.chunks():
            found.add(chunk)
        return found

    @property
    def samples(self) -> int:
        """How many samples there are."""
        return self.running.samples

    def moments(self, name: str) -> Moments:
        """Count, mean, variance, standard error, smallest and largest value of an output."""
        return self.running.moments(self._known(name))

    def column(self, name: str) -> np.ndarray:
        """An output of all samples, (samples, ...): in memory, those that diverged too."""
        if name not in (DIVERGED, WEIGHT):
            self._known(name)
        return np.concatenate([chunk.columns[name] for chunk in self.chunks()])

    def covariance(self, name: str) -> np.ndarray:
        """The covariance (n, n) of an output of n numbers, flattened; plain numbers, see ``intrinsic`` for groups."""
        mean = self.moments(name).mean.ravel()
        total = np.zeros((len(mean), len(mean)))
        for values, weights in self._good(name):
            gaps = values.reshape(len(values), -1) - mean
            total += (gaps * weights[:, None]).T @ gaps
        m = self.moments(name)
        return total / m.weight * (m.effective / (m.effective - 1)) if m.effective > 1 else np.full_like(total, np.nan)

    def intrinsic(self, name: str, space: Any, *, tolerance: float = 1e-12, iterations: int = 100) -> IntrinsicMoments:
        """The mean and the covariance on a group of an output that is a point of it, see ``Intrinsic``.

        Args:
            name: Of an output whose values are points of the space.
            space: An ``lgsim.Model`` for configurations, an ``lgsim.LieGroup`` for elements, or a ``Space``.
            tolerance: The mean is found where its next change is smaller, rad or m.
            iterations: At most, each of which reads all samples once.
        """
        self._known(name)
        return spaces.mean(lambda: self._good(name), space, self.study.tile, tolerance, iterations)

    def quantiles(self, name: str, levels: Sequence[float]) -> np.ndarray:
        """Quantiles (levels, ...) of each number of an output.

        In memory exact; of a store by a t-digest that reads each chunk once, whose error in the level is far below
        ``level (1 - level) / 100``.

        Raises:
            ValueError: a level is not between 0 and 1, or samples have weights.
        """
        q = np.asarray(levels, float)
        if not np.all((q >= 0) & (q <= 1)):
            raise ValueError(f"levels: expected numbers between 0 and 1, got {levels}")
        if self.study.sampler.tilts:
            raise ValueError("quantiles: of a tilted study they are not estimated; take failures or a histogram")
        self._known(name)
        if isinstance(self.source, Store):
            return stored_quantiles(self.source, name, q, self.samples)
        return np.quantile(np.concatenate([values for values, _ in self._good(name)]), q, axis=0)

    def histogram(self, name: str, bins: int | Sequence[float] = 50) -> Histogram:
        """How often an output of one number falls into each of some bins.

        Args:
            name: Of the output; of several numbers all count.
            bins: The edges, or a number of equal bins from the smallest to the largest value.
        """
        m = self.moments(name)
        edges = np.asarray(bins, float) if np.ndim(bins) else np.histogram_bin_edges(
            np.array([m.low.min(), m.high.max()]), int(bins)  # type: ignore[arg-type]
        )  # fmt: skip
        counts = np.zeros(len(edges) - 1)
        for values, weights in self._good(name):
            each = np.broadcast_to(weights.reshape(-1, *(1,) * (values.ndim - 1)), values.shape)
            counts += np.histogram(values, edges, weights=each)[0]
        return Histogram(counts, edges)

    @property
    def diverged(self) -> dict[int, str]:
        """Which samples diverged, and how."""
        words, found = {1: "not finite", 2: "blown up"}, {}
        for chunk in self.chunks():
            codes = chunk.columns[DIVERGED]
            found |= {int(chunk.start + i): words[int(codes[i])] for i in np.flatnonzero(codes)}
        return found

    def failures(self, name: str, level: float = 0.95) -> Failures:
        """How often one of the study's failures happened, and in which samples.

        Args:
            name: Of the failure.
            level: Of confidence.
        """
        if name not in self.study.failures:
            raise unknown_name("failures: expected one of the study", name, list(self.study.failures))
        column, indices, first, second = FAILED + name, [], 0.0, 0.0
        for chunk in self.chunks():
            here = np.flatnonzero(chunk.columns[column])
            indices.append(chunk.start + here)
            w = np.exp(chunk.columns[WEIGHT][here].astype(float)) if WEIGHT in chunk.columns else np.ones(len(here))
            first, second = first + float(w.sum()), second + float((w * w).sum())
        where, count = np.concatenate([np.zeros(0, int), *indices]), self.moments(column).count
        if not self.study.sampler.tilts:
            p, interval = first / count if count else float("nan"), wilson(first, count, level)
            return Failures(len(where), count, p, interval, float(count), where)
        p = first / count
        # the plain mean of w 1(failed), whose weights need not be known up to their sum
        error = np.sqrt(max(second / count - p * p, 0.0) / max(count - 1, 1))
        half, effective = float(normal_quantile(level) * error), first**2 / second if second else 0.0
        return Failures(len(where), count, p, (max(0.0, p - half), p + half), effective, where)

    def replay(self, i: int) -> Trajectory:
        """The motion of a sample, see ``Study.replay``."""
        return self.study.replay(i)

    def _known(self, name: str) -> str:
        if name not in self.running.names:
            raise unknown_name("name: expected an output", name, self.running.names)
        return name

    def _good(self, name: str) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """(values, weights) of the samples that did not diverge, tile by tile."""
        for chunk in self.chunks():
            for first in range(0, chunk.count, self.study.tile):
                part = slice(first, first + self.study.tile)
                good = chunk.columns[DIVERGED][part] == 0
                values = chunk.columns[name][part][good]
                weights = np.ones(len(values))
                if WEIGHT in chunk.columns:
                    weights = np.exp(chunk.columns[WEIGHT][part][good].astype(float))
                yield values, weights
