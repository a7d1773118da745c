"""Unknown parameters of an identification, by their names in the map of a recording."""

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
from lgsim.identify.unknowns.coupled_plant import MOTOR_UNITS, CoupledPlant, MotorParameter
from lgsim.identify.unknowns.frame_blocks import SharedBlock
from lgsim.identify.unknowns.joint_blocks import DirectionalParameter, LoadFriction
from lgsim.support.messages import one_line, unknown_name
from lgsim.support.toml_table import Table


class Kind(NamedTuple):
    """A kind of unknown parameters.

    Attributes:
        make: Constructor of the block.
        owners: "bodies", "joints" or "motors", the key of the block's owners; "" for parameters of the whole model.
        shareable: True if joints can share one parameter, by the key "shared".
        by_direction: Constructor of the block with the key "by_direction", or None.
    """

    make: Callable[..., Block]
    owners: str
    shareable: bool = False
    by_direction: Callable[..., Block] | None = None


KINDS: Mapping[str, Kind] = {
    "masses": Kind(Masses, "bodies"),
    "centers": Kind(CentersOfMass, "bodies"),
    "bodies": Kind(Inertias, "bodies"),
    "standard": Kind(StandardParameters, "bodies"),
    "damping": Kind(partial(JointParameter, "damping"), "joints", False, partial(DirectionalParameter, "damping")),
    "friction": Kind(partial(JointParameter, "friction"), "joints", False, partial(DirectionalParameter, "friction")),
    "load_friction": Kind(LoadFriction, "joints"),
    "stribeck": Kind(partial(JointParameter, "stribeck", lower=-math.inf), "joints"),
    "friction_speed": Kind(partial(JointParameter, "friction_speed"), "joints", shareable=True),
    "stribeck_speed": Kind(partial(JointParameter, "stribeck_speed"), "joints", shareable=True),
    "armature": Kind(partial(JointParameter, "armature"), "joints"),
    "stiffness": Kind(partial(JointParameter, "stiffness"), "joints"),
    "rest": Kind(partial(JointParameter, "rest"), "joints"),
    "offsets": Kind(TorqueOffset, "joints"),
    "scales": Kind(SignalScale, "joints"),
    "placements": Kind(Placements, "joints"),
    "gravity": Kind(GravityDirection, ""),
    **{name: Kind(partial(MotorParameter, name), "motors") for name in MOTOR_UNITS},
}
"""Kinds by name: masses, centers of mass, all ten inertial parameters, physically consistent or linear, and others."""

_ALIASES = {"inertias": "bodies", "centres": "centers", "offset": "offsets", "mass": "masses", "scale": "scales"}
"""Aliases of kinds."""
USUAL = ("bodies", "friction", "damping")
"""Default unknowns, if neither the map nor a list names any."""

LINEAR = ("standard", "damping", "friction", "stribeck", "armature", "stiffness", "offsets")
"""Kinds in which joint forces are linear."""

_OVERLAPS = ({"masses", "bodies", "standard"}, {"centers", "bodies", "standard"})
"""Sets of mutually exclusive kinds."""


def read_blocks(
    table: Table, plant: Plant, names: Sequence[str] | None = None, with_speed: bool = True
) -> dict[str, Block]:
    """The blocks of unknown parameters by name, from the table `[unknowns]` of a map.

    Args:
        names: Names to use; None for all in the table, or ``USUAL`` if it is empty.
        with_speed: True to add the changeover speed of the same joints to their friction, unless joint forces are to be
            linear in the standard parameters.

    Raises:
        ScenarioError: the table is invalid.
        ValueError: a name is unknown or occurs twice, or two blocks change the same parameters.
    """
    table.only(*KINDS)
    # these names come from the table itself
    if names is None and table.values:
        with table.at(None):
            return _blocks(list(table.values), table, plant, with_speed)
    return _blocks(USUAL if names is None else names, table, plant, with_speed)


def _blocks(names: Sequence[str], table: Table, plant: Plant, with_speed: bool) -> dict[str, Block]:
    """The blocks of some names.

    Raises:
        ScenarioError: the table is invalid.
        ValueError: a name is unknown or occurs twice, or two blocks change the same parameters.
    """
    wanted = [_ALIASES.get(name, name) for name in names]
    if not wanted:
        raise ValueError(f"expected names of unknowns, {', '.join(KINDS)}, got none")
    for name in wanted:
        if name not in KINDS:
            raise ValueError(unknown_name("expected names of unknowns", name, list(KINDS)))
        if wanted.count(name) > 1:
            raise ValueError(f"expected distinct names, got {name!r} twice")
    for group in _OVERLAPS:
        both = [name for name in wanted if name in group]
        if len(both) > 1:
            raise ValueError(f"expected one of {' and '.join(both)}, which change the same parameters")
    if with_speed and "friction" in wanted and not {"friction_speed", "standard"} & set(wanted):
        wanted.insert(wanted.index("friction") + 1, "friction_speed")
    return {name: _block(name, table, plant) for name in wanted}


def _block(name: str, unknowns: Table, plant: Plant) -> Block:
    """The block of a kind, with the owners and the prior of its table."""
    kind, table = KINDS[name], unknowns.table(name)
    more = "shared" if kind.shareable else "", "by_direction" if kind.by_direction else ""
    table.only(*filter(None, (kind.owners, "prior", *more)))
    given: dict[str, list[str] | float] = {}
    # a speed without joints of its own belongs to those of the friction
    owned = unknowns.table("friction") if name == "friction_speed" and "joints" not in table else table
    if kind.owners and kind.owners in owned:
        motors = plant.motors if isinstance(plant, CoupledPlant) else ()
        names = {"bodies": plant.model.body_names, "joints": plant.model.joint_names, "motors": motors}
        known = names[kind.owners]
        owners = enumerate(owned.of(kind.owners, list, []))
        what = f"names of {kind.owners}"
        given[kind.owners] = [owned.known(kind.owners, owner, known, what, i) for i, owner in owners]
    if "prior" in table:
        given["prior_deviation"] = table.needed_number("prior", above=0.0)
    make = kind.by_direction if kind.by_direction and table.flag("by_direction", False) else kind.make
    block = make(**given)
    try:
        labels = block.labels(plant)
    except ValueError as error:
        raise ValueError(f"{name}: {one_line(error)}") from error
    shared = kind.shareable and table.flag("shared", False)
    return SharedBlock(block, len(labels)) if shared else block
