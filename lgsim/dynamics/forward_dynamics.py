"""Forward dynamics and its derivatives: closed-form Jacobians, and two differentiation rules.

One rule is for few directions, the other for many; neither differentiates the recursion.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from lgsim._compile.linalg import dense
from lgsim._compile.xla import batch_last, change_along, is_zero_tangent, linear_last, save_in_checkpoint, straight_line
from lgsim.dynamics import articulated_body, jacobian_products, linearization, validation
from lgsim.dynamics.inverse_dynamics import newton_euler
from lgsim.dynamics.loops.closed_dynamics import closed_derivatives, closed_dynamics
from lgsim.multibody import configuration
from lgsim.multibody.model import DRIVES, Model

SMALL = 16
"""Number of degrees of freedom up to which the product with the inverse mass matrix stays in the native function."""


class ForwardDynamicsDerivatives(NamedTuple):
    """Accelerations (..., nv) and their derivatives (..., nv, nv); ``dtau`` is the inverse mass matrix."""

    a: Array
    dq: Array
    dv: Array
    dtau: Array


def forward_dynamics(
    model: Model,
    q: Float[Array, "*#batch nq"],
    v: Float[Array, "*#batch nv"],
    tau: Float[Array, "*#batch nv"],
    wrenches: Float[Array, "*#batch bodies 6"] | None = None,
) -> Float[Array, "*batch nv"]:
    """Forward dynamics: the acceleration v' under joint forces tau, ``M(q) v' = tau - h(q, v) + J^T F``.

    By the articulated-body algorithm, O(n); with mimic joints the reduced mass matrix is factored instead. Closed
    kinematic loops are kept closed by their constraint forces, see ``loop_forces``; the state must be on the closed
    set. Derivatives in both modes and of any order follow from ``dv' = M^-1 (dtau - dID)``, with the closed-form
    derivatives of inverse dynamics at fixed v'.

    Args:
        model: The model; derivatives with respect to all of its parameters are available.
        q: Configuration.
        v: Velocity, rad/s or m/s; for group joints and a floating base in the child's frame.
        tau: Joint forces, N m or N, without friction, damping and springs of the model, see ``passive_forces``.
        wrenches: External wrench (f, n) on each body, in the body's frame at its origin, N and N m.

    Returns:
        v', the componentwise derivative of v.

    Raises:
        ValueError: an array has a wrong length.
        TypeError: dtypes differ, or are not float32 or float64.

    Source: Featherstone, Rigid Body Dynamics Algorithms, 2008, Table 7.1; Ploen and Park 1999, (50)-(68).
    """
    named = {"q": (q, "q"), "v": (v, "v"), "tau": (tau, "v"), "wrenches": (wrenches, "wrenches")}
    return validation.call(acceleration, model, **named)


def forward_dynamics_derivatives(
    model: Model,
    q: Float[Array, "*#batch nq"],
    v: Float[Array, "*#batch nv"],
    tau: Float[Array, "*#batch nv"],
    wrenches: Float[Array, "*#batch bodies 6"] | None = None,
) -> ForwardDynamicsDerivatives:
    """Forward dynamics and its closed-form derivatives with respect to q, v and tau: ``-M^-1 dID``.

    ``dq[i, j]`` is the derivative of v'_i along the tangent, as for ``inverse_dynamics_derivatives``.

    Args:
        q: Configuration, as for ``forward_dynamics``.
        v: Velocity.
        tau: Joint forces.
        wrenches: External wrenches in the body frames, constant there.

    Raises:
        ValueError, TypeError: as ``forward_dynamics``.

    Source: Carpentier and Mansard, Analytical derivatives of rigid body dynamics algorithms, RSS 2018.
    """
    named = {"q": (q, "q"), "v": (v, "v"), "tau": (tau, "v"), "wrenches": (wrenches, "wrenches")}
    return ForwardDynamicsDerivatives(*validation.call(_forward, model, **named))


def _acceleration(model: Model, q: Array, v: Array, tau: Array, wrenches: Array | None) -> Array:
    if model.topology.has_mimic:
        return linearization.forward(model, q, v, tau, wrenches)[0]
    return articulated_body.forward(model, q, v, tau, wrenches)


linearized = batch_last(linearization.forward)


def _change(args: tuple, x: tuple) -> Array:
    return jacobian_products.change(*args, *x)


def _pulled(args: tuple, y: Array) -> tuple:
    model, q, v, a, wrenches = args
    return jacobian_products.pulled(model, q, v, a, wrenches, y)


def _solution(args: tuple, x: Array) -> Array:
    model, q = args
    weightless = model.replace(gravity=jnp.zeros_like(model.gravity))
    return articulated_body.forward(weightless, q, jnp.zeros_like(x), x)


_changed = linear_last(_change, _pulled)
"""``M^-1 (dtau - dID)`` for the args of one state and (dq, dv, dtau), dq along the tangent, at O(n)."""
_solved = linear_last(_solution, _solution)
"""``M(q)^-1 x`` of one state at O(n)."""


def _rule(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    model, q, v, tau, wrenches = primals
    d_model, dq, dv, dtau, d_wrenches = tangents
    tree = model.topology
    if not is_zero_tangent(dq):
        dq = configuration.velocity(tree, q, dq)
    if tree.has_mimic:
        a, by_q, by_v, W = linearized(model, q, v, tau, wrenches)
    else:
        a = save_in_checkpoint(tree_acceleration(*primals))
    dq, dv, dtau = (jnp.zeros_like(a) if is_zero_tangent(x) else x for x in (dq, dv, dtau))
    # dv' = M^-1 (dtau - dID): the changes of ID with parameters and wrenches, then with q and v
    change = _by_parameters(primals, a, d_model, d_wrenches)
    push = dtau if change is None else dtau - change
    if tree.has_mimic:
        return a, W @ (push - by_q @ dq - by_v @ dv)
    if is_zero_tangent(tangents[1]) and is_zero_tangent(tangents[2]):
        return a, _solved((model, q), push)
    return a, _changed((model, q, v, a, wrenches), (dq, dv, push))


tree_acceleration = batch_last(_acceleration, _rule)
"""``forward_dynamics`` of one state of a model without its loops, without checks."""


def acceleration(model: Model, q: Array, v: Array, tau: Array, wrenches: Array | None) -> Array:
    """``forward_dynamics`` of one state, without checks."""
    if model.topology.loops:
        return closed_dynamics(model, q, v, tau, wrenches)[0]
    return tree_acceleration(model, q, v, tau, wrenches)


def _by_parameters(primals: tuple, a: Array, d_model: Any, d_wrenches: Any) -> Array | None:
    """The change of inverse dynamics at fixed (q, v, v') with the model parameters and the external wrenches.

    None if neither changes.
    """
    model, q, v, _, wrenches = primals
    # contacts act only through wrenches
    total, besides = None, (model.contacts, model.heights)
    if not is_zero_tangent(d_model.drives) and not model.topology.has_mimic:
        # of the joint drive parameters only armatures enter, each multiplied by its own acceleration
        besides = (*besides, model.drives)
        total = d_model.drives[:, DRIVES.index("armature")] * a

    def torque(model: Model, wrenches: Array | None) -> Array:
        return newton_euler(model, q, v, a, wrenches)

    change = change_along(torque, (model, wrenches), (d_model, d_wrenches), besides)
    return total if change is None else change if total is None else total + change


@batch_last
def _small(model: Model, q: Array, v: Array, tau: Array, wrenches: Array | None) -> tuple[Array, ...]:
    a, dq, dv, W = linearization.forward(model, q, v, tau, wrenches)
    moved = dense.product(W, -jnp.concatenate([dq, dv], axis=1))
    n = a.shape[0]
    return a, moved[:, :n], moved[:, n:], W


@straight_line
def _forward(model: Model, q: Array, v: Array, tau: Array, wrenches: Array | None) -> tuple[Array, ...]:
    if model.topology.loops:
        return closed_derivatives(model, q, v, tau, wrenches)[:4]
    if model.nv <= SMALL:
        return _small(model, q, v, tau, wrenches)
    a, dq, dv, W = linearized(model, q, v, tau, wrenches)
    return a, -(W @ dq), -(W @ dv), W


def forward_dynamics_by_jacobians(model: Model, q: Array, v: Array, tau: Array, wrenches: Array | None) -> Array:
    """``forward_dynamics`` of one state, without checks, with a differentiation rule for many directions.

    ``dv' = dv'/dq dq + dv'/dv dv + M^-1 (dtau - dID)``, dID being the change of inverse dynamics at fixed (q, v, v')
    with the model parameters. The three Jacobians cost as much as one or two directions by the rule of
    ``forward_dynamics``: use this function for as many directions as degrees of freedom.
    """
    if model.topology.loops:
        return acceleration(model, q, v, tau, wrenches)  # its own rule uses the Jacobians
    return _by_jacobians(model, q, v, tau, wrenches)


@jax.custom_jvp
def _by_jacobians(model: Model, q: Array, v: Array, tau: Array, wrenches: Array | None) -> Array:
    return tree_acceleration(model, q, v, tau, wrenches)


def _rule_by_jacobians(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    model, q, v, tau, wrenches = primals
    d_model, dq, dv, dtau, d_wrenches = tangents
    a, by_q, by_v, by_tau = forward_dynamics_derivatives(model, q, v, tau, wrenches)
    # dv' = M^-1 (dtau - dID) with the Jacobians of ID
    change = _by_parameters(primals, a, d_model, d_wrenches)
    push = None if is_zero_tangent(dtau) else dtau
    if change is not None:
        push = -change if push is None else push - change
    pairs = (
        (by_q, None if is_zero_tangent(dq) else model.velocity(q, dq)),
        (by_v, None if is_zero_tangent(dv) else dv),
        (by_tau, push),
    )
    parts = [(J, x) for J, x in pairs if x is not None]
    if not parts:
        return a, jnp.zeros_like(a)
    J, x = (jnp.concatenate(each, axis=-1) for each in zip(*parts, strict=True))
    return a, J @ x


_by_jacobians.defjvp(_rule_by_jacobians, symbolic_zeros=True)
