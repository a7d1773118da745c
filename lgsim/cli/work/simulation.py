"""``lgsim simulate``: check the arguments, simulate, write files, print a summary."""

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
from lgsim.cli.options import machine_path
from lgsim.cli.progress import Watch
from lgsim.cli.requests import SimulationRequest
from lgsim.cli.terminal import console, lines, note, show_facts
from lgsim.formats import Report, load_actuators
from lgsim.integrators.method import Method
from lgsim.multibody import Model
from lgsim.scenarios import states
from lgsim.scenarios.machine import first_tag
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
"""Number of steps from which the increment of time is lost in round-off."""

AUTOMATIC = "auto"
"""Name of the automatic choice of a method."""

TOLERANCE, ABSOLUTE = 1e-6, 1e-3
"""Default tolerance of adaptive steps, and its absolute part as a fraction."""

_MOST_ADAPTIVE = 10_000_000
"""Largest number of adaptive steps; only a motion that cannot continue needs more."""

_MOST_SAVED = 1e8
"""Largest number of saved states."""


def run_simulation(asked: SimulationRequest) -> Exit:
    """Simulate, save, print a table, and return the reason why it ended.

    Raises:
        BadInput: an argument is invalid; raised before the simulation starts.
        FileError: the file describes no valid model.
        Stop: a package is missing.
    """
    planned = None
    if asked.file.suffix == ".toml":
        asked, planned = _planned(asked)
    asked = replace(asked, file=machine_path(asked.file, asked.xacro_arg))
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
        note(f"{motion.result}; the motion so far, {counted(len(motion), 'state')}, is in {asked.out}")
    made += pictures.save_beside(motion, asked.out, asked.plot, asked.html, visuals)
    _show(motion, watch, made, asked.stops)
    if motion.result:
        early = Exit.DIVERGED if motion.result.startswith("diverged") else Exit.STOPPED
        return Exit.INTERRUPTED if watch.interrupted else early
    return Exit.DONE if motion.step_error is None or motion.step_error.resolved else Exit.NOT_RESOLVED


class _Settings(NamedTuple):
    """Numerical settings of a simulation.

    Attributes:
        steps: Number of steps, or of intervals between saved states for adaptive steps.
        name: Name of the method.
        tolerance: Tolerance of adaptive steps.
    """

    steps: int
    name: str
    tolerance: float

    @property
    def method(self) -> Method | simulation.Automatic:
        """The method, or the automatic choice along the motion."""
        return MOTION_METHODS.get(self.name, simulation.Automatic())


def _settings(asked: SimulationRequest) -> _Settings:
    """Steps, method and tolerance of a request."""
    return _Settings(_steps(asked), _method(asked), _tolerance(asked))


def _checked(asked: SimulationRequest, settings: _Settings, start: _Start) -> _Start:
    """Check that the request can be simulated; return the initial state, with stops on request."""
    starts.check_inertia(asked.file, start.model, start.q)
    _check_states(settings.method, start)
    if asked.check and asked.adaptive:
        raise BadInput("--check: expected no --adaptive, whose steps shrink before a value diverges")
    if not asked.stops:
        return start
    return start._replace(model=simulation.with_stops(start.model, _contact_time(asked)))


def _contact_time(asked: SimulationRequest) -> float:
    """The duration of a bounce at stops, s."""
    return CONTACT_TIME if asked.adaptive else resolved_contact_time(asked.dt)


def _simulated(asked: SimulationRequest, settings: _Settings, start: _Start) -> tuple[Trajectory, Watch]:
    """Simulate and measure the wall time; runs with large resources need a confirmation.

    Raises:
        BadInput: the user declined, or there is no terminal to ask on.
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
"""Options that are valid with a scenario file, which defines everything else."""


class _Start(NamedTuple):
    """A robot, its initial state and its actuation.

    Attributes:
        report: Findings in its file.
        v: Initial velocity, rad/s or m/s.
        torque: Constant joint forces, N m or N; None if the joint forces are not constant.
        drives: Arguments of ``simulate`` for the actuation.
    """

    model: Model
    report: Report | None
    q: Float[ndarray, " nq"]
    v: Float[ndarray, " nv"]
    torque: Float[ndarray, " nv"] | None
    drives: dict[str, Any]


def _start(asked: SimulationRequest, planned: MotionScenario | None) -> tuple[SimulationRequest, _Start]:
    """The request with the path of the robot's file, and the initial state, from the arguments or a scenario."""
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
        if asked.q is not None and asked.q.isidentifier() and asked.q != "random" and first_tag(asked.file) == "mujoco":
            q, v = states.keyframe(asked.q, model, asked.file)
        else:
            q, v = states.configuration(asked.q, model, asked.seed), np.zeros(model.nv, model.dtype)
    with bad_input("--v: "):
        v = v if asked.v is None else states.velocities(asked.v, model)
    with bad_input("--torque: "):
        torque = states.velocities(asked.torque, model)
    return asked, _Start(model, report, q, v, torque, _actuators(asked, model, torque))


def _planned(asked: SimulationRequest) -> tuple[SimulationRequest, MotionScenario]:
    """The request with the settings of its scenario, and the scenario."""
    files.configure_jax()
    files.keep_compiled()
    for word in fields(asked):
        if word.name not in _WORDS_BESIDE_A_FILE and getattr(asked, word.name) != word.default:
            option = f"--{word.name.replace('_', '-')}"
            raise BadInput(f"{option}: not allowed with {asked.file}, which defines the simulation; set it there")
    from lgsim.scenarios.study import load_motion  # imports lgsim.montecarlo

    planned = load_motion(asked.file)
    run = planned.rollout
    method = None if asked.adaptive and planned.method == AUTOMATIC else planned.method
    timing = {"duration": run.steps * float(run.dt), "dt": float(run.dt), "save_every": run.save_every}
    if asked.adaptive and run.torques is not None and run.torques.ndim > 1:
        raise BadInput("--adaptive: expected constant joint forces or a controller, got joint forces from a file")
    return replace(asked, method=method, **timing), planned


def _lagging_drives(asked: SimulationRequest, model: Model, torque: Float[ndarray, " nv"]) -> dict[str, Any]:
    """Joint forces of first-order actuators, as arguments of ``simulate``."""
    with bad_input("--actuator-time: "):
        lag = states.velocities(asked.actuator_time, model)
    if (lag < 0).any():
        raise BadInput(f"--actuator-time: expected nonnegative seconds, got {lag.min():g}")
    slow, one = lag > 0, np.eye(model.nv, dtype=model.dtype)
    if not slow.any():
        return {"torques": torque if torque.any() else None}
    drives = Actuators(Transmission(one[slow]), Lag(jnp.asarray(lag[slow]))) + Actuators(Transmission(one[~slow]))
    return {"actuators": drives, "commands": np.concatenate([torque[slow], torque[~slow]])}


def _actuators(asked: SimulationRequest, model: Model, torque: Float[ndarray, " nv"]) -> dict[str, Any]:
    """The actuation as arguments of ``simulate``: joint forces, or the file's actuators with commands."""
    if asked.actuator_time is not None:
        if asked.ctrl is not None:
            raise BadInput("--actuator-time: not allowed with --ctrl, the file's actuators have their own lags")
        return _lagging_drives(asked, model, torque)
    if asked.ctrl is None:
        return {"torques": torque if torque.any() else None}
    if torque.any():
        raise BadInput("--ctrl: not allowed with --torque, the actuators produce the joint forces")
    found = load_actuators(model, asked.file, stops=_contact_time(asked) if asked.stops else None)
    if asked.adaptive and found.is_sampled:
        raise BadInput("--ctrl: not allowed with --adaptive, the bounds of the actuators need fixed steps")
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
    """Name of the method."""
    name = asked.method or ("MK54" if asked.adaptive else AUTOMATIC)
    names = [AUTOMATIC, *MOTION_METHODS]
    if name not in names:
        raise BadInput(unknown_choice("--method: expected one of", name, names))
    if asked.adaptive:
        embedded = [known for known, each in MOTION_METHODS.items() if each.embedded_order is not None]
        reason = MOTION_METHODS[name].fixed_step_reason if name in MOTION_METHODS else None
        if reason is not None:
            raise BadInput(f"--adaptive: {name} does not support step-size control: {reason}; use {listed(embedded)}")
        if name not in embedded:
            raise BadInput(f"--method: {name} has no error estimate, which --adaptive needs; use {listed(embedded)}")
        needs("diffrax", "adaptive", "--adaptive")
    return name


def _check_states(method: Any, start: _Start) -> None:
    """Raise BadInput if the actuators have states that the method does not support."""
    if isinstance(method, MachineMethod):
        control = actuated(start.model, start.drives.get("actuators"), None)
        state = initial_state(start.model, start.q, start.v, control)
        with bad_input("--"):
            method.check_machine(start.model, state.size)


def _tolerance(asked: SimulationRequest) -> float:
    """Tolerance of adaptive steps."""
    if asked.tolerance is None:
        return TOLERANCE
    if not asked.adaptive:
        raise BadInput("--tolerance: expected --adaptive; without it --dt sets the step size")
    if not (math.isfinite(asked.tolerance) and asked.tolerance > 0):
        raise BadInput(f"--tolerance: expected a positive number, got {asked.tolerance:g}")
    from lgsim.integrators.adaptive.checks import UNITS, smallest_tolerance  # imports diffrax, of an extra

    dtype = "float32" if asked.float32 else "float64"
    least = smallest_tolerance(dtype)
    if asked.tolerance < least:
        raise BadInput(
            f"--tolerance: expected at least {least:.2g}, {UNITS} unit round-offs of {dtype}, got {asked.tolerance:g}"
        )
    return asked.tolerance


def _gravity(text: str | None) -> Float[ndarray, " 3"] | None:
    """Gravitational acceleration, (3,), m/s^2; None for that of the file."""
    if text is None:
        return None
    with bad_input("--gravity: "):
        found = states.numbers(text)
    if len(found) != 3:
        raise BadInput(f"--gravity: expected three numbers such as 0,0,-9.81, got {len(found)}")
    return np.array(found)


def _steps(asked: SimulationRequest) -> int:
    """Number of steps of ``simulate``, or of intervals between the saved states of ``simulate_adaptive``."""
    for option, value in (("--duration", asked.duration), ("--dt", asked.dt)):
        if not (math.isfinite(value) and value > 0):
            raise BadInput(f"{option}: expected a positive number of seconds, got {value:g}")
    share = asked.duration / asked.dt
    if not share < MOST:
        raise BadInput(f"--dt: expected fewer than {MOST:.0e} steps, got {share:.0e}")
    if round(share) < asked.save_every:
        what = "a step" if asked.save_every == 1 else f"{asked.save_every} steps"
        raise BadInput(
            f"{'--dt' if asked.save_every == 1 else '--save-every'}: expected {what} of {asked.dt:g} s to fit into the"
            f" duration, {asked.duration:g} s"
        )
    if asked.adaptive:
        states_saved = max(1, round(share / asked.save_every))
        if not states_saved < _MOST_SAVED:
            raise BadInput(f"--dt: expected fewer than {_MOST_SAVED:.0e} saved states, got {states_saved:.0e}")
        return states_saved
    return max(1, round(share / asked.save_every)) * asked.save_every


def _show(motion: Trajectory, watch: Watch, made: list[Path], stops: bool) -> None:
    """Print a table of the motion and its wall time."""
    summary = motion.summary()
    first = (
        f"including {watch.compiling:.2f} s for compilation and the first {counted(watch.first_steps, watch.counted)}"
    )
    facts = [*summary.rows, ("wall time", f"{watch.wall:.2f} s, {first}")]
    if watch.rate is not None:
        facts.append(("steps per second", f"{watch.rate:,.0f}, without the first ones"))
    show_facts([*facts, ("files", lines(made))])
    for warning in summary.warnings:
        note(warning)
    if not stops and any(use.passed and use.kind == "position" for use in motion.limit_uses):
        note("position limits are not enforced by default; --stops turns them into stops")
