"""Means with their intervals of confidence, as text and as rows of a table."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from lgsim.montecarlo import Moments
from lgsim.montecarlo.results import RunningStatistics, wilson
from lgsim.montecarlo.step_error import StudyStepError
from lgsim.montecarlo.study import FAILED

LEVEL = 0.95
"""The level of confidence where a study names none."""


class SpreadRow(NamedTuple):
    """The spread of one number of an output, in the unit of the output.

    Attributes:
        output: The name of the output.
        entry: The place of the number in the output, flattened; None where the output is one number.
        half_width: Half of the interval of confidence of the mean.
    """

    output: str
    entry: int | None
    mean: float
    half_width: float
    std: float
    low: float
    high: float


def estimate(name: str, moments: Moments, level: float) -> str:
    """The mean and half of its interval of confidence: "0.331 ± 0.012 (95 %)"; of several numbers the widest interval.

    For a failure it is Wilson's interval, which holds where few or none have failed: "0.004 (0.001 to 0.012, 95 %)".

    Args:
        name: The name of the output, or "failed " with the name of a failure.
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
    """Wilson's interval of the probability of a failure: "0.001 to 0.012".

    Args:
        moments: The moments of the failure, whose mean is its probability.
    """
    low, high = wilson(float(moments.mean) * moments.count, moments.count, level)
    return f"{low:.2g} to {high:.2g}"


def step_error_text(found: StudyStepError, output: str, entry: int | None) -> str:
    """The error of the steps of a mean: "3e-07", "0.12, not resolved", or "–" where it is none of the study's numbers.

    It is not resolved where any statistic of the number, its standard deviation or a quantile, is not.

    Args:
        found: The error of the steps of the study.
        output: The name of an output, or "failed " with the name of a failure.
        entry: The place of the number in the output, flattened; None where it is one number.
    """
    number = found.of_number(output, entry)
    if number is None:
        return "–"
    error, resolved = number
    text = "unknown" if math.isnan(error) else f"{error:.2g}"
    return text if resolved else f"{text}, not resolved"


def spread_rows(running: RunningStatistics, level: float) -> list[SpreadRow]:
    """The spread of each number of each output.

    Args:
        level: The level of confidence of the means.
    """
    rows: list[SpreadRow] = []
    for name in running.names:
        m = running.moments(name)
        parts = [np.ravel(x) for x in (m.mean, m.half_width(level), m.std, m.low, m.high)]
        rows += [
            SpreadRow(name, k if m.mean.size > 1 else None, *(float(x[k]) for x in parts)) for k in range(m.mean.size)
        ]
    return rows
