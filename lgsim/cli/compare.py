"""``lgsim compare``: how far two runs of one machine are apart."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def compare(
    first: Annotated[Path, typer.Argument(metavar="RUN", help="A run: .npz or .parquet.", show_default=False)],
    second: Annotated[Path, typer.Argument(metavar="RUN", help="Another run of the same machine.", show_default=False)],
) -> None:
    """Show the largest differences of two runs of one machine, at the times that both have."""
    from rich import box
    from rich.table import Table

    from lgsim.cli import differences, runs
    from lgsim.cli.output import console

    found = differences.between((str(first), runs.load(first)), (str(second), runs.load(second)))
    table = Table("", "largest difference", "at", "joint", box=box.SIMPLE_HEAD)
    for row in found.rows:
        table.add_row(row.what, f"{row.size:.4g} {row.unit}", f"{row.time:g} s", row.joint)
    out = console()
    out.print(f"{found.count} times in common, from {found.start:g} s to {found.end:g} s")
    out.print(table)
