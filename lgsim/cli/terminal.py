"""The terminal: results go to the standard output, all else to the standard error."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import typer
from rich.console import Console

WIDE = 120
"""The number of columns where the output is no terminal."""


def console(error: bool = False) -> Console:
    """Make a console that takes brackets and colons in names for what they are."""
    made = Console(stderr=error, markup=False, emoji=False, highlight=False)
    if not made.is_terminal:
        made.width = WIDE
    return made


def note(text: str) -> None:
    """Write one line that is no result."""
    typer.echo(f"{typer.style('note:', fg='yellow')} {' '.join(text.split())}", err=True)


@contextmanager
def warnings_as_notes() -> Iterator[None]:
    """Within the block, warnings of the library become notes, which are written at its end."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for warning in caught:
        note(str(warning.message))
