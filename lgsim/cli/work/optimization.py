"""``lgsim optimize``: check the scenario, solve, write files, print a summary."""

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
    """Solve, save, print a table, and return the reason why it ended.

    Raises:
        ScenarioError: the scenario is invalid; raised before anything is compiled.
        BadInput: an argument is invalid, or the checkpoint is of another problem.
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
        note(f"interrupted after {done}; the best motion so far is in {asked.out}, the same command continues")
    else:
        kept.unlink(missing_ok=True)
        if result.message:
            note(f"{result.message} The last iterate is in {asked.out}")
    made += pictures.save_beside(motion, asked.out, asked.plot, asked.html, visuals)
    _show(wanted, result, motion, watch, wall, made)
    return Exit.INTERRUPTED if interrupted else Exit.NO_OPTIMUM if result.message else Exit.DONE


def _summary(wanted: Scenario) -> str:
    """Summary of the problem in one line."""
    problem = wanted.problem
    dt = float(problem.dynamics.dt)
    names = ", ".join(task.name + (" (exact)" if task.exact else "") for task in wanted.tasks)
    free = [f" initially, {u.lower:g} to {u.upper:g} s in total" for u in problem.free if isinstance(u, FreeTime)]
    steps = f"{counted(problem.controls, 'control')}, {counted(problem.horizon, 'step')} of {dt:g} s{''.join(free)}"
    return f"{names}; {wanted.machine.path.name}, {steps}, by {wanted.solver_kind}"


def _violation(result: Solution) -> str:
    """Text of the largest constraint violation."""
    size, report = f"{float(result.violation):.2g} of the constraints", result.constraints
    if report is None:
        return size
    worst = f"{size}, worst {report.text(report.violated, result.ts)}" if int(report.violated.node) >= 0 else size
    if int(report.left_out.node) < 0:
        return worst
    return f"{worst}; ignored because no control affects it: {report.text(report.left_out, result.ts)}"


def _show(
    wanted: Scenario, result: Solution, motion: Trajectory, watch: IterationWatch, wall: float, made: list[Path]
) -> None:
    """Print a table of the solution and its wall time."""
    problem = wanted.problem
    facts: list[tuple[str, RenderableType]] = [("cost", f"{float(result.cost):.6g}")]
    for task in wanted.tasks:
        for size, unit in task.errors(problem, result):
            facts.append((task.name, f"{'largest error' if task.along else 'final error'} {size:.2g} {unit}"))
    if problem.free:
        facts.append(("duration", f"{float(result.ts[-1] - result.ts[0]):.6g} s"))
    if problem.constraints:
        facts.append(("violation", _violation(result)))
    if problem.bounded:
        us, upper = np.abs(result.us), np.asarray(problem.upper)
        share = float(np.max(us[:, upper > 0] / upper[upper > 0]))
        facts.append(("actuators", f"up to {100 * share:.3g} % of their limits"))
    facts += [
        ("optimality", f"predicted relative decrease of the cost {float(result.optimality.decrement):.1g}"),
        ("integration error", f"{motion.step_error}, in open loop"),
        *limit_rows(motion.limit_uses),
        ("iterations", f"{int(result.iterations)}{', not converged' if result.message else ', converged'}"),
        ("wall time", f"{wall:.2f} s, including {watch.compiling:.2f} s for compilation and the first iteration"),
        ("files", lines(made)),
    ]
    show_facts(facts)
    for warning in limit_warnings(motion.limit_uses):
        note(warning)
