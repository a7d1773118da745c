"""``lgsim view``: a machine or a run in three dimensions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lgsim.cli.checks.replacement import Force, Output, check_replaced
from lgsim.cli.options import FloatingBase


def view(
    file: Annotated[Path, typer.Argument(metavar="RUN_OR_FILE", help="A run, or a machine: a URDF, SDF or MJCF file.")],
    html: Annotated[Path | None, typer.Option(help="Write a file that plays in any browser, and end.")] = None,
    visuals: Annotated[
        Path | None, typer.Option(help="The URDF or MJCF file with the shapes of a run's machine.")
    ] = None,
    floating_base: FloatingBase = False,
    trace: Annotated[
        str | None, typer.Option(help="Frames whose path is drawn, names between commas.", metavar="FRAMES")
    ] = None,
    follow: Annotated[
        str | None, typer.Option(help="A frame that stays in the middle of the picture.", metavar="FRAME")
    ] = None,
    ghosts: Annotated[int, typer.Option(min=0, help="Draw the machine at so many moments too, seen through.")] = 0,
    floor: Annotated[float, typer.Option(help="Height of the ground, m.")] = 0.0,
    port: Annotated[int, typer.Option(min=1, max=65535, help="Of the live scene.")] = 8080,
    force: Force = False,
) -> None:
    """Show a run, or a machine whose joints you move, in a browser on this computer; Ctrl-C ends it."""
    from lgsim.cli import files, pictures
    from lgsim.cli.terminal import echo
    from lgsim.scenarios.machine import TRAJECTORIES

    if html is not None:
        files.check_file("--html", html)
        check_replaced([Output("--html", html, "scene")], force)
    is_run = file.suffix in TRAJECTORIES
    shown = (
        files.load(file) if is_run else files.read_machine(file, floating_base=floating_base, ignore_equalities=True)[0]
    )
    shapes = pictures.visuals(visuals if is_run else visuals or file)
    paths = [] if trace is None else [name.strip() for name in trace.split(",")]
    options = {"trace": paths, "follow": follow, "ghosts": ghosts, "floor": floor}
    if html is None:
        pictures.show(shown, shapes, port, **options)
    else:
        echo(pictures.save_html(shown, html, shapes, **options))
