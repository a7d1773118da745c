"""LeRobot data sets, versions 2 and 3: parquet files of lists of numbers, with names in meta/info.json.

Version 2 has a file for each episode, data/chunk-000/episode_000000.parquet; version 3 has several episodes in a file,
data/chunk-000/file-000.parquet. Times start from 0 in each episode.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from lgsim.identify.logs.log_columns import Topic, TopicFault, read_topics, unit_scale
from lgsim.identify.recording.columns import TIME, Slot, parse_name
from lgsim.identify.recording.recording import MAX_GAP
from lgsim.identify.recording.report import Finding
from lgsim.identify.recording.tables import Table
from lgsim.multibody.model import Model
from lgsim.support.messages import counted, listed
from lgsim.support.packages import package
from lgsim.support.reading.parquet import open_parquet, unpacked_size
from lgsim.support.reading.size_limits import FileSizeError, check_size, read_bytes

_QUANTITIES = {
    "observation.state": "q", "observation.position": "q", "observation.velocity": "v", "observation.effort": "tau",
    "observation.torque": "tau", "observation.current": "current", "observation.qpos": "q", "observation.qvel": "v",
}  # fmt: skip
_BETWEEN = MAX_GAP + 1  # gap between two episodes, in usual steps
_BOOKKEEPING = ("timestamp", "frame_index", "episode_index")
_FASTEST = 1e9  # frames per second
_ROWS = 65536  # number of rows that are read at a time
_WIDEST = 10_000  # components of a feature: a robot state has fewer
_STAMP_ERROR = 1e-3  # s: stamps are stored in float32; frame_index / fps is exact


class _Dataset(NamedTuple):
    """The files of a data set and the content of its meta/info.json.

    Attributes:
        files: The parquet files.
        fps: Frames per second; None if unknown.
        names: Names of the components of each feature.
        findings: Problems of the data set.
    """

    files: list[Path]
    fps: float | None
    names: dict[str, list[str]]
    findings: list[Finding]


def is_lerobot(path: Path) -> bool:
    """True if a path is a LeRobot data set, or one of its parquet files."""
    return _root(path) is not None


def _root(path: Path) -> Path | None:
    """The folder of the data set."""
    if path.is_dir():
        return path if (path / "meta" / "info.json").is_file() else None
    if path.suffix.lower() != ".parquet":
        return None
    return next((up for up in list(path.absolute().parents)[:3] if (up / "meta" / "info.json").is_file()), None)


def read_lerobot(
    path: Path, model: Model, topics: Mapping[str, Any], columns: Mapping[str, Any], episode: int | None
) -> Table:
    """Read the columns of a data set, called "<feature>/<name>", such as "observation.state/elbow.pos".

    Names without a quantity take that of their feature: ``observation.state`` contains positions.

    Args:
        path: The folder of the data set, or one of its parquet files.
        topics: Entries of the map by feature.
        columns: Entries of the map by column.
        episode: Index of the episode; None for all of them, concatenated.

    Raises:
        TopicFault: a feature of the map does not exist.
        ValueError: no file can be read, or the episode does not exist.
        ModuleNotFoundError: pyarrow is not installed.
    """
    package("pyarrow.parquet", "data", "a LeRobot data set")
    given = read_topics(topics, model)
    found = _dataset(path, episode)
    wanted = set(given) | {name.partition("/")[0] for name in columns} | set(_QUANTITIES)
    arrays, findings = _arrays(found, wanted, path, episode)
    for name in given:
        if name not in arrays:
            raise TopicFault(name, "", f"the data set has no such feature; it has {listed(sorted(arrays))}")
    time, breaks = _times(arrays, found.fps)
    if breaks:
        findings.append(Finding("clock jump", "time", 0, counted(breaks + 1, "episode"), "episodes concatenated"))
    table: dict[str, Float[np.ndarray, " n"]] = {"timestamp": time}
    slots, scales = {"timestamp": TIME}, {}
    for feature, array in arrays.items():
        topic = given.get(feature, Topic(feature))
        if feature in _BOOKKEEPING or topic.ignored:
            continue
        names = _number_names(found, feature, array.shape[1], model)
        for i, name in enumerate(names):
            column = f"{feature}/{name}"
            table[column] = array[:, i]
            slot = None if column in columns else _slot(name, feature, topic, model)
            if slot is not None:
                slots[column], scales[column] = slot, unit_scale(slot, topic)
    unread = [name for name in table if name not in slots and name not in columns and name.split("/")[0] in given]
    findings += [
        Finding("unused column", name, 0, "its name contains no joint and quantity", "not read") for name in unread
    ]
    kept = {name: x for name, x in table.items() if name in slots or name in columns}
    if not any(slot.channel == "q" for slot in slots.values()) and not any(name in columns for name in table):
        shown = listed([f"{feature} ({listed(names)})" for feature, names in found.names.items()])
        raise ValueError(
            f"{path}: expected positions of {listed(model.joint_names)}, got {shown or listed(sorted(arrays))}; a map"
            f' can rename them: [topics] "observation.state" = {{ names = {{ ... }} }}'
        )
    digest = hashlib.sha256(b"".join(np.ascontiguousarray(x).tobytes() for x in kept.values())).hexdigest()[:16]
    which = "" if episode is None else f"episode {episode}; "
    source = f"{path.name} ({which}sha256 of what was read {digest})"
    return Table(kept, {}, tuple(found.findings + findings), slots, scales, source=source)


def _dataset(path: Path, episode: int | None) -> _Dataset:
    root = _root(path)
    assert root is not None
    files = sorted((root / "data").rglob("*.parquet")) if path.is_dir() else [path]
    own = [file for file in files if file.stem == f"episode_{episode:06d}"] if episode is not None else []
    info, findings = {}, []
    try:
        info = json.loads(read_bytes(root / "meta" / "info.json"))
        features = {str(name): dict(about) for name, about in dict(info.get("features") or {}).items()}
    except (ValueError, TypeError, AttributeError, RecursionError, OSError) as error:
        features, where = {}, "meta/info.json"
        text = " ".join(str(error).split())[:80]
        findings = [Finding("damaged file", where, 0, text, "values are assumed to be in the model's order")]
    names = {name: _flat(about.get("names")) for name, about in features.items()}
    fps = info.get("fps") if isinstance(info, dict) else None
    known = float(fps) if isinstance(fps, int | float) and not isinstance(fps, bool) and 0 < fps < _FASTEST else None
    return _Dataset(own or files, known, {k: v for k, v in names.items() if v}, findings)


def _flat(names: Any) -> list[str]:
    """Names in a list, or in lists by a word such as "motors"."""
    if isinstance(names, Mapping):
        return [str(x) for part in names.values() if isinstance(part, list) for x in part]
    return [str(x) for x in names] if isinstance(names, list) else []


def _arrays(
    found: _Dataset, wanted: set[str], path: Path, episode: int | None
) -> tuple[dict[str, Float[np.ndarray, "n k"]], list[Finding]]:
    """Read the wanted features of all readable files, and list the problems of the others."""
    parts: dict[str, list[Float[np.ndarray, "_ k"]]] = {}
    findings = []
    for file in found.files:
        try:
            for batch in _batches(file, wanted | set(_BOOKKEEPING), episode):
                if not parts:
                    parts = {name: [] for name in batch}
                if {n: x.shape[1] for n, x in batch.items()} != {
                    n: x[0].shape[1] for n, x in parts.items() if x
                } and any(parts.values()):
                    raise ValueError("its columns differ from those of the previous files")
                for name, array in batch.items():
                    parts[name].append(array)
        except FileSizeError:
            raise
        except ValueError as error:
            findings.append(Finding("damaged file", file.name, 0, " ".join(str(error).split())[:120], "left out"))
    arrays = {name: np.concatenate(x) for name, x in parts.items() if x}
    if "timestamp" not in arrays and "frame_index" not in arrays:
        if findings:
            raise ValueError(f"{path}: no file can be read: {findings[0].where}: {findings[0].seen}")
        why = "no column timestamp" if episode is None else f"no episode {episode}"
        raise ValueError(f"{path}: expected a LeRobot data set, got {why}")
    return arrays, findings


def _batches(file: Path, wanted: set[str], episode: int | None) -> Iterator[dict[str, Float[np.ndarray, "_ k"]]]:
    """Read the numeric features of a parquet file, some rows at a time; raises ValueError for a damaged file."""
    arrow = package("pyarrow", "data")
    try:
        opened = open_parquet(file, ())
        schema = opened.schema_arrow
        names = [n for n in dict.fromkeys(schema.names) if n in wanted and _has_numbers(schema.field(n).type, arrow)]
        check_size(file, unpacked_size(opened, names))
        for batch in opened.iter_batches(_ROWS, columns=names):
            arrays = {name: _matrix(batch.column(name), arrow) for name in names}
            arrays = {name: x for name, x in arrays.items() if x is not None}
            if episode is not None and "episode_index" in arrays:
                rows = arrays["episode_index"][:, 0] == episode
                arrays = {name: x[rows] for name, x in arrays.items()}
            if len(next(iter(arrays.values()), ())):
                yield arrays
    except FileSizeError:
        raise
    except (arrow.ArrowException, OSError, EOFError, KeyError) as error:
        raise ValueError(str(error)) from error


def _has_numbers(kind: Any, arrow: Any) -> bool:
    """True if a column type is a number or a list of numbers."""
    types = arrow.types
    if types.is_fixed_size_list(kind) or types.is_list(kind) or types.is_large_list(kind):
        kind = kind.value_type
    return types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)


def _matrix(column: Any, arrow: Any) -> Float[np.ndarray, "n k"] | None:
    """A column of numbers, or of lists of equal length, as an array; None for others."""
    kind = column.type
    if arrow.types.is_fixed_size_list(kind) or arrow.types.is_list(kind) or arrow.types.is_large_list(kind):
        rows = column.to_pylist()
        width = max((len(row) for row in rows if row is not None), default=0)
        if width > _WIDEST:
            return None
        try:
            out = np.full((len(rows), width), np.nan)
            for i, row in enumerate(rows):
                if row is not None and len(row) == width:
                    out[i] = [np.nan if x is None else x for x in row]
        except (TypeError, ValueError):
            return None
        return out
    try:
        return np.array(column.cast("float64").to_numpy(zero_copy_only=False), float)[:, None]
    except arrow.ArrowException:
        return None


def _times(arrays: Mapping[str, Float[np.ndarray, "n k"]], fps: float | None) -> tuple[Float[np.ndarray, " n"], int]:
    """The times of all rows, with concatenated episodes, and the number of episode boundaries."""
    frames = arrays["frame_index"][:, 0] if "frame_index" in arrays else None
    time = arrays["timestamp"][:, 0].copy() if "timestamp" in arrays else None
    if time is None or (
        fps and frames is not None and np.nanmax(np.abs(time - frames / fps), initial=0) < _STAMP_ERROR
    ):
        assert frames is not None
        time = frames / (fps or 1.0)
    new = np.diff(arrays["episode_index"][:, 0]) != 0 if "episode_index" in arrays else np.diff(time) < 0
    starts = np.flatnonzero(new) + 1
    steps = np.diff(time)
    usual = float(np.median(steps[steps > 0])) if np.any(steps > 0) else 1.0
    for start in starts:
        time[start:] += time[start - 1] + _BETWEEN * usual - time[start]
    return time, len(starts)


def _number_names(found: _Dataset, feature: str, width: int, model: Model) -> list[str]:
    """Names of a feature's components; without any, the joint names if there are as many, or indices."""
    names = found.names.get(feature, [])
    if len(names) == width and len(set(names)) == width:
        return names
    joints = [name for name, part in model.v_slices.items() if part.stop - part.start == 1]
    return joints if len(joints) == width == model.nv else [str(i) for i in range(width)]


def _slot(name: str, feature: str, topic: Topic, model: Model) -> Slot | None:
    """The slot in a recording of a component of a feature."""
    if feature not in _QUANTITIES:
        return None
    quantity = _QUANTITIES[feature]
    quantity = topic.effort if quantity == "tau" else quantity
    stem, _, last = name.rpartition(".")
    owner = topic.names.get(name, topic.names.get(stem, name))
    for text in [owner] if owner != name else [name, stem if last in ("pos", "vel", "effort") else name]:
        if text in model.v_slices and model.v_slices[text].stop - model.v_slices[text].start == 1:
            channel = {"pos": "q", "vel": "v", "effort": "tau"}.get(last, quantity)
            return Slot(channel, text, 0)
    spoken = parse_name(name, model)
    return spoken[0] if len(spoken) == 1 and spoken[0] != TIME else None
