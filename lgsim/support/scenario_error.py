"""The error of every file that is read here: where it stands, and what was expected there."""

from __future__ import annotations

from pathlib import Path

from lgsim.support.printable import printable


class ScenarioError(ValueError):
    """A file that asks for what lgsim cannot do; its text is one line, ``file:line: key: expected ..., got ...``.

    Attributes:
        line: The line, counted from 1; None where the fault is the file as a whole.
        key: The key as it is written in the file, such as "reach[1].position", the tables of an array counted from 1;
            "" where the fault belongs to no key.
        reason: The fault without its place.
    """

    def __init__(self, file: str | Path, line: int | None, key: str, reason: str) -> None:
        super().__init__(file, line, key, reason)
        self.file, self.line, self.key, self.reason = Path(file), line, key, reason

    def __str__(self) -> str:
        place = str(self.file) if self.line is None else f"{self.file}:{self.line}"
        return printable(": ".join(filter(None, (place, self.key, self.reason))))
