"""Exit statuses of the command: one table for the code, the help texts and the documentation.

It imports no large package, so that Ctrl-C has a status before anything else is loaded.
"""

from __future__ import annotations

from enum import Enum


class Exit(Enum):
    """Reason why the command ended.

    Attributes:
        status: The exit status; several reasons may share one.
        meaning: Description of the reason.
        commands: The commands that end with this reason, such as "montecarlo run"; empty for all commands.
    """

    DONE = 0, "done"
    FAILED = 1, "a package is missing or a file could not be written"
    CHECK_FAILED = 1, "the motion stopped early or failed a check", ("demo",)
    BAD_INPUT = 2, "bad input"
    OPEN_FINDINGS = 2, "the check of the record found unresolved issues", ("identify", "estimate")
    DIVERGED = 3, "the motion diverged", ("simulate", "optimize", "estimate")
    ALL_DIVERGED = 3, "all samples diverged", ("montecarlo run",)
    PROBABILITY_OPEN = 3, "samples without a value leave the probability of a failure open", ("montecarlo run",)
    STOPPED = 3, "the motion stopped before its end", ("simulate",)
    NO_OPTIMUM = 3, "no optimum was found", ("optimize",)
    NOT_CONVERGED = 3, "the fit failed", ("identify",)
    DOES_NOT_FIT = 3, "the fit does not explain the record", ("identify",)
    NOT_CONSISTENT = 3, "the residuals are not as large as predicted", ("estimate",)
    NOT_RESOLVED = 3, "the result is not converged in the step size", ("simulate", "identify", "montecarlo run")
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
