"""Collision geometry of files in a model: selection, convex approximation of meshes, excluded pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from lgsim.formats.report import Finding
from lgsim.formats.solids.file_solid import FileSolid, by_name
from lgsim.formats.xml import FileError, errors_at
from lgsim.multibody.geometry import Geometry, Mesh, convex_hull, fit_capsules
from lgsim.multibody.geometry.convex_hulls import VERTICES, hull_error
from lgsim.multibody.model import Model
from lgsim.support.messages import unknown_name

SolidNames = bool | str | Sequence[str] | Mapping[str, Mapping[str, int]]
"""True for all collision geometry, or names of links, or settings for meshes by link name."""
MESHES = ("vertices", "capsules")
"""Representations of meshes: a convex hull with a number of vertices, or a number of capsules."""
LEFT_OUT = "is no solid of the model: not in solids"

Placed = tuple[str, str, Geometry, np.ndarray]


def add_file_solids(
    model: Model,
    solids: Mapping[str, Sequence[FileSolid]],
    names: SolidNames,
    meshes: Mapping[str, int] | None,
    apart: Callable[[FileSolid, FileSolid], bool],
    error: Callable[[str], FileError],
) -> tuple[Model, list[Finding], list[Finding]]:
    """Add collision geometry from a file; return the model, assumptions and omissions.

    If a link has one collision geometry, it has the link's name, otherwise "<link> 0", "<link> 1" and so on. Several
    capsules that represent a mesh are named "<solid>.0" and so on.

    Args:
        solids: Collision geometries by the name of their link, or by their own name.
        names: True for all, or names, or a mapping from them to settings that differ from ``meshes``.
        meshes: ``{"vertices": n}``: the convex hull of n vertices, 20 by default, with a radius that covers the
            omitted ones; ``{"capsules": n}``: n capsules that contain the mesh.
        apart: Function that is true if the file excludes collisions of two geometries.
        error: Constructor of an error about the file.

    Raises:
        FileError: an unknown name, an unreadable mesh, or an invalid geometry.
    """
    every = names is True
    given = by_name(list(solids) if names is True else names or ())
    assumed, left_out, used = [], [], set()
    placed: list[Placed] = []
    parts: list[tuple[FileSolid, list[str]]] = []
    for key, own in given.items():
        if not every and not solids.get(key):
            raise error(unknown_name("solids: expected names with collision shapes", key, list(solids)))
        how = _how({**(meshes or {}), **own} if not own else dict(own), error)
        for i, solid in enumerate(solids[key]):
            if id(solid) in used:
                continue
            name = key if len(solids[key]) == 1 else f"{key} {i}"
            used.add(id(solid))
            if solid.geometry is None:
                text = f"is {_a(solid.kind)}, which distances do not support"
                if not every:
                    raise solid.error(text)
                left_out.append(solid.finding(text))
                continue
            made, remark = _convex(solid, solid.geometry(), how)
            if remark:
                assumed.append(solid.finding(remark))
            own_names = [name] if len(made) == 1 else [f"{name}.{k}" for k in range(len(made))]
            placed += [(n, solid.link, g, solid.pose @ T) for n, (g, T) in zip(own_names, made, strict=True)]
            parts.append((solid, own_names))
    with errors_at(error):
        model = model.add_solids(placed)
    never = [(a, b) for (s, first), (t, second) in combinations(parts, 2) if apart(s, t) for a in first for b in second]
    rest = {id(solid): solid for group in solids.values() for solid in group}
    left_out += [solid.finding(LEFT_OUT) for key, solid in rest.items() if key not in used]
    return model.exclude(never) if never else model, assumed, left_out


def neighbors(ends: Iterable[tuple[str, str]]) -> Callable[[FileSolid, FileSolid], bool]:
    """True for geometries of one link, or of two links connected by a joint; ``ends`` are the links of all joints."""
    joined = {frozenset(pair) for pair in ends}
    return lambda a, b: a.link == b.link or frozenset((a.link, b.link)) in joined


def _how(given: Mapping[str, int], error: Callable[[str], FileError]) -> tuple[str, int]:
    """Kind of representation of meshes, and its number."""
    for key in given:
        if key not in MESHES:
            raise error(f"solids: expected one of {', '.join(MESHES)} for meshes, got {key!r}")
    if len(given) > 1:
        raise error(f"solids: expected one of {', '.join(MESHES)} for meshes, got both")
    kind, count = next(iter(given.items()), ("vertices", VERTICES))
    if not isinstance(count, int) or count < 1:
        raise error(f"solids: {kind}: expected a positive integer, got {count!r}")
    return kind, count


def _convex(
    solid: FileSolid, geometry: Geometry | Mesh, how: tuple[str, int]
) -> tuple[list[tuple[Geometry, np.ndarray]], str]:
    """Convex geometries with their poses, and a description of the approximation."""
    still = np.eye(4)
    if isinstance(geometry, Geometry) and not type(geometry).drawn_alone:
        return [(geometry, still)], ""
    mesh = geometry.triangles()
    kind, count = how
    try:
        if kind == "capsules":
            made = fit_capsules(mesh.vertices, count)
            return list(made), f"is {_a(solid.kind)}; {len(made)} capsules represent it"
        hull = convex_hull(mesh.vertices, count)
        beyond = hull_error(hull, mesh.vertices)
        hull = replace(hull, radius=beyond)
    except ValueError as fault:
        raise solid.error(str(fault)) from fault
    more = f" with a radius of {beyond:.2g} m" if beyond > 0 else ""
    said = f"is {_a(solid.kind)}; the convex hull of {len(hull.at)} points{more} represents it"
    return [(hull, still)], said


def _a(kind: str) -> str:
    return f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"
