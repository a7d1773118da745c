"""What ends the command early: one line for the user, and an exit code."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from importlib.util import find_spec

FAILED = 1
BAD_INPUT = 2
DIVERGED = 3
INTERRUPTED = 130

SHOWN = 12
"""Names in a message."""


class Stop(Exception):
    """The command ends here with this line.

    Attributes:
        code: Of the exit.
    """

    code = FAILED


class BadInput(Stop):
    """The user gave what the command cannot take."""

    code = BAD_INPUT


def needs(package: str, extra: str, what: str) -> None:
    """Ends the command now, not after an hour of simulation, where a package is missing.

    Args:
        package: Its name.
        extra: The extra of lgsim that brings it.
        what: What is made by it.

    Raises:
        Stop: it is missing.
    """
    if find_spec(package) is None:
        raise Stop(f"{what} needs the package {package}, which is missing: pip install 'lgsim[{extra}]'")


def unknown(what: str, name: str, names: Sequence[str]) -> BadInput:
    """The error for a name that is none of some names: the nearest of them, or else all.

    Args:
        what: Who takes the name and what it should be, e.g. "--q: expected names of joints".
        name: What came.
        names: What there is.
    """
    near = get_close_matches(name, names, n=3, cutoff=0.6)
    hint = f"did you mean {' or '.join(map(repr, near))}?" if near else f"there are {listed(names)}"
    return BadInput(f"{what}, got {name!r}; {hint}")


def listed(names: Sequence[str]) -> str:
    """Names for a message; of many the first ones."""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def counted(count: int, what: str) -> str:
    """A number of things: "1 state", "2 states"."""
    return f"{count} {what}{'s' * (count != 1)}"


def one_line(error: BaseException) -> str:
    """The text of an error without line breaks."""
    return " ".join(str(error).split())
