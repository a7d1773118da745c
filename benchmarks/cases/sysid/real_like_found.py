"""Fits of recordings like those of two real arms: verdicts, held-out residuals, intervals, the time of the command."""

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from cases.sysid import real_like as arms
from lgsim.identify.estimators.torque_fit import TorqueFit
from lgsim.identify.fit import Fit
from lgsim.multibody import inertia

SEEDS, QUICK = 20, 2
WORST = 1.02
"""Upper bound of the held-out residual of a joint relative to ordinary least squares."""
WARM, COLD = 10.0, 20.0
"""CPU seconds of the command with and without compiled programs."""
COLUMNS = "seed", "verdict", "iterations", "bounds", "by the prior", "worst held out / OLS", "in intervals, %", "s"


def truth(machine):
    """The true parameters in the order of ``Fit.values``: inertial parameters by body, then the actuators."""
    bodies = [
        inertia.parameters(jnp.asarray(body.mass), jnp.asarray(body.lever), jnp.asarray(body.inertia))
        for body in list(machine.model.inertias)[1:]
    ]
    return np.concatenate([np.concatenate(bodies), machine.drives.reshape(-1)])


def arm(report, name, kind, seeds):
    """All seeds of an arm."""
    run = eqx.filter_jit(lambda parameters, samples: TorqueFit().run(parameters, samples))
    rows, ratios, converged, hits, edges = [], [], 0, [], 0
    for seed in range(seeds):
        machine = arms.machine(kind, seed)
        fitted, other = arms.record(machine, 2 * seed), arms.record(machine, 2 * seed + 1)
        parameters = arms.unknowns(machine)
        start = time.process_time()
        estimate = jax.block_until_ready(run(parameters, fitted.samples))
        seconds = time.process_time() - start
        found = Fit(parameters, estimate, fitted.samples)
        verdict = found.verdict
        ratio = found.rmse(other.samples) / arms.ordinary_least_squares(machine, fitted, other)
        low, high = np.array(list(found.intervals.values())).T
        # file and truth agree to rounding about what is zero in both
        inside = (low - 1e-9 <= truth(machine)) & (truth(machine) <= high + 1e-9)
        converged += verdict.converged
        edges += bool(verdict.bounds)
        ratios.append(ratio)
        hits.append(inside)
        rows.append([seed, verdict.outcome.value, int(estimate.iterations), len(verdict.bounds),
                     len(verdict.undetermined), np.max(ratio), 100 * np.mean(inside), seconds])  # fmt: skip
    report.table(f"Recordings like a {name}'s: {seeds} arms, made by Pinocchio", list(COLUMNS), rows)
    report.bound(f"{name}: converged, of {seeds}", converged, at_least=seeds)
    report.bound(f"{name}: held-out residual / least squares', worst joint", np.max(ratios), at_most=WORST)
    # for calibrated intervals, a finite number of draws falls below 95 % half of the time
    least = 95.0 - 200 * np.sqrt(0.05 * 0.95 / np.size(hits))
    report.bound(f"{name}: true numbers inside 95 % intervals, %", 100 * np.mean(hits), at_least=least)
    report.figure(f"{name}: arms at a bound or an edge", edges)
    report.figure(f"{name}: most iterations", max(row[2] for row in rows))


def command(report):
    """CPU seconds of ``lgsim identify`` on a six-axis arm with 3000 samples."""
    machine = arms.machine(arms.UR10E, 1)
    record = arms.record(machine, 2)
    names = list(machine.model.names)[1:]
    columns = ["time", *(f"{name}_position" for name in names), *(f"tau {name}" for name in names)]
    table = np.column_stack([record.time, record.raw_q, record.signals * np.array(arms.UR10E.gains)])
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "arm.urdf").write_text(arms.urdf_text(arms.UR10E), encoding="utf-8")
        np.savetxt(place / "arm.csv", table, delimiter=",", header=",".join(columns), comments="", fmt="%.9g")
        environment = {**os.environ, "XDG_CACHE_HOME": str(place / "cache")}
        words = ["identify", "arm.urdf", "arm.csv", "--fit", "bodies,friction,damping,armature,offsets"]
        seconds = []
        for _ in range(2):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            done = subprocess.run(
                [sys.executable, "-m", "lgsim.cli", *words], cwd=place, env=environment, capture_output=True, text=True
            )
            assert done.returncode == 0, done.stderr
            assert done.stdout.startswith("verdict: converged"), done.stdout[:200]
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    report.bound("lgsim identify, six axes, 3000 samples, first run: processor s", seconds[0], at_most=COLD)
    report.bound("lgsim identify, six axes, 3000 samples, again: processor s", seconds[1], at_most=WARM)


def run(report):
    """Both arms with all seeds and the command; some seeds of one arm in a quick run."""
    arm(report, "UR10e", arms.UR10E, QUICK if report.quick else SEEDS)
    if not report.quick:
        arm(report, "Panda", arms.PANDA, SEEDS)
        command(report)
