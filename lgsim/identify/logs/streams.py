"""Streams of a log: numbers with equal labels at the times of their own clock, and clock alignment."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from lgsim.identify.logs.messages import Numbers

_HOLE = 3.5  # usual steps of a stream: longer gaps are not interpolated
_NS = 1e-9
_NONE = -(2**63)  # a missing stamp
_SET_BACK = 2 * 10**8  # ns: larger than the disorder of messages
_STAYS = 50  # number of messages after which a clock that was set back is still behind
_ANOTHER_CLOCK = 0.5  # s: stamps with a larger offset from the time of recording belong to another clock


class Stream:
    """Numbers of one topic with equal labels, in the order of recording.

    Attributes:
        labels: Labels of the numbers.
        rank: Rank of the topic's type: of two streams with one quantity the lower rank is used.
        shift: Correction of the times for resets of the recording clock (n,), ns; None for none.
    """

    def __init__(self, topic: str, labels: Sequence[str], rank: int) -> None:
        self.topic, self.labels, self.rank = topic, tuple(labels), rank
        self._stamps, self._log, self._rows, self._places = array("q"), array("q"), array("d"), array("q")
        self.shift: Int[np.ndarray, " n"] | None = None
        self._orders: dict[object, Int[np.ndarray, " k"]] = {}

    def __len__(self) -> int:
        return len(self._log)

    def append(self, numbers: Numbers, labels: Sequence[str], log_time: int, place: int) -> None:
        """Append the numbers of a message at a position in the log; labels may have another order or be fewer."""
        order = self._orders.get(numbers.key)
        if order is None:
            own = {label: i for i, label in enumerate(self.labels)}
            order = self._orders[numbers.key] = np.array([own[label] for label in labels], int)
        row = np.full(len(self.labels), np.nan)
        row[order] = numbers.values
        self._rows.frombytes(row.tobytes())
        self._stamps.append(_NONE if numbers.stamp is None else _clipped(numbers.stamp))
        self._log.append(_clipped(log_time))
        self._places.append(place)

    def extend(self, labels: Sequence[str]) -> None:
        """Add labels that only later messages have; values of earlier messages are missing."""
        new = tuple(label for label in labels if label not in self.labels)
        if new:
            rows = np.hstack([self.values, np.full((len(self), len(new)), np.nan)])
            self._rows, self.labels = array("d", rows.tobytes()), self.labels + new

    @property
    def log_times(self) -> Int[np.ndarray, " n"]:
        """The times of recording (n,), ns."""
        return np.frombuffer(self._log, np.int64) + (0 if self.shift is None else self.shift)

    @property
    def stamps(self) -> Int[np.ndarray, " n"]:
        """The times in the messages (n,), ns; invalid where ``stamped`` is false."""
        stamps = np.where(self.stamped, np.frombuffer(self._stamps, np.int64), 0)
        if self.shift is None:
            return stamps
        # stamps of another clock were not set back with the recording clock
        went_back = np.diff(stamps[self.stamped]) < -_SET_BACK
        return stamps + (self.shift if went_back.any() else 0)

    @property
    def stamped(self) -> Bool[np.ndarray, " n"]:
        """A mask of the messages with a valid time of their own (n,): a sender without a clock always writes 0."""
        stamps = np.frombuffer(self._stamps, np.int64)
        return (stamps != _NONE) & ((stamps != 0) | (np.count_nonzero(stamps == 0) == 1))

    @property
    def places(self) -> Int[np.ndarray, " n"]:
        """The positions of the messages (n,) among all messages of the log."""
        return np.frombuffer(self._places, np.int64)

    @property
    def values(self) -> Float[np.ndarray, "n k"]:
        """The numbers (n, k)."""
        return np.frombuffer(self._rows, float).reshape(len(self), len(self.labels))


def _clipped(time: int) -> int:
    return min(max(time, -(2**62)), 2**62)


def set_back(streams: Sequence[Stream]) -> list[tuple[int, float]]:
    """Correct the times of streams after each reset of the recording clock by more than 0.2 s.

    Returns:
        (position among all messages, correction, s) of each reset.
    """
    count = max((int(stream.places[-1]) + 1 for stream in streams if len(stream)), default=0)
    times = np.full(count, np.iinfo(np.int64).min)
    for stream in streams:
        times[stream.places] = stream.log_times
    known = np.flatnonzero(times != np.iinfo(np.int64).min)
    times = times[known]
    found, added = [], np.zeros(len(times), np.int64)
    for k in np.flatnonzero(np.diff(times) < -_SET_BACK) + 1:
        back = int(times[k - 1] - times[k])
        if np.median(times[k : k + _STAYS]) < times[k - 1] - back / 2:
            added[k:] += back
            found.append((int(known[k]), back * _NS))
    if found:
        by_place = np.zeros(count, np.int64)
        by_place[known] = added
        for stream in streams:
            stream.shift = by_place[stream.places]
    return found


class Clock(NamedTuple):
    """The times of a stream.

    Attributes:
        time: The times (n,), s, relative to the first of the first stream; NaN for a message without a time.
        own: True if they come from the messages, false for the times of recording.
        offset: Offset that was added to stamps of another clock, s; 0 for none.
        without: Number of messages without a time of their own.
    """

    time: Float[np.ndarray, " n"]
    own: bool
    offset: float
    without: int


def clocks(streams: Sequence[Stream], by_log: Sequence[bool]) -> list[Clock]:
    """The times of streams relative to the first time of the first one.

    Stamps of messages are preferred, since the time of recording contains transport delays. Stamps of two computers are
    of two clocks: the median of (time of recording - stamp) of a stream is compared with that of the first stream with
    stamps, which is the reference by convention, and such stamps are shifted by the difference.

    Args:
        streams: The streams; the one with the positions comes first.
        by_log: For each of them, True to use the times of recording.
    """
    ticks: list[tuple[Int[np.ndarray, " n"], bool, int, int]] = []  # times in ns, stamps or not, offset, missing
    reference: int | None = None
    for stream, log in zip(streams, by_log, strict=True):
        stamped = stream.stamped
        if log or np.count_nonzero(stamped) <= len(stream) / 2:
            ticks.append((stream.log_times, False, 0, 0))
            continue
        behind = int(np.median((stream.log_times - stream.stamps)[stamped]))
        reference = behind if reference is None else reference
        offset = behind - reference if abs(behind - reference) * _NS > _ANOTHER_CLOCK else 0
        ticks.append((stream.stamps + offset, True, offset, int(np.count_nonzero(~stamped))))
    if reference is not None and abs(reference) * _NS > _ANOTHER_CLOCK and not all(own for _, own, _, _ in ticks):
        # streams without stamps are on the recording clock, so that the others are aligned with it
        ticks = [(time + reference if own else time, own, offset, lost) for time, own, offset, lost in ticks]
    found, start = [], None
    for stream, (time, own, offset, lost) in zip(streams, ticks, strict=True):
        known = stream.stamped if own else np.ones(len(stream), bool)
        start = int(time[known].min()) if start is None and known.any() else start
        # integer differences in ns: a float of the time since 1970 has a resolution of 240 ns
        found.append(Clock(np.where(known, (time - (start or 0)) * _NS, np.nan), own, offset * _NS, lost))
    return found


def resample(
    time: Float[np.ndarray, " n"], clock: Float[np.ndarray, " m"], values: Float[np.ndarray, "m k"],
    quaternions: Sequence[Int[np.ndarray, " 4"]] = (),
) -> Float[np.ndarray, "n k"]:  # fmt: skip
    """Interpolate the numbers of a stream linearly at other times; NaN outside and across gaps.

    Args:
        time: The query times, s.
        clock: The times of the stream, s.
        quaternions: The columns of each quaternion, whose sign is made continuous and which is normalized.
    """
    known = np.isfinite(clock)
    clock, values = clock[known], values[known]
    order = np.argsort(clock, kind="stable")
    clock, values = clock[order], values[order].copy()
    new = np.concatenate([[True], np.diff(clock) > 0])[: len(clock)]
    clock, values = clock[new], values[new]
    out = np.full((len(time), values.shape[1]), np.nan)
    if len(clock) < 2:
        return out
    for at in quaternions:
        signs = np.sign(np.nansum(values[1:, at] * values[:-1, at], axis=1))
        values[1:, at] *= np.cumprod(np.where(signs == 0, 1.0, signs))[:, None]
    i = np.clip(np.searchsorted(clock, time, side="right") - 1, 0, len(clock) - 2)
    gap = clock[i + 1] - clock[i]
    s = (time - clock[i]) / gap
    usual = float(np.median(np.diff(clock)))
    inside = (s >= 0) & (s <= 1) & ((gap <= _HOLE * usual) | (s == 0) | (s == 1))
    s = s[inside, None]
    low, high = values[i[inside]], values[i[inside] + 1]
    # values that are missing on one side do not affect the other
    out[inside] = np.where(s == 0, low, np.where(s == 1, high, low + s * (high - low)))
    for at in quaternions:
        norm = np.linalg.norm(out[:, at], axis=1, keepdims=True)
        out[:, at] /= np.where(norm > 0, norm, 1)
    return out
