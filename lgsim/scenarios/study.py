"""Monte Carlo studies and simulations from TOML study files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from os import PathLike
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from lgsim.formats import load_actuators
from lgsim.integrators.methods import MK4
from lgsim.montecarlo import (
    Antithetic,
    Distribution,
    LatinHypercube,
    OrnsteinUhlenbeck,
    Rollout,
    Sobol,
    StopAtConfidence,
    Study,
    Wind,
)
from lgsim.montecarlo.accuracy.method_choice import choose_method
from lgsim.montecarlo.outputs import OutOfBounds
from lgsim.multibody import Model
from lgsim.scenarios.dispersions import read_dispersions
from lgsim.scenarios.machine import MACHINE_KEYS, MachineFile, machine_of, with_stops_of
from lgsim.scenarios.outputs import read_failures, read_outputs
from lgsim.scenarios.states import read_configuration, read_start
from lgsim.scenarios.time_steps import read_time_steps
from lgsim.scenarios.torque_file import read_torques
from lgsim.simulation import MOTION_METHODS, Automatic, controls
from lgsim.simulation.controls import ControlLaw, Hover
from lgsim.simulation.stops import resolved_contact_time
from lgsim.support.messages import one_line
from lgsim.support.toml_table import Table, read

_SEQUENCES = {"random": None, "sobol": Sobol, "latin_hypercube": LatinHypercube, "antithetic": Antithetic}
"""Sampling sequences by the key "sequence"."""
LARGEST = 2**63 - 1
"""Largest integer in TOML."""
GAINS = ("stiffness", "damping", "attitude", "spin")
"""Gains of the controller "hover"."""


AUTOMATIC = "auto"
"""Automatic choice of the integration method."""
_STUDY_TABLES = (
    "machine", "start", "time", "control", "wind", "dispersions", "outputs", "failures", "sampling", "stop", "report",
)  # fmt: skip
"""Tables of a study file."""
_METHOD_NAMES = (AUTOMATIC, *MOTION_METHODS)


class StudyScenario(NamedTuple):
    """A Monte Carlo study, ready to be run: ``montecarlo.run(s.study)``.

    Attributes:
        study: Distributions, rollout, outputs and number of samples.
        worst: Output whose largest values select the worst samples of a report; None for a choice by the report.
        cases: Number of worst samples that a report replays.
        remark: Reason why ``method = "auto"`` chose an implicit method, or "".
    """

    study: Study
    machine: MachineFile
    worst: str | None
    cases: int
    remark: str = ""


def load_study(
    path: str | PathLike[str], *, samples: int | None = None, seed: int | None = None, model: Model | None = None
) -> StudyScenario:
    """Read a Monte Carlo study from a TOML file; ``lgsim.data.study("hover")`` is a commented example.

    The whole file is checked before anything is compiled. Relative paths are relative to the study file.

    Args:
        samples: Number of samples; None for that of the file.
        seed: Seed; None for that of the file.
        model: The model, if already known; the robot's file is then not read.

    Returns:
        The study and the settings of its report, in JAX's default float.

    Raises:
        ScenarioError: a ValueError with file, line and key.
        ValueError: ``samples`` or ``seed`` is too small.
        ModuleNotFoundError: a package is missing; the message names the extra.
    """
    for name, value, least in (("samples", samples, 1), ("seed", seed, 0)):
        if value is not None and value < least:
            raise ValueError(f"{name}: expected an integer of at least {least}, got {value}")
    root = read(path).only(*_STUDY_TABLES)
    machine = _machine(root, model)
    model = machine.model
    rollout, gusts, method = _rollout(root, machine)
    varied = read_dispersions(root.table("dispersions"), rollout) | gusts
    if not varied:
        raise root.fault(None, "expected random inputs: set `[dispersions]` or gusts of wind")
    found = read_outputs(root.table("outputs"), model, rollout.steps // rollout.save_every + 1)
    sampling = root.table("sampling").only("samples", "seed", "sequence", "tile")
    own_samples, own_seed = sampling.whole("samples", 1000, most=LARGEST), sampling.whole("seed", 0, 0, LARGEST)
    sequence = _SEQUENCES[sampling.choice("sequence", tuple(_SEQUENCES), "random")]
    tile = sampling.whole("tile", 1) if "tile" in sampling else None

    def study(failures: dict[str, OutOfBounds] | None = None, stop: StopAtConfidence | None = None) -> Study:
        return Study(
            varied, rollout, found, samples=own_samples if samples is None else samples,
            seed=own_seed if seed is None else seed, sequence=None if sequence is None else sequence(), tile=tile,
            failures=failures, stop=stop,
        )  # fmt: skip

    with root.at(None):
        kinds = study().columns()
    shapes = {name: kinds[name].shape for name in kinds if name in found}
    failures = read_failures(root, shapes)
    rule = _stop(root.table("stop"), [*shapes, *(f"failed {name}" for name in failures)])
    try:
        wanted = study(failures, rule)
    except ValueError as error:
        raise root.fault("stop", one_line(error).removeprefix("stop: ")) from error
    shown = root.table("report").only("worst", "cases")
    worst = shown.choice("worst", tuple(shapes), next(iter(shapes))) if "worst" in shown else None
    remark = ""
    if method == AUTOMATIC:
        # this draws samples, whose parameters may be invalid
        with root.at("dispersions"):
            wanted, remark = choose_method(wanted, Automatic())
    return StudyScenario(wanted, machine, worst, shown.whole("cases", 3, 0), remark)


class MotionScenario(NamedTuple):
    """A single motion, or the nominal motion of a study without random inputs.

    Attributes:
        rollout: Model, initial state, actuation and steps.
        method: Name of the method, ``AUTOMATIC`` or one of ``MOTION_METHODS``.
    """

    rollout: Rollout
    machine: MachineFile
    method: str


def load_motion(path: str | PathLike[str]) -> MotionScenario:
    """Read a single motion from a TOML file: `[machine]`, `[start]`, `[time]`, `[control]` and `[wind]`.

    The keys are those of study files. Other tables of a study are ignored, so that its nominal motion can be simulated.

    Raises:
        ScenarioError: a ValueError with file, line and key.
        ModuleNotFoundError: a package is missing; the message names the extra.
    """
    root = read(path).only(*_STUDY_TABLES)
    machine = _machine(root)
    rollout, _, method = _rollout(root, machine)
    return MotionScenario(rollout, machine, method)


def _machine(root: Table, model: Model | None = None) -> MachineFile:
    """The model with its stops; the file is not read if the model is already known."""
    table = root.table("machine").only(*MACHINE_KEYS, "stops")
    if model is None:
        machine = machine_of(table)
    else:
        file = root.document.file.parent / table.text("file", "")
        machine = MachineFile(file.absolute(), model, None, table.flag("floating_base", False))
    return with_stops_of(table, machine, _time(root.table("time"))[0])


def _rollout(root: Table, machine: MachineFile) -> tuple[Rollout, dict[str, Distribution], str]:
    """The nominal rollout, the distribution of the gusts of wind by its name there, and the method's name."""
    model = machine.model
    dt, steps, every, method = _time(root.table("time"))
    start = root.table("start").only("keyframe", "q", "v")
    q, v = read_start(start, model, machine.path)
    control = root.table("control")
    if control.choice("law", (_ACTUATORS, *LAWS), "none") == _ACTUATORS:
        stops = resolved_contact_time(dt) if root.table("machine").flag("stops", False) else None
        drives = _actuators(control, machine, stops)
    else:
        law, torques = _control(control, model, q, dt * np.arange(steps + 1))
        drives = {"control": law, "torques": torques}
    wind, gusts = _wind(root.table("wind"), model, dt, steps)
    with root.at(None):
        rollout = Rollout(
            model, *(jnp.asarray(x, model.dtype) for x in (q, v)), dt=dt, steps=steps, wrenches=wind,
            method=MOTION_METHODS.get(method, MK4), save_every=every, **drives,
        )  # fmt: skip
    return rollout, gusts, method


def _time(table: Table) -> tuple[float, int, int, str]:
    """Step size, s, number of steps, steps between saved states, and the method's name."""
    dt, steps = read_time_steps(table.only("duration", "dt", "steps", "method", "save_every"), "steps")
    every = table.whole("save_every", 1)
    if steps % every:
        raise table.fault("save_every", f"expected a divisor of the {steps} steps, got {every}")
    return dt, steps, every, table.choice("method", _METHOD_NAMES, AUTOMATIC)


Configuration = Float[np.ndarray, " nq"]


def _target(
    table: Table, model: Model, q: Configuration, kind: type[controls.PD] | type[controls.ComputedTorque]
) -> ControlLaw:
    """A PD controller about a configuration."""
    target, _ = read_configuration(table, "target", model, q)
    gains = []
    for key in ("stiffness", "damping"):
        table.need(key)
        if isinstance(table.values[key], dict | list):
            gain, _ = table.by_joint(key, model.v_slices, np.zeros(model.nv))
        else:
            gain = np.full(model.nv, table.needed_number(key, least=0.0))
        gains.append(jnp.asarray(gain, model.dtype))
    return kind(jnp.asarray(target, model.dtype), *gains)


def _hover(table: Table, model: Model, q: Configuration) -> ControlLaw:
    """Thrust and moments that keep a flying robot in place."""
    place = table.point("place", q[:3])
    keys = (*GAINS, "thrust_limit", "heading")
    gains = {key: table.needed_number(key, above=-np.inf if key == "heading" else 0.0) for key in keys if key in table}
    with table.at(None):
        return Hover.from_model(model, place, **gains)


Maker = Callable[[Table, Model, Configuration], ControlLaw | None]
"""Function of the table, the model and its initial configuration."""

_TARGET_KEYS = ("target", "stiffness", "damping")
LAWS: dict[str, tuple[Maker, tuple[str, ...]]] = {
    "none": (lambda table, model, q: None, ()),
    "gravity": (lambda table, model, q: controls.GravityCompensation(), ()),
    "pd": (partial(_target, kind=controls.PD), _TARGET_KEYS),
    "computed_torque": (partial(_target, kind=controls.ComputedTorque), _TARGET_KEYS),
    "hover": (_hover, ("place", *GAINS, "thrust_limit", "heading")),
}
"""Constructor and keys of each controller of `[control]`."""
_ACTUATORS = "actuators"
"""Control by the actuators of the robot's file."""


def _actuators(table: Table, machine: MachineFile, stops: float | None) -> dict[str, Any]:
    """The actuators of the robot's file with their commands, zero by default, as arguments of a rollout."""
    table.only("law", "commands")
    with table.at("law"):
        found = load_actuators(machine.model, machine.path, stops=stops)
    slices = {name: slice(i, i + 1) for i, name in enumerate(found.names)}
    commands, _ = table.by_joint("commands", slices, np.zeros(len(slices)))
    return {"actuators": found, "commands": jnp.asarray(commands, machine.model.dtype)}


def _control(
    table: Table, model: Model, q: Configuration, times: Float[np.ndarray, " nodes"]
) -> tuple[ControlLaw | None, Float[Array, "*nodes nv"] | None]:
    """The controller, and the joint forces, N m or N: constant, or at the times of all steps."""
    make, keys = LAWS[table.choice("law", tuple(LAWS), "none")]
    table.only("law", "torque", "torques", *keys)
    torques = None
    if "torque" in table and "torques" in table:
        raise table.fault("torques", "expected either torque, constant joint forces, or torques, a file")
    if "torques" in table:
        torques = read_torques(table, "torques", model, times)
    if "torque" in table:
        torques = jnp.asarray(table.by_joint("torque", model.v_slices, np.zeros(model.nv))[0], model.dtype)
    return make(table, model, q), torques


def _wind(table: Table, model: Model, dt: float, steps: int) -> tuple[Wind | None, dict[str, Distribution]]:
    """The drag of moving air, and the distribution of its gusts by its name in a rollout."""
    table.only("frame", "mean", "quadratic", "linear", "gusts", "correlation_time", "every")
    if not table.values:
        return None, {}
    names = model.topology.body_names + model.topology.frame_names
    frame = table.choice("frame", names, names[0])
    drags = {key: table.number(key, 0.0, least=0.0) for key in ("quadratic", "linear")}
    if not any(drags.values()):
        raise table.fault(None, "expected positive drag: quadratic, kg/m, or linear, kg/s")
    mean = table.point("mean")
    every = table.whole("every", 10)
    nodes = -(-steps // every) + 1 if "gusts" in table else 1
    air, gap, quadratic, linear = (jnp.asarray(x, model.dtype) for x in (mean, every * dt, *drags.values()))
    law = Wind(frame, air, jnp.zeros((nodes, 3), model.dtype), gap, quadratic, linear)
    if "gusts" not in table:
        if "correlation_time" in table:
            raise table.fault("correlation_time", "expected gusts, which are missing")
        return law, {}
    if isinstance(table.values["gusts"], list):
        std = table.vector("gusts", 3)
    else:
        std = np.full(3, table.needed_number("gusts"))
    time = table.number("correlation_time", 1.0, above=0.0)
    if every * dt > time / 2:
        raise table.fault(
            "every",
            f"the nodes of the gusts are {every * dt:g} s apart, more than half of the correlation time of {time:g} s:"
            f" the gusts between them would be weaker; expected at most {int(time / 2 / dt)} steps",
        )
    with table.at("gusts"):
        gusts = OrnsteinUhlenbeck(jnp.asarray(std, model.dtype), jnp.asarray(time, model.dtype), every * dt, nodes)
    return law, {"wrenches.gusts": gusts}


def _stop(table: Table, names: Sequence[str]) -> StopAtConfidence | None:
    """The stopping rule of a study; None without one."""
    table.only("output", "half_width", "level", "least")
    if not table.values:
        return None
    output = table.need("output", "half_width").choice("output", names, names[0])
    half, level = table.needed_number("half_width", above=0.0), table.number("level", 0.95)
    least = table.whole("least", 1000, 2)
    with table.at("level"):
        return StopAtConfidence(output, half, level, least)
