"""Visual shapes of a URDF file, from its <visual> elements."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from lgsim.formats import urdf_elements
from lgsim.formats.report import FileWarning
from lgsim.formats.solids.element_solids import primitive
from lgsim.formats.solids.mesh_files import file_at
from lgsim.formats.xml import TEXT, Element, read
from lgsim.multibody.geometry import Mesh
from lgsim.support.messages import one_line
from lgsim.support.packages import package
from lgsim.view.shapes import GRAY, Color, Shape


def read_visuals(path: str | os.PathLike[str] | None = None, *, text: str | None = None) -> dict[str, list[Shape]]:
    """Read the <visual> elements of a URDF file by the name of their link.

    The frame of a link, and its shapes, keep their name in the model even if fixed joints merge the link into another
    body. Boxes, cylinders, spheres and capsules are built in; meshes require the package trimesh. Mesh files are
    searched relative to the URDF file, and ``package://name/...`` in the parent folders and in those of
    ROS_PACKAGE_PATH and AMENT_PREFIX_PATH. Meshes that cannot be shown are counted in one ``FileWarning``.

    Args:
        text: The XML text instead of a path.

    Returns:
        Shapes by the name of their link, with their poses in the link frame; links without shapes are omitted.

    Raises:
        FileError: the file is missing, is not XML, or an element is incomplete.
        TypeError: both or neither of ``path`` and ``text`` are given.
        ModuleNotFoundError: there are meshes, and trimesh is missing; ``pip install 'lgsim[view]'``.
    """
    file, node, _ = read(path, text)
    root = Element(file, node)
    if root.tag != "robot":
        raise root.error(f"expected <robot>, the root of a URDF file, got <{root.tag}>")
    reader = _Reader(root)
    found = {link.name(): list(reader.shapes(link)) for link in root.children("link")}
    if reader.missing:
        warnings.warn(
            f"{file}: {len(reader.missing)} meshes are not shown; the first one: {reader.missing[0]}",
            FileWarning,
            stacklevel=2,
        )
    return {name: shapes for name, shapes in found.items() if shapes}


def missing_meshes(path: str | os.PathLike[str]) -> list[str]:
    """Missing mesh files of a URDF file, each with its line; no mesh is opened.

    The search is that of ``read_visuals``, for <visual> and <collision> elements.

    Raises:
        FileError: the file is missing, is not XML, or a mesh has no name.
    """
    file, node, _ = read(path, None)
    root = Element(file, node)
    reader, found = _Reader(root), {}
    for link in root.children("link"):
        for shape in (*link.children("visual"), *link.children("collision")):
            geometry = shape.child("geometry")
            mesh = None if geometry is None else geometry.child("mesh")
            if mesh is not None and reader._find(name := mesh.name("filename")) is None:
                found.setdefault(name, f"line {mesh.line}: there is no file {name!r}")
    return list(found.values())


class _Reader:
    """Reader of the shapes of one file, with a list of unreadable meshes."""

    def __init__(self, root: Element) -> None:
        self.folder = None if root.file == TEXT else Path(root.file).resolve().parent
        self.robot = urdf_elements.Robot(root)
        self.colors = {material.name(): self._color(material, GRAY) for material in root.children("material")}
        self.missing: list[str] = []

    def shapes(self, link: Element) -> Iterator[Shape]:
        """Shapes of a link."""
        for visual in link.children("visual"):
            pose = urdf_elements.origin(visual, self.robot)
            material = visual.child("material")
            color = None if material is None else self._material(material)
            geometry = visual.required("geometry")
            made = primitive(geometry)
            if made is not None:
                _, solid, turn, _ = made
                yield Shape(solid, pose @ turn, color or GRAY)
            else:
                yield from self._mesh(geometry.required("mesh"), pose, color)

    def _material(self, material: Element) -> Color | None:
        name = material.text("name", "") or ""
        return self._color(material, self.colors.get(name))

    def _color(self, material: Element, default: Color | None) -> Color | None:
        color = material.child("color")
        if color is None:
            return default
        red, green, blue, opacity = color.numbers("rgba", 4, (*GRAY,))
        return red, green, blue, opacity

    def _mesh(self, element: Element, pose: Float[np.ndarray, "4 4"], color: Color | None) -> Iterator[Shape]:
        name = element.name("filename")
        scale = np.array(element.numbers("scale", 3, (1.0, 1.0, 1.0)))
        path = self._find(name)
        if path is None:
            self.missing.append(f"line {element.line}: there is no file {name!r}")
            return
        trimesh = package("trimesh", "view")
        try:
            scene = trimesh.load_scene(str(path))
            # some formats define units
            scene = scene if scene.units is None else scene.convert_units("meters")
            meshes = [(*scene.graph[node], scene.geometry) for node in scene.graph.nodes_geometry]
            made = [
                (_shown_mesh(parts[name], place, scale), color or _own_color(parts[name]))
                for place, name, parts in meshes if len(getattr(parts[name], "faces", ()))
            ]  # fmt: skip
        except Exception as error:  # readers of meshes raise all kinds
            self.missing.append(f"line {element.line}: {path} cannot be read: {one_line(error)}")
            return
        if not made:
            self.missing.append(f"line {element.line}: {path} cannot be read: it holds no triangles")
        for mesh, own in made:
            yield Shape(mesh, pose, own)

    def _find(self, name: str) -> Path | None:
        """Path of a mesh file; None if it does not exist or the name is invalid."""
        try:
            return file_at(name, self.folder)
        except OSError:
            # name too long
            return None


def _shown_mesh(mesh: Any, place: Float[np.ndarray, "4 4"], scale: Float[np.ndarray, " 3"]) -> Mesh:
    """Scaled mesh of trimesh at its pose in the file."""
    vertices = (mesh.vertices @ place[:3, :3].T + place[:3, 3]) * scale
    # a reflection inverts the orientation of triangles
    faces = np.asarray(mesh.faces)[:, :: 1 if np.prod(scale) * np.linalg.det(place[:3, :3]) > 0 else -1]
    return Mesh(np.asarray(vertices), faces, flat=True)


def _own_color(mesh: object) -> Color:
    """Color stored in a mesh."""
    visual = getattr(mesh, "visual", None)
    if not getattr(visual, "defined", False):
        return GRAY
    material = getattr(visual, "material", None)
    bytes_of = getattr(material, "main_color", None) if material is not None else getattr(visual, "main_color", None)
    if bytes_of is None:
        return GRAY
    red, green, blue, opacity = (float(part) / 255 for part in bytes_of)
    return red, green, blue, opacity
