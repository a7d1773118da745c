"""Options that several commands share, and commands whose parameters are the fields of a dataclass."""

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

MachineArgument = Annotated[
    Path, typer.Argument(metavar="FILE", help="Read the robot from this URDF, SDF or MJCF file.")
]
RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="Read this run: .npz or .parquet.")]
FloatingBase = Annotated[
    bool,
    typer.Option(
        "--floating-base", help="Give the root link of a URDF, or the fixed bodies of an MJCF, six degrees of freedom."
    ),
]
Loops = Annotated[
    Path | None,
    typer.Option(help="Read closed kinematic loops that the robot's file cannot describe from a TOML file."),
]
XacroArguments = Annotated[
    list[str] | None,
    typer.Option("--xacro-arg", help="Set an argument of a .xacro file; may be given again.", metavar="NAME=VALUE"),
]
Restart = Annotated[
    bool, typer.Option("--restart", help="Start again instead of continuing from the checkpoint of an earlier search.")
]


def machine_path(file: Path, arguments: Sequence[str] | None) -> Path:
    """The path of a robot's file with the arguments of ``--xacro-arg``.

    Raises:
        BadInput: an argument without a value.
    """
    from lgsim.formats import XacroFile

    odd = [word for word in arguments or () if "=" not in word]
    if odd:
        raise BadInput(f"--xacro-arg: expected name=value, got {odd[0]!r}")
    return XacroFile(file, **dict(word.split("=", 1) for word in arguments)) if arguments else file


def command(words: Callable[..., Words]) -> Callable[[Callable[[Words], Exit]], Callable[..., None]]:
    """Decorator that turns a function of a dataclass into a function of its fields, as ``typer`` expects it.

    Args:
        words: The dataclass; ``typer``'s options and arguments annotate its fields.
    """

    def decorated(run: Callable[[Words], Exit]) -> Callable[..., None]:
        @wraps(run)
        def taken(**given: Any) -> None:
            raise typer.Exit(run(words(**given)).status)

        # typer reads the names, options, help texts and defaults from the signature
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
    """Return the input file; with ``--example``, print an example file instead and exit.

    Args:
        word: Name of the argument in the help.
        examples: Names of the example files.
        place: Function from the name of an example to its file.
        maker: The command that creates such a file, for messages.

    Raises:
        BadInput: no file, both a file and an example, or an unknown example.
    """
    if example is not None:
        if file is not None:
            kept = maker.rpartition("> ")[2]
            raise BadInput(f"--example: expected no {word}; redirect the printed example to a file: > {kept}")
        if example not in examples:
            raise BadInput(unknown_choice("--example: expected one of", example, examples))
        echo_file(place(example).read_text(encoding="utf-8"))
        raise typer.Exit
    if file is None:
        raise BadInput(f"{word}: expected a TOML file; create one with `{maker}`")
    return file


def names_of(text: str) -> list[str]:
    """Split names at commas."""
    return [name.strip() for name in text.split(",") if name.strip()]
