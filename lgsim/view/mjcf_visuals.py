"""The shapes of an MJCF file's bodies, from its geoms as MuJoCo compiles them."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from lgsim.formats.mjcf_compiled import CompiledFile, compile_file
from lgsim.formats.mjcf_joints import pose
from lgsim.multibody.topology import ROOT
from lgsim.view.shapes import Box, Capsule, Cylinder, Ellipsoid, Geometry, Mesh, Shape, Sphere

HIDDEN = 3
"""The group of geoms from which on MuJoCo's viewer shows none: the ones for collisions, by convention."""
PLANE, MESH = 0, 7
"""MuJoCo's types of geoms that are no primitives, by ``MjModel.geom_type``; 1, fields of heights, are not shown."""

PRIMITIVES: dict[int, Callable[[Any], Geometry]] = {
    2: lambda s: Sphere(float(s[0])),
    3: lambda s: Capsule(float(s[0]), 2 * float(s[1])),
    4: lambda s: Ellipsoid((float(s[0]), float(s[1]), float(s[2]))),
    5: lambda s: Cylinder(float(s[0]), 2 * float(s[1])),
    6: lambda s: Box((2 * float(s[0]), 2 * float(s[1]), 2 * float(s[2]))),
}
"""The solids by their type, of MuJoCo's sizes, which are halves."""


def read_mjcf_visuals(path: str | os.PathLike[str] | None = None, *, text: str | None = None) -> dict[str, list[Shape]]:
    """The shapes of an MJCF file's geoms, by the name of their body, those of the world by "world".

    Solids and meshes that MuJoCo's viewer shows: those of the groups 0 to 2 that are not transparent; where these are
    none, those of all groups. Planes of the world are the floor of a scene anyway and left out, as are fields of
    heights.

    Args:
        path: The file.
        text: The MJCF itself instead of a path.

    Returns:
        The shapes, each with its pose in the body's frame; bodies without any are left out.

    Raises:
        FileError: the file is missing, or MuJoCo refuses it.
        ImportError: the package ``mujoco`` is missing; ``pip install 'lgsim[mjcf]'``.
        TypeError: not just one of ``path`` and ``text`` is given.
    """
    file = compile_file(path, text)
    geoms = range(file.model.ngeom)
    usual = [geom for geom in geoms if file.model.geom_group[geom] < HIDDEN]
    found = _shapes(file, usual)
    return found if any(name != ROOT for name in found) else _shapes(file, geoms)


def _shapes(file: CompiledFile, geoms: Any) -> dict[str, list[Shape]]:
    """The shapes of some geoms, by the name of their body."""
    model = file.model
    found: dict[str, list[Shape]] = {}
    for geom in geoms:
        material = int(model.geom_matid[geom])
        red, green, blue, opacity = map(float, model.mat_rgba[material] if material >= 0 else model.geom_rgba[geom])
        kind, body = int(model.geom_type[geom]), int(model.geom_bodyid[geom])
        if opacity == 0 or not (kind in PRIMITIVES or kind == MESH):
            continue
        solid = _mesh(model, int(model.geom_dataid[geom])) if kind == MESH else PRIMITIVES[kind](model.geom_size[geom])
        shape = Shape(solid, pose(model.geom_pos[geom], model.geom_quat[geom]), (red, green, blue, opacity))
        found.setdefault(file.names["body"][body] if body else ROOT, []).append(shape)
    return found


def _mesh(model: Any, index: int) -> Mesh:
    """A mesh, in the frame that MuJoCo gives it, whose pose the geom has."""
    first, count = int(model.mesh_vertadr[index]), int(model.mesh_vertnum[index])
    start, faces = int(model.mesh_faceadr[index]), int(model.mesh_facenum[index])
    vertices = np.array(model.mesh_vert[first : first + count], float)
    return Mesh(vertices, np.array(model.mesh_face[start : start + faces], int), flat=True)
