"""How a search for numbers ended: one of five outcomes, with the names that belong to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from lgsim.support.messages import counted
from lgsim.support.printable import printable

NAMED = 3
"""Number of bounds and combinations that a sentence names."""

RESOLVED = 0.05
"""The estimated error of the steps, as a fraction of the motion, up to which the motion is resolved."""


class Outcome(Enum):
    """The ways in which a fit, a solve or a design ends; the value says it in words."""

    CONVERGED = "converged"
    NOT_DETERMINED = "converged, with combinations that the data do not determine"
    AT_BOUND = "converged at a bound"
    STOPPED = "stopped"
    FAILED = "failed"


@dataclass(frozen=True)
class Verdict:
    """The end of a search.

    Attributes:
        outcome: How it ended; of two that hold, the later one in the list of ``Outcome``.
        sentence: The same for people, with names and numbers, without a full stop.
        bounds: The bounds at which the numbers lie, by name.
        undetermined: The combinations that the prior decides more than the data do, each with the prior's share of what
            is known of it, from 0.5 to 1; NaN where neither decides.
        sample: The first sample at which it failed, where one is to blame.
        remarks: What else to know before the numbers are used.
    """

    outcome: Outcome
    sentence: str
    bounds: tuple[str, ...] = ()
    undetermined: tuple[tuple[str, float], ...] = ()
    sample: int | None = None
    remarks: tuple[str, ...] = ()

    @property
    def converged(self) -> bool:
        """Whether the search found what it looked for, at a bound or not."""
        return self.outcome not in (Outcome.STOPPED, Outcome.FAILED)

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
    """The verdict of a search that found what it looked for.

    Args:
        bound: What one of the bounds is called, such as "limit".
        remainder: What the sentence says of what is undetermined.
    """
    sentence = "converged"
    if bounds:
        sentence += f" at {counted(len(bounds), bound)} ({first_names(bounds)})"
    if undetermined:
        sentence += f"; {remainder}"
    outcome = Outcome.AT_BOUND if bounds else Outcome.NOT_DETERMINED if undetermined else Outcome.CONVERGED
    return Verdict(outcome, sentence, tuple(bounds), tuple(undetermined), remarks=remarks)


def first_names(names: Sequence[str]) -> str:
    """Some names of many, and the number of the others."""
    more = f", and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more
