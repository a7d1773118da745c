"""``lgsim plot``: pictures of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def plot(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run: .npz or .parquet.", show_default=False)],
    out: Annotated[
        Path | None, typer.Option(help="Folder for the plots; made if missing; else that of the run.")
    ] = None,
    phase: Annotated[
        list[str] | None, typer.Option(help="A joint whose phase portrait to draw; can be repeated.")
    ] = None,
) -> None:
    """Plot a run: joints, energy and momentum over time, as .png files."""
    from lgsim.cli import files, pictures

    pictures.check_plots()
    motion = files.load(run)
    folder = run.parent if out is None else out
    if not folder.exists() and folder.absolute().parent.is_dir():
        files.check_folder("--out", folder.absolute().parent)
        folder.mkdir()
    files.check_folder("--out", folder)
    for path in pictures.save_plots(motion, folder, run.stem, phase or []):
        typer.echo(path)
