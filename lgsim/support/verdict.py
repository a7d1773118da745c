"""The verdict of a fit, a solve or a design: one of six outcomes, with the names that belong to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from lgsim.support.messages import counted
from lgsim.support.printable import printable

NAMED = 3
"""The largest number of bounds and combinations that a sentence names."""

RESOLVED = 0.05
"""The largest estimated integration error of a motion that has converged, as a fraction of the motion."""


class Outcome(Enum):
    """The outcomes of a fit, a solve or a design; the values are texts for messages."""

    CONVERGED = "converged"
    NOT_DETERMINED = "converged, with combinations that the data do not determine"
    AT_BOUND = "converged at a bound"
    DOES_NOT_FIT = "converged to parameters that do not explain the data"
    STOPPED = "stopped"
    FAILED = "failed"


@dataclass(frozen=True)
class Verdict:
    """The verdict of a search.

    Attributes:
        outcome: The outcome; if two apply, the later one in ``Outcome``.
        sentence: The outcome as a sentence with names and numbers, without a full stop.
        bounds: The active bounds, by name.
        undetermined: The combinations that the prior determines more than the data do, each with the prior's share of
            the information, from 0.5 to 1; NaN where neither determines it.
        sample: The first sample at which the search failed, if there is one.
        remarks: Further remarks on the use of the results.
    """

    outcome: Outcome
    sentence: str
    bounds: tuple[str, ...] = ()
    undetermined: tuple[tuple[str, float], ...] = ()
    sample: int | None = None
    remarks: tuple[str, ...] = ()

    @property
    def converged(self) -> bool:
        """True if the search converged, at a bound or not, and the result explains the data."""
        return self.outcome not in (Outcome.DOES_NOT_FIT, Outcome.STOPPED, Outcome.FAILED)

    def __str__(self) -> str:
        """The sentence and the remarks in one line."""
        return printable("; ".join((self.sentence, *self.remarks)))


def converged(
    bounds: Sequence[str],
    bound: str,
    undetermined: Sequence[tuple[str, float]],
    remainder: str,
    remarks: tuple[str, ...] = (),
) -> Verdict:
    """The verdict of a search that converged.

    Args:
        bound: The noun for one of the bounds, such as "limit".
        remainder: The part of the sentence about undetermined combinations.
    """
    sentence = "converged"
    if bounds:
        sentence += f" at {counted(len(bounds), bound)} ({first_names(bounds)})"
    if undetermined:
        sentence += f"; {remainder}"
    outcome = Outcome.AT_BOUND if bounds else Outcome.NOT_DETERMINED if undetermined else Outcome.CONVERGED
    return Verdict(outcome, sentence, tuple(bounds), tuple(undetermined), remarks=remarks)


def first_names(names: Sequence[str]) -> str:
    """The first of several names, and the number of the others."""
    more = f", and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more
