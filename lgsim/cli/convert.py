"""``lgsim convert``: a run as another kind of file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lgsim.cli.checks.replacement import Force, Output, check_replaced
from lgsim.cli.options import RunArgument


def convert(
    run: RunArgument,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Where it goes: .npz, .parquet, .csv or .mcap.")],
    machine: Annotated[
        Path | None, typer.Option(help="The URDF file of the machine: an .mcap file then shows its shapes.")
    ] = None,
    force: Force = False,
) -> None:
    """Write a run as .npz, .parquet, .csv or .mcap; the last two hold no machine and cannot be read back as runs.

    An .mcap file is what Foxglove, Rerun and PlotJuggler show: /joint_states, /tf and, of free joints, their odometry.
    """
    from lgsim.cli import files
    from lgsim.cli.terminal import echo

    files.check_out("OUT", out)
    motion = files.load(run)
    check_replaced([Output("OUT", out, "run", files.joint_list(motion.model))], force)
    echo(files.save_run(motion, out, machine))
