"""Progress bar of a study: sample rate, time left, and an estimate with its confidence interval."""

from __future__ import annotations

import math
from datetime import timedelta

import numpy as np
from rich.progress import BarColumn

from lgsim.cli.progress import ProgressBar, literal_column
from lgsim.montecarlo import Study
from lgsim.montecarlo.results import RunningStatistics
from lgsim.montecarlo.study import FAILED
from lgsim.view.reports.estimates import LEVEL, estimate


class SampleWatch(ProgressBar):
    """``progress`` of a study: shows a bar, measures the rate, and stops the study between two chunks on Ctrl-C.

    Args:
        known: Number of samples already in the store.
    """

    where = "the end of this chunk"

    def __init__(self, study: Study, known: int) -> None:
        super().__init__(
            BarColumn(bar_width=24),
            literal_column("{task.completed:,.0f} of {task.total:,.0f}"),
            literal_column("{task.fields[rate]}"),
            literal_column("{task.fields[left]}"),
            literal_column("{task.fields[estimate]}"),
            total=study.samples,
            fields=["rate", "left", "estimate"],
        )
        self.study, self.known, self.shown = study, known, _shown_output(study)

    def __call__(self, running: RunningStatistics) -> None:
        """Record the finished samples.

        Raises:
            KeyboardInterrupt: Ctrl-C was pressed and samples remain.
        """
        if running.samples > self.known:
            self.mark(running.samples)
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
        """Confidence level of the estimate."""
        return LEVEL if self.study.stop is None else self.study.stop.level

    def expected(self, running: RunningStatistics) -> int:
        """Expected final number of samples; from ``half_width ~ n^-1/2`` if a confidence interval is requested."""
        rule = self.study.stop
        if rule is None or running.stopped:
            return running.samples if running.stopped else self.study.samples
        half = float(np.max(running.moments(rule.output).half_width(rule.level)))
        if not math.isfinite(half):
            return self.study.samples
        needed = running.samples * (half / rule.half_width) ** 2
        return int(min(self.study.samples, max(needed, rule.min_samples, running.samples)))


def _shown_output(study: Study) -> str:
    """Name of the displayed output: that of the stopping rule, else a failure, else the smallest output."""
    if study.stop is not None:
        return study.stop.output
    if study.failures:
        return FAILED + next(iter(study.failures))
    kinds = study.columns()
    return min(study.outputs or kinds, key=lambda name: kinds[name].size)
