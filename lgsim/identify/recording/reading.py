"""Reading recordings from files, by column names and a map for other names."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from lgsim.identify.logs.lerobot import is_lerobot, read_lerobot
from lgsim.identify.logs.log_columns import TopicFault
from lgsim.identify.logs.log_reading import LOGS, is_log, read_log
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
from lgsim.identify.recording.plausibility import check_recording
from lgsim.identify.recording.recording import CHANNELS, Recording
from lgsim.identify.recording.report import Finding, Report
from lgsim.identify.recording.tables import TABLES, Table, read_table
from lgsim.lie import quaternion
from lgsim.multibody.configuration import kinds
from lgsim.multibody.model import Model
from lgsim.support import toml_lines
from lgsim.support.messages import listed
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


class _Fault(ValueError):
    """A fault as (key, reason), before the file and the column are known."""


class _Entry(NamedTuple):
    """A column of a file with its slot in the recording: value = scale * cell."""

    column: str
    slot: Slot
    scale: float


class _WorldAxes(NamedTuple):
    """The components of a floating base's twist that a file has in world axes."""

    linear: bool
    angular: bool


_TWISTS = {"body": _WorldAxes(False, False), "world": _WorldAxes(True, True), "mixed": _WorldAxes(True, False)}
_OPTIONS = {"quaternion": "wxyz", "twist": "body", "automatic": True, "constants": {}, "episode": None}
_ADVICE = {
    ".bag": "; convert a ROS 1 bag with: rosbags-convert --src run.bag --dst run",
    ".zstd": "; unpack a compressed bag with: zstd -d",
    ".zst": "; unpack a compressed bag with: zstd -d",
}
_LARGEST_NUMBER = 1e300
_FIELDS = ("joint", "frame", "quantity", "index", "unit", "sign", "scale")


def read_recording(
    path: str | Path, model: Model, map: Mapping[str, Any] | str | Path | None = None, *, checked: bool = True
) -> Recording:
    """Read a recording from a table or a robot log; columns are identified by name, in any order.

    Tables are ``.csv``, ``.parquet`` and ``.npz`` files; logs are MCAP files, ROS 2 bags (``.db3``, or the folder of a
    bag) and LeRobot data sets (the folder, or one of its parquet files).

    Column names with a joint name and a quantity are recognized, with a unit in brackets if it is not SI: ``q joint1
    [deg]``, ``joint1_position``, ``vel.joint1``, ``/joint_states/joint1/effort``, ``base_qw``, ``gyro_<frame>_x``.
    Other names need a map: for each column a recognized name, or a table of

    - ``joint`` or ``frame``, neither for the time;
    - ``quantity``: time, q, v, a, tau, current; for a frame accelerometer, gyroscope;
    - ``index``: index among several components of a joint, from 0;
    - ``unit``, ``sign`` (1 or -1), ``scale``: value = sign scale cell, in that unit; SI by default;

    or "ignore". The key ``options`` of the map is a table of

    - ``quaternion``: order of quaternion components without a letter, "wxyz" or "xyzw";
    - ``twist``: the axes of a floating base's velocity, "body", "world", or "mixed" (linear world, angular body, as in
      MuJoCo);
    - ``constants``: values of joints without a column, by such names;
    - ``automatic``: false to read only columns and topics of the map;
    - ``episode``: index of an episode of a LeRobot data set, from 0; by default all, concatenated.

    From a log, messages of the types of ``logs.messages.MESSAGE_TYPES`` are read: JointState, Imu, controller states,
    and poses. They are matched to joints and frames by the names in the messages. Columns are called
    ``<topic>/<joint>/<quantity>``, such as ``/joint_states/elbow/position``, and may be used in a map. All are
    resampled linearly at the times of the topic with the most positions. The key ``topics`` of a map is a table by
    topic (for a LeRobot data set by feature, such as "observation.state") of "ignore" or a table:

    - ``joint``: the free or ball joint of pose messages, or the joint of messages without names;
    - ``frame``: the IMU's frame, if the frame in the messages is not in the model;
    - ``names``: joints by the names in the messages;
    - ``unit``: unit of positions, and per second of velocities; SI by default;
    - ``effort``: "tau", or "current" if a driver publishes currents as efforts;
    - ``clock``: "stamp", the times in the messages, or "log", the times of recording;
    - ``delay``: delay of the messages, s.

    Args:
        path: The file or folder. Columns of an ``.npz`` file are one-dimensional arrays, or those of a two-dimensional
            array if there is an array ``joint_names``; without it ``q``, ``v``, ``a``, ``tau`` and ``current`` are in
            the model's order.
        map: A map, or the path of a TOML file with one.
        checked: True to validate and repair the recording by ``check_recording``; False to return it as in the file,
            NaN for missing values.

    Returns:
        The recording, with all findings and repairs in its ``report``.

    Raises:
        FileNotFoundError: the file does not exist.
        RecordingMapError: a ValueError: a column is ambiguous or two columns mean the same, the map contains an unknown
            name, or a unit is unknown or of another dimension.
        ValueError: time or the position of a joint is missing, an option is invalid, or the file cannot be read.
        ModuleNotFoundError: a package is not installed; the message names the extra.
    """
    path = Path(path)
    mapped, options, topics = _split_map(map)
    table = _read_file(path, model, mapped, options, topics)
    for column in mapped:
        if column not in table.columns and column not in table.texts:
            reason = f"the map has column {column!r}; the file has {', '.join([*table.columns, *table.texts])}"
            raise RecordingMapError(str(path), column, "", reason)
    order = options["quaternion"]
    entries, findings = [], list(table.findings)
    for column, fault in table.texts.items():
        automatic = column not in mapped
        if mapped.get(column) != "ignore" and (not automatic or parse_name(split_unit(column)[0], model)):
            raise ValueError(fault)
        if automatic:
            findings.append(Finding("unused column", column, 0, "it contains no numbers", "not read"))
    for column in table.columns:
        if mapped.get(column) == "ignore":
            continue
        automatic = column not in mapped
        if automatic and column in table.slots:
            entries.append(_Entry(column, table.slots[column], table.scales.get(column, 1.0)))
            continue
        with _faults_at(f"{path}: column {column!r}", column):
            found = _entry(column, column if automatic else mapped[column], model, order, automatic)
        if found is not None and (options["automatic"] or not automatic):
            entries.append(found)
        else:
            findings.append(Finding("unused column", column, 0, "its name contains no joint and quantity", "not read"))
    with np.errstate(invalid="ignore", over="ignore"):  # damaged values may be arbitrary
        columns = {entry.slot: entry.scale * table.columns[entry.column] for entry in entries}
    _check_distinct(path, entries)
    findings += _add_unnamed(path, table, model, order, columns)
    for name, value in options["constants"].items():
        with _faults_at(f"{path}: constant {name!r}", name):
            entry = _entry(name, name, model, order, False)
            number = _number({"value": value}, "value", 0.0)
        columns[entry.slot] = np.full(table.rows, entry.scale * number)  # pyright: ignore
    raw = _assemble(path, model, columns, findings, table.source)
    raw = _with_twists_in_body_axes(raw, _TWISTS[options["twist"]])
    try:
        return check_recording(raw) if checked else raw
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def _read_file(
    path: Path, model: Model, mapped: Mapping[str, Any], options: Mapping[str, Any], topics: Mapping[str, Any]
) -> Table:
    """The columns of a table or a log."""
    endings = (*TABLES, *LOGS)
    if not path.is_dir() and path.suffix.lower() not in endings:
        advice = _ADVICE.get(path.suffix.lower(), "")
        raise ValueError(f"{path}: expected a name that ends in {' or '.join(endings)}, got {path.suffix!r}{advice}")
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such file")
    try:
        if is_log(path):
            return read_log(path, model, topics, mapped, options["automatic"])
        if is_lerobot(path):
            return read_lerobot(path, model, topics, mapped, options["episode"])
    except TopicFault as error:
        fault = RecordingMapError(str(path), error.topic, error.key, str(error))
        fault.reason = error.reason
        raise fault from error
    if path.is_dir():
        raise ValueError(
            f"{path}: expected a file, the folder of a ROS 2 bag, or a LeRobot data set with meta/info.json"
        )
    if topics:
        name = next(iter(topics))
        raise RecordingMapError(str(path), name, "", f"topic {name!r}: expected columns, since the file is a table")
    return read_table(path)


def _split_map(
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
    for name, allowed in (("quaternion", ("wxyz", "xyzw")), ("twist", tuple(_TWISTS))):
        if options[name] not in allowed:
            raise ValueError(f"{where}: {name}: expected one of {', '.join(allowed)}, got {options[name]!r}")
    episode = options["episode"]
    if episode is not None and (
        isinstance(episode, bool) or not isinstance(episode, int) or not 0 <= episode <= LARGEST_COUNT
    ):
        raise ValueError(f"{where}: episode: expected a nonnegative integer, got {shown(episode)}")
    return mapped, options, topics


@contextmanager
def _faults_at(place: str, column: str) -> Iterator[None]:
    """Convert faults raised inside to errors that name their column."""
    try:
        yield
    except _Fault as error:
        raise RecordingMapError(place, column, *error.args) from None


def _entry(column: str, spec: Any, model: Model, quaternion_order: str, automatic: bool) -> _Entry | None:
    """The entry of a column from a name or a table; None if the column's own name is not sufficient."""
    if not isinstance(spec, str | Mapping):
        raise _Fault("", f"expected a name or a table, got {shown(spec)}")
    fields = {"name": spec} if isinstance(spec, str) else dict(spec)
    for name in fields:
        if name not in (*_FIELDS, "name"):
            raise _Fault(name, f"expected a key of {', '.join(_FIELDS)}, got {name!r}")
    for key in ("name", "joint", "frame", "quantity", "unit"):
        if not isinstance(fields.get(key, ""), str | None):
            raise _Fault(key, f"{key}: expected a string, got {shown(fields[key])}")
    name, unit = split_unit(fields.get("name", ""))
    if "name" in fields:
        found = parse_name(name, model, quaternion_order)
    else:
        found = [_slot_of_table(fields, model, quaternion_order)]
    if not found and automatic:
        return None
    if len(found) != 1:
        got = " or ".join(repr(str(slot)) for slot in found) or "neither"
        raise _Fault(
            "",
            f"expected a name with one joint and one quantity, got {spec!r}, which may mean {got}; write a map"
            f' with a table such as {{joint = "{model.joint_names[0]}", quantity = "q"}}',
        )
    slot = found[0]
    scale = _number(fields, "scale", 1.0) * _number(fields, "sign", 1.0)
    return _Entry(column, slot, scale * _factor_to_si(fields.get("unit", unit), slot, model))


def _number(fields: Mapping[str, Any], key: str, default: float) -> float:
    """A finite number from a table of the map."""
    value = fields.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= _LARGEST_NUMBER:
        raise _Fault(key, f"{key}: expected a finite number, got {shown(value)}")
    return float(value)


def _slot_of_table(fields: Mapping[str, Any], model: Model, quaternion_order: str) -> Slot:
    """The slot that a table of the map specifies."""
    channel, index = fields.get("quantity"), fields.get("index", 0)
    if channel == "time":
        return TIME
    kind, allowed = ("frame", model.frame_names) if channel in SENSORS else ("joint", model.joint_names)
    if channel not in (*CHANNELS, *SENSORS):
        every = ", ".join(("time", *CHANNELS, *SENSORS))
        raise _Fault("quantity", f"quantity: expected one of {every}, got {channel!r}")
    owner = fields.get(kind)
    if owner not in allowed:
        raise _Fault(kind, f"{kind}: expected one of {', '.join(allowed)}, got {owner!r}")
    tree = model.topology
    joint = None if kind == "frame" else tree.joints[tree.joint_names.index(owner)]
    if joint is not None and tree.mimics[tree.joint_names.index(owner)] is not None:
        raise _Fault("joint", f'joint {owner!r} is a mimic joint without a coordinate of its own; write "ignore"')
    count = 3 if joint is None else joint.nq if channel == "q" else joint.nv
    if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index < count:
        raise _Fault("index", f"index: expected 0 to {count - 1}, got {shown(index)}")
    own = index if joint is None else file_to_own_index(joint, str(channel), index, quaternion_order)
    return Slot(str(channel), owner, own)


def _factor_to_si(written: str | None, slot: Slot, model: Model) -> float:
    """The factor to SI of a unit as written, 1 for none."""
    if written is None:
        return 1.0
    found, expected = parse_unit(written), _dimension(slot, model)
    if found is None or found.dimension != expected:
        raise _Fault("unit", f"expected a unit of {expected} for {slot}: {units_of(expected)}, got {written!r}")
    return found.factor


def _dimension(slot: Slot, model: Model) -> str:
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


def _check_distinct(path: Path, entries: list[_Entry]) -> None:
    taken: dict[Slot, str] = {}
    for entry in entries:
        if entry.slot in taken:
            reason = f'columns {taken[entry.slot]!r} and {entry.column!r} both mean {entry.slot}; map one to "ignore"'
            raise RecordingMapError(str(path), entry.column, "", reason)
        taken[entry.slot] = entry.column


def _add_unnamed(
    path: Path, table: Table, model: Model, quaternion_order: str, columns: dict[Slot, Float[np.ndarray, " n"]]
) -> list[Finding]:
    """Add arrays of several columns in the model's order to the columns; returns the findings."""
    findings = []
    for name, array in table.arrays.items():
        if name not in CHANNELS:
            findings.append(Finding("unused column", name, 0, "its name contains no quantity", "not read"))
            continue
        slots = [
            Slot(name, model.joint_names[i], file_to_own_index(joint, name, k, quaternion_order))
            for i, joint in enumerate(model.topology.joints)
            if model.topology.mimics[i] is None
            for k in range(joint.nq if name == "q" else joint.nv)
        ]
        if array.shape[1] != len(slots):
            raise ValueError(f"{path}: {name}: expected {len(slots)} columns, got {array.shape[1]}")
        if not set(slots).isdisjoint(columns):
            raise ValueError(f"{path}: {name}: expected either this array or named columns, got both")
        columns |= {slot: array[:, i] for i, slot in enumerate(slots)}
        seen = f"{len(slots)} columns without joint_names"
        findings.append(Finding("unnamed columns", name, 0, seen, "assumed to be in the model's order"))
    return findings


def _assemble(
    path: Path,
    model: Model,
    columns: Mapping[Slot, Float[np.ndarray, " n"]],
    findings: list[Finding],
    source: str = "",
) -> Recording:
    """Build the recording from the columns; raises ValueError if the time or a position is missing."""
    unread = [finding.where for finding in findings if finding.kind in ("unused column", "unused topic")]
    hint = f"; columns that were not read: {listed(unread)}" if unread else ""
    if TIME not in columns:
        raise ValueError(f"{path}: expected a column for the time, e.g. 'time [s]', got none{hint}")
    n = len(columns[TIME])
    arrays: dict[str, Any] = {}
    for channel in CHANNELS:
        present = {slot for slot in columns if slot.channel == channel}
        if not present and channel != "q":
            continue
        array = np.full((n, model.nq if channel == "q" else model.nv), np.nan)
        for name, part in (model.q_slices if channel == "q" else model.v_slices).items():
            for i in range(part.stop - part.start):
                slot = Slot(channel, name, i)
                if slot in present:
                    array[:, part.start + i] = columns[slot]
                elif channel == "q":
                    raise ValueError(
                        f"{path}: expected a column for {slot}, got none; map a column to it or give it a"
                        f" constant{hint}"
                    )
        arrays[channel] = array
    frames = sorted({slot.owner for slot in columns if slot.channel in SENSORS})
    imu = {frame: np.full((n, 6), np.nan) for frame in frames}
    for slot, column in columns.items():
        if slot.channel in SENSORS:
            imu[slot.owner][:, SENSORS[slot.channel] + slot.index] = column
    if not source:
        with path.open("rb") as file:
            source = f"{path.name} (sha256 {hashlib.file_digest(file, 'sha256').hexdigest()[:16]})"
    return Recording(model, columns[TIME], imu=imu, source=source, report=Report(tuple(findings)), **arrays)


def _with_twists_in_body_axes(recording: Recording, world: _WorldAxes) -> Recording:
    """Convert velocities of free joints from world axes to body axes."""
    if recording.v is None or not any(world):
        return recording
    v = recording.v.copy()
    for joint, q_columns, v_columns in kinds(recording.model.topology):
        if joint.nq != 7 or joint.nv != 6:
            continue
        for at_q, at_v in zip(q_columns.T, v_columns.T, strict=True):
            R = np.asarray(quaternion.Ad(jnp.asarray(recording.q[:, at_q[3:]])))
            for in_world, part in zip(world, (at_v[:3], at_v[3:]), strict=True):
                if in_world:
                    v[:, part] = np.einsum("nji,nj->ni", R, v[:, part])
    return recording.with_channels({"v": v})
