"""The error for a name that is none of some names."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches


def unknown(what: str, name: str, names: Sequence[str]) -> ValueError:
    """The nearest of the names, or else all.

    Args:
        what: Who takes the name and what it should be.
        name: What came.
        names: What there is.
    """
    near = get_close_matches(name, names, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(map(repr, near))}?" if near else f"there are {', '.join(names)}"
    return ValueError(f"{what}, got {name!r}; {hint}")
