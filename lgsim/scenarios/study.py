"""Study files: TOML files that say what varies in a motion and what is kept of it, as Monte Carlo studies."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from lgsim.cli.errors import BadInput, one_line, unknown
from lgsim.formats import Report
from lgsim.integrators import METHODS
from lgsim.montecarlo import LatinHypercube, OrnsteinUhlenbeck, Rollout, Sobol, StopAtConfidence, Study, Wind
from lgsim.multibody import Model
from lgsim.scenarios import dispersions, outputs
from lgsim.scenarios.optimization import MOST, SLACK, machine_of
from lgsim.scenarios.states import unit_quaternions
from lgsim.scenarios.toml_table import Table, read
from lgsim.simulation import controls
from lgsim.simulation.controls import Hover

EXAMPLES = {"hover": "study_hover.toml", "arm": "study_arm.toml"}
"""Studies that come with lgsim."""
SEQUENCES = {"random": None, "sobol": Sobol, "latin_hypercube": LatinHypercube}
GAINS = ("stiffness", "damping", "attitude", "spin")


class Loaded(NamedTuple):
    """A study with all that is needed to speak of it.

    Attributes:
        study: What to run.
        machine: File of the machine.
        report: What is odd in it; None where the machine did not come from its file.
        floating: Whether it was asked for with a floating base.
        worst: The output by whose size samples count as bad ones, or None.
        cases: How many of the worst samples a report shows.
    """

    study: Study
    machine: Path
    report: Report | None
    floating: bool
    worst: str | None
    cases: int


class Changes(NamedTuple):
    """What the command line says instead of the file.

    Attributes:
        samples: How many.
        seed: The seed.
    """

    samples: int | None = None
    seed: int | None = None


def example(name: str) -> str:
    """The text of a study that comes with lgsim.

    Raises:
        BadInput: there is none of that name.
    """
    if name not in EXAMPLES:
        raise unknown(f"--example: expected one of {', '.join(EXAMPLES)}", name, list(EXAMPLES))
    return (resources.files("lgsim.data") / EXAMPLES[name]).read_text(encoding="utf-8")


def load(file: Path, changes: Changes = Changes(), model: Model | None = None) -> Loaded:  # noqa: B008
    """The study of a file; all that is wrong with it is found before anything is compiled.

    Args:
        file: TOML.
        changes: What counts instead of the file's words.
        model: The machine, where it is known already; its file is then not read.

    Raises:
        BadInput: with file, line and key.
        Stop: a package is missing.
    """
    root = read(file).only(
        "machine", "start", "time", "control", "wind", "dispersions", "outputs", "failures", "sampling", "stop",
        "report",
    )  # fmt: skip
    machine = root.table("machine").only("file", "floating_base", "gravity")
    path, report = Path(machine.text("file") or ""), None
    if model is None:
        path, model, report = machine_of(machine)
    dt, steps, every, method = _time(root.table("time"))
    start = root.table("start").only("q", "v")
    q, _ = start.by_joint("q", model.q_slices, np.array(model.neutral()))
    v, _ = start.by_joint("v", model.v_slices, np.zeros(model.nv))
    with start.at("q"):
        q = unit_quaternions(model, q)
    law, torques = _control(root.table("control"), model, q)
    wind, gusts = _wind(root.table("wind"), model, dt, steps)
    with root.at(None):
        rollout = Rollout(
            model, *(jnp.asarray(x, model.dtype) for x in (q, v)), dt=dt, steps=steps, torques=torques, control=law,
            wrenches=wind, method=method, save_every=every,
        )  # fmt: skip
    varied = dispersions.distributions(root.table("dispersions"), rollout) | gusts
    if not varied:
        raise root.fault(None, "nothing varies: give dispersions or gusts of wind")
    found = outputs.functions(root.table("outputs"), model, steps // every + 1)
    words = root.table("sampling").only("samples", "seed", "sequence", "tile")
    number = words.whole("samples", 1000) if changes.samples is None else changes.samples
    seed = words.whole("seed", 0, 0) if changes.seed is None else changes.seed
    sequence = SEQUENCES[words.choice("sequence", tuple(SEQUENCES), "random")]
    tile = words.whole("tile", 1) if "tile" in words else None
    given = {"samples": number, "seed": seed, "sequence": None if sequence is None else sequence(), "tile": tile}
    with root.at(None):
        plain = Study(varied, rollout, found, **given)
    shapes = {name: kind.shape for name, kind in plain.columns().items() if name in found}
    failures = outputs.failures(root, shapes)
    stop = _stop(root.table("stop"), [*shapes, *(f"failed {name}" for name in failures)])
    try:
        study = Study(varied, rollout, found, failures=failures, stop=stop, **given)
    except ValueError as error:
        raise root.fault("stop", one_line(error).removeprefix("stop: ")) from error
    shown = root.table("report").only("worst", "cases")
    worst = shown.choice("worst", tuple(shapes), next(iter(shapes))) if "worst" in shown else None
    return Loaded(study, path, report, machine.flag("floating_base", False), worst, shown.whole("cases", 3, 0))


def _time(table: Table) -> tuple[float, int, int, Any]:
    """(dt, steps, each of how many is kept, method)."""
    table.only("duration", "dt", "steps", "method", "save_every")
    table.need("dt")
    dt = table.number("dt", above=0.0)
    if ("duration" in table) == ("steps" in table):
        raise table.fault(None, "expected either a duration, s, or a number of steps")
    key = "steps" if "steps" in table else "duration"
    steps = float(table.whole("steps", 1)) if key == "steps" else table.number("duration", above=0.0) / dt
    if abs(steps - round(steps)) > SLACK * max(steps, 1) or round(steps) < 1:
        raise table.fault(key, f"expected a whole number of steps of {dt:g} s, got {steps:.6g} of them")
    if steps > MOST:
        raise table.fault(key, f"expected at most {MOST} steps, got {steps:.3g}")
    every = table.whole("save_every", 1)
    if round(steps) % every:
        raise table.fault("save_every", f"expected a divisor of the {round(steps)} steps, got {every}")
    return dt, round(steps), every, METHODS[table.choice("method", tuple(METHODS), "MK4")]


def _constant(table: Table, model: Model, q: np.ndarray) -> None:
    """No law: the torques alone."""


def _gravity(table: Table, model: Model, q: np.ndarray) -> Any:
    """What holds the machine."""
    return controls.GravityCompensation()


def _target(table: Table, model: Model, q: np.ndarray, kind: Any) -> Any:
    target, _ = table.by_joint("target", model.q_slices, q)
    with table.at("target"):
        target = unit_quaternions(model, target)
    gains = []
    for key in ("stiffness", "damping"):
        table.need(key)
        if isinstance(table.values[key], dict | list):
            gain, _ = table.by_joint(key, model.v_slices, np.zeros(model.nv))
        else:
            gain = np.full(model.nv, table.number(key, least=0.0))
        gains.append(jnp.asarray(gain, model.dtype))
    return kind(jnp.asarray(target, model.dtype), *gains)


def _pd(table: Table, model: Model, q: np.ndarray) -> Any:
    """A spring and a damper towards a configuration."""
    return _target(table, model, q, controls.PD)


def _computed_torque(table: Table, model: Model, q: np.ndarray) -> Any:
    """Inverse dynamics with feedback, of a configuration to hold."""
    return _target(table, model, q, controls.ComputedTorque)


def _hover(table: Table, model: Model, q: np.ndarray) -> Any:
    """Thrust and moments that keep a flying body at a place."""
    place = q[:3] if table.vector("place", 3) is None else table.vector("place", 3)
    keys = (*GAINS, "thrust_limit", "heading")
    gains = {key: table.number(key, above=-np.inf if key == "heading" else 0.0) for key in keys if key in table}
    with table.at(None):
        return Hover.from_model(model, place, **gains)


LAWS = {
    "none": (_constant, ()),
    "gravity": (_gravity, ()),
    "pd": (_pd, ("target", "stiffness", "damping")),
    "computed_torque": (_computed_torque, ("target", "stiffness", "damping")),
    "hover": (_hover, ("place", *GAINS, "thrust_limit", "heading")),
}
"""For each law of ``[control]`` what makes it, and its keys."""


def _control(table: Table, model: Model, q: np.ndarray) -> tuple[Any, Any]:
    """(law, constant joint forces)."""
    make, keys = LAWS[table.choice("law", tuple(LAWS), "none")]
    table.only("law", "torque", *keys)
    torques = None
    if "torque" in table:
        torques = jnp.asarray(table.by_joint("torque", model.v_slices, np.zeros(model.nv))[0], model.dtype)
    return make(table, model, q), torques


def _wind(table: Table, model: Model, dt: float, steps: int) -> tuple[Any, dict[str, Any]]:
    """(wrenches, distribution of the gusts)."""
    table.only("frame", "mean", "quadratic", "linear", "gusts", "correlation_time", "every")
    if not table.values:
        return None, {}
    names = model.topology.body_names + model.topology.frame_names
    frame = table.choice("frame", names, names[0])
    drags = {key: table.number(key, 0.0, least=0.0) for key in ("quadratic", "linear")}
    if not any(drags.values()):
        raise table.fault(None, "expected drag: quadratic, kg/m, or linear, kg/s, above zero")
    mean = np.zeros(3) if table.vector("mean", 3) is None else table.vector("mean", 3)
    every = table.whole("every", 10)
    nodes = -(-steps // every) + 1 if "gusts" in table else 1
    air, gap, quadratic, linear = (jnp.asarray(x, model.dtype) for x in (mean, every * dt, *drags.values()))
    law = Wind(frame, air, jnp.zeros((nodes, 3), model.dtype), gap, quadratic, linear)
    if "gusts" not in table:
        if "correlation_time" in table:
            raise table.fault("correlation_time", "only with gusts")
        return law, {}
    std = table.vector("gusts", 3) if isinstance(table.values["gusts"], list) else np.full(3, table.number("gusts"))
    time = table.number("correlation_time", 1.0, above=0.0)
    with table.at("gusts"):
        gusts = OrnsteinUhlenbeck(jnp.asarray(std, model.dtype), jnp.asarray(time, model.dtype), every * dt, nodes)
    return law, {"wrenches.gusts": gusts}


def _stop(table: Table, names: list[str]) -> StopAtConfidence | None:
    """When fewer samples are enough."""
    table.only("output", "half_width", "level", "least")
    if not table.values:
        return None
    for key in ("output", "half_width"):
        table.need(key)
    output = table.choice("output", names, names[0])
    half, level = table.number("half_width", above=0.0), table.number("level", 0.95)
    try:
        return StopAtConfidence(output, half, level, table.whole("least", 1000, 2))
    except ValueError as error:
        raise BadInput(str(table.fault("level", one_line(error)))) from error
