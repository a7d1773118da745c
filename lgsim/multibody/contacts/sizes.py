"""Layout of ``Model.contacts``: contact parameters, sizes of the shape, then sizes of the surface.

``Model.heights`` contains the heights of the terrain, frame by frame.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import jax.numpy as jnp
import numpy as np
from jax import Array

from lgsim.multibody.contacts.contact import Contact


def width(contacts: Sequence[Contact]) -> int:
    """Number of columns that all contacts need."""
    return max((len(contact.columns) for contact in contacts), default=0)


def rows(contacts: Sequence[Contact], numbers: Sequence[Mapping[str, float]]) -> np.ndarray:
    """Values of contacts as an array (c, k), from values by column name; 0 for columns that a contact lacks."""
    out = np.zeros((len(contacts), width(contacts)))
    for row, contact, given in zip(out, contacts, numbers, strict=True):
        row[: len(contact.columns)] = [given[name] for name in contact.columns]
    return out


def point_slices(contacts: Sequence[Contact]) -> dict[str, slice]:
    """Slice of the points of each contact among all contact points, by name."""
    ends = np.cumsum([0, *(contact.points for contact in contacts)])
    return {c.name: slice(int(a), int(b)) for c, a, b in zip(contacts, ends[:-1], ends[1:], strict=True)}


def grids(contacts: Sequence[Contact]) -> dict[str, tuple[int, ...]]:
    """Shape of the heights of each frame with a height field, by frame name, in order."""
    return {c.against: c.surface.grid for c in contacts if c.surface.grid}


def height_slices(contacts: Sequence[Contact]) -> dict[str, slice]:
    """Slice of the heights of each frame in ``Model.heights``, by frame name."""
    own = grids(contacts)
    ends = np.cumsum([0, *(prod(grid) for grid in own.values())])
    return {name: slice(int(a), int(b)) for name, a, b in zip(own, ends[:-1], ends[1:], strict=True)}


def padded(array: Array, columns: int) -> Array:
    """An array of contacts, padded with zero columns."""
    return jnp.pad(array, ((0, 0), (0, columns - array.shape[1])))


def parts(contact: Contact, numbers: Array) -> tuple[dict[str, Array], dict[str, Array], dict[str, Array]]:
    """Contact parameters, shape sizes and surface sizes by name, (1, m, *batch), of rows (m, k, *batch) of a kind."""
    by_name = {name: numbers[:, i][None] for i, name in enumerate(contact.columns)}
    law = {name: by_name[name] for name in contact.law}
    shape = {name: by_name[name] for name in contact.shape.sizes}
    return law, shape, {name: by_name[f"surface_{name}"] for name in contact.surface.sizes}
