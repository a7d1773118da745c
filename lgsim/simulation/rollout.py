"""The motion of a model with its drives as a pure function, and a variant that checks every quantity."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, Int

from lgsim._compile.xla import export_tuple
from lgsim.actuators.actuators import Actuators, ActuatorSum
from lgsim.dynamics.forward_dynamics import forward_dynamics
from lgsim.dynamics.passive_forces import passive_forces
from lgsim.integrators.integrate import Checkpoint, Solution, integrate
from lgsim.integrators.method import Method, Number
from lgsim.integrators.methods import MK4
from lgsim.multibody.model import Model, check_model
from lgsim.simulation.actuated_control import ActuatedControl, actuated, given_commands, sampled_method
from lgsim.simulation.equations_of_motion import (
    Control,
    State,
    TorqueSegment,
    Wrenches,
    actuator_part,
    drive_forces,
    external_wrenches,
    initial_state,
    sample_actuators,
    settle_actuators,
    split_state,
    state_space,
    torque_segments,
)
from lgsim.simulation.finite_checks import (
    CheckedQuantity,
    check_finite,
    check_gradient_finite,
    check_model_gradient_finite,
    plain_errors,
)
from lgsim.simulation.motion_field import MOTION_FIELD
from lgsim.simulation.variational.machine_method import MachineMethod
from lgsim.support import check as verify
from lgsim.support.check import is_traced

Drive = Control | None
"""The drive besides prescribed joint forces: a control, or actuators with their control."""


@export_tuple("lgsim.StateHistory")
class StateHistory(NamedTuple):
    """The saved states of a motion, as ``rollout`` returns them.

    Attributes:
        time: Times of the saved states, s, (saved,), the first one t0.
        q: Configurations (saved, nq), the first one q0.
        v: Velocities (saved, nv), rad/s or m/s; of groups and a floating base in the child's frame.
        actuator_states: States of the actuators (saved, states); None where none has any.
        residuals: For an implicit method the largest relative residual of its equations since the previous saved
            state, (saved,), the first one 0; None for other methods.
    """

    time: Float[Array, "*batch saved"]
    q: Float[Array, "*batch saved nq"]
    v: Float[Array, "*batch saved nv"]
    actuator_states: Float[Array, "*batch saved states"] | None = None
    residuals: Float[Array, "*batch saved"] | None = None

    @property
    def state_parts(self) -> tuple[Any, Any, Any]:
        """(q, v, actuator_states), the parts of a state in this order; None for a part that it lacks."""
        return self.q, self.v, self.actuator_states


def rollout(
    model: Model,
    q0: Float[Array, " nq"],
    v0: Float[Array, " nv"],
    *,
    dt: Number,
    steps: int,
    torques: Float[Array, "*rows nv"] | None = None,
    control: Control | None = None,
    wrenches: Wrenches | None = None,
    actuators: Actuators | ActuatorSum | None = None,
    commands: Float[Array, "*rows _"] | None = None,
    actuator_state: Float[Array, " _"] | None = None,
    method: Method = MK4,
    t0: Number = 0.0,
    save_every: int = 1,
    checkpoint: Checkpoint = "step",
    check: bool = False,
) -> StateHistory:
    """The motion ``M(q) v' + h(q, v) = tau + passive_forces + J^T F`` from (q0, v0), by a Lie group method.

    q moves on the group of the model's joints, v in a vector space; nothing is normalized. The function can be compiled
    by ``jax.jit``, mapped over any argument with ``jax.vmap`` or ``lgsim.tiled_vmap``, and differentiated in either
    mode and to any order with respect to any array. The compile time does not grow with the number of steps. Another
    number of steps or of saved states recompiles, since they are shapes: see ``checkpoint`` for one program of many of
    them. New values, arrays or Python floats, do not recompile, except for the first nonzero ``stribeck`` of a model,
    which adds equations.

    Args:
        model: The model, with its own dampers, springs, dry friction, stops and contacts, see ``passive_forces`` and
            ``contact_forces``.
        q0: Configuration at t0.
        v0: Velocity, rad/s or m/s; of groups and a floating base in the child's frame.
        dt: Step, s; negative to run backwards.
        torques: Joint forces, N m or N: (nv,) constant, (steps, nv) one row held for each step, or (steps + 1, nv)
            nodes of linear interpolation; by default none.
        control: ``control(t, q, v, model)`` returns joint forces (nv,) that are added; from ``lgsim.controls`` or any
            function that JAX can trace. It is evaluated at every stage of the method.
        wrenches: ``wrenches(t, q, v, model)`` returns external wrenches (bodies, 6) in the bodies' frames, e.g.
            ``lgsim.controls.FrameWrench``.
        actuators: The map from commands to joint forces, from ``lgsim.actuators``; ``control`` then returns commands.
        commands: Commands (n,) of the actuators, constant, for each step or at nodes as ``torques``.
        actuator_state: The actuators' states at t0, by default ``actuators.start(model, q0, v0)``.
        method: A method such as one of ``lgsim.METHODS``.
        t0: Initial time, s.
        save_every: Save every ``save_every``-th state; it must divide ``steps``.
        checkpoint: Memory strategy of reverse mode, see ``lgsim.integrate``; or
            ``lgsim.integrators.FirstSteps(count)``, which takes ``count`` steps out of at most ``steps``, by the same
            program for any count.
        check: For debugging, slow: report the first quantity that is not finite with its joint, body and step, and in
            reverse mode the first such gradient. If False, the program contains no checks.

    Returns:
        StateHistory(time, q, v, actuator_states, residuals).

    Raises:
        TypeError: dtypes differ from the model's, or an argument is of the wrong kind.
        ValueError: a shape is wrong, steps < 1, dt is zero.
        FloatingPointError: with ``check``, something is not finite. Inside ``jax.jit``, ``jax.vmap`` or a derivative
            the error is a ``jax.errors.JaxRuntimeError`` whose message ends with it.
    """
    if actuators is not None or commands is not None:
        control, torques = actuated(model, actuators, control), given_commands(actuators, torques, commands)
    steps = verify.count("steps", steps)
    check_model(model)
    # simulate allows these to be missing, rollout does not
    q0, v0 = (verify.floating(name, x, dtype=model.dtype) for name, x in (("q0", q0), ("v0", v0)))
    y0 = initial_state(model, q0, v0, control, actuator_state)
    segments = torque_segments(model, torques, steps, t0, dt, control)
    machine = (model, control, wrenches)
    if not check:
        return integrate_motion(machine, y0, dt, steps, segments, method, t0, save_every, checkpoint)
    with plain_errors():
        motion = integrate_checked_motion(machine, y0, dt, steps, segments, method, t0, save_every, checkpoint)
        if not is_traced(motion.q):
            jax.block_until_ready(motion)
            jax.effects_barrier()
        return motion


DrivenModel = tuple[Model, Drive, Wrenches | None]
"""(model, control, wrenches), the arguments of the equations of motion."""


def integrate_motion(
    machine: DrivenModel, y0: State, dt: Number, steps: int, segments: TorqueSegment | None, method: Method, t0: Number,
    save_every: int, checkpoint: Checkpoint,
) -> StateHistory:  # fmt: skip
    """``rollout`` from an initial state with checked arguments."""
    model, control, _ = machine
    arguments: dict[str, Any] = (
        {"args": (machine, segments)} if segments is None or segments.steady else {"args": machine, "inputs": segments}
    )
    method, space, y = _between_jumps(method, control), state_space(model, control), y0
    known = method if isinstance(method, MachineMethod) else None
    if known is not None:
        method, space, y = known.inner, known.space(model), known.start(model, y0, jnp.asarray(dt, y0.dtype))
    solution = integrate(
        method, space, MOTION_FIELD, y, t0=t0, dt=dt, steps=steps, save_every=save_every, checkpoint=checkpoint,
        **arguments,
    )  # fmt: skip
    ys = solution.ys
    if known is not None:
        ys = jnp.concatenate([y0[None], jax.vmap(partial(known.state, model))(ys[1:])])
    return _history(model, solution, ys)


def _history(model: Model, solution: Solution, ys: Float[Array, "saved state"]) -> StateHistory:
    """The states ``ys`` of a solution, split into their parts."""
    residuals = solution.residuals
    if residuals is not None:
        largest = jnp.max(residuals.reshape(len(ys) - 1, -1), axis=1)
        residuals = jnp.concatenate([jnp.zeros_like(largest[:1]), largest])
    return StateHistory(solution.ts, *split_state(model, ys), actuator_part(model, ys), residuals)


def _between_jumps(method: Method, control: Drive) -> Method:
    """The method, wrapped if actuator states jump between its steps."""
    return sampled_method(method, control) if isinstance(control, ActuatedControl) else method


# The same with checks of every quantity.


def integrate_checked_motion(
    machine: DrivenModel, y0: State, dt: Number, steps: int, segments: TorqueSegment | None, method: Method, t0: Number,
    save_every: int, checkpoint: Checkpoint, first: int | Int[Array, ""] = 0,
) -> StateHistory:  # fmt: skip
    """``integrate_motion`` that reports values that are not finite; steps are counted from ``first``.

    Raises:
        FloatingPointError: a value is not finite; from a compiled program see ``finite_checks.plain_errors``.
    """
    steady = segments if segments is None or segments.steady else None
    model, control, _ = machine
    numbers = first + jnp.arange(steps)
    solution = integrate(
        _between_jumps(method, control),
        state_space(model, control),
        _CHECKED_FIELD,
        y0,
        t0=t0,
        dt=dt,
        steps=steps,
        save_every=save_every,
        checkpoint=checkpoint,
        args=(machine, steady),
        inputs=(numbers, None if steady is not None else segments),
    )
    saved = CheckedQuantity(model.topology, "the saved state", "saved", "what is made of the motion")
    states = check_gradient_finite(saved, numbers[-1], solution.ts[-1], solution.ys)
    return _history(model, solution, states)


class CheckedField(eqx.Module):
    """``checked_equations_of_motion`` with jumps of actuator states at the start of steps."""

    def __call__(self, t: Float[Array, ""], y: State, args: Any) -> Float[Array, " algebra"]:
        """The algebra vector, with all quantities checked."""
        return checked_equations_of_motion(t, y, args)

    def machine(self, args: Any) -> Any:
        """((model, control, wrenches), segment of the step)."""
        (machine, steady), (_, segment) = args
        return machine, segment if steady is None else steady

    def sample(self, t: Float[Array, ""], y: State, dt: Float[Array, ""], args: Any) -> State:
        """See ``sample_actuators``."""
        return sample_actuators(t, y, dt, self.machine(args))

    def settle(self, y: State, args: Any) -> State:
        """See ``settle_actuators``."""
        return settle_actuators(y, args[0])


_CHECKED_FIELD = CheckedField()


def checked_equations_of_motion(t: Float[Array, ""], y: State, args: Any) -> Float[Array, " algebra"]:
    """``equations_of_motion`` that checks all quantities in the forward pass and their gradients in the backward pass.

    Args:
        t: Time, s.
        y: State (q, v, w).
        args: (((model, control, wrenches), constant segment or None), (index of the step, its segment or None)).

    Raises:
        FloatingPointError: a quantity is not finite.
    """
    ((model, control, wrenches), steady), (step, segment) = args
    tree = model.topology

    def probe(equation: str, name: str, kind: str, x: Float[Array, " n"]) -> Float[Array, " n"]:
        return check_gradient_finite(CheckedQuantity(tree, f"the {name}", kind, equation), step, t, x)

    def probed_state(equation: str) -> tuple[Float[Array, " nq"], Float[Array, " nv"]]:
        return probe(equation, "configuration", "q", q), probe(equation, "velocity", "v", v)

    def evaluate(f: Any, equation: str) -> Float[Array, ...] | None:
        return None if f is None else f(t, *probed_state(equation), probed_model)

    probed_model = check_model_gradient_finite(model, step, t)
    y = probe("a stage of the method", "state", "state", y)
    q, v = split_state(model, y)
    segment = segment if steady is None else steady
    torques = None if segment is None else segment.at(t)
    kind, word = ("commands", "command") if isinstance(control, ActuatedControl) else ("v", "torque")
    law = control.control if isinstance(control, ActuatedControl) else control
    own: Any = evaluate(law, "the control")
    held = None if law is None else lambda *_: own
    if isinstance(control, ActuatedControl):
        held = ActuatedControl(control.actuators, held)
    here = probed_state("the drives")
    tau, rate = drive_forces(probed_model, held, torques, t, *here, actuator_part(model, y))
    passive = passive_forces(probed_model, *probed_state("the passive forces"))
    external = evaluate(wrenches, "the wrenches")
    given = None if external is None else lambda *_: external
    contacts = model.topology.contacts
    touched = probed_state("the contacts") if contacts else (q, v)
    acting = external_wrenches(probed_model, given, t, *touched)
    total = probe("the forward dynamics", "force", "v", tau + passive)
    a = forward_dynamics(probed_model, *probed_state("the forward dynamics"), total, acting)
    quantities = {
        **{name: (name, getattr(model, name)) for name in ("placements", "screws", "inertias", "mimic", "frames")},
        "contacts": ("contacts", model.contacts), "heights": ("heights", model.heights),
        "state": ("state", y), f"given {word}": (kind, torques),
        f"{'force' if kind == 'v' else word} of the control": (kind, own),
        "rate of the actuators' states": ("actuators", rate), "force of the drive": ("v", tau),
        "passive force": ("v", passive),
        "external wrench": ("wrenches", external), "wrench of the contacts": ("wrenches", acting if contacts else None),
        "acceleration": ("v", a),
    }  # fmt: skip
    check_finite(step, t, *((CheckedQuantity(tree, f"the {name}", kind), x) for name, (kind, x) in quantities.items()))
    return jnp.concatenate([part for part in (v, a, rate) if part is not None])
