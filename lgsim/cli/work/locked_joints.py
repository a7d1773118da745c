"""Joints that a fit locks: at given positions, or at those at which they stand in the recordings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
from jaxtyping import Float, Int

from lgsim.cli.errors import BadInput, bad_input
from lgsim.cli.options import names_of
from lgsim.cli.terminal import note
from lgsim.identify import Recording
from lgsim.identify.recording.columns import file_to_own_index
from lgsim.multibody import Model
from lgsim.scenarios.recording_map import RecordingMap
from lgsim.scenarios.states import configuration
from lgsim.support.messages import counted, unknown_name

STANDS = 0.01
"""Largest range of the positions of a joint that stands, rad or m: noise and creep."""


def lock(text: str, model: Model, given: RecordingMap, motions: Sequence[Path]) -> tuple[Model, RecordingMap]:
    """The model with locked joints, and the map that reads recordings of the whole model.

    A joint without a given position is locked where it stands in the recordings, or at its neutral position if they do
    not have it; the map then has its constants.

    Args:
        text: Names of joints, separated by commas, each with or without its position: "finger,wrist=0.3".

    Raises:
        BadInput: a joint is unknown, cannot be locked, or moves in a recording.
    """
    entries = names_of(text)
    names = [entry.partition("=")[0].strip() for entry in entries]
    fixed = {name for name, entry in zip(names, entries, strict=True) if "=" in entry}
    with bad_input("--lock: "):
        for name in names:
            if name not in model.joint_names:
                raise ValueError(unknown_name("expected names of joints", name, model.joint_names))
        q = configuration(",".join(entry for entry in entries if "=" in entry) or None, model, 0)
    options: dict[str, Any] = dict(cast(Mapping[str, Any], given.columns.get("options", {})))
    for path in motions:
        with bad_input():
            found = given.positions(path, model)
        for name in names:
            if name in found and name not in fixed:
                part, joint = model.q_slices[name], f"--lock: {path}: joint {name!r}"
                q[part] = _standing(joint, found[name], None if path == motions[0] else q[part])
        absent = [name for name in names if name not in found]
        options["constants"] = _constants(absent, q, model, options) | dict(options.get("constants", {}))
        given = given._replace(columns={**given.columns, "options": options})
    with bad_input("--lock: "):
        locked = model.lock(names, q)
    values = [f"{name} {':'.join(f'{x:.6g}' for x in q[model.q_slices[name]])}" for name in names]
    note(f"{counted(len(names), 'joint')} locked: {', '.join(values)}")
    return locked, given.of_dofs(_places(model.v_slices, locked.v_slices))


def _constants(
    names: Sequence[str], q: Float[np.ndarray, " nq"], model: Model, options: Mapping[str, Any]
) -> dict[str, float]:
    """The constants of a map for the coordinates of joints."""
    order, out = options.get("quaternion", "wxyz"), {}
    for name in names:
        part, joint = model.q_slices[name], model.topology.joints[model.joint_names.index(name)]
        for k in range(part.stop - part.start):
            title = f"q {name}[{k}]" if part.stop - part.start > 1 else f"q {name}"
            out[title] = float(q[part.start + file_to_own_index(joint, "q", k, order)])
    return out


def _standing(
    what: str, positions: Float[np.ndarray, "n nq"], before: Float[np.ndarray, " nq"] | None
) -> Float[np.ndarray, " nq"]:
    """The position at which a joint stands; raises BadInput if it moves, also from one recording to the next."""
    known = positions[np.all(np.isfinite(positions), axis=1)]
    if not len(known):
        raise BadInput(f"{what}: expected positions, got none; give one, as in --lock wrist=0.3")
    low, middle, high = np.percentile(known, [1, 50, 99], axis=0)
    if np.max(high - low) > STANDS or (before is not None and np.max(np.abs(middle - before)) > STANDS):
        raise BadInput(
            f"{what}: expected a joint that stands, got one that moves by {np.max(high - low):.3g} rad or m, or stands"
            " elsewhere than in another recording; leave it free"
        )
    return middle


def _places(every: Mapping[str, slice], own: Mapping[str, slice]) -> Int[np.ndarray, " k"]:
    """The columns of some joints among those of all joints."""
    return np.concatenate([np.arange(every[name].start, every[name].stop) for name in own])


def restricted(recording: Recording, model: Model) -> Recording:
    """A recording of the joints of a model that has some joints of the recording's model locked."""
    whole = recording.model
    if whole is model:
        return recording
    q, v = _places(whole.q_slices, model.q_slices), _places(whole.v_slices, model.v_slices)
    columns = {name: q if name == "q" else v for name in recording.channels if not name.startswith("imu ")}
    arrays = {name: recording.channels[name][:, at] for name, at in columns.items()}
    weights = {name: x[:, v] if name in columns else x for name, x in recording.weights.items()}
    return replace(recording, model=model, weights=weights, **arrays)
