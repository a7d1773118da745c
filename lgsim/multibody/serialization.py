"""A model as plain text and arrays, to keep it with results, and its fingerprint."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from lgsim.multibody.builder import USUAL
from lgsim.multibody.joint import Joint, Row
from lgsim.multibody.joints import JOINTS
from lgsim.multibody.model import DRIVES, Model
from lgsim.multibody.topology import ModelError, Topology

_KINDS = {kind.__name__: kind for kind in JOINTS}


def to_record(model: Model) -> tuple[str, dict[str, np.ndarray]]:
    """(the topology as JSON, the numbers by name): all that ``from_record`` needs."""
    tree = model.topology
    plain = {field.name: getattr(tree, field.name) for field in fields(Topology)}
    if not tree.stribeck:
        del plain["stribeck"]  # as in records of versions that did not know it
    plain["joints"] = [{"kind": type(joint).__name__, **asdict(joint)} for joint in tree.joints]
    numbers = {f.name: np.asarray(getattr(model, f.name)) for f in fields(Model) if f.name != "topology"}
    return json.dumps(plain), numbers


def from_record(text: str, numbers: Mapping[str, Any]) -> Model:
    """The model of a record.

    Raises:
        ModelError: the text is no record, names a joint that lgsim does not have, or numbers are missing.
    """
    try:
        plain = json.loads(text)
        joints = tuple(_joint(dict(joint)) for joint in plain.pop("joints"))
        rest: dict[str, Any] = {k: tuple(x) if isinstance(x, list) else x for k, x in plain.items()}
        tree = Topology(joints, **rest)
        found = {f.name: jnp.asarray(numbers[f.name]) for f in fields(Model) if f.name != "topology"}
        # columns that records of older versions lack are what a builder takes where nothing is given
        lacking = jnp.asarray([USUAL[name] for name in DRIVES[found["drives"].shape[1] :]], found["drives"].dtype)
        more = jnp.broadcast_to(lacking, (len(found["drives"]), lacking.size))
        found["drives"] = jnp.concatenate([found["drives"], more], axis=1)
        return Model(tree, **found)
    except (KeyError, TypeError, ValueError) as error:
        raise ModelError(f"record: expected what to_record wrote, got {type(error).__name__}: {error}") from error


def fingerprint(model: Model) -> str:
    """Sixteen hexadecimal digits that differ between models of different topology, names or numbers."""
    text, _ = to_record(model)
    digest = hashlib.sha256(text.encode())
    for leaf in jax.tree.leaves(model):
        digest.update(np.ascontiguousarray(leaf).tobytes())
    return digest.hexdigest()[:16]


def _joint(plain: dict[str, Any]) -> Joint:
    kind = _KINDS[plain.pop("kind")]
    if "sequence" in plain:
        plain["sequence"] = tuple(Row(*row) for row in plain["sequence"])
    return kind(**plain)
