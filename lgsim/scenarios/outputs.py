"""Outputs and failure criteria of a study file, as functions of a motion."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import jax.numpy as jnp
import numpy as np
from jax import Array

from lgsim.dynamics.kinematics import frame_index
from lgsim.montecarlo import SampledMotion, outputs
from lgsim.multibody import Model
from lgsim.scenarios.tasks import named_solids
from lgsim.simulation.between_states import Quantity
from lgsim.simulation.events import Coordinate, Height
from lgsim.support.messages import unknown_choice, unknown_name
from lgsim.support.toml_table import Table

Output = Callable[[SampledMotion], Array]
"""Function of the motion of a sample."""

STATES: Mapping[str, Output] = {
    "final_q": outputs.final_q,
    "final_v": outputs.final_v,
    "peak_torque": outputs.peak_torque,
    "peak_speed": outputs.peak_speed,
}
"""Outputs without parameters."""
HISTORY = "history"
"""Output that contains states over time."""
_DISTANCES = {"end": outputs.FinalDistance, "most": outputs.LargestDistance}
"""Kinds of distances by the key "when"."""


def read_outputs(table: Table, model: Model, saved: int) -> dict[str, Output]:
    """The outputs of `[outputs]` by name.

    Args:
        saved: Number of saved states of a motion.

    Raises:
        ScenarioError: with file, line and key.
    """
    table.only("keep", "attitudes", "positions", HISTORY, *_TABLES)
    found: dict[str, Output] = {}
    for i, name in enumerate(table.of("keep", list, ["final_q", "final_v"])):
        if name not in STATES:
            message = unknown_choice("expected one of", str(name), list(STATES))
            raise table.fault("keep", message, i)
        found[name] = STATES[name]
    for key, kind in (("attitudes", outputs.FinalAttitude), ("positions", outputs.FinalPosition)):
        for i, frame in enumerate(table.of(key, list, [])):
            found[f"{key.removesuffix('s')} of {frame}"] = kind(_frame(table, model, frame, key, i))
    if HISTORY in table:
        count = table.whole(HISTORY, 2, 2)
        if count > saved:
            raise table.fault(HISTORY, f"expected at most {saved}, the number of saved states, got {count}")
        found[HISTORY] = outputs.Subsampled(count)
    for key, make in _TABLES.items():
        for each in table.tables(key):
            name = each.text("name")
            if not name or name in found:
                raise each.fault("name" if name else None, "expected a unique name")
            found[name] = make(each, model)
    if not found:
        raise table.fault("keep", "expected at least one output")
    return found


def read_failures(root: Table, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, outputs.OutOfBounds]:
    """The failure criteria of `[[failures]]` by name.

    Args:
        shapes: Shapes of the outputs by name.

    Raises:
        ScenarioError: with file, line and key.
    """
    found: dict[str, outputs.OutOfBounds] = {}
    for table in root.tables("failures"):
        table.only("name", "output", "entry", "above", "below")
        name, output = table.text("name"), table.text("output") or ""
        if not name or name in found:
            raise table.fault("name" if name else None, "expected a unique name")
        if output not in shapes:
            message = unknown_name("expected the name of an output", output, list(shapes))
            raise table.fault("output" if output else None, message)
        if not {"above", "below"} & set(table.values):
            raise table.fault(None, "expected above, below, or both: values beyond them count as failures")
        size, entry = int(np.prod(shapes[output])), table.whole("entry", 0, 0) if "entry" in table else None
        if entry is not None and entry >= size:
            raise table.fault("entry", f"expected a number from 0 to {size - 1}, got {entry}")
        low, high = table.number("below", -np.inf), table.number("above", np.inf)
        if low > high:
            raise table.fault("below", f"expected at most above = {high:g}, got {low:g}: every sample fails")
        found[name] = outputs.OutOfBounds(output, entry, jnp.asarray(low), jnp.asarray(high))
    return found


def _frame(table: Table, model: Model, frame: object, key: str, *inner: int) -> str:
    """Check that a value is the name of a frame."""
    names = model.topology.body_names + model.topology.frame_names
    return table.known(key, frame, names, "the name of a frame", *inner)


def _distance(table: Table, model: Model) -> Output:
    """Distance between a frame and a fixed point, m: the final or the largest one."""
    table.only("name", "frame", "point", "when")
    table.need("frame", "point")
    frame = _frame(table, model, table.text("frame"), "frame")
    point = jnp.asarray(table.vector("point", 3), model.dtype)
    return _DISTANCES[table.choice("when", tuple(_DISTANCES), "end")](frame, point)


def _least_clearance(table: Table, model: Model) -> Output:
    """The smallest clearance between collision geometries, m, and its time."""
    table.only("name", "solids")
    pairs = model.solid_pairs(named_solids(table, "solids", model) or None)
    if not pairs[0]:
        raise table.fault(None, "no collision pairs: set `solids = true` and `[[machine.obstacles]]` in `[machine]`")
    return outputs.LeastClearance(pairs)


def _quantity(table: Table, model: Model) -> Quantity:
    """The coordinate of a joint, rad or m, or the height of a frame, m."""
    if ("joint" in table) == ("height_of" in table):
        raise table.fault(None, "expected either joint, a joint of one coordinate, or height_of, a frame")
    if "height_of" in table:
        return Height(frame_index(model.topology, _frame(table, model, table.text("height_of"), "height_of")))
    single = {name: part.start for name, part in model.q_slices.items() if part.stop - part.start == 1}
    joint = table.known("joint", table.text("joint"), tuple(single), "the name of a joint of one coordinate")
    return Coordinate(single[joint])


def _extreme(table: Table, model: Model, make: Callable[[Quantity], Output]) -> Output:
    """The largest or smallest value of a quantity, between saved states too."""
    table.only("name", "joint", "height_of")
    return make(_quantity(table, model))


def _time_of(table: Table, model: Model) -> Output:
    """The first time at which a quantity crosses a value, s."""
    table.only("name", "joint", "height_of", "value", "rising")
    value = jnp.asarray(table.needed_number("value"), model.dtype)
    return outputs.time_of(_quantity(table, model), value, rising=table.of("rising", bool))


_TABLES: Mapping[str, Callable[[Table, Model], Output]] = {
    "distance": _distance,
    "least_clearance": _least_clearance,
    "maximum": partial(_extreme, make=outputs.maximum),
    "minimum": partial(_extreme, make=outputs.minimum),
    "time_of": _time_of,
}
"""Readers of the tables of outputs by key."""
