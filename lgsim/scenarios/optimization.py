"""Trajectory optimization problems from TOML scenario files."""

from __future__ import annotations

import math
from collections.abc import Mapping
from os import PathLike
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float

from lgsim.dynamics.forces import gravity_forces
from lgsim.dynamics.loops.loop_functions import actuated_inverse_dynamics
from lgsim.multibody import Model
from lgsim.multibody.serialization import fingerprint
from lgsim.optimize import (
    ILQR,
    AugmentedLagrangian,
    ControlEffort,
    DirectShooting,
    FreeTime,
    InteriorPoint,
    JointVelocity,
    MultibodyDynamics,
    Problem,
    joint_limits,
)
from lgsim.optimize.cost import Cost, Sum
from lgsim.optimize.solver import IterativeSolver
from lgsim.scenarios import tasks
from lgsim.scenarios.machine import MACHINE_KEYS, MachineFile, machine_of, with_stops_of
from lgsim.scenarios.states import read_start
from lgsim.scenarios.time_steps import LONGEST, read_time_steps
from lgsim.scenarios.trajectory_file import read_trajectory
from lgsim.simulation.methods import MOTION_METHODS
from lgsim.support.toml_table import Table, read

SPREAD = 10.0
"""Largest ratio of a free duration to the file's duration, both ways, unless the file bounds it."""
EFFORT, VELOCITY, FINAL_VELOCITY = 1e-4, 1e-2, 1e2
"""Default weights."""


class Scenario(NamedTuple):
    """A trajectory optimization problem, ready to be solved: ``optimize.solve(s.problem, s.us, solver=s.solver)``.

    Attributes:
        problem: Dynamics, initial state, costs and constraints.
        solver_kind: Name of the solver in the scenario: "ilqr", "adam", "lbfgs" or "interior_point".
        us: Initial guess of the controls (horizon, controls), N m or N; None for zero.
        tasks: Tasks that define the costs and constraints.
    """

    problem: Problem
    solver: IterativeSolver
    solver_kind: str
    us: Float[Array, "horizon controls"] | None
    tasks: tuple[tasks.Task, ...]
    machine: MachineFile


def load_scenario(path: str | PathLike[str]) -> Scenario:
    """Read a trajectory optimization scenario from a TOML file; ``lgsim.data.scenario("reach")`` shows all keys.

    The whole file is checked before anything is compiled. Relative paths are relative to the scenario file.

    Returns:
        The problem with its solver and its initial guess, in JAX's default float.

    Raises:
        ScenarioError: a ValueError with file, line and key.
        ModuleNotFoundError: a package is missing; the message names the extra.
    """
    root = read(path).only("machine", "start", "time", *tasks.TASKS, "weights", "limits", "solver", "guess")
    dt, horizon, free = _time(root.table("time"))
    if free is not None and root.tables("follow"):
        raise root.table("time").fault(
            None, "a free duration is not allowed with [[follow]], whose points have fixed times"
        )
    table = root.table("machine").only(*MACHINE_KEYS, "driven", "stops")
    machine = with_stops_of(table, machine_of(table), dt)
    model = machine.model
    driven = _driven(table, model)
    limits = root.table("limits").only("torque", "position", "velocity")
    limited, slow = limits.flag("position", False), limits.flag("velocity", False)
    q, v = _start(root.table("start").only("keyframe", "q", "v"), machine, limited, slow)
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
    method, substeps = MOTION_METHODS[time.choice("method", list(MOTION_METHODS), "MK4")], time.whole("substeps", 1)
    dynamics = MultibodyDynamics(model, dt, method, selection, substeps)
    bounds = {"lower": -torque, "upper": torque} if np.isfinite(torque).any() else {}
    # the weights refer to the step size of the file
    paid = {"running": running} if free is None else {"running_rate": (1 / dt) * running}
    with root.at(None):
        problem = Problem(
            dynamics, dynamics.state(q, v), horizon=horizon, terminal=terminal, constraints=constraints,
            free=[] if free is None else [free], **paid, **bounds,
        )  # fmt: skip
    us = _guess(root.table("guess"), problem, model, driven, q)
    return Scenario(problem, solver, kind, us, wanted, machine)


def _time(table: Table) -> tuple[float, int, FreeTime | None]:
    """Step size, s, number of steps, and bounds of a free duration."""
    table.only("duration", "dt", "horizon", "method", "substeps", "shortest", "longest", "price")
    dt, horizon = read_time_steps(table, "horizon")
    if "shortest" not in table and "longest" not in table:
        if "price" in table:
            raise table.fault("price", "expected a free duration: set shortest, longest or both, s")
        return dt, horizon, None
    duration = dt * horizon
    shortest = table.number("shortest", duration / SPREAD, above=0.0)
    longest = table.number("longest", duration * SPREAD, above=0.0)
    if shortest > longest:
        raise table.fault("longest", f"expected at least the shortest duration, {shortest:g} s, got {longest:g}")
    return dt, horizon, FreeTime(shortest, longest, table.number("price", 1.0, least=0.0))


def _driven(table: Table, model: Model) -> list[int]:
    """The actuated degrees of freedom: those of the named joints, or all except those of a floating base."""
    if "driven" not in table:
        return list(range(6 if model.topology.floats else 0, model.nv))
    found: list[int] = []
    for i, name in enumerate(table.of("driven", list, [])):
        if not isinstance(name, str):
            raise table.fault("driven", f"expected the name of a joint, got {name!r}", i)
        part = model.v_slices[table.known("driven", name, list(model.v_slices), "the name of a joint", i)]
        found += range(part.start, part.stop)
    if not found or len(set(found)) < len(found):
        raise table.fault("driven", "expected distinct names of joints with degrees of freedom")
    return sorted(found)


def _start(
    table: Table, machine: MachineFile, limited: bool, slow: bool
) -> tuple[Float[np.ndarray, " nq"], Float[np.ndarray, " nv"]]:
    """The initial configuration and velocity, checked against the limits that the scenario enforces."""
    model = machine.model
    q, v = read_start(table, model, machine.path)
    low, high, speed = (np.asarray(x) for x in (model.lower, model.upper, model.velocity_limit))
    for joint, part in model.q_slices.items():
        rows = model.v_slices[joint]
        plain = part.stop - part.start == rows.stop - rows.start
        if limited and plain and np.any((q[part] < low[rows]) | (q[part] > high[rows])):
            raise table.fault(
                "q", f"the joint {joint!r} starts at {', '.join(f'{x:g}' for x in q[part])}, outside of its limits,"
                f" {low[rows][0]:g} to {high[rows][0]:g}; change it, or set position = false in [limits]"
            )  # fmt: skip
        if slow and np.any((np.abs(v[rows]) > speed[rows]) & (speed[rows] != 0)):
            raise table.fault(
                "v", f"the joint {joint!r} starts faster than its limit, {speed[rows].min():g}; change it, or set"
                " velocity = false in [limits]"
            )  # fmt: skip
    return q, v


def _torque(table: Table, model: Model, driven: list[int]) -> Float[np.ndarray, " controls"]:
    """The largest force of each actuator, N m or N; infinite without a limit."""
    own = np.array(model.effort_limit, float)
    value = table.values.get("torque", "model")
    if isinstance(value, str):
        most = {"model": own, "none": np.full(model.nv, np.inf)}[table.choice("torque", ("model", "none"), "model")]
    elif isinstance(value, dict | list):
        most, _ = table.by_joint("torque", model.v_slices, own)
    else:
        most = np.full(model.nv, table.needed_number("torque", above=0.0))
    for i in np.flatnonzero(most < 0):
        joint = next(name for name, part in model.v_slices.items() if part.start <= i < part.stop)
        raise table.fault("torque", f"infeasible bounds: expected a nonnegative force, got {most[i]:g}", joint)
    if not np.any(most[driven] > 0):
        raise table.fault("torque", 'infeasible bounds: all forces are zero; give numbers, or "none" for no limit')
    return most[driven]


def _only(model: Model, positions: bool) -> Model:
    """The model, without position limits if ``positions`` is false."""
    return model if positions else model.replace(lower=-math.inf, upper=math.inf)


def _costs(table: Table, model: Model, wanted: tuple[tasks.Task, ...]) -> tuple[Cost, Cost]:
    """The running and the terminal cost."""
    table.only("effort", "velocity", "final_velocity")
    effort = table.number("effort", EFFORT, least=0.0)
    running: list[Cost] = [ControlEffort(weight=effort)]
    speed = table.number("velocity", VELOCITY, least=0.0)
    final = table.number("final_velocity", FINAL_VELOCITY, least=0.0)
    running += [JointVelocity(model=model, weight=speed)] if speed else []
    terminal: list[Cost] = [JointVelocity(model=model, weight=final)] if final else []
    running += [task.cost for task in wanted if task.along]
    return Sum(tuple(running)), Sum((*terminal, *(task.cost for task in wanted)))


SOLVERS: Mapping[str, tuple[int, tuple[str, ...]]] = {
    "ilqr": (300, ("second_order",)),
    "adam": (2000, ("learning_rate",)),
    "lbfgs": (500, ()),
    "interior_point": (200, ()),
}
"""Default iterations and specific keys of each solver."""
OUTER = ("outer_iterations", "constraint_tolerance", "penalty")
"""Keys of the outer iterations, for problems with constraints."""


def _solver(table: Table, conditions: bool) -> tuple[str, IterativeSolver]:
    """Name of the solver and the solver, wrapped in an augmented Lagrangian for constrained problems."""
    own = tuple(key for _, keys in SOLVERS.values() for key in keys)
    table.only("kind", "max_iterations", "gradient_tolerance", *own, *OUTER)
    kind = table.choice("kind", list(SOLVERS), "ilqr")
    iterations, keys = SOLVERS[kind]
    if kind == "interior_point":
        for key in (*own, *OUTER, "gradient_tolerance"):
            if key in table:
                raise table.fault(key, f"not a key of the solver {kind!r}")
        return kind, InteriorPoint(max_iterations=table.whole("max_iterations", iterations, most=LONGEST))
    for key in (*own, *OUTER):
        if key in table and key in OUTER and not conditions:
            raise table.fault(key, "expected constraints: exact tasks, or limits of position or velocity")
        if key in table and key in own and key not in keys:
            raise table.fault(key, f"not a key of the solver {kind!r}")
    most, tolerance = (
        table.whole("max_iterations", iterations, most=LONGEST),
        table.number("gradient_tolerance", above=0.0),
    )
    second_order, rate = table.flag("second_order", False), table.number("learning_rate", 1e-2, above=0.0)
    inner: IterativeSolver
    if kind == "ilqr":
        inner = ILQR(
            exact_hessian=second_order, exact_cost_hessian=second_order, max_iterations=most,
            gradient_tolerance=tolerance,
        )  # fmt: skip
    else:
        descent = optax.adam(rate) if kind == "adam" else optax.lbfgs()
        inner = DirectShooting(descent, max_iterations=most, gradient_tolerance=tolerance)
    outer, violation = (
        table.whole("outer_iterations", 20, most=LONGEST),
        table.number("constraint_tolerance", above=0.0),
    )
    penalty = table.number("penalty", 1.0, above=0.0)
    return kind, AugmentedLagrangian(inner, outer, violation, penalty) if conditions else inner


def _guess(
    table: Table, problem: Problem, model: Model, driven: list[int], q: Float[np.ndarray, " nq"]
) -> Float[Array, "horizon controls"] | None:
    """The initial guess of the controls; None for zero."""
    table.only("torque", "run")
    if "run" in table:
        if "torque" in table:
            raise table.fault("torque", "expected either torques or a run")
        return _of_trajectory(table, problem, model, driven)
    value = table.values.get("torque")
    if value is None:
        return None
    if isinstance(value, str):
        table.choice("torque", ("gravity", "zero"), "zero")
        forces = _holding_forces(model, q, driven) if value == "gravity" else np.zeros(model.nv)
    else:
        forces, _ = table.by_joint("torque", model.v_slices, np.zeros(model.nv))
    return jnp.broadcast_to(jnp.asarray(forces[driven], model.dtype), (problem.horizon, len(driven)))


def _holding_forces(model: Model, q: Float[np.ndarray, " nq"], driven: list[int]) -> Float[np.ndarray, " nv"]:
    """Joint forces that compensate gravity in a configuration; with closed loops, those of the actuated joints."""
    at = jnp.asarray(q)
    if not model.topology.loops:
        return np.asarray(gravity_forces(model, at))
    names = [name for name, part in model.v_slices.items() if set(range(part.start, part.stop)) & set(driven)]
    still = jnp.zeros(model.nv, model.dtype)
    return np.asarray(actuated_inverse_dynamics(model, at, still, still, names).tau)


def _of_trajectory(table: Table, problem: Problem, model: Model, driven: list[int]) -> Float[Array, "horizon controls"]:
    """The controls of a trajectory of the same robot with the same steps."""
    with table.at("run"):
        motion = read_trajectory(table.document.file.parent / str(table.text("run")))
        if fingerprint(motion.model) != fingerprint(model):
            raise ValueError("expected a run of this scenario's robot, got a run of another robot")
        wanted = np.asarray(problem.time(np.arange(problem.horizon + 1)))
        if len(motion) != len(wanted) or not np.allclose(motion.time, wanted):
            raise ValueError(
                f"expected a run of {len(wanted)} states to {wanted[-1]:g} s, got {len(motion)} to"
                f" {motion.time[-1]:g} s"
            )
    return jnp.asarray(motion.tau[:-1, driven], model.dtype)
