"""Forward dynamics whose derivative serves many directions at once: the Jacobians of a state, then products."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array

from lgsim.dynamics.derivatives import forward_dynamics_derivatives
from lgsim.dynamics.forward_dynamics import acceleration, by_parameters, still
from lgsim.multibody.model import Model


@jax.custom_jvp
def forward_dynamics_by_jacobians(model: Model, q: Array, v: Array, tau: Array, wrenches: Array | None) -> Array:
    """``forward_dynamics`` of one state, without checks, with another rule of differentiation.

    ``dv' = dv'/dq dq + dv'/dv dv + M^-1 (dtau - dID)``, dID being the change of inverse dynamics at fixed (q, v, v')
    with the numbers of the model. The three Jacobians cost as much as one or two directions by the rule of
    ``forward_dynamics``: take this one where there are as many directions as degrees of freedom.
    """
    return acceleration(model, q, v, tau, wrenches)


def _rule(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    model, q, v, tau, wrenches = primals
    d_model, dq, dv, dtau, d_wrenches = tangents
    a, by_q, by_v, by_tau = forward_dynamics_derivatives(model, q, v, tau, wrenches)
    change = by_parameters(primals, a, d_model, d_wrenches)
    push = None if still(dtau) else dtau
    if change is not None:
        push = -change if push is None else push - change
    pairs = (
        (by_q, None if still(dq) else model.velocity(q, dq)),
        (by_v, None if still(dv) else dv),
        (by_tau, push),
    )
    parts = [(J, x) for J, x in pairs if x is not None]
    if not parts:
        return a, jnp.zeros_like(a)
    J, x = (jnp.concatenate(each, axis=-1) for each in zip(*parts, strict=True))
    return a, J @ x


forward_dynamics_by_jacobians.defjvp(_rule, symbolic_zeros=True)
