"""Where the numbers of contacts are in ``Model.contacts``: the law, sizes of the shape, then those of the surface.

Heights of the ground are in ``Model.heights``, those of one frame after another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import jax.numpy as jnp
import numpy as np
from jax import Array

from lgsim.multibody.contacts.contact import Contact


def width(contacts: Sequence[Contact]) -> int:
    """The number of columns that contacts need together."""
    return max((len(contact.columns) for contact in contacts), default=0)


def rows(contacts: Sequence[Contact], numbers: Sequence[Mapping[str, float]]) -> np.ndarray:
    """The array (c, k) of the numbers of contacts by the names of their columns; 0 where a contact has no column."""
    out = np.zeros((len(contacts), width(contacts)))
    for row, contact, given in zip(out, contacts, numbers, strict=True):
        row[: len(contact.columns)] = [given[name] for name in contact.columns]
    return out


def point_slices(contacts: Sequence[Contact]) -> dict[str, slice]:
    """Where the points of each contact are among the points of all, by its name."""
    ends = np.cumsum([0, *(contact.points for contact in contacts)])
    return {c.name: slice(int(a), int(b)) for c, a, b in zip(contacts, ends[:-1], ends[1:], strict=True)}


def grids(contacts: Sequence[Contact]) -> dict[str, tuple[int, ...]]:
    """The shapes of the heights of all frames that have some, by the name of the frame, in order."""
    return {c.against: c.surface.grid for c in contacts if c.surface.grid}


def height_slices(contacts: Sequence[Contact]) -> dict[str, slice]:
    """Where the heights of each frame are in ``Model.heights``, by its name."""
    own = grids(contacts)
    ends = np.cumsum([0, *(prod(grid) for grid in own.values())])
    return {name: slice(int(a), int(b)) for name, a, b in zip(own, ends[:-1], ends[1:], strict=True)}


def padded(array: Array, columns: int) -> Array:
    """An array of contacts with zeros in further columns."""
    return jnp.pad(array, ((0, 0), (0, columns - array.shape[1])))


def parts(contact: Contact, numbers: Array) -> tuple[dict[str, Array], dict[str, Array], dict[str, Array]]:
    """(law, sizes of the shape, the surface's) by name, (1, m, *batch), of rows (m, k, *batch) of like contacts."""
    by_name = {name: numbers[:, i][None] for i, name in enumerate(contact.columns)}
    law = {name: by_name[name] for name in contact.law}
    shape = {name: by_name[name] for name in contact.shape.sizes}
    return law, shape, {name: by_name[f"surface_{name}"] for name in contact.surface.sizes}
