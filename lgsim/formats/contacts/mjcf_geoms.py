"""Contacts of an MJCF file's geoms, as MuJoCo compiles them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from lgsim.formats.contacts.file_contacts import ROUND, Names, Solid, add_file_contacts, cylinder
from lgsim.formats.mjcf_compiled import CompiledFile
from lgsim.formats.mjcf_joints import pose
from lgsim.formats.report import Finding
from lgsim.formats.xml import FileError
from lgsim.multibody import contacts as shapes
from lgsim.multibody.contacts import Sized
from lgsim.multibody.model import Model

MESH = 7
PRIMITIVES: dict[int, Callable[[Any], Sized]] = {
    2: lambda s: shapes.sphere(float(s[0])),
    3: lambda s: shapes.capsule(float(s[0]), 2 * float(s[1])),
    5: lambda s: cylinder(float(s[0]), 2 * float(s[1])),
    6: lambda s: shapes.box(2 * float(s[0]), 2 * float(s[1]), 2 * float(s[2])),
}
"""The shapes by ``MjModel.geom_type``, of MuJoCo's sizes, which are halves."""
CYLINDER = 5


def add_geoms(
    file: CompiledFile, model: Model, names: Names, law: Mapping[str, Any] | None
) -> tuple[Model, list[Finding], set[int]]:
    """(the model with contacts of geoms, what was assumed, the geoms that touch).

    Raises:
        FileError: there is no geom or body of a name that can touch, or a geom has no shape of a contact.
    """
    made = file.model
    solids: dict[str, list[Solid]] = {}
    places: dict[int, int] = {}
    for geom in range(made.ngeom):
        body = int(made.geom_bodyid[geom])
        if body == 0 or not (made.geom_contype[geom] or made.geom_conaffinity[geom]):
            continue
        solid = _solid(file, geom, file.names["body"][body])
        places[id(solid)] = geom
        solids.setdefault(file.names["geom"][geom], []).append(solid)
        if file.names["body"][body] not in file.names["geom"]:
            solids.setdefault(file.names["body"][body], []).append(solid)
    model, assumed, _ = add_file_contacts(model, solids, names, law, partial(FileError, file.file, None))
    named = [names] if isinstance(names, str) else names
    return model, assumed, {places[id(solid)] for name in named for solid in solids[name]}


def _solid(file: CompiledFile, geom: int, body: str) -> Solid:
    made = file.model
    kind = int(made.geom_type[geom])

    def shape(most: int) -> Sized:
        if kind == MESH:
            index = int(made.geom_dataid[geom])
            first, count = int(made.mesh_vertadr[index]), int(made.mesh_vertnum[index])
            return shapes.vertices(np.array(made.mesh_vert[first : first + count], float), most=most)
        if kind not in PRIMITIVES:
            raise file.error("geom", geom, "expected a sphere, capsule, cylinder, box or mesh: others have no contacts")
        return PRIMITIVES[kind](made.geom_size[geom])

    assumed = {MESH: "is a mesh; some of its vertices touch", CYLINDER: ROUND}.get(kind, "")
    at = pose(made.geom_pos[geom], made.geom_quat[geom])
    return Solid(body, at, shape, partial(file.error, "geom", geom), partial(file.finding, "geom", geom), assumed)
