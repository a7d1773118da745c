"""Helps as they are written: typer would take brackets for marks of style, and keeps the line breaks of docstrings."""

from __future__ import annotations

import inspect
from typing import Any

from rich.markup import escape
from typer.core import TyperCommand, TyperGroup


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
