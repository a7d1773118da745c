"""A simulation as a user asked for it, from the check of each word to the files that it leaves."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.tree_util import Partial

from lgsim.cli import pictures, runs, states
from lgsim.cli.errors import DIVERGED, INTERRUPTED, BadInput, counted, unknown
from lgsim.cli.machine import read_machine, remark
from lgsim.cli.output import console, note
from lgsim.cli.progress import Watch
from lgsim.integrators import METHODS
from lgsim.multibody import Model
from lgsim.simulation import Trajectory, simulate

MOST = 1e15
"""Steps: with more, the time of a step is lost in round-off."""


class Request(NamedTuple):
    """The words of ``lgsim simulate``; its help says what they mean."""

    file: Path
    q: str | None
    v: str | None
    torque: str | None
    duration: float
    dt: float
    method: str
    gravity: str | None
    floating_base: bool
    out: Path
    plot: bool
    html: bool
    save_every: int
    float32: bool
    seed: int


def run(asked: Request) -> int:
    """Simulates, saves, and shows a table; the exit code.

    Raises:
        BadInput: a word is wrong; this is found before the simulation begins.
        Stop: a package is missing.
    """
    steps = _steps(asked)
    if asked.method not in METHODS:
        raise unknown(f"--method: expected one of {', '.join(METHODS)}", asked.method, list(METHODS))
    runs.check_out("--out", asked.out)
    gravity = states.vector("--gravity", asked.gravity)
    model, report = read_machine(asked.file, floating_base=asked.floating_base, gravity=gravity, float32=asked.float32)
    q = states.configuration("--q", asked.q, model, asked.seed)
    v = states.velocities("--v", asked.v, model)
    torque = states.velocities("--torque", asked.torque, model)
    if asked.plot:
        pictures.check_plots()
    visuals = pictures.visuals(asked.file) if asked.html else None
    remark(report, asked.floating_base)
    with Watch(steps) as watch:
        console(error=True).print(f"simulating {asked.duration:g} s of {asked.file}: {steps} steps by {asked.method}")
        motion = simulate(
            model, q, v, duration=asked.duration, dt=asked.dt, method=METHODS[asked.method],
            control=Partial(_constant, jnp.asarray(torque)) if torque.any() else None, save_every=asked.save_every,
            progress=watch,
        )  # fmt: skip
    files = [motion.save(asked.out)]
    if motion.result:
        note(f"{motion.result}; what was computed, {counted(len(motion), 'state')}, is in {asked.out}")
    if asked.plot:
        files += pictures.save_plots(motion, asked.out.parent, asked.out.stem)
    if asked.html:
        files.append(pictures.save_html(motion, asked.out.with_suffix(".html"), visuals))
    _show(motion, watch, files, bool(torque.any()))
    return 0 if not motion.result else INTERRUPTED if watch.interrupted else DIVERGED


def _constant(torque: Array, t: Any, q: Any, v: Any, model: Model) -> Array:
    """Joint forces that are the same all the time: a control, because as torques they would be a row for each step."""
    del t, q, v, model
    return torque


def _steps(asked: Request) -> int:
    """The number of steps that ``simulate`` makes."""
    states.positive("--duration", asked.duration)
    states.positive("--dt", asked.dt)
    share = asked.duration / asked.dt
    if not share < MOST:
        raise BadInput(f"--dt: expected less than {MOST:.0e} steps, got {share:.0e}")
    if round(share) < asked.save_every:
        what = "a step" if asked.save_every == 1 else f"{asked.save_every} steps"
        raise BadInput(
            f"{'--dt' if asked.save_every == 1 else '--save-every'}: expected {what} of {asked.dt:g} s to fit into the"
            f" duration, {asked.duration:g} s"
        )
    return max(1, round(share / asked.save_every)) * asked.save_every


def _show(motion: Trajectory, watch: Watch, files: list[Path], driven: bool) -> None:
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    table.add_row("final time", f"{motion.time[-1]:g} s")
    table.add_row("energy drift", drift(motion, driven))
    table.add_row("constraint error", f"{motion.constraint_error.max():.2g}")
    first = f"{watch.compiling:.2f} s of it compiling and the first {watch.first_steps} steps"
    table.add_row("wall time", f"{watch.wall:.2f} s, {first}")
    if watch.rate is not None:
        table.add_row("steps per second", f"{watch.rate:,.0f}, after the first ones")
    table.add_row("files", "\n".join(map(str, files)))
    console().print(table)


def drift(motion: Trajectory, driven: bool) -> str:
    """The largest change of the energy, in words."""
    energy, largest = motion.energy, float(motion.kinetic_energy.max())
    # just before it diverges, a motion may have finite velocities whose squares are not
    if not (np.isfinite(energy).all() and np.isfinite(largest)):
        return "the energy is too large for floats"
    change = float(np.abs(energy - energy[0]).max())
    if largest == 0:
        return "none: nothing moved"
    causes = ["the joint forces"] if driven else []
    causes += _dissipation(motion.model)
    why = f"; {' and '.join(causes)} change it too" if causes else ""
    return f"{change / largest:.2g} of the largest kinetic energy, {largest:.4g} J{why}"


def _dissipation(model: Model) -> list[str]:
    names = {"damping": "dampers", "friction": "dry friction", "limit_stiffness": "stops"}
    return [text for name, text in names.items() if np.asarray(getattr(model, name)).any()]
