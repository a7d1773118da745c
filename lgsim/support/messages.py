"""Parts of error messages: similar names, lists, counts, one line."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from lgsim.support.printable import printable

LISTED_NAMES = 12
"""The largest number of names that a message lists."""


def unknown_name(what: str, name: str, names: Sequence[str]) -> str:
    """The message for an unknown name: ``what, got 'name'; did you mean 'names'?``.

    Args:
        what: The argument and what it should be, such as "--q: expected names of joints".
        name: The name that was given.
        names: The valid names; they are listed if none is similar.
    """
    return f"{what}, got {name!r}; {hint(name, names)}"


def unknown_choice(what: str, name: str, names: Sequence[str]) -> str:
    """The message for a name that is not one of a few, all of which it lists once.

    Args:
        what: The argument, such as "--format: expected one of".
        name: The name that was given.
        names: The valid names.
    """
    near = _near(name, names)
    return f"{what} {', '.join(names)}, got {name!r}{'; ' * bool(near)}{near}"


def hint(name: str, names: Sequence[str]) -> str:
    """The names spelled like ``name`` as a question, or else a list of all names."""
    return _near(name, names) or f"there are {listed(names)}"


def _near(name: str, names: Sequence[str]) -> str:
    """The names spelled like ``name`` as a question; empty if there are none."""
    near = get_close_matches(name, names, n=3, cutoff=0.6)
    return f"did you mean {' or '.join(map(repr, near))}?" if near else ""


def listed(names: Sequence[str]) -> str:
    """Names separated by commas; beyond ``LISTED_NAMES`` only the first ones and the number of the others."""
    more = f" and {len(names) - LISTED_NAMES} more" if len(names) > LISTED_NAMES else ""
    return ", ".join(map(printable, names[:LISTED_NAMES])) + more


def counted(count: int, what: str) -> str:
    """A number with its noun: "1 state", "2 states"."""
    return f"{count} {what}{'s' * (count != 1)}"


def one_line(error: BaseException) -> str:
    """The text of an error in one line of printable characters."""
    return printable(" ".join(str(error).split()))
