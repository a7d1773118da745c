"""Monte Carlo: samples per second beside MuJoCo and beside a plain batch, what dispersed inertias cost, flat memory.

    python benchmarks/montecarlo.py --quick     Panda for 200 steps; 1e4 and 1e5 samples of three bodies
    python benchmarks/montecarlo.py             1000 steps, 1e4 and 1e6 samples, and a record in benchmarks/results

Needs the extras `montecarlo` and `oracle` (mujoco, example-robot-data). One core, float64, MK4 at 1 ms; MuJoCo runs its
own RK4 in C with one state after another. The peak of the process's memory is looked at after each number of samples of
one study into a store, smallest first.
"""

import harness  # first: it picks the core before JAX makes its threads

# isort: split
import resource
import sys
import tempfile
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import robots

try:
    import mujoco
except ImportError as missing:
    sys.exit(f"benchmarks/montecarlo.py: {missing.name} is missing; install it with: pip install 'lgsim[oracle]'")
from peers import export

import lgsim
from lgsim import montecarlo as mc
from lgsim.systems.three_body import chain

jax.config.update("jax_enable_x64", True)

DT = 1e-3
# Steps per second in parts of MuJoCo's RK4, and of lgsim.batched with one model, by what varies.
SPEED = {"start": 4.0, "start and inertias": 3.0}
BATCHED = {"start": 0.9, "start and inertias": 0.6}
# Growth of the peak of memory and of the cost of a sample from the smallest to the largest number of samples.
GROWTH, LINEAR = 1.1, 1.2


def panda_study(model, steps, samples, tile, inertias):
    """A dispersed start, and dispersed inertias."""
    distributions = {
        "q0": mc.TangentNormal(model, model.neutral(), 0.1),
        **({"model.inertias": mc.Inertias(model.inertias, 0.02)} if inertias else {}),
    }
    rollout = mc.Rollout(model, dt=DT, steps=steps, save_every=steps)
    return mc.Study(distributions, rollout, [mc.outputs.final_q, mc.outputs.final_v], samples=samples, tile=tile)


def speed(report):
    model = robots.robot("Panda", "float64")
    model = model.replace(damping=jnp.full(model.nv, 0.5), friction=jnp.zeros(model.nv))
    steps, samples = (200, 512) if report.quick else (1000, 1024)
    machine = mujoco.MjModel.from_xml_string(export.mjcf(export.bodies(model)))
    machine.opt.integrator, machine.opt.timestep = mujoco.mjtIntegrator.mjINT_RK4, DT
    data = mujoco.MjData(machine)

    def native():
        mujoco.mj_resetData(machine, data)
        mujoco.mj_step(machine, data, nstep=1000)

    def end(model, q, v):
        return lgsim.rollout(model, q, v, dt=DT, steps=steps, save_every=steps)[1:3]

    q, v = jnp.broadcast_to(model.neutral(), (samples, model.nq)), jnp.zeros((samples, model.nv))
    plain, _ = harness.compiled(lgsim.batched(end, in_axes=(None, 0, 0)), model, q, v)
    calls = {"mujoco": native, "batched": lambda: plain(model, q, v)}
    for what in SPEED:
        for tile in (64, 128):
            engine = mc.Engine(panda_study(model, steps, samples, tile, "inertias" in what))
            calls[what, tile] = lambda engine=engine: engine.chunk(0, samples).columns
    seconds = harness.interleave(calls, 3 if report.quick else 9)
    theirs, batch = 1000 / seconds["mujoco"], samples * steps / seconds["batched"]
    rows = [["MuJoCo RK4", "-", theirs, 1.0, theirs / batch], ["lgsim.batched", "-", batch, batch / theirs, 1.0]]
    for what in SPEED:
        best = 0.0
        for tile in (64, 128):
            ours = samples * steps / seconds[what, tile]
            rows.append([f"study, {what}", tile, ours, ours / theirs, ours / batch])
            best = max(best, ours)
        report.figure(what, best / theirs, "x MuJoCo RK4")
        report.bound(f"{what}: parts of MuJoCo's steps", best / theirs, at_least=SPEED[what])
        report.bound(f"{what}: parts of lgsim.batched's steps", best / batch, at_least=BATCHED[what])
    report.table(
        f"Panda, {steps} steps of MK4: steps per second",
        ["what varies", "tile", "steps/s", "of MuJoCo", "of lgsim.batched"],
        rows,
    )


def memory(report):
    model = chain()
    distributions = {
        "q0": mc.TangentNormal(model, model.neutral(), 0.1),
        "v0": mc.Normal(jnp.zeros(model.nv), 0.1),
        "model.inertias": mc.Inertias(model.inertias, 0.02),
    }
    rollout = mc.Rollout(model, dt=1e-2, steps=10, save_every=10)
    counts = (10_000, 100_000) if report.quick else (10_000, 100_000, 1_000_000)
    rows = []
    for count in counts:
        study = mc.Study(distributions, rollout, [mc.outputs.final_q, mc.outputs.final_v], samples=count)
        mc.Engine(study).chunk(0, study.tile)  # compiled
        with tempfile.TemporaryDirectory() as folder:
            start = time.perf_counter()
            found = mc.run(study, Path(folder) / "store", chunk=128 * study.tile)
            middle = time.perf_counter()
            found.intrinsic("final_q", model)
            found.quantiles("final_v", [0.01, 0.5, 0.99])
            end = time.perf_counter()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        rows.append([count, count / (middle - start), 1e6 * (middle - start) / count, end - middle, peak])
    report.table(
        "Free-flying three bodies, 10 steps, into a store",
        ["samples", "samples/s", "us each", "mean on the group and quantiles, s", "peak, MiB"],
        rows,
    )
    report.figure(f"{counts[-1]:.0e} samples", rows[-1][4], "MiB")
    report.bound("growth of the peak of memory", rows[-1][4] / rows[0][4], at_most=GROWTH)
    report.bound("growth of a sample's cost", np.divide(rows[-1][2], rows[0][2]), at_most=LINEAR)


def run(report):
    """All tables."""
    speed(report)
    memory(report)


if __name__ == "__main__":
    harness.main(run, "montecarlo")
