"""Signed distances, closest points and distance Jacobians between the solids (collision geometry) of a model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from lgsim._compile.spatial import Motion, Transform, Vec
from lgsim._compile.xla import batch_last
from lgsim.dynamics import row_tree, validation
from lgsim.dynamics import rows as row
from lgsim.dynamics.distances.nearest import ClosestPair, moved
from lgsim.dynamics.distances.pair_programs import measurable, pair_programs
from lgsim.dynamics.jacobians import screws
from lgsim.dynamics.kinematics import body_poses, frames_of, identity, world_poses
from lgsim.multibody.geometry import Geometry
from lgsim.multibody.geometry.solid import grid_starts
from lgsim.multibody.geometry.solid_checks import place_of
from lgsim.multibody.model import Model, check_model
from lgsim.multibody.topology import ROOT, WORLD, ModelError, Topology

Names = str | Sequence[str]
"""The name of a solid, or of several."""

Places = tuple[tuple[int, int], ...]
"""Pairs of indices of ``Topology.solids``."""


class ClosestPoints(NamedTuple):
    """Closest points of pairs of solids, in the world; without the pair axis if both names are single.

    Attributes:
        distance: Signed distance of the surfaces, m, negative where they overlap.
        first: The closest point on the first surface, m. For overlapping solids, the last point of contact when the
            second solid is moved out along the normal.
        second: The closest point on the second surface, likewise.
        normal: The unit vector from the first to the second point for separate solids. For overlapping solids, the
            direction of the shortest separating translation of the second one. Zero where no direction is defined.
    """

    distance: Float[Array, "*batch pairs"]
    first: Float[Array, "*batch pairs 3"]
    second: Float[Array, "*batch pairs 3"]
    normal: Float[Array, "*batch pairs 3"]


def distance(model: Model, q: Float[Array, "*batch nq"], a: Names, b: Names) -> Float[Array, " ..."]:
    """The signed distance between solids, as for collision avoidance: the distance, or minus the penetration depth.

    ``d = min |x_b - x_a|`` for separate solids. For overlapping solids ``d = -min |t|`` over the translations t that
    separate them.

    The distance is exact to rounding between spheres, capsules, boxes, hulls and half-spaces, separate or overlapping.
    For intersecting cores without interior, such as the segments of two capsules, the depth is the sum of the radii.
    Cylinders are prisms with 16 sides. A sampled grid is evaluated at points of the other solid, see
    ``lgsim.geometry``.

    The distance is continuous. Its first derivatives with respect to q and all model parameters are
    ``n . (dx_b - dx_a)`` at the closest points. They are continuous where the closest points are unique. Otherwise
    (parallel faces or edges, or the medial axis of a solid) the derivative is one of the neighboring ones, and finite.
    It is zero where centers or segments coincide. Second derivatives jump where a closest point changes edge or face.

    Args:
        model: A model with solids, see ``Model.add_solid``.
        q: Configuration.
        a: Name of a solid, or a list of names, one per pair, as from ``*model.solid_pairs()``. A single name is paired
            with each name of the other side. Static.
        b: Name or names of the second solids, likewise.

    Returns:
        m, (*batch, pairs), or (*batch) where both are single names.

    Raises:
        ModelError: a solid does not exist, a pair is of a solid with itself or has no distance, or the lists have
            different lengths.
        ValueError: q has a wrong length.
        TypeError: dtypes differ, or are not float32 or float64.

    Source: Ericson, Real-Time Collision Detection, 2005, chapter 5; Gilbert, Johnson and Keerthi 1988 for hulls.
    """
    check_model(model)
    places, single = checked_pairs(model.topology, a, b)
    found = validation.call(_distances(places), model, q=(q, "q"))
    return found[..., 0] if single else found


def closest_points(model: Model, q: Float[Array, "*batch nq"], a: Names, b: Names) -> ClosestPoints:
    """The closest points of pairs of solids, with their distance and normal.

    Arguments are those of ``distance``.

    Raises:
        ModelError, ValueError, TypeError: as ``distance``.
    """
    check_model(model)
    places, single = checked_pairs(model.topology, a, b)
    found = ClosestPoints(*validation.call(_points(places), model, q=(q, "q")))
    if single:
        return ClosestPoints(found.distance[..., 0], *(x[..., 0, :] for x in found[1:]))
    return found


def distance_jacobian(
    model: Model, q: Float[Array, "*batch nq"], a: Names, b: Names
) -> tuple[Float[Array, " ..."], Float[Array, "... nv"]]:
    """(distance, its Jacobian with respect to the tangent of q), in closed form.

    Row ``n . (J_b - J_a)`` at the closest points. Arguments are those of ``distance``.

    Returns:
        (*batch, pairs), m, and (*batch, pairs, nv), m/rad or 1; without the pair axis if both names are single.

    Raises:
        ModelError, ValueError, TypeError: as ``distance``.
    """
    check_model(model)
    places, single = checked_pairs(model.topology, a, b)
    found, J = validation.call(_slopes(places), model, q=(q, "q"))
    return (found[..., 0], J[..., 0, :]) if single else (found, J)


def checked_pairs(tree: Topology, a: Names, b: Names) -> tuple[Places, bool]:
    """(indices of pairs of solids, True if both names are single).

    Raises:
        ModelError: as ``distance``.
    """
    single = isinstance(a, str) and isinstance(b, str)
    first, second = ([x] if isinstance(x, str) else list(x) for x in (a, b))
    if isinstance(a, str):
        first = first * len(second)
    if isinstance(b, str):
        second = second * len(first)
    if len(first) != len(second) or not first:
        raise ModelError(f"a, b: expected lists of equal length, at least one name, got {len(first)} and {len(second)}")
    places = tuple((place_of(tree, x), place_of(tree, y)) for x, y in zip(first, second, strict=True))
    for i, j in places:
        if i == j:
            raise ModelError(f"a, b: expected two different solids, got {tree.solids[i].name!r} twice")
        kinds = [tree.solids[k].geometry for k in (i, j)]
        if not measurable(*kinds):
            named = " and ".join(f"{tree.solids[k].name!r} ({type(tree.solids[k].geometry).__name__})" for k in (i, j))
            raise ModelError(
                f"a, b: expected a sphere, capsule, box or hull in each pair, got {named}, which have no distance"
            )
    return places, single


def meetings(model: Model, poses: Transform, places: Places) -> ClosestPair:
    """The closest points of pairs (pairs,) in the world, grouped by the two kinds."""
    found, order = [], []
    for kinds, own, A, (one, other), T in _groups(model, poses, places):
        m = jax.vmap(pair_programs(*kinds).meeting)(one, other, T)
        found.append(_moved_by(A, m))
        order += own
    return _sorted(found, order)


def distances(model: Model, poses: Transform, places: Places) -> Array:
    """The distances of pairs (pairs,), grouped by the two kinds."""
    found, order = [], []
    for kinds, own, _, (one, other), T in _groups(model, poses, places):
        found.append(jax.vmap(pair_programs(*kinds).distance)(one, other, T))
        order += own
    return _sorted(found, order)


def _groups(model: Model, poses: Transform, places: Places) -> Iterator[tuple[Any, list[int], Transform, list, Any]]:
    """(kinds, indices of pairs, poses of the first solids, parameters of both, poses of the second in the first)."""
    tree = model.topology
    groups: dict[tuple[Geometry, Geometry], list[int]] = {}
    for k, (i, j) in enumerate(places):
        groups.setdefault((tree.solids[i].geometry, tree.solids[j].geometry), []).append(k)
    for kinds, own in groups.items():
        first, second = (tuple(places[k][side] for k in own) for side in (0, 1))
        A, T = _relative(first, second)(poses)
        numbers = [_numbers(model, kind, np.array(at)) for kind, at in zip(kinds, (first, second), strict=True)]
        yield kinds, own, A, numbers, T


@cache
def _relative(first: tuple[int, ...], second: tuple[int, ...]) -> Callable[[Transform], tuple[Transform, Transform]]:
    """A function of poses (s, *batch): (poses of the first solids, poses of the second solids relative to them)."""

    def core(poses: Transform) -> tuple[Transform, Transform]:
        A, B = (row.select(poses, np.array(at)) for at in (first, second))
        return A, Transform(A.R.T @ B.R, A.R.transpose_apply(B.p - A.p))

    return batch_last(core)


@batch_last
def _moved_by(A: Transform, m: ClosestPair) -> ClosestPair:
    """Closest points in the frame in which the first solids have the poses A."""
    return ClosestPair(m.distance, A.R @ m.normal, moved(A, m.first), moved(A, m.second))


def _sorted(found: list[Any], order: list[int]) -> Any:
    """Results of groups, in the order of the pairs."""
    joined = found[0] if len(found) == 1 else jax.tree.map(lambda *x: jnp.concatenate(x), *found)
    back = np.argsort(order, kind="stable")
    return joined if np.array_equal(back, np.arange(len(order))) else jax.tree.map(lambda x: x[back], joined)


def _numbers(model: Model, kind: Geometry, at: np.ndarray) -> tuple[tuple, Any]:
    sizes = tuple(model.solids[at, i] for i in range(len(kind.sizes)))
    if not kind.sample_count:
        return sizes, None
    starts = grid_starts(model.topology.solids)
    return sizes, jnp.stack([model.grids[starts[i] : starts[i + 1]] for i in at])


@cache
def _distances(places: Places) -> Callable[[Model, Array], Array]:
    return lambda model, q: distances(model, solid_poses(model, q), places)


@cache
def _points(places: Places) -> Callable[[Model, Array], tuple]:
    def core(model: Model, q: Array) -> tuple:
        m = meetings(model, solid_poses(model, q), places)
        return m.distance, *(jnp.stack([*x], axis=-1) for x in (m.first, m.second, m.normal))

    return core


@cache
def _slopes(places: Places) -> Callable[[Model, Array], tuple[Array, Array]]:
    def core(model: Model, q: Array) -> tuple[Array, Array]:
        tree = model.topology
        m = meetings(model, solid_poses(model, q), places)
        v, w = (Vec(*(x[None] for x in y)) for y in _moving_screws(model, q))
        n, moment = (Vec(*(x[:, None] for x in y)) for y in (m.normal, m.first.cross(m.normal)))
        J = (n.dot(v) + moment.dot(w)) * jnp.asarray(_carried(tree, places), q.dtype)
        if tree.has_mimic:
            J = row.gathered(model, J.T).T
        return m.distance, J

    return core


@batch_last
def solid_poses(model: Model, q: Array) -> Transform:
    """The poses (s, *batch) of the solids in the world at q (nq, *batch)."""
    (q,) = row_tree.full(model, q)
    tree = model.topology
    m = row_tree.machine(model, q)
    one = identity(m)
    frames = frames_of(model, body_poses(model, m, world_poses(model, m)), one, lambda T, pose: pose @ T)
    frames = jax.tree.map(lambda x, w: jnp.concatenate([x, w[None]]), frames, one)
    names = (*tree.body_names, *tree.frame_names, ROOT)
    on = row.select(frames, np.array([names.index(solid.frame) for solid in tree.solids]))
    return on @ row.transform(model.solid_poses)


@batch_last
def _moving_screws(model: Model, q: Array) -> Motion:
    """The twist of each row (k, *batch) at unit rate, in world axes about the world origin."""
    (q,) = row_tree.full(model, q)
    m = row_tree.machine(model, q)
    axis, origin, turns, slides = screws(m, world_poses(model, m))
    w = axis * turns
    return Motion(axis * slides + origin.cross(w), w)


def _carried(tree: Topology, places: Places) -> np.ndarray:
    """(pairs, rows): 1 where a row carries only the second solid of a pair, -1 only the first one, else 0."""
    bodies = [tree.carrier(solid.frame) for solid in tree.solids]
    none = np.zeros(tree.rows, int)
    carried = [none if body == WORLD else tree.row_carried[tree.body_row[body]].astype(int) for body in bodies]
    return np.array([carried[j] - carried[i] for i, j in places])
