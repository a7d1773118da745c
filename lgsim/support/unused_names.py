"""Unused names."""

from __future__ import annotations


def unused_name(name: str, taken: set[str]) -> str:
    """A name that is not taken, with "_" appended as often as needed; it is then added to the taken names."""
    while name in taken:
        name += "_"
    taken.add(name)
    return name
