"""Integration error of the statistics of a study, relative to their statistical intervals.

``failed`` is a sample that meets a failure criterion, ``diverged`` one that is not finite. A statistic is ``not
resolved`` if its integration error exceeds its statistical uncertainty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from lgsim.montecarlo.study import DIVERGED, FAILED
from lgsim.simulation.accuracy.advice import order_text
from lgsim.simulation.accuracy.error_estimate import ErrorEstimate
from lgsim.support.messages import counted

FORMAT = "lgsim step error 1"
CONFIDENCE = 0.95
"""Confidence level of the intervals with which integration errors are compared."""
DIGITS = 5e-6
"""Half of the fifth digit, the last one that is printed, relative to a number."""
SHOWN = 3
"""Number of unresolved statistics that a sentence names."""
MEAN, DEVIATION, QUANTILE, PROBABILITY = "mean", "standard deviation", "quantile ", "probability"
"""Names of statistics; that of a quantile ends with its level."""
_PLAIN = ("method", "order", "dt", "samples", "halved", "quartered", "advice")


@dataclass(frozen=True, kw_only=True)
class StatisticError(ErrorEstimate):
    """The integration error of a statistic, elementwise, in the unit of the statistic.

    Attributes:
        value: Estimated absolute error, NaN without samples. If none of k repeated samples changes, it is the remaining
            uncertainty, 3/k of the range (95 %), for other statistics than means at most the tolerance. For the
            probability of ``OutOfBounds`` it is at least the fraction of samples that are closer to a bound than their
            error.
        tolerance: Half width of the statistical interval (95 %), but at least half of the fifth digit of the statistic,
            and the effect of rounding on a motion.
        order: The observed order of convergence of the output, elementwise, from steps of dt, dt/2 and dt/4; NaN where
            the differences are rounding, or for integers.
        seen: True if any repeated sample changes the statistic.
    """

    seen: Bool[np.ndarray, ...]

    @property
    def within(self) -> Bool[np.ndarray, ...]:
        """A mask of the errors within the tolerance, and of those not observed; false where the error is unknown."""
        return np.asarray(self.value <= self.tolerance) | self.open

    @property
    def open(self) -> Bool[np.ndarray, ...]:
        """A mask of the errors that no repeated sample shows, but that may exceed the tolerance."""
        return ~self.seen & np.asarray(self.value > self.tolerance)

    @property
    def resolved(self) -> bool:
        """True if all errors are within the tolerance."""
        return bool(self.within.all())


Statistics = dict[str, StatisticError]
"""The errors of the statistics of an output by name: mean and, unless it is Boolean, standard deviation and, without
weights, quantiles.
"""


@dataclass(frozen=True)
class StudyStepError:
    """The integration error of all statistics of a study, from samples that were run again with shorter steps.

    The error of a sample's output is ``(y(dt) - y(dt/2)) r / (r - 1)`` (Richardson). Here ``r = 2^order`` of the
    method, or the ratio of the differences from dt to dt/2 and from dt/2 to dt/4 if that is smaller. An order that is
    more than one below the method's triples the error. The error of a statistic follows from these errors, with the
    uncertainty (95 %) from repeating only some samples.

    Attributes:
        dt: The step, s.
        halved: Number of samples that were run again with dt/2.
        quartered: Number of these that were run with dt/4 too.
        outputs: The errors of the statistics of each output.
        verdicts: The errors of the probabilities of the verdicts on samples: "failed <name>" and "diverged".
        flipped: Fraction of the repeated samples whose verdict changes with dt/2, by the same names.
        advice: A recommendation in one sentence; empty if all statistics are resolved.
    """

    method: str
    order: int
    dt: float
    samples: int
    halved: int
    quartered: int
    outputs: dict[str, Statistics]
    verdicts: Statistics
    flipped: dict[str, float]
    advice: str = ""

    @property
    def resolved(self) -> bool:
        """True if every statistic has a smaller integration error than its statistical interval."""
        return not self.faults

    @property
    def faults(self) -> int:
        """The number of statistics that are not resolved."""
        return sum(1 for _ in self.unresolved())

    def open(self) -> Iterator[tuple[str, int | None, str, float, float]]:
        """As ``unresolved``, for the statistics whose error is not observed, but may exceed the tolerance."""
        yield from self._rows(lambda each: each.open)

    @property
    def statistics(self) -> int:
        """The number of statistics, counting each entry of each output."""
        return sum(each.value.size for _, _, each in self._all())

    def unresolved(self) -> Iterator[tuple[str, int | None, str, float, float]]:
        """(output, entry, statistic, error, tolerance) of each unresolved statistic.

        The entry is the flat index in its output, None for a scalar.
        """
        yield from self._rows(lambda each: ~each.within)

    def _rows(
        self, chosen: Callable[[StatisticError], Bool[np.ndarray, ...]]
    ) -> Iterator[tuple[str, int | None, str, float, float]]:
        """The rows of ``unresolved`` of some statistics."""
        for name, what, each in self._all():
            for k in np.flatnonzero(chosen(each)):
                entry = int(k) if each.value.size > 1 else None
                yield name, entry, what, float(each.value.flat[k]), float(each.tolerance.flat[k])

    def _all(self) -> Iterator[tuple[str, str, StatisticError]]:
        """(verdict or output, statistic, error) of all statistics."""
        for name, each in self.verdicts.items():
            yield name, PROBABILITY, each
        for name, statistics in self.outputs.items():
            for what, each in statistics.items():
                yield name, what, each

    def mean_error(self, output: str, entry: int | None) -> str:
        """Format the error of a mean or of a probability: "3e-07", "0.12, not resolved", or "–" if the output does not
        exist.

        It is not resolved if any statistic of the entry, its standard deviation or a quantile, is not.

        Args:
            output: The name of an output, or "failed " with the name of a failure.
            entry: The flat index in the output; None for a scalar.
        """
        found = [each for name, _, each in self._all() if name == output]
        if not found:
            return "–"
        k = entry or 0
        if found[0].open.flat[k]:
            return f"up to {_rounded(found[0].value.flat[k])}, not shown"
        text = _rounded(found[0].value.flat[k])
        return text if all(each.within.flat[k] for each in found) else f"{text}, not resolved"

    @property
    def largest_share(self) -> tuple[float, str]:
        """The largest ratio of an integration error to its tolerance, and the statistic that it belongs to."""
        worst, where = 0.0, ""
        for name, what, each in self._all():
            share = np.where(each.seen, each.shares, 0.0)
            if share.size and np.max(share) > worst:
                k = int(np.argmax(share))
                number = f"{what} of {_number(name, k if share.size > 1 else None)}"
                worst, where = float(np.max(share)), name if what == PROBABILITY else number
        return worst, where

    @property
    def seen_order(self) -> float:
        """The median of the observed orders; NaN without samples."""
        orders = np.concatenate([np.ravel(each[MEAN].order) for each in self.outputs.values()] or [np.zeros(0)])
        orders = orders[np.isfinite(orders)]
        return float(np.median(orders)) if len(orders) else float("nan")

    def summary(self) -> str:
        """The conclusion in one sentence, with a remedy if the study is not resolved."""
        by = f"by {counted(self.halved, 'sample')} with dt/2 and {self.quartered:,} with dt/4"
        if not self.resolved:
            return f"not resolved: {self._fault(by)} {self.advice}".rstrip()
        share, where = self.largest_share
        if not where:
            return f"integration error: none observed, {by}{self._open()}"
        order = order_text(self.seen_order, self.order)
        return (
            f"integration error: at most {_rounded(share)} of the statistical interval ({where}),"
            f" {by}{order}{self._open()}"
        )

    def _open(self) -> str:
        """A clause about the statistics whose error is not shown; empty if there are none."""
        found = sorted(self.open(), key=lambda row: -row[3] / row[4] if row[4] > 0 else -np.inf)
        if not found:
            return ""
        name, entry, what, error, tolerance = found[0]
        more = f" and {len(found) - 1} more" if len(found) > 1 else ""
        # the number of repeated samples grows with the study, the interval falls with its root
        needed = f"; {_needed(self.samples * (error / tolerance) ** 2)} would show it" if tolerance > 0 else ""
        return (
            f"; not shown for the {what} of {_number(name, entry)}{more}: no repeated sample changes it, up to"
            f" {_rounded(error)} is possible, the statistical interval is {_rounded(tolerance)}{needed}"
        )

    def _fault(self, by: str) -> str:
        """A sentence about the statistics that are not resolved."""
        found = sorted(self.unresolved(), key=lambda row: -row[3] / row[4] if row[4] > 0 and row[3] >= 0 else -np.inf)
        rows = [
            f"{what} of {_number(name, entry)}: {_rounded(error)} against {_rounded(tolerance)}"
            for name, entry, what, error, tolerance in found[:SHOWN]
        ]
        more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
        text = (
            f"with dt = {self.dt:g} s and {self.method} the integration error exceeds the statistical interval of"
            f" {len(found)} of {self.statistics} statistics ({'; '.join(rows)}{more}; {by})."
        )
        flips = [f"{100 * flipped:.3g} % {_of(name)}" for name, flipped in self.flipped.items() if flipped > 0]
        return f"{text} With dt/2 the verdict changes: {', '.join(flips)}." if flips else text

    def to_plain(self) -> dict[str, Any]:
        """Convert to numbers, strings and lists for a JSON file; ``from_plain`` reads them."""
        plain = {name: getattr(self, name) for name in _PLAIN}
        verdicts = {name: [self.flipped[name], _plain(each)] for name, each in self.verdicts.items()}
        diverged = verdicts.pop(DIVERGED)
        failures = {name.removeprefix(FAILED): each for name, each in verdicts.items()}
        outputs = {}
        for name, each in self.outputs.items():
            levels = {repr(float(x.removeprefix(QUANTILE))): _plain(each[x]) for x in each if x.startswith(QUANTILE)}
            order = np.asarray(each[MEAN].order).tolist()
            outputs[name] = {"mean": _plain(each[MEAN]), "quantiles": levels, "order": order}
            if DEVIATION in each:
                outputs[name]["std"] = _plain(each[DEVIATION])
        return {"format": FORMAT, **plain, "outputs": outputs, "failures": failures, "diverged": diverged}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> StudyStepError:
        """Read the output of ``to_plain``.

        Raises:
            ValueError: the input is something else.
        """
        try:
            if plain["format"] != FORMAT:
                raise ValueError(f"expected the format {FORMAT!r}, got {plain['format']!r}")
            if not all(isinstance(plain[name], str) for name in ("method", "advice")):
                raise ValueError("expected strings for the method and the advice")
            for name in ("order", "samples", "halved", "quartered"):
                if type(plain[name]) is not int or plain[name] < 0:
                    raise ValueError(f"expected a nonnegative integer for {name}")
            verdicts = {FAILED + name: each for name, each in plain["failures"].items()} | {DIVERGED: plain["diverged"]}
            order, fault = np.asarray(np.nan), "expected one number for a probability"
            return cls(
                plain["method"], plain["order"], float(plain["dt"]), plain["samples"], plain["halved"],
                plain["quartered"],
                outputs={name: _read_output(each) for name, each in plain["outputs"].items()},
                verdicts={name: _read(each, order, fault) for name, (_, each) in verdicts.items()},
                flipped={name: float(flipped) for name, (flipped, _) in verdicts.items()},
                advice=plain["advice"],
            )  # fmt: skip
        except (KeyError, TypeError, AttributeError, OverflowError) as error:
            raise ValueError(f"expected the integration error of a study, got {type(error).__name__}") from None


def _number(name: str, entry: int | None) -> str:
    """The name of an entry of an output."""
    return name if entry is None else f"{name}[{entry}]"


def _rounded(x: float) -> str:
    """A number to two digits; "unknown" for NaN."""
    return "unknown" if np.isnan(x) else f"{x:.2g}"


def _needed(samples: float) -> str:
    """A number of samples, rounded up to two digits, as a phrase."""
    digit = 10 ** max(0, int(np.log10(samples)) - 1)
    return f"about {int(np.ceil(samples / digit)) * digit:,} samples"


def _of(verdict: str) -> str:
    """The subject of a verdict, as a phrase."""
    return "for divergence" if verdict == DIVERGED else f"of the samples for {verdict.removeprefix(FAILED)!r}"


def _plain(each: StatisticError) -> list[Any]:
    return [np.asarray(x).tolist() for x in (each.value, each.tolerance, each.seen)]


def _read(plain: list[Any], order: Float[np.ndarray, ...], fault: str) -> StatisticError:
    """The error of a statistic; raises ValueError if the shapes of its arrays differ."""
    value, tolerance, seen = plain
    found = StatisticError(np.asarray(value, float), np.asarray(tolerance, float), order, seen=np.asarray(seen, bool))
    if not found.value.shape == found.tolerance.shape == found.seen.shape:
        raise ValueError("expected error, limit and observation of one shape")
    if found.value.shape != order.shape:
        raise ValueError(fault)
    return found


def _read_output(plain: Mapping[str, Any]) -> Statistics:
    order = np.asarray(plain["order"], float)
    levels = {f"{QUANTILE}{float(level):g}": each for level, each in plain["quantiles"].items()}
    named = {MEAN: plain["mean"], **({DEVIATION: plain["std"]} if "std" in plain else {}), **levels}
    return {name: _read(each, order, "expected statistics of one shape") for name, each in named.items()}
