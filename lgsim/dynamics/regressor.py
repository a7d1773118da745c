"""Regressors: joint forces and energies are linear in the ten inertial parameters of each body."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from lgsim.dynamics import matrix_form, validation
from lgsim.lie import se3, so3
from lgsim.multibody.model import Model


class EnergyRegressor(NamedTuple):
    """Rows (..., 10 n) whose products with the inertial parameters are energies in J."""

    kinetic: Array
    potential: Array


def torque_regressor(
    model: Model, q: Float[Array, "*#batch nq"], v: Float[Array, "*#batch nv"], a: Float[Array, "*#batch nv"]
) -> Float[Array, "*batch nv parameters"]:
    """The inertial regressor Y, ``inverse_dynamics(model, q, v, a) = Y pi``, without the armature.

    ``pi = model.inertias.reshape(-1)`` and ``Y_b = J_b^T (Phi(A_b) - ad_{V_b}^T Phi(V_b))`` for body b, where
    ``Phi(V) pi = I V`` is its momentum.

    Args:
        model: The model; its inertias are not used.
        q: Configuration.
        v: Velocity.
        a: Time derivative of v, componentwise.

    Returns:
        (..., nv, 10 n), bodies in the order of the model, each with the parameters of ``lgsim.multibody.inertia``.

    Raises:
        ValueError: an array has a wrong length.
        TypeError: dtypes differ, or are not float32 or float64.

    Source: Atkeson, An, Hollerbach, Estimation of inertial parameters of manipulator loads and links, International
    Journal of Robotics Research 5(3), 1986.
    """
    return validation.call(_torque, model, q=(q, "q"), v=(v, "v"), a=(a, "v"))


def energy_regressor(model: Model, q: Float[Array, "*#batch nq"], v: Float[Array, "*#batch nv"]) -> EnergyRegressor:
    """Energy regressors, ``T = kinetic pi`` and ``U = potential pi``, without the armature.

    ``pi = model.inertias.reshape(-1)``. The potential energy is that of gravity, zero at the world origin, without
    springs.

    Args:
        model: The model; its inertias are not used.
        q: Configuration.
        v: Velocity.

    Returns:
        Two arrays (..., 10 n), with the columns of ``torque_regressor``.

    Raises:
        ValueError: an array has a wrong length.
        TypeError: dtypes differ, or are not float32 or float64.
    """
    return validation.call(_energy, model, q=(q, "q"), v=(v, "v"))


def momentum_regressor(V: Float[Array, "*batch 6"]) -> Float[Array, "*batch 6 10"]:
    """``Phi(V)``, ``Phi(V) pi = (m v - h x w, I w + h x v)``: the momentum of a body with parameters pi.

    Args:
        V: Twist (v, w) of the body in its own frame.
    """
    v, w = V[..., :3], V[..., 3:]
    x, y, z = (w[..., i] for i in range(3))
    zero = jnp.zeros_like(x)
    inertia = [[x, y, zero, z, zero, zero], [zero, x, y, zero, z, zero], [zero, zero, zero, x, y, z]]
    turning = jnp.stack([jnp.stack(entries, axis=-1) for entries in inertia], axis=-2)
    empty = jnp.zeros_like(turning)
    top = jnp.concatenate([v[..., None], so3.hat(w), empty], axis=-1)
    bottom = jnp.concatenate([empty[..., :1], -so3.hat(v), turning], axis=-1)
    return jnp.concatenate([top, bottom], axis=-2)


@jax.jit
def _torque(model: Model, q: Array, v: Array, a: Array) -> Array:
    machine = matrix_form.bodies(model, q)
    back = se3.inverse(machine.poses)
    own = se3.Ad(back) @ machine.jacobians
    V = own @ v
    A = machine.jacobians @ a + matrix_form.jacobian_rates(model, machine, v) @ v + matrix_form.fall(model)[None]
    A = se3.Ad_action(back, A)
    wrenches = momentum_regressor(A) - se3.ad(V).mT @ momentum_regressor(V)
    return jnp.moveaxis(own.mT @ wrenches, 0, 1).reshape(model.nv, -1)


@jax.jit
def _energy(model: Model, q: Array, v: Array) -> EnergyRegressor:
    machine = matrix_form.bodies(model, q)
    V = se3.Ad_action(se3.inverse(machine.poses), machine.jacobians @ v)
    kinetic = 0.5 * (momentum_regressor(V).mT @ V[..., None])
    places = machine.poses[:, :3, 3] + machine.origins
    down = -model.gravity
    parts = [(places @ down)[:, None], down @ machine.poses[:, :3, :3], jnp.zeros((len(V), 6), V.dtype)]
    return EnergyRegressor(kinetic.reshape(-1), jnp.concatenate(parts, axis=-1).reshape(-1))
