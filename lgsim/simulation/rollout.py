"""Motion of a machine with a fixed step, as a pure function: what one jits, maps and differentiates."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from lgsim.integrators.integrate import integrate
from lgsim.integrators.method import Method
from lgsim.integrators.methods import MK4
from lgsim.multibody.model import Model
from lgsim.simulation.action import Motions
from lgsim.simulation.system import Control, Wrenches, acceleration, joint_forces
from lgsim.spatial import check


class Motion(NamedTuple):
    """What ``rollout`` returns.

    Attributes:
        time: s, (saved,), the first one t0.
        q: Configurations (saved, nq), the first one q0.
        v: Velocities (saved, nv).
    """

    time: Array
    q: Array
    v: Array


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
    method: Method = MK4,
    t0: float | Array = 0.0,
    save_every: int = 1,
    checkpoint: str | int | None = "step",
) -> Motion:
    """The motion ``M(q) v' + h(q, v) = tau + passive_forces + J^T F`` from (q0, v0), by a method on the group.

    q moves on the group of the machine's joints, v in a vector space; nothing is normalised. ``jax.jit`` it, map it
    over any argument with ``jax.vmap`` or ``lgsim.batched``, differentiate it in either mode and to any order in
    anything that is an array. Compiled once whatever the number of steps; new numbers never compile again.

    Args:
        model: The machine; dampers, springs, dry friction and stops are its own, see ``passive_forces``.
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
        method: Of ``lgsim.METHODS``.
        t0: Initial time, s.
        save_every: Save each ``save_every``-th state; it must divide ``steps``.
        checkpoint: What reverse mode keeps, see ``lgsim.integrate``.

    Returns:
        Motion(time, q, v).

    Raises:
        TypeError: dtypes differ from the model's, or an argument is of the wrong kind.
        ValueError: a shape is wrong, steps < 1, dt is zero.
    """
    q0, v0 = start(model, q0, v0)
    rows = held(model, torques, steps, t0, dt)
    return moved(model, q0, v0, dt, steps, rows, control, wrenches, method, t0, save_every, checkpoint)


def moved(
    model: Model, q0: Array, v0: Array, dt: Any, steps: int, rows: Row | None, control: Control | None,
    wrenches: Wrenches | None, method: Method, t0: Any, save_every: int, checkpoint: str | int | None,
) -> Motion:  # fmt: skip
    """``rollout`` of checked arguments."""
    tree, machine = model.topology, (model, control, wrenches)
    given = {"args": (machine, rows)} if rows is None or rows.steady else {"args": machine, "inputs": rows}
    out = integrate(
        method, Motions(tree), driven, jnp.concatenate([q0, v0]), t0=t0, dt=dt, steps=steps, save_every=save_every,
        checkpoint=checkpoint, **given,
    )  # fmt: skip
    return Motion(out.ts, out.ys[:, : tree.nq], out.ys[:, tree.nq :])


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
    tau = check.floating("torques", torques, model.nv)
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


def driven(t: Array, y: Array, args: Any) -> Array:
    """(v, v'): the algebra vector of ``Motions``.

    Args:
        t: Time, s.
        y: State (q, v).
        args: ((model, control, wrenches), row) with the ``Row`` of joint forces or None.
    """
    (model, control, wrenches), row = args
    q, v = y[: model.nq], y[model.nq :]
    torques = None if row is None else row.force + row.slope * (t - row.since)
    tau = joint_forces(model, control, torques, t, q, v)
    return jnp.concatenate([v, acceleration(model, tau, wrenches, t, q, v)])


def start(model: Model, q0: Any, v0: Any) -> tuple[Array, Array]:
    """q0, by default neutral, and v0, by default zero, checked.

    Raises:
        TypeError: dtypes differ from the model's, or the model is none.
        ValueError: a shape is wrong.
    """
    if not isinstance(model, Model):
        raise TypeError(f"model: expected an lgsim.Model, got {type(model).__name__}; lgsim.load_urdf makes one")
    q0 = model.neutral() if q0 is None else q0
    v0 = jnp.zeros(model.nv, model.dtype) if v0 is None else v0
    return _state(model, "q0", q0, model.nq), _state(model, "v0", v0, model.nv)


def _state(model: Model, name: str, value: Any, length: int) -> Array:
    array = check.floating(name, value)
    if array.shape != (length,):
        kind = "nq" if name == "q0" else "nv"
        raise ValueError(
            f"{name}: expected shape ({length},), that is {kind}, got {array.shape}; use jax.vmap for batches"
        )
    if array.dtype != model.dtype:
        raise TypeError(f"{name}: expected {model.dtype}, the dtype of the model, got {array.dtype}")
    return array
