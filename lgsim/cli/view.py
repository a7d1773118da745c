"""``lgsim view``: a machine or a run in three dimensions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def view(
    file: Annotated[
        Path,
        typer.Argument(metavar="RUN_OR_FILE", help="A run, or a machine: a URDF or MJCF file.", show_default=False),
    ],
    html: Annotated[Path | None, typer.Option(help="Write a file that plays in any browser, and end.")] = None,
    visuals: Annotated[Path | None, typer.Option(help="The URDF file with the shapes of a run's machine.")] = None,
    floating_base: Annotated[
        bool, typer.Option("--floating-base", help="The root link of a URDF moves freely.")
    ] = False,
    port: Annotated[int, typer.Option(min=1, max=65535, help="Of the live scene.")] = 8080,
) -> None:
    """Show a run, or a machine whose joints you move, in a browser on this computer; Ctrl-C ends it."""
    from lgsim.cli import files, pictures
    from lgsim.scenarios.machine import TRAJECTORIES

    if html is not None:
        files.check_file("--html", html)
    is_run = file.suffix in TRAJECTORIES
    shown = (
        files.load(file) if is_run else files.read_machine(file, floating_base=floating_base, ignore_equalities=True)[0]
    )
    shapes = pictures.visuals(visuals if is_run else visuals or file)
    if html is None:
        pictures.show(shown, shapes, port)
    else:
        typer.echo(pictures.save_html(shown, html, shapes))
