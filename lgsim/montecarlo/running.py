"""Statistics that follow a study while it runs, from chunk to chunk."""

from __future__ import annotations

import math

import numpy as np

from lgsim.montecarlo.engine import Chunk
from lgsim.montecarlo.moments import Moments
from lgsim.montecarlo.study import DIVERGED, WEIGHT, Study


class Running:
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
