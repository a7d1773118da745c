"""The shapes of a URDF file's links, from its <visual> elements."""

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
from lgsim.formats.solids.mesh_files import mesh_file
from lgsim.formats.xml import TEXT, Element, read
from lgsim.multibody.geometry import Mesh
from lgsim.support.messages import one_line
from lgsim.support.packages import package
from lgsim.view.shapes import GRAY, Color, Shape


def read_visuals(path: str | os.PathLike[str] | None = None, *, text: str | None = None) -> dict[str, list[Shape]]:
    """The shapes of a URDF file's <visual> elements, by the name of their link.

    A link's frame keeps its name in the model also where fixed joints merged it into another body, and so do the
    shapes that hang on it. Boxes, cylinders, spheres and capsules need nothing else; meshes are read through the
    package trimesh. Mesh files are sought as the URDF has them: beside the file, and ``package://name/...`` in the
    folders above it and in those that ROS_PACKAGE_PATH and AMENT_PREFIX_PATH list. What cannot be shown is left out
    with one ``FileWarning`` that counts it.

    Args:
        text: The XML itself instead of a path.

    Returns:
        The shapes by the name of their link, each with its pose in the link's frame; links without any are left out.

    Raises:
        FileError: the file is missing, is not XML, or an element lacks something.
        TypeError: not just one of ``path`` and ``text`` is given.
        ImportError: there are meshes, and trimesh is missing; ``pip install 'lgsim[view]'``.
    """
    file, node = read(path, text)
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
    """The mesh files that a URDF file names and that are not there, each with its line; no mesh is opened.

    They are sought where ``read_visuals`` seeks them, those of <visual> and of <collision>.

    Raises:
        FileError: the file is missing, is not XML, or a mesh has no name.
    """
    file, node = read(path, None)
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
    """Reads the shapes of one file, and collects the meshes that cannot be read."""

    def __init__(self, root: Element) -> None:
        self.folder = None if root.file == TEXT else Path(root.file).resolve().parent
        self.robot = urdf_elements.Robot(root)
        self.colors = {material.name(): self._color(material, GRAY) for material in root.children("material")}
        self.missing: list[str] = []

    def shapes(self, link: Element) -> Iterator[Shape]:
        """The shapes of a link."""
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
            # some formats say what their numbers mean
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
        """The path of a mesh's file; None where there is no such file, or there can be none."""
        try:
            return mesh_file(name, self.folder)
        except OSError:
            # a name that is too long
            return None


def _shown_mesh(mesh: Any, place: Float[np.ndarray, "4 4"], scale: Float[np.ndarray, " 3"]) -> Mesh:
    """A mesh of trimesh at its place in its file, scaled."""
    vertices = (mesh.vertices @ place[:3, :3].T + place[:3, 3]) * scale
    # a mirror turns the triangles inside out
    faces = np.asarray(mesh.faces)[:, :: 1 if np.prod(scale) * np.linalg.det(place[:3, :3]) > 0 else -1]
    return Mesh(np.asarray(vertices), faces, flat=True)


def _own_color(mesh: object) -> Color:
    """The color that a mesh brings along."""
    visual = getattr(mesh, "visual", None)
    if not getattr(visual, "defined", False):
        return GRAY
    material = getattr(visual, "material", None)
    bytes_of = getattr(material, "main_color", None) if material is not None else getattr(visual, "main_color", None)
    if bytes_of is None:
        return GRAY
    red, green, blue, opacity = (float(part) / 255 for part in bytes_of)
    return red, green, blue, opacity
