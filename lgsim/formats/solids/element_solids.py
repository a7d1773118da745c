"""Collision geometry of URDF and SDF: <geometry> in <collision> elements."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from lgsim.formats.report import Finding
from lgsim.formats.solids.file_solid import FileSolid
from lgsim.formats.solids.mesh_files import file_at, read_mesh
from lgsim.formats.xml import TEXT, Element, FileError, is_size
from lgsim.multibody.geometry import Box, Capsule, Cylinder, Ellipsoid, Geometry, HalfSpace, Mesh, Sphere
from lgsim.support.messages import one_line
from lgsim.support.reading.size_limits import check_size
from lgsim.support.toml_table import shown

QUIET = frozenset({"density", "laser_retro", "max_contacts", "material"})
"""Tags in a <collision> that do not affect collisions."""


def element_solids(
    link: str, element: Element, poses: Callable[[Element], Any], unread: list[Finding] | None = None
) -> Iterator[FileSolid]:
    """The collision geometries of a link of a URDF or SDF file.

    Args:
        element: The element <link>.
        poses: Function from a <collision> to its pose (4, 4) in the link's frame.
        unread: Receives findings about unread elements, such as <surface>.

    Raises:
        FileError: an element lacks a value.
    """
    for collision in element.children("collision"):
        geometry = collision.required("geometry")
        at = poses(collision)

        def finding(text: str, line: int = collision.line) -> Finding:
            return Finding(line, f"link {link!r}: <collision>", text)

        collision.text("name")
        if unread is not None:
            unread.extend(collision.unread(QUIET))
        made = primitive(geometry)
        mesh = geometry.child("mesh")
        if made is not None:
            kind, solid, turn, inner = made
            yield FileSolid(link, at @ turn, lambda solid=solid: solid, kind, inner.error, finding)
        elif mesh is not None:
            if unread is not None and mesh.child("submesh") is not None:
                unread.append(mesh.finding("<submesh>: the whole mesh is read"))
            yield FileSolid(link, at, lambda mesh=mesh: _element_mesh(mesh), "mesh", mesh.error, finding)
        else:
            tags = [node.tag for node in geometry.node.iterchildren() if isinstance(node.tag, str)]
            yield FileSolid(link, at, None, tags[0] if tags else "nothing", geometry.error, finding)


def primitive(geometry: Element) -> tuple[str, Geometry, Float[np.ndarray, "4 4"], Element] | None:
    """Tag, geometry, pose and element of a <geometry> other than a mesh; None for unknown shapes."""
    for tag, make in PRIMITIVES.items():
        if geometry.child(tag) is not None:
            at = geometry.required(tag)
            solid, turn = make(at)
            return tag, solid, turn, at
    return None


def _element_mesh(at: Element) -> Mesh:
    """The scaled mesh of an element <mesh> of URDF or SDF.

    Raises:
        FileError: the file is missing, or is not an .stl or .obj file.
    """
    uri = at.child("uri")
    name = at.name("filename") if uri is None else uri.words
    child = at.child("scale")
    scale = np.array(at.numbers("scale", 3, (1.0, 1.0, 1.0)) if child is None else child.content(3))
    try:
        path = file_at(name, None if at.file == TEXT else Path(at.file).resolve().parent)
        if path is None:
            raise at.error(f"there is no file {name!r}")
        check_size(path, path.stat().st_size, "has")
        mesh = read_mesh(path)
    except FileError:
        raise
    except OSError as fault:
        why = fault.strerror or fault
        raise at.error(f"the mesh {shown(name)} cannot be read: {why}") from fault
    except ValueError as fault:
        raise at.error(f"the mesh cannot be read: {one_line(fault)}") from fault
    return Mesh(mesh.vertices * scale, mesh.faces, flat=True)


def _number(at: Element, name: str) -> float:
    """A size, which is an attribute in URDF and an element in SDF."""
    child = at.child(name)
    return at.number(name, holds=is_size) if child is None else child.value(is_size)


def _box(at: Element) -> Geometry:
    child = at.child("size")
    x, y, z = at.numbers("size", 3, (1.0, 1.0, 1.0)) if child is None else child.content(3)
    return Box((x, y, z))


def _ellipsoid(at: Element) -> Geometry:
    x, y, z = at.required("radii").content(3)
    return Ellipsoid((x, y, z))


def _plane(at: Element) -> tuple[Geometry, Float[np.ndarray, "4 4"]]:
    child = at.child("normal")
    normal = np.array([0.0, 0.0, 1.0] if child is None else child.content(3))
    length = np.linalg.norm(normal)
    if not length > 0:
        raise at.error("normal: expected a nonzero vector")
    z = normal / length
    x = np.cross(np.eye(3)[np.argmin(np.abs(z))], z)
    x /= np.linalg.norm(x)
    turn = np.eye(4)
    turn[:3, :3] = np.stack([x, np.cross(z, x), z], axis=1)
    return HalfSpace(), np.eye(4) if np.array_equal(z, [0, 0, 1]) else turn


def _straight(
    make: Callable[[Element], Geometry],
) -> Callable[[Element], tuple[Geometry, Float[np.ndarray, "4 4"]]]:
    return lambda at: (make(at), np.eye(4))


PRIMITIVES: Mapping[str, Callable[[Element], tuple[Geometry, Float[np.ndarray, "4 4"]]]] = {
    "sphere": _straight(lambda at: Sphere(_number(at, "radius"))),
    "capsule": _straight(lambda at: Capsule(_number(at, "radius"), _number(at, "length"))),
    "cylinder": _straight(lambda at: Cylinder(_number(at, "radius"), _number(at, "length"))),
    "box": _straight(_box),
    "ellipsoid": _straight(_ellipsoid),
    "plane": _plane,
}
"""Readers of <geometry>; a capsule is a common extension of URDF, ellipsoids and planes exist only in SDF."""
