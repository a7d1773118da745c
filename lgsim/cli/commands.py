"""All commands except ``montecarlo``; each imports its implementation when it is called."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lgsim.cli.checks.replacement import Force, Output, check_replaced
from lgsim.cli.errors import BadInput, needs
from lgsim.cli.exit_status import Exit
from lgsim.cli.options import (
    FloatingBase,
    Loops,
    MachineArgument,
    RunArgument,
    XacroArguments,
    command,
    file_or_example,
    machine_path,
    names_of,
)
from lgsim.cli.requests import EstimationRequest, IdentificationRequest, OptimizationRequest, SimulationRequest
from lgsim.cli.terminal import echo, echo_file
from lgsim.support.messages import unknown_choice

FUNCTIONS = (
    "inverse_dynamics", "forward_dynamics", "mass_matrix", "bias_forces", "gravity_forces", "forward_kinematics",
    "inverse_dynamics_derivatives", "forward_dynamics_derivatives", "step",
)  # fmt: skip
LANGUAGES = ("c", "numpy", "casadi")
METHODS = ("auto", "torque", "linear", "simulation")
"""Methods of identification."""


def demo(
    file: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", help="Read the robot from this file.", show_default="a 7-joint arm"),
    ] = None,
    out: Annotated[Path, typer.Option(help="Write plots, scene and run to this folder.")] = Path("demo"),
    duration: Annotated[float, typer.Option(help="Set the duration of the motion, s.")] = 5.0,
    force: Force = False,
) -> None:
    """Simulate a robot, check energy and gradient, plot the motion.

    A computed-torque controller moves the robot to two postures and back, within its limits. The results are plots, a
    3D scene for any browser, and the run.
    """
    if not 0 < duration < float("inf"):
        raise BadInput(f"--duration: expected a positive number of seconds, got {duration:g}")
    from lgsim.cli.work.demo import run_demo

    run_demo(file, out, duration, force)


def info(
    file: MachineArgument,
    floating_base: FloatingBase = False,
    loops: Loops = None,
    xacro_arg: XacroArguments = None,
) -> None:
    """Show the structure and the parameters of a robot.

    These are bodies, joints, closed kinematic loops, masses, limits, frames, and issues in the robot's file.
    """
    from lgsim.cli.work.machine_info import show_machine

    show_machine(machine_path(file, xacro_arg), floating_base, loops)


@command(SimulationRequest)
def simulate(asked: SimulationRequest) -> Exit:
    """Simulate a robot and save the run.

    Ctrl-C ends the simulation early and saves the motion so far; so does a motion that diverges. With --adaptive the
    tolerance controls the step size, and --dt is the interval between saved states. The integration error is estimated
    by repeating the motion with other step sizes.
    """
    from lgsim.cli.work.simulation import run_simulation

    return run_simulation(asked)


@command(OptimizationRequest)
def optimize(asked: OptimizationRequest) -> Exit:
    """Find an optimal motion: reach a pose, swing up, follow a path.

    Start with `lgsim optimize --example reach > reach.toml` and `lgsim optimize reach.toml --plot --html`. Ctrl-C ends
    the search and saves the best motion so far. The same command continues it from a checkpoint next to the output.
    """
    from lgsim import data

    maker = "lgsim optimize --example reach > reach.toml"
    found = file_or_example("SCENARIO", asked.scenario, asked.example, data.SCENARIOS, data.scenario, maker)
    from lgsim.cli.work.optimization import run_optimization

    return run_optimization(asked, found)


@command(IdentificationRequest)
def identify(asked: IdentificationRequest) -> Exit:
    """Identify parameters of a robot from recorded motion.

    Masses, inertias, friction and other parameters, see --fit, are estimated with their standard errors. Columns with
    clear names, such as "time", "elbow_position" or "tau elbow", need no map. Ctrl-C ends the search. The same command
    continues it from a checkpoint next to the output, with identical results.

    The first line of the output is the verdict. A fit with active bounds, or with combinations of parameters that only
    the prior determines, counts as converged. A fit that depends on the step size of the simulation does not.
    """
    machine = _recorded_machine(asked)
    if machine is None:
        return Exit.DONE
    if asked.method not in METHODS:
        raise BadInput(unknown_choice("--method: expected one of", asked.method, METHODS))
    needs("scipy", "identify", "identification")
    from lgsim.cli.work.identification import run_identification

    return run_identification(asked, machine, asked.motion or [])


@command(EstimationRequest)
def estimate(asked: EstimationRequest) -> Exit:
    """Estimate the states of a robot from recorded motion.

    Positions, velocities and unknown parameters are estimated with their standard deviations, by a filter or, with
    --smooth, by a smoother. The record and its map are those of `lgsim identify`. Noises that neither the map nor an
    option gives are those of the largest likelihood.

    The first line of the output is the verdict: the estimate is consistent if all residuals are as large as predicted.
    """
    machine = _recorded_machine(asked)
    if machine is None:
        return Exit.DONE
    needs("scipy", "identify", "estimation")
    from lgsim.cli.work.estimation import run_estimation

    return run_estimation(asked, machine, asked.motion or [])


def _recorded_machine(asked: IdentificationRequest | EstimationRequest) -> Path | None:
    """The robot's file; with ``--example``, print a map of the first recording, or the example, and return None.

    Raises:
        BadInput: a file is missing.
    """
    if asked.example and asked.machine is None:
        from lgsim.data import recording_map

        echo_file(recording_map().read_text(encoding="utf-8"))
        return None
    if asked.machine is None or not asked.motion:
        raise BadInput(
            "ROBOT MOTION: expected a URDF, SDF or MJCF file and a recorded motion, such as a .csv or .mcap file"
        )
    machine = machine_path(asked.machine, asked.xacro_arg)
    if not asked.example:
        return machine
    from lgsim.cli.work.identify_preparation import print_map

    print_map(machine, asked.floating_base, asked.motion[0])
    return None


def plot(
    run: RunArgument,
    out: Annotated[
        Path | None,
        typer.Option(help="Write the plots to this folder; create it if missing.", show_default="folder of the run"),
    ] = None,
    phase: Annotated[
        list[str] | None, typer.Option(help="Draw the phase portrait of this joint; repeat for more joints.")
    ] = None,
    joints: Annotated[
        str | None, typer.Option(help="Show these joints, separated by commas.", show_default="all")
    ] = None,
    format: Annotated[str, typer.Option(help="Set the file format: png, pdf or svg.")] = "png",
    width: Annotated[
        float | None,
        typer.Option(
            help="Set the width, inches: 3.4 for one column of a paper, 7.2 for a page.", show_default="up to 7.2"
        ),
    ] = None,
    force: Force = False,
) -> None:
    """Plot joints, energy and momentum of a run over time."""
    from lgsim.cli import files, pictures

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


def view(
    file: Annotated[
        Path, typer.Argument(metavar="RUN_OR_FILE", help="Read a run, or a robot from a URDF, SDF or MJCF file.")
    ],
    html: Annotated[
        Path | None, typer.Option(help="Write the scene to an .html file for any browser, and exit.")
    ] = None,
    visuals: Annotated[
        Path | None,
        typer.Option(
            help="Read the shapes of a run's robot from this URDF or MJCF file.", show_default="simple shapes"
        ),
    ] = None,
    floating_base: FloatingBase = False,
    trace: Annotated[
        str | None, typer.Option(help="Draw the paths of these frames, separated by commas.", metavar="FRAMES")
    ] = None,
    follow: Annotated[
        str | None, typer.Option(help="Keep this frame in the center of the view.", metavar="FRAME")
    ] = None,
    ghosts: Annotated[
        int, typer.Option(min=0, metavar="N", help="Draw N transparent copies of the robot along the motion.")
    ] = 0,
    floor: Annotated[float, typer.Option(help="Set the height of the ground, m.")] = 0.0,
    port: Annotated[
        int, typer.Option(min=1, max=65535, metavar="PORT", help="Serve the live scene on this port.")
    ] = 8080,
    force: Force = False,
) -> None:
    """Show a run or a robot in a browser.

    A robot has sliders for its joints. Ctrl-C ends the live scene.
    """
    from lgsim.cli import files, pictures
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


def compare(
    first: RunArgument,
    second: Annotated[Path, typer.Argument(metavar="RUN", help="Read another run of the same robot.")],
    plot: Annotated[
        Path | None, typer.Option(help="Plot the differences over time to this .png, .pdf or .svg file.")
    ] = None,
    force: Force = False,
) -> None:
    """Show the largest differences between two runs of a robot.

    Runs are compared at common times. A growth rate is shown if the motion is chaotic.
    """
    from lgsim.cli.work.differences import show_differences

    show_differences(first, second, plot, force)


def convert(
    run: RunArgument,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Write to this file: .npz, .parquet, .csv or .mcap.")],
    machine: Annotated[
        Path | None, typer.Option(help="Embed the shapes of this URDF file of the robot in an .mcap file.")
    ] = None,
    force: Force = False,
) -> None:
    """Convert a run to .npz, .parquet, .csv or .mcap.

    A .csv or .mcap file contains no model and cannot be read back as a run. Foxglove, Rerun and PlotJuggler show .mcap
    files: /joint_states, /tf and, for floating bases, odometry.
    """
    from lgsim.cli import files

    files.check_out("OUT", out)
    motion = files.load(run)
    check_replaced([Output("OUT", out, "run", files.joint_list(motion.model))], force)
    echo(files.save_run(motion, out, machine))


def generate(
    file: MachineArgument,
    functions: Annotated[
        str, typer.Option(help=f"Generate these functions, separated by commas: {', '.join(FUNCTIONS)}.")
    ] = "inverse_dynamics,forward_dynamics",
    language: Annotated[str, typer.Option(help=f"Set the language: {', '.join(LANGUAGES)}.")] = "c",
    out: Annotated[Path, typer.Option(help="Write the files to this folder; create it if missing.")] = Path("code"),
    float32: Annotated[bool, typer.Option("--float32", help="Compute in single precision instead of double.")] = False,
    floating_base: FloatingBase = False,
    limit: Annotated[
        int, typer.Option(min=1, help="Set the largest number of arithmetic operations of a function.")
    ] = 100_000,
    force: Force = False,
) -> None:
    """Generate code without dependencies for the dynamics of a robot.

    The parameters of the robot are constants in the code. In C each function has a .c and a .h file, and example.c
    calls all functions: `cc -std=c99 -O3 code/*.c -o example -lm`.
    """
    names = [name.strip() for name in functions.split(",")]
    for name in names:
        if name not in FUNCTIONS:
            raise BadInput(unknown_choice("--functions: expected some of", name, FUNCTIONS))
        if names.count(name) > 1:
            raise BadInput(f"--functions: expected distinct names, got {name!r} twice")
    if language not in LANGUAGES:
        raise BadInput(unknown_choice("--language: expected one of", language, LANGUAGES))
    if language == "casadi":
        needs("casadi", "casadi", "--language casadi")
    if out.exists() and not out.is_dir():
        raise BadInput(f"--out: expected a folder, got the file {str(out)!r}")
    from lgsim.cli import files

    files.check_folder("--out", out if out.is_dir() else out.absolute().parent)
    model, report = files.read_machine(file, floating_base=floating_base, float32=float32)
    files.remark(report, floating_base)
    from lgsim.cli.work.generation import write_code

    write_code(file, model, names, language, out, limit, force)
