"""Maps of recorded motion: TOML files that define the columns of a recording and its processing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
from jaxtyping import Float, Int

from lgsim.identify import Plant, Recording, RecordingMapError, TotalMass, read_recording
from lgsim.identify.logs.log_columns import TopicFault, read_topics
from lgsim.identify.recording.columns import Slot
from lgsim.identify.recording.filters import Butterworth, Smoother, Spline
from lgsim.identify.recording.map_entries import split_map
from lgsim.identify.recording.reading import read_columns
from lgsim.identify.unknowns.block import Block
from lgsim.identify.unknowns.coupled_plant import CoupledPlant
from lgsim.identify.unknowns.parameters import Prior
from lgsim.multibody import Model
from lgsim.scenarios import unknowns
from lgsim.support.toml_table import Document, Table, read, shown

TABLES = (
    "options",
    "topics",
    "delays",
    "smoothing",
    "sensors",
    "drives",
    "coupling",
    "known",
    "unknowns",
    "estimation",
)
"""Keys of a map other than columns."""
_FIELDS = {"name": str, "joint": str, "frame": str, "quantity": str, "index": int, "unit": str, "columns": dict}
"""Keys of a column's table and their types; ``sign``, ``scale`` and ``offset`` are numbers."""
_DELAYED = ("v", "tau", "current")
"""Channels that may be delayed, in addition to "imu <frame>"."""
_SENSORS = {
    "position": ("q", 1e-3), "velocity": ("v", 1e-2), "accelerometer": ("accelerometer", 0.1),
    "gyroscope": ("gyroscope", 1e-2),
}  # fmt: skip
"""Keys of the table `[sensors]` with those of ``RecordingMap.deviations`` and default values."""
_ESTIMATE = "estimate"
"""Value of a delay that is estimated from the recording."""


class RecordingMap(NamedTuple):
    """A map of a recording, validated as far as possible without the recording.

    Attributes:
        columns: The map for ``identify.read_recording``: a name or a table for each column, ``options``, ``topics``.
        delays: Delay of each channel, s; None to estimate it.
        smoother: Smoother of positions; None to choose one by cross-validation.
        rate: Resampling rate, Hz; None keeps the times of the recording.
        slowest: Joint forces at lower speeds, rad/s or m/s, are not fitted; None fits all.
        deviations: Standard deviations of "q", rad or m, and "v", rad/s or m/s, (nv,), "accelerometer", m/s^2, and
            "gyroscope", rad/s; initial guesses for a fit.
        scale: Joint force per unit of an actuator's signal (nv,), N m/A or 1.
        priors: Prior knowledge of the parameters.
        estimation: Of a filter the densities "force_noise", (nv,) or None, and "walk", the standard deviations
            "start_position" and "start_velocity" of the first state, (nv,), and the fraction "gate" or None.
    """

    columns: dict[str, object]
    delays: dict[str, float | None]
    smoother: Smoother | None
    rate: float | None
    slowest: float | None
    deviations: dict[str, Any]
    scale: Float[np.ndarray, " nv"]
    priors: tuple[Prior, ...]
    estimation: dict[str, Any]
    root: Table

    def read(self, path: str | PathLike[str], model: Model) -> Recording:
        """Read a recording with this map, see ``identify.read_recording``.

        Args:
            path: The recording: a table, a log, the folder of a bag or of a LeRobot data set.

        Raises:
            ScenarioError: an entry of the map is invalid for a column.
            ValueError: the recording is missing or cannot be read.
            ModuleNotFoundError: a package is missing; the message names the extra.
        """
        with self._at_columns(Path(path)):
            return read_recording(Path(path), model, self.columns)

    def positions(self, path: str | PathLike[str], model: Model) -> dict[str, Float[np.ndarray, "n nq"]]:
        """The recorded positions of the joints that have columns for all of them, by joint; errors as in ``read``."""
        with self._at_columns(Path(path)):
            columns = read_columns(Path(path), model, self.columns)[0]
        found = {}
        for name, part in model.q_slices.items():
            own = [Slot("q", name, i) for i in range(part.stop - part.start)]
            if own and columns.keys() >= set(own):
                found[name] = np.stack([columns[slot] for slot in own], axis=1)
        return found

    def plant(self, model: Model) -> Plant:
        """The plant of a model, with the scales of its signals and the motors of the table `[coupling]`.

        Raises:
            ScenarioError: a motor turns with a joint that does not exist, or a factor is not a number.
        """
        table = self.root.table("coupling")
        rows = {motor: table.table(motor) for motor in table.values}
        factors = {motor: {joint: row.needed_number(joint) for joint in row.values} for motor, row in rows.items()}
        with table.at(None):
            return CoupledPlant(model, factors, self.scale) if factors else Plant(model, self.scale)

    def blocks(self, plant: Plant, names: Sequence[str] | None = None, with_speed: bool = True) -> dict[str, Block]:
        """The unknown parameters by name: ``identify.Parameters(plant, list(blocks.values()), map.priors)``.

        Args:
            plant: The model with its actuators.
            names: Names such as "masses" and "friction"; None for all in the map, or ``bodies``, ``friction`` and
                ``damping`` if the map has none.
            with_speed: True to add the changeover speed of dry friction to ``friction``.

        Raises:
            ScenarioError: an entry of the map is invalid for a block.
            ValueError: a name is unknown or occurs twice, or two blocks change the same parameters.
        """
        return unknowns.read_blocks(self.root.table("unknowns"), plant, names, with_speed)

    @property
    def stated(self) -> set[str]:
        """The keys of ``deviations`` that the map has."""
        return {kind for key, (kind, _) in _SENSORS.items() if key in self.root.table("sensors")}

    @property
    def unresampled(self) -> RecordingMap:
        """The map that keeps each topic of a log at its own times, unless it has the option ``resample``."""
        options = {"resample": False, **cast(Mapping[str, object], self.columns["options"])}
        return self._replace(columns={**self.columns, "options": options})

    def of_dofs(self, places: Int[np.ndarray, " k"]) -> RecordingMap:
        """The map for a model that has some of the degrees of freedom."""
        tables = [
            {key: x[places] if isinstance(x, np.ndarray) else x for key, x in table.items()}
            for table in (self.deviations, self.estimation)
        ]
        return self._replace(scale=self.scale[places], deviations=tables[0], estimation=tables[1])

    @contextmanager
    def _at_columns(self, path: Path) -> Iterator[None]:
        """A context in which an error about a column becomes an error about its line in the map."""
        try:
            yield
        except RecordingMapError as error:
            for table in (self.root.table("topics"), self.root):
                if error.column in table:
                    raise table.fault(error.column, error.reason, *filter(None, (error.key,))) from error
            raise
        except FileNotFoundError as error:
            raise ValueError(f"{path}: no such file") from error


def load_recording_map(path: str | PathLike[str] | None, model: Model) -> RecordingMap:
    """Read the map of a recording from a TOML file; ``lgsim.data.recording_map()`` is a commented example.

    Args:
        path: The file; None for an empty map, which accepts columns with clear names.

    Returns:
        Columns, delays, smoothing, sensors, actuators, priors and unknown parameters.

    Raises:
        ScenarioError: a ValueError with file, line and key.
    """
    root = Table(Document(Path("map"), "", {}), (), {}) if path is None else read(path)
    columns = {name: _column(root, name) for name in root.values if name not in TABLES}
    options = root.table("options").only(
        "quaternion", "twist", "automatic", "constants", "episode", "names", "rate", "files", "resample"
    )
    options.choice("quaternion", ("wxyz", "xyzw"), "wxyz")
    options.choice("twist", ("body", "world", "mixed"), "body")
    options.flag("automatic", True)
    options.flag("resample", True)
    if "episode" in options:
        options.whole("episode", 0, least=0)
    options.number("rate", above=0.0)
    for key in ("names", "files"):
        with options.at(key):
            split_map({"options": {key: options.values.get(key, ())}})
    constants = options.table("constants")
    for name in constants.values:
        constants.number(name)
    smoother, rate, slowest = _smoothing(root.table("smoothing"))
    sensors = root.table("sensors").only(*_SENSORS)
    deviations = {kind: _by_joint(sensors, key, model, usual) for key, (kind, usual) in _SENSORS.items()}
    drives = root.table("drives").only("scale")
    scale, _ = drives.by_joint("scale", model.v_slices, np.ones(model.nv))
    if not np.all(scale):
        raise drives.fault("scale", "expected nonzero numbers")
    root.table("unknowns").only(*unknowns.KINDS)
    topics = root.table("topics")
    try:
        read_topics(topics.values, model)
    except TopicFault as error:
        raise topics.fault(error.topic, error.reason, *filter(None, (error.key,))) from error
    columns |= {"topics": dict(topics.values)} if topics.values else {}
    return RecordingMap(
        {**columns, "options": dict(options.values)}, _delays(root.table("delays")), smoother, rate, slowest,
        deviations, scale, _priors(root.table("known")), _estimation(root.table("estimation"), model), root,
    )  # fmt: skip


def _column(root: Table, name: str) -> str | dict[str, object]:
    """The entry of a column: its standard name, or a table."""
    value = root.values[name]
    if isinstance(value, str):
        return value
    if not isinstance(value, dict):
        wanted = 'a name, "ignore", or a table such as { joint = ..., quantity = ... }'
        raise root.fault(name, f"expected {wanted}, got {shown(value)}")
    table = root.table(name).only(*_FIELDS, "sign", "scale", "offset")
    for key, kind in _FIELDS.items():
        table.of(key, kind)
    table.number("scale")
    table.number("offset")
    for column in table.table("columns").values:
        table.table("columns").number(column)
    if table.number("sign", 1.0) not in (-1.0, 1.0):
        raise table.fault("sign", f"expected 1 or -1, got {shown(table.values['sign'])}")
    return dict(table.values)


def _delays(table: Table) -> dict[str, float | None]:
    """Delay of each channel, s; None to estimate it."""
    found: dict[str, float | None] = {}
    sensors = [name for name in table.values if name.startswith("imu ")]
    for channel, value in table.only(*_DELAYED, *sensors).values.items():
        if isinstance(value, str) and value != _ESTIMATE:
            raise table.fault(channel, f"expected a time in s or {_ESTIMATE!r}, got {shown(value)}")
        found[channel] = None if value == _ESTIMATE else table.number(channel)
    return found


def _by_joint(table: Table, key: str, model: Model, usual: float) -> float | Float[np.ndarray, " nv"]:
    """A positive number for each degree of freedom; one number of a sensor that belongs to no joint."""
    value = table.values.get(key, usual)
    if key in ("accelerometer", "gyroscope") or not isinstance(value, dict | list):
        number = table.number(key, usual, above=0.0)
        return number if key in ("accelerometer", "gyroscope") else np.full(model.nv, number)
    numbers, _ = table.by_joint(key, model.v_slices, np.full(model.nv, usual))
    if not np.all(numbers > 0):
        raise table.fault(key, f"expected a number above 0 for each joint, got {shown(value)}")
    return numbers


def _estimation(table: Table, model: Model) -> dict[str, Any]:
    """The table `[estimation]`, with all its values."""
    table.only("force_noise", "walk", "start_position", "start_velocity", "gate")
    gate = table.number("gate", above=0.0)
    if gate is not None and not gate < 1:
        raise table.fault("gate", f"expected a fraction below 1, such as 0.999, got {gate:g}")
    return {
        "force_noise": _by_joint(table, "force_noise", model, 0.0) if "force_noise" in table else None,
        "walk": table.number("walk", 0.0, least=0.0),
        "start_position": _by_joint(table, "start_position", model, 0.1),
        "start_velocity": _by_joint(table, "start_velocity", model, 1.0),
        "gate": gate,
    }


def _smoothing(table: Table) -> tuple[Smoother | None, float | None, float | None]:
    """The smoother or None, the resampling rate, Hz, and the lowest fitted speed."""
    table.only("method", "spacing", "cutoff", "rate", "slowest")
    method = table.choice("method", ("spline", "butterworth"), "spline")
    for key, owner in (("spacing", "spline"), ("cutoff", "butterworth")):
        if key in table and method != owner:
            raise table.fault(key, f"not a key of the method {method!r}")
    smoother: Smoother | None = None
    if method == "butterworth":
        smoother = Butterworth(table.needed_number("cutoff", above=0.0))
    elif "spacing" in table:
        smoother = Spline(table.needed_number("spacing", above=0.0))
    return smoother, table.number("rate", above=0.0), table.number("slowest", least=0.0)


def _priors(table: Table) -> tuple[Prior, ...]:
    """The priors of the table `[known]`."""
    table.only("total_mass", "total_mass_deviation")
    if "total_mass" not in table:
        return ()
    deviation = table.needed_number("total_mass_deviation", above=0.0)
    return (TotalMass(table.needed_number("total_mass", above=0.0), deviation),)
