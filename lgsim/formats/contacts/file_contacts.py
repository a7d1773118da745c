"""Contacts from files of machines: the solids of <collision> elements and of geoms, by the names that are given."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from lgsim.formats.contacts.mesh_files import mesh_file, mesh_vertices
from lgsim.formats.report import Finding
from lgsim.formats.xml import TEXT, Element, FileError, is_size
from lgsim.multibody import contacts as shapes
from lgsim.multibody.contacts import Sized
from lgsim.multibody.model import Model
from lgsim.multibody.topology import ModelError
from lgsim.support.messages import unknown_name

RIM = 8
"""Points on each rim of a cylinder."""
LEFT_OUT = "is no contact of the model: it was not named"
VERTICES = 20
"""Vertices of a mesh that are kept where nobody says how many."""

Names = str | Sequence[str] | Mapping[str, Mapping[str, Any]]
"""Names of links, or numbers of the law by the name of the link."""


class Solid(NamedTuple):
    """A solid of a link.

    Attributes:
        link: The name of the link, which is that of its frame.
        pose: In the link's frame, (4, 4).
        shape: ``shape(most)``: what touches, ``most`` being the number of vertices of a mesh that are kept.
        error: The error of a message about its element.
        finding: The remark of a text about its element.
        assumed: What a shape of lgsim lacks of it.
    """

    link: str
    pose: Float[np.ndarray, "4 4"]
    shape: Callable[[int], Sized]
    error: Callable[[str], FileError]
    finding: Callable[[str], Finding]
    assumed: str = ""


def add_file_contacts(
    model: Model,
    solids: Mapping[str, Sequence[Solid]],
    names: Names,
    law: Mapping[str, Any] | None,
    error: Callable[[str], FileError],
) -> tuple[Model, list[Finding], list[Finding]]:
    """(the model with contacts of its file, what was assumed, what was left out).

    A link's only solid becomes a contact of the link's name, several become "<link> 0", "<link> 1" and so on; where a
    solid is off its link's frame, the contact has a frame "<contact> collision".

    Args:
        model: The machine.
        solids: The solids by the name of their link, or by one of their own.
        names: Names of links, or a mapping from them to numbers of the law that differ from ``law``.
        law: What ``Model.add_contact`` takes beside the shape: ``stiffness`` and so on, ``surface`` and ``against``;
            and ``most``, the number of vertices that are kept of a mesh, 20 by default.
        error: The error of a message about the file.

    Raises:
        FileError: no solid has that name, a mesh cannot be read, or the contact cannot be.
    """
    own = names if isinstance(names, Mapping) else {key: {} for key in ([names] if isinstance(names, str) else names)}
    assumed, used = [], set()
    for key, numbers in own.items():
        if not solids.get(key):
            raise error(unknown_name("contacts: expected names with collision shapes", key, list(solids)))
        given = {**(law or {}), **numbers}
        most = given.pop("most", VERTICES)
        for i, solid in enumerate(solids[key]):
            name, frame, shape = key if len(solids[key]) == 1 else f"{key} {i}", solid.link, solid.shape(most)
            try:
                if not np.array_equal(solid.pose, np.eye(4)):
                    frame = f"{name} collision"
                    model = model.add_frame(frame, solid.link, solid.pose)
                model = model.add_contact(name, frame, shape, **given)
            except ModelError as fault:
                raise solid.error(str(fault)) from fault
            used.add(id(solid))
            if solid.assumed:
                assumed.append(solid.finding(solid.assumed))
    every = {id(solid): solid for group in solids.values() for solid in group}
    return model, assumed, [solid.finding(LEFT_OUT) for key, solid in every.items() if key not in used]


def element_solids(link: str, element: Element, poses: Callable[[Element], Any]) -> Iterator[Solid]:
    """The solids of a link of a URDF or SDF file.

    Args:
        link: The name of the link.
        element: The element <link>.
        poses: The pose (4, 4) of a <collision> in the link's frame.

    Raises:
        FileError: an element lacks something.
    """
    for collision in element.children("collision"):
        subject = f"link {link!r}: <collision>"
        geometry = collision.required("geometry")
        pose = poses(collision)
        found = [kind for kind in SOLIDS if geometry.child(kind) is not None]
        at = geometry.required(found[0]) if found else geometry

        def finding(text: str, line: int = collision.line, subject: str = subject) -> Finding:
            return Finding(line, subject, text)

        if not found:
            known = ", ".join(SOLIDS)

            def refuse(most: int, at: Element = at, known: str = known) -> Sized:
                raise at.error(f"expected one of {known}, which are all that contacts have shapes of")

            yield Solid(link, pose, refuse, at.error, finding)
            continue
        shape, assumed = SOLIDS[found[0]](at)
        yield Solid(link, pose, shape, at.error, finding, assumed)


def _number(at: Element, name: str) -> float:
    """A size that URDF has as an attribute and SDF as an element."""
    child = at.child(name)
    return at.number(name, holds=is_size) if child is None else child.value(is_size)


def _sphere(at: Element) -> tuple[Callable[[int], Sized], str]:
    made = shapes.sphere(_number(at, "radius"))
    return lambda most: made, ""


def _capsule(at: Element) -> tuple[Callable[[int], Sized], str]:
    made = shapes.capsule(_number(at, "radius"), _number(at, "length"))
    return lambda most: made, ""


def _box(at: Element) -> tuple[Callable[[int], Sized], str]:
    child = at.child("size")
    x, y, z = at.numbers("size", 3, (1.0, 1.0, 1.0)) if child is None else child.content(3)
    made = shapes.box(x, y, z)
    return lambda most: made, ""


def _cylinder(at: Element) -> tuple[Callable[[int], Sized], str]:
    made = cylinder(_number(at, "radius"), _number(at, "length"))
    return lambda most: made, ROUND


ROUND = f"is a cylinder; {RIM} points on each of its rims touch"


def cylinder(radius: float, length: float) -> Sized:
    """Points on the rims of a cylinder about z."""
    turns = 2 * np.pi * np.arange(RIM) / RIM
    return shapes.vertices([
        (radius * np.cos(turn), radius * np.sin(turn), z) for z, turn in product((-length / 2, length / 2), turns)
    ])  # fmt: skip


def _mesh(at: Element) -> tuple[Callable[[int], Sized], str]:
    uri = at.child("uri")
    name = at.name("filename") if uri is None else uri.words
    child = at.child("scale")
    scale = np.array(at.numbers("scale", 3, (1.0, 1.0, 1.0)) if child is None else child.content(3))

    def made(most: int) -> Sized:
        path = mesh_file(name, None if at.file == TEXT else Path(at.file).resolve().parent)
        if path is None:
            raise at.error(f"there is no file {name!r}")
        try:
            return shapes.vertices(mesh_vertices(path) * scale, most=most)
        except (OSError, ValueError) as fault:
            raise at.error(f"the mesh cannot be read: {fault}") from fault

    return made, "is a mesh; some of its vertices touch"


SOLIDS: Mapping[str, Callable[[Element], tuple[Callable[[int], Sized], str]]] = {
    "sphere": _sphere,
    "capsule": _capsule,
    "cylinder": _cylinder,
    "box": _box,
    "mesh": _mesh,
}
"""The solids of <geometry>; a capsule is a common extension of URDF."""
