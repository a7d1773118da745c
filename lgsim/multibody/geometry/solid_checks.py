"""Checks of collision geometry: unknown frames, negative sizes, invalid poses; and its collision pairs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from lgsim.multibody.geometry.geometry import Geometry
from lgsim.multibody.geometry.solid import Solid
from lgsim.multibody.number_checks import not_rigid
from lgsim.multibody.topology import WORLD, ModelError, Topology
from lgsim.support.check import is_traced
from lgsim.support.messages import unknown_name

LEAVES = ("solids", "solid_poses", "grids")
"""Leaves of a model with the values of collision geometry."""


class Described(NamedTuple):
    """A collision geometry with its values.

    Attributes:
        solid: Static data.
        pose: Pose in its frame, (4, 4).
        samples: Values other than sizes, (k,), or None.
    """

    solid: Solid
    sizes: tuple[Any, ...]
    pose: Any
    samples: Any


def described(name: str, frame: str, geometry: Any, pose: Any) -> Described:
    """A collision geometry from user input.

    Raises:
        ModelError: an invalid geometry or size, or a pose of another shape.
    """
    if not isinstance(geometry, Geometry):
        made = "Sphere(0.1)"
        raise ModelError(
            f"solid {name!r}: geometry: expected a geometry of lgsim.geometry such as {made}, got {geometry!r}"
        )
    placed = np.eye(4) if pose is None else pose
    if np.shape(placed) != (4, 4):
        raise ModelError(f"solid {name!r}: pose: expected shape (4, 4), got {np.shape(placed)}")
    for size, value in zip(geometry.sizes, geometry.values, strict=True):
        if value is None or np.shape(value) != ():
            raise ModelError(f"solid {name!r}: {size}: expected one number, got {value!r}")
    found = Described(Solid(name, frame, geometry.bare), geometry.values, placed, geometry.samples())
    _check_sizes(found.solid, found.sizes)
    _check_pose(found.solid, found.pose)
    return found


def check_frames(tree: Topology, solids: Sequence[Solid]) -> None:
    """Check the names of collision geometries and of their frames.

    Raises:
        ModelError: a name is taken, or an unknown frame.
    """
    names: set[str] = set()
    for solid in solids:
        if solid.name in names:
            raise ModelError(f"solid {solid.name!r}: the name is taken")
        names.add(solid.name)
        tree.carrier(solid.frame, f"solid {solid.name!r}: frame")


def check_solid_numbers(tree: Topology, given: Mapping[str, Any]) -> None:
    """Check values of collision geometry, by the names of a model's leaves, as far as they are concrete.

    Raises:
        ModelError: an invalid value.
    """
    known = {name: np.asarray(x) for name, x in given.items() if name in LEAVES and not is_traced(x)}
    if "solids" in known:
        array = known["solids"]
        for rows in array.reshape(-1, *array.shape[-2:]):
            for solid, sizes in zip(tree.solids, rows, strict=True):
                _check_sizes(solid, sizes[: len(solid.geometry.sizes)])
    if "solid_poses" in known:
        for i, solid in enumerate(tree.solids):
            _check_pose(solid, known["solid_poses"][..., i, :, :])
    if not np.isfinite(known.get("grids", 0.0)).all():
        raise ModelError("grids: expected finite numbers")


def _check_sizes(solid: Solid, sizes: Iterable[Any]) -> None:
    kind = solid.geometry
    for name, value in zip(kind.sizes, sizes, strict=True):
        if is_traced(value):
            continue
        right = value > 0 if name in kind.positive else value >= 0
        if not (right and np.isfinite(value)):
            expected = "a positive number" if name in kind.positive else "a nonnegative number"
            raise ModelError(f"solid {solid.name!r}: {name}: expected {expected}, got {float(value):g}")


def _check_pose(solid: Solid, pose: Any) -> None:
    if not is_traced(pose) and np.any(not_rigid(np.asarray(pose, float).reshape(-1, 4, 4))):
        raise ModelError(
            f"solid {solid.name!r}: pose: expected a homogeneous matrix (4, 4) of a rotation and a position, got"
            f" {np.asarray(pose).tolist()}"
        )


def place_of(tree: Topology, solid: str) -> int:
    """Index of a collision geometry, by its name.

    Raises:
        ModelError: an unknown name.
    """
    names = [known.name for known in tree.solids]
    if solid not in names:
        if not names:
            raise ModelError(f"solid {solid!r}: the model has no solids; see Model.add_solid")
        raise ModelError(unknown_name("solid: expected the name of a solid", str(solid), names))
    return names.index(solid)


def meeting_pairs(tree: Topology, among: Sequence[str] | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """See ``Model.solid_pairs``."""
    chosen = None if among is None else {tree.solids[place_of(tree, name)].name for name in among}
    apart = {frozenset(pair) for pair in tree.exclusions}
    pairs = []
    for a, b in combinations(tree.solids, 2):
        i, j = (tree.carrier(solid.frame) for solid in (a, b))
        if i == j or joined(tree, i, j) or frozenset((a.name, b.name)) in apart:
            continue
        if chosen is not None and not {a.name, b.name} & chosen:
            continue
        if type(a.geometry).drawn_alone or type(b.geometry).drawn_alone:
            continue
        pairs.append((a.name, b.name))
    return tuple(a for a, _ in pairs), tuple(b for _, b in pairs)


def joined(tree: Topology, i: int, j: int) -> bool:
    """True if a joint connects two bodies; the world counts as one body."""
    return WORLD not in (i, j) and (tree.parents[i] == j or tree.parents[j] == i)
