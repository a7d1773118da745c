"""Study files: TOML files that say what varies in a motion and what is kept of it, as Monte Carlo studies."""

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
    Distribution,
    LatinHypercube,
    OrnsteinUhlenbeck,
    Rollout,
    Sobol,
    StopAtConfidence,
    Study,
    Wind,
)
from lgsim.montecarlo.method_choice import choose_method
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
from lgsim.support.messages import one_line
from lgsim.support.toml_table import Table, read

_SEQUENCES = {"random": None, "sobol": Sobol, "latin_hypercube": LatinHypercube}
"""The sequences of samples by the key "sequence"."""
LARGEST = 2**63 - 1
"""The largest whole number that TOML has."""
GAINS = ("stiffness", "damping", "attitude", "spin")
"""The gains of the law "hover"."""


AUTOMATIC = "auto"
"""The method that a study finds itself."""
_STUDY_TABLES = (
    "machine", "start", "time", "control", "wind", "dispersions", "outputs", "failures", "sampling", "stop", "report",
)  # fmt: skip
"""The tables of a study file."""
_METHOD_NAMES = (AUTOMATIC, *MOTION_METHODS)


class StudyScenario(NamedTuple):
    """A Monte Carlo study, ready to be run: ``montecarlo.run(s.study)``.

    Attributes:
        study: The distributions, the rollout, the outputs and the number of samples.
        worst: The output by whose size a report chooses the worst samples; None where the report is to choose it.
        cases: The number of worst samples that a report replays.
        remark: Why the method of ``method = "auto"`` is no explicit one, or empty.
    """

    study: Study
    machine: MachineFile
    worst: str | None
    cases: int
    remark: str = ""


def load_study(
    path: str | PathLike[str], *, samples: int | None = None, seed: int | None = None, model: Model | None = None
) -> StudyScenario:
    """Read a Monte Carlo study from a TOML file; ``lgsim.data.study("hover")`` is a commented one.

    All faults of the file are found before anything is compiled. Relative names of files in it are beside it.

    Args:
        samples: The number of samples; None for that of the file.
        seed: The seed; None for that of the file.
        model: The machine, where it is known already; the file of the machine is then not read.

    Returns:
        The study and what a report shows of it; numbers have JAX's default float.

    Raises:
        ScenarioError: a ValueError with file, line and key of what is wrong.
        ValueError: ``samples`` or ``seed`` is too small.
        ModuleNotFoundError: a package is missing; the message names the extra.
    """
    for name, value, least in (("samples", samples, 1), ("seed", seed, 0)):
        if value is not None and value < least:
            raise ValueError(f"{name}: expected a whole number from {least} on, got {value}")
    root = read(path).only(*_STUDY_TABLES)
    machine = _machine(root, model)
    model = machine.model
    rollout, gusts, method = _rollout(root, machine)
    varied = read_dispersions(root.table("dispersions"), rollout) | gusts
    if not varied:
        raise root.fault(None, "nothing varies: give dispersions or gusts of wind")
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
        # samples are drawn here, whose numbers may be ones that no machine has
        with root.at("dispersions"):
            wanted, remark = choose_method(wanted, Automatic())
    return StudyScenario(wanted, machine, worst, shown.whole("cases", 3, 0), remark)


class MotionScenario(NamedTuple):
    """The motion of a study without its dispersions, or one motion alone.

    Attributes:
        rollout: The machine, its start, what drives it, and the steps.
        method: The name of the method, ``AUTOMATIC`` or one of ``MOTION_METHODS``.
    """

    rollout: Rollout
    machine: MachineFile
    method: str


def load_motion(path: str | PathLike[str]) -> MotionScenario:
    """Read one motion from a TOML file: ``[machine]``, ``[start]``, ``[time]``, ``[control]`` and ``[wind]``.

    The grammar is that of studies, whose other tables may be there and are not read, so that a study can be tried once
    as it is without dispersions.

    Raises:
        ScenarioError: a ValueError with file, line and key of what is wrong.
        ModuleNotFoundError: a package is missing; the message names the extra.
    """
    root = read(path).only(*_STUDY_TABLES)
    machine = _machine(root)
    rollout, _, method = _rollout(root, machine)
    return MotionScenario(rollout, machine, method)


def _machine(root: Table, model: Model | None = None) -> MachineFile:
    """The machine with its stops; the file of a model that is known already is not read."""
    table = root.table("machine").only(*MACHINE_KEYS, "stops")
    if model is None:
        machine = machine_of(table)
    else:
        file = root.document.file.parent / table.text("file", "")
        machine = MachineFile(file.absolute(), model, None, table.flag("floating_base", False))
    return with_stops_of(table, machine, _time(root.table("time"))[0])


def _rollout(root: Table, machine: MachineFile) -> tuple[Rollout, dict[str, Distribution], str]:
    """(the motion without dispersion, the distribution of the gusts of wind by its name there, the method's name)."""
    model = machine.model
    dt, steps, every, method = _time(root.table("time"))
    start = root.table("start").only("q", "v")
    q, v = read_start(start, model)
    control = root.table("control")
    if control.choice("law", (_ACTUATORS, *LAWS), "none") == _ACTUATORS:
        drives = _actuators(control, machine)
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
    """The step, s, the number of steps, the number of steps between states that are kept, and the method's name."""
    dt, steps = read_time_steps(table.only("duration", "dt", "steps", "method", "save_every"), "steps")
    every = table.whole("save_every", 1)
    if steps % every:
        raise table.fault("save_every", f"expected a divisor of the {steps} steps, got {every}")
    return dt, steps, every, table.choice("method", _METHOD_NAMES, AUTOMATIC)


Configuration = Float[np.ndarray, " nq"]


def _target(
    table: Table, model: Model, q: Configuration, kind: type[controls.PD] | type[controls.ComputedTorque]
) -> ControlLaw:
    """A law with stiffness and damping about a configuration."""
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
    """Thrust and moments that keep a flying body at a place."""
    place = table.point("place", q[:3])
    keys = (*GAINS, "thrust_limit", "heading")
    gains = {key: table.needed_number(key, above=-np.inf if key == "heading" else 0.0) for key in keys if key in table}
    with table.at(None):
        return Hover.from_model(model, place, **gains)


Maker = Callable[[Table, Model, Configuration], ControlLaw | None]
"""A function of the table, the machine and its configuration at the start."""

_TARGET_KEYS = ("target", "stiffness", "damping")
LAWS: dict[str, tuple[Maker, tuple[str, ...]]] = {
    "none": (lambda table, model, q: None, ()),
    "gravity": (lambda table, model, q: controls.GravityCompensation(), ()),
    "pd": (partial(_target, kind=controls.PD), _TARGET_KEYS),
    "computed_torque": (partial(_target, kind=controls.ComputedTorque), _TARGET_KEYS),
    "hover": (_hover, ("place", *GAINS, "thrust_limit", "heading")),
}
"""For each law of ``[control]`` the function that makes it, and its keys."""
_ACTUATORS = "actuators"
"""The law by which the actuators of the machine's file make the joint forces of commands."""


def _actuators(table: Table, machine: MachineFile) -> dict[str, Any]:
    """The actuators of the machine's file with their commands, zero where none is given, as arguments of a rollout."""
    table.only("law", "commands")
    with table.at("law"):
        found = load_actuators(machine.model, machine.path)
    slices = {name: slice(i, i + 1) for i, name in enumerate(found.names)}
    commands, _ = table.by_joint("commands", slices, np.zeros(len(slices)))
    return {"actuators": found, "commands": jnp.asarray(commands, machine.model.dtype)}


def _control(
    table: Table, model: Model, q: Configuration, times: Float[np.ndarray, " nodes"]
) -> tuple[ControlLaw | None, Float[Array, "*nodes nv"] | None]:
    """The law, and the joint forces, N m or N: constant ones, or nodes at the times of all steps."""
    make, keys = LAWS[table.choice("law", tuple(LAWS), "none")]
    table.only("law", "torque", "torques", *keys)
    torques = None
    if "torque" in table and "torques" in table:
        raise table.fault("torques", "expected either torque, all the time, or torques, a file")
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
        raise table.fault(None, "expected drag: quadratic, kg/m, or linear, kg/s, above zero")
    mean = table.point("mean")
    every = table.whole("every", 10)
    nodes = -(-steps // every) + 1 if "gusts" in table else 1
    air, gap, quadratic, linear = (jnp.asarray(x, model.dtype) for x in (mean, every * dt, *drags.values()))
    law = Wind(frame, air, jnp.zeros((nodes, 3), model.dtype), gap, quadratic, linear)
    if "gusts" not in table:
        if "correlation_time" in table:
            raise table.fault("correlation_time", "only with gusts")
        return law, {}
    if isinstance(table.values["gusts"], list):
        std = table.vector("gusts", 3)
    else:
        std = np.full(3, table.needed_number("gusts"))
    time = table.number("correlation_time", 1.0, above=0.0)
    with table.at("gusts"):
        gusts = OrnsteinUhlenbeck(jnp.asarray(std, model.dtype), jnp.asarray(time, model.dtype), every * dt, nodes)
    return law, {"wrenches.gusts": gusts}


def _stop(table: Table, names: Sequence[str]) -> StopAtConfidence | None:
    """The rule by which fewer samples are enough; None for no rule."""
    table.only("output", "half_width", "level", "least")
    if not table.values:
        return None
    output = table.need("output", "half_width").choice("output", names, names[0])
    half, level = table.needed_number("half_width", above=0.0), table.number("level", 0.95)
    least = table.whole("least", 1000, 2)
    with table.at("level"):
        return StopAtConfidence(output, half, level, least)
