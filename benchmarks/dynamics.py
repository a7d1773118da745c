"""Multibody dynamics compared with Pinocchio: µs per evaluation on one core, and compile times in seconds.

    python benchmarks/dynamics.py --quick     Panda and ANYmal, float64
    python benchmarks/dynamics.py             all robots, batches, both precisions, and a record in benchmarks/results

Needs the extra `oracle` (pin, example-robot-data). Forward dynamics of Pinocchio runs in its own batch call on a pool
of one thread; its other algorithms are called one state at a time from Python, which adds about half a microsecond.
against_jax.py compares with other JAX libraries.
"""

import harness  # first: it pins the core before JAX starts its threads

# isort: split
import os
import subprocess
import sys
import time
from pathlib import Path

import jax
import numpy as np
import robots

import lgsim

try:
    import pinocchio
except ImportError as missing:
    sys.exit(f"benchmarks/dynamics.py: {missing.name} is missing; install it with: pip install 'lgsim[oracle]'")

jax.config.update("jax_enable_x64", True)

# Upper bounds of the time relative to Pinocchio's, at batch 1024, and at batch 256 for all Jacobians.
FORWARD = {"Panda": 0.06, "ANYmal": 0.08, "Talos": 0.15, "chain50": 0.25, "chain200": 0.25}
JACOBIANS = {"Panda": 0.1, "ANYmal": 0.2, "Talos": 0.5}
# One state, with dispatch and inside a compiled loop, µs.
CALL, LOOP = {"Panda": 12, "Talos": 40}, {"Panda": 0.8}
# One product with the Jacobian, relative to forward dynamics, by batch.
VJP, JVP = {1: 3, 64: 3.5}, 2.5
# Tracing and compiling, s.
COMPILE, COMPILE_BATCH, COMPILE_VJP = 3, 8, {1: 10, 64: 15}
ALL = ("Panda", "Panda with fingers", "ANYmal", "Talos", "chain10", "chain50", "chain200")


def fd(model, q, v, tau):
    return lgsim.dynamics.forward_dynamics(model, q, v, tau)


def tiles(f):
    return lgsim.tiled_vmap(f, in_axes=(None, 0, 0, 0))


def correct(model, twin, q, v, tau):
    """Largest relative difference from Pinocchio's accelerations."""
    columns = twin.states(q, v, tau)
    theirs = np.stack([pinocchio.aba(twin.model, twin.data, *(c[:, i].copy() for c in columns)) for i in range(4)])
    ours = np.asarray(jax.jit(jax.vmap(fd, (None, 0, 0, 0)))(model, q[:4], v[:4], tau[:4]))
    return np.abs(ours - theirs).max() / np.abs(theirs).max()


def forward(report, names, batches, dtype):
    """Forward dynamics by batch size; Pinocchio always computes in float64."""
    rows, times = [], {}
    for name in names:
        model = robots.robot(name, dtype)
        twin = robots.Twin(model)
        q, v, tau = robots.state(model, max(batches))
        limit = 1e-9 if dtype == "float64" else 1e-2
        report.bound(f"{name} {dtype}: difference from Pinocchio", correct(model, twin, q, v, tau), at_most=limit)
        for batch in batches:
            ours = (q[:batch], v[:batch], tau[:batch]) if batch > 1 else (q[0], v[0], tau[0])
            columns = twin.states(q[: min(batch, 1024)], v[: min(batch, 1024)], tau[: min(batch, 1024)])
            program, compiling = harness.compiled(tiles(fd) if batch > 1 else fd, model, *ours)
            seconds = harness.interleave(
                {
                    "lgsim": lambda program=program, model=model, ours=ours: program(model, *ours),
                    "pinocchio": twin.forward_dynamics(*columns),
                },
                repeats=7 if report.quick else 25,
            )
            us, them = 1e6 * seconds["lgsim"] / batch, 1e6 * seconds["pinocchio"] / columns[0].shape[1]
            rows.append([name, model.nv, batch, us, them, us / them, compiling])
            times[name, batch] = us
            most = COMPILE if batch == 1 else COMPILE_BATCH
            report.bound(f"{name} {dtype}, batch {batch}: compile, s", compiling, at_most=most)
            if batch == 1024 and dtype == "float64":
                report.figure(f"{name} forward dynamics", us / them, "x Pinocchio")
                if name in FORWARD:
                    report.bound(f"{name}: forward dynamics, relative to Pinocchio", us / them, at_most=FORWARD[name])
    report.table(
        f"Forward dynamics, {dtype}, µs per state",
        ["robot", "nv", "batch", "lgsim", "Pinocchio", "ratio", "compile, s"],
        rows,
    )
    if max(batches) > 1024:
        for name in names:
            report.bound(f"{name} {dtype}: 8192 / 1024", times[name, 8192] / times[name, 1024], at_most=1.2)
    return times


def alone(report, names):
    """One state: a call with its dispatch, and one evaluation inside a compiled loop."""
    rows = []
    for name in names:
        model = robots.robot(name, "float64")
        q, v, tau = (x[0] for x in robots.state(model, 1))
        call = jax.jit(fd)

        def loop(model, q, v, tau):
            return jax.lax.fori_loop(0, 100, lambda i, a: fd(model, q, v, tau + 1e-9 * a), tau)

        many, empty = jax.jit(loop), jax.jit(lambda model, q, v, tau: q[:1] + v[:1])
        seconds = harness.interleave(
            {
                "call": lambda call=call, x=(model, q, v, tau): call(*x),
                "loop": lambda many=many, x=(model, q, v, tau): many(*x),
                "empty": lambda f=empty, x=(model, q, v, tau): f(*x),
            },
            repeats=15 if report.quick else 60,
        )
        call_us, loop_us = 1e6 * seconds["call"], 1e4 * seconds["loop"]
        rows.append([name, call_us, 1e6 * seconds["empty"], loop_us])
        if name in CALL:
            report.bound(f"{name}: one call, µs", call_us, at_most=CALL[name])
        if name in LOOP:
            report.bound(f"{name}: in a loop, µs", loop_us, at_most=LOOP[name])
    report.table(
        "Forward dynamics of one state, float64, µs",
        ["robot", "call", "of which an empty call", "in a loop"],
        rows,
    )


def others(report, name, batch=1024):
    """Inverse dynamics and mass matrix."""
    model = robots.robot(name, "float64")
    twin = robots.Twin(model)
    q, v, a = robots.state(model, batch)
    columns = twin.states(q, v, a)
    tasks = {
        "inverse dynamics": (tiles(lgsim.inverse_dynamics), (q, v, a), twin.each(pinocchio.rnea, *columns)),
        "mass matrix": (
            lgsim.tiled_vmap(lgsim.mass_matrix, in_axes=(None, 0)),
            (q,),
            twin.each(pinocchio.crba, columns[0]),
        ),
    }
    rows = []
    for task, (f, args, theirs) in tasks.items():
        program, compiling = harness.compiled(f, model, *args)
        seconds = harness.interleave(
            {"lgsim": lambda p=program, args=args: p(model, *args), "pinocchio": theirs}, 7 if report.quick else 25
        )
        us, them = (1e6 * s / batch for s in seconds.values())
        rows.append([f"{name}: {task}", us, them, us / them, compiling])
        report.bound(f"{name}: {task}, relative to Pinocchio", us / them, at_most=0.5)
    report.table(
        f"Other algorithms, float64, batch {batch}, µs per state",
        ["", "lgsim", "Pinocchio", "ratio", "compile, s"],
        rows,
    )


def jacobians(report, names, batch=256):
    """All Jacobians of forward dynamics, and one vector-Jacobian and Jacobian-vector product."""
    rows, products = [], []
    for name in names:
        model = robots.robot(name, "float64")
        twin = robots.Twin(model)
        q, v, tau = robots.state(model, batch)
        program, compiling = harness.compiled(tiles(lgsim.forward_dynamics_derivatives), model, q, v, tau)
        theirs = twin.each(pinocchio.computeABADerivatives, *twin.states(q, v, tau))
        seconds = harness.interleave(
            {"lgsim": lambda p=program, x=(model, q, v, tau): p(*x), "pinocchio": theirs}, 7 if report.quick else 25
        )
        us, them = (1e6 * s / batch for s in seconds.values())
        rows.append([name, us, them, us / them, compiling])
        report.figure(f"{name} Jacobians", us / them, "x Pinocchio")
        report.bound(f"{name}: Jacobians, relative to Pinocchio", us / them, at_most=JACOBIANS[name])
        if not report.quick:
            products += [_products(report, name, model, q[:n], v[:n], tau[:n]) for n in (1, 64)]
    report.table(
        f"All Jacobians of forward dynamics, float64, batch {batch}, µs per state",
        ["robot", "lgsim", "Pinocchio", "ratio", "compile, s"],
        rows,
    )
    if products:
        columns = ["robot", "batch", "forward dynamics", "vjp", "jvp", "vjp ratio", "jvp ratio", "compile vjp, s"]
        report.table("One product with the Jacobian, float64, µs per state", columns, products)


def _products(report, name, model, q, v, tau):
    def vjp(model, q, v, tau):
        return jax.vjp(lambda *x: fd(model, *x), q, v, tau)[1](tau)

    def jvp(model, q, v, tau):
        return jax.jvp(lambda *x: fd(model, *x), (q, v, tau), (q, v, tau))[1]

    batch, programs, compiling = len(q), {}, 0.0
    x = (q, v, tau) if batch > 1 else (q[0], v[0], tau[0])
    for task, f in {"value": fd, "vjp": vjp, "jvp": jvp}.items():
        program, seconds = harness.compiled(tiles(f) if batch > 1 else f, model, *x)
        programs[task] = lambda p=program, x=(model, *x): p(*x)
        compiling = seconds if task == "vjp" else compiling
    value, back, along = (1e6 * s / batch for s in harness.interleave(programs, 25).values())
    report.bound(f"{name}, batch {batch}: vjp / forward dynamics", back / value, at_most=VJP[batch])
    report.bound(f"{name}, batch {batch}: jvp / forward dynamics", along / value, at_most=JVP)
    report.bound(f"{name}, batch {batch}: compile of the vjp, s", compiling, at_most=COMPILE_VJP[batch])
    return [name, batch, value, back, along, back / value, along / value, compiling]


def hints(report):
    """Effect of the lowering hints: the same program in a process without them."""
    times = {}
    for state in ("1", "0"):
        environment = {**os.environ, "LGSIM_LOWERING_HINTS": state}
        run = subprocess.run(
            [sys.executable, str(Path(__file__).resolve()), "--one"], env=environment, capture_output=True, text=True
        )
        if run.returncode:
            raise RuntimeError(run.stderr)
        times[state] = float(run.stdout.split()[-1])
    report.table(
        f"Lowering hints, Panda, batch 1024, float64, jax {jax.__version__}",
        ["", "µs per state"],
        [["with", times["1"]], ["without", times["0"]]],
    )


def one():
    """Print the microseconds per state of Panda's forward dynamics at batch 1024."""
    model = robots.robot("Panda", "float64")
    x = robots.state(model, 1024)
    program = jax.jit(tiles(fd))
    print(1e6 * harness.interleave({"": lambda: program(model, *x)}, 15)[""] / 1024)


def growth(report):
    """Run time and compile time by the number of bodies."""
    rows, times = [], {}
    for length in (10, 50, 200):
        model = robots.chain(length, "float64")
        x = robots.state(model, 256)
        program, compiling = harness.compiled(tiles(fd), model, *x)
        times[length] = harness.interleave({"": lambda p=program, m=model, x=x: p(m, *x)}, 15)[""] / 256
        start = time.perf_counter()
        jax.block_until_ready(program(model.replace(inertias=1.1 * model.inertias), *x))
        rows.append([f"chain of {length}", 1e6 * times[length], compiling, time.perf_counter() - start])
    report.table(
        "Growth with the number of bodies, batch 256",
        ["", "µs per state", "compile, s", "a call with other parameters, s"],
        rows,
    )
    report.bound("time(200)/time(50)", times[200] / times[50], at_most=5)
    report.bound("compile(200)/compile(10)", rows[2][2] / rows[0][2], at_most=1.5)


def run(report):
    """All tables."""
    if report.quick:
        forward(report, ["Panda", "ANYmal"], [1024], "float64")
        jacobians(report, ["Panda"])
        return
    double, single = (forward(report, ALL, [1, 64, 1024, 8192], dtype) for dtype in ("float64", "float32"))
    for name in ALL:
        report.bound(f"{name}: float64 / float32", double[name, 1024] / single[name, 1024], at_least=1.7)
    alone(report, ["Panda", "ANYmal", "Talos"])
    others(report, "Panda")
    jacobians(report, ["Panda", "ANYmal", "Talos"])
    growth(report)
    hints(report)


if __name__ == "__main__":
    if "--one" in sys.argv:
        one()
    else:
        harness.main(run, "dynamics")
