"""Names that are not taken."""

from __future__ import annotations


def unused_name(name: str, taken: set[str]) -> str:
    """A name that is not taken, with "_" behind it as often as needed; it is taken from then on."""
    while name in taken:
        name += "_"
    taken.add(name)
    return name
