"""Forward dynamics whose derivatives serve many directions at once: all Jacobians of a state, then products."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jax.custom_derivatives import SymbolicZero

from lgsim.dynamics.derivatives import forward_dynamics_derivatives
from lgsim.dynamics.forward_dynamics import forward_dynamics
from lgsim.dynamics.inverse_dynamics import inverse_dynamics
from lgsim.multibody.model import DRIVES, Model


@jax.custom_jvp
def acceleration(model: Model, q: Array, v: Array, tau: Array, wrenches: Array | None) -> Array:
    """``forward_dynamics`` of one state.

    ``dv' = dv'/dq dq + dv'/dv dv + M^-1 (dtau - dID)``, dID being the change of inverse dynamics at fixed (q, v, v')
    with the numbers of the model. The three Jacobians cost as much as one or two directions by the rule of
    ``forward_dynamics``.
    """
    return forward_dynamics(model, q, v, tau, wrenches)


def _rule(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    model, q, v, tau, wrenches = primals
    d_model, dq, dv, dtau, d_wrenches = tangents
    a, by_q, by_v, by_tau = forward_dynamics_derivatives(model, q, v, tau, wrenches)
    leaves, structure = jax.tree.flatten((model, wrenches))
    changes = jax.tree.leaves((d_model, d_wrenches), is_leaf=_still)
    moving = [i for i, change in enumerate(changes) if not _still(change)]
    push = None if _still(dtau) else dtau
    if not _still(d_model.drives) and not model.topology.has_mimic:
        # of the drives only armatures enter, each by its own acceleration
        moving = [i for i in moving if leaves[i] is not model.drives]
        change = d_model.drives[:, DRIVES.index("armature")] * a
        push = -change if push is None else push - change
    if moving:

        def torque(*numbers: Array) -> Array:
            full = list(leaves)
            for i, number in zip(moving, numbers, strict=True):
                full[i] = number
            model, wrenches = jax.tree.unflatten(structure, full)
            return inverse_dynamics(model, q, v, a, wrenches)

        _, change = jax.jvp(torque, tuple(leaves[i] for i in moving), tuple(changes[i] for i in moving))
        push = -change if push is None else push - change
    along = None if _still(dq) else model.velocity(q, dq)
    parts = [(J, d) for J, d in ((by_q, along), (by_v, None if _still(dv) else dv), (by_tau, push)) if d is not None]
    if not parts:
        return a, jnp.zeros_like(a)
    J, d = (jnp.concatenate(x, axis=-1) for x in zip(*parts, strict=True))
    return a, J @ d


def _still(tangent: Any) -> bool:
    return isinstance(tangent, SymbolicZero)


acceleration.defjvp(_rule, symbolic_zeros=True)
