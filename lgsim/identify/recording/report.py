"""Findings in recorded motion, and the report that gathers them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from textwrap import shorten

from lgsim.support.printable import printable

SHOWN = 5
"""Number of findings of one kind that are listed; further ones are counted."""

KINDS = (
    "unused column", "unnamed columns", "truncated file", "invalid time", "duplicate", "unordered time", "clock jump",
    "gap", "irregular clock", "missing values", "missing channel", "quaternion sign", "quaternion norm", "wraparound",
    "stuck encoder", "saturated torque", "missing velocity", "implausible units", "wrong sign", "shuffled columns",
    "delay", "motion does not fit the model", "short piece", "damaged file", "unused topic", "other clock",
    "outlier", "invalid number", "held samples", "smoothing", "inconsistent rate",
)  # fmt: skip
"""All kinds of findings. Files of recordings contain them, so that they are not renamed."""


@dataclass(frozen=True)
class Finding:
    """One remark on recorded motion.

    Attributes:
        kind: One of ``KINDS``.
        where: The channel and joint, e.g. "tau joint3", or "time".
        count: Number of affected samples, 0 if the finding is not about single samples.
        seen: The observation, as a phrase.
        done: The action, as a phrase.
        open: True if the data were not changed and the issue is unresolved: it needs another map, model or recording.

    Raises:
        ValueError: the kind is not one of ``KINDS``.
    """

    kind: str
    where: str
    count: int
    seen: str
    done: str
    open: bool = False

    def __post_init__(self) -> None:
        _check_kind(self.kind)

    def __str__(self) -> str:
        samples = f" ({self.count} sample{'s' * (self.count != 1)})" if self.count else ""
        return printable(f"{self.kind}, {self.where}: {self.seen}{samples}; {self.done}")


@dataclass(frozen=True)
class Report:
    """All findings of a recording; ``print(report)`` lists them, ``report + findings`` appends some.

    Attributes:
        findings: The findings in chronological order.
    """

    findings: tuple[Finding, ...] = ()

    def __iter__(self) -> Iterator[Finding]:
        """Iterate over the findings."""
        return iter(self.findings)

    def __len__(self) -> int:
        """Number of findings."""
        return len(self.findings)

    def __add__(self, more: Iterable[Finding]) -> Report:
        """A report with the findings of both."""
        return Report(self.findings + tuple(more))

    def of_kind(self, kind: str) -> tuple[Finding, ...]:
        """The findings of one kind.

        Raises:
            ValueError: the kind is not one of ``KINDS``.
        """
        _check_kind(kind)
        return tuple(finding for finding in self.findings if finding.kind == kind)

    @property
    def open(self) -> tuple[Finding, ...]:
        """The unresolved findings."""
        return tuple(finding for finding in self.findings if finding.open)

    def lines(self, most: int = SHOWN) -> list[str]:
        """The findings as lines, at most ``most`` of each kind, and one line that counts the others of it."""
        shown, rest = [], {}
        for finding in self.findings:
            key = finding.kind, finding.open
            rest.setdefault(key, []).append(finding)
            if len(rest[key]) <= most:
                shown.append(f"{'unresolved: ' if finding.open else ''}{finding}")
        for (kind, is_open), found in rest.items():
            if len(found) > most:
                others = ", ".join(dict.fromkeys(finding.where for finding in found[most:]))
                more = f"{kind}: {len(found) - most} more, of {shorten(others, 80, placeholder=' ...')}"
                shown.append(f"{'unresolved: ' if is_open else ''}{printable(more)}")
        return shown

    def __str__(self) -> str:
        if not self.findings:
            return "nothing to report"
        parts = {"unresolved": self.open, "done": tuple(f for f in self.findings if not f.open)}
        lines = {
            title: [line.removeprefix("unresolved: ") for line in Report(found).lines()]
            for title, found in parts.items()
        }
        return "\n".join("\n  ".join([f"{title}:", *found]) for title, found in lines.items() if found)


def _check_kind(kind: str) -> None:
    if kind not in KINDS:
        raise ValueError(f"kind: expected one of {', '.join(KINDS)}, got {kind!r}")
