"""Parts of the equations of motion: bias, gravity and passive forces."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from lgsim.dynamics import arguments
from lgsim.dynamics import machine as mc
from lgsim.dynamics import rows as row
from lgsim.dynamics.inverse_dynamics import newton_euler
from lgsim.dynamics.machine import full
from lgsim.multibody.configuration import kinds
from lgsim.multibody.model import Model
from lgsim.multibody.topology import Topology
from lgsim.spatial import Force, Motion, batch_last, cut, to_child, to_parent


def bias_forces(
    model: Model, q: Float[Array, "*#batch nq"], v: Float[Array, "*#batch nv"]
) -> Float[Array, "*batch nv"]:
    """What the acceleration zero takes: ``h(q, v)`` of ``M(q) a + h(q, v) = tau``, gravity included.

    Coriolis, centrifugal and gravity forces; springs, damping and dry friction are no part of it.

    Args:
        model: The machine.
        q: Configuration.
        v: Velocity, rad/s or m/s; of groups and a floating base in the child's frame.

    Returns:
        Joint forces, N m or N; of a floating base a wrench in its frame.

    Raises:
        ValueError: an array has a wrong length.
        TypeError: dtypes differ, or are not float32 or float64.

    Source: Ploen and Park 1999, (11)-(14) at zero acceleration.
    """
    return arguments.call(_bias, model, q=(q, "q"), v=(v, "v"))


def gravity_forces(model: Model, q: Float[Array, "*batch nq"]) -> Float[Array, "*batch nv"]:
    """The joint forces that hold the machine against gravity: ``g(q) = dV/dq``, V being ``potential_energy``.

    Args:
        model: The machine.
        q: Configuration.

    Returns:
        Joint forces, N m or N; of a floating base a wrench in its frame.

    Raises:
        ValueError: q has a wrong length.
        TypeError: dtypes differ, or are not float32 or float64.

    Source: Ploen and Park 1999, (11)-(14) at rest.
    """
    return arguments.call(_gravity, model, q=(q, "q"))


def passive_forces(
    model: Model, q: Float[Array, "*#batch nq"], v: Float[Array, "*#batch nv"]
) -> Float[Array, "*batch nv"]:
    """What dampers and springs in the joints add to tau: ``- damping v - E^T stiffness (q - rest)``, ``dq/dt = E v``.

    E is the identity but for a planar joint, whose springs pull along the parent's axes. Springs are those of joints
    with one number for each degree of freedom; the stiffness of spherical and free joints is not used. Dry friction is
    left out: it jumps where a joint stops, so that a smooth method needs a model of it, which is the caller's choice;
    ``model.friction`` has its size.

    Args:
        model: The machine.
        q: Configuration.
        v: Velocity, rad/s or m/s; of groups and a floating base in the child's frame.

    Returns:
        Joint forces on the machine, N m or N: ``M(q) a + h(q, v) = tau + passive_forces``.

    Raises:
        ValueError: an array has a wrong length.
        TypeError: dtypes differ, or are not float32 or float64.
    """
    return arguments.call(_passive, model, q=(q, "q"), v=(v, "v"))


@batch_last
def _bias(model: Model, q: Array, v: Array) -> Array:
    q, v = full(model, q, v)
    return newton_euler(model, q, v, jnp.zeros_like(v))


@batch_last
def _gravity(model: Model, q: Array) -> Array:
    (q,) = full(model, q)
    tree = model.topology
    m = mc.machine(model, q)
    order = mc.sweep(tree)
    _, lift = mc.root_motion(model, m, jnp.zeros((tree.nv, *m.batch), q.dtype))

    def outward(A: Motion, x: tuple) -> tuple[Motion, Force]:
        T, inertia = x
        A = cut(to_child(T, A))
        return A, cut(inertia.momentum(A))

    def inward(children: Force, x: tuple) -> tuple[Force, Array]:
        T, a, b, F = x
        F = cut(F + children)
        return cut(to_parent(T, F)), mc.force_along(a, b, F)

    weights = order.outward(outward, lift, (m.poses, m.inertias), m.batch)
    nothing = Force(*jax.tree.map(jnp.zeros_like, tuple(lift)))
    total, tau = order.inward(inward, nothing, (m.poses, m.a, m.b, weights), m.batch)
    if m.base is not None:
        tau = jnp.concatenate([mc.stack(m.base.inertia.momentum(lift) + total), tau])
    return row.gathered(model, tau)


def _passive(model: Model, q: Array, v: Array) -> Array:
    places, speeds = sprung(model.topology)
    stretch = q[places] - model.rest[speeds]
    pull = jnp.zeros_like(q).at[places].set(-model.stiffness[speeds] * stretch)
    _, transposed = jax.vjp(lambda v: model.rate(q, v), v)
    return transposed(pull)[0] - model.damping * v


def sprung(tree: Topology) -> tuple[np.ndarray, np.ndarray]:
    """(places in q, places in v) of the coordinates of joints that have one number for each degree of freedom."""
    found = [(q.ravel(), v.ravel()) for joint, q, v in kinds(tree) if joint.nq == joint.nv]
    nothing = (np.zeros(0, int), np.zeros(0, int))
    q, v = (np.concatenate(parts) for parts in zip(nothing, *found, strict=True))
    return q, v
