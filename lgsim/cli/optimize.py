"""``lgsim optimize``: an optimization, from the check of the scenario to the files that it leaves."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from lgsim.cli.checks.replacement import Force, Output, check_replaced
from lgsim.cli.errors import BadInput, Stop
from lgsim.cli.exit_status import Exit
from lgsim.cli.iterations import IterationWatch
from lgsim.cli.terminal import console, echo_file, lines, note
from lgsim.support.messages import counted, one_line, unknown_choice

if TYPE_CHECKING:
    from lgsim.optimize import Solution
    from lgsim.scenarios.optimization import Scenario
    from lgsim.simulation import Trajectory


class OptimizationRequest(NamedTuple):
    """The words of ``lgsim optimize``; its help says what they mean."""

    scenario: Path
    out: Path
    plot: bool
    html: bool
    check: bool
    restart: bool
    force: bool


def _run_optimization(asked: OptimizationRequest) -> Exit:
    """Solve, save, show a table, and return why it ended.

    Raises:
        ScenarioError: the scenario is wrong; this is found before anything is compiled.
        BadInput: a word is wrong, or the checkpoint is of another problem.
        Stop: a package is missing, or there is nothing to save.
    """
    import jax.numpy as jnp

    from lgsim.cli import files, pictures
    from lgsim.cli.checks import starts
    from lgsim.optimize import RESULTS, plan_error, solve, to_trajectory
    from lgsim.scenarios import load_scenario
    from lgsim.simulation.equations_of_motion import split_state
    from lgsim.support.checkpoint import CheckpointError

    files.configure_jax()
    files.check_out("--out", asked.out)
    wanted = load_scenario(asked.scenario)
    if asked.plot:
        pictures.check_plots()
    visuals = pictures.visuals(wanted.machine.path) if asked.html else None
    files.remark(wanted.machine.report, wanted.machine.floating_base)
    problem, solver = wanted.problem, wanted.solver
    q0, v0 = split_state(wanted.machine.model, problem.y0)
    starts.check_inertia(asked.scenario, wanted.machine.model, q0)
    starts.remark(wanted.machine.model, q0, v0)
    most = solver.iteration_limit
    line = f"{asked.scenario}: {_summary(wanted)}"
    console(error=True).print(line, soft_wrap=True)
    if asked.check:
        return Exit.DONE
    check_replaced(pictures.motion_outputs(wanted.machine.model, asked.out, asked.plot, asked.html), asked.force)
    files.keep_compiled()
    kept = asked.out.with_suffix(".checkpoint.npz")
    if asked.restart:
        check_replaced([Output("--restart", kept, "checkpoint")], asked.force)
        kept.unlink(missing_ok=True)
    elif kept.exists():
        note(f"going on from {kept}; --restart begins anew")
    start = time.perf_counter()
    try:
        with IterationWatch(bool(problem.constraints), most) as watch:
            result = solve(problem, wanted.us, solver=solver, progress=watch, checkpoint=kept)
    except CheckpointError as error:
        raise BadInput(f"{one_line(error)}; --restart begins anew") from error
    except ValueError as error:
        raise BadInput(f"{asked.scenario}: {one_line(error)}") from error
    wall = time.perf_counter() - start
    if not bool(jnp.all(jnp.isfinite(result.ys))):
        kept.unlink(missing_ok=True)
        raise Stop(f"{asked.scenario}: {result.message}", Exit.DIVERGED)
    motion = replace(to_trajectory(problem, result), step_error=plan_error(problem, result))
    made = [files.save_run(motion, asked.out, wanted.machine.path)]
    interrupted = bool(result.result == RESULTS.interrupted)
    if interrupted:
        done = counted(int(result.iterations), "iteration")
        note(f"interrupted after {done}; the best motion so far is in {asked.out}, and the same command goes on")
    else:
        kept.unlink(missing_ok=True)
        if result.message:
            note(f"{result.message} What was found is in {asked.out}")
    if asked.plot:
        made += pictures.save_plots(motion, asked.out.parent, asked.out.stem)
    if asked.html:
        made.append(pictures.save_html(motion, asked.out.with_suffix(".html"), visuals))
    _show(wanted, result, motion, watch, wall, made)
    return Exit.INTERRUPTED if interrupted else Exit.NO_OPTIMUM if result.message else Exit.DONE


def _summary(wanted: Scenario) -> str:
    """The problem in a line."""
    problem = wanted.problem
    dt = float(problem.dynamics.dt)
    names = ", ".join(task.name + (" (exact)" if task.exact else "") for task in wanted.tasks)
    steps = f"{counted(problem.controls, 'drive')}, {counted(problem.horizon, 'step')} of {dt:g} s"
    return f"{names}; {wanted.machine.path.name}, {steps}, by {wanted.solver_kind}"


def _show(
    wanted: Scenario, result: Solution, motion: Trajectory, watch: IterationWatch, wall: float, made: list[Path]
) -> None:
    """Write a table about the solution and the time that it took."""
    import numpy as np
    from rich.table import Table

    from lgsim.simulation.limits import limit_rows, limit_warnings

    problem = wanted.problem
    table = Table.grid(padding=(0, 2))
    table.add_row("cost", f"{float(result.cost):.6g}")
    for task in wanted.tasks:
        for size, unit in task.errors(problem, result):
            table.add_row(task.name, f"off by {size:.2g} {unit}{' at most' if task.along else ' at the end'}")
    if problem.constraints:
        table.add_row("violation", f"{float(result.violation):.2g} of the conditions")
    if problem.bounded:
        us, upper = np.abs(result.us), np.asarray(problem.upper)
        share = float(np.max(us[:, upper > 0] / upper[upper > 0]))
        table.add_row("drives", f"up to {100 * share:.3g} % of their limits")
    table.add_row("error of the steps", f"{motion.step_error}, without feedback")
    for name, text in limit_rows(motion.limit_uses):
        table.add_row(name, text)
    table.add_row("iterations", f"{int(result.iterations)}{', not converged' if result.message else ', converged'}")
    table.add_row("wall time", f"{wall:.2f} s, {watch.compiling:.2f} s of it compiling and the first iteration")
    table.add_row("files", lines(made))
    console().print(table)
    for warning in limit_warnings(motion.limit_uses):
        note(warning)


def optimize(
    scenario: Annotated[
        Path | None,
        typer.Argument(metavar="SCENARIO", help="What should be done: a TOML file.", show_default=False),
    ] = None,
    out: Annotated[
        Path, typer.Option(help="Where the motion goes: .npz, .parquet or .csv; one of the machine is replaced.")
    ] = Path("run.npz"),
    plot: Annotated[bool, typer.Option("--plot", help="Plots too, beside the motion.")] = False,
    html: Annotated[
        bool, typer.Option("--html", help="A scene that plays in a browser too, beside the motion.")
    ] = False,
    check: Annotated[bool, typer.Option("--check", help="Only say whether the scenario is right, and end.")] = False,
    restart: Annotated[
        bool, typer.Option("--restart", help="Begin anew, though an interrupted search of this name could go on.")
    ] = False,
    force: Force = False,
    example: Annotated[
        str | None,
        typer.Option(help="Print a scenario to start from, and end: reach, swing_up or follow.", show_default=False),
    ] = None,
) -> None:
    """Find the motion that does what a scenario asks for: reach a pose, swing up, follow a path.

    Start with `lgsim optimize --example reach > reach.toml` and `lgsim optimize reach.toml --plot --html`. Ctrl-C ends
    the search early and saves the best motion so far; the same command then goes on, from a checkpoint beside it.
    """
    if example is not None:
        from lgsim import data

        if scenario is not None:
            raise BadInput("--example: without a SCENARIO; it prints one, and your shell can keep it: > reach.toml")
        if example not in data.SCENARIOS:
            raise BadInput(unknown_choice("--example: expected one of", example, data.SCENARIOS))
        echo_file(data.scenario(example).read_text(encoding="utf-8"))
        raise typer.Exit
    if scenario is None:
        raise BadInput("SCENARIO: expected a TOML file; lgsim optimize --example reach > reach.toml makes one")
    request = OptimizationRequest(scenario, out, plot, html, check, restart, force)
    raise typer.Exit(_run_optimization(request).status)
