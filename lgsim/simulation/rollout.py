"""The motion of a machine under all that drives it: its equations as a field that the integrators take, and a rollout.

The state is y = (q, v, z), one array: the configuration, the velocity, and the forces z of drives that lag. It obeys

    q' = v,    M(q) v' + h(q, v) = tau + passive_forces(q, v) + J^T F,    T z' = command - z,

with tau = z where a drive lags by T > 0, and tau = command where it does not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jax.core import Tracer
from jax.typing import ArrayLike
from jaxtyping import Float, Int

from lgsim.dynamics.forward_dynamics import forward_dynamics
from lgsim.dynamics.passive_forces import passive_forces
from lgsim.integrators.integrate import integrate
from lgsim.integrators.method import Method, Number
from lgsim.integrators.methods import MK4
from lgsim.multibody.model import Model
from lgsim.simulation.finite_checks import (
    CheckedQuantity,
    check_finite,
    check_gradient_finite,
    check_model_gradient_finite,
    plain_errors,
)
from lgsim.simulation.state_space import StateSpace
from lgsim.support import check as verify

Configuration = Float[Array, " nq"]
Velocity = Float[Array, " nv"]
State = Float[Array, " state"]

Control = Callable[[Number, Configuration, Velocity, Model], Float[Array, " nv"]]
"""``control(t, q, v, model)``: joint forces (nv,), N m or N."""
Wrenches = Callable[[Number, Configuration, Velocity, Model], Float[Array, "bodies 6"]]
"""``wrenches(t, q, v, model)``: external wrenches (bodies, 6) on the bodies, in their frames, N and N m."""

Solve = Callable[[Model, Array, Array, Array, Any], Array]
"""``solve(model, q, v, tau, wrenches)``: accelerations (nv,)."""


class StateHistory(NamedTuple):
    """The saved states of a motion, as ``rollout`` returns them.

    Attributes:
        time: Times of the saved states, s, (saved,), the first one t0.
        q: Configurations (saved, nq), the first one q0.
        v: Velocities (saved, nv), rad/s or m/s; of groups and a floating base in the child's frame.
        drive_forces: Forces of the drives that lag (saved, nv), N m or N, those of the others being what they were at
            t0; None where no drive of the machine lags.
    """

    time: Float[Array, "*batch saved"]
    q: Float[Array, "*batch saved nq"]
    v: Float[Array, "*batch saved nv"]
    drive_forces: Float[Array, "*batch saved nv"] | None = None


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
    tau0: Float[Array, " nv"] | None = None,
    method: Method = MK4,
    t0: Number = 0.0,
    save_every: int = 1,
    checkpoint: str | int | None = "step",
    check: bool = False,
) -> StateHistory:
    """The motion ``M(q) v' + h(q, v) = tau + passive_forces + J^T F`` from (q0, v0), by a method on the group.

    q moves on the group of the machine's joints, v in a vector space; nothing is normalized. ``jax.jit`` it, map it
    over any argument with ``jax.vmap`` or ``lgsim.tiled_vmap``, differentiate it in either mode and to any order in
    anything that is an array. Compiled once whatever the number of steps; new numbers never compile again.

    Args:
        model: The machine; dampers, springs, dry friction and stops are its own, see ``passive_forces``. Where an
            ``actuator_time`` T is not zero, torques and control are commands: ``T tau' = command - tau``. Explicit
            methods need a step of at most about 2 T.
        q0: Configuration at t0.
        v0: Velocity, rad/s or m/s; of groups and a floating base in the child's frame.
        dt: Step, s; negative ones run backwards.
        steps: Number of steps.
        torques: Joint forces, N m or N: (nv,) all the time, (steps, nv) one row held for each step, or (steps + 1, nv)
            nodes with straight lines between; by default none.
        control: ``control(t, q, v, model)`` gives joint forces (nv,) that are added; from ``lgsim.controls`` or any
            function that JAX can trace. It is evaluated at every stage of the method.
        wrenches: ``wrenches(t, q, v, model)`` gives external wrenches (bodies, 6) in the bodies' frames, e.g.
            ``lgsim.controls.FrameWrench``.
        tau0: Forces at t0 of drives that lag, by default zero.
        method: A method such as one of ``lgsim.METHODS``.
        t0: Initial time, s.
        save_every: Save each ``save_every``-th state; it must divide ``steps``.
        checkpoint: What reverse mode keeps, see ``lgsim.integrate``.
        check: For debugging, slow: name the first quantity that is not finite with its joint, body and step, and in
            reverse mode the first gradient that is not. Without it nothing is left of this in the program.

    Returns:
        StateHistory(time, q, v, drive_forces).

    Raises:
        TypeError: dtypes differ from the model's, or an argument is of the wrong kind.
        ValueError: a shape is wrong, steps < 1, dt is zero.
        FloatingPointError: with ``check``, something is not finite. Inside of ``jax.jit``, ``jax.vmap`` or a derivative
            the error is a ``jax.errors.JaxRuntimeError`` whose text ends with it.
    """
    y0 = initial_state(model, q0, v0, tau0)
    segments = torque_segments(model, torques, steps, t0, dt)
    if not check:
        return integrate_motion(model, y0, dt, steps, segments, control, wrenches, method, t0, save_every, checkpoint)
    with plain_errors():
        motion = integrate_checked_motion(
            model, y0, dt, steps, segments, control, wrenches, method, t0, save_every, checkpoint
        )
        if not isinstance(motion.q, Tracer):
            jax.block_until_ready(motion)
            jax.effects_barrier()
        return motion


# States.


def state_space(model: Model) -> StateSpace:
    """The space of a machine's states (q, v, z)."""
    return StateSpace(model.topology, model.nv if model.topology.lags else 0)


def split_state(
    model: Model, y: Float[Array, "*batch state"]
) -> tuple[Float[Array, "*batch nq"], Float[Array, "*batch nv"], Float[Array, "*batch nv"] | None]:
    """The parts (q, v, forces of drives that lag) of states (..., nq + 2 nv); the last is None where no drive lags."""
    end = model.nq + model.nv
    return y[..., : model.nq], y[..., model.nq : end], y[..., end:] if model.topology.lags else None


def initial_state(
    model: Model, q0: ArrayLike | None, v0: ArrayLike | None, tau0: ArrayLike | None
) -> Float[Array, " state"]:
    """The state of a configuration, velocities and forces of drives that lag, checked.

    Args:
        model: The machine.
        q0: Configuration (nq,); None for the neutral one.
        v0: Velocity (nv,), rad/s or m/s; None for zero.
        tau0: Forces of drives that lag (nv,), N m or N; None for zero.

    Raises:
        TypeError: dtypes differ from the model's, or the model is none.
        ValueError: a shape is wrong, or forces are given where no drive lags.
    """
    if not isinstance(model, Model):
        raise TypeError(f"model: expected an lgsim.Model, got {type(model).__name__}; lgsim.load_urdf makes one")
    q0 = model.neutral() if q0 is None else q0
    v0 = jnp.zeros(model.nv, model.dtype) if v0 is None else v0
    state = [_state_part(model, "q0", q0, model.nq), _state_part(model, "v0", v0, model.nv)]
    if model.topology.lags:
        tau0 = jnp.zeros(model.nv, model.dtype) if tau0 is None else tau0
        state.append(_state_part(model, "tau0", tau0, model.nv))
    elif tau0 is not None:
        raise ValueError("tau0: no drive of the model lags, so that their forces have no start; give an actuator_time")
    return jnp.concatenate(state)


def _state_part(model: Model, name: str, value: ArrayLike, length: int) -> Float[Array, " length"]:
    """``value`` as an array (length,) of the model's dtype, the argument that errors call ``name``."""
    array = verify.floating(name, value)
    if array.shape != (length,):
        kind = "nq" if name == "q0" else "nv"
        raise ValueError(
            f"{name}: expected shape ({length},), that is {kind}, got {array.shape}; use jax.vmap for batches"
        )
    if array.dtype != model.dtype:
        raise TypeError(f"{name}: expected {model.dtype}, the dtype of the model, got {array.dtype}")
    return array


# Drives.


class TorqueSegment(NamedTuple):
    """Joint forces ``force + slope (t - start)`` of one step, or of all steps with a leading axis.

    Attributes:
        start: Time at the start of the step, s, () or (steps,).
        force: Joint forces at that time, N m or N, (nv,) or (steps, nv).
        slope: Their rate, N m/s or N/s, (nv,) or (steps, nv).
    """

    start: Float[Array, "*steps"]
    force: Float[Array, "*steps nv"]
    slope: Float[Array, "*steps nv"]

    @property
    def steady(self) -> bool:
        """Whether it is one segment for all the time, without a leading axis."""
        return self.force.ndim == 1

    def at(self, t: Number) -> Float[Array, " nv"]:
        """The joint forces (nv,) of one segment at the time t, N m or N."""
        return self.force + self.slope * (t - self.start)


def torque_segments(
    model: Model, torques: ArrayLike | None, steps: int, t0: Number, dt: Number
) -> TorqueSegment | None:
    """Joint forces as ``rollout`` takes them, as one segment for all the time or one for each step.

    Args:
        model: The machine.
        torques: N m or N, (nv,) all the time, (steps, nv) constant over each step, (steps + 1, nv) nodes of straight
            lines, or None.
        steps: Number of steps.
        t0: Initial time, s.
        dt: Step, s.

    Raises:
        TypeError: the dtype is not the model's.
        ValueError: the shape is not one of the three.
    """
    if torques is None:
        return None
    tau = verify.floating("torques", torques, model.nv)
    if tau.dtype != model.dtype:
        raise TypeError(f"torques: expected {model.dtype}, the dtype of the model, got {tau.dtype}")
    if tau.ndim == 1:
        return TorqueSegment(jnp.zeros((), tau.dtype), tau, jnp.zeros_like(tau))
    if tau.ndim > 2 or len(tau) not in (steps, steps + 1):
        raise ValueError(
            f"torques: expected shape ({model.nv},), ({steps}, {model.nv}) held for a step each or ({steps + 1},"
            f" {model.nv}) nodes of straight lines, got {tau.shape}"
        )
    t0, dt = jnp.asarray(t0, tau.dtype), jnp.asarray(dt, tau.dtype)
    slope = jnp.diff(tau, axis=0) / dt if len(tau) > steps else jnp.zeros_like(tau)
    return TorqueSegment(t0 + jnp.arange(steps, dtype=tau.dtype) * dt, tau[:steps], slope)


def commanded_forces(
    model: Model,
    control: Control | None,
    torques: Float[Array, " nv"] | None,
    t: Number,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
) -> Float[Array, " nv"]:
    """The command of the drives (nv,), N m or N: given torques plus the control's, zero without either."""
    tau = jnp.zeros_like(v) if torques is None else torques
    return tau if control is None else tau + control(t, q, v, model)


def actuator_dynamics(
    model: Model, command: Float[Array, " nv"], drive_forces: Float[Array, " nv"] | None
) -> tuple[Float[Array, " nv"], Float[Array, " nv"] | None]:
    """The joint forces of drives that follow a command by ``T tau' = command - tau``, and their rate.

    Args:
        model: The machine, T being its ``actuator_time``, s; T = 0 gives the command itself.
        command: The commanded forces (nv,), N m or N.
        drive_forces: The drives' forces as states of the motion (nv,), of those without a lag any numbers; None where
            no drive of the machine lags.

    Returns:
        The joint forces (nv,), N m or N, and the rate of ``drive_forces`` (nv,), N m/s or N/s, zero for drives without
        a lag; None where no drive lags.
    """
    if drive_forces is None:
        return command, None
    lags = model.actuator_time > 0
    rate = (command - drive_forces) / jnp.where(lags, model.actuator_time, 1)
    return jnp.where(lags, drive_forces, command), jnp.where(lags, rate, 0)


@eqx.filter_jit
def drives(
    model: Model,
    control: Control | None,
    torques: Float[Array, "n nv"] | None,
    t: Float[Array, " n"],
    q: Float[Array, "n nq"],
    v: Float[Array, "n nv"],
    z: Float[Array, "n nv"] | None,
) -> Float[Array, "n nv"]:
    """The drives' joint forces at many states, N m or N.

    Args:
        model: The machine.
        control: See ``rollout``.
        torques: Joint forces that are added to the control's, N m or N; None for zero.
        t: Times, s.
        q: Configurations.
        v: Velocities, rad/s or m/s.
        z: Forces of the drives that lag, N m or N; None where none does.
    """

    def force(torques: Array | None, t: Array, q: Array, v: Array, z: Array | None) -> Array:
        return actuator_dynamics(model, commanded_forces(model, control, torques, t, q, v), z)[0]

    given = (torques, t, q, v, z)
    return jax.vmap(force, tuple(None if x is None else 0 for x in given))(*given)


# Equations of motion.


def acceleration(
    model: Model,
    tau: Float[Array, " nv"],
    wrenches: Wrenches | None,
    t: Number,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    solve: Solve = forward_dynamics,
) -> Float[Array, " nv"]:
    """The derivative of v under the drives' forces, the model's own dampers and springs, and external wrenches.

    Args:
        model: The machine.
        tau: The drives' forces (nv,), N m or N.
        wrenches: ``wrenches(t, q, v, model)``, (bodies, 6) in the bodies' frames, N and N m, or None.
        t: Time, s.
        q: Configuration (nq,).
        v: Velocity (nv,), rad/s or m/s.
        solve: The forward dynamics, with the rule of differentiation that fits the use.

    Returns:
        v' (nv,), rad/s^2 or m/s^2.
    """
    external = None if wrenches is None else wrenches(t, q, v, model)
    return solve(model, q, v, tau + passive_forces(model, q, v), external)


def equations_of_motion(t: Number, y: State, args: Any, solve: Solve = forward_dynamics) -> Float[Array, " algebra"]:
    """The field of a motion, the algebra vector (v, v', tau' of drives that lag) of ``StateSpace``.

    Args:
        t: Time, s.
        y: State (q, v, tau of drives that lag).
        args: ((model, control, wrenches), segment) with the ``TorqueSegment`` of joint forces or None.
        solve: The forward dynamics, see ``acceleration``.
    """
    (model, control, wrenches), segment = args
    q, v, z = split_state(model, y)
    torques = None if segment is None else segment.at(t)
    tau, rate = actuator_dynamics(model, commanded_forces(model, control, torques, t, q, v), z)
    slope = [v, acceleration(model, tau, wrenches, t, q, v, solve)]
    return jnp.concatenate(slope if rate is None else [*slope, rate])


def integrate_motion(
    model: Model, y0: State, dt: Number, steps: int, segments: TorqueSegment | None, control: Control | None,
    wrenches: Wrenches | None, method: Method, t0: Number, save_every: int, checkpoint: str | int | None,
) -> StateHistory:  # fmt: skip
    """``rollout`` from a state (nq + 2 nv,) with checked arguments."""
    machine = (model, control, wrenches)
    arguments: dict[str, Any] = (
        {"args": (machine, segments)} if segments is None or segments.steady else {"args": machine, "inputs": segments}
    )
    solution = integrate(
        method, state_space(model), equations_of_motion, y0, t0=t0, dt=dt, steps=steps, save_every=save_every,
        checkpoint=checkpoint, **arguments,
    )  # fmt: skip
    return StateHistory(solution.ts, *split_state(model, solution.ys))


# The same, with a look at every quantity.


def integrate_checked_motion(
    model: Model, y0: State, dt: Number, steps: int, segments: TorqueSegment | None, control: Control | None,
    wrenches: Wrenches | None, method: Method, t0: Number, save_every: int, checkpoint: str | int | None,
    first: int | Int[Array, ""] = 0,
) -> StateHistory:  # fmt: skip
    """``integrate_motion`` that names what is not finite; steps count from ``first``.

    Raises:
        FloatingPointError: something is not finite; out of a compiled program as ``finite_checks.plain_errors`` says.
    """
    steady = segments if segments is None or segments.steady else None
    numbers = first + jnp.arange(steps)
    solution = integrate(
        method,
        state_space(model),
        checked_equations_of_motion,
        y0,
        t0=t0,
        dt=dt,
        steps=steps,
        save_every=save_every,
        checkpoint=checkpoint,
        args=((model, control, wrenches), steady),
        inputs=(numbers, None if steady is not None else segments),
    )
    saved = CheckedQuantity(model.topology, "the saved state", "saved", "what is made of the motion")
    states = check_gradient_finite(saved, numbers[-1], solution.ts[-1], solution.ys)
    return StateHistory(solution.ts, *split_state(model, states))


def checked_equations_of_motion(t: Float[Array, ""], y: State, args: Any) -> Float[Array, " algebra"]:
    """``equations_of_motion`` that checks all its quantities on the way forward and their gradients backwards.

    Args:
        t: Time, s.
        y: State (q, v, tau of drives that lag).
        args: (((model, control, wrenches), steady segment or None), (number of the step, segment of the step or None)).

    Raises:
        FloatingPointError: a quantity is not finite.
    """
    ((model, control, wrenches), steady), (step, segment) = args
    tree = model.topology

    def probe(equation: str, name: str, kind: str, x: Float[Array, " n"]) -> Float[Array, " n"]:
        return check_gradient_finite(CheckedQuantity(tree, f"the {name}", kind, equation), step, t, x)

    def probed_state(equation: str) -> tuple[Float[Array, " nq"], Float[Array, " nv"]]:
        return probe(equation, "configuration", "q", q), probe(equation, "velocity", "v", v)

    def evaluate(f: Control | Wrenches | None, equation: str) -> Float[Array, ...] | None:
        return None if f is None else f(t, *probed_state(equation), probed_model)

    probed_model = check_model_gradient_finite(model, step, t)
    y = probe("a stage of the method", "state", "state", y)
    q, v, z = split_state(model, y)
    segment = segment if steady is None else steady
    torques = None if segment is None else segment.at(t)
    given = jnp.zeros_like(v) if torques is None else torques
    control_forces = evaluate(control, "the control")
    command = given if control_forces is None else given + control_forces
    tau, rate = actuator_dynamics(probed_model, command, z)
    passive = passive_forces(probed_model, *probed_state("the passive forces"))
    external = evaluate(wrenches, "the wrenches")
    total = probe("the forward dynamics", "force", "v", tau + passive)
    a = forward_dynamics(probed_model, *probed_state("the forward dynamics"), total, external)
    quantities = {
        **{name: (name, getattr(model, name)) for name in ("placements", "screws", "inertias", "mimic", "frames")},
        "state": ("state", y), "given torque": ("v", torques), "force of the control": ("v", control_forces),
        "force of the drive": ("v", tau), "rate of the drive's force": ("v", rate), "passive force": ("v", passive),
        "external wrench": ("wrenches", external), "acceleration": ("v", a),
    }  # fmt: skip
    check_finite(step, t, *((CheckedQuantity(tree, f"the {name}", kind), x) for name, (kind, x) in quantities.items()))
    return jnp.concatenate([v, a] if rate is None else [v, a, rate])
