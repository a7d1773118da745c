"""A simulation of ``lgsim simulate``, from the check of each word to the files that it leaves."""

from __future__ import annotations

import math
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from numpy import ndarray

from lgsim import simulation
from lgsim.actuators import Actuators, Lag, Transmission
from lgsim.cli import files, pictures
from lgsim.cli.checks import run_size, starts
from lgsim.cli.checks.replacement import check_replaced
from lgsim.cli.errors import BadInput, bad_input, needs
from lgsim.cli.exit_status import Exit
from lgsim.cli.progress import Watch
from lgsim.cli.requests import SimulationRequest
from lgsim.cli.terminal import console, lines, note, show_facts
from lgsim.formats import Report, load_actuators
from lgsim.integrators.method import Method
from lgsim.multibody import Model
from lgsim.scenarios import states
from lgsim.simulation import MOTION_METHODS, Trajectory
from lgsim.simulation.actuated_control import actuated
from lgsim.simulation.equations_of_motion import initial_state
from lgsim.simulation.simulate import CHUNK
from lgsim.simulation.stops import CONTACT_TIME, resolved_contact_time
from lgsim.simulation.variational.machine_method import MachineMethod
from lgsim.support.messages import counted, listed, unknown_choice, unknown_name

if TYPE_CHECKING:
    from lgsim.scenarios.study import MotionScenario

MOST = 1e15
"""The number of steps from which on the time of a step is lost in round-off."""

AUTOMATIC = "auto"
"""The name of the choice of a method along the motion."""

TOLERANCE, ABSOLUTE = 1e-6, 1e-3
"""The default tolerance of adaptive steps, and the share of a tolerance that is absolute."""

_MOST_ADAPTIVE = 10_000_000
"""The number of adaptive steps that only a motion that cannot go on takes."""

_MOST_SAVED = 1e8
"""The number of states that a motion may hold in memory."""


def run_simulation(asked: SimulationRequest) -> Exit:
    """Simulate, save, show a table, and return why it ended.

    Raises:
        BadInput: a word is wrong; this is found before the simulation begins.
        FileError: the file describes no machine.
        Stop: a package is missing.
    """
    planned = None
    if asked.file.suffix == ".toml":
        asked, planned = _planned(asked)
    settings = _settings(asked)
    files.check_out("--out", asked.out)
    files.keep_compiled()
    asked, start = _start(asked, planned)
    start = _checked(asked, settings, start)
    check_replaced(pictures.motion_outputs(start.model, asked.out, asked.plot, asked.html), asked.force)
    if asked.plot:
        pictures.check_plots()
    visuals = pictures.visuals(asked.file) if asked.html else None
    files.remark(start.report, asked.floating_base)
    starts.remark(start.model, start.q, start.v, start.torque)
    if asked.stops:
        starts.remark_stops(start.model, start.q)
    motion, watch = _simulated(asked, settings, start)
    made = [files.save_run(motion, asked.out, asked.file)]
    if motion.result:
        note(f"{motion.result}; what was computed, {counted(len(motion), 'state')}, is in {asked.out}")
    made += pictures.save_beside(motion, asked.out, asked.plot, asked.html, visuals)
    _show(motion, watch, made, asked.stops)
    if motion.result:
        early = Exit.DIVERGED if motion.result.startswith("diverged") else Exit.STOPPED
        return Exit.INTERRUPTED if watch.interrupted else early
    return Exit.DONE if motion.step_error is None or motion.step_error.resolved else Exit.NOT_RESOLVED


class _Settings(NamedTuple):
    """How a motion is computed.

    Attributes:
        steps: The number of steps; with adaptive ones that of spaces between the states that are saved.
        name: The name of the method.
        tolerance: The tolerance of adaptive steps.
    """

    steps: int
    name: str
    tolerance: float

    @property
    def method(self) -> Method | simulation.Automatic:
        """The method, or the choice of one along the motion."""
        return MOTION_METHODS.get(self.name, simulation.Automatic())


def _settings(asked: SimulationRequest) -> _Settings:
    """The steps, the method and the tolerance that were asked for."""
    return _Settings(_steps(asked), _method(asked), _tolerance(asked))


def _checked(asked: SimulationRequest, settings: _Settings, start: _Start) -> _Start:
    """The start, with stops where they were asked for, after a check that it can be simulated as it was asked for."""
    starts.check_inertia(asked.file, start.model, start.q)
    _check_states(settings.method, start)
    if asked.check and asked.adaptive:
        raise BadInput("--check: only without --adaptive, whose steps shrink before anything diverges")
    if not asked.stops:
        return start
    time = CONTACT_TIME if asked.adaptive else resolved_contact_time(asked.dt)
    return start._replace(model=simulation.with_stops(start.model, time))


def _simulated(asked: SimulationRequest, settings: _Settings, start: _Start) -> tuple[Trajectory, Watch]:
    """The motion, and how long it took; before one that is larger than meant the user is asked.

    Raises:
        BadInput: the user does not want it, or nobody can be asked.
    """
    steps, method = settings.steps, settings.method

    def first_steps(count: int, watch: Watch) -> bool:
        given = start.drives.get("torques")
        first = {"torques": given[:count]} if given is not None and given.ndim > 1 else {}
        found = simulation.simulate(
            start.model, start.q, start.v, duration=count * asked.dt, dt=asked.dt, method=method, step_check=False,
            save_every=min(asked.save_every, CHUNK), progress=watch, **(start.drives | first),
        ).result  # fmt: skip
        if found.startswith("interrupted"):
            raise KeyboardInterrupt
        return not found

    run_size.confirm(run_size.run_size(start.model, steps, asked.save_every, asked.adaptive, first_steps), asked.yes)
    amount = f"adaptive steps, tolerance {settings.tolerance:g}," if asked.adaptive else f"{steps} steps"
    with Watch(steps, "saved state") if asked.adaptive else Watch(steps) as watch:
        line = f"simulating {asked.duration:g} s of {asked.file}: {amount} by {settings.name}"
        console(error=True).print(line, soft_wrap=True)
        common: dict[str, Any] = {
            "duration": asked.duration, "step_check": not asked.no_step_check, "progress": watch, **start.drives,
        }  # fmt: skip
        if not asked.adaptive:
            return simulation.simulate(
                start.model, start.q, start.v, dt=asked.dt, method=method, save_every=asked.save_every,
                check=asked.check, **common,
            ), watch  # fmt: skip
        return simulation.simulate_adaptive(
            start.model, start.q, start.v, rtol=settings.tolerance, atol=ABSOLUTE * settings.tolerance,
            method=MOTION_METHODS[settings.name], dt_out=asked.dt * asked.save_every, max_steps=_MOST_ADAPTIVE,
            **common,
        ), watch  # fmt: skip


_WORDS_BESIDE_A_FILE = {
    "file", "adaptive", "tolerance", "out", "plot", "html", "check", "no_step_check", "yes", "force",
}  # fmt: skip
"""The words that may be given with a scenario, which says all others itself."""


class _Start(NamedTuple):
    """A machine, where it begins, and what drives it.

    Attributes:
        report: What is odd in its file.
        v: Velocity, rad/s or m/s.
        torque: Constant joint forces, N m or N; None where others are given.
        drives: The arguments of ``simulate`` for all that drives it.
    """

    model: Model
    report: Report | None
    q: Float[ndarray, " nq"]
    v: Float[ndarray, " nv"]
    torque: Float[ndarray, " nv"] | None
    drives: dict[str, Any]


def _start(asked: SimulationRequest, planned: MotionScenario | None) -> tuple[SimulationRequest, _Start]:
    """The request, of the machine's own file, and the start of the motion, from the words or from a scenario."""
    if planned is not None:
        machine, plan = planned.machine, planned.rollout
        constant = None if plan.torques is None or plan.torques.ndim > 1 else np.asarray(plan.torques)
        drives = {name: getattr(plan, name) for name in ("torques", "control", "wrenches", "actuators", "commands")}
        start = _Start(machine.model, machine.report, np.asarray(plan.q0), np.asarray(plan.v0), constant, drives)
        return replace(asked, file=machine.path, floating_base=machine.floating_base), start
    model, report = files.read_machine(
        asked.file, floating_base=asked.floating_base, gravity=_gravity(asked.gravity), float32=asked.float32,
        ignore_equalities=asked.ignore_equalities, loops=asked.loops,
    )  # fmt: skip
    with bad_input("--q: "):
        q = states.configuration(asked.q, model, asked.seed)
    with bad_input("--v: "):
        v = states.velocities(asked.v, model)
    with bad_input("--torque: "):
        torque = states.velocities(asked.torque, model)
    return asked, _Start(model, report, q, v, torque, _actuators(asked, model, torque))


def _planned(asked: SimulationRequest) -> tuple[SimulationRequest, MotionScenario]:
    """The request with the numbers of its scenario, and the scenario."""
    files.configure_jax()
    files.keep_compiled()
    for word in fields(asked):
        if word.name not in _WORDS_BESIDE_A_FILE and getattr(asked, word.name) != word.default:
            option = f"--{word.name.replace('_', '-')}"
            raise BadInput(f"{option}: not with {asked.file}, which says what moves and how; write it there")
    from lgsim.scenarios.study import load_motion  # brings all of the studies

    planned = load_motion(asked.file)
    run = planned.rollout
    method = None if asked.adaptive and planned.method == AUTOMATIC else planned.method
    timing = {"duration": run.steps * float(run.dt), "dt": float(run.dt), "save_every": run.save_every}
    if asked.adaptive and run.torques is not None and run.torques.ndim > 1:
        raise BadInput("--adaptive: only with forces that are constant or of a law, not with those of a file")
    return replace(asked, method=method, **timing), planned


def _lagging_drives(asked: SimulationRequest, model: Model, torque: Float[ndarray, " nv"]) -> dict[str, Any]:
    """Joint forces that follow their commands with lags, as arguments of ``simulate``."""
    with bad_input("--actuator-time: "):
        lag = states.velocities(asked.actuator_time, model)
    if (lag < 0).any():
        raise BadInput(f"--actuator-time: expected seconds of zero or more, got {lag.min():g}")
    slow, one = lag > 0, np.eye(model.nv, dtype=model.dtype)
    if not slow.any():
        return {"torques": torque if torque.any() else None}
    drives = Actuators(Transmission(one[slow]), Lag(jnp.asarray(lag[slow]))) + Actuators(Transmission(one[~slow]))
    return {"actuators": drives, "commands": np.concatenate([torque[slow], torque[~slow]])}


def _actuators(asked: SimulationRequest, model: Model, torque: Float[ndarray, " nv"]) -> dict[str, Any]:
    """What drives the machine, as arguments of ``simulate``: joint forces, or the file's actuators with commands."""
    if asked.actuator_time is not None:
        if asked.ctrl is not None:
            raise BadInput("--actuator-time: the file's actuators have lags of their own; leave out --ctrl")
        return _lagging_drives(asked, model, torque)
    if asked.ctrl is None:
        return {"torques": torque if torque.any() else None}
    if torque.any():
        raise BadInput("--ctrl: the actuators make the joint forces; expected no --torque beside it")
    found = load_actuators(model, asked.file)
    if asked.adaptive and found.is_sampled:
        raise BadInput("--ctrl: the actuators have bounds that act at steps of a fixed length; leave out --adaptive")
    given = dict.fromkeys(found.names, 0.0)
    with bad_input("--ctrl: "):
        if "=" in asked.ctrl:
            for part in asked.ctrl.split(","):
                name, _, value = part.partition("=")
                if name.strip() not in given:
                    raise ValueError(unknown_name("expected names of actuators", name.strip(), list(given)))
                given[name.strip()] = float(states.numbers(value)[0])
        else:
            values = states.numbers(asked.ctrl)
            if len(values) != len(given):
                raise ValueError(f"expected {counted(len(given), 'number')}, for {', '.join(given)}, got {len(values)}")
            given = dict(zip(given, values, strict=True))
    return {"actuators": found, "commands": jnp.asarray(list(given.values()), model.dtype)}


def _method(asked: SimulationRequest) -> str:
    """The name of the method."""
    name = asked.method or ("MK54" if asked.adaptive else AUTOMATIC)
    names = [AUTOMATIC, *MOTION_METHODS]
    if name not in names:
        raise BadInput(unknown_choice("--method: expected one of", name, names))
    if asked.adaptive:
        embedded = [known for known, each in MOTION_METHODS.items() if each.embedded_order is not None]
        reason = MOTION_METHODS[name].fixed_step_reason if name in MOTION_METHODS else None
        if reason is not None:
            raise BadInput(f"--adaptive: {name} takes no adaptive steps: {reason}; take {listed(embedded)}")
        if name not in embedded:
            raise BadInput(f"--method: {name} has no error estimate, which --adaptive needs; take {listed(embedded)}")
        needs("diffrax", "adaptive", "--adaptive")
    return name


def _check_states(method: Any, start: _Start) -> None:
    """Raise BadInput where actuators have states that the method does not take."""
    if isinstance(method, MachineMethod):
        control = actuated(start.model, start.drives.get("actuators"), None)
        state = initial_state(start.model, start.q, start.v, control)
        with bad_input("--"):
            method.check_machine(start.model, state.size)


def _tolerance(asked: SimulationRequest) -> float:
    """The tolerance of adaptive steps."""
    if asked.tolerance is None:
        return TOLERANCE
    if not asked.adaptive:
        raise BadInput("--tolerance: only together with --adaptive; else --dt says how long the steps are")
    if not (math.isfinite(asked.tolerance) and asked.tolerance > 0):
        raise BadInput(f"--tolerance: expected a positive number, got {asked.tolerance:g}")
    from lgsim.integrators.adaptive.checks import UNITS, smallest_tolerance  # imports diffrax, of an extra

    dtype = "float32" if asked.float32 else "float64"
    least = smallest_tolerance(dtype)
    if asked.tolerance < least:
        raise BadInput(
            f"--tolerance: expected at least {least:.2g}, {UNITS} rounding units of {dtype}, got {asked.tolerance:g}"
        )
    return asked.tolerance


def _gravity(text: str | None) -> Float[ndarray, " 3"] | None:
    """The acceleration of free fall, (3,), m/s^2; None for that of the file."""
    if text is None:
        return None
    with bad_input("--gravity: "):
        found = states.numbers(text)
    if len(found) != 3:
        raise BadInput(f"--gravity: expected three numbers such as 0,0,-9.81, got {len(found)}")
    return np.array(found)


def _steps(asked: SimulationRequest) -> int:
    """The number of steps that ``simulate`` makes, or of spaces between the states that ``simulate_adaptive`` saves."""
    for option, value in (("--duration", asked.duration), ("--dt", asked.dt)):
        if not (math.isfinite(value) and value > 0):
            raise BadInput(f"{option}: expected a positive number of seconds, got {value:g}")
    share = asked.duration / asked.dt
    if not share < MOST:
        raise BadInput(f"--dt: expected less than {MOST:.0e} steps, got {share:.0e}")
    if round(share) < asked.save_every:
        what = "a step" if asked.save_every == 1 else f"{asked.save_every} steps"
        raise BadInput(
            f"{'--dt' if asked.save_every == 1 else '--save-every'}: expected {what} of {asked.dt:g} s to fit into the"
            f" duration, {asked.duration:g} s"
        )
    if asked.adaptive:
        states_saved = max(1, round(share / asked.save_every))
        if not states_saved < _MOST_SAVED:
            raise BadInput(f"--dt: expected less than {_MOST_SAVED:.0e} saved states, got {states_saved:.0e}")
        return states_saved
    return max(1, round(share / asked.save_every)) * asked.save_every


def _show(motion: Trajectory, watch: Watch, made: list[Path], stops: bool) -> None:
    """Write a table about the motion and the time that it took."""
    summary = motion.summary()
    first = f"{watch.compiling:.2f} s of it compiling and the first {counted(watch.first_steps, watch.counted)}"
    facts = [*summary.rows, ("wall time", f"{watch.wall:.2f} s, {first}")]
    if watch.rate is not None:
        facts.append(("steps per second", f"{watch.rate:,.0f}, after the first ones"))
    show_facts([*facts, ("files", lines(made))])
    for warning in summary.warnings:
        note(warning)
    if not stops and any(use.passed and use.kind == "position" for use in motion.limit_uses):
        note("position limits of a file do not act by themselves; --stops makes them stops")
