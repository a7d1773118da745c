"""PX4 logs (.ulg), read by the package pyulog: the columns that a map names, at the times of the positions."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from lgsim.identify.logs.streams import resample
from lgsim.identify.recording.columns import TIME
from lgsim.identify.recording.report import Finding
from lgsim.identify.recording.tables import Table
from lgsim.support.messages import listed
from lgsim.support.packages import package
from lgsim.support.reading.file_faults import file_faults
from lgsim.support.reading.size_limits import check_size

ENDING = ".ulg"
_MICROSECOND = 1e-6


def read_ulog(path: Path, columns: Mapping[str, Any]) -> Table:
    """Read the columns "<topic>/<field>" of a map, such as "vehicle_attitude/q[0]"; "sensor_gyro.1/x" of instance 1.

    All are interpolated linearly at the times of the first topic that the map names, quaternions with one sign. PX4's
    axes are north, east, down and front, right, down: with the signs of y and z changed, and those of the components y
    and z of the attitude, they are north, west, up and front, left, up.

    Args:
        columns: Entries of the map by column.

    Raises:
        ValueError: the file is no such log, or the map names none of its columns.
        ModuleNotFoundError: pyulog is not installed.
    """
    ulog = package("pyulog", "logs", "a PX4 log")
    check_size(path, path.stat().st_size, "has")
    # pyulog prints its findings
    with file_faults(path, "a PX4 log"), path.open("rb") as file, redirect_stdout(None):
        log = ulog.ULog(file)
        found = {f"{one.name}.{one.multi_id}" if one.multi_id else one.name: one.data for one in log.data_list}
        topics = dict.fromkeys(name.rpartition("/")[0] for name in columns)
        used = {topic: found[topic] for topic in topics if topic in found}
        arrays = {topic: {field: np.asarray(x, float) for field, x in data.items()} for topic, data in used.items()}
    if not arrays:
        raise ValueError(
            f'{path}: expected a map with columns such as "vehicle_attitude/q[0]", got none of the topics of the log:'
            f" {listed(sorted(found))}"
        )
    stamps = {topic: _MICROSECOND * data["timestamp"] for topic, data in arrays.items()}
    first = next(iter(arrays))
    # seconds from the first stamp: stamps count from the start of the autopilot
    time = stamps[first] - (stamps[first][0] if len(stamps[first]) else 0)
    table: dict[str, Float[np.ndarray, " n"]] = {"time": time}
    for topic, data in arrays.items():
        names = list(data)
        values = np.stack([data[name] for name in names], axis=1)
        attitude = [np.array([names.index(f"q[{i}]") for i in range(4)])] if {"q[0]", "q[3]"} <= set(names) else []
        if topic != first:
            values = resample(stamps[first], stamps[topic], values, attitude)
        table |= {f"{topic}/{name}": values[:, i] for i, name in enumerate(names) if f"{topic}/{name}" in columns}
    damages = [Finding("damaged file", path.name, 0, "parts of the log are corrupt", "left out")]
    return Table(table, {}, tuple(damages if log.file_corruption else ()), {"time": TIME})
