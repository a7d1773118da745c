"""Contacts and collision geometry from the <collision> elements of URDF and SDF."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from jaxtyping import Float

from lgsim.formats.contacts.file_contacts import Names, add_file_contacts
from lgsim.formats.links import Machine
from lgsim.formats.solids.element_solids import element_solids
from lgsim.formats.solids.model_solids import SolidNames, add_file_solids, neighbors
from lgsim.formats.xml import Element
from lgsim.multibody.model import Model


def add_shapes(
    model: Model,
    machine: Machine,
    poses: Callable[[str], Callable[[Element], Float[np.ndarray, "4 4"]]],
    joined: Iterable[tuple[str, str]],
    contacts: Names,
    contact_law: Mapping[str, Any] | None,
    solids: SolidNames,
    solid_meshes: Mapping[str, int] | None,
) -> Model:
    """Add the contacts and collision geometry of a file to a model; findings are added to `machine`.

    Args:
        poses: Function from the name of a link to a function that gives the poses of its elements.
        joined: Pairs of links connected by a joint, which are excluded from collision checks.
    """
    if not (contacts or solids):
        return model
    own = {
        name: list(element_solids(name, link.element, poses(name), machine.ignored))
        for name, link in machine.links.items()
    }
    remarks = []
    if contacts:
        model, *remarks = add_file_contacts(model, own, contacts, contact_law, machine.element.error)
    if solids:
        model, *more = add_file_solids(model, own, solids, solid_meshes, neighbors(joined), machine.element.error)
        remarks += more
    for assumed, left_out in zip(remarks[::2], remarks[1::2], strict=True):
        machine.assumed.extend(assumed)
        machine.ignored.extend(left_out)
    return model
