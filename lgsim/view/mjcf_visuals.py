"""Visual shapes of an MJCF file, from its geoms as MuJoCo compiles them."""

from __future__ import annotations

import os
from typing import Any

from lgsim.formats.mjcformat.compilation import CompiledFile, compile_file
from lgsim.formats.solids.geom_solids import PLANE, geom_solid
from lgsim.multibody.topology import ROOT
from lgsim.view.shapes import Shape

HIDDEN = 3
"""First group of geoms that the MuJoCo viewer hides: collision geometry, by convention."""


def read_mjcf_visuals(path: str | os.PathLike[str] | None = None, *, text: str | None = None) -> dict[str, list[Shape]]:
    """Read the visual shapes of an MJCF file by the name of their body, or "world".

    The shapes are the solids and meshes that the MuJoCo viewer shows: those of the groups 0 to 2 that are not
    transparent, or those of all groups if there are none. Planes and height fields are omitted.

    Args:
        text: The MJCF text instead of a path.

    Returns:
        Shapes with their poses in the body frame; bodies without shapes are omitted.

    Raises:
        FileError: the file is missing, or MuJoCo cannot compile it.
        ModuleNotFoundError: the package ``mujoco`` is missing; ``pip install 'lgsim[mjcf]'``.
        TypeError: both or neither of ``path`` and ``text`` are given.
    """
    file = compile_file(path, text)
    geoms = range(file.model.ngeom)
    usual = [geom for geom in geoms if file.model.geom_group[geom] < HIDDEN]
    found = _shapes(file, usual)
    return found if any(name != ROOT for name in found) else _shapes(file, geoms)


def _shapes(file: CompiledFile, geoms: Any) -> dict[str, list[Shape]]:
    """Shapes of some geoms, by the name of their body."""
    model = file.model
    found: dict[str, list[Shape]] = {}
    for geom in geoms:
        material = int(model.geom_matid[geom])
        red, green, blue, opacity = map(float, model.mat_rgba[material] if material >= 0 else model.geom_rgba[geom])
        solid = geom_solid(file, geom)
        if opacity == 0 or solid.geometry is None or model.geom_type[geom] == PLANE:
            continue
        shape = Shape(solid.geometry(), solid.pose, (red, green, blue, opacity))
        found.setdefault(solid.link, []).append(shape)
    return found
