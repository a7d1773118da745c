"""Terminal output: results go to standard output, notes and errors to standard error.

All output passes through this module. Control characters and line breaks in names of files, joints or keys are escaped,
so that they can neither start a line nor control the terminal.
"""

from __future__ import annotations

import inspect
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

import typer
from rich import box
from rich.console import Console, ConsoleOptions, RenderableType
from rich.markup import escape
from rich.segment import Segment
from rich.table import Table
from rich.text import Text
from typer.core import TyperCommand, TyperGroup

from lgsim.support.printable import printable, printable_lines

WIDE = 120
"""Number of columns where the output is not a terminal."""


class PlainConsole(Console):
    """A console that prints every string, also in a cell of a table, as one line of printable characters.

    Brackets and colons are printed literally. ``lines`` makes text of several lines.
    """

    def __init__(self, error: bool = False) -> None:
        super().__init__(stderr=error, markup=False, emoji=False, highlight=False)
        if not self.is_terminal:
            self.width = WIDE

    def render_str(self, text: str, **options: Any) -> Text:
        """Escape a string before its width is measured."""
        options.pop("markup", None)
        return super().render_str(printable(text), markup=False, **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Escape the segments; renderables other than strings keep their line breaks."""
        for piece in super().render(renderable, options):
            yield piece if piece.control else piece._replace(text=printable_lines(piece.text))


def console(error: bool = False) -> Console:
    """Make a console that prints names literally."""
    return PlainConsole(error)


def lines(parts: Iterable[object]) -> Text:
    """Text of several lines for a console or a cell of a table."""
    return Text("\n".join(printable(str(part)) for part in parts))


def show_facts(facts: Iterable[tuple[str, RenderableType]]) -> None:
    """Print names and values in two columns."""
    table = Table.grid(padding=(0, 2))
    for name, value in facts:
        table.add_row(name, value)
    console().print(table)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table whose columns but the first are aligned to the right."""
    table = Table(columns[0], box=box.SIMPLE_HEAD)
    for name in columns[1:]:
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(*row)
    console().print(table)


def echo(text: object) -> None:
    """Print one line of a result."""
    typer.echo(printable(str(text)))


def echo_file(text: str) -> None:
    """Print the text of an example file of lgsim."""
    typer.echo(printable_lines(text), nl=False)


def note(text: str) -> None:
    """Print a note to standard error."""
    _remark("note:", " ".join(text.split()), fg="yellow")


def end(message: str, status: int) -> NoReturn:
    """Print an error and exit."""
    _remark("error:", message, fg="red", bold=True)
    sys.exit(status)


def _remark(head: str, text: str, **style: Any) -> None:
    typer.echo(f"{typer.style(head, **style)} {printable(text)}", err=True)


@contextmanager
def warnings_as_notes() -> Iterator[None]:
    """A context that collects warnings and prints each once, as a note, at its end."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    # a layout computed several times repeats its warnings
    for text in dict.fromkeys(str(warning.message) for warning in caught):
        note(text)


@contextmanager
def printable_warnings() -> Iterator[None]:
    """A context in which warnings are printed with control characters escaped."""
    before = warnings.formatwarning

    def formatted(message: Warning | str, *place: Any, **line: Any) -> str:
        return before(printable(str(message)), *place, **line)

    warnings.formatwarning = formatted
    try:
        yield
    finally:
        warnings.formatwarning = before


def _flowing(text: str) -> str:
    """Join each paragraph of a text to one line, so that the terminal wraps it."""
    return "\n\n".join(" ".join(part.split()) for part in inspect.cleandoc(text).split("\n\n"))


def _written(command: TyperCommand | TyperGroup) -> None:
    """Escape the help texts of a command and its parameters, so that they are printed literally."""
    # without rich there is no markup, and an escaping backslash would be visible
    literal = escape if command.rich_markup_mode == "rich" else str
    for owner, name in ((command, "help"), (command, "epilog"), *((each, "help") for each in command.params)):
        text = getattr(owner, name, None)
        if text:
            setattr(owner, name, literal(_flowing(text)))


class Command(TyperCommand):
    """A command whose help is printed literally."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        _written(self)


class LiteralGroup(TyperGroup):
    """A group of commands whose help is printed literally."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        _written(self)
