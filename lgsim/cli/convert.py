"""``lgsim convert``: a run as another kind of file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def convert(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run: .npz or .parquet.", show_default=False)],
    out: Annotated[
        Path, typer.Argument(metavar="OUT", help="Where it goes: .npz, .parquet or .csv.", show_default=False)
    ],
) -> None:
    """Write a run as .npz, .parquet or .csv; the last one holds no machine and cannot be read back."""
    from lgsim.cli import files

    files.check_out("OUT", out)
    typer.echo(files.load(run).save(out))
