"""The equations of motion with their linearization, for linearly implicit steps and the search for fast rates."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from lgsim.dynamics.contacts.contact_derivatives import contact_derivatives
from lgsim.dynamics.contacts.contact_forces import contact_wrenches
from lgsim.dynamics.forward_dynamics import forward_dynamics_derivatives
from lgsim.dynamics.inverse_dynamics import inverse_dynamics
from lgsim.dynamics.passive_forces import passive_derivatives, passive_forces
from lgsim.dynamics.rosenbrock_recursion import applies, solve_tree, tree_system
from lgsim.dynamics.rosenbrock_system import solve_step, step_system
from lgsim.integrators.linearly_implicit import Linearization, linearize
from lgsim.lie.action import Action
from lgsim.lie.ad_functions import AdFunction
from lgsim.multibody import block_diagonal
from lgsim.multibody.model import Model
from lgsim.simulation.equations_of_motion import (
    Control,
    State,
    Wrenches,
    actuator_part,
    drive_forces,
    equations_of_motion,
    sample_actuators,
    settle_actuators,
    split_state,
)

SMALL = 20
"""The number of degrees of freedom up to which a dense solve is faster than the recursion: a Rodas4 step of a Panda in
a batch takes 0.8 µs instead of 1.4; for a chain of 25 joints 54 µs instead of 45, of 200 joints 6400 instead of 470."""


class ActuatorSlopes(NamedTuple):
    """The rates g of the actuator states w at one state of a model, with their derivatives.

    Attributes:
        rate: g (k,).
        slopes: Its derivatives with respect to the tangent at q, v and time: (k, nv), (k, nv), (k,).
        own: Its derivative with respect to w (k, k).
        forces: The derivative of the drives' forces with respect to w (nv, k).
    """

    rate: Array
    slopes: tuple[Array, Array, Array]
    own: Array
    forces: Array


class ForceSlopes(NamedTuple):
    """The forces on a model at one state, with their derivatives with respect to the tangent at q, v and time.

    Where forces act joint by joint, the matrices (nv, nv) are represented by their diagonals (nv,).

    Attributes:
        drive_slopes: Derivatives of the drives' forces (nv, nv), (nv, nv), (nv,).
        tau: The joint forces of drives and of the model's own dampers, springs, friction and stops (nv,).
        passive_slopes: The derivatives of the latter, (nv, nv) and (nv, nv).
        wrenches: Wrenches on the bodies (bodies, 6), contacts included, or None.
        wrench_slopes: Their derivatives mapped to joint forces, as ``drive_slopes``; zero without wrenches.
        actuators: The rates of actuators with states, else None.
    """

    drive_slopes: tuple[Array, Array, Array]
    tau: Array
    passive_slopes: tuple[Array, Array]
    wrenches: Array | None
    wrench_slopes: tuple[Array, Array, Array]
    actuators: ActuatorSlopes | None


def _force_slopes(t: Float[Array, ""], y: State, args: Any, by_joints: bool = False) -> ForceSlopes:
    """The forces at (t, y): control and wrenches in forward mode, contacts and all others in closed form.

    Args:
        t: Time, s.
        y: State (q, v, w).
        args: As those of ``equations_of_motion``.
        by_joints: True if there are no wrenches and no contacts, and each joint's force depends only on its own joint.
    """
    (model, control, wrenches), segment = args
    q, v = split_state(model, y)
    zero = jnp.zeros_like(v)
    w = actuator_part(model, y)

    def drives(t: Array, dq: Array, dv: Array, dw: Array | None) -> tuple[Array, Array | None]:
        given = None if segment is None else segment.at(t)
        now = w if w is None or dw is None else w + dw
        return drive_forces(model, control, given, t, model.retract(q, dq), v + dv, now)

    def diagonal(f: Callable[[Array], Array]) -> Array:
        return jax.jvp(f, (zero,), (jnp.ones_like(v),))[1]

    dw = None if w is None else jnp.zeros_like(w)
    (given, own_rate), (by_time, own_by_time) = jax.jvp(lambda t: drives(t, zero, zero, dw), (t,), (jnp.ones_like(t),))
    none = zero if by_joints else jnp.zeros((model.nv, model.nv), v.dtype)
    by_q, by_v, external, worth, actuators = none, none, None, (none, none, zero), None
    if by_joints:
        passive = (
            diagonal(lambda x: passive_forces(model, q + x, v)), diagonal(lambda x: passive_forces(model, q, v + x))
        )  # fmt: skip
        by_q = diagonal(lambda x: drives(t, x, zero, dw)[0])
        by_v = diagonal(lambda x: drives(t, zero, x, dw)[0])
    else:
        passive = passive_derivatives(model, q, v)
        if control is not None:
            by_q, own_by_q = jax.jacfwd(lambda x: drives(t, x, zero, dw))(zero)
            by_v, own_by_v = jax.jacfwd(lambda x: drives(t, zero, x, dw))(zero)
            if w is not None:
                by_w, own = jax.jacfwd(drives, 3)(t, zero, zero, dw)
                actuators = ActuatorSlopes(own_rate, (own_by_q, own_by_v, own_by_time), own, by_w)
        if wrenches is not None or model.topology.contacts:
            external, worth = _worth(model, wrenches, t, q, v)
    total = given + passive_forces(model, q, v)
    return ForceSlopes((by_q, by_v, by_time), total, passive, external, worth, actuators)


class MotionField(eqx.Module):
    """``equations_of_motion`` with their linearization, whose linear systems have size nv instead of 2 nv."""

    __call__ = staticmethod(equations_of_motion)

    def machine(self, args: Any) -> Any:
        """((model, control, wrenches), segment): the unchanged arguments."""
        return args

    def sample(self, t: Float[Array, ""], y: State, dt: Float[Array, ""], args: Any) -> State:
        """The state at the start of a step dt, after jumps of actuators with sample times."""
        return sample_actuators(t, y, dt, args)

    def settle(self, y: State, args: Any) -> State:
        """The state at the end of a step, after the bounds of actuator states."""
        return settle_actuators(y, args)

    def linearize(self, action: Action, t: Float[Array, ""], y: State, args: Any, s: Float[Array, ""]) -> Linearization:
        """The field at (t, y), and ``(1 - s J)^-1`` with its Jacobian J in the chart of the step.

        The rows of actuators are eliminated first: ``(1 - s g_w) w = r_w + s (g_q x + g_v y)``. Large models whose
        forces act joint by joint are solved in O(n). Models with loops use the dense Jacobian.
        """
        (model, control, wrenches), _ = args
        if model.topology.loops:
            return linearize(action, equations_of_motion, t, y, args, s)
        q, v = split_state(model, y)
        nv, zero, end = model.nv, jnp.zeros_like(v), 2 * model.nv
        large = nv > SMALL and wrenches is None and not model.topology.contacts and _by_joints(control)
        large = large and applies(model.topology)
        forces = _force_slopes(t, y, args, large)
        (by_q, by_v, by_time), own = forces.drive_slopes, forces.actuators
        system_of_own, to_forces = None, None
        if own is not None:
            # eliminate w = (1 - s g_w)^-1 (r_w + s (g_q x + g_v y)), which adds to the slopes of the joint forces
            system_of_own = jax.scipy.linalg.lu_factor(jnp.eye(own.rate.size, dtype=v.dtype) - s * own.own)
            to_forces = jax.scipy.linalg.lu_solve(system_of_own, own.forces.T, trans=1).T
            by_q, by_v = (c + s * to_forces @ g for c, g in zip((by_q, by_v), own.slopes[:2], strict=True))
        slopes = (
            forces.passive_slopes[0] + by_q + forces.wrench_slopes[0],
            forces.passive_slopes[1] + by_v + forces.wrench_slopes[1],
            by_time + forces.wrench_slopes[2],
        )
        if large:
            tree = tree_system(model, q, v, forces.tau, slopes, s)
            a, rate, solve = tree.acceleration, tree.acceleration_rate, partial(solve_tree, model.topology, tree, s)
        else:
            step = step_system(model, q, v, forces.tau, forces.wrenches, slopes, s)
            a, rate, solve = step.acceleration, step.acceleration_rate, partial(solve_step, model.topology, step, s)
        values, rates = [v, a], [zero, rate]
        if own is not None:
            values, rates = [*values, own.rate], [*rates, own.slopes[2]]

        def resolvent(r: Float[Array, " algebra"]) -> Float[Array, " algebra"]:
            from_own = zero if to_forces is None else to_forces @ r[end:]
            x, w = solve(r[:nv], r[nv:end], from_own)
            found = [x, w]
            if own is not None:
                pushed = r[end:] + s * (own.slopes[0] @ x + own.slopes[1] @ w)
                found.append(jax.scipy.linalg.lu_solve(system_of_own, pushed))
            return jnp.concatenate(found)

        return Linearization(jnp.concatenate(values), jnp.concatenate(rates), resolvent)


MOTION_FIELD = MotionField()


def _by_joints(control: Control | None) -> bool:
    """True if each force of a control depends only on its own joint, as declared by its attribute ``by_joints``."""
    return control is None or bool(getattr(control, "by_joints", False))


def motion_jacobian(
    t: Float[Array, ""], y: State, args: Any
) -> tuple[Float[Array, "algebra algebra"], Float[Array, "nv nv"], ForceSlopes]:
    """(J, M^-1, forces): the Jacobian of the equations of motion in the chart at (t, y); its eigenvalues are the rates.

    ``J = [[-ad_v/2, 1], [M^-1 B_q, M^-1 B_v]]``, with further rows and columns for actuator states; ``args`` as for
    ``equations_of_motion``.
    """
    (model, _, _), _ = args
    q, v = split_state(model, y)
    forces = _force_slopes(t, y, args)
    a = forward_dynamics_derivatives(model, q, v, forces.tau, forces.wrenches)
    by_q, by_v = (
        own + a.dtau @ (passive + drives + worth)
        for own, passive, drives, worth in zip(
            (a.dq, a.dv), forces.passive_slopes, forces.drive_slopes[:2], forces.wrench_slopes[:2], strict=True
        )
    )
    # -ad_v/2, the derivative of dexpinv in the chart
    one, blocks = jnp.eye(model.nv, dtype=v.dtype), block_diagonal.of_ad(model.topology, _ONE_AND_HALF, v)
    chart = block_diagonal.applied(model.topology, blocks, one) - one
    rows = [[chart, one], [by_q, by_v]]
    if forces.actuators is not None:
        own = forces.actuators
        rows[0].append(jnp.zeros_like(own.forces))
        rows[1].append(a.dtau @ own.forces)
        rows.append([*own.slopes[:2], own.own])
    return jnp.block(rows), a.dtau, forces


_ONE_AND_HALF = AdFunction.from_taylor([1.0, 0.5])


def _worth(
    model: Model, wrenches: Wrenches | None, t: Float[Array, ""], q: Float[Array, " nq"], v: Float[Array, " nv"]
) -> tuple[Array, tuple[Array, Array, Array]]:
    """(wrenches (bodies, 6), their derivatives with respect to q, v and time as joint forces).

    The derivatives are in closed form for contacts, and by forward mode for external wrenches.
    """
    zero = jnp.zeros_like(v)
    own, worth = None, (jnp.zeros((model.nv, model.nv), v.dtype),) * 2
    if model.topology.contacts:
        own, worth = contact_wrenches(model, q, v), contact_derivatives(model, q, v)
        if wrenches is None:
            return own, (*worth, zero)
    assert wrenches is not None  # otherwise there is nothing to differentiate

    def moved(t: Array, dq: Array, dv: Array) -> Array:
        return wrenches(t, model.retract(q, dq), v + dv, model)

    given, rate = jax.jvp(lambda t: moved(t, zero, zero), (t,), (jnp.ones_like(t),))

    def joint_forces(change: Array) -> Array:
        return -jax.jvp(lambda x: inverse_dynamics(model, q, zero, zero, x), (given,), (change,))[1]

    columns = jax.vmap(joint_forces, in_axes=-1, out_axes=-1)
    by_q, by_v = (columns(x) for x in jax.jacfwd(moved, (1, 2))(t, zero, zero))
    external = given if own is None else given + own
    return external, (worth[0] + by_q, worth[1] + by_v, joint_forces(rate))
