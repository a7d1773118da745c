"""The error that the steps of the integration bring into what a study prints, beside its statistical intervals.

``failed`` is a sample that does what it should not, ``diverged`` one that is not finite, and ``not resolved`` a number
of the study that is more wrong by the steps than the number of samples leaves it uncertain.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from lgsim.support.messages import counted

FORMAT = "lgsim step error 1"
CONFIDENCE = 0.95
"""Of the intervals that errors of the steps are compared with."""
DIGITS = 5e-6
"""Half of the fifth digit, the last one that is printed, as a part of a number."""
SHOWN = 3
"""The number of numbers that are not resolved and named in a sentence."""

Real = Float[np.ndarray, "*shape"]


class StatisticStepError(NamedTuple):
    """The error of the steps of a statistic, number by number, in the unit of the statistic.

    Attributes:
        error: Estimate of the size of the error that the steps bring, NaN where there is none. Where no sample that was
            run again changes, it is what that leaves open, 3/k of the range, but no more than the limit.
        limit: Half width of the statistical interval (95 %); where that is smaller, half of the fifth digit of the
            statistic, or what rounding does to a motion.
        seen: Whether any sample that was run again changes the statistic.
    """

    error: Real
    limit: Real
    seen: Bool[np.ndarray, "*shape"]

    @property
    def resolved(self) -> Bool[np.ndarray, "*shape"]:
        """Whether the error of the steps is within the limit; false where the error is unknown."""
        return np.asarray(self.error <= self.limit)


class OutputStepError(NamedTuple):
    """The error of the steps of the statistics of an output.

    Attributes:
        mean: Of the mean, of the output's shape.
        quantiles: Of the quantiles by level; none where samples have weights.
        order: The order by which the output converges, number by number, from steps of dt, dt/2 and dt/4; NaN where the
            differences are those of rounding, or of whole numbers.
    """

    mean: StatisticStepError
    std: StatisticStepError
    quantiles: dict[float, StatisticStepError]
    order: Real

    def statistics(self) -> Iterator[tuple[str, StatisticStepError]]:
        """(name, error) of each statistic."""
        yield "mean", self.mean
        yield "standard deviation", self.std
        for level, each in self.quantiles.items():
            yield f"quantile {level:g}", each


class VerdictStepError(NamedTuple):
    """How the steps change a verdict on samples: that they failed, or that they diverged.

    Attributes:
        flipped: Share of the samples run again whose verdict is another one with dt/2.
        probability: The error of the verdict's probability, an array without axes: of ``OutOfBounds`` at least the
            share of samples that are nearer to a bound than their error; else, where no verdict of k changed, 3/k, but
            no more than the limit.
    """

    flipped: float
    probability: StatisticStepError


@dataclass(frozen=True)
class StudyStepError:
    """The error of the steps of everything that a study prints, from samples that were run again by shorter steps.

    The error of a sample's number is ``(y(dt) - y(dt/2)) r / (r - 1)``, with ``r = 2^order`` of the method or the ratio
    of the differences from dt to dt/2 and from dt/2 to dt/4 where that is smaller (Richardson). An order that is more
    than one below the method's triples it. The error of a statistic is what these errors do to it, with the uncertainty
    (95 %) that comes from running only some samples again.

    Attributes:
        dt: The step, s.
        halved: Number of samples that were run again with dt/2.
        quartered: Number of these that were run with dt/4 too.
        advice: What to do, a sentence; empty where all is resolved.
    """

    method: str
    order: int
    dt: float
    samples: int
    halved: int
    quartered: int
    outputs: dict[str, OutputStepError]
    failures: dict[str, VerdictStepError]
    diverged: VerdictStepError
    advice: str = ""

    @property
    def resolved(self) -> bool:
        """Whether the steps bring less error into every statistic than its statistical interval is wide."""
        return not self.faults

    @property
    def faults(self) -> int:
        """The number of statistics that are not resolved."""
        return sum(1 for _ in self.unresolved())

    @property
    def statistics(self) -> int:
        """The number of statistics, those of each number of each output counted."""
        numbers = sum(each.error.size for output in self.outputs.values() for _, each in output.statistics())
        return numbers + len(self.failures) + 1

    def unresolved(self) -> Iterator[tuple[str, int | None, str, float, float]]:
        """(output, entry, statistic, error, limit) of each number that is not resolved.

        The entry is the place of the number in its output, flattened, None where it is one number.
        """
        for name, each in self.verdicts():
            error, limit, _ = each.probability
            if not each.probability.resolved:
                yield name, None, "probability", float(error), float(limit)
        for name, output in self.outputs.items():
            for what, each in output.statistics():
                for k in np.flatnonzero(~each.resolved):
                    entry = int(k) if each.error.size > 1 else None
                    yield name, entry, what, float(each.error.flat[k]), float(each.limit.flat[k])

    def verdicts(self) -> Iterator[tuple[str, VerdictStepError]]:
        """(name, change) of each verdict: "failed <name>" and "diverged"."""
        for name, each in self.failures.items():
            yield f"failed {name}", each
        yield "diverged", self.diverged

    def of_number(self, output: str, entry: int | None) -> tuple[float, bool] | None:
        """The error of the steps of a mean or of a probability, and whether all statistics of the number are resolved.

        Args:
            output: Name of an output, or of a failure as ``"failed <name>"``.
            entry: The place of the number in the output, flattened; None where it is one number.

        Returns:
            The two; None where there is no such output.
        """
        verdict = dict(self.verdicts()).get(output)
        if verdict is not None:
            return float(verdict.probability.error), bool(verdict.probability.resolved)
        if output not in self.outputs:
            return None
        k = entry or 0
        found = self.outputs[output]
        return float(found.mean.error.flat[k]), all(bool(each.resolved.flat[k]) for _, each in found.statistics())

    @property
    def largest_share(self) -> tuple[float, str]:
        """The largest part of a limit that an error of the steps takes, and the number that it belongs to."""
        worst, where = 0.0, ""
        for name, each in self.verdicts():
            share = _share(each.probability)
            if share > worst and each.probability.seen:
                worst, where = float(share), name
        for name, output in self.outputs.items():
            for what, each in output.statistics():
                share = np.where(each.seen, _share(each), 0.0)
                if share.size and np.max(share) > worst:
                    k = int(np.argmax(share))
                    worst, where = float(np.max(share)), f"{what} of {_number(name, k if share.size > 1 else None)}"
        return worst, where

    @property
    def seen_order(self) -> float:
        """The median of the orders of all numbers; NaN where none shows one."""
        orders = np.concatenate([np.ravel(each.order) for each in self.outputs.values()] or [np.zeros(0)])
        orders = orders[np.isfinite(orders)]
        return float(np.median(orders)) if len(orders) else float("nan")

    def summary(self) -> str:
        """A sentence: whether the study is resolved, how sure that is, and what to do where it is not."""
        if not self.resolved:
            return f"{self._fault()} {self.advice}".rstrip()
        share, where = self.largest_share
        by = f"by {self._checked()}"
        order = f", order {self.seen_order:.2g} of {self.order}" if np.isfinite(self.seen_order) else ""
        if not where:
            return f"error of the steps: none that is seen, {by}"
        return f"error of the steps: at most {_rounded(share)} of the statistical interval ({where}), {by}{order}"

    def _checked(self) -> str:
        """The samples that were run again, in words."""
        return f"{counted(self.halved, 'sample')} with dt/2 and {self.quartered:,} with dt/4"

    def _fault(self) -> str:
        """What is not resolved, in a sentence."""
        found = sorted(self.unresolved(), key=lambda row: -_ratio(row[3], row[4]))
        rows = [f"{what} of {_number(name, entry)}: {_rounded(error)} against {_rounded(limit)}"
                for name, entry, what, error, limit in found[:SHOWN]]  # fmt: skip
        more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
        text = (
            f"not resolved: steps of {self.dt:g} s by {self.method} bring more error than the statistical interval into"
            f" {len(found)} of {self.statistics} statistics ({'; '.join(rows)}{more}; by {self._checked()})."
        )
        flips = [f"{100 * each.flipped:.3g} % {words}" for words, each in self._flips() if each.flipped > 0]
        return f"{text} With dt/2 the verdict changes: {', '.join(flips)}." if flips else text

    def _flips(self) -> Iterator[tuple[str, VerdictStepError]]:
        """(words, change) of each verdict."""
        for name, each in self.failures.items():
            yield f"of the samples for {name!r}", each
        yield "for divergence", self.diverged

    def to_plain(self) -> dict[str, Any]:
        """The same as numbers, texts and lists, as of a JSON file; ``from_plain`` reads it."""
        plain = {name: getattr(self, name) for name in
                 ("method", "order", "dt", "samples", "halved", "quartered", "advice")}  # fmt: skip
        plain["outputs"] = {name: _plain_output(each) for name, each in self.outputs.items()}
        plain["failures"] = {name: _plain_verdict(each) for name, each in self.failures.items()}
        return {"format": FORMAT, **plain, "diverged": _plain_verdict(self.diverged)}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> StudyStepError:
        """The error of the steps that ``to_plain`` wrote.

        Raises:
            ValueError: it is something else.
        """
        try:
            rest = dict(plain)
            if rest.pop("format") != FORMAT:
                raise ValueError(f"expected the format {FORMAT!r}, got {plain['format']!r}")
            if not all(isinstance(rest[name], str) for name in ("method", "advice")):
                raise ValueError("expected texts for the method and the advice")
            for name in ("order", "samples", "halved", "quartered"):
                if type(rest[name]) is not int or rest[name] < 0:
                    raise ValueError(f"expected a whole number of at least zero for {name}")
            rest["dt"] = float(rest["dt"])
            rest["outputs"] = {name: _read_output(each) for name, each in rest["outputs"].items()}
            rest["failures"] = {name: _read_verdict(each) for name, each in rest["failures"].items()}
            rest["diverged"] = _read_verdict(rest["diverged"])
            return cls(**rest)
        except (KeyError, TypeError, AttributeError, OverflowError) as error:
            raise ValueError(f"expected an error of the steps of a study, got {type(error).__name__}") from None


def _ratio(error: float, limit: float) -> float:
    """How many times the limit an error is; infinite where it is unknown."""
    if not error <= limit:
        return error / limit if limit > 0 and np.isfinite(error) else float("inf")
    return error / limit if limit > 0 else 0.0


def _share(each: StatisticStepError) -> Real:
    """The parts of the limits that the errors take."""
    with np.errstate(divide="ignore", invalid="ignore"):
        share = each.error / each.limit
    return np.asarray(np.where(each.error > 0, share, np.where(np.isnan(each.error), np.inf, 0.0)))


def _number(name: str, entry: int | None) -> str:
    """The name of a number of an output."""
    return name if entry is None else f"{name}[{entry}]"


def _rounded(x: float) -> str:
    """A number to two digits; "unknown" for NaN."""
    return "unknown" if np.isnan(x) else f"{x:.2g}"


def _plain_statistic(each: StatisticStepError) -> list[Any]:
    return [np.asarray(x).tolist() for x in each]


def _read_statistic(plain: list[Any]) -> StatisticStepError:
    error, limit, seen = plain
    found = StatisticStepError(np.asarray(error, float), np.asarray(limit, float), np.asarray(seen, bool))
    if not found.error.shape == found.limit.shape == found.seen.shape:
        raise ValueError("expected error, limit and what was seen of one shape")
    return found


def _plain_output(each: OutputStepError) -> dict[str, Any]:
    levels = {repr(level): _plain_statistic(x) for level, x in each.quantiles.items()}
    mean, std = _plain_statistic(each.mean), _plain_statistic(each.std)
    return {"mean": mean, "std": std, "quantiles": levels, "order": np.asarray(each.order).tolist()}


def _read_output(plain: Mapping[str, Any]) -> OutputStepError:
    levels = {float(level): _read_statistic(x) for level, x in plain["quantiles"].items()}
    mean, std = _read_statistic(plain["mean"]), _read_statistic(plain["std"])
    found = OutputStepError(mean, std, levels, np.asarray(plain["order"], float))
    if {each.error.shape for _, each in found.statistics()} != {found.order.shape}:
        raise ValueError("expected statistics of one shape")
    return found


def _plain_verdict(each: VerdictStepError) -> list[Any]:
    return [each.flipped, _plain_statistic(each.probability)]


def _read_verdict(plain: list[Any]) -> VerdictStepError:
    found = VerdictStepError(float(plain[0]), _read_statistic(plain[1]))
    if found.probability.error.shape:
        raise ValueError("expected one number for a probability")
    return found
