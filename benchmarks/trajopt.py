"""Trajectory optimization compared with Crocoddyl's FDDP and BoxFDDP: costs, iterations and time; one core, float64.

    benchmarks/peers/setup                     once: the environment of Crocoddyl and its Pinocchio, among others
    python benchmarks/trajopt.py --quick       the pendulum, and small problems that must be solved
    python benchmarks/trajopt.py               all problems, and a record in benchmarks/results
    LGSIM_REPLAYS=folder python benchmarks/trajopt.py      with a replay of each solved problem

Needs the extra `oracle` (example-robot-data). Both solve the same problem: the same bodies, costs, bounds, guess and
symplectic Euler step, which is checked first; MK4 is shown as well. Crocoddyl solves problems one after another,
lgsim a batch in one call.
"""

import harness  # first: it pins the core before JAX starts its threads

# isort: split
import os
import sys
import tempfile
import time
from contextlib import ExitStack
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from cases import control
from cases.trajectories import problems, tracking
from peers import client, optimizers

import lgsim
from lgsim.optimize import ILQR, mpc, solve

jax.config.update("jax_enable_x64", True)

AGREEMENT = 1e-9
EQUAL = 1e-3
"""Costs are equal within this share."""
AHEAD = {64: {"Panda": 10.0, "quadruped": 6.0}, 512: {}}
"""By batch and problem: how many times Crocoddyl's time of an iteration has to be lgsim's; else 3."""
ITERATIONS = 10
"""Of a solution whose time is taken, where both need as many."""
THEIRS = 8
"""Starts that Crocoddyl solves one after the other: its time for each does not depend on how many there are."""
STEPS = 450
"""Of the closed loop with a joint bound: three turns of its circle."""
BUILD = "build its environment with: benchmarks/peers/setup"


class Study:
    """The rows of the tables, and Crocoddyl if it is installed."""

    def __init__(self, report, folder, peer):
        self.report, self.folder, self.peer = report, folder, peer
        self.agreements, self.optima, self.speeds = [], [], []

    def problem(self, setup, batches):
        """All rows of a problem."""
        print(setup.name, file=sys.stderr, flush=True)
        found, trajectories = {}, []
        if self.peer is not None:
            self.peer.load(setup.write(self.folder))
            start = time.perf_counter()
            costs, xs, us = self.peer.solve(0, 200)
            found["crocoddyl"] = costs.tolist(), float("nan"), time.perf_counter() - start
            trajectories.append((jnp.asarray(xs), jnp.asarray(us)))
        for name, problem in {"lgsim": setup.euler, "lgsim, MK4": setup.fourth}.items():
            if name != "lgsim" and self.report.quick:
                continue
            start = time.perf_counter()
            result = jax.block_until_ready(solve(problem, setup.us))
            passed, count = time.perf_counter() - start, int(result.iterations)
            found[name] = [*np.asarray(result.history.cost[:count]), float(result.cost)], float(result.gradient), passed
            if name == "lgsim":
                trajectories.append((result.ys, result.us))
                self.report.bound(f"{setup.name}: gradient at lgsim's solution", float(result.gradient), at_most=1e-4)
                self.report.bound(f"{setup.name}: gaps of lgsim's solution", float(result.feasibility), at_most=1e-9)
        if self.peer is not None:
            self.agreement(setup, trajectories)
        count = self.optimum(setup.name, found)
        for batch in batches:
            self.speed(setup, batch, min(count, ITERATIONS))

    def agreement(self, setup, trajectories):
        """Check that each library evaluates the other's solution to the same cost, without gaps."""
        value, roll = jax.jit(lambda ys, us: setup.euler.cost(ys, us)), jax.jit(lambda us: setup.euler.rollout(us))
        row = []
        for ys, us in trajectories:
            cost, gap = self.peer.cost(ys, us)
            row += [abs(cost / float(value(ys, us)) - 1), gap]
        (theirs, us), _ = trajectories
        row.append(float(np.abs(np.asarray(roll(us)) - np.asarray(theirs)).max()))
        self.agreements.append([setup.name, *row])
        self.report.bound(f"{setup.name}: relative difference of costs", max(row[0], row[2]), at_most=AGREEMENT)
        self.report.bound(f"{setup.name}: gaps of lgsim's solution in Crocoddyl", row[3], at_most=AGREEMENT)

    def optimum(self, problem, found):
        """Rows of the solutions, with the iterations to a cost equal to the better one."""
        best = min(found[name][0][-1] for name in ("lgsim", "crocoddyl") if name in found)
        needed = []
        for name, (costs, gradient, seconds) in found.items():
            target = costs[-1] if name == "lgsim, MK4" else best
            equal = np.flatnonzero(np.array(costs) <= (1 + EQUAL) * target)
            first = int(equal[0]) if len(equal) else "none"
            above = float("nan") if name == "lgsim, MK4" else costs[-1] / best - 1
            self.optima.append([problem, name, first, len(costs) - 1, costs[-1], above, gradient, seconds])
            needed += [first] if len(equal) and name != "lgsim, MK4" else []
        if "crocoddyl" in found:
            over = found["lgsim"][0][-1] / found["crocoddyl"][0][-1] - 1
            self.report.bound(f"{problem}: lgsim's final cost above Crocoddyl's", over, at_most=EQUAL)
        return min(needed)

    def speed(self, setup, batch, count):
        """A row of times for an iteration, from solutions with a fixed number of them."""
        solver = ILQR(max_iterations=count, gradient_tolerance=0.0, decrease_tolerance=0.0)
        arrays, rest = eqx.partition(setup.euler, eqx.is_array)

        def run(arrays, us, y0):
            problem = eqx.tree_at(lambda p: p.y0, eqx.combine(arrays, rest), y0)
            result = solve(problem, us, solver=solver)
            return result.cost, result.iterations

        y0 = setup.starts[:batch] if batch > 1 else setup.starts[0]
        f = lgsim.tiled_vmap(run, tile=min(batch, 64), in_axes=(None, None, 0)) if batch > 1 else run
        program, compiling = harness.compiled(f, arrays, setup.us, y0, options=lgsim.xla_options())
        done = int(np.sum(program(arrays, setup.us, y0)[1]))
        ready = []
        if self.peer is not None:
            self.peer.work = (0, min(batch, THEIRS), count)
            ready = [self.peer]
        repeats = 3 if self.report.quick else 7 if batch < 512 else 3
        seconds = client.interleave({"lgsim": lambda: program(arrays, setup.us, y0)}, ready, repeats)
        ours = 1e6 * seconds["lgsim"] / done
        theirs = 1e6 * seconds["crocoddyl"] if ready else "absent"
        ratio = theirs / ours if ready else float("nan")
        self.speeds.append([setup.name, batch, count, ours, theirs, ratio, compiling])
        if ready and batch in AHEAD:
            self.report.figure(f"{setup.name} batch {batch}", ratio, "x faster than Crocoddyl")
            least = AHEAD[batch].get(setup.name, 3.0)
            self.report.bound(f"{setup.name}, batch {batch}: Crocoddyl / lgsim", ratio, at_least=least)

    def tables(self):
        """Print the tables."""
        if self.agreements:
            self.report.table(
                "The same problem: relative differences of costs, gaps that Crocoddyl finds, and the rollouts",
                ["", "Crocoddyl's solution", "gaps", "lgsim's solution", "gaps", "rollout from Crocoddyl's"],
                self.agreements,
            )
        self.report.table(
            "Solutions by the symplectic Euler step from the same guess; MK4 has another discretization",
            ["", "solver", "iterations to equal cost", "in all", "final cost", "above the best", "gradient",
             "first call with compilation, s"],
            self.optima,
        )  # fmt: skip
        self.report.table(
            "One iteration of one problem, µs, from solutions of so many iterations",
            ["", "batch", "iterations", "lgsim", "Crocoddyl", "Crocoddyl / lgsim", "compile, s"],
            self.speeds,
        )


def beside(report, names, batches):
    """The problems that Crocoddyl also solves."""
    found = optimizers.available()
    if not found:
        print(f"not built: crocoddyl; {BUILD}")
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        peers = [stack.enter_context(optimizers.Optimizer(*item)) for item in found.items()]
        for peer in peers:
            report.table("Peer", ["", "version", "Pinocchio"], [[peer.name, *peer.about()]])
        study = Study(report, Path(folder), peers[0] if peers else None)
        for name in names:
            study.problem(problems.PROBLEMS[name](), batches)
        study.tables()


def solved(report, names):
    """Problems that must be solved from a trivial initial guess."""
    rows = []
    for name in names:
        print(f"{name}, to be solved", file=sys.stderr, flush=True)
        task = control.TASKS[name](report.quick)
        start = time.perf_counter()
        result = task.run()
        seconds = time.perf_counter() - start
        errors = task.errors(result)
        if folder := os.environ.get("LGSIM_REPLAYS"):
            lgsim.view.to_html(task.trajectory(result), Path(folder) / f"{name}.html")
        rows += [
            [task.name, error, errors[error], limit, control.steps_of(result) if task.problem is not None else "-",
             seconds]
            for error, limit in task.bounds.items()
        ]  # fmt: skip
        for error, limit in task.bounds.items():
            report.bound(f"{task.name}: {error}", errors[error], at_most=limit)
    report.table("Problems solved", ["", "error", "found", "at most", "iterations", "compile and solve, s"], rows)


def receding(report, names):
    """Model predictive control from a measured state, with one iteration and with the default four."""
    rows = []
    for name in names:
        print(f"{name}, receding", file=sys.stderr, flush=True)
        setup = problems.PROBLEMS[name]()
        for count in (1, 4):
            controller = mpc(setup.euler, ILQR(max_iterations=count))
            plan = controller.plan(us=setup.us)
            y = setup.starts[1]
            start = time.perf_counter()
            jax.block_until_ready(controller.step(plan, y))
            compiling = time.perf_counter() - start
            steps = {"step": lambda controller=controller, plan=plan, y=y: controller.step(plan, y)}
            latency = harness.interleave(steps, 9)["step"]
            dt = float(setup.euler.dynamics.dt)
            rows.append([name, setup.euler.horizon, count, 1e3 * latency, 1e3 * latency / count, 1e3 * dt, compiling])
    report.table(
        "Receding horizon: a control from a measured state, ms",
        ["", "nodes", "iterations", "latency", "an iteration", "step of the control", "compile, s"],
        rows,
    )


def constrained(report):
    """CPU time of model predictive control with and without an active joint limit."""
    rows = []
    for name, bounded in (("free", False), ("joint bound", True)):
        print(f"Panda along a circle, {name}", file=sys.stderr, flush=True)
        task = tracking.tracking(bounded)
        found = tracking.follow(task, mpc(task.problem), STEPS)
        median, tail = (1e3 * float(np.quantile(found.seconds, share)) for share in (0.5, 0.99))
        rows.append(
            [name, tracking.NODES, median, tail, 1e3 * found.error, found.beyond, found.active, found.compiling]
        )
        if bounded:
            report.figure("Panda, joint bound", median, "ms a step")
            report.bound("Panda, joint bound: median of a step, ms", median, at_most=8.0)
            report.bound("Panda, joint bound: 99 % of the steps, ms", tail, at_most=15.0)
            report.bound("Panda, joint bound: joint limit violation, rad", found.beyond, at_most=1e-3)
            report.bound("Panda, joint bound: steps at the bound", found.active, at_least=0.05)
        report.bound(f"Panda, {name}: hand distance from its circle, mm", 1e3 * found.error, at_most=2.0)
    report.table(
        "Receding horizon with constraints, Panda by MK4 at 50 Hz: CPU time of a control, ms",
        ["", "nodes", "median", "99 %", "path error of the hand, mm", "joint limit violation, rad",
         "steps at the bound", "compile, s"],
        rows,
    )  # fmt: skip


def run(report):
    """All tables."""
    if report.quick:
        beside(report, ["pendulum"], [64])
        solved(report, list(control.TASKS)[:1])
    else:
        beside(report, list(problems.PROBLEMS), [1, 64, 512])
        receding(report, ["pendulum", "Panda", "quadrotor"])
        constrained(report)
        solved(report, list(control.TASKS))


if __name__ == "__main__":
    try:
        harness.main(run, "trajopt")
    except PackageNotFoundError as missing:
        sys.exit(f"benchmarks/trajopt.py: {missing.name} is missing; install it with: pip install 'lgsim[oracle]'")
