"""The shapes of an MJCF file's bodies, from its geoms as MuJoCo compiles them."""

from __future__ import annotations

import os
from typing import Any

from lgsim.formats.mjcf_compiled import CompiledFile, compile_file
from lgsim.formats.solids.geom_solids import PLANE, geom_solid
from lgsim.multibody.topology import ROOT
from lgsim.view.shapes import Shape

HIDDEN = 3
"""The group of geoms from which on MuJoCo's viewer shows none: the ones for collisions, by convention."""


def read_mjcf_visuals(path: str | os.PathLike[str] | None = None, *, text: str | None = None) -> dict[str, list[Shape]]:
    """The shapes of an MJCF file's geoms, by the name of their body, those of the world by "world".

    Solids and meshes that MuJoCo's viewer shows: those of the groups 0 to 2 that are not transparent; where these are
    none, those of all groups. Planes of the world are the floor of a scene anyway and left out, as are fields of
    heights.

    Args:
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
        solid = geom_solid(file, geom)
        if opacity == 0 or solid.geometry is None or model.geom_type[geom] == PLANE:
            continue
        shape = Shape(solid.geometry(), solid.pose, (red, green, blue, opacity))
        found.setdefault(solid.link, []).append(shape)
    return found
