"""Contacts from the geoms of an MJCF file, as compiled by MuJoCo."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from lgsim.formats.contacts.file_contacts import Names, add_file_contacts
from lgsim.formats.mjcformat.compilation import CompiledFile
from lgsim.formats.report import Finding
from lgsim.formats.solids.file_solid import FileSolid, by_name
from lgsim.formats.solids.geom_solids import collides, geom_solid
from lgsim.formats.xml import FileError
from lgsim.multibody.model import Model


def add_geoms(
    file: CompiledFile, model: Model, names: Names, law: Mapping[str, Any] | None
) -> tuple[Model, list[Finding], set[int]]:
    """Add contacts from geoms; return the model, assumptions and the indices of these geoms.

    Raises:
        FileError: no colliding geom or body has a given name, or contacts do not support the shape of a geom.
    """
    made = file.model
    solids: dict[str, list[FileSolid]] = {}
    places: dict[int, int] = {}
    for geom in range(made.ngeom):
        body = int(made.geom_bodyid[geom])
        if body == 0 or not collides(file, geom):
            continue
        solid = geom_solid(file, geom)
        places[id(solid)] = geom
        solids.setdefault(file.names["geom"][geom], []).append(solid)
        if file.names["body"][body] not in file.names["geom"]:
            solids.setdefault(file.names["body"][body], []).append(solid)
    model, assumed, _ = add_file_contacts(model, solids, names, law, partial(FileError, file.file, None))
    return model, assumed, {places[id(solid)] for name in by_name(names) for solid in solids[name]}
