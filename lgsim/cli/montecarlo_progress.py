"""How far a study is: a bar with its rate, the time that remains, and an estimate with its interval of confidence."""

from __future__ import annotations

import math
import time
from datetime import timedelta
from typing import Any

import numpy as np
from rich.progress import BarColumn, TextColumn

from lgsim.cli.progress import Barred
from lgsim.montecarlo import Moments, RunningStatistics, Study
from lgsim.montecarlo.results import wilson
from lgsim.montecarlo.study import FAILED

LEVEL = 0.95
"""Of confidence, where a study does not say."""


class SampleWatch(Barred):
    """``progress`` of a study: shows a bar, measures, and ends the study between two chunks on Ctrl-C.

    Args:
        study: The study.
        known: Samples that are in the store already.
    """

    where = "the end of this chunk"

    def __init__(self, study: Study, known: int) -> None:
        super().__init__(
            BarColumn(bar_width=24),
            TextColumn("{task.completed:,.0f} of {task.total:,.0f}"),
            TextColumn("{task.fields[rate]}"),
            TextColumn("{task.fields[left]}"),
            TextColumn("{task.fields[estimate]}"),
            total=study.samples,
            fields=["rate", "left", "estimate"],
        )
        self.study, self.known, self.shown = study, known, watched(study)
        self._marks: list[tuple[float, int]] = []

    def __call__(self, running: RunningStatistics) -> None:
        """Takes note of what is done.

        Raises:
            KeyboardInterrupt: Ctrl-C was pressed, and there is more to do.
        """
        if running.samples > self.known:
            self._marks.append((time.perf_counter(), running.samples))
        expected, rate, left = self.expected(running), "", ""
        if self.rate is not None:
            rate = f"{self.rate:,.0f} samples/s"
            left = f"{timedelta(seconds=round((expected - running.samples) / self.rate))} left"
        self._bar.update(
            self._task, description="sampling", completed=running.samples, total=expected, rate=rate, left=left,
            estimate=f"{self.shown} {estimate(self.shown, running.moments(self.shown), self.level)}",
        )  # fmt: skip
        if self.interrupted and running.samples < self.study.samples and not running.stopped:
            raise KeyboardInterrupt

    @property
    def level(self) -> float:
        """Of confidence."""
        return LEVEL if self.study.stop is None else self.study.stop.level

    def expected(self, running: RunningStatistics) -> int:
        """How many samples there will be: where an interval of confidence is asked for, by ``half_width ~ n^-1/2``."""
        rule = self.study.stop
        if rule is None or running.stopped:
            return running.samples if running.stopped else self.study.samples
        half = float(np.max(running.moments(rule.output).half_width(rule.level)))
        if not math.isfinite(half):
            return self.study.samples
        needed = running.samples * (half / rule.half_width) ** 2
        return int(min(self.study.samples, max(needed, rule.min_samples, running.samples)))

    @property
    def rate(self) -> float | None:
        """Samples per second after the first chunk that was computed; None before the second."""
        if len(self._marks) < 2:
            return None
        (start, first), (end, last) = self._marks[0], self._marks[-1]
        return (last - first) / (end - start) if end > start else None

    @property
    def wall(self) -> float:
        """Seconds until the last chunk was there."""
        return (self._marks[-1][0] if self._marks else time.perf_counter()) - self._start


def watched(study: Study) -> str:
    """The name that a user looks at: what the rule to stop asks for, else a failure, else the smallest output."""
    if study.stop is not None:
        return study.stop.output
    if study.failures:
        return FAILED + next(iter(study.failures))
    kinds = study.columns()
    return min(study.outputs or kinds, key=lambda name: kinds[name].size)


def estimate(name: str, moments: Moments, level: float) -> str:
    """The mean and half of its interval of confidence: "0.331 ± 0.012 (95 %)"; of several numbers the widest.

    Of a failure Wilson's interval, which is honest where few or none have failed: "0.004 (0.001 to 0.012, 95 %)".
    """
    if name.startswith(FAILED):
        return f"{float(moments.mean):.3g} ({failure_interval(moments, level)}, {100 * level:g} %)"
    mean, half = np.ravel(moments.mean), np.ravel(moments.half_width(level))
    if not len(mean) or not np.any(np.isfinite(half)):
        return "?"
    at = int(np.nanargmax(half))
    place = f"[{at}] " if len(mean) > 1 else ""
    return f"{place}{mean[at]:.4g} ± {half[at]:.2g} ({100 * level:g} %)"


def failure_interval(moments: Moments, level: float) -> str:
    """Wilson's interval of a failure's probability: "0.001 to 0.012"."""
    low, high = wilson(float(moments.mean) * moments.count, moments.count, level)
    return f"{low:.2g} to {high:.2g}"


def spread_rows(running: RunningStatistics, level: float) -> list[list[Any]]:
    """(output, entry, mean, half width, standard deviation, smallest, largest) of each number."""
    rows: list[list[Any]] = []
    for name in running.names:
        m = running.moments(name)
        parts = [np.ravel(x) for x in (m.mean, m.half_width(level), m.std, m.low, m.high)]
        rows += [[name, k if m.mean.size > 1 else None, *(float(x[k]) for x in parts)] for k in range(m.mean.size)]
    return rows
