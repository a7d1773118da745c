"""Summary of a model in at most ten lines, the text of its ``repr``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from lgsim.multibody.joint_numbers import DRIVES
from lgsim.multibody.topology import WORLD, Topology
from lgsim.support.check import is_traced
from lgsim.support.messages import counted
from lgsim.support.printable import printable

NAMED = 3
"""Number of names that a line shows."""
_WIDTH = 24
"""Largest number of characters of a name."""


def summary(tree: Topology, inertias: Any, drives: Any) -> str:
    """Names, counts and mass of a model, one fact a line; also for traced and batched models.

    Args:
        tree: Topology of the model.
        inertias: Its inertial parameters, (..., n, 10), or any other leaf, such as an axis of ``jax.vmap``.
        drives: Its parameters of degrees of freedom, (..., nv, 15), or any other leaf.
    """
    roots = [i for i, parent in enumerate(tree.parents) if parent == WORLD]
    base = f"floating base {_short(tree.body_names[roots[0]])}" if tree.floats else _fixed(len(roots))
    kinds = Counter(type(joint).__name__.lower() for joint in tree.joints)
    rows = f", {counted(tree.loop_rows, 'row')}" if tree.loops else ""
    facts = (
        ("bodies", _named(tree.body_names)),
        ("joints", f"{', '.join(f'{count} {kind}' for kind, count in kinds.items())}{_names(tree.joint_names)}"),
        ("degrees of freedom", f"{tree.nv} (nq = {tree.nq}, nv = {tree.nv})"),
        ("loops", f"{_named([loop.name for loop in tree.loops])}{rows}"),
        ("contacts", _named([contact.name for contact in tree.contacts])),
        ("actuators", _actuators(tree.nv, drives)),
        ("mass", _mass(inertias)),
    )
    dtype = getattr(inertias, "dtype", None)
    head = f"Model on a {base}" + ("" if dtype is None else f", {dtype}")
    return "\n".join([head, *(f"  {name}: {text}" for name, text in facts)])


def _fixed(count: int) -> str:
    """Description of a base that is not a single floating one."""
    return "fixed base" if count == 1 else f"fixed base with {count} root joints"


def _actuators(nv: int, drives: Any) -> str:
    """Number of degrees of freedom with an effort limit: a model has no other data of actuators."""
    if not hasattr(drives, "dtype") or is_traced(drives):
        return "unknown effort limits"
    limits = np.asarray(drives)[..., DRIVES.index("effort_limit")]
    finite = np.isfinite(limits) & (limits > 0)
    count = int(finite.reshape(-1, nv).all(axis=0).sum())
    return f"effort limits on {count} of {nv} degrees of freedom"


def _mass(inertias: Any) -> str:
    """Total mass of the moving bodies."""
    if not hasattr(inertias, "dtype") or is_traced(inertias):
        return "unknown, not a concrete array"
    masses = np.asarray(inertias)[..., 0].sum(axis=-1)
    if masses.ndim == 0:
        return f"{float(masses):.6g} kg"
    return f"{float(masses.min()):.6g} to {float(masses.max()):.6g} kg, batch of shape {masses.shape}"


def _named(names: Sequence[str]) -> str:
    return f"{len(names)}{_names(names)}" if names else "none"


def _names(names: Sequence[str]) -> str:
    """The first names in parentheses."""
    more = ", ..." if len(names) > NAMED else ""
    return f" ({', '.join(map(_short, names[:NAMED]))}{more})"


def _short(name: str) -> str:
    shown = printable(name)
    return shown if len(shown) <= _WIDTH else f"{shown[: _WIDTH - 3]}..."
