"""An optimization of ``lgsim optimize``, from the check of the scenario to the files that it leaves."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import jax.numpy as jnp
import numpy as np
from rich.console import RenderableType

from lgsim.cli import files, pictures
from lgsim.cli.checks import starts
from lgsim.cli.checks.replacement import Output, check_replaced
from lgsim.cli.errors import Stop, bad_input
from lgsim.cli.exit_status import Exit
from lgsim.cli.iterations import IterationWatch
from lgsim.cli.requests import OptimizationRequest
from lgsim.cli.terminal import console, lines, note, show_facts
from lgsim.optimize import RESULTS, AugmentedLagrangian, FreeTime, Solution, plan_error, solve, to_trajectory
from lgsim.scenarios import load_scenario
from lgsim.scenarios.optimization import Scenario
from lgsim.simulation import Trajectory
from lgsim.simulation.equations_of_motion import split_state
from lgsim.simulation.limits import limit_rows, limit_warnings
from lgsim.support.messages import counted


def run_optimization(asked: OptimizationRequest, scenario: Path) -> Exit:
    """Solve, save, show a table, and return why it ended.

    Raises:
        ScenarioError: the scenario is wrong; this is found before anything is compiled.
        BadInput: a word is wrong, or the checkpoint is of another problem.
        Stop: a package is missing, or there is nothing to save.
    """
    files.configure_jax()
    files.check_out("--out", asked.out)
    wanted = load_scenario(scenario)
    if asked.plot:
        pictures.check_plots()
    visuals = pictures.visuals(wanted.machine.path) if asked.html else None
    files.remark(wanted.machine.report, wanted.machine.floating_base)
    problem, solver = wanted.problem, wanted.solver
    q0, v0 = split_state(wanted.machine.model, problem.y0)
    starts.check_inertia(scenario, wanted.machine.model, q0)
    starts.remark(wanted.machine.model, q0, v0)
    console(error=True).print(f"{scenario}: {_summary(wanted)}", soft_wrap=True)
    if asked.check:
        return Exit.DONE
    check_replaced(pictures.motion_outputs(wanted.machine.model, asked.out, asked.plot, asked.html), asked.force)
    files.keep_compiled()
    kept = files.checkpoint(asked.out)
    if asked.restart:
        check_replaced([Output("--restart", kept, "checkpoint")], asked.force)
    files.begin_search(kept, asked.restart)
    start = time.perf_counter()
    watch = IterationWatch(isinstance(solver, AugmentedLagrangian), solver.iteration_limit)
    with bad_input(f"{scenario}: ", (ValueError,)), watch:
        result = solve(problem, wanted.us, solver=solver, progress=watch, checkpoint=kept)
    wall = time.perf_counter() - start
    if not bool(jnp.all(jnp.isfinite(result.ys))):
        kept.unlink(missing_ok=True)
        raise Stop(f"{scenario}: {result.message}", Exit.DIVERGED)
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
    made += pictures.save_beside(motion, asked.out, asked.plot, asked.html, visuals)
    _show(wanted, result, motion, watch, wall, made)
    return Exit.INTERRUPTED if interrupted else Exit.NO_OPTIMUM if result.message else Exit.DONE


def _summary(wanted: Scenario) -> str:
    """The problem in a line."""
    problem = wanted.problem
    dt = float(problem.dynamics.dt)
    names = ", ".join(task.name + (" (exact)" if task.exact else "") for task in wanted.tasks)
    free = [f" at first, {u.lower:g} to {u.upper:g} s in all" for u in problem.free if isinstance(u, FreeTime)]
    steps = f"{counted(problem.controls, 'drive')}, {counted(problem.horizon, 'step')} of {dt:g} s{''.join(free)}"
    return f"{names}; {wanted.machine.path.name}, {steps}, by {wanted.solver_kind}"


def _violation(result: Solution) -> str:
    """How the constraints are met, and where worst."""
    size, report = f"{float(result.violation):.2g} of the constraints", result.constraints
    if report is None:
        return size
    worst = f"{size}, worst {report.text(report.violated, result.ts)}" if int(report.violated.node) >= 0 else size
    if int(report.left_out.node) < 0:
        return worst
    return f"{worst}; left out, since no control moves it: {report.text(report.left_out, result.ts)}"


def _show(
    wanted: Scenario, result: Solution, motion: Trajectory, watch: IterationWatch, wall: float, made: list[Path]
) -> None:
    """Write a table about the solution and the time that it took."""
    problem = wanted.problem
    facts: list[tuple[str, RenderableType]] = [("cost", f"{float(result.cost):.6g}")]
    for task in wanted.tasks:
        for size, unit in task.errors(problem, result):
            facts.append((task.name, f"off by {size:.2g} {unit}{' at most' if task.along else ' at the end'}"))
    if problem.free:
        facts.append(("duration", f"{float(result.ts[-1] - result.ts[0]):.6g} s"))
    if problem.constraints:
        facts.append(("violation", _violation(result)))
    if problem.bounded:
        us, upper = np.abs(result.us), np.asarray(problem.upper)
        share = float(np.max(us[:, upper > 0] / upper[upper > 0]))
        facts.append(("drives", f"up to {100 * share:.3g} % of their limits"))
    facts += [
        ("optimality", f"a further step promises {float(result.optimality.decrement):.1g} of the cost"),
        ("error of the steps", f"{motion.step_error}, without feedback"),
        *limit_rows(motion.limit_uses),
        ("iterations", f"{int(result.iterations)}{', not converged' if result.message else ', converged'}"),
        ("wall time", f"{wall:.2f} s, {watch.compiling:.2f} s of it compiling and the first iteration"),
        ("files", lines(made)),
    ]
    show_facts(facts)
    for warning in limit_warnings(motion.limit_uses):
        note(warning)
