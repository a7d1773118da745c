"""The inverse of the mass matrix and its product with a vector in O(n): forward dynamics at rest without gravity."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from lgsim.dynamics import validation
from lgsim.dynamics.forward_dynamics import tree_acceleration
from lgsim.multibody.model import Model


def solve_mass_matrix(
    model: Model, q: Float[Array, "*#batch nq"], x: Float[Array, "*#batch nv"]
) -> Float[Array, "*batch nv"]:
    """``M(q)^-1 x``: the acceleration by joint forces x at rest without gravity.

    By the articulated-body algorithm, O(n); with mimic joints by the reduced mass matrix.

    Args:
        q: Configuration.
        x: Joint forces or momenta; for group joints and a floating base in the child's frame.

    Returns:
        Accelerations, or velocities if x are momenta.

    Raises:
        ValueError: an array has a wrong length.
        TypeError: dtypes differ, or are not float32 or float64.

    Source: Featherstone, Robot Dynamics Algorithms, 1987, chapter 6; Ploen and Park 1999, Proposition 2.
    """
    return validation.call(_solve, model, q=(q, "q"), x=(x, "v"))


def inverse_mass_matrix(model: Model, q: Float[Array, "*#batch nq"]) -> Float[Array, "*batch nv nv"]:
    """The inverse mass matrix ``M(q)^-1``, symmetric; column j is the acceleration by a unit force on joint j.

    Args:
        q: Configuration.

    Raises:
        ValueError: an array has a wrong length.
        TypeError: dtypes differ, or are not float32 or float64.

    Source: Ploen and Park 1999, Proposition 2.
    """
    return validation.call(_inverse, model, q=(q, "q"))


@jax.jit
def _solve(model: Model, q: Array, x: Array) -> Array:
    return tree_acceleration(model.replace(gravity=jnp.zeros_like(model.gravity)), q, jnp.zeros_like(x), x, None)


@jax.jit
def _inverse(model: Model, q: Array) -> Array:
    columns = jax.vmap(_solve, in_axes=(None, None, 0))(model, q, jnp.eye(model.nv, dtype=q.dtype))
    return 0.5 * (columns + columns.mT)
