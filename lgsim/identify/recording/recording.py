"""Recorded motion: what sensors gave, by joint, with weights that say how far each number counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from lgsim.identify.recording import recording_files
from lgsim.identify.recording.report import Report
from lgsim.multibody.configuration import kinds
from lgsim.multibody.model import Model
from lgsim.multibody.topology import Topology
from lgsim.simulation.trajectory import Trajectory

CHANNELS = ("q", "v", "a", "tau", "current")
"""What a recording has of each joint."""

LONGEST_STEP = 10.0
"""Samples hang together where the step is at most this many times the usual one."""


@dataclass(frozen=True)
class Recording:
    """Motion of one machine as sensors gave it; arrays of numpy in SI units, angles in radians and not wrapped.

    The pose of a floating base is that of its joint in ``q``, its twist in ``v``. Where a number is missing or not to
    be trusted, an array holds a plausible one and the weight is 0.

    Attributes:
        model: The machine whose joints name the columns; of its numbers only ``check`` makes use.
        time: s, (n,).
        q: Configurations (n, nq).
        v: Velocities (n, nv), or None.
        a: Their derivatives (n, nv), or None.
        tau: Joint forces of the drives (n, nv), N m or N, or None.
        current: Currents of the drives (n, nv), A, or None.
        imu: By frame (n, 6): specific force, m/s^2, and angular velocity, rad/s, in the frame's axes.
        weights: By channel, those of ``CHANNELS`` and "imu <frame>", (n, nv) or (n, 6): how far each number counts.
            0: not at all. Of q there is one for each degree of freedom; of a quaternion the three are equal. What is
            not given is 1, and 0 where the number is NaN.
        source: Where the data come from.
        history: What was done to them, in order.
        report: What was found in them.
    """

    model: Model
    time: np.ndarray
    q: np.ndarray
    v: np.ndarray | None = None
    a: np.ndarray | None = None
    tau: np.ndarray | None = None
    current: np.ndarray | None = None
    imu: Mapping[str, np.ndarray] = field(default_factory=dict)
    weights: Mapping[str, np.ndarray] = field(default_factory=dict)
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
            raise ValueError(f"imu: the machine has no frame {sorted(unknown)[0]!r}; add_frame makes one")
        whole = {}
        for name, array in self.channels.items():
            given, valid = self.weights.get(name), _valid(self.model.topology, name, array)
            whole[name] = valid.astype(float) if given is None else given
            if whole[name].shape != valid.shape or not np.all(whole[name] >= 0):
                raise ValueError(f"weights {name!r}: expected shape {valid.shape}, no number below 0, got {given}")
        if spare := set(self.weights) - set(whole):
            raise ValueError(f"weights: there is no channel {sorted(spare)[0]!r}; there are {', '.join(whole)}")
        object.__setattr__(self, "weights", whole)

    @classmethod
    def of(cls, motion: Trajectory) -> Recording:
        """A computed motion as if it had been recorded: time, q, v and tau."""
        source = f"lgsim {motion.version} {motion.method}".strip()
        return cls(motion.model, motion.time, motion.q, motion.v, tau=motion.tau, source=source)

    def __len__(self) -> int:
        """Number of samples."""
        return len(self.time)

    def __getitem__(self, part: slice | np.ndarray) -> Recording:
        """A part, by a slice or by indices or a mask (n,) of the samples."""
        if not isinstance(part, slice | np.ndarray):
            raise TypeError(f"recording: expected a slice such as [10:20] or an array, got {part!r}")
        arrays = {name: x[part] for name, x in self.channels.items()}
        weights = {name: x[part] for name, x in self.weights.items()}
        return self._with(arrays, time=self.time[part], weights=weights)

    @property
    def channels(self) -> dict[str, np.ndarray]:
        """What there is, by the names that ``weights`` has."""
        given = {name: getattr(self, name) for name in CHANNELS}
        present = {name: x for name, x in given.items() if x is not None}
        return present | {f"imu {frame}": x for frame, x in self.imu.items()}

    @property
    def dt(self) -> float:
        """The usual step, s: the median."""
        return float(np.median(np.diff(self.time))) if len(self) > 1 else float("nan")

    @cached_property
    def pieces(self) -> list[slice]:
        """The stretches without a step above ``LONGEST_STEP`` usual ones."""
        steps = np.diff(self.time)
        ends = np.flatnonzero(~((steps > 0) & (steps <= LONGEST_STEP * self.dt))) + 1
        bounds = [0, *ends.tolist(), len(self)]
        return [slice(a, b) for a, b in pairwise(bounds) if b > a]

    def valid(self, channel: str) -> np.ndarray:
        """Where the weight of a channel is not 0."""
        return self.weights[channel] > 0

    def joint(self, channel: str, name: str) -> np.ndarray:
        """The part of a channel of ``CHANNELS`` that belongs to a joint, (n, k).

        Raises:
            KeyError: there is no such channel or joint.
        """
        slices = self.model.q_slices if channel == "q" else self.model.v_slices
        return self.channels[channel][:, slices[name]]

    def split(self, validation: float = 0.3, blocks: int = 1) -> tuple[Recording, Recording]:
        """(train, validation): the last part of each of some blocks of equal length is kept for validation.

        Neighbours in time resemble each other, so samples are never drawn one by one. Split before smoothing, or a
        few samples at the seams know the other side.

        Args:
            validation: The part kept, between 0 and 1.
            blocks: Into how many stretches the motion is cut first; more of them show more of the motion to both.

        Raises:
            ValueError: the part is not between 0 and 1, or a piece would have less than two samples.
        """
        if not 0 < validation < 1:
            raise ValueError(f"validation: expected a part between 0 and 1, got {validation}")
        bounds = np.linspace(0, len(self), blocks + 1).round().astype(int)
        train = np.ones(len(self), bool)
        for first, last in pairwise(bounds):
            middle = last - round(validation * (last - first))
            if min(middle - first, last - middle) < 2:
                raise ValueError(f"blocks: {blocks} of {len(self)} samples leave less than two for a part; take fewer")
            train[middle:last] = False
        word = f"{validation:g} of each of {blocks} blocks for validation"
        return self[train].noted(f"split for training, {word}"), self[~train].noted(f"split for validation, {word}")

    def noted(self, *done: str) -> Recording:
        """The same with lines more in ``history``."""
        return replace(self, history=self.history + done)

    def _with(self, arrays: Mapping[str, np.ndarray], **others: Any) -> Recording:
        """The same with other channels and fields."""
        named = {name: x for name, x in arrays.items() if name in CHANNELS}
        imu = {frame: arrays.get(f"imu {frame}", x) for frame, x in self.imu.items()}
        return replace(self, **named, imu=imu, **others)

    def _width(self, channel: str) -> int:
        return {"q": self.model.nq}.get(channel, 6 if channel.startswith("imu ") else self.model.nv)

    @property
    def columns(self) -> dict[str, np.ndarray]:
        """All that changes with time, by name with unit, NaN where the weight is 0."""
        return recording_files.columns(self)

    def save(self, path: str | Path) -> Path:
        """Write the recording, whole or not at all.

        ``.npz`` holds all of it, the model too; ``.csv`` and ``.parquet`` hold ``columns``, which ``read_recording``
        reads without a map.

        Raises:
            ValueError: the ending is another one.
        """
        return recording_files.save(self, Path(path))

    @classmethod
    def load(cls, path: str | Path) -> Recording:
        """The recording of an ``.npz`` file that ``save`` wrote.

        Raises:
            FileNotFoundError: there is no such file.
            ValueError: it is no such file.
        """
        return cls(**recording_files.load(Path(path)))


def _valid(topology: Topology, channel: str, array: np.ndarray) -> np.ndarray:
    """Which degrees of freedom have all their numbers."""
    finite = np.isfinite(array)
    return by_velocity(topology, finite) if channel == "q" else finite


def by_velocity(topology: Topology, of_q: np.ndarray) -> np.ndarray:
    """What is true of coordinates (n, nq), for degrees of freedom (n, nv): of a quaternion where of all four."""
    out = np.ones((len(of_q), topology.nv), bool)
    for joint, q, v in kinds(topology):
        plain = joint.nv if joint.nq == joint.nv else joint.nq - 4
        out[:, v[:plain]] = of_q[:, q[:plain]]
        out[:, v[plain:]] = np.all(of_q[:, q[plain:]], axis=1, keepdims=True)
    return out


def quaternions(topology: Topology) -> list[tuple[str, np.ndarray, np.ndarray]]:
    """(name, places in q (4,), places in v (3,)) of each joint that has a quaternion."""
    found = []
    for i, (name, joint) in enumerate(zip(topology.joint_names, topology.joints, strict=True)):
        if topology.mimics[i] is None and joint.nq != joint.nv:
            q, v = topology.q_slice(i), topology.v_slice(i)
            found.append((name, np.arange(q.stop - 4, q.stop), np.arange(v.stop - 3, v.stop)))
    return found
