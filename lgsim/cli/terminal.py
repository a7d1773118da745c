"""The terminal: results go to the standard output, all else to the standard error; texts are shown as written."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer
from rich.console import Console
from rich.markup import escape
from typer.core import TyperCommand, TyperGroup

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
    """Within the block, warnings become notes, each of which is written once, at its end."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    # a layout that is tried several times warns as often
    for text in dict.fromkeys(str(warning.message) for warning in caught):
        note(text)


def flowing(text: str) -> str:
    """A text whose paragraphs are one line each, which the terminal breaks where it ends."""
    return "\n\n".join(" ".join(part.split()) for part in inspect.cleandoc(text).split("\n\n"))


def _written(command: TyperCommand | TyperGroup) -> None:
    """Let the help of a command and of its parameters be printed as it is written."""
    # without rich there are no marks, and a backslash before a bracket would be seen
    literal = escape if command.rich_markup_mode == "rich" else str
    for owner, name in ((command, "help"), (command, "epilog"), *((each, "help") for each in command.params)):
        text = getattr(owner, name, None)
        if text:
            setattr(owner, name, literal(flowing(text)))


class Command(TyperCommand):
    """A command whose help is printed as it is written."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        _written(self)


class LiteralGroup(TyperGroup):
    """A group of commands whose help is printed as it is written."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        _written(self)
