"""Checks of the topology and the parameters of a record: names, indices, counts and shapes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod
from typing import Any

import numpy as np

from lgsim.multibody.contacts import sizes
from lgsim.multibody.geometry import solid
from lgsim.multibody.joint import Joint
from lgsim.multibody.topology import ROOT, WORLD, Topology

LARGEST = 2**31 - 1
"""Largest count; XLA counts in 32 bits."""


def check_topology(tree: Topology) -> None:
    """Check the names, indices and counts of a topology from a file.

    Raises:
        ValueError: an invalid entry; the message names it.
    """
    n, frames = tree.bodies, len(tree.frame_names)
    for name, count in (("joint_names", n), ("body_names", n), ("parents", n), ("mimics", n), ("frame_bodies", frames)):
        _require(len(getattr(tree, name)) == count, name, f"{count} entries", getattr(tree, name))
    for name in ("joint_names", "body_names", "frame_names"):
        _check_names(name, getattr(tree, name))
    for i, parent in enumerate(tree.parents):
        _require(_is_count(parent, WORLD, i), "parents", f"a body before body {i}", parent)
    for i, other in enumerate(tree.mimics):
        good = other is None or (_is_count(other, 0, n) and other != i and tree.mimics[other] is None)
        _require(good, "mimics", "an independent joint", other)
    for body in tree.frame_bodies:
        _require(_is_count(body, WORLD, n), "frame_bodies", "a body", body)
    _require(isinstance(tree.stribeck, bool), "stribeck", "true or false", tree.stribeck)
    for joint in tree.joints:
        _check_joint(joint)
    known = {ROOT, *tree.body_names, *tree.frame_names}
    _check_names("loops", [loop.name for loop in tree.loops])
    for loop in tree.loops:
        own = known if loop.kind.on_frames else set(tree.joint_names)
        _require({loop.a, loop.b} <= own, f"loop {loop.name!r}", "ends of the model", (loop.a, loop.b))
        _check_static(f"loop {loop.name!r}", vars(loop.kind))
    _check_names("contacts", [contact.name for contact in tree.contacts])
    for contact in tree.contacts:
        where = f"contact {contact.name!r}"
        _require({contact.frame, contact.against} <= known, where, "frames of the model", contact.frame)
        _check_static(where, {**vars(contact.shape), **vars(contact.surface)})
        _require(_is_count(contact.points, 1, LARGEST), where, "a number of points", contact.points)
        _require(all(isinstance(x, str) for x in contact.options), where, "names of numbers", contact.options)
        _require(all(_is_count(x, 1, LARGEST) for x in contact.surface.grid), where, "counts", contact.surface.grid)
    _check_names("solids", [each.name for each in tree.solids])
    for each in tree.solids:
        where = f"solid {each.name!r}"
        _require(each.frame in known, where, "a frame of the model", each.frame)
        _check_static(where, vars(each.geometry))
        _require(_is_count(each.geometry.sample_count, 0, LARGEST), where, "a count", each.geometry.sample_count)
    for pair in tree.exclusions:
        _require(set(pair) <= {each.name for each in tree.solids} and len(pair) == 2, "exclusions", "two solids", pair)


def check_shapes(tree: Topology, numbers: Mapping[str, Any], drives: int) -> None:
    """Check that the parameters of a record have the shapes of its topology, and are floats.

    Args:
        tree: The topology, already checked.
        numbers: Parameters by their names in ``Model``.
        drives: Number of columns of ``Model.drives``.

    Raises:
        ValueError: another shape or type.
    """
    n, k, f = tree.bodies, tree.rows, len(tree.frame_names)
    shapes = {
        "placements": (n, 4, 4), "screws": (k, 4), "inertias": (n, 10), "drives": (tree.nv, drives), "mimic": (n, 2),
        "frames": (f, 4, 4), "gravity": (3,), "loops": (tree.loop_number_starts[-1],),
        "contacts": (len(tree.contacts), sizes.width(tree.contacts)),
        "heights": (sum(map(prod, sizes.grids(tree.contacts).values())),),
        "solids": (len(tree.solids), solid.width(tree.solids)), "solid_poses": (len(tree.solids), 4, 4),
        "grids": (sum(each.geometry.sample_count for each in tree.solids),),
    }  # fmt: skip
    for name, array in numbers.items():
        # arrays from empty lists have no type of their own
        _require(np.dtype(array.dtype).kind == "f" or not array.size, name, "floats", array.dtype)
        _require(array.shape == shapes[name], name, f"shape {shapes[name]}", array.shape)


def _check_joint(joint: Joint) -> None:
    where = type(joint).__name__
    _require(_is_count(joint.nq, 0, LARGEST), where, "a count", joint.nq)
    for turns, axis in joint.rows:
        _require(isinstance(turns, bool) and _is_count(axis, 0, 3), where, "rows of an axis", (turns, axis))


def _check_static(where: str, values: Any) -> None:
    """Check that the static data of a contact, a loop or a solid consist of finite numbers and texts."""
    if isinstance(values, Mapping):
        values = values.values()
    for value in values:
        if isinstance(value, tuple | list):
            _check_static(where, value)
        elif isinstance(value, Joint):
            _check_joint(value)
        elif not isinstance(value, str | None) and not isinstance(value, np.ndarray):
            _require(isinstance(value, int | float) and abs(value) <= LARGEST, where, "finite numbers", value)


def _check_names(where: str, names: Iterable[Any]) -> None:
    names = list(names)
    for name in names:
        _require(isinstance(name, str), where, "names", name)
    _require(len(set(names)) == len(names), where, "different names", names)


def _is_count(value: Any, least: int, end: int) -> bool:
    """True if a value is an integer from ``least`` to less than ``end``."""
    return isinstance(value, int) and not isinstance(value, bool) and least <= value < end


def _require(good: bool, where: str, expected: str, found: Any) -> None:
    if not good:
        raise ValueError(f"{where}: expected {expected}, got {str(found)[:60]}")
