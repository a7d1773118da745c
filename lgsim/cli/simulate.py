"""``lgsim simulate``: a machine moves."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

LAG = '"0.05,0.05", or by joint: "elbow=0.05"'
STATE = '"0.1,0.2", or by joint: "elbow=0.2,ball=1:0:0"'


def simulate(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A machine: a URDF or MJCF file.", show_default=False)],
    q: Annotated[
        str | None, typer.Option(help=f"Configuration at the start: {STATE}, or random; else neutral.")
    ] = None,
    v: Annotated[str | None, typer.Option(help=f"Velocity at the start: {STATE}; else zero.")] = None,
    torque: Annotated[str | None, typer.Option(help=f"Joint forces all the time: {STATE}; else none.")] = None,
    actuator_time: Annotated[
        str | None, typer.Option(help=f"Lag of the drives behind their commands, seconds: {LAG}; else none.")
    ] = None,
    duration: Annotated[float, typer.Option(help="Seconds.")] = 5.0,
    dt: Annotated[float, typer.Option(help="Step, seconds; with --adaptive the time between saved states.")] = 1e-3,
    method: Annotated[
        str | None,
        typer.Option(
            help="Method of integration, such as LieEuler, CF4, CG5 or MK8; a wrong one lists all.",
            show_default="MK4; MK54 with --adaptive",
        ),
    ] = None,
    adaptive: Annotated[
        bool, typer.Option("--adaptive", help="Steps that keep the error of each below the tolerance.")
    ] = False,
    tolerance: Annotated[
        float | None,
        typer.Option(
            help="Of a step of --adaptive: in rad and m, and relative for velocities.",
            show_default="1e-06",
        ),
    ] = None,
    gravity: Annotated[str | None, typer.Option(help='m/s²: "0,0,-9.81"; else as the file has it.')] = None,
    floating_base: Annotated[
        bool, typer.Option("--floating-base", help="The root link of a URDF moves freely.")
    ] = False,
    out: Annotated[
        Path, typer.Option(help="Where the run goes: .npz, .parquet or .csv; replaced if it exists.")
    ] = Path("run.npz"),
    plot: Annotated[bool, typer.Option("--plot", help="Plots too, beside the run.")] = False,
    html: Annotated[bool, typer.Option("--html", help="A scene that plays in a browser too, beside the run.")] = False,
    save_every: Annotated[int, typer.Option(min=1, help="Keep each N-th state.", metavar="N")] = 1,
    float32: Annotated[bool, typer.Option("--float32", help="Half the digits; else float64.")] = False,
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, metavar="N", help="For --q random.")] = 0,
    check: Annotated[
        bool, typer.Option("--check", help="Where the motion diverges, say which quantity was the first to.")
    ] = False,
) -> None:
    """Simulate a machine and save the run.

    Ctrl-C ends the simulation early and saves what there is; so does a motion that diverges. With --adaptive the steps
    are as long as the tolerance lets them be, and --dt says only what is saved.
    """
    from lgsim.cli import launch

    request = launch.Request(
        file, q, v, torque, actuator_time, duration, dt, method, adaptive, tolerance, gravity, floating_base, out, plot,
        html, save_every, float32, seed, check,
    )  # fmt: skip
    raise typer.Exit(launch.run(request))
