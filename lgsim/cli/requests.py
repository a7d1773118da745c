"""Arguments and options of the long commands: simulate, optimize, identify, estimate and montecarlo run."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from lgsim.cli.checks.replacement import Force
from lgsim.cli.options import FloatingBase, Loops, Restart, XacroArguments
from lgsim.support.verdict import RESOLVED

_LAG = '"0.05,0.05", or by joint: "elbow=0.05"'
_CTRL = '"0.5,-1", or by name: "elbow=-1"'
_STEP_CHECK = (
    "Skip the estimate of the integration error, about two thirds of the wall time. An estimate of more than"
    f" {100 * RESOLVED:g} % of the motion is not converged in the step size."
)
STATE = '"0.1,0.2", or by joint: "elbow=0.2,ball=1:0:0"'


@dataclass(frozen=True)
class SimulationRequest:
    """Arguments and options of ``lgsim simulate``."""

    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="Read the robot from a URDF, SDF or MJCF file, or the whole simulation from a TOML file with"
            " `[machine]`, `[start]`, `[time]`, `[control]` and `[wind]`, as in a study.",
        ),
    ]
    q: Annotated[
        str | None,
        typer.Option(
            help=f"Set the initial configuration: {STATE}; random; or a keyframe of an MJCF file.",
            show_default="neutral",
        ),
    ] = None
    v: Annotated[str | None, typer.Option(help=f"Set the initial velocity: {STATE}.", show_default="zero")] = None
    torque: Annotated[
        str | None, typer.Option(help=f"Apply constant joint forces, N m or N: {STATE}.", show_default="zero")
    ] = None
    ctrl: Annotated[
        str | None, typer.Option(help=f"Drive the actuators of the file with constant commands: {_CTRL}.")
    ] = None
    actuator_time: Annotated[
        str | None,
        typer.Option(help=f"Set the time constants of first-order actuators, s: {_LAG}.", show_default="zero"),
    ] = None
    duration: Annotated[float, typer.Option(help="Set the duration of the motion, s.")] = 5.0
    dt: Annotated[
        float, typer.Option(help="Set the step size, s; with --adaptive, the interval between saved states.")
    ] = 1e-3
    method: Annotated[
        str | None,
        typer.Option(
            help="Set the integration method, such as MK4, MK8 or, for stiff systems, Rodas4; an unknown name lists"
            " all. auto uses MK4 where it is stable, Rodas4 elsewhere.",
            show_default="auto; MK54 with --adaptive",
        ),
    ] = None
    adaptive: Annotated[bool, typer.Option("--adaptive", help="Control the step size by the tolerance.")] = False
    tolerance: Annotated[
        float | None,
        typer.Option(help="Set the tolerance of --adaptive: rad, m, relative for velocities.", show_default="1e-06"),
    ] = None
    gravity: Annotated[
        str | None,
        typer.Option(help='Set the gravitational acceleration, m/s²: "0,0,-9.81".', show_default="as in the file"),
    ] = None
    floating_base: FloatingBase = False
    ignore_equalities: Annotated[
        bool, typer.Option("--ignore-equalities", help="Ignore the <equality> constraints of an MJCF file.")
    ] = False
    loops: Loops = None
    xacro_arg: XacroArguments = None
    out: Annotated[Path, typer.Option(help="Write the run to this file: .npz, .parquet, .csv or .mcap.")] = Path(
        "run.npz"
    )
    plot: Annotated[bool, typer.Option("--plot", help="Write plots next to the run.")] = False
    html: Annotated[bool, typer.Option("--html", help="Write a 3D scene for any browser next to the run.")] = False
    save_every: Annotated[int, typer.Option(min=1, help="Save every N-th state.", metavar="N")] = 1
    float32: Annotated[bool, typer.Option("--float32", help="Compute in single precision instead of double.")] = False
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, metavar="N", help="Set the seed of --q random.")] = 0
    check: Annotated[bool, typer.Option("--check", help="Report which quantity diverges first.")] = False
    no_step_check: Annotated[bool, typer.Option("--no-step-check", help=_STEP_CHECK)] = False
    stops: Annotated[
        bool,
        typer.Option("--stops", help="Turn position limits into compliant stops with impacts of about 20 ms."),
    ] = False
    yes: Annotated[bool, typer.Option("--yes", help="Start long or memory-intensive runs without confirmation.")] = (
        False
    )
    force: Force = False


@dataclass(frozen=True)
class OptimizationRequest:
    """Arguments and options of ``lgsim optimize``."""

    scenario: Annotated[
        Path | None, typer.Argument(metavar="SCENARIO", help="Read the scenario from this TOML file.")
    ] = None
    out: Annotated[Path, typer.Option(help="Write the motion to this file: .npz, .parquet or .csv.")] = Path("run.npz")
    plot: Annotated[bool, typer.Option("--plot", help="Write plots next to the motion.")] = False
    html: Annotated[bool, typer.Option("--html", help="Write a 3D scene for any browser next to the motion.")] = False
    check: Annotated[bool, typer.Option("--check", help="Check the scenario and exit.")] = False
    restart: Restart = False
    force: Force = False
    example: Annotated[
        str | None, typer.Option(help="Print an example scenario and exit: reach, swing_up or follow.")
    ] = None


class PriorBodies(StrEnum):
    """Bodies from which an identification starts."""

    file = "file"
    nearest = "nearest"


@dataclass(frozen=True)
class RecordRequest:
    """Arguments and options of the commands that read recorded motion: ``lgsim identify`` and ``lgsim estimate``."""

    machine: Annotated[
        Path | None, typer.Argument(metavar="ROBOT", help="Read the prior model from this URDF, SDF or MJCF file.")
    ] = None
    motion: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="MOTION",
            help="Read one or several recordings: text such as .csv, .parquet, .npz, .mat, .mcap, .db3, .bag, .ulg, or"
            " the folder of a ROS 2 bag or a LeRobot data set.",
        ),
    ] = None
    map: Annotated[
        Path | None, typer.Option(help="Read columns, units, delays and priors from a TOML file; see --example.")
    ] = None
    floating_base: FloatingBase = False
    lock: Annotated[
        str | None,
        typer.Option(
            help='Lock these joints, separated by commas: "finger,wrist=0.3"; without a value where they stand in the'
            " record, else at the neutral position.",
            metavar="JOINTS",
        ),
    ] = None
    xacro_arg: XacroArguments = None
    report: Annotated[Path | None, typer.Option(help="Write a report to this .html file.")] = None
    plot: Annotated[bool, typer.Option("--plot", help="Write the plots of the report next to the .npz file.")] = False
    check: Annotated[bool, typer.Option("--check", help="Read and check the recordings, and exit.")] = False
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Use a record despite its unresolved issues, and replace existing files of any kind."
        ),
    ] = False
    example: Annotated[
        bool,
        typer.Option("--example", help="Print a map of the first recording for the robot, or an example, and exit."),
    ] = False


@dataclass(frozen=True)
class IdentificationRequest(RecordRequest):
    """Arguments and options of ``lgsim identify``."""

    fit: Annotated[
        str | None,
        typer.Option(
            help="Fit these parameters, separated by commas: masses, centers, bodies, friction, damping, armature,"
            " offsets, ...",
            show_default="as in the map, else bodies,friction,damping",
        ),
    ] = None
    method: Annotated[
        str,
        typer.Option(
            help="Set the method. torque: joint forces against inverse dynamics; linear: the same for base parameters;"
            " simulation: simulated against recorded positions; auto: torque if forces or currents were recorded.",
        ),
    ] = "auto"
    friction_speed: Annotated[
        float | None,
        typer.Option(
            help="Set the changeover speed of dry friction, rad/s or m/s, instead of fitting it.",
            show_default="fitted if joint forces or currents were recorded, else as in the file",
        ),
    ] = None
    physical: Annotated[
        PriorBodies,
        typer.Option(
            help="Start from the bodies of the file, or with nearest from the nearest physically consistent ones where"
            " the file has bodies without mass or inertia, or with invalid ones."
        ),
    ] = PriorBodies.file
    held_out: Annotated[
        float, typer.Option(help="Hold out this fraction of the motion for validation; 0 holds out none.")
    ] = 0.3
    lags: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Set the correlation length of the force noise, samples; 0 for white noise.",
            show_default="estimated from the residuals",
        ),
    ] = None
    loops: Loops = None
    out: Annotated[Path, typer.Option(help="Write parameters, covariance and model to this .npz file.")] = Path(
        "fit.npz"
    )
    write: Annotated[
        Path | None, typer.Option(help="Write the identified model to this URDF file; replace one only with --force.")
    ] = None
    restart: Restart = False
    no_step_check: Annotated[
        bool,
        typer.Option("--no-step-check", help="Skip the estimate of the effect of the step size on the parameters."),
    ] = False


class FilterMethod(StrEnum):
    """Filters of recorded motion."""

    ekf = "ekf"
    iterated = "iterated"
    unscented = "unscented"


@dataclass(frozen=True)
class EstimationRequest(RecordRequest):
    """Arguments and options of ``lgsim estimate``."""

    method: Annotated[
        FilterMethod,
        typer.Option(
            help="Set the filter: ekf, the extended Kalman filter; iterated, for precise readings that are strongly"
            " curved; unscented, without derivatives."
        ),
    ] = FilterMethod.ekf
    smooth: Annotated[bool, typer.Option("--smooth", help="Use the later readings too, by a smoother.")] = False
    unknown: Annotated[
        str | None,
        typer.Option(
            help="Estimate these parameters too, separated by commas: masses, friction, damping, ...; see identify.",
            show_default="as in the map, else none",
        ),
    ] = None
    force_noise: Annotated[
        float | None,
        typer.Option(
            help="Set the density of the random joint forces, N m or N per sqrt(Hz).",
            show_default="as in the map, else the most likely one",
        ),
    ] = None
    gate: Annotated[
        float | None,
        typer.Option(
            help="Leave out readings beyond a gate within which this fraction of good ones lies, such as 0.999.",
            show_default="as in the map, else no gate",
        ),
    ] = None
    dt: Annotated[
        float | None,
        typer.Option(help="Set the largest step between readings, s.", show_default="1.5 times the usual one"),
    ] = None
    out: Annotated[Path, typer.Option(help="Write states and standard deviations to this .npz file.")] = Path(
        "estimate.npz"
    )


class Computer(StrEnum):
    """Engine that runs the samples of a study."""

    local = "local"
    ray = "ray"


@dataclass(frozen=True)
class StudyRequest:
    """Arguments and options of ``lgsim montecarlo run``."""

    study: Annotated[
        Path | None, typer.Argument(metavar="STUDY", help="Read the random inputs and the outputs from a TOML file.")
    ] = None
    samples: Annotated[
        int | None, typer.Option(metavar="N", help="Set the number of samples.", show_default="as in the file")
    ] = None
    seed: Annotated[
        int | None, typer.Option(metavar="N", help="Set the seed of the random inputs.", show_default="as in the file")
    ] = None
    engine: Annotated[Computer, typer.Option(help="Run in this process on all its devices, or on a Ray cluster.")] = (
        Computer.local
    )
    address: Annotated[
        str | None,
        typer.Option(
            help="Connect to a Ray cluster: host:port, ray://host:port or auto.", show_default="a new cluster"
        ),
    ] = None
    out: Annotated[Path, typer.Option(metavar="STORE", help="Write the samples to this new folder.")] = Path("study")
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue an existing store; --samples may be larger than before.")
    ] = False
    check: Annotated[bool, typer.Option("--check", help="Check the study and exit.")] = False
    no_step_check: Annotated[
        bool,
        typer.Option("--no-step-check", help="Skip the estimate of the effect of the step size on the statistics."),
    ] = False
    example: Annotated[str | None, typer.Option(help="Print an example study and exit: hover or arm.")] = None
