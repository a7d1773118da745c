"""The error for all scenario files, with its place and the expected content."""

from __future__ import annotations

from pathlib import Path

from lgsim.support.printable import printable


class ScenarioError(ValueError):
    """A file that lgsim cannot process; the message is one line, ``file:line: key: expected ..., got ...``.

    Attributes:
        line: The line, counted from 1; None if the fault concerns the whole file.
        key: The key as written in the file, such as "reach[1].position", with the tables of an array counted from 1; ""
            if the fault belongs to no key.
        reason: The fault without its place.
    """

    def __init__(self, file: str | Path, line: int | None, key: str, reason: str) -> None:
        super().__init__(file, line, key, reason)
        self.file, self.line, self.key, self.reason = Path(file), line, key, reason

    def __str__(self) -> str:
        place = str(self.file) if self.line is None else f"{self.file}:{self.line}"
        return printable(": ".join(filter(None, (place, self.key, self.reason))))
