"""Collision geometry of a scenario's robot and obstacles around it: keys of the table `[machine]`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from lgsim.multibody import Model
from lgsim.multibody.geometry import Box, Capsule, Cylinder, Geometry, HalfSpace, Sphere
from lgsim.scenarios.tasks import pose_of, rotation_of, solids_of
from lgsim.support.toml_table import Table


def _sizes(table: Table, key: str, count: int) -> list[float]:
    if count == 1:
        return [table.needed_number(key, least=0.0)]
    found = table.vector(key, count)
    if found is None or np.any(found < 0):
        raise table.fault(key, "expected nonnegative lengths, m")
    return found.tolist()


def _box(table: Table) -> Geometry:
    x, y, z = _sizes(table, "box", 3)
    return Box((x, y, z))


def _half_space(table: Table) -> Geometry:
    if not table.flag("half_space", False):
        raise table.fault("half_space", "expected true; position and rotation place it")
    return HalfSpace()


KINDS: Mapping[str, Callable[[Table], Geometry]] = {
    "sphere": lambda table: Sphere(*_sizes(table, "sphere", 1)),
    "capsule": lambda table: Capsule(*_sizes(table, "capsule", 2)),
    "cylinder": lambda table: Cylinder(*_sizes(table, "cylinder", 2)),
    "box": _box,
    "half_space": _half_space,
}
"""Shapes of an obstacle by key: radius, (radius, length) twice, three edge lengths, m, and true."""


def solid_names(table: Table) -> bool | list[str]:
    """The key ``solids``: true for all of the file, or names of links or geoms.

    Raises:
        ScenarioError: another value.
    """
    value = table.values.get("solids", False)
    if isinstance(value, bool):
        return value
    names = table.of("solids", list, [])
    for i, name in enumerate(names):
        if not isinstance(name, str):
            raise table.fault("solids", f"expected the name of a link, got {name!r}", i)
    return names


def with_obstacles(table: Table, model: Model) -> Model:
    """Add the obstacles of `[[machine.obstacles]]`, and exclude the collision pairs of the key ``apart``.

    Raises:
        ScenarioError: with file, line and key.
    """
    for each in table.tables("obstacles"):
        each.only("name", "frame", "position", "rotation", "quaternion", *KINDS).need("name")
        given = [key for key in KINDS if key in each]
        if len(given) != 1:
            raise each.fault(None, f"expected one of {', '.join(KINDS)}, got {' and '.join(given) or 'none'}")
        p, R = each.point("position"), rotation_of(each)
        pose = pose_of(np.eye(3) if R is None else R, p)
        with each.at(given[0]):
            model = model.add_solid(str(each.text("name")), each.text("frame", "world"), KINDS[given[0]](each), pose)
    pairs = []
    for i, pair in enumerate(table.of("apart", list, [])):
        if not isinstance(pair, list) or len(pair) != 2:
            raise table.fault("apart", f"expected two names of solids or links, got {pair!r}", i)
        first, second = (solids_of(table, "apart", model, name, i) for name in pair)
        pairs += [(a, b) for a in first for b in second if a != b]
    return model.exclude(pairs) if pairs else model
