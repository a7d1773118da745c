"""Reports of readers: the remarks on a file that a user may want to know."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from lgsim.multibody.inertia import nearest_physical
from lgsim.support.printable import printable


class FileWarning(UserWarning):
    """A file was read, but holds a body that cannot exist, one whose motion nothing resists, or odd units."""

    def __str__(self) -> str:
        return printable(super().__str__())


@dataclass(frozen=True)
class Finding:
    """One remark.

    Attributes:
        line: Line of the element in the file, from 1.
        subject: The element in words, e.g. "link 'hand'".
        text: What is odd about the element.
    """

    line: int
    subject: str
    text: str

    def __str__(self) -> str:
        return printable(f"{self.line}: {self.subject} {self.text}")


@dataclass(frozen=True)
class Dropped(Finding):
    """What acts on the motion in the file and not in the model."""


@dataclass(frozen=True, eq=False)
class Inertia(Finding):
    """A link whose inertia no body has.

    Attributes:
        parameters: The ten inertial parameters (10,) in the link's frame as the file has them.
    """

    parameters: Float[np.ndarray, " 10"]

    @property
    def nearest(self) -> Float[np.ndarray, " 10"]:
        """The nearest ten parameters that a body can have; see ``lgsim.multibody.inertia.nearest_physical``."""
        return self.parameters if self.parameters[0] == 0 else nearest_physical(self.parameters)


@dataclass(frozen=True)
class Report:
    """All remarks on a file; ``print(report)`` shows them.

    Attributes:
        inertias: Remarks on links whose inertia no body has.
        massless: Remarks on links that move without mass.
        units: Remarks on numbers that look like other units, such as degrees for radians.
        clashes: Remarks on names that two elements share.
        assumed: Remarks on what the file left open, and what was taken.
        ignored: Remarks on elements and attributes that were not read.
    """

    file: str
    inertias: tuple[Inertia, ...] = ()
    massless: tuple[Finding, ...] = ()
    units: tuple[Finding, ...] = ()
    clashes: tuple[Finding, ...] = ()
    assumed: tuple[Finding, ...] = ()
    ignored: tuple[Finding, ...] = ()

    def __iter__(self) -> Iterator[Finding]:
        """All remarks, the gravest kind first."""
        for part in (self.inertias, self.massless, self.units, self.clashes, self.assumed, self.ignored):
            yield from part

    def __len__(self) -> int:
        """The number of remarks."""
        return len(list(iter(self)))

    @property
    def dropped(self) -> str:
        """What acts on the motion in the file and not in the model, in one line; empty for nothing."""
        found = [finding for finding in self.ignored if isinstance(finding, Dropped)]
        return printable(", ".join(_counted(same) for same in _alike(found)))

    @property
    def lines(self) -> list[str]:
        """Each remark as ``file:line: text``."""
        return [printable(f"{self.file}:{finding}") for finding in self]

    def __str__(self) -> str:
        if not len(self):
            return printable(f"{self.file}: nothing to report")
        titles = {
            "inertias that no body has": self.inertias,
            "moving links without mass": self.massless,
            "numbers that look like other units": self.units,
            "names that a link and a joint share": self.clashes,
            "left open by the file": self.assumed,
        }
        text = [self.file]
        for title, findings in titles.items():
            if findings:
                text += [f"  {title}:", *(f"    line {finding}" for finding in findings)]
        if self.ignored:
            text += ["  ignored:", *(f"    {line}" for line in _grouped(self.ignored))]
        return "\n".join(map(printable, text))


def _grouped(findings: Iterable[Finding]) -> Iterator[str]:
    """One line for all remarks of the same text on elements of a kind."""
    for same in _alike(findings):
        lines = ", ".join(str(finding.line) for finding in same)
        if len(same) == 1:
            yield f"{same[0].text}: {same[0].subject}, line {lines}"
        else:
            yield f"{_counted(same)}; lines {lines}"


def _alike(findings: Iterable[Finding]) -> Iterator[list[Finding]]:
    """The remarks of the same text on elements of a kind, such as all on actuators, together."""
    groups: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        groups.setdefault((finding.subject.partition(" ")[0], finding.text), []).append(finding)
    yield from groups.values()


def _counted(same: Sequence[Finding]) -> str:
    """Remarks of one text as a sentence: "2 actuators are not represented"."""
    kind, text = same[0].subject.partition(" ")[0], same[0].text
    if len(same) == 1:
        return f"{same[0].subject} {text}"
    plural = f"{kind[:-1]}ies" if kind.endswith("y") else f"{kind}s"
    return f"{len(same)} {plural} {'are' + text.removeprefix('is') if text.startswith('is ') else text}"
