"""``lgsim optimize``: a machine finds its motion."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def optimize(
    scenario: Annotated[
        Path | None,
        typer.Argument(metavar="SCENARIO", help="What should be done: a TOML file.", show_default=False),
    ] = None,
    out: Annotated[
        Path, typer.Option(help="Where the motion goes: .npz, .parquet or .csv; replaced if it exists.")
    ] = Path("run.npz"),
    plot: Annotated[bool, typer.Option("--plot", help="Plots too, beside the motion.")] = False,
    html: Annotated[
        bool, typer.Option("--html", help="A scene that plays in a browser too, beside the motion.")
    ] = False,
    check: Annotated[bool, typer.Option("--check", help="Only say whether the scenario is right, and end.")] = False,
    restart: Annotated[
        bool, typer.Option("--restart", help="Begin anew, though an interrupted search of this name could go on.")
    ] = False,
    example: Annotated[
        str | None,
        typer.Option(help="Print a scenario to start from, and end: reach, swing_up or follow.", show_default=False),
    ] = None,
) -> None:
    """Find the motion that does what a scenario asks for: reach a pose, swing up, follow a path.

    Start with `lgsim optimize --example reach > reach.toml` and `lgsim optimize reach.toml --plot --html`. Ctrl-C ends
    the search early and saves the best motion so far; the same command then goes on, from a checkpoint beside it.
    """
    from lgsim.cli.errors import BadInput

    if example is not None:
        from lgsim.cli import scenario as scenarios

        if scenario is not None:
            raise BadInput("--example: without a SCENARIO; it prints one, and your shell can keep it: > reach.toml")
        typer.echo(scenarios.example(example), nl=False)
        raise typer.Exit
    if scenario is None:
        raise BadInput("SCENARIO: expected a TOML file; lgsim optimize --example reach > reach.toml makes one")
    from lgsim.cli import search

    raise typer.Exit(search.run(search.Request(scenario, out, plot, html, check, restart)))
