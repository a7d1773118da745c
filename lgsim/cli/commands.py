"""The commands but for ``montecarlo``; what they do is loaded when one of them is called."""

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
    command,
    file_or_example,
    names_of,
)
from lgsim.cli.requests import IdentificationRequest, OptimizationRequest, SimulationRequest
from lgsim.cli.terminal import echo, echo_file
from lgsim.support.messages import unknown_choice

FUNCTIONS = (
    "inverse_dynamics", "forward_dynamics", "mass_matrix", "bias_forces", "gravity_forces", "forward_kinematics",
    "inverse_dynamics_derivatives", "forward_dynamics_derivatives", "step",
)  # fmt: skip
LANGUAGES = ("c", "numpy", "casadi")
METHODS = ("auto", "torque", "linear", "simulation")
"""The methods of an identification."""


def demo(
    file: Annotated[Path | None, typer.Argument(metavar="FILE", help="A machine; else the arm of lgsim.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for what is made.")] = Path("demo"),
    duration: Annotated[float, typer.Option(help="Seconds of motion.")] = 5.0,
    force: Force = False,
) -> None:
    """Load a machine, move it within its limits, check its energy, differentiate through the motion, make pictures.

    A law of control leads it to two postures and back. Writes plots, a scene that plays in any browser, and the run.
    """
    if not 0 < duration < float("inf"):
        raise BadInput(f"--duration: expected a positive number of seconds, got {duration:g}")
    from lgsim.cli.work.demo import run_demo

    run_demo(file, out, duration, force)


def info(file: MachineArgument, floating_base: FloatingBase = False, loops: Loops = None) -> None:
    """Show a machine: its bodies, joints and loops, masses, limits, frames, and what is odd in its file."""
    from lgsim.cli.work.machine_info import show_machine

    show_machine(file, floating_base, loops)


@command(SimulationRequest)
def simulate(asked: SimulationRequest) -> Exit:
    """Simulate a machine and save the run.

    Ctrl-C ends the simulation early and saves what there is; so does a motion that diverges. With --adaptive the steps
    are as long as the tolerance lets them be, and --dt says only what is saved. The error that the steps leave is
    estimated from the same motion with other steps.
    """
    from lgsim.cli.work.simulation import run_simulation

    return run_simulation(asked)


@command(OptimizationRequest)
def optimize(asked: OptimizationRequest) -> Exit:
    """Find the motion that does what a scenario asks for: reach a pose, swing up, follow a path.

    Start with `lgsim optimize --example reach > reach.toml` and `lgsim optimize reach.toml --plot --html`. Ctrl-C ends
    the search early and saves the best motion so far; the same command then goes on, from a checkpoint beside it.
    """
    from lgsim import data

    maker = "lgsim optimize --example reach > reach.toml"
    found = file_or_example("SCENARIO", asked.scenario, asked.example, data.SCENARIOS, data.scenario, maker)
    from lgsim.cli.work.optimization import run_optimization

    return run_optimization(asked, found)


@command(IdentificationRequest)
def identify(asked: IdentificationRequest) -> Exit:
    """Find masses, inertias, friction and other numbers of a machine from its recorded motion, and how sure they are.

    Columns with clear names, such as "time", "elbow_position" or "tau elbow", need no map. Ctrl-C ends the search; the
    same command then goes on, to the same numbers, from a checkpoint beside the output.

    The first line of the output is the verdict. A fit that converged at a bound, or with combinations that the prior
    decides, has converged too. Steps of a simulation that decide the numbers are not resolved.
    """
    if asked.example:
        from lgsim.data import recording_map

        if asked.machine is not None:
            raise BadInput("--example: without MACHINE and MOTION; it prints a map, your shell can keep it: > map.toml")
        echo_file(recording_map().read_text(encoding="utf-8"))
        return Exit.DONE
    if asked.machine is None or not asked.motion:
        raise BadInput(
            "MACHINE MOTION: expected a URDF, SDF or MJCF file and a recorded motion, such as a .csv or .mcap file"
        )
    if asked.method not in METHODS:
        raise BadInput(unknown_choice("--method: expected one of", asked.method, METHODS))
    needs("scipy", "identify", "identification")
    from lgsim.cli.work.identification import run_identification

    return run_identification(asked, asked.machine, asked.motion)


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
    file: Annotated[Path, typer.Argument(metavar="RUN_OR_FILE", help="A run, or a machine: a URDF, SDF or MJCF file.")],
    html: Annotated[Path | None, typer.Option(help="Write a file that plays in any browser, and end.")] = None,
    visuals: Annotated[
        Path | None, typer.Option(help="The URDF or MJCF file with the shapes of a run's machine.")
    ] = None,
    floating_base: FloatingBase = False,
    trace: Annotated[
        str | None, typer.Option(help="Frames whose path is drawn, names between commas.", metavar="FRAMES")
    ] = None,
    follow: Annotated[
        str | None, typer.Option(help="A frame that stays in the middle of the picture.", metavar="FRAME")
    ] = None,
    ghosts: Annotated[int, typer.Option(min=0, help="Draw the machine at so many moments too, seen through.")] = 0,
    floor: Annotated[float, typer.Option(help="Height of the ground, m.")] = 0.0,
    port: Annotated[int, typer.Option(min=1, max=65535, help="Of the live scene.")] = 8080,
    force: Force = False,
) -> None:
    """Show a run, or a machine whose joints you move, in a browser on this computer; Ctrl-C ends it."""
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
    second: Annotated[Path, typer.Argument(metavar="RUN", help="Another run of the same machine.")],
    plot: Annotated[Path | None, typer.Option(help="A plot of the differences over time: .png, .pdf or .svg.")] = None,
    force: Force = False,
) -> None:
    """Show the largest differences of two runs of one machine, at the times that both have, and how they grow."""
    from lgsim.cli.work.differences import show_differences

    show_differences(first, second, plot, force)


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

    files.check_out("OUT", out)
    motion = files.load(run)
    check_replaced([Output("OUT", out, "run", files.joint_list(motion.model))], force)
    echo(files.save_run(motion, out, machine))


def generate(
    file: MachineArgument,
    functions: Annotated[
        str, typer.Option(help=f"What is written, names with commas: {', '.join(FUNCTIONS)}.")
    ] = "inverse_dynamics,forward_dynamics",
    language: Annotated[str, typer.Option(help=f"One of {', '.join(LANGUAGES)}.")] = "c",
    out: Annotated[Path, typer.Option(help="The folder for the files; it is made if it is not there.")] = Path("code"),
    float32: Annotated[bool, typer.Option("--float32", help="Single precision, float instead of double.")] = False,
    floating_base: FloatingBase = False,
    limit: Annotated[int, typer.Option(min=1, help="The largest number of operations of a function.")] = 100_000,
    force: Force = False,
) -> None:
    """Write a machine's equations as code for controllers and other languages, without dependencies.

    The numbers of the machine are constants of the code. In C each function has a .c and a .h file, and example.c calls
    all of them: `cc -std=c99 -O3 code/*.c -o example -lm`.
    """
    names = [name.strip() for name in functions.split(",")]
    for name in names:
        if name not in FUNCTIONS:
            raise BadInput(unknown_choice("--functions: expected some of", name, FUNCTIONS))
        if names.count(name) > 1:
            raise BadInput(f"--functions: {name!r} occurs twice")
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
