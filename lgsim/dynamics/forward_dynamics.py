"""Forward dynamics, with a derivative rule of its own in place of one through the recursion."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jax.custom_derivatives import SymbolicZero
from jaxtyping import Float

from lgsim.dynamics import arguments, articulated, linearization, products
from lgsim.dynamics.inverse_dynamics import newton_euler
from lgsim.multibody import configuration
from lgsim.multibody.model import Model
from lgsim.spatial import batch_last

DENSE = 12
"""Up to this many degrees of freedom a derivative is taken from the closed form of all Jacobians, O(n^3) but short.

Beyond, a product with the Jacobian is formed without it, O(n).
"""


def forward_dynamics(
    model: Model,
    q: Float[Array, "*#batch nq"],
    v: Float[Array, "*#batch nv"],
    tau: Float[Array, "*#batch nv"],
    wrenches: Float[Array, "*#batch bodies 6"] | None = None,
) -> Float[Array, "*batch nv"]:
    """The acceleration v' under joint forces tau: ``M(q) v' = tau - h(q, v) + J^T F``.

    The articulated-body recursion, O(n); where a joint mimics another one the reduced mass matrix is factored instead.
    Derivatives in both modes and any order come from ``dv' = M^-1 (dtau - dID)``, with the derivatives of inverse
    dynamics at fixed v' in closed form.

    Args:
        model: The machine; each of its numbers can be differentiated.
        q: Configuration.
        v: Velocity, rad/s or m/s; of groups and a floating base in the child's frame.
        tau: Joint forces, N m or N; friction, damping and springs of the model are not in it, see ``passive_forces``.
        wrenches: External wrench (f, n) on each body, in the body's frame at its origin, N and N m.

    Returns:
        v', number by number the derivative of v.

    Raises:
        ValueError: an array has a wrong length.
        TypeError: dtypes differ, or are not float32 or float64.

    Source: Featherstone, Rigid Body Dynamics Algorithms, 2008, Table 7.1; Ploen and Park 1999, (50)-(68).
    """
    named = {"q": (q, "q"), "v": (v, "v"), "tau": (tau, "v"), "wrenches": (wrenches, "wrenches")}
    return arguments.call(acceleration, model, **named)


@jax.custom_jvp
def acceleration(model: Model, q: Array, v: Array, tau: Array, wrenches: Array | None) -> Array:
    """``forward_dynamics`` of one state, without checks."""
    if model.topology.has_mimic:
        return linearized(model, q, v, tau, wrenches)[0]
    return _articulated(model, q, v, tau, wrenches)


_articulated = batch_last(articulated.forward)
linearized = batch_last(linearization.forward)
_change = batch_last(products.change)
_pulled = batch_last(products.pulled)


def _rule(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    model, q, v, tau, wrenches = primals
    d_model, dq, dv, dtau, d_wrenches = tangents
    tree = model.topology
    dense, moved = tree.nv <= DENSE or tree.has_mimic, not (_still(dq) and _still(dv))
    if not _still(dq):
        dq = configuration.velocity(tree, q, dq)
    if dense:
        a, by_q, by_v, W = linearized(model, q, v, tau, wrenches)
    else:
        a = acceleration(*primals)
    dq, dv, push = (jnp.zeros_like(a) if _still(x) else x for x in (dq, dv, dtau))
    push = push - _by_parameters(primals, a, d_model, d_wrenches)
    if dense:
        return a, W @ (push - by_q @ dq - by_v @ dv)
    return a, _changed(model, q, v, a, wrenches, (dq, dv, push)) if moved else _solved(model, q, push)


acceleration.defjvp(_rule, symbolic_zeros=True)


def _solved(model: Model, q: Array, x: Array) -> Array:
    """``M(q)^-1 x`` of one state at O(n), linear in x for both modes."""
    still, zero = model.replace(gravity=jnp.zeros_like(model.gravity)), jnp.zeros_like(x)

    def matvec(y: Array) -> Array:
        return newton_euler(still, q, zero, y)

    def solve(_: Any, b: Array) -> Array:
        return _articulated(still, q, zero, b, None)

    return jax.lax.custom_linear_solve(matvec, x, solve, symmetric=True)


def _changed(model: Model, q: Array, v: Array, a: Array, wrenches: Array | None, x: tuple) -> Array:
    """``M^-1 (dtau - dID)`` of x = (dq, dv, dtau) of one state at O(n), linear in x for both modes.

    JAX takes a function's own transpose only from a linear solve, so this is one: (dq, dv, dtau) -> (dq, dv, dv') is
    the inverse of a map that inverse dynamics gives.
    """
    tree = model.topology

    def matvec(y: tuple) -> tuple:
        dq, dv, da = y

        def torque(q: Array, v: Array, a: Array) -> Array:
            return newton_euler(model, q, v, a, wrenches)

        changes = (configuration.rate(tree, q, dq), dv, da)
        return dq, dv, jax.jvp(torque, (q, v, a), changes)[1]

    def solve(_: Any, b: tuple) -> tuple:
        return b[0], b[1], _change(model, q, v, a, wrenches, *b)

    def transposed(_: Any, b: tuple) -> tuple:
        dq, dv, dtau = _pulled(model, q, v, a, wrenches, b[2])
        return b[0] + dq, b[1] + dv, dtau

    return jax.lax.custom_linear_solve(matvec, x, solve, transposed)[2]


def _by_parameters(primals: tuple, a: Array, d_model: Any, d_wrenches: Any) -> Array:
    """The change of inverse dynamics at fixed (q, v, v') with the model's numbers and the external wrenches."""
    model, q, v, _, wrenches = primals
    leaves, structure = jax.tree.flatten((model, wrenches))
    changes = jax.tree.leaves((d_model, d_wrenches), is_leaf=_still)
    moving = [i for i, change in enumerate(changes) if not _still(change)]
    if not moving:
        return jnp.zeros_like(a)

    def torque(*numbers: Array) -> Array:
        full = list(leaves)
        for i, number in zip(moving, numbers, strict=True):
            full[i] = number
        model, wrenches = jax.tree.unflatten(structure, full)
        return newton_euler(model, q, v, a, wrenches)

    return jax.jvp(torque, tuple(leaves[i] for i in moving), tuple(changes[i] for i in moving))[1]


def _still(tangent: Any) -> bool:
    return isinstance(tangent, SymbolicZero)
