"""Collision geometry of models that are derived from other models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import numpy as np

from lgsim.multibody.geometry.solid import Solid, width
from lgsim.multibody.geometry.solid_checks import LEAVES, Described, check_frames, place_of
from lgsim.multibody.topology import ROOT, ModelError, Topology
from lgsim.support.check import is_traced
from lgsim.support.messages import unknown_name


def numbers_of(solids: Sequence[Described], dtype: Any) -> dict[str, Any]:
    """Leaves of a model with collision geometry; NumPy arrays if all values are concrete."""
    traced = any(is_traced(x) for each in solids for x in (*each.sizes, each.pose))
    library: Any = jnp if traced else np
    columns = width([each.solid for each in solids])
    rows = [[*each.sizes, *(0.0,) * (columns - len(each.sizes))] for each in solids]
    sizes = library.stack([library.asarray(row, dtype) for row in rows])
    samples = [library.asarray(each.samples, dtype) for each in solids if each.samples is not None]
    return {
        "solids": sizes,
        "solid_poses": library.stack([library.asarray(each.pose, dtype) for each in solids]),
        "grids": library.concatenate(samples) if samples else None,
    }


def add_solids(tree: Topology, numbers: Mapping[str, Any], added: Sequence[Described]) -> tuple[Topology, dict]:
    """The topology with additional collision geometry, and the leaves of all.

    Raises:
        ModelError: a name is taken, or an unknown frame.
    """
    if not added:
        return tree, {name: numbers[name] for name in LEAVES}
    topology = replace(tree, solids=(*tree.solids, *(each.solid for each in added)))
    check_frames(topology, topology.solids)
    own = {name: numbers[name] for name in LEAVES}
    return topology, joined_numbers(own, numbers_of(added, numbers["placements"].dtype))


def joined(own: Topology, added: Topology, frame: str, prefix: str) -> dict[str, Any]:
    """Collision geometry and exclusions of a model and of another one whose world is fixed to a frame of the first."""
    moved: list[Solid] = [
        replace(s, name=prefix + s.name, frame=frame if s.frame == ROOT else prefix + s.frame) for s in added.solids
    ]
    apart = tuple((prefix + a, prefix + b) for a, b in added.exclusions)
    return {"solids": (*own.solids, *moved), "exclusions": own.exclusions + apart}


def joined_numbers(own: Mapping[str, Any], added: Mapping[str, Any]) -> dict[str, Any]:
    """Leaves with the collision geometry of two models."""
    found: dict[str, Any] = {}
    for name in LEAVES:
        parts = [numbers[name] for numbers in (own, added) if numbers[name] is not None]
        if name == "solids" and parts:
            columns = max(part.shape[1] for part in parts)
            parts = [jnp.pad(part, ((0, 0), (0, columns - part.shape[1]))) for part in parts]
        found[name] = None if not parts else parts[0] if len(parts) == 1 else jnp.concatenate(parts)
        found[name] = None if found[name] is None else jnp.asarray(found[name])
    return found


def replaced(tree: Topology, numbers: Mapping[str, Any], solid: str, pose: Any, sizes: Mapping[str, Any]) -> dict:
    """See ``Model.replace_solid``."""
    place = place_of(tree, solid)
    names = tree.solids[place].geometry.sizes
    out: dict[str, Any] = {}
    for key, value in sizes.items():
        if key not in names:
            raise ModelError(unknown_name(f"solid {solid!r}: expected a size", key, list(names)))
        out["solids"] = out.get("solids", numbers["solids"]).at[place, names.index(key)].set(value)
    if pose is not None:
        if np.shape(pose) != (4, 4):
            raise ModelError(f"solid {solid!r}: pose: expected shape (4, 4), got {np.shape(pose)}")
        out["solid_poses"] = numbers["solid_poses"].at[place].set(pose)
    return out


def exclude(tree: Topology, pairs: Sequence[tuple[str, str]]) -> Topology:
    """See ``Model.exclude``."""
    for a, b in pairs:
        if place_of(tree, a) == place_of(tree, b):
            raise ModelError(f"exclude: expected pairs of two solids, got {a!r} with itself")
    known = {frozenset(pair) for pair in tree.exclusions}
    new = tuple((str(a), str(b)) for a, b in pairs if frozenset((a, b)) not in known)
    return replace(tree, exclusions=(*tree.exclusions, *new))
