"""``lgsim simulate``: a simulation, from the check of each word to the files that it leaves."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from lgsim.cli.checks.replacement import Force, check_replaced
from lgsim.cli.errors import BadInput, bad_input, needs
from lgsim.cli.exit_status import Exit
from lgsim.cli.progress import Watch
from lgsim.cli.terminal import console, lines, note
from lgsim.support.messages import counted, listed, unknown_choice, unknown_name
from lgsim.support.verdict import RESOLVED

if TYPE_CHECKING:
    from jaxtyping import Float
    from numpy import ndarray

    from lgsim.formats import Report
    from lgsim.multibody import Model
    from lgsim.scenarios.study import MotionScenario
    from lgsim.simulation import Trajectory

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


class SimulationRequest(NamedTuple):
    """The words of ``lgsim simulate``; its help says what they mean."""

    file: Path
    q: str | None
    v: str | None
    torque: str | None
    ctrl: str | None
    actuator_time: str | None
    duration: float
    dt: float
    method: str | None
    adaptive: bool
    tolerance: float | None
    gravity: str | None
    floating_base: bool
    ignore_equalities: bool
    loops: Path | None
    out: Path
    plot: bool
    html: bool
    save_every: int
    float32: bool
    seed: int
    check: bool
    step_check: bool
    stops: bool
    yes: bool
    force: bool


def _run_simulation(asked: SimulationRequest) -> Exit:
    """Simulate, save, show a table, and return why it ended.

    Raises:
        BadInput: a word is wrong; this is found before the simulation begins.
        FileError: the file describes no machine.
        Stop: a package is missing.
    """
    from lgsim import simulation
    from lgsim.cli import files, pictures
    from lgsim.cli.checks import run_size, starts
    from lgsim.simulation.simulate import CHUNK
    from lgsim.simulation.stops import CONTACT_TIME, resolved_contact_time

    planned = None
    if asked.file.suffix == ".toml":
        asked, planned = _planned(asked)
    steps = _steps(asked)
    name, tolerance = _method(asked), _tolerance(asked)
    method = simulation.MOTION_METHODS.get(name, simulation.Automatic())
    files.check_out("--out", asked.out)
    files.keep_compiled()
    asked, start = _start(asked, planned)
    model, q, v, torque, drives = start.model, start.q, start.v, start.torque, start.drives
    starts.check_inertia(asked.file, model, q)
    _check_states(method, start)
    if asked.stops:
        model = simulation.with_stops(model, CONTACT_TIME if asked.adaptive else resolved_contact_time(asked.dt))
    if asked.check and asked.adaptive:
        raise BadInput("--check: only without --adaptive, whose steps shrink before anything diverges")
    check_replaced(pictures.motion_outputs(model, asked.out, asked.plot, asked.html), asked.force)
    if asked.plot:
        pictures.check_plots()
    visuals = pictures.visuals(asked.file) if asked.html else None
    files.remark(start.report, asked.floating_base)
    starts.remark(model, q, v, torque)
    if asked.stops:
        starts.remark_stops(model, q)

    def first_steps(count: int, watch: Watch) -> bool:
        given = drives.get("torques")
        first = {"torques": given[:count]} if given is not None and given.ndim > 1 else {}
        found = simulation.simulate(
            model, q, v, duration=count * asked.dt, dt=asked.dt, method=method, step_check=False,
            save_every=min(asked.save_every, CHUNK), progress=watch, **(drives | first),
        ).result  # fmt: skip
        if found.startswith("interrupted"):
            raise KeyboardInterrupt
        return not found

    run_size.confirm(run_size.run_size(model, steps, asked.save_every, asked.adaptive, first_steps), asked.yes)
    amount = f"adaptive steps, tolerance {tolerance:g}," if asked.adaptive else f"{steps} steps"
    with StateWatch(steps) if asked.adaptive else Watch(steps) as watch:
        line = f"simulating {asked.duration:g} s of {asked.file}: {amount} by {name}"
        console(error=True).print(line, soft_wrap=True)
        if asked.adaptive:
            motion = simulation.simulate_adaptive(
                model, q, v, duration=asked.duration, rtol=tolerance, atol=ABSOLUTE * tolerance,
                method=simulation.MOTION_METHODS[name],
                dt_out=asked.dt * asked.save_every, max_steps=_MOST_ADAPTIVE, step_check=asked.step_check,
                progress=watch, **drives,
            )  # fmt: skip
        else:
            motion = simulation.simulate(
                model, q, v, duration=asked.duration, dt=asked.dt, method=method,
                save_every=asked.save_every, check=asked.check, step_check=asked.step_check, progress=watch, **drives,
            )  # fmt: skip
    made = [files.save_run(motion, asked.out, asked.file)]
    if motion.result:
        note(f"{motion.result}; what was computed, {counted(len(motion), 'state')}, is in {asked.out}")
    if asked.plot:
        made += pictures.save_plots(motion, asked.out.parent, asked.out.stem)
    if asked.html:
        made.append(pictures.save_html(motion, asked.out.with_suffix(".html"), visuals))
    _show(motion, watch, made, asked.stops)
    if motion.result:
        early = Exit.DIVERGED if motion.result.startswith("diverged") else Exit.STOPPED
        return Exit.INTERRUPTED if watch.interrupted else early
    return Exit.DONE if motion.step_error is None or motion.step_error.resolved else Exit.NOT_RESOLVED


_WORDS_OF_FILE = {
    "q": None, "v": None, "torque": None, "ctrl": None, "actuator_time": None, "duration": 5.0, "dt": 1e-3,
    "method": None, "gravity": None, "floating_base": False, "ignore_equalities": False, "loops": None,
    "save_every": 1, "float32": False, "seed": 0, "stops": False,
}  # fmt: skip
"""The words that a scenario says itself, with their defaults."""


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
    import numpy as np

    from lgsim.scenarios import states

    if planned is not None:
        machine, plan = planned.machine, planned.rollout
        constant = None if plan.torques is None or plan.torques.ndim > 1 else np.asarray(plan.torques)
        drives = {name: getattr(plan, name) for name in ("torques", "control", "wrenches", "actuators", "commands")}
        start = _Start(machine.model, machine.report, np.asarray(plan.q0), np.asarray(plan.v0), constant, drives)
        return asked._replace(file=machine.path, floating_base=machine.floating_base), start
    model, report = _machine(asked)
    with bad_input("--q: "):
        q = states.configuration(asked.q, model, asked.seed)
    with bad_input("--v: "):
        v = states.velocities(asked.v, model)
    with bad_input("--torque: "):
        torque = states.velocities(asked.torque, model)
    return asked, _Start(model, report, q, v, torque, _actuators(asked, model, torque))


def _planned(asked: SimulationRequest) -> tuple[SimulationRequest, MotionScenario]:
    """The request with the numbers of its scenario, and the scenario."""
    from lgsim.cli import files
    from lgsim.scenarios.study import load_motion

    files.configure_jax()
    files.keep_compiled()
    for word, usual in _WORDS_OF_FILE.items():
        if getattr(asked, word) != usual:
            option = f"--{word.replace('_', '-')}"
            raise BadInput(f"{option}: not with {asked.file}, which says what moves and how; write it there")
    planned = load_motion(asked.file)
    run = planned.rollout
    method = None if asked.adaptive and planned.method == AUTOMATIC else planned.method
    timing = {"duration": run.steps * float(run.dt), "dt": float(run.dt), "save_every": run.save_every}
    if asked.adaptive and run.torques is not None and run.torques.ndim > 1:
        raise BadInput("--adaptive: only with forces that are constant or of a law, not with those of a file")
    return asked._replace(method=method, **timing), planned


class StateWatch(Watch):
    """A watch over saved states, which are no steps, and so have no rate of steps."""

    @property
    def rate(self) -> None:
        """None: nothing is known of the steps."""
        return None


def _machine(asked: SimulationRequest) -> tuple[Model, Report | None]:
    """The machine, and what was found in its file."""
    from lgsim.cli import files

    return files.read_machine(
        asked.file, floating_base=asked.floating_base, gravity=_gravity(asked.gravity), float32=asked.float32,
        ignore_equalities=asked.ignore_equalities, loops=asked.loops,
    )  # fmt: skip


def _lagging_drives(asked: SimulationRequest, model: Model, torque: Float[ndarray, " nv"]) -> dict[str, Any]:
    """Joint forces that follow their commands with lags, as arguments of ``simulate``."""
    import jax.numpy as jnp
    import numpy as np

    from lgsim.actuators import Actuators, Lag, Transmission
    from lgsim.scenarios import states

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
    import jax.numpy as jnp

    from lgsim.formats import load_actuators
    from lgsim.scenarios import states

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
    from lgsim.simulation import MOTION_METHODS

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
    from lgsim.simulation.actuated_control import actuated
    from lgsim.simulation.equations_of_motion import initial_state
    from lgsim.simulation.variational.machine_method import MachineMethod

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
    from lgsim.integrators.adaptive.checks import UNITS, smallest_tolerance

    dtype = "float32" if asked.float32 else "float64"
    least = smallest_tolerance(dtype)
    if asked.tolerance < least:
        raise BadInput(
            f"--tolerance: expected at least {least:.2g}, {UNITS} rounding units of {dtype}, got {asked.tolerance:g}"
        )
    return asked.tolerance


def _gravity(text: str | None) -> Float[ndarray, " 3"] | None:
    """The acceleration of free fall, (3,), m/s^2; None for that of the file."""
    import numpy as np

    from lgsim.scenarios.states import numbers

    if text is None:
        return None
    with bad_input("--gravity: "):
        found = numbers(text)
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
    from rich.table import Table

    table, summary = Table.grid(padding=(0, 2)), motion.summary()
    for name, text in summary.rows:
        table.add_row(name, text)
    watched = "saved state" if isinstance(watch, StateWatch) else "step"
    first = f"{watch.compiling:.2f} s of it compiling and the first {counted(watch.first_steps, watched)}"
    table.add_row("wall time", f"{watch.wall:.2f} s, {first}")
    if watch.rate is not None:
        table.add_row("steps per second", f"{watch.rate:,.0f}, after the first ones")
    table.add_row("files", lines(made))
    console().print(table)
    for warning in summary.warnings:
        note(warning)
    if not stops and any(use.passed and use.kind == "position" for use in motion.limit_uses):
        note("position limits of a file do not act by themselves; --stops makes them stops")


_LAG = '"0.05,0.05", or by joint: "elbow=0.05"'
_CTRL = '"0.5,-1", or by name: "elbow=-1"'
_STEP_CHECK = (
    "Do not estimate the error of the steps, in about a third of the time. An estimate of more than"
    f" {100 * RESOLVED:g} % of the motion is not resolved."
)
STATE = '"0.1,0.2", or by joint: "elbow=0.2,ball=1:0:0"'


def simulate(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="A machine, a URDF, SDF or MJCF file; or a TOML file that says what moves and how: [machine],"
            " [start], [time], [control], [wind], as studies have them.",
            show_default=False,
        ),
    ],
    q: Annotated[
        str | None, typer.Option(help=f"Configuration at the start: {STATE}, or random; else neutral.")
    ] = None,
    v: Annotated[str | None, typer.Option(help=f"Velocity at the start: {STATE}; else zero.")] = None,
    torque: Annotated[str | None, typer.Option(help=f"Joint forces all the time: {STATE}; else none.")] = None,
    ctrl: Annotated[
        str | None,
        typer.Option(help=f"Commands of the file's actuators all the time, which then drive the machine: {_CTRL}."),
    ] = None,
    actuator_time: Annotated[
        str | None, typer.Option(help=f"Lag of the drives behind their commands, seconds: {_LAG}; else none.")
    ] = None,
    duration: Annotated[float, typer.Option(help="Seconds.")] = 5.0,
    dt: Annotated[float, typer.Option(help="Step, seconds; with --adaptive the time between saved states.")] = 1e-3,
    method: Annotated[
        str | None,
        typer.Option(
            help="Method of integration, such as MK4, CF4, MK8 or, for stiff machines, Rodas4; a wrong one lists all."
            " auto takes MK4 as long as its steps are stable, else Rodas4.",
            show_default="auto; MK54 with --adaptive",
        ),
    ] = None,
    adaptive: Annotated[
        bool, typer.Option("--adaptive", help="Steps that keep the error of each below the tolerance.")
    ] = False,
    tolerance: Annotated[
        float | None,
        typer.Option(
            help="Of a step of --adaptive: in rad and m, and relative for velocities.",
            show_default="1e-06",
        ),
    ] = None,
    gravity: Annotated[str | None, typer.Option(help='m/s²: "0,0,-9.81"; else as the file has it.')] = None,
    floating_base: Annotated[
        bool, typer.Option("--floating-base", help="The root link of a URDF moves freely.")
    ] = False,
    ignore_equalities: Annotated[
        bool, typer.Option("--ignore-equalities", help="Leave out the ties of an MJCF file's <equality>.")
    ] = False,
    loops: Annotated[
        Path | None, typer.Option(help="A TOML file with loops that the machine's file has no word for.")
    ] = None,
    out: Annotated[
        Path, typer.Option(help="Where the run goes: .npz, .parquet, .csv or .mcap; a run of the machine is replaced.")
    ] = Path("run.npz"),
    plot: Annotated[bool, typer.Option("--plot", help="Plots too, beside the run.")] = False,
    html: Annotated[bool, typer.Option("--html", help="A scene that plays in a browser too, beside the run.")] = False,
    save_every: Annotated[int, typer.Option(min=1, help="Keep each N-th state.", metavar="N")] = 1,
    float32: Annotated[bool, typer.Option("--float32", help="Half the digits; else float64.")] = False,
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, metavar="N", help="For --q random.")] = 0,
    check: Annotated[
        bool, typer.Option("--check", help="Where the motion diverges, say which quantity was the first to.")
    ] = False,
    no_step_check: Annotated[bool, typer.Option("--no-step-check", help=_STEP_CHECK)] = False,
    stops: Annotated[
        bool,
        typer.Option("--stops", help="The position limits act as stops, soft enough for the step: 20 ms a bounce."),
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Begin without a question, however long it takes and whatever it needs.")
    ] = False,
    force: Force = False,
) -> None:
    """Simulate a machine and save the run.

    Ctrl-C ends the simulation early and saves what there is; so does a motion that diverges. With --adaptive the steps
    are as long as the tolerance lets them be, and --dt says only what is saved. The error that the steps leave is
    estimated from the same motion with other steps.
    """
    request = SimulationRequest(
        file, q, v, torque, ctrl, actuator_time, duration, dt, method, adaptive, tolerance, gravity, floating_base,
        ignore_equalities, loops, out, plot, html, save_every, float32, seed, check, not no_step_check, stops, yes,
        force,
    )  # fmt: skip
    raise typer.Exit(_run_simulation(request).status)
