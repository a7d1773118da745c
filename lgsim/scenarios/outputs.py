"""What a study file keeps of each motion, and what it calls a failure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np

from lgsim.cli.errors import unknown
from lgsim.dynamics import Capsule
from lgsim.montecarlo import outputs
from lgsim.multibody import Model
from lgsim.scenarios.toml_table import Table

STATES: Mapping[str, Callable] = {
    "final_q": outputs.final_q,
    "final_v": outputs.final_v,
    "peak_torque": outputs.peak_torque,
    "peak_speed": outputs.peak_speed,
}
"""Outputs that need no more words."""
HISTORY = "history"
"""The output of the states in time."""
DISTANCES = {"end": outputs.FinalDistance, "most": outputs.LargestDistance}


def functions(table: Table, model: Model, saved: int) -> dict[str, Callable]:
    """The outputs of ``[outputs]`` by name.

    Raises:
        BadInput: with file, line and key.
    """
    table.only("keep", "attitudes", "positions", HISTORY, "distance", "clearance")
    found: dict[str, Callable] = {}
    for i, name in enumerate(table.of("keep", list, ["final_q", "final_v"])):
        if name not in STATES:
            with table.at("keep", i):
                raise unknown(f"expected one of {', '.join(STATES)}", str(name), list(STATES))
        found[name] = STATES[name]
    for key, kind in (("attitudes", outputs.FinalAttitude), ("positions", outputs.FinalPosition)):
        for i, frame in enumerate(table.of(key, list, [])):
            with table.at(key, i):
                found[f"{key.removesuffix('s')} of {frame}"] = kind(_frame(model, frame))
    if HISTORY in table:
        count = table.whole(HISTORY, 2, 2)
        if count > saved:
            raise table.fault(HISTORY, f"expected at most {saved}, the states that are kept, got {count}")
        found[HISTORY] = outputs.Subsampled(count)
    for key, make in (("distance", _distance), ("clearance", _clearance)):
        for each in table.tables(key):
            name = each.text("name")
            if not name or name in found:
                raise each.fault("name" if name else None, "expected a name of its own")
            found[name] = make(each, model)
    if not found:
        raise table.fault("keep", "expected at least one output")
    return found


def failures(root: Table, shapes: Mapping[str, Any]) -> dict[str, outputs.OutOfBounds]:
    """The failures of ``[[failures]]`` by name.

    Args:
        root: The outermost table.
        shapes: Of the outputs, by name.

    Raises:
        BadInput: with file, line and key.
    """
    found: dict[str, outputs.OutOfBounds] = {}
    for table in root.tables("failures"):
        table.only("name", "output", "entry", "above", "below")
        name, output = table.text("name"), table.text("output") or ""
        if not name or name in found:
            raise table.fault("name" if name else None, "expected a name of its own")
        if output not in shapes:
            with table.at("output" if output else None):
                raise unknown("expected the name of an output", output, list(shapes))
        if not {"above", "below"} & set(table.values):
            raise table.fault(None, "expected above, below, or both: what lies beyond has failed")
        size, entry = int(np.prod(shapes[output])), table.whole("entry", 0, 0) if "entry" in table else None
        if entry is not None and entry >= size:
            raise table.fault("entry", f"expected a number from 0 to {size - 1}, got {entry}")
        low, high = table.number("below", -np.inf), table.number("above", np.inf)
        found[name] = outputs.OutOfBounds(output, entry, jnp.asarray(low), jnp.asarray(high))
    return found


def _frame(model: Model, frame: Any) -> str:
    names = model.topology.body_names + model.topology.frame_names
    if frame not in names:
        raise unknown("expected the name of a frame", str(frame), names)
    return frame


def _distance(table: Table, model: Model) -> Callable:
    """Of a frame from a point, at the end or at most."""
    table.only("name", "frame", "point", "when")
    for key in ("frame", "point"):
        table.need(key)
    with table.at("frame"):
        frame = _frame(model, table.text("frame"))
    point = jnp.asarray(table.vector("point", 3), model.dtype)
    return DISTANCES[table.choice("when", tuple(DISTANCES), "end")](frame, point)


def _clearance(table: Table, model: Model) -> Callable:
    """The smallest distance of two capsules."""
    table.only("name", "first", "second")
    pair = []
    for key in ("first", "second"):
        table.need(key)
        part = table.table(key).only("frame", "start", "end", "radius")
        frame = part.text("frame")
        if frame is not None:
            with part.at("frame"):
                _frame(model, frame)
        start = np.zeros(3) if part.vector("start", 3) is None else part.vector("start", 3)
        end = start if part.vector("end", 3) is None else part.vector("end", 3)
        radius = part.number("radius", 0.0, least=0.0)
        pair.append(Capsule(frame, *(jnp.asarray(x, model.dtype) for x in (start, end, radius))))
    return outputs.MinimumClearance([(pair[0], pair[1])])
