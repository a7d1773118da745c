"""The exit statuses of the command: one table for the code, the helps and the pages.

It imports nothing large: Ctrl-C has its status before anything else is loaded.
"""

from __future__ import annotations

from enum import Enum


class Exit(Enum):
    """Why the command ended.

    Attributes:
        status: The number that the shell sees; several reasons may share one.
        meaning: The reason in words.
        commands: The commands that end so, such as "montecarlo run"; empty for all.
    """

    DONE = 0, "done"
    FAILED = 1, "a package is missing or a file could not be written"
    CHECK_FAILED = 1, "the motion stopped early or a check of it failed", ("demo",)
    BAD_INPUT = 2, "bad input"
    OPEN_FINDINGS = 2, "the check of a record left findings to answer", ("identify",)
    DIVERGED = 3, "the motion diverged", ("simulate", "optimize")
    ALL_DIVERGED = 3, "all samples diverged", ("montecarlo run",)
    STOPPED = 3, "the motion stopped before its end", ("simulate",)
    NO_OPTIMUM = 3, "no optimum was found", ("optimize",)
    NOT_CONVERGED = 3, "the fit failed", ("identify",)
    NOT_RESOLVED = 3, "the steps are not resolved", ("simulate", "identify", "montecarlo run")
    INTERRUPTED = 130, "interrupted by Ctrl-C"

    def __init__(self, status: int, meaning: str, commands: tuple[str, ...] = ()) -> None:
        self.status, self.meaning, self.commands = status, meaning, commands


def epilog(command: str = "") -> str:
    """The exit statuses of a command in one line, for the end of its help.

    Args:
        command: The name of the command, such as "montecarlo run"; "" for all commands.
    """
    meanings: dict[int, list[str]] = {}
    for reason in Exit:
        if not command or not reason.commands or command in reason.commands:
            meanings.setdefault(reason.status, []).append(reason.meaning)
    return f"Exit status: {'; '.join(f'{status} {_either(texts)}' for status, texts in meanings.items())}."


def _either(texts: list[str]) -> str:
    return ", or ".join(filter(None, (", ".join(texts[:-1]), texts[-1])))
