"""``lgsim identify``: a machine's numbers from its recorded motion."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

METHODS = ("auto", "torque", "linear", "simulation")


def identify(
    machine: Annotated[
        Path | None, typer.Argument(metavar="MACHINE", help="A URDF or MJCF file: the prior.", show_default=False)
    ] = None,
    motion: Annotated[
        Path | None,
        typer.Argument(metavar="MOTION", help="What was recorded: .csv, .parquet or .npz.", show_default=False),
    ] = None,
    map: Annotated[
        Path | None,
        typer.Option(help="A TOML file: columns, units, delays, priors; see --example.", show_default=False),
    ] = None,
    fit: Annotated[
        str | None,
        typer.Option(
            help="What is unknown: masses, centers, bodies, friction, damping, armature, offsets, ..., with commas"
            " between; by default what the map says, or else bodies,friction,damping.",
            show_default=False,
        ),
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            help="torque: joint forces against inverse dynamics; linear: the same for base parameters; simulation:"
            " simulated motion against the positions. auto: torque where forces or currents were recorded."
        ),
    ] = "auto",
    held_out: Annotated[float, typer.Option(help="Part of the motion that is not fitted but compared; 0: none.")] = 0.3,
    lags: Annotated[
        int,
        typer.Option(min=0, help="Samples over which the noise of forces is correlated: deviations then count it."),
    ] = 0,
    floating_base: Annotated[bool, typer.Option("--floating-base", help="The root link moves freely.")] = False,
    out: Annotated[Path, typer.Option(help="Where numbers, covariance and model go: .npz.")] = Path("fit.npz"),
    report: Annotated[
        Path | None, typer.Option(help="A page with all that was found: .html, for any browser.", show_default=False)
    ] = None,
    write: Annotated[
        Path | None, typer.Option(help="The machine's URDF file with the numbers found.", show_default=False)
    ] = None,
    plot: Annotated[bool, typer.Option("--plot", help="The report's plots too, beside the .npz file.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Only read and check the record, and end.")] = False,
    restart: Annotated[
        bool, typer.Option("--restart", help="Begin anew, though an interrupted search of this name could go on.")
    ] = False,
    example: Annotated[bool, typer.Option("--example", help="Print a map to start from, and end.")] = False,
) -> None:
    """Find masses, inertias, friction and other numbers of a machine from its recorded motion, and how sure they are.

    Columns with clear names, such as "time", "elbow_position" or "tau elbow", need no map. Ctrl-C ends the search; the
    same command then goes on, to the same numbers, from a checkpoint beside the output.
    """
    from lgsim.cli.errors import BadInput, needs, unknown

    if example:
        from lgsim.cli.identify_example import EXAMPLE

        if machine is not None:
            raise BadInput("--example: without MACHINE and MOTION; it prints a map, your shell can keep it: > map.toml")
        typer.echo(EXAMPLE, nl=False)
        raise typer.Exit
    if machine is None or motion is None:
        raise BadInput("MACHINE MOTION: expected a URDF or MJCF file and a recorded motion, .csv, .parquet or .npz")
    if method not in METHODS:
        raise unknown(f"--method: expected one of {', '.join(METHODS)}", method, METHODS)
    needs("scipy", "identify", "identification")
    from lgsim.cli import identify_run

    asked = identify_run.Request(
        machine, motion, map, fit, method, held_out, lags, floating_base, out, report, write, plot, check, restart
    )
    raise typer.Exit(identify_run.run(asked))
