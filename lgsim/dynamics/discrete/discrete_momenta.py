"""The discrete Lagrangian of a model and its momenta at both ends of a step, the discrete Legendre transforms.

    L_d(q0, q1) = sum over bodies [ m |c1 - c0|^2 / (2 h) + phi . I phi / (2 h) ]
                  + sum over drives [ armature d^2 / (2 h) ] - h (V(q0) + V(q1)) / 2,

where c is the center of mass, I the inertia about it, phi the discrete rotation vector (``rotation_maps.py``), d the
displacement of a joint, ``q1 = retract(q0, d)``, and V the potential of gravity. The discrete momentum of a body is

    w = ( m (c1 - c0) / h,  c0 x m (c1 - c0) / h + K^T I phi / h )

It is the same at both ends in one frame, since it is conserved for a free body. With the screws S at t_k, the screws
``S' = Ad_E S`` at t_(k+1), and the gravity forces g and g' there:

    p_k = S . sum w + armature d / h - h/2 g,      p_(k+1) = S' . sum w + armature d / h + h/2 g'.

Source: Marsden and West 2001, Discrete mechanics and variational integrators, (1.3.1); Lee, Liu, Park, Srinivasa, A
linear-time variational integrator for multibody systems, WAFR 2016, Algorithm 2.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float

from lgsim._compile.spatial import Force, Motion, Vec
from lgsim._compile.xla import fusion_barrier, native_derivative, native_with_derivatives
from lgsim.dynamics import linearization, row_tree, validation
from lgsim.dynamics import rows as row
from lgsim.dynamics.discrete.displacement import Displacement, Node, at_rest, following, node, own_displacements
from lgsim.dynamics.discrete.rotation_maps import QUATERNION, RotationMap, rotation_map
from lgsim.dynamics.inverse_dynamics import inverse_dynamics
from lgsim.dynamics.inverse_mass import solve_mass_matrix
from lgsim.dynamics.passive_forces import batch_forces
from lgsim.multibody import configuration
from lgsim.multibody.model import Model, check_model
from lgsim.support import check
from lgsim.support.check import is_traced


def discrete_momenta(
    model: Model,
    q0: Float[Array, "*#batch nq"],
    q1: Float[Array, "*#batch nq"],
    dt: Float[ArrayLike, "*one"],
    map: str | RotationMap = QUATERNION,
) -> tuple[Float[Array, "*batch nv"], Float[Array, "*batch nv"]]:
    """Discrete momenta at both ends of a step, ``p0 = -D1 L_d``, ``p1 = D2 L_d``: the discrete Legendre transforms.

    D1 and D2 are derivatives along ``retract(q, e)``, so that p is conjugate to the velocities of the model. L_d
    includes gravity, but no damping, springs, friction or joint limits. No body may rotate by half a turn or more in
    the step.

    Args:
        q0: Configuration at the start of the step.
        q1: Configuration at its end.
        dt: Step size, s.
        map: The discrete rotation vector: "quaternion", "cayley" or "exp", or one of ``ROTATION_MAPS``.

    Returns:
        Momenta, kg m^2/s or kg m/s; for group joints and a floating base in the child's frame.

    Raises:
        ValueError: an array has a wrong length, dt is zero or not finite, the map is unknown.
        TypeError: dtypes differ, or are not float32 or float64.

    Source: Marsden and West 2001, (1.3.1); the L_d of this file.
    """
    check_model(model)
    kind, h = rotation_map(map), _step_length(dt, model.dtype)
    d = model.difference(q0, q1)

    def both(model: Model, q: Array, d: Array) -> tuple[Array, Array]:
        return legendre(kind, False)(model, q, d, h)

    return validation.call(both, model, q=(q0, "q"), d=(d, "v"))


def _step_length(dt: Float[ArrayLike, "*one"], dtype: jnp.dtype) -> Float[Array, ""]:
    """Check dt and convert it to the dtype.

    Raises:
        TypeError: it is not a number.
        ValueError: it is zero, not finite or not a scalar.
    """
    check.number("dt", dt)
    if not is_traced(dt) and not (np.isfinite(np.asarray(dt)) and np.asarray(dt)):
        raise ValueError(f"dt: expected a finite nonzero step, got {dt} s")
    return jnp.asarray(dt, dtype)


def generalized_momentum(
    model: Model, q: Float[Array, "*#batch nq"], v: Float[Array, "*#batch nv"]
) -> Float[Array, "*batch nv"]:
    """``p = M(q) v``, the momentum of each degree of freedom, O(n).

    Args:
        q: Configuration.
        v: Velocity, rad/s or m/s; for group joints and a floating base in the child's frame.

    Returns:
        kg m^2/s or kg m/s; for a floating base, its momentum about the base origin, in its frame.

    Raises:
        ValueError: an array has a wrong length.
        TypeError: dtypes differ, or are not float32 or float64.
    """
    check_model(model)
    q, v = check.arguments(model.dtype, q=(q, (model.nq,)), v=(v, (model.nv,)))
    return inverse_dynamics(model.replace(gravity=jnp.zeros_like(model.gravity)), q, jnp.zeros_like(v), v)


def velocity_of_momentum(
    model: Model, q: Float[Array, "*#batch nq"], p: Float[Array, "*#batch nv"]
) -> Float[Array, "*batch nv"]:
    """The velocity of a momentum, ``v = M(q)^-1 p``, O(n); arguments and errors as for ``generalized_momentum``."""
    check_model(model)
    return solve_mass_matrix(model, q, check.floating("p", p, model.nv, dtype=model.dtype))


# Functions of one state, with the batch axis last.


class Moved(NamedTuple):
    """A model at t_k and its state after a step, by rows."""

    at: Node
    s: Array
    """Scalar part of the unit quaternion of each body's rotation."""
    phi: Vec
    wrench: Force
    """Discrete momentum of each body."""
    center: Vec
    """Center of mass at t_(k+1)."""
    screws: Motion
    """The screw S' of each row."""


def moved(kind: RotationMap, model: Model, at: Node, d: Array, h: Array) -> Moved:
    """The step with displacements d (nv, *batch) of the degrees of freedom and length h (1, *batch)."""
    tree, rate = model.topology, 1 / h[0]
    known, alone = own_displacements(tree, at, row.speeds(model, d))

    def step(parent: Displacement, x: tuple) -> tuple[Displacement, tuple]:
        known, screw, share, center, inertia = x
        E = following(parent, alone(known))
        way = fusion_barrier(E.way(center))
        f = way * share
        phi = fusion_barrier(kind.vector(E.s, E.x))
        wrench = Force(f, center.cross(f) + kind.spin(E.s, phi, inertia) * rate)
        return E, fusion_barrier((E.s, phi, wrench, center + way, E.carried(screw)))

    xs = known, at.screws, at.mass / h, at.center, at.inertia
    return Moved(at, *linearization.order(tree).outward(step, at_rest(d[0]), xs, d.shape[1:]))


def start_forces(model: Model, step: Moved, d: Array, h: Array) -> Array:
    """``S . sum w + armature d/h - h/2 g`` (nv, *batch): the momentum at t_k of L_d."""
    order = linearization.order(model.topology)
    weight = weights(step.at, step.at.center)
    total = order.up(fusion_barrier(step.wrench - weight * (0.5 * h)))
    return row.gathered(model, total.power(step.at.screws)) + model.armature * d / h


def end_forces(model: Model, step: Moved, d: Array, h: Array) -> Array:
    """``S' . sum w + armature d/h + h/2 g'`` (nv, *batch): the momentum at t_(k+1) of L_d."""
    order = linearization.order(model.topology)
    total = order.up(fusion_barrier(step.wrench + weights(step.at, step.center) * (0.5 * h)))
    return row.gathered(model, total.power(step.screws)) + model.armature * d / h


def weights(at: Node, center: Vec) -> Force:
    """The gravity wrenches on the bodies for these centers of mass."""
    f = Vec(*(at.mass * g[None] for g in at.gravity))
    return Force(f, center.cross(f))


def midpoint_forces(model: Model, q: Array, d: Array, h: Array) -> Array:
    """Forces of dampers, springs, friction and joint limits at the midpoint ``retract(q, d/2)`` and velocity d/h.

    Half of this force (nv, *batch) acts at each end of the step, which keeps the step symmetric. Its dependence on the
    joint's own displacement is implicit at no extra cost, so that stiff springs do not limit the step size.
    """
    tree = model.topology
    return batch_forces(tree, model.drives, configuration.retract_rows(tree, q, 0.5 * d), d / h)


def full(model: Model, h: Array, *vectors: Array) -> list[Array]:
    """Vectors (k, *batch), then h (1, *batch), broadcast to a common batch."""
    return row_tree.full(model, *vectors, h[None])


@cache
def legendre(kind: RotationMap, passive: bool) -> Callable[..., tuple[Array, Array]]:
    """A native function of (model, q, d, h) that returns both momenta (nv,), with derivatives.

    Args:
        kind: The discrete rotation vector.
        passive: Include dampers, springs, friction and joint limits. The first result is then the momentum that the
            other forces must supply at t_k, minus half the impulse of these forces over the step.
    """
    return native_with_derivatives(partial(_both, kind, passive))


@cache
def legendre_change(kind: RotationMap) -> Callable[[tuple, tuple], tuple[Array, Array]]:
    """A function of ((model, q, d, h), their changes) that returns the changes of ``legendre(kind, True)``."""
    return native_derivative(partial(_both, kind, True))


def _both(kind: RotationMap, passive: bool, model: Model, q: Array, d: Array, h: Array) -> tuple[Array, Array]:
    q, d, h = full(model, h, q, d)
    step = moved(kind, model, node(model, q), d, h)
    impulse = 0.5 * h * midpoint_forces(model, q, d, h) if passive else 0
    return start_forces(model, step, d, h) - impulse, end_forces(model, step, d, h) + impulse
