"""Kinetic and potential energy."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from lgsim._compile.spatial import Inertia, Motion
from lgsim._compile.xla import batch_last, control_flow, fusion_barrier
from lgsim.dynamics import row_tree, validation
from lgsim.dynamics.kinematics import row_twists
from lgsim.dynamics.momentum import mass_moment
from lgsim.dynamics.passive_forces import beyond, coordinates, stop_energy
from lgsim.dynamics.row_tree import full
from lgsim.multibody.model import Model


def kinetic_energy(
    model: Model, q: Float[Array, "*#batch nq"], v: Float[Array, "*#batch nv"]
) -> Float[Array, "*batch"]:
    """The kinetic energy ``v^T M(q) v / 2 = sum_i V_i^T I_i V_i / 2 + armature v^2 / 2``.

    Args:
        q: Configuration.
        v: Velocity, rad/s or m/s; for group joints and a floating base in the child's frame.

    Returns:
        J.

    Raises:
        ValueError: an array has a wrong length.
        TypeError: dtypes differ, or are not float32 or float64.
    """
    return validation.call(_kinetic, model, q=(q, "q"), v=(v, "v"))


def potential_energy(model: Model, q: Float[Array, "*batch nq"]) -> Float[Array, "*batch"]:
    """The gravitational potential energy of the bodies, ``- g . sum_i m_i c_i``, zero at the world origin.

    The energy of springs is ``spring_energy``.

    Args:
        q: Configuration.

    Returns:
        J.

    Raises:
        ValueError: q has a wrong length.
        TypeError: dtypes differ, or are not float32 or float64.
    """
    return validation.call(_potential, model, q=(q, "q"))


def spring_energy(model: Model, q: Float[Array, "*batch nq"]) -> Float[Array, "*batch"]:
    """The elastic energy of the joint springs and of the joint limit springs.

    For joints with one coordinate per degree of freedom it is
    ``sum_j stiffness_j (q_j - rest_j)^2/2 + limit_stiffness_j e_j^2/2``, where e_j is the distance of q_j beyond a
    limit. For the limits of spherical joints it is ``limit_stiffness_j e^2/2``, as in ``passive_forces``.

    Args:
        q: Configuration.

    Returns:
        J.

    Raises:
        ValueError: q has a wrong length.
        TypeError: dtypes differ, or are not float32 or float64.
    """
    return validation.call(_springs, model, q=(q, "q"))


def _kinetic(model: Model, q: Array, v: Array) -> Array:
    return _of_bodies(model, q, v) + 0.5 * jnp.sum(model.armature * v * v)


@batch_last
def _of_bodies(model: Model, q: Array, v: Array) -> Array:
    q, v = full(model, q, v)
    m = row_tree.machine(model, q)
    base, rows = row_twists(model, m, v)

    def add(total: Array, x: tuple[Inertia, Motion]) -> tuple[Array, None]:
        inertia, V = x
        return total + inertia.momentum(V).power(V), None

    zero = jnp.zeros(m.batch, q.dtype)
    twice = zero if m.base is None else m.base.inertia.momentum(base).power(base)
    if m.a.shape[0]:
        twice = control_flow.scan(add, fusion_barrier(zero + twice), (m.inertias, rows))[0]
    return 0.5 * twice


@batch_last
def _potential(model: Model, q: Array) -> Array:
    (q,) = full(model, q)
    m = row_tree.machine(model, q)
    mass, h = mass_moment(model, m)
    if m.base is not None:
        h = m.base.pose.R @ h + m.base.pose.p * mass
    g = model.gravity
    return -(g[0] * h.x + g[1] * h.y + g[2] * h.z)


def _springs(model: Model, q: Array) -> Array:
    x, held = coordinates(model, q)
    each = model.stiffness * (x - model.rest) ** 2 + model.limit_stiffness * beyond(model, x) ** 2
    return 0.5 * jnp.sum(jnp.where(held, each, 0)) + stop_energy(model, q)
