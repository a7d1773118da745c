"""Maps of recorded motion: TOML files that say what the columns are and how they are to be read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lgsim.cli.errors import BadInput, one_line
from lgsim.identify import Butterworth, RecordingMapError, Spline, TotalMass
from lgsim.identify.recording.filters import Smoother
from lgsim.identify.unknowns.parameters import Prior
from lgsim.multibody import Model
from lgsim.scenarios.toml_table import Document, Table, read, shown

TABLES = ("options", "delays", "smoothing", "sensors", "drives", "known", "unknowns")
"""The keys of a map that are no columns."""
FIELDS = {"name": str, "joint": str, "frame": str, "quantity": str, "index": int, "unit": str}
"""Of a column's table, with what they hold; ``sign`` and ``scale`` are numbers."""
LATE = ("v", "tau", "current")
"""Channels that may come late."""
ESTIMATE = "estimate"


class Map(NamedTuple):
    """A map, checked as far as that goes without the record.

    Attributes:
        root: The file.
        columns: What ``read_recording`` takes, with its options.
        delays: By channel, s; None: to be estimated.
        smoother: How positions are smoothed; None: by cross-validation.
        rate: Of new samples, Hz, or None.
        slowest: Speed below which nothing is fitted, or None.
        deviations: First guesses, of q and v.
        scale: Of the signals (nv,).
        beliefs: What else is known.
        unknowns: The table of that name.
    """

    root: Table
    columns: dict[str, Any]
    delays: dict[str, float | None]
    smoother: Smoother | None
    rate: float | None
    slowest: float | None
    deviations: dict[str, float]
    scale: np.ndarray
    beliefs: tuple[Prior, ...]
    unknowns: Table

    @contextmanager
    def at_columns(self, motion: Path) -> Iterator[None]:
        """What is wrong with a column inside is said of its line in the map, where it has one."""
        try:
            yield
        except RecordingMapError as error:
            if error.column in self.root:
                inner = (error.key,) if error.key else ()
                raise self.root.fault(error.column, error.reason, *inner) from error
            raise BadInput(one_line(error)) from error
        except FileNotFoundError as error:
            raise BadInput(f"{motion}: no such file") from error
        except ValueError as error:
            raise BadInput(one_line(error)) from error


def load(file: Path | None, model: Model) -> Map:
    """The map of a file; without one nothing but the usual.

    Raises:
        BadInput: with file, line and key.
    """
    root = Table(Document(Path("--map"), "", {}), (), {}) if file is None else read(file)
    columns = {name: _column(root, name) for name in root.values if name not in TABLES}
    options = root.table("options").only("quaternion", "twist", "automatic", "constants")
    options.choice("quaternion", ("wxyz", "xyzw"), "wxyz")
    options.choice("twist", ("body", "world", "mixed"), "body")
    options.flag("automatic", True)
    constants = options.table("constants")
    for name in constants.values:
        constants.number(name)
    smoother, rate, slowest = _smoothing(root.table("smoothing"))
    sensors = root.table("sensors").only("position", "velocity")
    deviations = {"q": sensors.number("position", 1e-3, above=0.0), "v": sensors.number("velocity", 1e-2, above=0.0)}
    drives = root.table("drives").only("scale")
    scale, _ = drives.by_joint("scale", model.v_slices, np.ones(model.nv))
    if not np.all(scale):
        raise drives.fault("scale", "expected numbers that are not zero")
    return Map(
        root, {**columns, "options": dict(options.values)}, _delays(root.table("delays")), smoother, rate, slowest,
        deviations, scale, _beliefs(root.table("known")), root.table("unknowns"),
    )  # fmt: skip


def _column(root: Table, name: str) -> Any:
    """The entry of a column."""
    value = root.values[name]
    if isinstance(value, str):
        return value
    if not isinstance(value, dict):
        wanted = 'a name, "ignore", or a table such as { joint = ..., quantity = ... }'
        raise root.fault(name, f"expected {wanted}, got {shown(value)}")
    table = root.table(name).only(*FIELDS, "sign", "scale")
    for key, kind in FIELDS.items():
        table.of(key, kind)
    table.number("scale")
    if table.number("sign", 1.0) not in (-1.0, 1.0):
        raise table.fault("sign", f"expected 1 or -1, got {shown(value['sign'])}")
    return dict(value)


def _delays(table: Table) -> dict[str, float | None]:
    table.only(*LATE)
    return {channel: None if table.values[channel] == ESTIMATE else _delay(table, channel) for channel in table.values}


def _delay(table: Table, channel: str) -> float:
    if isinstance(table.values[channel], str):
        raise table.fault(channel, f"expected a time in s or {ESTIMATE!r}, got {shown(table.values[channel])}")
    return table.number(channel)


def _smoothing(table: Table) -> tuple[Smoother | None, float | None, float | None]:
    table.only("method", "spacing", "cutoff", "rate", "slowest")
    method = table.choice("method", ("spline", "butterworth"), "spline")
    for key, owner in (("spacing", "spline"), ("cutoff", "butterworth")):
        if key in table and method != owner:
            raise table.fault(key, f"not for the method {method!r}")
    smoother: Smoother | None = None
    if method == "butterworth":
        table.need("cutoff")
        smoother = Butterworth(table.number("cutoff", above=0.0))
    elif "spacing" in table:
        smoother = Spline(table.number("spacing", above=0.0))
    return smoother, table.number("rate", above=0.0), table.number("slowest", least=0.0)


def _beliefs(table: Table) -> tuple[Prior, ...]:
    table.only("total_mass", "total_mass_deviation")
    if "total_mass" not in table:
        return ()
    table.need("total_mass_deviation")
    mass, deviation = (table.number(key, above=0.0) for key in ("total_mass", "total_mass_deviation"))
    return (TotalMass(mass, deviation),)
