"""Where the commands write to: results to the standard output, all else to the standard error."""

from __future__ import annotations

import typer
from rich.console import Console

WIDE = 120
"""Columns where the output is no terminal."""


def console(error: bool = False) -> Console:
    """A console that takes brackets and colons in names for what they are."""
    made = Console(stderr=error, markup=False, emoji=False, highlight=False)
    if not made.is_terminal:
        made.width = WIDE
    return made


def note(text: str) -> None:
    """One line that is no result."""
    typer.echo(f"{typer.style('note:', fg='yellow')} {' '.join(text.split())}", err=True)
