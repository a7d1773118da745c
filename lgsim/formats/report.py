"""Reports of the readers: findings in a file that a user may want to know."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from lgsim.multibody.inertia import nearest_physical
from lgsim.support.printable import printable


class FileWarning(UserWarning):
    """A file has non-physical inertias, bodies that move without inertia, or suspicious units."""

    def __str__(self) -> str:
        return printable(super().__str__())


@dataclass(frozen=True)
class Finding:
    """One finding in a file.

    Attributes:
        line: Line of the element in the file, from 1.
        subject: Name of the element, e.g. "link 'hand'".
        text: Description of the finding.
    """

    line: int
    subject: str
    text: str

    def __str__(self) -> str:
        return printable(f"{self.line}: {self.subject} {self.text}")


@dataclass(frozen=True)
class Dropped(Finding):
    """A finding about a feature that affects the motion and that the model does not represent."""


@dataclass(frozen=True, eq=False)
class Inertia(Finding):
    """A finding about a link with a non-physical inertia.

    Attributes:
        parameters: Ten inertial parameters (10,) in the link's frame, as in the file.
    """

    parameters: Float[np.ndarray, " 10"]

    @property
    def nearest(self) -> Float[np.ndarray, " 10"]:
        """The nearest physical parameters; see ``lgsim.multibody.inertia.nearest_physical``."""
        return self.parameters if self.parameters[0] == 0 else nearest_physical(self.parameters)


@dataclass(frozen=True)
class Report:
    """All findings in a file; ``print(report)`` shows them.

    Attributes:
        inertias: Links with non-physical inertias.
        massless: Links that move without mass.
        thin: Moving links with all of their mass in a plane, on a line or in a point.
        units: Numbers that look like other units, such as degrees for radians.
        clashes: Names shared by two elements.
        assumed: Defaults for missing data.
        ignored: Elements and attributes that were not read.
    """

    file: str
    inertias: tuple[Inertia, ...] = ()
    massless: tuple[Finding, ...] = ()
    thin: tuple[Finding, ...] = ()
    units: tuple[Finding, ...] = ()
    clashes: tuple[Finding, ...] = ()
    assumed: tuple[Finding, ...] = ()
    ignored: tuple[Finding, ...] = ()

    def __iter__(self) -> Iterator[Finding]:
        """All findings, the most severe kind first."""
        for part in (self.inertias, self.massless, self.thin, self.units, self.clashes, self.assumed, self.ignored):
            yield from part

    def __len__(self) -> int:
        """Number of findings."""
        return len(list(iter(self)))

    @property
    def dropped(self) -> str:
        """One line about features that affect the motion and are not represented; "" if there are none."""
        found = [finding for finding in self.ignored if isinstance(finding, Dropped)]
        return printable(", ".join(_counted(same) for same in _alike(found)))

    @property
    def lines(self) -> list[str]:
        """Each finding as ``file:line: text``."""
        return [printable(f"{self.file}:{finding}") for finding in self]

    def __str__(self) -> str:
        if not len(self):
            return printable(f"{self.file}: nothing to report")
        titles = {
            "non-physical inertias": self.inertias,
            "moving links without mass": self.massless,
            "moving links without inertia about an axis, or whose mass is in a plane": self.thin,
            "numbers that look like other units": self.units,
            "names shared by a link and a joint": self.clashes,
            "defaults for missing data": self.assumed,
        }
        text = [self.file]
        for title, findings in titles.items():
            if findings:
                text += [f"  {title}:", *(f"    line {finding}" for finding in findings)]
        if self.ignored:
            text += ["  ignored:", *(f"    {line}" for line in _grouped(self.ignored))]
        return "\n".join(map(printable, text))


def _grouped(findings: Iterable[Finding]) -> Iterator[str]:
    """One line for all findings with the same text about elements of a kind."""
    for same in _alike(findings):
        lines = ", ".join(str(finding.line) for finding in same)
        if len(same) == 1:
            yield f"{same[0].text}: {same[0].subject}, line {lines}"
        else:
            yield f"{_counted(same)}; lines {lines}"


def _alike(findings: Iterable[Finding]) -> Iterator[list[Finding]]:
    """Groups of findings with the same text about elements of a kind, such as all about actuators."""
    groups: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        groups.setdefault((finding.subject.partition(" ")[0], finding.text), []).append(finding)
    yield from groups.values()


def _counted(same: Sequence[Finding]) -> str:
    """Findings of one text as a sentence: "2 actuators are not represented"."""
    kind, text = same[0].subject.partition(" ")[0], same[0].text
    if len(same) == 1:
        return f"{same[0].subject} {text}"
    plural = f"{kind[:-1]}ies" if kind.endswith("y") else f"{kind}s"
    verb, _, rest = text.partition(" ")
    return f"{len(same)} {plural} {({'is': 'are', 'has': 'have'}).get(verb, verb)} {rest}"
