"""Contacts of models that are derived from other models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import jax.numpy as jnp
import numpy as np
from jax import Array

from lgsim.multibody.contacts.contact import Contact
from lgsim.multibody.contacts.sizes import grids, height_slices, padded, width
from lgsim.multibody.topology import ROOT, ModelError, Topology


def acting(tree: Topology, numbers: Array | None, heights: Array | None) -> tuple[Topology, dict[str, Array | None]]:
    """The topology and the contact arrays by name, without contacts whose two sides are now on one body."""
    kept = [i for i, c in enumerate(tree.contacts) if tree.carrier(c.frame) != tree.carrier(c.against)]
    if len(kept) == len(tree.contacts) or numbers is None:
        return tree, {"contacts": numbers, "heights": heights}
    contacts = tuple(tree.contacts[i] for i in kept)
    left = numbers[np.array(kept), : width(contacts)] if kept else None
    fields = [] if heights is None else [heights[height_slices(tree.contacts)[frame]] for frame in grids(contacts)]
    return replace(tree, contacts=contacts), {
        "contacts": left,
        "heights": jnp.concatenate(fields) if fields else None,
    }


def joined(own: Sequence[Contact], added: Sequence[Contact], frame: str, prefix: str) -> tuple[Contact, ...]:
    """The contacts of a model and of another model whose world is fixed to a frame of the first one.

    Raises:
        ModelError: both have a height field on the frame.
    """

    def moved(name: str) -> str:
        return frame if name == ROOT else prefix + name

    new = [replace(c, name=prefix + c.name, frame=moved(c.frame), against=moved(c.against)) for c in added]
    for name in grids(own).keys() & grids(new).keys():
        raise ModelError(f"attach: frame {name!r}: expected one height field on a frame, and both models have one")
    return (*own, *new)


def joined_numbers(contacts: Sequence[Contact], own: Array | None, added: Array | None) -> Array | None:
    """The values (c, k) of the contacts of two models."""
    found = [padded(array, width(contacts)) for array in (own, added) if array is not None]
    return jnp.concatenate(found) if found else None
