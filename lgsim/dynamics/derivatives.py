"""All Jacobians of inverse and forward dynamics as functions of their own."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from lgsim.dynamics import linearization, validation
from lgsim.dynamics.forward_dynamics import acceleration, by_parameters, linearized, still
from lgsim.linalg import dense
from lgsim.multibody.model import Model
from lgsim.xla import batch_last

SMALL = 16
"""Up to this many degrees of freedom the product with the inverse mass matrix stays inside the native function."""


class InverseDynamicsDerivatives(NamedTuple):
    """Joint forces (..., nv) and their derivatives (..., nv, nv); that by the acceleration is the mass matrix."""

    tau: Array
    dq: Array
    dv: Array
    da: Array


class ForwardDynamicsDerivatives(NamedTuple):
    """Accelerations (..., nv) and their derivatives (..., nv, nv); that by the forces is the inverse mass matrix."""

    a: Array
    dq: Array
    dv: Array
    dtau: Array


def inverse_dynamics_derivatives(
    model: Model,
    q: Float[Array, "*#batch nq"],
    v: Float[Array, "*#batch nv"],
    a: Float[Array, "*#batch nv"],
    wrenches: Float[Array, "*#batch bodies 6"] | None = None,
) -> InverseDynamicsDerivatives:
    """Inverse dynamics and its derivatives by q, v and a, in closed form.

    ``dq[i, j]`` is the derivative of tau_i along the tangent: of ``inverse_dynamics(model, retract(q, s e_j), v, a)``
    by s at 0, at fixed v and a. Wrenches stay fixed in the bodies' frames.

    Args:
        model: The machine.
        q, v, a: Configuration, velocity and its derivative, as for ``inverse_dynamics``.
        wrenches: External wrenches in the bodies' frames.

    Raises:
        ValueError, TypeError: as ``inverse_dynamics``.

    Source: Singh, Russell, Wensing 2022; see ``linearization.py``.
    """
    named = {"q": (q, "q"), "v": (v, "v"), "a": (a, "v"), "wrenches": (wrenches, "wrenches")}
    return InverseDynamicsDerivatives(*validation.call(_inverse, model, **named))


def forward_dynamics_derivatives(
    model: Model,
    q: Float[Array, "*#batch nq"],
    v: Float[Array, "*#batch nv"],
    tau: Float[Array, "*#batch nv"],
    wrenches: Float[Array, "*#batch bodies 6"] | None = None,
) -> ForwardDynamicsDerivatives:
    """Forward dynamics and its derivatives by q, v and tau, in closed form: ``-M^-1 dID``.

    ``dq[i, j]`` is the derivative of v'_i along the tangent, as for ``inverse_dynamics_derivatives``.

    Args:
        model: The machine.
        q, v, tau: Configuration, velocity and joint forces, as for ``forward_dynamics``.
        wrenches: External wrenches in the bodies' frames, which stay fixed there.

    Raises:
        ValueError, TypeError: as ``forward_dynamics``.

    Source: Carpentier and Mansard, Analytical derivatives of rigid body dynamics algorithms, RSS 2018.
    """
    named = {"q": (q, "q"), "v": (v, "v"), "tau": (tau, "v"), "wrenches": (wrenches, "wrenches")}
    return ForwardDynamicsDerivatives(*validation.call(_forward, model, **named))


@batch_last
def _inverse(model: Model, q: Array, v: Array, a: Array, wrenches: Array | None) -> linearization.Linear:
    return linearization.inverse(model, q, v, a, wrenches)


@batch_last
def _small(model: Model, q: Array, v: Array, tau: Array, wrenches: Array | None) -> tuple[Array, ...]:
    a, dq, dv, W = linearization.forward(model, q, v, tau, wrenches)
    moved = dense.product(W, -jnp.concatenate([dq, dv], axis=1))
    n = a.shape[0]
    return a, moved[:, :n], moved[:, n:], W


def _forward(model: Model, q: Array, v: Array, tau: Array, wrenches: Array | None) -> tuple[Array, ...]:
    if model.nv <= SMALL:
        return _small(model, q, v, tau, wrenches)
    a, dq, dv, W = linearized(model, q, v, tau, wrenches)
    return a, -(W @ dq), -(W @ dv), W


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
