"""Means with confidence intervals, as text and as table rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lgsim.montecarlo import Moments
from lgsim.montecarlo.results import RunningStatistics
from lgsim.montecarlo.study import FAILED

LEVEL = 0.95
"""Default confidence level."""


class SpreadRow(NamedTuple):
    """Statistics of one component of an output, in the unit of the output.

    Attributes:
        output: Name of the output.
        entry: Flat index of the component; None for a scalar output.
        half_width: Half width of the confidence interval of the mean.
    """

    output: str
    entry: int | None
    mean: float
    half_width: float
    std: float
    low: float
    high: float


def estimate(name: str, moments: Moments, level: float) -> str:
    """Mean and half width of its confidence interval, "0.331 ± 0.012 (95 %)"; for an array the widest interval.

    A failure has the interval of Clopper and Pearson, valid for few or no failures: "0.004 (0.001 to 0.012, 95 %)".

    Args:
        name: Name of the output, or "failed " with the name of a failure.
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
    """The confidence interval of a failure probability: "0.001 to 0.012".

    Args:
        moments: Moments of the failure, whose mean is its probability.
    """
    low, high = moments.interval(level)
    return f"{low:.2g} to {high:.2g}"


def spread_rows(running: RunningStatistics, level: float) -> list[SpreadRow]:
    """Statistics of the components of all outputs, with confidence intervals of the means."""
    rows: list[SpreadRow] = []
    for name in running.names:
        m = running.moments(name)
        parts = [np.ravel(x) for x in (m.mean, m.half_width(level), m.std, m.low, m.high)]
        rows += [
            SpreadRow(name, k if m.mean.size > 1 else None, *(float(x[k]) for x in parts)) for k in range(m.mean.size)
        ]
    return rows
