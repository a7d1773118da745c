"""The unknowns of an identification, by the names that a map of a recording gives them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from lgsim.identify import (
    CentersOfMass,
    GravityDirection,
    Inertias,
    JointParameter,
    Masses,
    Placements,
    Plant,
    SignalScale,
    StandardParameters,
    TorqueOffset,
)
from lgsim.identify.unknowns.block import Block
from lgsim.support.messages import one_line, unknown_name
from lgsim.support.toml_table import Table


class Kind(NamedTuple):
    """A kind of unknowns.

    Attributes:
        make: The function that makes the block.
        owners: "bodies" or "joints", the key of the block's owners; "" where the machine as a whole is the owner.
    """

    make: Callable[..., Block]
    owners: str


KINDS: Mapping[str, Kind] = {
    "masses": Kind(Masses, "bodies"),
    "centers": Kind(CentersOfMass, "bodies"),
    "bodies": Kind(Inertias, "bodies"),
    "standard": Kind(StandardParameters, "bodies"),
    "damping": Kind(partial(JointParameter, "damping"), "joints"),
    "friction": Kind(partial(JointParameter, "friction"), "joints"),
    "stribeck": Kind(partial(JointParameter, "stribeck", lower=-math.inf), "joints"),
    "stribeck_speed": Kind(partial(JointParameter, "stribeck_speed", lower=-math.inf), "joints"),
    "armature": Kind(partial(JointParameter, "armature"), "joints"),
    "stiffness": Kind(partial(JointParameter, "stiffness"), "joints"),
    "rest": Kind(partial(JointParameter, "rest"), "joints"),
    "offsets": Kind(TorqueOffset, "joints"),
    "scales": Kind(SignalScale, "joints"),
    "placements": Kind(Placements, "joints"),
    "gravity": Kind(GravityDirection, ""),
}
"""The kinds by name: masses alone, centers of mass, all ten parameters of bodies that can exist or linear ones, ..."""

_ALIASES = {"inertias": "bodies", "centres": "centers", "offset": "offsets", "mass": "masses", "scale": "scales"}
"""Other names that a list of unknowns may have."""
USUAL = ("bodies", "friction", "damping")
"""The unknowns where neither the map nor a list names any."""

LINEAR = ("standard", "damping", "friction", "stribeck", "armature", "stiffness", "offsets")
"""The kinds in which joint forces are linear."""

_OVERLAPS = ({"masses", "bodies", "standard"}, {"centers", "bodies", "standard"})
"""Sets of kinds of which one alone can be unknown."""


def read_blocks(table: Table, plant: Plant, names: Sequence[str] | None = None) -> dict[str, Block]:
    """The blocks of unknowns by name, as the table ``[unknowns]`` of a map describes them.

    Args:
        names: The names to take; None for all in the table, or ``USUAL`` where it is empty.

    Raises:
        ScenarioError: the table is wrong.
        ValueError: a name is unknown or there twice, or two blocks move the same numbers.
    """
    table.only(*KINDS)
    # the names are those of the table itself
    if names is None and table.values:
        with table.at(None):
            return _blocks(list(table.values), table, plant)
    return _blocks(USUAL if names is None else names, table, plant)


def _blocks(names: Sequence[str], table: Table, plant: Plant) -> dict[str, Block]:
    """The blocks of some names.

    Raises:
        ScenarioError: the table is wrong.
        ValueError: a name is unknown or there twice, or two blocks move the same numbers.
    """
    wanted = [_ALIASES.get(name, name) for name in names]
    if not wanted:
        raise ValueError(f"expected names of unknowns, {', '.join(KINDS)}, got none")
    for name in wanted:
        if name not in KINDS:
            raise ValueError(unknown_name("expected names of unknowns", name, list(KINDS)))
        if wanted.count(name) > 1:
            raise ValueError(f"{name!r} is there twice")
    for group in _OVERLAPS:
        both = [name for name in wanted if name in group]
        if len(both) > 1:
            raise ValueError(f"expected one of {' and '.join(both)}, which move the same numbers")
    return {name: _block(name, table, plant) for name in wanted}


def _block(name: str, unknowns: Table, plant: Plant) -> Block:
    """The block of a kind, with the owners and the prior of its table."""
    kind, table = KINDS[name], unknowns.table(name)
    table.only(*filter(None, (kind.owners, "prior")))
    given: dict[str, list[str] | float] = {}
    if kind.owners and kind.owners in table:
        known = plant.model.body_names if kind.owners == "bodies" else plant.model.joint_names
        owners = enumerate(table.of(kind.owners, list, []))
        what = f"names of {kind.owners}"
        given[kind.owners] = [table.known(kind.owners, owner, known, what, i) for i, owner in owners]
    if "prior" in table:
        given["prior_deviation"] = table.needed_number("prior", above=0.0)
    block = kind.make(**given)
    try:
        block.labels(plant)
    except ValueError as error:
        raise ValueError(f"{name}: {one_line(error)}") from error
    return block
