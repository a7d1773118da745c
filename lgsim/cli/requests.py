"""The words of the long commands: what may be asked of a simulation, an optimization, an identification, a study."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from lgsim.cli.checks.replacement import Force
from lgsim.cli.options import FloatingBase, Loops, Restart
from lgsim.support.verdict import RESOLVED

_LAG = '"0.05,0.05", or by joint: "elbow=0.05"'
_CTRL = '"0.5,-1", or by name: "elbow=-1"'
_STEP_CHECK = (
    "Do not estimate the error of the steps, in about a third of the time. An estimate of more than"
    f" {100 * RESOLVED:g} % of the motion is not resolved."
)
STATE = '"0.1,0.2", or by joint: "elbow=0.2,ball=1:0:0"'


@dataclass(frozen=True)
class SimulationRequest:
    """The words of ``lgsim simulate``."""

    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="A machine, a URDF, SDF or MJCF file; or a TOML file that says what moves and how: [machine],"
            " [start], [time], [control], [wind], as studies have them.",
        ),
    ]
    q: Annotated[str | None, typer.Option(help=f"Configuration at the start: {STATE}, or random; else neutral.")] = None
    v: Annotated[str | None, typer.Option(help=f"Velocity at the start: {STATE}; else zero.")] = None
    torque: Annotated[str | None, typer.Option(help=f"Joint forces all the time: {STATE}; else none.")] = None
    ctrl: Annotated[
        str | None,
        typer.Option(help=f"Commands of the file's actuators all the time, which then drive the machine: {_CTRL}."),
    ] = None
    actuator_time: Annotated[
        str | None, typer.Option(help=f"Lag of the drives behind their commands, seconds: {_LAG}; else none.")
    ] = None
    duration: Annotated[float, typer.Option(help="Seconds.")] = 5.0
    dt: Annotated[float, typer.Option(help="Step, seconds; with --adaptive the time between saved states.")] = 1e-3
    method: Annotated[
        str | None,
        typer.Option(
            help="Method of integration, such as MK4, CF4, MK8 or, for stiff machines, Rodas4; a wrong one lists all."
            " auto takes MK4 as long as its steps are stable, else Rodas4.",
            show_default="auto; MK54 with --adaptive",
        ),
    ] = None
    adaptive: Annotated[
        bool, typer.Option("--adaptive", help="Steps that keep the error of each below the tolerance.")
    ] = False
    tolerance: Annotated[
        float | None,
        typer.Option(help="Of a step of --adaptive: in rad and m, and relative for velocities.", show_default="1e-06"),
    ] = None
    gravity: Annotated[str | None, typer.Option(help='m/s²: "0,0,-9.81"; else as the file has it.')] = None
    floating_base: FloatingBase = False
    ignore_equalities: Annotated[
        bool, typer.Option("--ignore-equalities", help="Leave out the ties of an MJCF file's <equality>.")
    ] = False
    loops: Loops = None
    out: Annotated[
        Path, typer.Option(help="Where the run goes: .npz, .parquet, .csv or .mcap; a run of the machine is replaced.")
    ] = Path("run.npz")
    plot: Annotated[bool, typer.Option("--plot", help="Plots too, beside the run.")] = False
    html: Annotated[bool, typer.Option("--html", help="A scene that plays in a browser too, beside the run.")] = False
    save_every: Annotated[int, typer.Option(min=1, help="Keep each N-th state.", metavar="N")] = 1
    float32: Annotated[bool, typer.Option("--float32", help="Half the digits; else float64.")] = False
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, metavar="N", help="For --q random.")] = 0
    check: Annotated[
        bool, typer.Option("--check", help="Where the motion diverges, say which quantity was the first to.")
    ] = False
    no_step_check: Annotated[bool, typer.Option("--no-step-check", help=_STEP_CHECK)] = False
    stops: Annotated[
        bool,
        typer.Option("--stops", help="The position limits act as stops, soft enough for the step: 20 ms a bounce."),
    ] = False
    yes: Annotated[
        bool, typer.Option("--yes", help="Begin without a question, however long it takes and whatever it needs.")
    ] = False
    force: Force = False


@dataclass(frozen=True)
class OptimizationRequest:
    """The words of ``lgsim optimize``."""

    scenario: Annotated[Path | None, typer.Argument(metavar="SCENARIO", help="What should be done: a TOML file.")] = (
        None
    )
    out: Annotated[
        Path, typer.Option(help="Where the motion goes: .npz, .parquet or .csv; one of the machine is replaced.")
    ] = Path("run.npz")
    plot: Annotated[bool, typer.Option("--plot", help="Plots too, beside the motion.")] = False
    html: Annotated[bool, typer.Option("--html", help="A scene that plays in a browser too, beside the motion.")] = (
        False
    )
    check: Annotated[bool, typer.Option("--check", help="Only say whether the scenario is right, and end.")] = False
    restart: Restart = False
    force: Force = False
    example: Annotated[
        str | None, typer.Option(help="Print a scenario to start from, and end: reach, swing_up or follow.")
    ] = None


@dataclass(frozen=True)
class IdentificationRequest:
    """The words of ``lgsim identify``."""

    machine: Annotated[Path | None, typer.Argument(metavar="MACHINE", help="A URDF, SDF or MJCF file: the prior.")] = (
        None
    )
    motion: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="MOTION",
            help="What was recorded, once or several times: .csv, .parquet, .npz, .mcap, .db3, the folder of a ROS 2"
            " bag or of a LeRobot data set.",
        ),
    ] = None
    map: Annotated[Path | None, typer.Option(help="A TOML file: columns, units, delays, priors; see --example.")] = None
    fit: Annotated[
        str | None,
        typer.Option(
            help="What is unknown: masses, centers, bodies, friction, damping, armature, offsets, ..., with commas"
            " between; by default what the map says, or else bodies,friction,damping."
        ),
    ] = None
    method: Annotated[
        str,
        typer.Option(
            help="torque: joint forces against inverse dynamics; linear: the same for base parameters; simulation:"
            " simulated motion against the positions. auto: torque where forces or currents were recorded."
        ),
    ] = "auto"
    held_out: Annotated[float, typer.Option(help="Part of the motion that is not fitted but compared; 0: none.")] = 0.3
    lags: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Samples over which the noise of forces is correlated, 0 for white noise; by default deviations count"
            " the correlation that the residuals show.",
        ),
    ] = None
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Fit although the check of the record left findings to answer, and replace files that are no results"
            " of this kind, or of another machine; what --write names is replaced by it alone.",
        ),
    ] = False
    floating_base: Annotated[bool, typer.Option("--floating-base", help="The root link moves freely.")] = False
    out: Annotated[Path, typer.Option(help="Where numbers, covariance and model go: .npz.")] = Path("fit.npz")
    report: Annotated[Path | None, typer.Option(help="A page with all that was found: .html, for any browser.")] = None
    write: Annotated[Path | None, typer.Option(help="The machine's URDF file with the numbers found.")] = None
    plot: Annotated[bool, typer.Option("--plot", help="The report's plots too, beside the .npz file.")] = False
    check: Annotated[bool, typer.Option("--check", help="Only read and check the record, and end.")] = False
    restart: Restart = False
    no_step_check: Annotated[
        bool,
        typer.Option(
            "--no-step-check", help="Do not simulate again by shorter steps: how wrong the steps make the fit."
        ),
    ] = False
    example: Annotated[bool, typer.Option("--example", help="Print a map to start from, and end.")] = False


class Computer(StrEnum):
    """The engine that computes."""

    local = "local"
    ray = "ray"


@dataclass(frozen=True)
class StudyRequest:
    """The words of ``lgsim montecarlo run``."""

    study: Annotated[
        Path | None, typer.Argument(metavar="STUDY", help="What varies and what is kept: a TOML file.")
    ] = None
    samples: Annotated[int | None, typer.Option(metavar="N", help="How many; else as the file says.")] = None
    seed: Annotated[int | None, typer.Option(metavar="N", help="Of the random numbers; else as the file says.")] = None
    engine: Annotated[
        Computer, typer.Option(help="This process on all its devices, or a Ray cluster, chunk by chunk.")
    ] = Computer.local
    address: Annotated[
        str | None, typer.Option(help="Of a Ray cluster: host:port, ray://host:port or auto; else one is started here.")
    ] = None
    out: Annotated[Path, typer.Option(metavar="STORE", help="The folder of the results; a new one.")] = Path("study")
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with a store, also with more samples than it was made for.")
    ] = False
    check: Annotated[bool, typer.Option("--check", help="Only say whether the file is right, and end.")] = False
    no_step_check: Annotated[
        bool,
        typer.Option("--no-step-check", help="Run no samples again by shorter steps: how wrong dt makes the numbers."),
    ] = False
    example: Annotated[str | None, typer.Option(help="Print a study to start from, and end: hover or arm.")] = None
