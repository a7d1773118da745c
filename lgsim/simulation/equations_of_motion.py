"""The equations of motion of a model with its drives, external wrenches and contacts, as a field for the integrators.

The state is y = (q, v, w), one array: the configuration, the velocity and the states w of actuators. It obeys

    q' = v,    M(q) v' + h(q, v) = tau + passive_forces(q, v) + J^T F,    w' = g(q, v, w, u),

F being external wrenches and those of the model's contacts, ``contact_forces``; tau are the prescribed joint forces
plus those of a control, or the forces tau(q, v, w, u) of actuators under commands u.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float

from lgsim._compile.xla import compiled
from lgsim.actuators.actuators import Actuators, ActuatorSum
from lgsim.dynamics.contacts.contact_forces import contact_wrenches
from lgsim.dynamics.forward_dynamics import forward_dynamics
from lgsim.dynamics.loops.closure_checks import check_start
from lgsim.dynamics.passive_forces import passive_forces
from lgsim.integrators.method import Number
from lgsim.multibody.model import Model, check_model
from lgsim.multibody.number_checks import check_quaternions
from lgsim.simulation.actuated_control import ActuatedControl, control_output
from lgsim.simulation.state_space import StateSpace
from lgsim.support import check as verify
from lgsim.support.check import is_traced

Configuration = Float[Array, " nq"]
Velocity = Float[Array, " nv"]
State = Float[Array, " state"]

Control = Callable[[Number, Configuration, Velocity, Model], Float[Array, " nv"]] | ActuatedControl
"""``control(t, q, v, model)``: joint forces (nv,), N m or N; or actuators with the control that commands them."""
Wrenches = Callable[[Number, Configuration, Velocity, Model], Float[Array, "bodies 6"]]
"""``wrenches(t, q, v, model)``: external wrenches (bodies, 6) on the bodies, in their frames, N and N m."""

Solve = Callable[[Model, Array, Array, Array, Any], Array]
"""``solve(model, q, v, tau, wrenches)``: accelerations (nv,)."""


_WITH_STATES = (ActuatedControl, Actuators, ActuatorSum)

# States.


def state_space(model: Model, drive: Any = None) -> StateSpace:
    """The space of a model's states (q, v, w), w those of a control's actuators or of ``Actuators``."""
    return StateSpace(model.topology, drive.states if isinstance(drive, _WITH_STATES) else 0)


def split_state(
    model: Model, y: Float[Array, "*batch state"]
) -> tuple[Float[Array, "*batch nq"], Float[Array, "*batch nv"]]:
    """The parts (q, v) of states (..., state)."""
    return y[..., : model.nq], y[..., model.nq : model.nq + model.nv]


def actuator_part(model: Model, y: Float[Array, "*batch state"]) -> Float[Array, "*batch states"] | None:
    """The actuators' states of states (..., state); None where there are none."""
    end = model.nq + model.nv
    return y[..., end:] if y.shape[-1] > end else None


def initial_state(
    model: Model,
    q0: ArrayLike | None,
    v0: ArrayLike | None,
    drive: Any = None,
    actuator_state: ArrayLike | None = None,
) -> Float[Array, " state"]:
    """The initial state from a configuration, velocities and actuator states, checked.

    Args:
        q0: Configuration (nq,); None for the neutral one.
        v0: Velocity (nv,), rad/s or m/s; None for zero.
        drive: A control, an ``ActuatedControl`` or ``Actuators``.
        actuator_state: States of the actuators; None for their rest states.

    Raises:
        TypeError: dtypes differ from the model's, or the model is not a ``Model``.
        ValueError: a shape is wrong, loops are open, torn or lock the model, or actuator states are given without
            actuators that have states.
    """
    check_model(model)
    q0 = model.neutral() if q0 is None else q0
    v0 = jnp.zeros(model.nv, model.dtype) if v0 is None else v0
    state = [_state_part(model, "q0", q0, model.nq), _state_part(model, "v0", v0, model.nv)]
    if not is_traced(state[0]):
        check_quaternions(model.topology, "q0", state[0])
    if model.topology.loops:
        check_start(model, *state)
    count = drive.states if isinstance(drive, _WITH_STATES) else 0
    if count:
        actuators = drive.actuators if isinstance(drive, ActuatedControl) else drive
        w = actuators.start(model, state[0], state[1]) if actuator_state is None else actuator_state
        state.append(_state_part(model, "actuator_state", w, count))
    elif actuator_state is not None:
        raise ValueError("actuator_state: expected None, since no actuator has states; give actuators that have some")
    return jnp.concatenate(state)


def _state_part(model: Model, name: str, value: ArrayLike, length: int) -> Float[Array, " length"]:
    """``value`` as an array (length,) of the model's dtype; ``name`` is the argument's name in errors."""
    array = verify.floating(name, value, dtype=model.dtype)
    if array.shape != (length,):
        kind = {"q0": "nq", "actuator_state": "actuators.states"}.get(name, "nv")
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
        """True if it is one segment for all times, without a leading axis."""
        return self.force.ndim == 1

    def at(self, t: Number) -> Float[Array, " nv"]:
        """The joint forces (nv,) of one segment at the time t, N m or N."""
        return self.force + self.slope * (t - self.start)


def torque_segments(
    model: Model, torques: ArrayLike | None, steps: int, t0: Number, dt: Number, drive: Any = None
) -> TorqueSegment | None:
    """Joint forces or commands of ``rollout`` as one segment for all times or one for each step.

    Args:
        torques: N m or N: (nv,) constant, (steps, nv) constant over each step, (steps + 1, nv) at the nodes of linear
            interpolation, or None.
        t0: Initial time, s.
        dt: Step, s.
        drive: A control, or an ``ActuatedControl``, whose commands (n,) then replace the joint forces (nv,).

    Raises:
        TypeError: the dtype is not the model's.
        ValueError: the shape is not one of the three.
    """
    if torques is None:
        return None
    name, width = "torques", model.nv
    if isinstance(drive, ActuatedControl):
        name, width = "commands", drive.actuators.commands
    tau = verify.floating(name, torques, width, dtype=model.dtype)
    if tau.dtype != model.dtype:
        raise TypeError(f"{name}: expected {model.dtype}, the dtype of the model, got {tau.dtype}")
    if tau.ndim == 1:
        return TorqueSegment(jnp.zeros((), tau.dtype), tau, jnp.zeros_like(tau))
    if tau.ndim > 2 or len(tau) not in (steps, steps + 1):
        raise ValueError(
            f"{name}: expected shape ({width},), ({steps}, {width}) held for a step each or ({steps + 1},"
            f" {width}) nodes of straight lines, got {tau.shape}"
        )
    t0, dt = jnp.asarray(t0, tau.dtype), jnp.asarray(dt, tau.dtype)
    slope = jnp.diff(tau, axis=0) / dt if len(tau) > steps else jnp.zeros_like(tau)
    return TorqueSegment(t0 + jnp.arange(steps, dtype=tau.dtype) * dt, tau[:steps], slope)


def drive_forces(
    model: Model,
    control: Control | None,
    given: Float[Array, " n"] | None,
    t: Number,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    w: Float[Array, " states"] | None = None,
) -> tuple[Float[Array, " nv"], Float[Array, " states"] | None]:
    """(the joint forces (nv,), N m or N, the rates of the actuators' states w).

    Without actuators the prescribed torques plus the control's, zero if there are neither; with actuators the forces
    that result from the prescribed commands plus the control's.
    """
    if isinstance(control, ActuatedControl):
        own = jnp.zeros(0, v.dtype) if w is None else w
        tau, rate = control.actuators.respond(model, q, v, own, control.command(given, t, q, v, model))
        return tau, None if w is None else rate
    tau = jnp.zeros_like(v) if given is None else given
    if control is None:
        return tau, None
    return tau + control_output(control(t, q, v, model), model.nv, model.dtype, "joint forces", "nv"), None


@compiled
def drives(
    model: Model,
    control: Control | None,
    torques: Float[Array, "n _"] | None,
    t: Float[Array, " n"],
    q: Float[Array, "n nq"],
    v: Float[Array, "n nv"],
    w: Float[Array, "n states"] | None = None,
) -> Float[Array, "n nv"]:
    """The drives' joint forces at many states, N m or N.

    Args:
        torques: Joint forces that are added to the control's, N m or N, or commands of actuators; None for zero.
        t: Times, s.
        v: Velocities, rad/s or m/s.
        w: States of the actuators; None if there are none.
    """

    def force(torques: Array | None, t: Array, q: Array, v: Array, w: Array | None) -> Array:
        return drive_forces(model, control, torques, t, q, v, w)[0]

    given = (torques, t, q, v, w)
    return jax.vmap(force, tuple(None if x is None else 0 for x in given))(*given)


# Equations of motion.


def external_wrenches(
    model: Model, wrenches: Wrenches | None, t: Number, q: Float[Array, " nq"], v: Float[Array, " nv"]
) -> Float[Array, "bodies 6"] | None:
    """The total wrenches on the bodies, in their frames, N and N m: external ones plus those of the model's contacts.

    Args:
        wrenches: ``wrenches(t, q, v, model)``, (bodies, 6), or None.
        t: Time, s.
        v: Velocity (nv,), rad/s or m/s.

    Returns:
        (bodies, 6), or None where nothing acts.
    """
    given = None if wrenches is None else wrenches(t, q, v, model)
    if not model.topology.contacts:
        return given
    own = contact_wrenches(model, q, v)
    return own if given is None else given + own


def acceleration(
    model: Model,
    tau: Float[Array, " nv"],
    wrenches: Wrenches | None,
    t: Number,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    solve: Solve = forward_dynamics,
) -> Float[Array, " nv"]:
    """The accelerations v' under drive forces, external wrenches and the model's dampers, springs and contacts.

    Args:
        tau: The drives' forces (nv,), N m or N.
        wrenches: ``wrenches(t, q, v, model)``, (bodies, 6) in the bodies' frames, N and N m, or None.
        t: Time, s.
        v: Velocity (nv,), rad/s or m/s.
        solve: The forward dynamics, with the differentiation rule that fits the use.

    Returns:
        v' (nv,), rad/s^2 or m/s^2.
    """
    external = external_wrenches(model, wrenches, t, q, v)
    return solve(model, q, v, tau + passive_forces(model, q, v), external)


def equations_of_motion(t: Number, y: State, args: Any, solve: Solve = forward_dynamics) -> Float[Array, " algebra"]:
    """The field of a motion, the algebra vector (v, v', rates of actuators) of ``StateSpace``.

    Args:
        t: Time, s.
        y: State (q, v, w).
        args: ((model, control, wrenches), segment) with the ``TorqueSegment`` of joint forces or None.
        solve: The forward dynamics, see ``acceleration``.
    """
    (model, control, wrenches), segment = args
    q, v = split_state(model, y)
    given = None if segment is None else segment.at(t)
    tau, rate = drive_forces(model, control, given, t, q, v, actuator_part(model, y))
    slope = [v, acceleration(model, tau, wrenches, t, q, v, solve), rate]
    return jnp.concatenate([part for part in slope if part is not None])


def sample_actuators(t: Float[Array, ""], y: State, dt: Float[Array, ""], args: Any) -> State:
    """The state at the start of a step dt, after jumps of actuator states; ``args`` as for the field."""
    (model, control, _), segment = args
    w = actuator_part(model, y)
    if w is None or not isinstance(control, ActuatedControl):
        return y
    q, v = split_state(model, y)
    command = control.command(None if segment is None else segment.at(t), t, q, v, model)
    now = control.actuators.sample(model, q, v, w, command, dt)
    return jnp.concatenate([y[: y.size - w.size], now])


def settle_actuators(y: State, args: Any) -> State:
    """The state at the end of a step, after the bounds of actuator states; ``args`` as for the field."""
    (model, control, _), _ = args
    w = actuator_part(model, y)
    if w is None or not isinstance(control, ActuatedControl):
        return y
    return jnp.concatenate([y[: y.size - w.size], control.actuators.settle(w)])
