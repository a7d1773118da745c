"""Reading recordings from files, by column names and a map for other names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from lgsim.identify.logs.lerobot import is_lerobot, read_lerobot
from lgsim.identify.logs.log_columns import TopicFault
from lgsim.identify.logs.log_reading import LOGS, is_log, read_log
from lgsim.identify.logs.ulog import ENDING, read_ulog
from lgsim.identify.recording.columns import SENSORS, TIME, Slot, file_to_own_index, parse_name, split_unit
from lgsim.identify.recording.map_entries import (
    TWISTS,
    Entry,
    RecordingMapError,
    WorldAxes,
    entry_of,
    faults_at,
    finite_number,
    split_map,
    terms_of,
)
from lgsim.identify.recording.plausibility import check_recording
from lgsim.identify.recording.recording import CHANNELS, Recording
from lgsim.identify.recording.report import Finding, Report
from lgsim.identify.recording.side_by_side import TimedTable, join_columns
from lgsim.identify.recording.tables import TABLES, Table, digest, read_table
from lgsim.lie import quaternion
from lgsim.multibody.configuration import kinds
from lgsim.multibody.model import Model
from lgsim.support.messages import listed

_ADVICE = {
    ".zstd": "; unpack a compressed bag with: zstd -d",
    ".zst": "; unpack a compressed bag with: zstd -d",
}


def read_recording(
    path: str | Path, model: Model, map: Mapping[str, Any] | str | Path | None = None, *, checked: bool = True
) -> Recording:
    """Read a recording from a table or a robot log; columns are identified by name, in any order.

    Tables are text files (``.csv``, ``.tsv``, ``.txt``, ``.dat``; with commas, semicolons, tabs or white space),
    ``.parquet``, ``.npz`` and MATLAB's ``.mat`` files; logs are MCAP files, ROS bags (``.db3``, ``.bag``, or the folder
    of a bag), PX4 logs (``.ulg``) and LeRobot data sets (the folder, or one of its parquet files).

    Column names with a joint name and a quantity are recognized, with a unit in brackets if it is not SI: ``q joint1
    [deg]``, ``joint1_position``, ``vel.joint1``, ``/joint_states/joint1/effort``, ``base_qw``, ``gyro_<frame>_x``.
    Other names need a map: for each column a recognized name, or a table of

    - ``joint`` or ``frame``, neither for the time;
    - ``quantity``: time, q, v, a, tau, current; for a frame accelerometer, gyroscope;
    - ``index``: index among several components of a joint, from 0;
    - ``unit``, ``sign`` (1 or -1), ``scale``, ``offset``: value = sign scale cell + offset in the unit, by default SI;
    - ``columns``: factors by column; the cell is then the sum of these columns times their factors, and the entry's own
      name may be new: ``"q joint5" = {columns = {m5 = 1.0, m6 = -0.5}}``;

    or "ignore". The key ``options`` of the map is a table of

    - ``quaternion``: order of quaternion components without a letter, "wxyz" or "xyzw";
    - ``twist``: the axes of a floating base's velocity, "body", "world", or "mixed" (linear world, angular body, as in
      MuJoCo);
    - ``constants``: values of joints without a column, by such names;
    - ``automatic``: false to read only columns and topics of the map;
    - ``episode``: index of an episode of a LeRobot data set, from 0; by default all, concatenated;
    - ``names``: names of the columns of a text file without a header, in order;
    - ``rate``: samples per second of files without a column of times;
    - ``resample``: false to keep each topic of a log at its own times, with missing values in between;
    - ``files``: names of further tables in the folder of the file, whose columns are interpolated linearly at its
      times and called ``<file name without ending>/<column>``; or a table of ``names`` by file.

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
            the model's order. Those of a ``.mat`` file are its vectors and matrices, "<structure>.<field>" too; those
            of a PX4 log "<topic>/<field>", which a map must name.
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
    columns, findings, source, twist = read_columns(path, model, map)
    raw = _with_twists_in_body_axes(_assemble(path, model, columns, findings, source), TWISTS[twist])
    try:
        return check_recording(raw) if checked else raw
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def read_columns(
    path: Path, model: Model, map: Mapping[str, Any] | str | Path | None = None
) -> tuple[dict[Slot, Float[np.ndarray, " n"]], list[Finding], str, str]:
    """The columns of a file by slot, in SI units, the findings, the origin of the data, and the option ``twist``.

    Raises:
        FileNotFoundError, ValueError, ModuleNotFoundError: see ``read_recording``; positions may be missing.
    """
    mapped, options, topics = split_map(map)
    sums: dict[str, dict[str, float]] = {}
    for column, spec in mapped.items():
        with faults_at(f"{path}: column {column!r}", column):
            if (terms := terms_of(column, spec)) is not None:
                sums[column] = terms
    owners = {name: column for column, terms in sums.items() for name in terms}
    wanted = {**owners, **mapped}
    table = _read_file(path, model, wanted, options, topics)
    if options["files"]:
        table, times = _with_files(path, table, model, mapped, options)
        mapped = {column: spec for column, spec in mapped.items() if column not in times}
        wanted = {column: spec for column, spec in wanted.items() if column not in times}
    missing = [name for name in wanted if name not in (table.columns | dict(table.texts)) and name not in sums]
    if not missing:
        table = _with_sums(table, sums)
    order = options["quaternion"]
    entries, findings = [], list(table.findings)
    for column, fault in table.texts.items():
        automatic = column not in mapped
        if mapped.get(column) != "ignore" and (not automatic or parse_name(split_unit(column)[0], model)):
            raise ValueError(fault)
        if automatic:
            findings.append(Finding("unused column", column, 0, "it contains no numbers", "not read"))
    # entries of missing columns show which other quantities the file lacks
    for column in dict.fromkeys([*table.columns, *(name for name in mapped if missing)]):
        if mapped.get(column) == "ignore":
            continue
        automatic = column not in mapped
        if automatic and column in table.slots:
            entries.append(Entry(column, table.slots[column], table.scales.get(column, 1.0)))
            continue
        with faults_at(f"{path}: column {column!r}", column):
            found = entry_of(column, column if automatic else mapped[column], model, order, automatic)
        if found is not None and (options["automatic"] or not automatic):
            entries.append(found)
        elif column not in owners:
            findings.append(Finding("unused column", column, 0, "its name contains no joint and quantity", "not read"))
    constants = {}
    for name, value in options["constants"].items():
        with faults_at(f"{path}: constant {name!r}", name):
            entry = entry_of(name, name, model, order, False)
            number = finite_number({"value": value}, "value", 0.0)
        constants[entry.slot] = np.full(table.rows, entry.scale * number)  # pyright: ignore
    if missing:
        slots = {entry.slot for entry in entries} | set(constants)
        raise _missing(path, table, missing, owners, _absent(model, slots, table, options["rate"]))
    columns = {entry.slot: entry.values(table.columns[entry.column]) for entry in entries}
    _check_distinct(path, entries)
    findings += _add_unnamed(path, table, model, order, columns)
    columns |= constants
    if options["rate"] is not None:
        if TIME in columns and not options["files"]:
            raise ValueError(
                f'{path}: rate: expected a file without times, got a column of times; map it to "ignore", or leave'
                " out the rate"
            )
        columns.setdefault(TIME, np.arange(table.rows) / float(options["rate"]))
    return columns, findings, table.source, options["twist"]


def _read_file(
    path: Path, model: Model, mapped: Mapping[str, Any], options: Mapping[str, Any], topics: Mapping[str, Any]
) -> Table:
    """The columns of a table or a log."""
    endings = (*TABLES, *LOGS, ENDING)
    if not path.is_dir() and path.suffix.lower() not in endings:
        advice = _ADVICE.get(path.suffix.lower(), "")
        raise ValueError(f"{path}: expected a name that ends in {' or '.join(endings)}, got {path.suffix!r}{advice}")
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such file")
    try:
        if is_log(path):
            return read_log(path, model, topics, mapped, options["automatic"], options["resample"])
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
    return read_ulog(path, mapped) if path.suffix.lower() == ENDING else read_table(path, options["names"])


def _with_files(
    path: Path, table: Table, model: Model, mapped: Mapping[str, Any], options: Mapping[str, Any]
) -> tuple[Table, set[str]]:
    """The columns of a table and of further files at its times, and the names of their columns of times."""

    def clock(file: Path, own: Table, prefix: str) -> tuple[str, Float[np.ndarray, " n"]]:
        for column, cells in own.columns.items():
            name = prefix + column
            spec = mapped.get(name, column)
            with faults_at(f"{file}: column {name!r}", name):
                if spec == "ignore" or terms_of(name, spec) is not None:
                    continue
                entry = entry_of(name, spec, model, options["quaternion"], name not in mapped)
            if own.slots.get(column) == TIME or (entry is not None and entry.slot == TIME):
                return name, cells if entry is None else entry.values(cells)
        if options["rate"] is None:
            raise ValueError(
                f"{file}: expected a column for the time, e.g. 'time [s]', to join the files, got none; map a column to"
                " it, or give the option rate"
            )
        return "", np.arange(own.rows) / float(options["rate"])

    _, time = clock(path, table, "")
    others, times = {}, set()
    for name, header in options["files"].items():
        file = path.parent / name
        own, prefix = read_table(file, header), f"{file.stem}/"
        column, stamps = clock(file, own, prefix)
        times |= {column} - {""}
        own = own._replace(columns={title: x for title, x in own.columns.items() if prefix + title != column})
        slots = {}
        for title in own.columns:
            # names that are sufficient without that of their file
            if len(parse_name(split_unit(title)[0], model, options["quaternion"])) == 1:
                with faults_at(f"{file}: column {title!r}", title):
                    entry = entry_of(title, title, model, options["quaternion"], True)
                slots |= {} if entry is None else {title: (entry.slot, entry.scale)}
        others[file] = TimedTable(own, stamps, slots)
    return join_columns(path, table, time, others), times


def _with_sums(table: Table, sums: Mapping[str, Mapping[str, float]]) -> Table:
    """The table with weighted sums of its columns as further columns, which replace columns of the same names.

    Raises:
        ValueError: a column of a sum contains no numbers.
    """
    made = {}
    for column, terms in sums.items():
        for name in terms:
            if name in table.texts:
                raise ValueError(table.texts[name])
        with np.errstate(invalid="ignore", over="ignore"):
            made[column] = sum(factor * table.columns[name] for name, factor in terms.items())
    return table._replace(
        columns=table.columns | made, texts={name: why for name, why in table.texts.items() if name not in made}
    )


def _absent(model: Model, slots: Set[Slot], table: Table, rate: float | None) -> list[str]:
    """The quantities that a recording needs and a file lacks."""
    arrays = {name for name in table.arrays if name in CHANNELS}
    absent = [] if TIME in slots or rate is not None else ["the time"]
    for name, part in model.q_slices.items():
        own = [Slot("q", name, i) for i in range(part.stop - part.start)]
        absent += [str(slot) for slot in own if slot not in slots and "q" not in arrays]
    return absent


def _missing(
    path: Path, table: Table, missing: Sequence[str], owners: Mapping[str, str], absent: Sequence[str]
) -> RecordingMapError:
    """The error for columns of the map that the file does not have, and other quantities that it lacks."""
    names = ", ".join(map(repr, missing))
    reason = f"the map has column{'s' * (len(missing) > 1)} {names}; the file has"
    reason += f" {', '.join([*table.columns, *table.texts])}"
    if absent:
        reason += f"; there is no column either for {', '.join(absent)}"
    first = owners.get(missing[0], missing[0])
    return RecordingMapError(str(path), first, "columns" if first != missing[0] else "", reason)


def _check_distinct(path: Path, entries: list[Entry]) -> None:
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
    """Build the recording from the columns; raises ValueError with all quantities that are missing."""
    unread = [finding.where for finding in findings if finding.kind in ("unused column", "unused topic")]
    hint = f"; columns that were not read: {listed(unread)}" if unread else ""
    absent = _absent(model, set(columns), Table({}, {}), None)
    if absent:
        what = f"{'columns' if len(absent) > 1 else 'a column'} for {', '.join(absent)}"
        example = ", e.g. 'time [s]'" if absent == ["the time"] else ""
        remedies = ["map columns to them or give constants"] if absent[-1] != "the time" else []
        remedies += ["a file without times needs the option rate"] if absent[0] == "the time" else []
        raise ValueError(f"{path}: expected {what}{example}, got none; {'; '.join(remedies)}{hint}")
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
        arrays[channel] = array
    frames = sorted({slot.owner for slot in columns if slot.channel in SENSORS})
    imu = {frame: np.full((n, 6), np.nan) for frame in frames}
    for slot, column in columns.items():
        if slot.channel in SENSORS:
            imu[slot.owner][:, SENSORS[slot.channel] + slot.index] = column
    if not source:
        source = digest(path)
    return Recording(model, columns[TIME], imu=imu, source=source, report=Report(tuple(findings)), **arrays)


def _with_twists_in_body_axes(recording: Recording, world: WorldAxes) -> Recording:
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
