"""All Jacobians of inverse and forward dynamics as functions of their own."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from lgsim.dynamics import arguments, linearization, matrices
from lgsim.dynamics.forward_dynamics import linearized
from lgsim.multibody.model import Model
from lgsim.spatial import batch_last

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
    return InverseDynamicsDerivatives(*arguments.call(_inverse, model, **named))


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
    return ForwardDynamicsDerivatives(*arguments.call(_forward, model, **named))


@batch_last
def _inverse(model: Model, q: Array, v: Array, a: Array, wrenches: Array | None) -> linearization.Linear:
    return linearization.inverse(model, q, v, a, wrenches)


@batch_last
def _small(model: Model, q: Array, v: Array, tau: Array, wrenches: Array | None) -> tuple[Array, ...]:
    a, dq, dv, W = linearization.forward(model, q, v, tau, wrenches)
    moved = matrices.product(W, -jnp.concatenate([dq, dv], axis=1))
    n = a.shape[0]
    return a, moved[:, :n], moved[:, n:], W


def _forward(model: Model, q: Array, v: Array, tau: Array, wrenches: Array | None) -> tuple[Array, ...]:
    if model.nv <= SMALL:
        return _small(model, q, v, tau, wrenches)
    a, dq, dv, W = linearized(model, q, v, tau, wrenches)
    return a, -(W @ dq), -(W @ dv), W
