"""Maps of the columns of a recording: their slots, units, signs and offsets, and the options of a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from lgsim.identify.recording.columns import (
    SENSORS,
    TIME,
    Slot,
    file_to_own_index,
    parse_name,
    parse_unit,
    split_unit,
    units_of,
)
from lgsim.identify.recording.coordinates import has_quaternion
from lgsim.identify.recording.recording import CHANNELS
from lgsim.multibody.model import Model
from lgsim.support import toml_lines
from lgsim.support.reading.file_faults import file_faults
from lgsim.support.reading.size_limits import read_bytes
from lgsim.support.toml_table import LARGEST_COUNT, shown


class RecordingMapError(ValueError):
    """A column of the file or of its map is invalid or ambiguous.

    Attributes:
        column: Name of the column or constant.
        key: The invalid key of the column's table in the map; "" for the whole table.
        reason: The fault, without the file name.
    """

    def __init__(self, place: str, column: str, key: str, reason: str) -> None:
        super().__init__(f"{place}: {reason}")
        self.column, self.key, self.reason = column, key, reason


class Fault(ValueError):
    """A fault as (key, reason), before the file and the column are known."""


class Entry(NamedTuple):
    """A column of a file with its slot in the recording: value = scale * cell + offset, in SI units.

    Attributes:
        column: Name of the column.
        slot: Its slot in the recording.
        scale: Factor of a cell.
        offset: Value of a cell that is zero.
    """

    column: str
    slot: Slot
    scale: float
    offset: float = 0.0

    def values(self, cells: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        """The values of some cells in SI units."""
        # damaged cells may hold any number
        with np.errstate(invalid="ignore", over="ignore"):
            return self.scale * cells + self.offset if self.offset else self.scale * cells


class WorldAxes(NamedTuple):
    """The components of a floating base's twist that a file has in world axes."""

    linear: bool
    angular: bool


TWISTS = {"body": WorldAxes(False, False), "world": WorldAxes(True, True), "mixed": WorldAxes(True, False)}
"""The axes of a floating base's velocity by option."""
_OPTIONS = {
    "quaternion": "wxyz", "twist": "body", "automatic": True, "constants": {}, "episode": None, "names": None,
    "rate": None, "files": (), "resample": True,
}  # fmt: skip
_LARGEST_NUMBER = 1e300
_FIELDS = ("joint", "frame", "quantity", "index", "unit", "sign", "scale", "offset", "columns")


def split_map(
    map: Mapping[str, Any] | str | Path | None,
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """(entries by column, options, topics) of the map."""
    where = "map"
    if isinstance(map, str | Path):
        where = str(map)
        if not Path(map).exists():
            raise FileNotFoundError(f"{map}: no such file")
        with file_faults(map, "a TOML file"):
            map = toml_lines.parse(read_bytes(map).decode())
    mapped = dict(map or {})
    topics, given = mapped.pop("topics", {}), mapped.pop("options", {})
    for name, table in (("topics", topics), ("options", given)):
        if not isinstance(table, Mapping):
            raise ValueError(f"{where}: {name}: expected a table, got {shown(table)}")
    topics, options = dict(topics), _OPTIONS | dict(given)
    if not isinstance(options["constants"], Mapping):
        raise ValueError(f"{where}: constants: expected a table, got {shown(options['constants'])}")
    for name in options:
        if name not in _OPTIONS:
            raise ValueError(f"{where}: expected an option of {', '.join(_OPTIONS)}, got {name!r}")
    for name, allowed in (("quaternion", ("wxyz", "xyzw")), ("twist", tuple(TWISTS))):
        if options[name] not in allowed:
            raise ValueError(f"{where}: {name}: expected one of {', '.join(allowed)}, got {options[name]!r}")
    episode = options["episode"]
    if episode is not None and (
        isinstance(episode, bool) or not isinstance(episode, int) or not 0 <= episode <= LARGEST_COUNT
    ):
        raise ValueError(f"{where}: episode: expected a nonnegative integer, got {shown(episode)}")
    rate = options["rate"]
    if rate is not None and (
        isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 < rate <= _LARGEST_NUMBER
    ):
        raise ValueError(f"{where}: rate: expected a positive number of samples per second, got {shown(rate)}")
    files = options["files"]
    # a table of files gives the names of the columns of files without a header
    options["files"] = dict(files) if isinstance(files, Mapping) else dict.fromkeys(_texts(where, "files", files))
    for names in (options["names"], *options["files"].values()):
        _texts(where, "names", names)
    return mapped, options, topics


def _texts(where: str, key: str, names: Any) -> tuple[str, ...]:
    """A list of distinct strings; empty for None."""
    if names is None:
        return ()
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"{where}: {key}: expected a list of strings, got {shown(names)}")
    if twice := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"{where}: {key}: expected distinct names, got {twice[0]!r} twice")
    return tuple(names)


def terms_of(column: str, spec: Any) -> dict[str, float] | None:
    """The factors of other columns, by name, of which an entry of the map is the weighted sum; None for others.

    Raises:
        Fault: they are not a table of finite numbers.
    """
    if not isinstance(spec, Mapping) or "columns" not in spec:
        return None
    terms = spec["columns"]
    if not isinstance(terms, Mapping) or not terms:
        raise Fault("columns", f'columns: expected a table such as {{"m5" = 1.0, "m6" = -0.5}}, got {shown(terms)}')
    return {name: finite_number({"columns": factor}, "columns", 1.0) for name, factor in terms.items()}


@contextmanager
def faults_at(place: str, column: str) -> Iterator[None]:
    """Convert faults raised inside to errors that name their column."""
    try:
        yield
    except Fault as error:
        raise RecordingMapError(place, column, *error.args) from None


def entry_of(column: str, spec: Any, model: Model, quaternion_order: str, automatic: bool) -> Entry | None:
    """The entry of a column from a name or a table; None if the column's own name is not sufficient."""
    if not isinstance(spec, str | Mapping):
        raise Fault("", f"expected a name or a table, got {shown(spec)}")
    fields = {"name": spec} if isinstance(spec, str) else dict(spec)
    if "columns" in fields and not {"quantity", "joint", "frame"} & set(fields):
        # a sum of columns without another description means what its own name means
        fields.setdefault("name", column)
    for name in fields:
        if name not in (*_FIELDS, "name"):
            raise Fault(name, f"expected a key of {', '.join(_FIELDS)}, got {name!r}")
    for key in ("name", "joint", "frame", "quantity", "unit"):
        if not isinstance(fields.get(key, ""), str | None):
            raise Fault(key, f"{key}: expected a string, got {shown(fields[key])}")
    name, unit = split_unit(fields.get("name", ""))
    if "name" in fields:
        found = parse_name(name, model, quaternion_order)
    else:
        found = [_slot_of_table(fields, model, quaternion_order)]
    if not found and automatic:
        return None
    if len(found) != 1:
        got = " or ".join(repr(str(slot)) for slot in found) or "neither"
        raise Fault(
            "",
            f"expected a name with one joint and one quantity, got {spec!r}, which may mean {got}; write a map"
            f' with a table such as {{joint = "{model.joint_names[0]}", quantity = "q"}}',
        )
    slot = found[0]
    factor = _factor_to_si(fields.get("unit", unit), slot, model)
    scale = finite_number(fields, "scale", 1.0) * finite_number(fields, "sign", 1.0)
    return Entry(column, slot, scale * factor, finite_number(fields, "offset", 0.0) * factor)


def finite_number(fields: Mapping[str, Any], key: str, default: float) -> float:
    """A finite number from a table of the map."""
    value = fields.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= _LARGEST_NUMBER:
        raise Fault(key, f"{key}: expected a finite number, got {shown(value)}")
    return float(value)


def _slot_of_table(fields: Mapping[str, Any], model: Model, quaternion_order: str) -> Slot:
    """The slot that a table of the map specifies."""
    channel, index = fields.get("quantity"), fields.get("index", 0)
    if channel == "time":
        return TIME
    kind, allowed = ("frame", model.frame_names) if channel in SENSORS else ("joint", model.joint_names)
    if channel not in (*CHANNELS, *SENSORS):
        every = ", ".join(("time", *CHANNELS, *SENSORS))
        raise Fault("quantity", f"quantity: expected one of {every}, got {channel!r}")
    owner = fields.get(kind)
    if owner not in allowed:
        raise Fault(kind, f"{kind}: expected one of {', '.join(allowed)}, got {owner!r}")
    tree = model.topology
    joint = None if kind == "frame" else tree.joints[tree.joint_names.index(owner)]
    if joint is not None and tree.mimics[tree.joint_names.index(owner)] is not None:
        raise Fault("joint", f'joint {owner!r} is a mimic joint without a coordinate of its own; write "ignore"')
    count = 3 if joint is None else joint.nq if channel == "q" else joint.nv
    if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index < count:
        raise Fault("index", f"index: expected 0 to {count - 1}, got {shown(index)}")
    own = index if joint is None else file_to_own_index(joint, str(channel), index, quaternion_order)
    return Slot(str(channel), owner, own)


def _factor_to_si(written: str | None, slot: Slot, model: Model) -> float:
    """The factor to SI of a unit as written, 1 for none."""
    if written is None:
        return 1.0
    found, expected = parse_unit(written), dimension_of(slot, model)
    if found is None or found.dimension != expected:
        raise Fault("unit", f"expected a unit of {expected} for {slot}: {units_of(expected)}, got {written!r}")
    return found.factor


def dimension_of(slot: Slot, model: Model) -> str:
    """The dimension of the quantity of a slot."""
    fixed = {"time": "time", "current": "current", "accelerometer": "length/time^2", "gyroscope": "angle/time"}
    if slot.channel in fixed:
        return fixed[slot.channel]
    joint = model.topology.joints[model.joint_names.index(slot.owner)]
    if slot.channel == "q" and has_quaternion(joint) and slot.index >= joint.nq - 4:
        return "number"
    turns = joint.rows[slot.index].turns
    if slot.channel == "tau":
        return "torque" if turns else "force"
    return ("angle" if turns else "length") + {"v": "/time", "a": "/time^2"}.get(slot.channel, "")
