"""Collision geometry of MJCF: geoms, as compiled by MuJoCo."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from lgsim.formats.mjcformat.compilation import CompiledFile
from lgsim.formats.mjcformat.joints import pose
from lgsim.formats.report import Finding
from lgsim.formats.solids.file_solid import FileSolid, by_name
from lgsim.formats.solids.model_solids import SolidNames, add_file_solids
from lgsim.formats.xml import FileError
from lgsim.multibody.geometry import Box, Capsule, Cylinder, Ellipsoid, Geometry, HalfSpace, Mesh, Sphere
from lgsim.multibody.model import Model
from lgsim.multibody.topology import ROOT
from lgsim.support.messages import unknown_name

PLANE, MESH = 0, 7
"""MuJoCo's geom types without a size, by ``MjModel.geom_type``."""
_GEOMS: Mapping[int, Callable[[Any], Geometry]] = {
    2: lambda s: Sphere(float(s[0])),
    3: lambda s: Capsule(float(s[0]), 2 * float(s[1])),
    4: lambda s: Ellipsoid((float(s[0]), float(s[1]), float(s[2]))),
    5: lambda s: Cylinder(float(s[0]), 2 * float(s[1])),
    6: lambda s: Box((2 * float(s[0]), 2 * float(s[1]), 2 * float(s[2]))),
}
"""The other types, from MuJoCo's half sizes."""
KINDS = ("plane", "hfield", "sphere", "capsule", "ellipsoid", "cylinder", "box", "mesh", "sdf")
"""Names of MuJoCo's geom types."""


def geom_solid(file: CompiledFile, geom: int) -> FileSolid:
    """The collision geometry of a geom; the link is "world" for geoms of the world."""
    model = file.model
    kind, body = int(model.geom_type[geom]), int(model.geom_bodyid[geom])
    made: Callable[[], Geometry | Mesh] | None = None
    if kind == MESH:
        made = partial(_geom_mesh, model, int(model.geom_dataid[geom]))
    elif kind == PLANE:
        made = HalfSpace
    elif kind in _GEOMS:
        made = partial(_GEOMS[kind], model.geom_size[geom])
    return FileSolid(
        file.names["body"][body] if body else ROOT,
        pose(model.geom_pos[geom], model.geom_quat[geom]),
        made,
        KINDS[kind] if kind < len(KINDS) else f"type {kind}",
        partial(file.error, "geom", geom),
        partial(file.finding, "geom", geom),
    )


def _geom_mesh(model: Any, index: int) -> Mesh:
    """A mesh in MuJoCo's frame of it, whose pose is that of the geom."""
    first, count = int(model.mesh_vertadr[index]), int(model.mesh_vertnum[index])
    start, faces = int(model.mesh_faceadr[index]), int(model.mesh_facenum[index])
    vertices = np.array(model.mesh_vert[first : first + count], float)
    return Mesh(vertices, np.array(model.mesh_face[start : start + faces], int), flat=True)


def collides(file: CompiledFile, geom: int) -> bool:
    """True if a geom can collide."""
    return bool(file.model.geom_contype[geom] or file.model.geom_conaffinity[geom])


def _kept_apart(file: CompiledFile, first: int, second: int) -> bool:
    """True if MuJoCo excludes contacts of two geoms: by their contype and conaffinity, or by <exclude>.

    <pair> overrides this. ``Model.solid_pairs`` excludes pairs of a body and its parent.

    Source: MuJoCo's documentation, chapter "Computation", section "Collision detection", "Selection".
    """
    model = file.model
    pairs = {frozenset(pair) for pair in zip(model.pair_geom1.tolist(), model.pair_geom2.tolist(), strict=True)}
    if frozenset((first, second)) in pairs:
        return False
    bodies = sorted(int(model.geom_bodyid[geom]) for geom in (first, second))
    excluded = (bodies[0] << 16) + bodies[1], (bodies[1] << 16) + bodies[0]
    types, affinities = model.geom_contype, model.geom_conaffinity
    meets = int(types[first]) & int(affinities[second]) or int(types[second]) & int(affinities[first])
    return not meets or any(int(signature) in excluded for signature in model.exclude_signature)


def add_solid_geoms(
    file: CompiledFile, model: Model, names: SolidNames, meshes: Mapping[str, int] | None
) -> tuple[Model, list[Finding], list[Finding]]:
    """Add geoms as collision geometry; return the model, assumptions and omissions.

    Raises:
        FileError: no colliding geom or body has a given name, or the shape of a geom is not supported.
    """
    made: dict[str, list[FileSolid]] = {}
    places: dict[int, int] = {}
    bodies: dict[str, list[str]] = {}
    for geom in range(file.model.ngeom):
        if collides(file, geom):
            name, solid = file.names["geom"][geom], geom_solid(file, geom)
            made[name], places[id(solid)] = [solid], geom
            bodies.setdefault(solid.link, []).append(name)
    given = names
    if not isinstance(names, bool):
        own = by_name(names)
        for key in own:
            if key not in made and key not in bodies:
                known = [*made, *bodies]
                raise FileError(
                    file.file, None, unknown_name("solids: expected names with collision shapes", key, known)
                )
        given = {geom: how for key, how in own.items() for geom in ([key] if key in made else bodies.get(key, [key]))}

    def apart(a: FileSolid, b: FileSolid) -> bool:
        return _kept_apart(file, places[id(a)], places[id(b)])

    return add_file_solids(model, made, given, meshes, apart, partial(FileError, file.file, None))
