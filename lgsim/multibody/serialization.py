"""Serialization of models as text and arrays, to store them with results, and their fingerprint."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import MISSING, asdict, fields
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from lgsim._compile.xla import export_node
from lgsim.multibody.contacts import Contact
from lgsim.multibody.contacts.sizes import grids
from lgsim.multibody.geometry.solid import Solid
from lgsim.multibody.joint import Joint, Row
from lgsim.multibody.joints import JOINTS
from lgsim.multibody.loops import KINDS, Loop, LoopKind
from lgsim.multibody.model import DRIVES, Model
from lgsim.multibody.record_checks import check_shapes, check_topology
from lgsim.multibody.topology import ModelError, Topology
from lgsim.support.messages import one_line

_KINDS = {kind.__name__: kind for kind in JOINTS}
_LOOP_KINDS = {kind.__name__: kind for kind in KINDS}


def to_record(model: Model) -> tuple[str, dict[str, np.ndarray]]:
    """The topology as JSON and the parameters by name, for ``from_record``."""
    named = {f.name: getattr(model, f.name) for f in fields(Model) if f.name != "topology"}
    numbers = {name: np.asarray(x) for name, x in named.items() if x is not None}
    return _topology_text(model.topology), numbers


def _topology_text(tree: Topology) -> str:
    """A topology as JSON."""
    plain = {field.name: getattr(tree, field.name) for field in fields(Topology)}
    plain["loops"] = [{**vars(loop), "kind": _plain_kind(loop.kind)} for loop in tree.loops]
    plain["contacts"] = [contact.plain() for contact in tree.contacts]
    plain["solids"] = [solid.plain() for solid in tree.solids]
    plain["joints"] = [_plain_joint(joint) for joint in tree.joints]
    return json.dumps(plain)


def from_record(text: str, numbers: Mapping[str, Any]) -> Model:
    """The model from a record.

    Raises:
        ModelError: the text is not a record, an unknown type of joint or loop, an invalid index or count, or missing
            parameters or ones of other shapes.
    """
    try:
        tree = _topology(text)
        wanted = [f.name for f in fields(Model) if f.name != "topology" and f.default is MISSING]
        found = {name: jnp.asarray(numbers[name]) for name in wanted}
        if tree.loop_number_starts[-1]:
            found["loops"] = jnp.asarray(numbers["loops"])
        if tree.contacts:
            found["contacts"] = jnp.asarray(numbers["contacts"])
        if grids(tree.contacts):
            found["heights"] = jnp.asarray(numbers["heights"])
        if tree.solids:
            found |= {name: jnp.asarray(numbers[name]) for name in ("solids", "solid_poses")}
        if any(solid.geometry.sample_count for solid in tree.solids):
            found["grids"] = jnp.asarray(numbers["grids"])
        check_shapes(tree, found, len(DRIVES))
        return Model(tree, **found)
    except Exception as error:  # json, numpy and joint classes raise various errors for damaged records
        what = f"{type(error).__name__}: {one_line(error)}"
        raise ModelError(f"record: expected what to_record wrote, got {what}") from error


def _topology(text: str) -> Topology:
    """The topology from ``_topology_text``; invalid text raises various errors."""
    plain = json.loads(text)
    joints = tuple(_joint(dict(joint)) for joint in plain.pop("joints"))
    plain["loops"] = [Loop(**{**loop, "kind": _kind(dict(loop["kind"]))}) for loop in plain["loops"]]
    plain["contacts"] = [Contact.of_plain(contact) for contact in plain["contacts"]]
    plain["solids"] = [Solid.of_plain(solid) for solid in plain["solids"]]
    plain["exclusions"] = [tuple(pair) for pair in plain["exclusions"]]
    rest: dict[str, Any] = {k: tuple(x) if isinstance(x, list) else x for k, x in plain.items()}
    tree = Topology(joints, **rest)
    check_topology(tree)
    return tree


def _static_topology(text: str) -> Topology:
    """The topology of an exported function's model.

    Raises:
        ModelError: the text is not from ``_topology_text``.
    """
    try:
        return _topology(text)
    except Exception as error:
        what = f"{type(error).__name__}: {one_line(error)}"
        raise ModelError(f"model of an exported function: expected what lgsim wrote, got {what}") from error


def fingerprint(model: Model) -> str:
    """Sixteen hexadecimal digits that depend on topology, names and parameters of a model."""
    text, _ = to_record(model)
    digest = hashlib.sha256(text.encode())
    for leaf in jax.tree.leaves(model):
        digest.update(np.ascontiguousarray(leaf).tobytes())
    return digest.hexdigest()[:16]


def _plain_joint(joint: Joint) -> dict[str, Any]:
    return {"kind": type(joint).__name__, **asdict(joint)}


def _plain_kind(kind: LoopKind) -> dict[str, Any]:
    found = {f.name: getattr(kind, f.name) for f in fields(kind)}
    plain = {name: _plain_joint(x) if isinstance(x, Joint) else x for name, x in found.items()}
    return {"kind": type(kind).__name__, **plain}


def _kind(plain: dict[str, Any]) -> LoopKind:
    kind = _LOOP_KINDS[plain.pop("kind")]
    return kind(**{name: _joint(dict(x)) if isinstance(x, dict) else x for name, x in plain.items()})


def _joint(plain: dict[str, Any]) -> Joint:
    kind = _KINDS[plain.pop("kind")]
    if "sequence" in plain:
        plain["sequence"] = tuple(Row(*row) for row in plain["sequence"])
    return kind(**plain)


export_node(
    Model, "lgsim.Model", lambda static: _topology_text(static[0]), _static_topology,
    lambda tree, *numbers: Model(tree, *numbers),
)  # fmt: skip
