"""Which files of lgsim four ways of a user enter, as JSON: ``python -m tests.traced_way``.

A profile hook sees every call of a function while a program is traced, in a process that has traced nothing before.
"""

from __future__ import annotations

import csv
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import lgsim
from lgsim import identify, montecarlo, optimize

ROOT = str(Path(lgsim.__file__).parent)


def entered_files(call: Callable[[], Any]) -> list[str]:
    """The files of lgsim of which a function is entered by the call, sorted; importing is not entering."""
    files = set()

    def enter(frame: FrameType, event: str, _: Any) -> None:
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(ROOT) and frame.f_code.co_name != "<module>":
            files.add(str(Path(name).relative_to(ROOT)))

    sys.setprofile(enter)
    try:
        call()
    finally:
        sys.setprofile(None)
    return sorted(files)


def control_problem(model: lgsim.Model) -> optimize.Problem:
    """A cart-pole with bounds on its control."""
    dynamics = optimize.MultibodyDynamics(model, dt=0.05)
    return optimize.Problem(
        dynamics,
        dynamics.state(jnp.zeros(2)),
        horizon=4,
        running=optimize.ControlEffort(1e-3),
        terminal=optimize.Posture(model, jnp.array([0.1, 0.0]), weight=1e2),
        lower=-5.0,
        upper=5.0,
    )


def dispersed_study(model: lgsim.Model) -> montecarlo.Study:
    """Eight samples of a cart-pole with dispersed starts and masses."""
    masses = montecarlo.LogNormal(model.inertias[:, 0], 0.1)
    return montecarlo.Study(
        {
            "q0": montecarlo.TangentNormal(model, jnp.zeros(2), 0.05),
            "model.inertias": montecarlo.MassDispersion(model.inertias, masses),
        },
        montecarlo.Rollout(model, dt=0.01, steps=5),
        {"end": lambda motion: motion.q[-1]},
        samples=8,
        tile=8,
    )


def recorded_motion(model: lgsim.Model, path: Path) -> None:
    """Four seconds of a cart-pole's joints and their forces, with noise, as CSV."""
    t = np.arange(0, 4, 0.01)[:, None]
    rates, sizes = np.array([1.7, 2.9]), np.array([0.4, 0.8])
    q, v, a = sizes * np.sin(rates * t), sizes * rates * np.cos(rates * t), -sizes * rates**2 * np.sin(rates * t)
    tau = np.asarray(lgsim.inverse_dynamics(model, *map(jnp.asarray, (q, v, a))))
    tau = tau + 0.01 * np.random.default_rng(0).normal(size=q.shape)
    names = model.topology.joint_names
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["time [s]", *(f"q {name}" for name in names), *(f"tau {name}" for name in names)])
        rows.writerows(np.concatenate([t, q, tau], axis=1).tolist())


def fit_recording(model: lgsim.Model, path: Path) -> identify.Fit:
    """The masses of a cart-pole from a file."""
    recording = identify.read_recording(path, model)
    samples = identify.TorqueSamples.from_recording(identify.smooth(recording), recording)
    return identify.fit(identify.Parameters(model, [identify.Masses()]), samples)


def main() -> None:
    """Print the files of loading a machine, of one solve by iLQR, one study into a store and one fit to a file."""
    jax.config.update("jax_enable_x64", True)
    model = lgsim.load_urdf(lgsim.data.cart_pole())
    problem, study = control_problem(model), dispersed_study(model)
    with tempfile.TemporaryDirectory() as folder:
        record = Path(folder) / "motion.csv"
        calls = {
            "load": lambda: lgsim.load_urdf(lgsim.data.cart_pole()),
            "solve": lambda: optimize.solve(problem),
            "store": lambda: montecarlo.run(study, Path(folder) / "store", step_check=False),
            "fit": lambda: fit_recording(model, record),
        }
        # the way to the program, and not into a compiler
        with lgsim.llvm_lowering(False):
            recorded_motion(model, record)
            print(json.dumps({name: entered_files(call) for name, call in calls.items()}))


if __name__ == "__main__":
    main()
