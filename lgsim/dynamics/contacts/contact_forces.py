"""Forces of compliant contacts between bodies, and between bodies and the world, smooth in (q, v)."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from lgsim._compile.spatial import Force, Vec, to_parent
from lgsim.dynamics import rows as row
from lgsim.dynamics import validation
from lgsim.dynamics.contacts.contact_law import PointForces, depth_power, point_forces
from lgsim.dynamics.contacts.touching_points import (
    ContactPair,
    ContactState,
    bodies,
    kinds,
    native_where_even,
    touching,
)
from lgsim.dynamics.row_tree import full
from lgsim.multibody.model import Model
from lgsim.multibody.topology import WORLD, ModelError, Topology


class ContactForces(NamedTuple):
    """Forces of all contacts; points in the order of ``Model.point_slices``.

    Attributes:
        wrenches: Total contact wrench on each body, (f, n) in the body's frame, (..., bodies, 6), N and N m.
        depth: Penetration depth of each point (..., points), m; negative values are the distance to the surface.
        normal: Force along the surface normal at each point, (..., points), N, nonnegative.
        tangential: Tangential force on the shape, in world axes, (..., points, 3), N.
        couple: Couple on the shape from torsion and rolling resistance, in world axes, (..., points, 3), N m; zero for
            contacts without them.
    """

    wrenches: Float[Array, "*batch bodies 6"]
    depth: Float[Array, "*batch points"]
    normal: Float[Array, "*batch points"]
    tangential: Float[Array, "*batch points 3"]
    couple: Float[Array, "*batch points 3"]


class ContactPoints(NamedTuple):
    """Contact points, in the order of ``Model.point_slices``.

    Attributes:
        position: The deepest point of the shape, in the world, (..., points, 3), m.
        normal: The surface normal there, in world axes, (..., points, 3).
        depth: As in ``ContactForces``, (..., points), m.
    """

    position: Float[Array, "*batch points 3"]
    normal: Float[Array, "*batch points 3"]
    depth: Float[Array, "*batch points"]


def contact_forces(model: Model, q: Float[Array, "*#batch nq"], v: Float[Array, "*#batch nv"]) -> ContactForces:
    """Compliant contact forces on the bodies of a model: normal force, friction, torsion and rolling resistance.

    At each point of a shape with penetration depth d >= 0, depth rate d' and tangential velocity u,

        f_n = stiffness d^exponent (1 + dissipation d')_+
        f_t = -(friction f_n / sqrt(u.u + slip_speed^2) + viscous d^exponent) u

    act on the shape's body, and the opposite on the surface's body, at the deepest point of the shape. The law has no
    state and no discontinuity. With an exponent of 3/2 or more its derivatives are continuous at first contact. At low
    slip speed, friction acts as a damper ``friction f_n / slip_speed``, so that a body held by friction creeps.

    Optionally, ``stribeck`` makes the friction coefficient ``friction + stribeck exp(-u.u / stribeck_speed^2)``. With
    the relative angular velocity w of both bodies, its part w_n along the normal and its tangential part w_t,
    ``torsion`` and ``rolling`` add the couple

        n = -f_n (torsion w_n + rolling w_t) / sqrt(w.w + spin_speed^2).

    Args:
        model: A model with contacts, see ``ModelBuilder.add_contact``.
        q: Configuration.
        v: Velocity, rad/s or m/s; for group joints and a floating base in the child's frame.

    Returns:
        ContactForces(wrenches, depth, normal, tangential, couple). ``forward_dynamics`` takes the wrenches as an
        argument; simulations add them automatically.

    Raises:
        ModelError: the model has no contacts.
        ValueError: an array has a wrong length.
        TypeError: dtypes differ, or are not float32 or float64.

    Source: Hunt and Crossley, Coefficient of restitution interpreted as damping in vibroimpact, J. Appl. Mech. 42,
    1975, for the normal force.
    """
    _check(model)
    return ContactForces(*validation.call(forces, model, q=(q, "q"), v=(v, "v")))


def contact_points(model: Model, q: Float[Array, "*batch nq"]) -> ContactPoints:
    """The points at which contacts act, touching or not.

    Args:
        q: Configuration.

    Raises:
        ModelError: the model has no contacts.
        ValueError, TypeError: as ``contact_forces``.
    """
    _check(model)
    return ContactPoints(*validation.call(_points, model, q=(q, "q")))


def contact_energy(model: Model, q: Float[Array, "*batch nq"]) -> Float[Array, "*batch"]:
    """The elastic energy of all contacts, ``sum stiffness d^(exponent + 1) / (exponent + 1)``; 0 without contacts.

    Args:
        q: Configuration.

    Returns:
        J. Without dissipation and friction, the sum of this and the mechanical energy of the model is constant.

    Raises:
        ValueError, TypeError: as ``contact_forces``.
    """
    return validation.call(energy, model, q=(q, "q"))


def contact_wrenches(model: Model, q: Array, v: Array) -> Array:
    """The wrenches (bodies, 6) of ``contact_forces`` at one state, without checks."""
    return _native_wrenches(model, q, v)


def forces(model: Model, q: Array, v: Array) -> tuple[Array, Array, Array, Array, Array]:
    """``contact_forces`` of one state, without checks."""
    found, at_points = _native_forces(model, q, v)
    order = _order(model.topology)
    depth, normal, tangential, *couple = (x[order] for x in at_points)
    return found, depth, normal, tangential, couple[0] if couple else jnp.zeros_like(tangential)


def energy(model: Model, q: Array) -> Array:
    """``contact_energy`` of one state, without checks."""
    return _native_energy(model, q) if model.topology.contacts else jnp.zeros((), q.dtype)


def _check(model: Any) -> None:
    if isinstance(model, Model) and not model.topology.contacts:
        raise ModelError("model: expected a model with contacts, got one without; add them by ModelBuilder.add_contact")


def _points(model: Model, q: Array) -> tuple[Array, Array, Array]:
    order = _order(model.topology)
    position, normal, depth = _native_points(model, q)
    return position[order], normal[order], depth[order]


def _wrenches(model: Model, q: Array, v: Array) -> Array:
    q, v = full(model, q, v)
    held = bodies(model, q, v)
    return _on_bodies(model.topology, [(at, t, point_forces(t)) for at, t in touching(model, held)], q)


def _forces(model: Model, q: Array, v: Array) -> tuple[Array, tuple[Array, ...]]:
    q, v = full(model, q, v)
    found = [(at, t, point_forces(t)) for at, t in touching(model, bodies(model, q, v))]
    normal = _listed([law.normal for _, _, law in found])
    depth = _listed([-t.gap for _, t, _ in found])
    tangential = _listed([_in_world(at, law.tangential) for at, _, law in found])
    at_points = (depth, normal, tangential)
    if any(law.couple is not None for _, _, law in found):
        couples = (
            jax.tree.map(jnp.zeros_like, law.tangential) if law.couple is None else law.couple for _, _, law in found
        )
        sides = (at for at, _, _ in found)
        at_points = (*at_points, _listed([_in_world(at, n) for at, n in zip(sides, couples, strict=True)]))
    return _on_bodies(model.topology, found, q), at_points


def _energy(model: Model, q: Array) -> Array:
    (q,) = full(model, q)
    total = jnp.zeros(q.shape[1:], q.dtype)
    for _, t in touching(model, bodies(model, q, None)):
        more = t.law["exponent"] + 1
        each = t.law["stiffness"] / more * depth_power(t.gap, more)
        total = total + jnp.sum(each, axis=(0, 1))
    return total


def _places(model: Model, q: Array) -> tuple[Array, Array, Array]:
    (q,) = full(model, q)
    position, normal, depth = [], [], []
    for at, t in touching(model, bodies(model, q, None)):
        R, p = jax.tree.map(lambda x: x[None], at.surface.pose)
        position.append(_stacked(R @ t.point + p))
        normal.append(_in_world(at, t.normal))
        depth.append(-t.gap)
    return _listed(position), _listed(normal), _listed(depth)


_native_wrenches = native_where_even(_wrenches)
_native_forces = native_where_even(_forces)
_native_energy = native_where_even(_energy)
_native_points = native_where_even(_places)


def _in_world(at: ContactPair, x: Vec) -> Array:
    """A vector in the axes of the surface, in world axes, (p, m, 3, *batch)."""
    return _stacked(jax.tree.map(lambda c: c[None], at.surface.pose.R) @ x)


def _stacked(x: Vec) -> Array:
    return jnp.stack(jnp.broadcast_arrays(*x), axis=2)


def _listed(values: list[Array]) -> Array:
    """Values (p, m, ...) by kind of contact as one array (points, ...), kind by kind, contact by contact."""
    # an explicit size: -1 is ambiguous for an empty batch
    return jnp.concatenate([x.swapaxes(0, 1).reshape(x.shape[0] * x.shape[1], *x.shape[2:]) for x in values])


def _order(tree: Topology) -> np.ndarray:
    """Index of the points of each contact in the order of ``_listed``."""
    counts = [contact.points for contact in tree.contacts]
    owner = np.concatenate([np.repeat(places, counts[places[0]]) for _, places in kinds(tree)])
    return np.argsort(owner, kind="stable")


def _on_bodies(tree: Topology, found: list[tuple[ContactPair, ContactState, PointForces]], q: Array) -> Array:
    """The wrenches (bodies, 6, *batch) of forces (p, m, *batch) on shapes and of their opposites on surfaces."""
    parts: list[Force] = []
    owners: list[np.ndarray] = []
    for at, t, law in found:
        for side, F in ((at.shape, _on_shape(at, t, law)), (at.surface, _on_surface(t, law))):
            moves = np.flatnonzero(side.bodies != WORLD)
            if moves.size:
                F = to_parent(side.placement, F)
                parts.append(row.select(F, moves) if moves.size < side.bodies.size else F)
                owners.append(side.bodies[moves])
    all_owners = np.concatenate(owners)
    F = jax.tree.map(lambda *xs: jnp.concatenate(xs), *parts)
    total = None
    for turn in _turns(all_owners):
        placed = row.spread(row.select(F, turn), all_owners[turn], tree.bodies)
        total = placed if total is None else total + placed
    assert total is not None
    return jnp.stack([jnp.broadcast_to(x, (tree.bodies, *q.shape[1:])) for x in (*total.f, *total.n)], axis=1)


def _turns(owners: np.ndarray) -> list[np.ndarray]:
    """Indices of entries split into groups that contain each owner at most once."""
    rank = np.array([np.sum(owners[:i] == owner) for i, owner in enumerate(owners)])
    return [np.flatnonzero(rank == turn) for turn in range(rank.max() + 1)]


def _on_shape(at: ContactPair, t: ContactState, law: PointForces) -> Force:
    """The wrench (m, *batch) on the shape's side in its frame, from forces in the surface frame."""
    R, p = jax.tree.map(lambda x: x[None], at.relative)
    f, n = law.total, (t.point - p).cross(law.total)
    return _summed(Force(R.transpose_apply(f), R.transpose_apply(n if law.couple is None else n + law.couple)))


def _on_surface(t: ContactState, law: PointForces) -> Force:
    """The opposite wrench (m, *batch) on the surface's side in its frame."""
    n = t.point.cross(law.total)
    return _summed(-Force(law.total, n if law.couple is None else n + law.couple))


def _summed(F: Force) -> Force:
    return jax.tree.map(lambda x: x[0] if x.shape[0] == 1 else jnp.sum(x, axis=0), F)
