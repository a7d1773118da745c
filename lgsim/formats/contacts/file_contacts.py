"""Contacts from the collision geometry of robot description files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from lgsim.formats.report import Finding
from lgsim.formats.solids.file_solid import FileSolid, by_name
from lgsim.formats.xml import FileError, errors_at
from lgsim.multibody import contacts as shapes
from lgsim.multibody.contacts import Sized
from lgsim.multibody.geometry import Box, Capsule, Cylinder, Mesh, Sphere
from lgsim.multibody.model import Model
from lgsim.support.messages import unknown_name

_RIM = 8
"""Number of contact points on each rim of a cylinder."""
LEFT_OUT = "is no contact of the model: not in contacts"
VERTICES = 20
"""Default number of contact points of a mesh."""

Names = str | Sequence[str] | Mapping[str, Mapping[str, Any]]
"""Names of links, or contact parameters by link name."""


def add_file_contacts(
    model: Model,
    solids: Mapping[str, Sequence[FileSolid]],
    names: Names,
    law: Mapping[str, Any] | None,
    error: Callable[[str], FileError],
) -> tuple[Model, list[Finding], list[Finding]]:
    """Add contacts from the collision geometry of a file; return the model, assumptions and omissions.

    If a link has one collision geometry, the contact has the link's name, otherwise "<link> 0", "<link> 1" and so on. A
    geometry with a pose other than the identity gets a frame "<contact> collision".

    Args:
        solids: Collision geometries by the name of their link, or by their own name.
        names: Names of links, or a mapping from them to contact parameters that differ from ``law``.
        law: Arguments of ``Model.add_contact`` other than the shape: ``stiffness`` and so on, ``surface`` and
            ``against``; and ``most``, the number of contact points of a mesh, 20 by default.
        error: Constructor of an error about the file.

    Raises:
        FileError: an unknown name, an unreadable mesh, or an invalid contact.
    """
    assumed, used = [], set()
    for key, numbers in by_name(names).items():
        if not solids.get(key):
            raise error(unknown_name("contacts: expected names with collision shapes", key, list(solids)))
        given = {**(law or {}), **numbers}
        most = given.pop("most", VERTICES)
        for i, solid in enumerate(solids[key]):
            name, frame = key if len(solids[key]) == 1 else f"{key} {i}", solid.link
            shape, lacks = touching(solid, most)
            with errors_at(solid.error):
                if not np.array_equal(solid.pose, np.eye(4)):
                    frame = f"{name} collision"
                    model = model.add_frame(frame, solid.link, solid.pose)
                model = model.add_contact(name, frame, shape, **given)
            used.add(id(solid))
            if lacks:
                assumed.append(solid.finding(lacks))
    every = {id(solid): solid for group in solids.values() for solid in group}
    return model, assumed, [solid.finding(LEFT_OUT) for key, solid in every.items() if key not in used]


def touching(solid: FileSolid, most: int) -> tuple[Sized, str]:
    """The contact shape of a collision geometry, and a description of its simplification.

    Args:
        most: Number of contact points of a mesh.

    Raises:
        FileError: contacts do not support this shape, or the mesh cannot be read.
    """
    geometry = None if solid.geometry is None else solid.geometry()
    if isinstance(geometry, Mesh):
        return shapes.vertices(geometry.vertices, most=most), "is a mesh; contact acts at some of its vertices"
    if type(geometry) not in _TOUCHING:
        raise solid.error("expected a sphere, capsule, cylinder, box or mesh; contacts support no other shapes")
    make, assumed = _TOUCHING[type(geometry)]
    return make(geometry), assumed


_ROUND = f"is a cylinder; contact acts at {_RIM} points on each rim"


def cylinder(radius: float, length: float) -> Sized:
    """Points on the rims of a cylinder about z."""
    turns = 2 * np.pi * np.arange(_RIM) / _RIM
    return shapes.vertices([
        (radius * np.cos(turn), radius * np.sin(turn), z) for z, turn in product((-length / 2, length / 2), turns)
    ])  # fmt: skip


_TOUCHING: Mapping[type, tuple[Callable[[Any], Sized], str]] = {
    Sphere: (lambda solid: shapes.sphere(solid.radius), ""),
    Capsule: (lambda solid: shapes.capsule(solid.radius, solid.length), ""),
    Cylinder: (lambda solid: cylinder(solid.radius, solid.length), _ROUND),
    Box: (lambda solid: shapes.box(*solid.size), ""),
}
"""Constructor of the contact shape for each geometry, and a description of its simplification."""
