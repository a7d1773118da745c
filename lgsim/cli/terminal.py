"""The terminal: results go to the standard output, all else to the standard error; texts are shown as written.

Whatever the command writes goes through this file, so that no name of a file, a joint or a key begins a line or steers
the terminal: what is not printable in a string is an escape, ends of lines too.
"""

from __future__ import annotations

import inspect
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.markup import escape
from rich.segment import Segment
from rich.table import Table
from rich.text import Text
from typer.core import TyperCommand, TyperGroup

from lgsim.support.printable import printable, printable_lines

WIDE = 120
"""The number of columns where the output is no terminal."""


class PlainConsole(Console):
    """A console on which a string, also as a cell of a table, is one line of printable characters; ``lines`` are more.

    It takes brackets and colons in names for what they are.
    """

    def __init__(self, error: bool = False) -> None:
        super().__init__(stderr=error, markup=False, emoji=False, highlight=False)
        if not self.is_terminal:
            self.width = WIDE

    def render_str(self, text: str, **options: Any) -> Text:
        """The text of a string; before it is measured, so that columns are as wide as what is shown."""
        options.pop("markup", None)
        return super().render_str(printable(text), markup=False, **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """The pieces that are written; what did not come as a string keeps its lines."""
        for piece in super().render(renderable, options):
            yield piece if piece.control else piece._replace(text=printable_lines(piece.text))


def console(error: bool = False) -> Console:
    """Make a console that takes names for what they are."""
    return PlainConsole(error)


def lines(parts: Iterable[object]) -> Text:
    """Several lines for a console or a cell of a table."""
    return Text("\n".join(printable(str(part)) for part in parts))


def show_facts(facts: Iterable[tuple[str, RenderableType]]) -> None:
    """Write names and their values, one a row."""
    table = Table.grid(padding=(0, 2))
    for name, value in facts:
        table.add_row(name, value)
    console().print(table)


def echo(text: object) -> None:
    """Write one line of a result."""
    typer.echo(printable(str(text)))


def echo_file(text: str) -> None:
    """Write the text of a file that comes with lgsim."""
    typer.echo(printable_lines(text), nl=False)


def note(text: str) -> None:
    """Write one line that is no result."""
    _remark("note:", " ".join(text.split()), fg="yellow")


def end(message: str, status: int) -> NoReturn:
    """End the process with one line about an error."""
    _remark("error:", message, fg="red", bold=True)
    sys.exit(status)


def _remark(head: str, text: str, **style: Any) -> None:
    typer.echo(f"{typer.style(head, **style)} {printable(text)}", err=True)


@contextmanager
def warnings_as_notes() -> Iterator[None]:
    """Within the block, warnings become notes, each of which is written once, at its end."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    # a layout that is tried several times warns as often
    for text in dict.fromkeys(str(warning.message) for warning in caught):
        note(text)


@contextmanager
def printable_warnings() -> Iterator[None]:
    """Within the block, warnings that no one catches are written without what steers the terminal."""
    before = warnings.formatwarning

    def formatted(message: Warning | str, *place: Any, **line: Any) -> str:
        return before(printable(str(message)), *place, **line)

    warnings.formatwarning = formatted
    try:
        yield
    finally:
        warnings.formatwarning = before


def _flowing(text: str) -> str:
    """A text whose paragraphs are one line each, which the terminal breaks where it ends."""
    return "\n\n".join(" ".join(part.split()) for part in inspect.cleandoc(text).split("\n\n"))


def _written(command: TyperCommand | TyperGroup) -> None:
    """Let the help of a command and of its parameters be printed as it is written."""
    # without rich there are no marks, and a backslash before a bracket would be seen
    literal = escape if command.rich_markup_mode == "rich" else str
    for owner, name in ((command, "help"), (command, "epilog"), *((each, "help") for each in command.params)):
        text = getattr(owner, name, None)
        if text:
            setattr(owner, name, literal(_flowing(text)))


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
