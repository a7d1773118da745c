"""Contact points with their gaps and velocities, all contacts of a kind at once, batch axis last."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lgsim._compile.spatial import Mat, Motion, Transform, Vec, to_child
from lgsim._compile.xla import fusion_barrier, native_with_derivatives
from lgsim.dynamics import row_tree
from lgsim.dynamics import rows as row
from lgsim.dynamics.kinematics import at_rest, body_motions, body_poses, identity, row_twists, world_poses
from lgsim.multibody.contacts.contact import Contact
from lgsim.multibody.contacts.sizes import height_slices, parts
from lgsim.multibody.model import Model
from lgsim.multibody.topology import WORLD, Topology


class Bodies(NamedTuple):
    """Poses and twists of the bodies, followed by the world, (n + 1, *batch); twists in body frames."""

    poses: Transform
    twists: Motion | None


class Side(NamedTuple):
    """The frames of one side of m contacts.

    Attributes:
        bodies: Index of the body that carries each frame, ``WORLD`` for the world.
        placement: Poses of the frames on their bodies, (m, *batch).
        pose: Poses of the frames in the world, (m, *batch).
        twist: Twists of the frames in their own axes, (m, *batch); None if velocities were not requested.
    """

    bodies: np.ndarray
    placement: Transform
    pose: Transform
    twist: Motion | None


class ContactPair(NamedTuple):
    """m contacts of one kind, which share the types of shape and surface and the options of the law.

    Attributes:
        contact: One of the contacts.
        places: Indices of the contacts in the topology.
        numbers: Parameters of the law, the shape and the surface by name, (1, m, *batch).
        shape: The side of the shapes.
        surface: The side of the surfaces.
        relative: Poses of the shape frames in the surface frames, (m, *batch).
        twist: Twists of the shapes relative to the surfaces, in the surface axes about their origins, (m, *batch); None
            if velocities were not requested.
    """

    contact: Contact
    places: np.ndarray
    numbers: tuple[dict[str, Array], dict[str, Array], dict[str, Array]]
    shape: Side
    surface: Side
    relative: Transform
    twist: Motion | None


class ContactState(NamedTuple):
    """The points (p, m, *batch) of m contacts, in the surface frames.

    Attributes:
        law: Parameters of the law by name, (1, m, *batch).
        point: The deepest point of the shape, where the contact force acts.
        gap: Distance of the point from the surface, negative inside, m.
        normal: The surface normal there.
        slip: Velocity of the shape's body there relative to the surface, m/s; None if velocities were not requested.
        spin: Angular velocity relative to the surface, rad/s; None if the law does not use it.
    """

    law: dict[str, Array]
    point: Vec
    gap: Array
    normal: Vec
    slip: Vec | None
    spin: Vec | None


def native_where_even(core: Callable[..., Any]) -> Callable[..., Any]:
    """``core(model, ...)`` of one state as a native function, or as it is for height fields.

    A height field is indexed by computed values, which native functions do not support.
    """
    native, plain = native_with_derivatives(core), jax.jit(core)

    @wraps(core)
    def call(model: Model, *args: Any) -> Any:
        return (native if model.heights is None else plain)(model, *args)

    return call


def bodies(model: Model, q: Array, v: Array | None) -> Bodies:
    """The bodies at q (nq, *batch), with their twists if v (nv, *batch) is given."""
    m = row_tree.machine(model, q)
    poses = _with_world(body_poses(model, m, world_poses(model, m)), identity(m))
    if v is None:
        return Bodies(poses, None)
    return Bodies(poses, _with_world(body_motions(model, m, *row_twists(model, m, v)), at_rest(m)))


def meetings(model: Model, held: Bodies) -> Iterator[ContactPair]:
    """The contacts of a model, grouped by kind."""
    slices = height_slices(model.topology.contacts)
    for contact, places in kinds(model.topology):
        own = [model.topology.contacts[i] for i in places]
        numbers = parts(contact, model.contacts[places])
        if contact.surface.grid:
            numbers[2]["heights"] = model.heights[slices[contact.against]].reshape(contact.surface.grid)
        shape, surface = (_side(model, held, [getattr(c, key) for c in own]) for key in ("frame", "against"))
        relative, twist = _relative(shape, surface), None
        if shape.twist is not None and surface.twist is not None:
            twist = relative.act(shape.twist) - surface.twist
        yield ContactPair(contact, places, numbers, shape, surface, relative, twist)


def points_of(meeting: ContactPair, relative: Transform, twist: Motion | None) -> ContactState:
    """The points of contacts at poses and twists (m, *batch) of the shapes in the surface frames."""
    contact, (law, of_shape, of_surface) = meeting.contact, meeting.numbers
    one, V = (jax.tree.map(lambda x: x[None], x) for x in (relative, twist))
    center = contact.shape.centers(of_shape, one, contact.surface, of_surface)
    distance, normal = contact.surface.gap(of_surface, center)
    radius = of_shape.get("radius", 0.0)
    point = fusion_barrier(center - normal * radius)
    slip = None if V is None else V.v + V.w.cross(point)
    spin = V.w if V is not None and "spin_speed" in law else None
    return ContactState(law, point, distance - radius, normal, slip, spin)


def touching(model: Model, held: Bodies) -> Iterator[tuple[ContactPair, ContactState]]:
    """The contacts of a model with their points."""
    for meeting in meetings(model, held):
        yield meeting, points_of(meeting, meeting.relative, meeting.twist)


def kinds(tree: Topology) -> list[tuple[Contact, np.ndarray]]:
    """(one contact, indices of all) for each kind of shape, surface and options; height fields one frame at a time."""
    found: dict[tuple, list[int]] = {}
    for i, contact in enumerate(tree.contacts):
        frame = contact.against if contact.surface.grid else ""
        found.setdefault((contact.shape, contact.surface, contact.options, frame), []).append(i)
    return [(tree.contacts[places[0]], np.array(places)) for places in found.values()]


def _relative(shape: Side, surface: Side) -> Transform:
    """The poses of the shape frames in the surface frames."""
    R, p = surface.pose
    return Transform(R.T @ shape.pose.R, R.transpose_apply(shape.pose.p - p))


def _side(model: Model, held: Bodies, frames: list[str]) -> Side:
    tree = model.topology
    on = np.array([tree.carrier(frame) for frame in frames])
    pose = row.select(held.poses, on)
    twist = None if held.twists is None else row.select(held.twists, on)
    fixed = [tree.frame_names.index(frame) if frame in tree.frame_names else WORLD for frame in frames]
    placed = _placements(model, fixed, pose)
    if any(place != WORLD for place in fixed):
        pose = fusion_barrier(pose @ placed)
        twist = None if twist is None else fusion_barrier(to_child(placed, twist))
    return Side(on, placed, pose, twist)


def _placements(model: Model, fixed: list[int], like: Transform) -> Transform:
    """The poses of frames on their bodies: entries of ``Model.frames`` at these indices, or the bodies' own frames."""
    own = _identity(like)
    if all(place == WORLD for place in fixed):
        return own
    chosen = row.select(row.transform(model.frames), np.maximum(fixed, 0))
    mask = (np.array(fixed) != WORLD).reshape(-1, *(1,) * (like.p.x.ndim - 1))
    return jax.tree.map(lambda x, y: jnp.where(mask, x, y), chosen, own)


def _identity(like: Transform) -> Transform:
    zero = jnp.zeros_like(like.p.x)
    one = zero + 1
    R = Mat(Vec(one, zero, zero), Vec(zero, one, zero), Vec(zero, zero, one))
    return Transform(R, Vec(zero, zero, zero))


def _with_world(values, world):
    return jax.tree.map(lambda x, w: jnp.concatenate([x, w[None]]), values, world)
