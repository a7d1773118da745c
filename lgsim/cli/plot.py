"""``lgsim plot``: pictures of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lgsim.cli.checks.replacement import Force, Output, check_replaced
from lgsim.cli.options import RunArgument, names_of


def plot(
    run: RunArgument,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the plots; made if missing; else that of the run.")
    ] = None,
    phase: Annotated[
        list[str] | None, typer.Option(help="A joint whose phase portrait to draw; can be repeated.")
    ] = None,
    joints: Annotated[
        str | None, typer.Option(help="Names of the joints to show, with commas between; else all.")
    ] = None,
    format: Annotated[str, typer.Option(help="png, pdf or svg.")] = "png",
    width: Annotated[
        float | None, typer.Option(help="Of the figures, inches: 3.4 is a column of a paper, 7.2 a page.")
    ] = None,
    force: Force = False,
) -> None:
    """Plot a run: joints, energy and momentum over time, as figures of a paper."""
    from lgsim.cli import files, pictures
    from lgsim.cli.terminal import echo

    pictures.check_plots()
    pictures.check_format(format, width)
    motion = files.load(run)
    folder = run.parent if out is None else out
    if not folder.exists() and folder.absolute().parent.is_dir():
        files.check_folder("--out", folder.absolute().parent)
        folder.mkdir()
    files.check_folder("--out", folder)
    planned = pictures.plot_files(folder, run.stem, phase or [], format)
    check_replaced((Output("--out", path, "plot") for path in planned), force)
    names = None if joints is None else names_of(joints)
    for path in pictures.save_plots(motion, folder, run.stem, phase or [], names, format, width):
        echo(path)
