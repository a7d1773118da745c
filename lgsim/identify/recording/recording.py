"""Recorded motion of one system: sensor data by joint, with weights."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from lgsim.identify import model_files
from lgsim.identify.recording.coordinates import coordinate_mask, dof_mask
from lgsim.identify.recording.report import Finding, Report
from lgsim.multibody.model import Model
from lgsim.simulation.trajectory import Trajectory, q_names, tau_names, v_names
from lgsim.support.files import write_whole
from lgsim.support.packages import package

CHANNELS = ("q", "v", "a", "tau", "current")
"""The channels of a recording."""

MAX_GAP = 10.0
"""Usual steps between two samples above which they belong to different segments."""

_FORMAT = "lgsim recording 1"
_ARRAYS = ("time", *CHANNELS)


@dataclass(frozen=True)
class Recording:
    """Recorded motion of one system; numpy arrays in SI units, angles in radians without wrapping.

    The pose of a floating base is that of its joint in ``q``, its twist in ``v``, in body axes. A missing or invalid
    value is replaced by a plausible one with weight 0.

    Attributes:
        model: The model whose joints name the columns; its parameters are used by ``check_recording`` only.
        time: Times of the samples (n,), s.
        q: Configurations (n, nq), rad or m.
        v: Velocities (n, nv), rad/s or m/s, or None.
        a: Time derivatives of v (n, nv), rad/s^2 or m/s^2, or None.
        tau: Joint torques of the drives (n, nv), N m or N, or None.
        current: Currents of the drives (n, nv), A, or None.
        imu: By frame (n, 6): specific force, m/s^2, and angular velocity, rad/s, in frame axes.
        weights: Weight of each value by channel, those of ``CHANNELS`` and "imu <frame>", (n, nv) or (n, 6); 0 to
            ignore it. For q there is one for each degree of freedom; the three of a quaternion are equal. Channels that
            are not given have weight 1, and 0 where a value is NaN.
        source: Origin of the data, as a phrase.
        history: The processing steps in order, as phrases.
        report: The findings.

    Raises:
        ValueError: a shape is wrong, a weight is negative, or a frame or channel does not exist.
    """

    model: Model
    time: Float[np.ndarray, " n"]
    q: Float[np.ndarray, "n nq"]
    v: Float[np.ndarray, "n nv"] | None = None
    a: Float[np.ndarray, "n nv"] | None = None
    tau: Float[np.ndarray, "n nv"] | None = None
    current: Float[np.ndarray, "n nv"] | None = None
    imu: Mapping[str, Float[np.ndarray, "n 6"]] = field(default_factory=dict)
    weights: Mapping[str, Float[np.ndarray, "n _"]] = field(default_factory=dict)
    source: str = ""
    history: tuple[str, ...] = ()
    report: Report = field(default_factory=Report)

    def __post_init__(self) -> None:
        n = len(self.time)
        for name, array in {"time": self.time, **self.channels}.items():
            shape = (n,) if name == "time" else (n, self._width(name))
            if array.shape != shape:
                raise ValueError(f"{name}: expected shape {shape}, got {array.shape}")
        unknown = set(self.imu) - set(self.model.frame_names)
        if unknown:
            raise ValueError(f"imu: expected frames of the model, got {sorted(unknown)[0]!r}; add one with add_frame")
        weights = {}
        for name, array in self.channels.items():
            finite, given = np.isfinite(array), self.weights.get(name)
            finite = dof_mask(self.model.topology, finite) if name == "q" else finite
            weights[name] = finite.astype(float) if given is None else given
            if weights[name].shape != finite.shape or not np.all(weights[name] >= 0):
                raise ValueError(f"weights {name!r}: expected shape {finite.shape} and nonnegative values, got {given}")
        if spare := set(self.weights) - set(weights):
            raise ValueError(f"weights: expected channels of {', '.join(weights)}, got {sorted(spare)[0]!r}")
        object.__setattr__(self, "weights", weights)

    @classmethod
    def from_trajectory(cls, motion: Trajectory) -> Recording:
        """Convert a simulated motion to a recording with time, q, v and tau."""
        source = f"lgsim {motion.version} {motion.method}".strip()
        return cls(motion.model, motion.time, motion.q, motion.v, tau=motion.tau, source=source)

    def __len__(self) -> int:
        """Number of samples."""
        return len(self.time)

    def __getitem__(self, part: slice | Int[np.ndarray, " k"] | Bool[np.ndarray, " n"]) -> Recording:
        """Select samples by a slice, by indices (k,), or by a mask (n,).

        Raises:
            TypeError: the part is neither a slice nor an array.
        """
        if not isinstance(part, slice | np.ndarray):
            raise TypeError(f"recording: expected a slice such as [10:20] or an array, got {part!r}")
        arrays = {name: x[part] for name, x in self.channels.items()}
        weights = {name: x[part] for name, x in self.weights.items()}
        return self.with_channels(arrays, time=self.time[part], weights=weights)

    @property
    def channels(self) -> dict[str, Float[np.ndarray, "n _"]]:
        """The available arrays, by the names of ``CHANNELS`` and "imu <frame>"."""
        given = {name: getattr(self, name) for name in CHANNELS}
        present = {name: x for name, x in given.items() if x is not None}
        return present | {f"imu {frame}": x for frame, x in self.imu.items()}

    @property
    def dt(self) -> float:
        """The usual step, s: the median; NaN for a single sample."""
        return float(np.median(np.diff(self.time))) if len(self) > 1 else float("nan")

    @cached_property
    def segments(self) -> list[slice]:
        """The longest parts in which time increases and no step is above ``MAX_GAP`` usual ones."""
        steps = np.diff(self.time)
        ends = np.flatnonzero(~((steps > 0) & (steps <= MAX_GAP * self.dt))) + 1
        bounds = [0, *ends.tolist(), len(self)]
        return [slice(a, b) for a, b in pairwise(bounds) if b > a]

    @property
    def longest_segment(self) -> slice:
        """The segment with the most samples; the first one of equal length."""
        return max(self.segments, key=lambda part: part.stop - part.start)

    def valid(self, channel: str) -> Bool[np.ndarray, "n _"]:
        """A mask of the samples of a channel with nonzero weight, (n, nv) or (n, 6)."""
        return self.weights[channel] > 0

    def joint(self, channel: str, name: str) -> Float[np.ndarray, "n k"]:
        """The k columns of a channel of ``CHANNELS`` that belong to a joint.

        Raises:
            KeyError: the channel or joint does not exist.
        """
        slices = self.model.q_slices if channel == "q" else self.model.v_slices
        return self.channels[channel][:, slices[name]]

    def split(self, validation: float = 0.3, blocks: int = 1) -> tuple[Recording, Recording]:
        """Split into (train, validation): the last part of each of some blocks of equal length is held out.

        Neighboring samples are correlated, so that samples are not drawn one by one. Split before smoothing; otherwise
        a few samples at the block boundaries contain information of the other part.

        Args:
            validation: The held-out fraction, between 0 and 1.
            blocks: Number of blocks of the motion; with more blocks both parts cover more of the motion.

        Raises:
            ValueError: the fraction is not between 0 and 1, or a part would have fewer than two samples.
        """
        if not 0 < validation < 1:
            raise ValueError(f"validation: expected a fraction between 0 and 1, got {validation}")
        bounds = np.linspace(0, len(self), blocks + 1).round().astype(int)
        train = np.ones(len(self), bool)
        for first, last in pairwise(bounds):
            middle = last - round(validation * (last - first))
            if min(middle - first, last - middle) < 2:
                raise ValueError(
                    f"blocks: expected at least two samples in each part, got {blocks} blocks of {len(self)} samples;"
                    " use fewer blocks"
                )
            train[middle:last] = False
        word = f"{validation:g} of each of {blocks} blocks for validation"
        return (
            self[train].with_history(f"split for training, {word}"),
            self[~train].with_history(f"split for validation, {word}"),
        )

    def with_history(self, *steps: str) -> Recording:
        """Append lines to ``history``, the list of processing steps.

        Args:
            steps: One sentence for each operation, such as "low-pass filter, 20 Hz", in the order in which they ran.
        """
        return replace(self, history=self.history + steps)

    def with_channels(self, arrays: Mapping[str, np.ndarray], **fields: Any) -> Recording:
        """Replace channels, by the names of ``channels``, and other fields."""
        named = {name: x for name, x in arrays.items() if name in CHANNELS}
        imu = {frame: arrays.get(f"imu {frame}", x) for frame, x in self.imu.items()}
        return replace(self, **named, imu=imu, **fields)

    def _width(self, channel: str) -> int:
        return {"q": self.model.nq}.get(channel, 6 if channel.startswith("imu ") else self.model.nv)

    @property
    def columns(self) -> dict[str, Float[np.ndarray, " n"]]:
        """Time and the columns of all channels, by name with unit; NaN where the weight is 0."""
        return _columns(self)

    def save(self, path: str | Path) -> Path:
        """Write the recording to a file atomically.

        ``.npz`` contains everything, including the model; ``.csv`` and ``.parquet`` contain ``columns``, which
        ``read_recording`` reads without a map.

        Raises:
            ValueError: the file extension is not supported.
        """
        path = Path(path)
        if path.suffix not in _WRITERS:
            raise ValueError(f"{path}: expected a name that ends in {' or '.join(_WRITERS)}, got {path.suffix!r}")
        write_whole(path, _WRITERS[path.suffix](self))
        return path

    @classmethod
    def load(cls, path: str | Path) -> Recording:
        """Load a recording from an ``.npz`` file of ``save``.

        Raises:
            FileNotFoundError: the file does not exist.
            ValueError: the file does not contain a recording.
        """
        return model_files.read(Path(path), _FORMAT, "recording", lambda *parts: cls(**_fields(*parts)))


def _columns(recording: Recording) -> dict[str, Float[np.ndarray, " n"]]:
    model = recording.model
    names = {
        "q": q_names(model),
        "v": v_names(model),
        "a": [name.replace("/s]", "/s^2]") for name in v_names(model)],
        "tau": tau_names(model),
        "current": [f"{name.rpartition(' [')[0]} [A]" for name in tau_names(model)],
    }
    named = {"time [s]": recording.time}
    for channel, array in recording.channels.items():
        valid = recording.valid(channel)
        if channel in names:
            valid = coordinate_mask(model.topology, valid) if channel == "q" else valid
            titles = [f"{channel} {name}" for name in names[channel]]
        else:
            frame = channel.removeprefix("imu ")
            titles = [f"accelerometer {frame}[{i}] [m/s^2]" for i in range(3)]
            titles += [f"gyroscope {frame}[{i}] [rad/s]" for i in range(3)]
        named |= {title: np.where(valid[:, i], array[:, i], np.nan) for i, title in enumerate(titles)}
    return named


def _fields(about: dict[str, Any], model: Model, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    if any(x.dtype.kind not in "fiu" for x in arrays.values()):
        raise TypeError("arrays that are not numeric")
    return {
        "model": model,
        **{name: arrays[name] for name in _ARRAYS if name in arrays},
        "imu": _prefixed("imu.", arrays),
        "weights": _prefixed("weights.", arrays),
        "source": str(about["source"]),
        "history": tuple(map(str, about["history"])),
        "report": Report(tuple(_finding(**finding) for finding in about["report"])),
    }


def _finding(kind: str, where: str, count: int, seen: str, done: str, open: bool = False) -> Finding:
    """Deserialize a finding."""
    if not isinstance(count, int) or count < 0:
        raise ValueError(f"a finding of {count} samples")
    return Finding(str(kind), str(where), count, str(seen), str(done), bool(open))


def _prefixed(prefix: str, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name.removeprefix(prefix): x for name, x in arrays.items() if name.startswith(prefix)}


def _to_npz(recording: Recording) -> bytes:
    about = {
        "source": recording.source,
        "history": recording.history,
        "report": [asdict(finding) for finding in recording.report],
    }
    arrays = {"time": recording.time}
    arrays |= {name: x for name, x in recording.channels.items() if name in _ARRAYS}
    arrays |= {f"imu.{name}": x for name, x in recording.imu.items()}
    arrays |= {f"weights.{name}": x for name, x in recording.weights.items()}
    return model_files.to_bytes(_FORMAT, about, recording.model, arrays)


def _to_csv(recording: Recording) -> bytes:
    file = io.StringIO()
    rows = csv.writer(file, lineterminator="\n")
    rows.writerow(recording.columns)
    lists = [["" if x != x else x for x in column.tolist()] for column in recording.columns.values()]
    rows.writerows(zip(*lists, strict=True))
    return file.getvalue().encode()


def _to_parquet(recording: Recording) -> bytes:
    arrow, parquet = package("pyarrow", "data"), package("pyarrow.parquet", "data")
    file = io.BytesIO()
    parquet.write_table(arrow.table(recording.columns), file)
    return file.getvalue()


_WRITERS = {".npz": _to_npz, ".csv": _to_csv, ".parquet": _to_parquet}
