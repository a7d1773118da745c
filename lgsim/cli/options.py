"""Words of commands: options that several commands share, and commands whose words are the fields of one class."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from inspect import signature
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_type_hints

import typer

from lgsim.cli.errors import BadInput
from lgsim.cli.exit_status import Exit
from lgsim.cli.terminal import echo_file
from lgsim.support.messages import unknown_choice

Words = TypeVar("Words")

MachineArgument = Annotated[Path, typer.Argument(metavar="FILE", help="A machine: a URDF, SDF or MJCF file.")]
RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="A run: .npz or .parquet.")]
FloatingBase = Annotated[bool, typer.Option("--floating-base", help="The root link of a URDF moves freely.")]
Loops = Annotated[Path | None, typer.Option(help="A TOML file with loops that the machine's file has no word for.")]
Restart = Annotated[
    bool, typer.Option("--restart", help="Begin anew, though an interrupted search of this name could go on.")
]


def command(words: Callable[..., Words]) -> Callable[[Callable[[Words], Exit]], Callable[..., None]]:
    """The decorator that makes a function of the words of a command what ``typer`` takes as a command.

    Args:
        words: The class of the words, whose fields have ``typer``'s options and arguments as their annotations.
    """

    def decorated(run: Callable[[Words], Exit]) -> Callable[..., None]:
        @wraps(run)
        def taken(**given: Any) -> None:
            raise typer.Exit(run(words(**given)).status)

        # typer reads each word, its option, help and default here
        described: Any = taken
        described.__signature__ = signature(words, eval_str=True)
        taken.__annotations__ = get_type_hints(words, include_extras=True)
        return taken

    return decorated


def file_or_example(
    word: str,
    file: Path | None,
    example: str | None,
    examples: Sequence[str],
    place: Callable[[str], Path],
    maker: str,
) -> Path:
    """The file that a command was given; with ``--example`` the command prints one of lgsim's files and ends.

    Args:
        word: The word for the file in the command's help.
        examples: The names of the files that come with lgsim.
        place: The function that finds such a file.
        maker: The command that makes such a file, for messages.

    Raises:
        BadInput: there is no file, one too many, or no such example.
    """
    if example is not None:
        if file is not None:
            kept = maker.rpartition("> ")[2]
            raise BadInput(f"--example: without a {word}; it prints one, and your shell can keep it: > {kept}")
        if example not in examples:
            raise BadInput(unknown_choice("--example: expected one of", example, examples))
        echo_file(place(example).read_text(encoding="utf-8"))
        raise typer.Exit
    if file is None:
        raise BadInput(f"{word}: expected a TOML file; {maker} makes one")
    return file


def names_of(text: str) -> list[str]:
    """The names between commas."""
    return [name.strip() for name in text.split(",") if name.strip()]
