"""The motion of a sample: a model, its inputs, and the parameters that samples replace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int, PyTree, Shaped

from lgsim._compile.xla import compiled, control_flow
from lgsim.actuators.actuators import Actuators, ActuatorSum
from lgsim.dynamics.loops.closure_checks import MeasuredLoops, check_measured, measured_loops
from lgsim.integrators.integrate import integrate
from lgsim.integrators.method import Method
from lgsim.integrators.methods import MK4
from lgsim.montecarlo.distributions import Numbers
from lgsim.multibody import ModelError, inertia
from lgsim.multibody.model import DRIVES, Model, check_model
from lgsim.simulation import Trajectory, rollout
from lgsim.simulation.actuated_control import actuated, given_commands, sampled_method
from lgsim.simulation.between_states import States, with_middles
from lgsim.simulation.equations_of_motion import (
    Control,
    Wrenches,
    actuator_part,
    drives,
    initial_state,
    split_state,
    state_space,
    torque_segments,
)
from lgsim.simulation.methods import method_name
from lgsim.simulation.motion_field import MOTION_FIELD
from lgsim.simulation.rollout import StateHistory
from lgsim.simulation.variational.machine_method import MachineMethod
from lgsim.support import check as verify
from lgsim.support.check import unknown_name
from lgsim.support.packages import own_version

_PHYSICAL = "use a distribution that stays in range, such as InertiaDispersion, MassDispersion, LogNormal or Uniform"
_ROLLOUT_NUMBERS = ("q0", "v0", "torques", "commands", "actuator_state", "control", "wrenches", "t0", "dt")
_MODEL_NUMBERS = ("placements", "screws", "axes", "pitches", "inertias", *DRIVES, "mimic", "frames", "gravity", "loops",
                  "solids", "solid_poses", "grids")  # fmt: skip


class SampledMotion(NamedTuple):
    """The motion of one sample, the argument of outputs.

    Attributes:
        model: The model with the sample's parameters.
        time: Times of the saved states, (saved,), s.
        v: Velocities, (saved, nv), rad/s or m/s.
        tau: Joint torques of the drives, (saved, nv), N m or N; computed only if an output uses them.
        steps: The states at all steps, whatever ``save_every`` is; None unless an output requires them.
    """

    model: Model
    time: Float[Array, " saved"]
    q: Float[Array, "saved nq"]
    v: Float[Array, "saved nv"]
    tau: Float[Array, "saved nv"]
    steps: States | None = None


class Rollout(eqx.Module):
    """A simulation as by ``lgsim.rollout``, in which samples can replace any parameter.

    The name of a distribution is the path of the parameter that it replaces: ``q0``, ``v0``, ``torques``, ``t0``,
    ``dt``; of the model ``model.inertias``, ``model.damping``, ``model.gravity`` and all that ``Model.replace``
    accepts; of controls and wrenches that are modules ``control.stiffness``, ``wrenches.gusts`` and so on; of actuators
    ``actuators.stages.0.ratio``, the stages by index.

    Attributes:
        q0: Initial configuration, (nq,), by default neutral.
        v0: Initial velocity, (nv,), by default zero.
        dt: Step, s.
        torques: Joint torques, N m or N: see ``lgsim.rollout``.
        control: Controller, see ``lgsim.rollout``.
        wrenches: External wrenches, see ``lgsim.rollout``.
        actuators: Actuators that convert commands to joint torques, see ``lgsim.rollout``.
        commands: Commands of the actuators, see ``lgsim.rollout``.
        actuator_state: Initial states of the actuators; default as in ``lgsim.rollout``.
        t0: Initial time, s.
        method: An integration method of ``lgsim.rollout``, such as ``lgsim.MK4`` or ``lgsim.Rodas4``.
        save_every: Interval of saved states, in steps; it must divide ``steps``.
        substeps: Number of integration steps within each step, of length ``dt / substeps``; an operand, so that one
            program serves any number; see ``with_substeps``. None for one step, known to the compiler.
        every_step: True if the states at all steps are kept for outputs between saved states; a ``Study`` sets it.
    """

    model: Model
    q0: Float[Array, " nq"]
    v0: Float[Array, " nv"]
    dt: Float[Array, ""]
    steps: int = eqx.field(static=True)
    torques: Float[Array, "*rows nv"] | None
    control: Control | None
    wrenches: Wrenches | None
    actuators: Actuators | ActuatorSum | None
    commands: Float[Array, "*rows _"] | None
    actuator_state: Float[Array, " _"] | None
    t0: Float[Array, ""]
    method: Method = eqx.field(static=True)
    save_every: int = eqx.field(static=True)
    substeps: Int[Array, ""] | None
    every_step: bool = eqx.field(static=True)

    def __init__(
        self,
        model: Model,
        q0: Numbers | None = None,
        v0: Numbers | None = None,
        *,
        dt: float | Array,
        steps: int,
        torques: Numbers | None = None,
        control: Control | None = None,
        wrenches: Wrenches | None = None,
        actuators: Actuators | ActuatorSum | None = None,
        commands: Numbers | None = None,
        actuator_state: Numbers | None = None,
        method: Method = MK4,
        t0: float | Array = 0.0,
        save_every: int = 1,
    ) -> None:
        steps, save_every = verify.count("steps", steps), verify.count("save_every", save_every)
        check_model(model)
        given = {"q0": q0, "v0": v0, "torques": torques, "commands": commands}
        q0, v0, torques, commands, actuator_state = (
            None if x is None else verify.floating(name, x, dtype=model.dtype)
            for name, x in {**given, "actuator_state": actuator_state}.items()
        )
        self.actuators, self.control = actuators, control
        if actuators is not None or commands is not None:
            given_commands(actuators, torques, commands)
        state = initial_state(model, q0, v0, self._drive(model), actuator_state)
        if isinstance(method, MachineMethod):
            method.check_machine(model, state.size)
        self.model, self.steps, self.method, self.save_every = model, steps, method, save_every
        self.q0 = model.neutral() if q0 is None else q0
        self.v0 = jnp.zeros(model.nv, model.dtype) if v0 is None else v0
        self.torques = torques
        self.dt, self.t0 = jnp.asarray(dt, model.dtype), jnp.asarray(t0, model.dtype)
        self.wrenches = wrenches
        self.commands, self.actuator_state = commands, actuator_state
        self.substeps, self.every_step = None, False

    def names(self) -> list[str]:
        """The valid names of distributions."""
        found = [name for name in _ROLLOUT_NUMBERS if getattr(self, name) is not None]
        found += [f"model.{name}" for name in _MODEL_NUMBERS if getattr(self.model, name) is not None]
        for root in ("control", "wrenches", "actuators"):
            found += [f"{root}.{path}" for path in number_paths(getattr(self, root))]
        return found

    def check(self, values: Mapping[str, PyTree]) -> None:
        """Check that a sample's values fit the parameters that they replace.

        Args:
            values: Arrays or their shapes and dtypes, by name.

        Raises:
            ValueError: the parameter does not exist, or a value has another shape.
            TypeError: a value has another dtype.
        """
        for name, value in values.items():
            if name not in self.names():
                raise unknown_name("distributions: expected names of parameters of the rollout", name, self.names())
            replaced = attribute_of(self, name.split("."))
            if replaced is None or not hasattr(replaced, "shape"):
                continue
            if jnp.shape(value) != replaced.shape:
                raise ValueError(f"{name}: expected values of shape {replaced.shape}, got {jnp.shape(value)}")
            if jnp.result_type(value) != replaced.dtype:
                raise TypeError(f"{name}: expected values of {replaced.dtype}, got {jnp.result_type(value)}")

    def check_starts(self, values: Mapping[str, PyTree]) -> None:
        """Check that the values of some samples, arrays with a leading axis, keep closed kinematic loops closed.

        Raises:
            ValueError: the initial state of a sample opens a loop; the message has its index.
        """
        if self.model.topology.loops:
            check_measured(self.model, _measured_starts(self, dict(values)))

    def check_numbers(self, values: Mapping[str, Shaped[np.ndarray, "samples ..."]]) -> None:
        """Check that some values of numbers of the model, by name, are physical.

        Raises:
            ValueError: no model has such a number, or no mass distribution such a body.
        """
        bodies = self.model.topology.body_names
        known = [inertia.defect(row) for row in np.asarray(self.model.inertias)]
        names = ", ".join(values)
        for i in range(len(next(iter(values.values()), ()))):
            own = {name.partition(".")[2]: x[i] for name, x in values.items()}
            try:
                self.model.replace(**own)
            except ModelError as error:
                raise ValueError(f"distributions: {names}: {error}; {_PHYSICAL}") from error
            for body, row, before in zip(bodies, own.get("inertias", ()), known, strict=False):
                if before is None and (wrong := inertia.defect(row)) is not None:
                    raise ValueError(f"distributions: {names}: in a sample the body {body!r} {wrong}; {_PHYSICAL}")

    def with_values(self, values: Mapping[str, PyTree]) -> Rollout:
        """The rollout with a sample's values."""
        numbers = {name.partition(".")[2]: x for name, x in values.items() if name.startswith("model.")}
        replaced = self
        if numbers:
            replaced = eqx.tree_at(lambda run: run.model, replaced, self.model.replace(**numbers))
        for name, value in values.items():
            if not name.startswith("model."):
                path = name.split(".")
                replaced = eqx.tree_at(
                    lambda run, path=path: attribute_of(run, path), replaced, value, is_leaf=lambda x: x is None
                )
        return replaced

    def __call__(self, values: Mapping[str, PyTree]) -> SampledMotion:
        """Simulate a sample's values."""
        run = self.with_values(values)
        every = 1 if run.every_step else run.save_every
        if run.substeps is None:
            motion = rollout(
                run.model, run.q0, run.v0, dt=run.dt, steps=run.steps, torques=run.torques, control=run.control,
                wrenches=run.wrenches, actuators=run.actuators, commands=run.commands,
                actuator_state=run.actuator_state, method=run.method, t0=run.t0, save_every=every,
                checkpoint=None,
            )  # fmt: skip
            steps = States(motion.time, motion.q, motion.v)
        else:
            motion, steps = _substepped(run, run.substeps, every)
        if every != run.save_every:
            motion = jax.tree.map(lambda x: x[:: run.save_every], motion)
        tau = drives(run.model, run.drive, run.saved_torques(), motion.time, *motion.state_parts)
        return SampledMotion(run.model, motion.time, motion.q, motion.v, tau, steps if run.every_step else None)

    @property
    def drive(self) -> Any:
        """The control, or the actuators with their commands."""
        return self._drive(self.model)

    def _drive(self, model: Model) -> Any:
        return self.control if self.actuators is None else actuated(model, self.actuators, self.control)

    def with_substeps(self, substeps: int | Int[Array, ""]) -> Rollout:
        """The same motion with shorter steps: ``substeps`` of ``dt / substeps`` for each, saved at the same times.

        Torques that are given for each step keep their times. The number may be traced.
        """
        return eqx.tree_at(
            lambda run: run.substeps, self, jnp.asarray(substeps, jnp.int32), is_leaf=lambda x: x is None
        )

    def final_state(self, motion: SampledMotion) -> Float[Array, " nq_nv"]:
        """The final state (q, v), which is not finite if the motion diverged."""
        return jnp.concatenate([motion.q[-1], motion.v[-1]])

    def saved_torques(self) -> Float[Array, "saved _"] | None:
        """The given torques at the saved states, N m or N; piecewise constant ones by their value just after a state.

        With actuators, their commands in the same way.
        """
        rows = self.torques if self.actuators is None else self.commands
        if rows is None:
            return None
        saved = self.steps // self.save_every + 1
        if rows.ndim == 1:
            return jnp.broadcast_to(rows, (saved, *rows.shape))
        return rows[np.minimum(self.save_every * np.arange(saved), len(rows) - 1)]

    def trajectory(self, values: Mapping[str, PyTree]) -> Trajectory:
        """The motion of a sample's values with its model, for plots and files."""
        motion = _compiled_motion(self, dict(values))
        time, q, v, tau = (np.asarray(x) for x in motion[1:5])
        return Trajectory(
            motion.model, time, q, v, tau, method_name(self.method), float(self.dt), _divergence(motion), own_version()
        )


@compiled
def _measured_starts(run: Rollout, values: dict[str, PyTree]) -> MeasuredLoops:
    def one(values: dict[str, PyTree]) -> MeasuredLoops:
        own = run.with_values(values)
        return measured_loops(own.model, own.q0, own.v0)

    return jax.vmap(one)(values)


def _substepped(run: Rollout, substeps: Int[Array, ""], every: int) -> tuple[StateHistory, States]:
    """``lgsim.rollout`` with a number of substeps as an operand of the program, and its states at half steps.

    For an even number the states at half steps are those of the motion. They show the error of an interpolation.

    Args:
        every: Interval of saved states, in steps.
    """
    drive = run.drive
    y0 = initial_state(run.model, run.q0, run.v0, drive, run.actuator_state)
    rows = run.torques if run.actuators is None else run.commands
    segments = torque_segments(run.model, rows, run.steps, run.t0, run.dt, drive)
    space, machine = state_space(run.model, drive), (run.model, drive, run.wrenches)
    method = run.method if run.actuators is None else sampled_method(run.method, drive)
    each, h = every * substeps, run.dt / substeps.astype(run.dt.dtype)

    def step(i: Array, carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        j, y, middle = carry
        k = j * each + i
        now = segments
        if segments is not None and not segments.steady:
            now = jax.tree.map(lambda x: x[k // substeps], segments)
        t = run.t0 + k.astype(h.dtype) * h
        solution = integrate(
            method,
            space,
            MOTION_FIELD,
            y,
            t0=t,
            dt=h,
            steps=1,
            args=(machine, now),
            checkpoint=None,
        )
        y = solution.ys[-1]
        return j, y, jnp.where(2 * (i + 1) == each, y, middle) if run.every_step else middle

    def interval(y: Array, j: Array) -> tuple[Array, tuple[Array, Array]]:
        _, y, middle = control_flow.fori_loop(0, each, step, (j, y, y))
        return y, (y, middle)

    saved = jnp.arange(run.steps // every + 1, dtype=jnp.int32)
    _, (ys, middles) = control_flow.scan(interval, y0, saved[:-1])
    ys = jnp.concatenate([y0[None], ys])
    times = run.t0 + (every * saved).astype(run.dt.dtype) * run.dt
    history = StateHistory(times, *split_state(run.model, ys), actuator_part(run.model, ys))
    states = States(times, *split_state(run.model, ys))
    return history, with_middles(run.model, states, split_state(run.model, middles), each % 2 == 0)


@compiled  # compiled once for all samples
def _compiled_motion(rollout: Rollout, values: dict[str, PyTree]) -> SampledMotion:
    return rollout(values)


def _divergence(motion: SampledMotion) -> str:
    """A message with the time at which a motion diverged; empty if it did not."""
    bad = ~(np.isfinite(motion.q).all(axis=1) & np.isfinite(motion.v).all(axis=1))
    return f"diverged: the state is not finite at {float(motion.time[np.argmax(bad)]):g} s" if bad.any() else ""


def attribute_of(tree: PyTree, path: list[str]) -> PyTree:
    """Follow a path of attribute names."""
    for name in path:
        tree = tree[int(name)] if isinstance(tree, tuple) else getattr(tree, name)
    return tree


def number_paths(tree: PyTree) -> list[str]:
    """The paths of all arrays and numbers in a module, through its fields and the indices of its tuples."""
    if isinstance(tree, tuple):
        parts = {str(i): part for i, part in enumerate(tree)}
    elif isinstance(tree, eqx.Module):
        parts = {name: getattr(tree, name) for name in tree.__dataclass_fields__}
    else:
        return []
    found = []
    for name, value in parts.items():
        if isinstance(value, eqx.Module | tuple):
            found += [f"{name}.{path}" for path in number_paths(value)]
        elif hasattr(value, "shape") or isinstance(value, float):
            found.append(name)
    return found
