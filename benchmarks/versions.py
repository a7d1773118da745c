"""Speed with a newer JAX: the same lgsim with the locked versions and with the newest ones, on one core.

    python benchmarks/versions.py --quick     few turns
    python benchmarks/versions.py             a record in benchmarks/results

Forward dynamics of Panda and ANYmal in a batch, and an iteration of iLQR; the versions run in separate processes, in
turns. The other environment is `.cache/newest`, made by `make newest` or by this benchmark.
"""

import harness  # first: it pins the core before JAX starts its threads

# isort: split
import json
import runpy
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NEWEST = ROOT / ".cache" / "newest" / "bin" / "python"
BATCH, HORIZON, ITERATIONS = 1024, 30, 8
# Upper bound of the time with the newest versions relative to the lock.
SLOWER = 1.10
LEAST = 0.05


def tasks():
    """By task a compiled function without arguments, and the number of evaluations that it makes."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    import robots

    import lgsim
    from lgsim.optimize import ILQR, ControlEffort, MultibodyDynamics, Problem, StateDistance, solve

    jax.config.update("jax_enable_x64", True)
    rng = np.random.default_rng(0)
    found = {}
    for name in ("Panda", "ANYmal"):
        model = robots.robot(name, np.float64)
        q = np.tile(np.asarray(model.neutral()), (BATCH, 1))
        v, tau = rng.normal(size=(2, BATCH, model.nv))
        q = jax.vmap(model.retract)(jnp.asarray(q), jnp.asarray(rng.normal(size=(BATCH, model.nv))))
        f, _ = harness.compiled(jax.vmap(lgsim.forward_dynamics, in_axes=(None, 0, 0, 0)), model, q, v, tau)
        found[f"forward dynamics, {name}, batch {BATCH}"] = lambda f=f, x=(model, q, v, tau): f(*x), BATCH
    arm = lgsim.load_urdf(lgsim.data.arm7())
    dynamics = MultibodyDynamics(arm, 0.02)
    problem = Problem(
        dynamics, jnp.zeros(14), horizon=HORIZON, running=ControlEffort(1e-3),
        terminal=StateDistance(dynamics.action, jnp.concatenate([jnp.linspace(0.5, -0.4, 7), jnp.zeros(7)]), 100.0),
    )  # fmt: skip
    solver = ILQR(max_iterations=ITERATIONS, gradient_tolerance=0.0, decrease_tolerance=0.0)
    us = jnp.zeros((HORIZON, 7))
    found["iteration of iLQR, arm of 7 joints"] = lambda: solve(problem, us, solver=solver).cost, ITERATIONS
    return found


def work():
    """Print names and versions, then for each line, the name of a task, the CPU seconds of one evaluation."""
    import jax

    found = tasks()
    for f, _ in found.values():
        jax.block_until_ready(f())
    print(json.dumps({"jax": jax.__version__, "python": sys.version.split()[0], "tasks": list(found)}), flush=True)
    for line in sys.stdin:
        f, count = found[line.strip()]
        calls, start = 0, time.process_time()
        while calls == 0 or time.process_time() - start < LEAST:
            jax.block_until_ready(f())
            calls += 1
        print((time.process_time() - start) / calls / count, flush=True)


class Worker:
    """A process of a Python interpreter that runs the tasks on request."""

    def __init__(self, python):
        self.process = subprocess.Popen(
            [python, __file__, "--work"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
        )

    def ready(self):
        """Versions and tasks."""
        return json.loads(self.process.stdout.readline())

    def seconds(self, task):
        """CPU seconds of one evaluation of a task."""
        print(task, file=self.process.stdin, flush=True)
        return float(self.process.stdout.readline())


def run(report):
    """The table."""
    newest = NEWEST if NEWEST.exists() else runpy.run_path(str(ROOT / ".ci" / "lane"))["prepare"]("newest")
    workers = {"lock": Worker(sys.executable), "newest": Worker(newest)}
    said = {name: worker.ready() for name, worker in workers.items()}
    names = list(workers)
    rows = []
    for task in said["lock"]["tasks"]:
        samples = {name: [] for name in names}
        for turn in range(9 if report.quick else 41):
            for name in names[turn % 2 :] + names[: turn % 2]:
                samples[name].append(workers[name].seconds(task))
        lock, other = (1e6 * statistics.median(samples[name]) for name in names)
        rows.append([task, lock, other, other / lock])
        report.bound(f"{task}: newest over lock", other / lock, at_most=SLOWER)
        report.figure(task, other / lock)
    columns = [f"JAX {said[name]['jax']}, Python {said[name]['python']}" for name in names]
    report.table("The same lgsim on two versions of JAX, µs", ["task", *columns, "ratio"], rows)
    for worker in workers.values():
        worker.process.stdin.close()
        worker.process.wait()


if __name__ == "__main__":
    if sys.argv[1:] == ["--work"]:
        work()
    else:
        harness.main(run, "versions")
