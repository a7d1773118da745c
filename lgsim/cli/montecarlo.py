"""``lgsim montecarlo``: a motion many times, with other numbers each time."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup


class Group(TyperGroup):
    """A group whose first word may be left out: what is none of its commands goes to ``run``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Puts the command in front where it is not."""
        if args and args[0] not in self.commands and args[0] not in ("-h", "--help"):
            args = ["run", *args]
        return super().parse_args(ctx, args or ["--help"])


class Computer(StrEnum):
    """What computes."""

    local = "local"
    ray = "ray"


app = typer.Typer(
    cls=Group,
    help=(
        "Dispersions: a motion many times, each time with other starts, masses, frictions, winds.\n\n"
        "Start with `lgsim montecarlo --example hover > study.toml`, then `lgsim montecarlo study.toml --out store`,"
        " then `lgsim montecarlo report store`. `run` may be left out; `lgsim montecarlo run --help` shows its options."
    ),
)


@app.command()
def run(
    study: Annotated[
        Path | None,
        typer.Argument(metavar="STUDY", help="What varies and what is kept: a TOML file.", show_default=False),
    ] = None,
    samples: Annotated[
        int | None, typer.Option(metavar="N", help="How many; else as the file says.", show_default=False)
    ] = None,
    seed: Annotated[
        int | None, typer.Option(metavar="N", help="Of the random numbers; else as the file says.", show_default=False)
    ] = None,
    engine: Annotated[
        Computer, typer.Option(help="This process on all its devices, or a Ray cluster, chunk by chunk.")
    ] = Computer.local,
    address: Annotated[
        str | None,
        typer.Option(
            help="Of a Ray cluster: host:port, ray://host:port or auto; else one is started here.", show_default=False
        ),
    ] = None,
    out: Annotated[Path, typer.Option(metavar="STORE", help="The folder of the results; a new one.")] = Path("study"),
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with a store, also with more samples than it was made for.")
    ] = False,
    check: Annotated[bool, typer.Option("--check", help="Only say whether the file is right, and end.")] = False,
    example: Annotated[
        str | None, typer.Option(help="Print a study to start from, and end: hover or arm.", show_default=False)
    ] = None,
) -> None:
    """Run a study into a store.

    Ctrl-C ends it after the chunk that is being computed; the same command with --resume goes on to the same numbers,
    bit for bit, and so it does after a crash.
    """
    from lgsim.cli.errors import BadInput

    if example is not None:
        from lgsim.cli import montecarlo_study as studies

        if study is not None:
            raise BadInput("--example: without a STUDY; it prints one, and your shell can keep it: > study.toml")
        typer.echo(studies.example(example), nl=False)
        raise typer.Exit
    if study is None:
        raise BadInput("STUDY: expected a TOML file; lgsim montecarlo --example hover > study.toml makes one")
    from lgsim.cli import montecarlo_run

    request = montecarlo_run.Request(study, out, samples, seed, engine is Computer.ray, address, resume, check)
    raise typer.Exit(montecarlo_run.run(request))


@app.command()
def report(
    store: Annotated[Path, typer.Argument(metavar="STORE", help="What a study left.", show_default=False)],
    out: Annotated[
        Path | None, typer.Option(help="Where the page goes; else STORE.html.", show_default=False)
    ] = None,
    cases: Annotated[
        int | None,
        typer.Option(min=0, metavar="N", help="How many of the worst samples are replayed; else as the study says.",
                     show_default=False),
    ] = None,
) -> None:  # fmt: skip
    """Write one page about a store, which any browser shows without a network.

    Distributions, attitudes on the sphere, fan charts of the motions, failures and divergences with their samples, and
    the worst samples played in three dimensions.
    """
    from lgsim.cli import montecarlo_report

    raise typer.Exit(montecarlo_report.write(store, out, cases))
