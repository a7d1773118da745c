"""``lgsim demo``: a tour from a robot's file to a simulation, its energy, its gradient and pictures."""

from __future__ import annotations

import time
from pathlib import Path

import jax
import jax.numpy as jnp

from lgsim.cli import files, pictures
from lgsim.cli.checks.replacement import Output, check_replaced
from lgsim.cli.errors import Stop
from lgsim.cli.exit_status import Exit
from lgsim.cli.terminal import console, note
from lgsim.cli.work import tour
from lgsim.data import arm7
from lgsim.multibody import Model
from lgsim.simulation import Automatic, rollout, simulate, with_stops

DRIFT, GAP = 1e-4, 1e-5
"""Bounds of the relative energy drift and the relative gradient error."""


def run_demo(file: Path | None, out: Path, duration: float, force: bool) -> None:
    """Simulate a robot, check its energy and its gradient, and write plots, a scene and the run.

    Raises:
        FileError: the file describes no valid model.
        Stop: a package is missing, the motion stopped early, or a check failed.
    """
    say = console().print
    path = arm7() if file is None else file
    pictures.check_plots()
    shapes = pictures.visuals(path)
    model, report = files.read_machine(path)
    files.remark(report, floating_base=False)
    planned = [Output("--out", each, "plot") for each in pictures.plot_files(out, path.stem)]
    planned.append(Output("--out", out / f"{path.stem}.html", "scene"))
    planned.append(Output("--out", out / f"{path.stem}.npz", "run", files.joint_list(model)))
    check_replaced(planned, force)
    say(f"{path.name}: {len(model.body_names)} moving bodies, {model.nv} degrees of freedom")

    model = with_stops(model)
    q0, law = tour.tour(model, duration)
    start = time.perf_counter()
    motion = simulate(model, q0, duration=duration, dt=1e-3, control=law, method=Automatic(), save_every=10)
    took = f"{time.perf_counter() - start:.1f} s including compilation"
    say(f"{duration:g} s of motion to two postures and back, step size 1 ms, method {motion.method}: {took}")
    if motion.result:
        raise Stop(motion.result, Exit.CHECK_FAILED)
    summary = motion.summary()
    for name, text in summary.rows:
        if name == "integration error" or name.endswith("limits"):
            say(f"{name}: {text}")
    for warning in summary.warnings:
        note(warning)
    drift = tour.energy_drift(model, q0)
    say(f"energy drift in {tour.FREE:g} s of free motion: below {drift:.0e} of the largest kinetic energy")
    gap = _gradient_gap(model, q0)
    say(f"gradient of 200 steps with respect to joint forces: within {gap:.0e} of a central difference")

    out.mkdir(parents=True, exist_ok=True)
    written = pictures.save_plots(motion, out, path.stem)
    written.append(pictures.save_html(motion, out / f"{path.stem}.html", shapes))
    written.append(motion.save(out / f"{path.stem}.npz"))
    for made in written:
        say(f"wrote {made}")
    if not (drift < DRIFT and gap < GAP):
        raise Stop(
            f"expected an energy drift below {DRIFT:g} and a gradient error below {GAP:g}, got {drift:.0e}, {gap:.0e}",
            Exit.CHECK_FAILED,
        )


def _gradient_gap(model: Model, q0: jax.Array) -> float:
    """Relative error of the reverse-mode gradient of the final configuration with respect to constant joint forces.

    The reference is a central difference over 0.2 s of motion.
    """

    def place(tau: jax.Array) -> jax.Array:
        end = rollout(model, q0, jnp.zeros(model.nv), dt=1e-3, steps=200, torques=tau, save_every=200)
        return jnp.sum(model.difference(q0, end.q[-1]))

    zero, way, step = jnp.zeros(model.nv), jnp.ones(model.nv), 1e-4
    slope = float(jax.jit(jax.grad(place))(zero) @ way)
    run = jax.jit(place)
    difference = (float(run(step * way)) - float(run(-step * way))) / (2 * step)
    return abs(slope - difference) / abs(difference)
