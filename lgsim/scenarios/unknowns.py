"""What ``lgsim identify`` can find, by the names that ``--fit`` and the map take."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from lgsim.cli.errors import BadInput, listed, one_line, unknown
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
    Stribeck,
    StribeckSpeed,
    TorqueOffset,
)
from lgsim.identify.unknowns.body_blocks import Block
from lgsim.scenarios.toml_table import Table


class Kind(NamedTuple):
    """A block.

    Attributes:
        make: Its class.
        owners: "bodies", "joints", or "" where it belongs to the whole machine.
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
    "stribeck": Kind(Stribeck, "joints"),
    "stribeck_speed": Kind(StribeckSpeed, "joints"),
    "armature": Kind(partial(JointParameter, "armature"), "joints"),
    "stiffness": Kind(partial(JointParameter, "stiffness"), "joints"),
    "rest": Kind(partial(JointParameter, "rest"), "joints"),
    "offsets": Kind(TorqueOffset, "joints"),
    "scales": Kind(SignalScale, "joints"),
    "placements": Kind(Placements, "joints"),
    "gravity": Kind(GravityDirection, ""),
}
"""By name: masses alone, centres of mass, all ten parameters of bodies that can exist or as linear numbers, ..."""

ALIASES = {"inertias": "bodies", "centres": "centers", "offset": "offsets", "mass": "masses", "scale": "scales"}
USUAL = ("bodies", "friction", "damping")
"""What is unknown where nobody says it."""

SAME = ({"masses", "bodies", "standard"}, {"centers", "bodies", "standard"})
"""Blocks of which only one can move a number."""


def chosen(words: str | None, unknowns: Table, plant: Plant) -> dict[str, Block]:
    """The blocks that ``--fit`` names, or all of the map's, or the usual ones.

    Args:
        words: The option, or None.
        unknowns: The table of that name in the map.
        plant: The machine.

    Raises:
        BadInput: a name is unknown, or two blocks move the same numbers.
    """
    unknowns.only(*KINDS)
    if words is None:
        wanted: Sequence[str] = list(unknowns.values) or USUAL
    else:
        wanted = [ALIASES.get(word.strip(), word.strip()) for word in words.split(",") if word.strip()]
        if not wanted:
            raise BadInput(f"--fit: expected names of unknowns, {', '.join(KINDS)}, got {words!r}")
    for name in wanted:
        if name not in KINDS:
            raise unknown("--fit: expected names of unknowns", name, list(KINDS))
        if wanted.count(name) > 1:
            raise BadInput(f"--fit: {name!r} is there twice")
    for group in SAME:
        both = [name for name in wanted if name in group]
        if len(both) > 1:
            raise BadInput(f"--fit: expected one of {' and '.join(both)}, which move the same numbers")
    return {name: _block(name, unknowns, plant) for name in wanted}


def _block(name: str, unknowns: Table, plant: Plant) -> Block:
    kind, table = KINDS[name], unknowns.table(name)
    table.only(*filter(None, (kind.owners, "prior")))
    given: dict[str, Any] = {}
    if kind.owners in table and kind.owners:
        given[kind.owners] = table.of(kind.owners, list)
        known = plant.model.body_names if kind.owners == "bodies" else plant.model.joint_names
        for i, owner in enumerate(given[kind.owners]):
            if owner not in known:
                with table.at(kind.owners, i):
                    raise unknown(f"expected names of {kind.owners}", str(owner), known)
    if "prior" in table:
        given["prior_deviation"] = table.number("prior", above=0.0)
    block = kind.make(**given)
    try:
        block.labels(plant)
    except ValueError as error:
        raise BadInput(f"--fit: {name}: {one_line(error)}") from error
    return block


def named(blocks: Mapping[str, Block]) -> str:
    """Their names for a message."""
    return listed(list(blocks))
