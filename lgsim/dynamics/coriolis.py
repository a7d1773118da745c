"""The Coriolis matrix of the Christoffel symbols, the connection that belongs to the mass matrix as a metric."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from lgsim.dynamics import matrix_form, validation
from lgsim.lie import se3, so3
from lgsim.multibody.model import Model


def coriolis_matrix(
    model: Model, q: Float[Array, "*#batch nq"], v: Float[Array, "*#batch nv"]
) -> Float[Array, "*batch nv nv"]:
    """The Coriolis matrix C with ``tau = M a + C v + gravity`` and ``dM/dt - 2 C`` skew-symmetric.

    ``C = sum_b J_b^T (I_b dJ_b/dt + B_b J_b)``, ``B_b = 1/2 (V x* I + (I V) x* - I V x)`` in fixed axes. It is the
    matrix of the Christoffel symbols, ``C(v) w = C(w) v``; for joints that are groups, that of the Levi-Civita
    connection, ``C(v) w - C(w) v = M [v, w]``.

    Args:
        q: Configuration.
        v: Velocity.

    Raises:
        ValueError: an array has a wrong length.
        TypeError: dtypes differ, or are not float32 or float64.

    Source: Echeandia and Wensing, Numerical methods to compute the Coriolis matrix and Christoffel symbols for
    rigid-body systems, Journal of Computational and Nonlinear Dynamics 16(9), 2021.
    """
    return validation.call(_core, model, q=(q, "q"), v=(v, "v"))


@jax.jit
def _core(model: Model, q: Array, v: Array) -> Array:
    machine = matrix_form.bodies(model, q)
    J, I = machine.jacobians, machine.inertias  # noqa: E741  the symbol of the formula
    V = J @ v
    momenta = (I @ V[..., None])[..., 0]
    # B_b = 1/2 (V x* I + (I V) x* - I V x)
    ad = se3.ad(V)
    B = 0.5 * (_carried_by(momenta) - ad.mT @ I - I @ ad)
    return jnp.sum(J.mT @ (I @ matrix_form.jacobian_rates(model, machine, v) + B @ J), axis=0)


def _carried_by(F: Float[Array, "*batch 6"]) -> Float[Array, "*batch 6 6"]:
    """The skew matrix that maps a motion V to the rate ``(w x f, w x n + v x f)`` of a wrench F that moves with V."""
    f, n = so3.hat(F[..., :3]), so3.hat(F[..., 3:])
    top = jnp.concatenate([jnp.zeros_like(f), -f], axis=-1)
    return jnp.concatenate([top, jnp.concatenate([-f, -n], axis=-1)], axis=-2)
