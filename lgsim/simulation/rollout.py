"""The equations of motion of a machine with all that drives it, as a field that the integrators take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.core import Tracer
from jaxtyping import Float

from lgsim.dynamics.forward_dynamics import forward_dynamics
from lgsim.dynamics.passive_forces import passive_forces
from lgsim.integrators.integrate import integrate
from lgsim.integrators.method import Method
from lgsim.integrators.methods import MK4
from lgsim.multibody.model import Model
from lgsim.simulation.finite_checks import (
    Place,
    check_finite,
    check_gradient_finite,
    check_model_gradient_finite,
    plain_errors,
)
from lgsim.simulation.state_space import StateSpace
from lgsim.support import check as verify

Control = Callable[[Any, Array, Array, Model], Array]
"""``control(t, q, v, model)``: joint forces (nv,), N m or N."""
Wrenches = Callable[[Any, Array, Array, Model], Array]
"""``wrenches(t, q, v, model)``: external wrenches (bodies, 6) on the bodies, in their frames, N and N m."""

Solve = Callable[[Model, Array, Array, Array, Any], Array]
"""``solve(model, q, v, tau, wrenches)``: accelerations."""


def joint_forces(model: Model, control: Control | None, torques: Array | None, t: Any, q: Array, v: Array) -> Array:
    """What the drives do (nv,): given torques plus the control's."""
    tau = jnp.zeros_like(v) if torques is None else torques
    return tau if control is None else tau + control(t, q, v, model)


def lagged(model: Model, command: Array, held: Array | None) -> tuple[Array, Array | None]:
    """(joint forces, their rate) of drives that follow a command by ``T tau' = command - tau``; T = 0 is the command.

    Args:
        model: The machine, T being its ``actuator_time``.
        command: What is wanted, (nv,).
        held: The drives' forces as states of the motion (nv,), of those without a lag any numbers; None where no drive
            of the machine lags.
    """
    if held is None:
        return command, None
    lags = model.actuator_time > 0
    rate = (command - held) / jnp.where(lags, model.actuator_time, 1)
    return jnp.where(lags, held, command), jnp.where(lags, rate, 0)


def acceleration(
    model: Model, tau: Array, wrenches: Wrenches | None, t: Any, q: Array, v: Array, solve: Solve = forward_dynamics
) -> Array:
    """``v'`` under the drives' forces, the model's own dampers and springs, and external wrenches.

    ``solve`` is the forward dynamics, with the rule of differentiation that fits the use.
    """
    external = None if wrenches is None else wrenches(t, q, v, model)
    return solve(model, q, v, tau + passive_forces(model, q, v), external)


class StateHistory(NamedTuple):
    """What ``rollout`` returns.

    Attributes:
        time: s, (saved,), the first one t0.
        q: Configurations (saved, nq), the first one q0.
        v: Velocities (saved, nv).
        held: Forces of the drives that lag (saved, nv), N m or N, those of the others being what they were at t0; None
            where no drive of the machine lags.
    """

    time: Array
    q: Array
    v: Array
    held: Array | None = None


def rollout(
    model: Model,
    q0: Float[Array, " nq"],
    v0: Float[Array, " nv"],
    *,
    dt: float | Array,
    steps: int,
    torques: Float[Array, "*rows nv"] | None = None,
    control: Control | None = None,
    wrenches: Wrenches | None = None,
    tau0: Float[Array, " nv"] | None = None,
    method: Method = MK4,
    t0: float | Array = 0.0,
    save_every: int = 1,
    checkpoint: str | int | None = "step",
    check: bool = False,
) -> StateHistory:
    """The motion ``M(q) v' + h(q, v) = tau + passive_forces + J^T F`` from (q0, v0), by a method on the group.

    q moves on the group of the machine's joints, v in a vector space; nothing is normalised. ``jax.jit`` it, map it
    over any argument with ``jax.vmap`` or ``lgsim.batched``, differentiate it in either mode and to any order in
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
        method: Of ``lgsim.METHODS``.
        t0: Initial time, s.
        save_every: Save each ``save_every``-th state; it must divide ``steps``.
        checkpoint: What reverse mode keeps, see ``lgsim.integrate``.
        check: For debugging, slow: name the first quantity that is not finite with its joint, body and step, and in
            reverse mode the first gradient that is not. Without it nothing is left of this in the program.

    Returns:
        Motion(time, q, v, held).

    Raises:
        TypeError: dtypes differ from the model's, or an argument is of the wrong kind.
        ValueError: a shape is wrong, steps < 1, dt is zero.
        FloatingPointError: with ``check``, something is not finite. Inside of ``jax.jit``, ``jax.vmap`` or a derivative
            the error is a ``jax.errors.JaxRuntimeError`` whose text ends with it.
    """
    y0 = start(model, q0, v0, tau0)
    rows = held(model, torques, steps, t0, dt)
    if not check:
        return moved(model, y0, dt, steps, rows, control, wrenches, method, t0, save_every, checkpoint)
    with plain_errors():
        motion = watched(model, y0, dt, steps, rows, control, wrenches, method, t0, save_every, checkpoint)
        if not isinstance(motion.q, Tracer):
            jax.block_until_ready(motion)
            jax.effects_barrier()
        return motion


def moved(
    model: Model, y0: Array, dt: Any, steps: int, rows: Row | None, control: Control | None,
    wrenches: Wrenches | None, method: Method, t0: Any, save_every: int, checkpoint: str | int | None,
) -> StateHistory:  # fmt: skip
    """``rollout`` of checked arguments."""
    machine = (model, control, wrenches)
    given: dict[str, Any] = (
        {"args": (machine, rows)} if rows is None or rows.steady else {"args": machine, "inputs": rows}
    )
    out = integrate(
        method, state_space(model), driven, y0, t0=t0, dt=dt, steps=steps, save_every=save_every, checkpoint=checkpoint,
        **given,
    )  # fmt: skip
    return StateHistory(out.ts, *parts(model, out.ys))


def watched(
    model: Model, y0: Array, dt: Any, steps: int, rows: Row | None, control: Control | None,
    wrenches: Wrenches | None, method: Method, t0: Any, save_every: int, checkpoint: str | int | None, first: Any = 0,
) -> StateHistory:  # fmt: skip
    """``moved`` that looks for what is not finite; steps count from ``first``."""
    steady = rows if rows is None or rows.steady else None
    numbers = first + jnp.arange(steps)
    out = integrate(
        method,
        state_space(model),
        checked,
        y0,
        t0=t0,
        dt=dt,
        steps=steps,
        save_every=save_every,
        checkpoint=checkpoint,
        args=((model, control, wrenches), steady),
        inputs=(numbers, None if steady is not None else rows),
    )
    place = Place(model.topology, "the saved state", "saved", "what is made of the motion")
    return StateHistory(out.ts, *parts(model, check_gradient_finite(place, numbers[-1], out.ts[-1], out.ys)))


def state_space(model: Model) -> StateSpace:
    """The space of a machine's states."""
    return StateSpace(model.topology, model.nv if model.topology.lags else 0)


def parts(model: Model, y: Array) -> tuple[Array, Array, Array | None]:
    """(q, v, forces of drives that lag or None) of states (..., length)."""
    end = model.nq + model.nv
    return y[..., : model.nq], y[..., model.nq : end], y[..., end:] if model.topology.lags else None


class Row(NamedTuple):
    """Joint forces of a step (nv,) with the time of its start, and how they change with time; or of all steps."""

    since: Array
    force: Array
    slope: Array

    @property
    def steady(self) -> bool:
        """Whether it is one row for all the time."""
        return self.force.ndim == 1


def held(model: Model, torques: Any, steps: int, t0: Any, dt: Any) -> Row | None:
    """Joint forces as ``rollout`` takes them: one row for all the time, or one (steps, ...) for each step.

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
        return Row(jnp.zeros((), tau.dtype), tau, jnp.zeros_like(tau))
    if tau.ndim > 2 or len(tau) not in (steps, steps + 1):
        raise ValueError(
            f"torques: expected shape ({model.nv},), ({steps}, {model.nv}) held for a step each or ({steps + 1},"
            f" {model.nv}) nodes of straight lines, got {tau.shape}"
        )
    t0, dt = jnp.asarray(t0, tau.dtype), jnp.asarray(dt, tau.dtype)
    slope = jnp.diff(tau, axis=0) / dt if len(tau) > steps else jnp.zeros_like(tau)
    return Row(t0 + jnp.arange(steps, dtype=tau.dtype) * dt, tau[:steps], slope)


def driven(t: Array, y: Array, args: Any, solve: Solve = forward_dynamics) -> Array:
    """(v, v', tau' of drives that lag): the algebra vector of ``Motions``.

    Args:
        t: Time, s.
        y: State (q, v, tau of drives that lag).
        args: ((model, control, wrenches), row) with the ``Row`` of joint forces or None.
        solve: See ``acceleration``.
    """
    (model, control, wrenches), row = args
    q, v, z = parts(model, y)
    torques = None if row is None else row.force + row.slope * (t - row.since)
    tau, rate = lagged(model, joint_forces(model, control, torques, t, q, v), z)
    slope = [v, acceleration(model, tau, wrenches, t, q, v, solve)]
    return jnp.concatenate(slope if rate is None else [*slope, rate])


def checked(t: Array, y: Array, args: Any) -> Array:
    """``driven`` that looks at all that it meets."""
    ((model, control, wrenches), steady), (step, row) = args
    tree = model.topology

    def enters(through: str, what: str, kind: str, x: Array) -> Array:
        return check_gradient_finite(Place(tree, f"the {what}", kind, through), step, t, x)

    def state(through: str) -> tuple[Array, Array]:
        return enters(through, "configuration", "q", q), enters(through, "velocity", "v", v)

    def of_state(f: Control | Wrenches | None, through: str) -> Array | None:
        if f is None:
            return None
        at, speed = state(through)
        return f(t, at, speed, own)

    own = check_model_gradient_finite(model, step, t)
    y = enters("a stage of the method", "state", "state", y)
    q, v, z = parts(model, y)
    row = row if steady is None else steady
    torques = None if row is None else row.force + row.slope * (t - row.since)
    given = jnp.zeros_like(v) if torques is None else torques
    driving = of_state(control, "the control")
    tau, rate = lagged(own, given if driving is None else given + driving, z)
    passive = passive_forces(own, *state("the passive forces"))
    external = of_state(wrenches, "the wrenches")
    total = enters("the forward dynamics", "force", "v", tau + passive)
    a = forward_dynamics(own, *state("the forward dynamics"), total, external)
    seen = {
        **{name: (name, getattr(model, name)) for name in ("placements", "screws", "inertias", "mimic", "frames")},
        "state": ("state", y), "given torque": ("v", torques), "force of the control": ("v", driving),
        "force of the drive": ("v", tau), "rate of the drive's force": ("v", rate), "passive force": ("v", passive),
        "external wrench": ("wrenches", external), "acceleration": ("v", a),
    }  # fmt: skip
    check_finite(step, t, *((Place(tree, f"the {what}", kind), x) for what, (kind, x) in seen.items()))
    return jnp.concatenate([v, a] if rate is None else [v, a, rate])


def start(model: Model, q0: Any, v0: Any, tau0: Any) -> Array:
    """The state of q0, by default neutral, v0, by default zero, and tau0, by default zero, checked.

    Raises:
        TypeError: dtypes differ from the model's, or the model is none.
        ValueError: a shape is wrong, or forces are given where no drive lags.
    """
    if not isinstance(model, Model):
        raise TypeError(f"model: expected an lgsim.Model, got {type(model).__name__}; lgsim.load_urdf makes one")
    q0 = model.neutral() if q0 is None else q0
    v0 = jnp.zeros(model.nv, model.dtype) if v0 is None else v0
    state = [_state(model, "q0", q0, model.nq), _state(model, "v0", v0, model.nv)]
    if model.topology.lags:
        tau0 = jnp.zeros(model.nv, model.dtype) if tau0 is None else tau0
        state.append(_state(model, "tau0", tau0, model.nv))
    elif tau0 is not None:
        raise ValueError("tau0: no drive of the model lags, so that their forces have no start; give an actuator_time")
    return jnp.concatenate(state)


def _state(model: Model, name: str, value: Any, length: int) -> Array:
    array = verify.floating(name, value)
    if array.shape != (length,):
        kind = "nq" if name == "q0" else "nv"
        raise ValueError(
            f"{name}: expected shape ({length},), that is {kind}, got {array.shape}; use jax.vmap for batches"
        )
    if array.dtype != model.dtype:
        raise TypeError(f"{name}: expected {model.dtype}, the dtype of the model, got {array.dtype}")
    return array
