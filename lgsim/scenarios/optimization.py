"""Scenarios of trajectory optimisation: TOML files that say what a machine should do, as problems."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import optax

from lgsim import data
from lgsim.cli import runs
from lgsim.cli.errors import BadInput, unknown
from lgsim.dynamics.forces import gravity_forces
from lgsim.formats import Report
from lgsim.integrators import METHODS
from lgsim.multibody import Model
from lgsim.multibody.serialization import fingerprint
from lgsim.optimize import (
    ILQR,
    AugmentedLagrangian,
    ControlEffort,
    DirectShooting,
    IterativeSolver,
    JointVelocity,
    MultibodyDynamics,
    Problem,
    joint_limits,
)
from lgsim.optimize.cost import Cost, Sum
from lgsim.scenarios import tasks
from lgsim.scenarios.machine import read_machine
from lgsim.scenarios.states import unit_quaternions
from lgsim.scenarios.toml_table import Table, read

SHIPPED = "lgsim:"
"""What stands before the name of a machine that comes with lgsim."""
MACHINES: Mapping[str, Callable[[], Path]] = {
    "arm7": data.arm7, "cart_pole": data.cart_pole, "quadrotor": data.quadrotor,
}  # fmt: skip
EXAMPLES = ("reach", "swing_up", "follow")
"""Scenarios that come with lgsim."""
MOST = 1_000_000
"""Steps."""
SLACK = 1e-6
"""Of a step: how far a duration may be from a whole number of them."""
EFFORT, VELOCITY, FINAL_VELOCITY = 1e-4, 1e-2, 1e2
"""The weights where none are given."""


class Scenario(NamedTuple):
    """A problem with all that is needed to solve it and to speak of it.

    Attributes:
        problem: What to solve.
        solver: By what.
        kind: Its name in the scenario.
        us: Guess of the controls, or None.
        ys: Guess of the states, or None.
        tasks: What is wanted.
        machine: File of the machine.
        report: What is odd in it.
        floating: Whether it was asked for with a floating base.
    """

    problem: Problem
    solver: IterativeSolver
    kind: str
    us: Any
    ys: Any
    tasks: tuple[tasks.Task, ...]
    machine: Path
    report: Report
    floating: bool


def example(name: str) -> str:
    """The text of a scenario that comes with lgsim.

    Raises:
        BadInput: there is none of that name.
    """
    if name not in EXAMPLES:
        raise unknown(f"--example: expected one of {', '.join(EXAMPLES)}", name, EXAMPLES)
    return (resources.files("lgsim.data") / f"{name}.toml").read_text(encoding="utf-8")


def load(file: Path) -> Scenario:
    """The scenario of a file; all that is wrong with it is found before anything is compiled.

    Raises:
        BadInput: with file, line and key.
        Stop: a package is missing.
    """
    root = read(file).only("machine", "start", "time", *tasks.TASKS, "weights", "limits", "solver", "guess")
    dt, horizon = _time(root.table("time"))
    machine = root.table("machine").only("file", "floating_base", "gravity", "driven")
    path, model, report = machine_of(machine)
    driven = _driven(machine, model)
    limits = root.table("limits").only("torque", "position", "velocity")
    limited, slow = limits.flag("position", False), limits.flag("velocity", False)
    q, v = _start(root.table("start").only("q", "v"), model, limited, slow)
    setting = tasks.Setting(model, horizon * dt, limited)
    wanted = tuple(read_task(table, setting) for key, read_task in tasks.TASKS.items() for table in root.tables(key))
    if not wanted:
        raise root.fault(None, f"expected a task: a table [[{']], [['.join(tasks.TASKS)}]]")
    torque = _torque(limits, model, driven)
    running, terminal = _costs(root.table("weights"), model, wanted)
    constraints = [task.constraint for task in wanted if task.exact]
    if limited or slow:
        with limits.at("position" if limited else "velocity"):
            constraints.append(joint_limits(_only(model, limited), velocities=slow))
    kind, solver = _solver(root.table("solver"), bool(constraints))
    time = root.table("time")
    selection = None if len(driven) == model.nv else np.eye(model.nv)[:, driven]
    method, substeps = METHODS[time.choice("method", list(METHODS), "MK4")], time.whole("substeps", 1)
    dynamics = MultibodyDynamics(model, dt, method, selection, substeps)
    bounds = {"lower": -torque, "upper": torque} if np.isfinite(torque).any() else {}
    with root.at(None):
        problem = Problem(
            dynamics, dynamics.state(q, v), horizon=horizon, running=running, terminal=terminal,
            constraints=constraints, **bounds,
        )  # fmt: skip
    us, ys = _guess(root.table("guess"), problem, model, driven, q)
    return Scenario(problem, solver, kind, us, ys, wanted, path, report, machine.flag("floating_base", False))


def _time(table: Table) -> tuple[float, int]:
    """(dt, horizon)."""
    table.only("duration", "dt", "horizon", "method", "substeps")
    table.need("dt")
    dt = table.number("dt", above=0.0)
    if ("duration" in table) == ("horizon" in table):
        raise table.fault(None, "expected either a duration, s, or a horizon, the number of steps")
    if "horizon" in table:
        steps, key = float(table.whole("horizon", 1)), "horizon"
    else:
        steps, key = table.number("duration", above=0.0) / dt, "duration"
        if abs(steps - round(steps)) > SLACK * max(steps, 1) or round(steps) < 1:
            raise table.fault(key, f"expected a whole number of steps of {dt:g} s, got {steps:.6g} of them")
    if not steps <= MOST:
        raise table.fault(key, f"expected at most {MOST} steps, got {steps:.3g}")
    return dt, round(steps)


def machine_of(table: Table) -> tuple[Path, Model, Report]:
    """(file, model, what was odd) of a table with the keys file, floating_base and gravity.

    Raises:
        BadInput: there is no such machine.
        Stop: a package is missing.
    """
    name = table.text("file")
    if name is None:
        raise table.fault(None, "the key 'file' is missing")
    if name.startswith(SHIPPED):
        own = name.removeprefix(SHIPPED)
        if own not in MACHINES:
            with table.at("file"):
                raise unknown("expected a machine that comes with lgsim", own, list(MACHINES))
        path = MACHINES[own]()
    else:
        path = table.document.file.parent / name
    gravity = table.vector("gravity", 3)
    floating = table.flag("floating_base", False)
    with table.at("file"):
        return path, *read_machine(path, floating_base=floating, gravity=gravity)


def _driven(table: Table, model: Model) -> list[int]:
    """The degrees of freedom that have a drive: all but those of a floating base, or of the joints that are named."""
    if "driven" not in table:
        return list(range(6 if model.topology.floats else 0, model.nv))
    names = table.of("driven", list)
    found: list[int] = []
    for i, name in enumerate(names):
        if not isinstance(name, str):
            raise table.fault("driven", f"expected the name of a joint, got {name!r}", i)
        if name not in model.v_slices:
            with table.at("driven", i):
                raise unknown("expected the name of a joint", name, list(model.v_slices))
        part = model.v_slices[name]
        found += range(part.start, part.stop)
    if not found or len(set(found)) < len(found):
        raise table.fault("driven", "expected names of joints that move, each one once")
    return sorted(found)


def _start(table: Table, model: Model, limited: bool, slow: bool) -> tuple[np.ndarray, np.ndarray]:
    q, _ = table.by_joint("q", model.q_slices, np.array(model.neutral()))
    v, _ = table.by_joint("v", model.v_slices, np.zeros(model.nv))
    with table.at("q"):
        q = unit_quaternions(model, q)
    low, high, speed = (np.asarray(x) for x in (model.lower, model.upper, model.velocity_limit))
    for joint, part in model.q_slices.items():
        rows = model.v_slices[joint]
        plain = part.stop - part.start == rows.stop - rows.start
        if limited and plain and np.any((q[part] < low[rows]) | (q[part] > high[rows])):
            raise table.fault(
                "q", f"the joint {joint!r} starts at {', '.join(f'{x:g}' for x in q[part])}, outside of its limits,"
                f" {low[rows][0]:g} to {high[rows][0]:g}; change it, or take position = false in [limits]"
            )  # fmt: skip
        if slow and np.any(np.abs(v[rows]) > speed[rows]):
            raise table.fault(
                "v", f"the joint {joint!r} starts faster than its limit, {speed[rows].min():g}; change it, or take"
                " velocity = false in [limits]"
            )  # fmt: skip
    return q, v


def _torque(table: Table, model: Model, driven: list[int]) -> np.ndarray:
    """The largest force of each drive; infinite where there is no limit."""
    own = np.array(model.effort_limit, float)
    value = table.values.get("torque", "model")
    if isinstance(value, str):
        most = {"model": own, "none": np.full(model.nv, np.inf)}[table.choice("torque", ("model", "none"), "model")]
    elif isinstance(value, dict | list):
        most, _ = table.by_joint("torque", model.v_slices, own)
    else:
        most = np.full(model.nv, table.number("torque", above=0.0))
    for i in np.flatnonzero(most < 0):
        joint = next(name for name, part in model.v_slices.items() if part.start <= i < part.stop)
        raise table.fault("torque", f"infeasible bounds: expected a force of zero or more, got {most[i]:g}", joint)
    if not np.any(most[driven] > 0):
        raise table.fault("torque", 'infeasible bounds: no drive has any force; give numbers, or "none" for no limit')
    return most[driven]


def _only(model: Model, positions: bool) -> Model:
    """The model as it is, or without limits of the positions."""
    return model if positions else model.replace(lower=-math.inf, upper=math.inf)


def _costs(table: Table, model: Model, wanted: tuple[tasks.Task, ...]) -> tuple[Cost, Cost]:
    """(running, terminal)."""
    table.only("effort", "velocity", "final_velocity")
    effort = table.number("effort", EFFORT, least=0.0)
    running: list[Cost] = [ControlEffort(weight=effort)]
    speed = table.number("velocity", VELOCITY, least=0.0)
    final = table.number("final_velocity", FINAL_VELOCITY, least=0.0)
    running += [JointVelocity(model=model, weight=speed)] if speed else []
    terminal: list[Cost] = [JointVelocity(model=model, weight=final)] if final else []
    running += [task.cost for task in wanted if task.along]
    return Sum(tuple(running)), Sum((*terminal, *(task.cost for task in wanted)))


def _ilqr(table: Table, given: dict[str, Any]) -> IterativeSolver:
    full = table.flag("second_order", False)
    return ILQR(exact_hessian=full, exact_cost_hessian=full, **given)


def _adam(table: Table, given: dict[str, Any]) -> IterativeSolver:
    return DirectShooting(optax.adam(table.number("learning_rate", 1e-2, above=0.0)), **given)


def _lbfgs(table: Table, given: dict[str, Any]) -> IterativeSolver:
    return DirectShooting(optax.lbfgs(), **given)


SOLVERS: Mapping[str, tuple[Callable[[Table, dict[str, Any]], IterativeSolver], int, tuple[str, ...]]] = {
    "ilqr": (_ilqr, 300, ("second_order",)),
    "adam": (_adam, 2000, ("learning_rate",)),
    "lbfgs": (_lbfgs, 500, ()),
}
"""For each kind: what makes it, its iterations, and the keys that it alone has."""
OUTER = ("outer_iterations", "constraint_tolerance", "penalty")
"""The keys of conditions."""


def _solver(table: Table, conditions: bool) -> tuple[str, IterativeSolver]:
    own = tuple(key for _, _, keys in SOLVERS.values() for key in keys)
    table.only("kind", "max_iterations", "gradient_tolerance", *own, *OUTER)
    kind = table.choice("kind", list(SOLVERS), "ilqr")
    make, iterations, keys = SOLVERS[kind]
    for key in (*own, *OUTER):
        if key in table and key in OUTER and not conditions:
            raise table.fault(key, "only with conditions: exact tasks, or limits of position or velocity")
        if key in table and key in own and key not in keys:
            raise table.fault(key, f"not for the kind {kind!r}")
    given = {
        "max_iterations": table.whole("max_iterations", iterations),
        "gradient_tolerance": table.number("gradient_tolerance", above=0.0),
    }
    inner = make(table, given)
    outer, tolerance = table.whole("outer_iterations", 20), table.number("constraint_tolerance", above=0.0)
    penalty = table.number("penalty", 1.0, above=0.0)
    return kind, AugmentedLagrangian(inner, outer, tolerance, penalty) if conditions else inner


def _guess(table: Table, problem: Problem, model: Model, driven: list[int], q: np.ndarray) -> tuple[Any, Any]:
    """(controls, states) to start from; None for zero and for what the controls give."""
    table.only("torque", "run")
    if "run" in table:
        if "torque" in table:
            raise table.fault("torque", "expected either torques or a run")
        return _of_run(table, problem, model, driven)
    value = table.values.get("torque")
    if value is None:
        return None, None
    if isinstance(value, str):
        table.choice("torque", ("gravity", "zero"), "zero")
        held = np.asarray(gravity_forces(model, jnp.asarray(q))) if value == "gravity" else np.zeros(model.nv)
    else:
        held, _ = table.by_joint("torque", model.v_slices, np.zeros(model.nv))
    return jnp.broadcast_to(jnp.asarray(held[driven], model.dtype), (problem.horizon, len(driven))), None


def _of_run(table: Table, problem: Problem, model: Model, driven: list[int]) -> tuple[Any, Any]:
    """The forces of a run of the same machine with the same steps."""
    with table.at("run"):
        run = runs.load(table.document.file.parent / str(table.text("run")))
        if fingerprint(run.model) != fingerprint(model):
            raise BadInput("expected a run of the machine of this scenario, got one of another machine")
        wanted = np.asarray(problem.time(np.arange(problem.horizon + 1)))
        if len(run) != len(wanted) or not np.allclose(run.time, wanted):
            raise BadInput(
                f"expected a run of {len(wanted)} states to {wanted[-1]:g} s, got {len(run)} to {run.time[-1]:g} s"
            )
    return jnp.asarray(run.tau[:-1, driven], model.dtype), None
