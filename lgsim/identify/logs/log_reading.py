"""Reading logs as tables: the topics selected by a model and a map, resampled to the clock of the positions."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from lgsim.identify.logs import log_columns
from lgsim.identify.logs.log_columns import Topic, TopicFault, read_topics
from lgsim.identify.logs.mcap_records import MAGIC as MCAP_MAGIC
from lgsim.identify.logs.mcap_records import McapFile
from lgsim.identify.logs.messages import MESSAGE_TYPES, Decoder, Numbers
from lgsim.identify.logs.raw_messages import Channel, Damage, RawMessage
from lgsim.identify.logs.ros1_bags import MAGIC as ROS1_MAGIC
from lgsim.identify.logs.ros1_bags import Ros1Bag
from lgsim.identify.logs.sqlite_bags import MAGIC as SQLITE_MAGIC
from lgsim.identify.logs.sqlite_bags import SqliteBag
from lgsim.identify.logs.streams import Clock, Stream, clocks, resample, set_back
from lgsim.identify.recording.columns import TIME, Slot
from lgsim.identify.recording.report import Finding
from lgsim.identify.recording.tables import Table
from lgsim.multibody.model import Model
from lgsim.support.messages import counted, listed
from lgsim.support.packages import package
from lgsim.support.reading.size_limits import check_size

LOGS = {".mcap": McapFile, ".db3": SqliteBag, ".bag": Ros1Bag}
"""The readers by file extension."""

_MOST_DAMAGES = 20  # maximum number of damages that are listed one by one
_MOST_STREAMS = 200  # number of different names above which a log counts as damaged
_CHECKED = 100  # number of messages between checks of the memory use
_FEWEST = 4  # minimum number of messages of a stream


class _Gathered(NamedTuple):
    """The content of a log that was read."""

    streams: list[Stream]
    channels: dict[str, Channel]
    frames: dict[str, str]
    damages: list[Damage]
    more: int


def is_log(path: Path) -> bool:
    """True if a path is a log by its extension, or a folder with such files."""
    return path.suffix.lower() in LOGS or (path.is_dir() and bool(_log_files(path)))


def _log_files(folder: Path) -> list[Path]:
    """The files of a bag, sorted by number."""
    found = [path for path in folder.iterdir() if path.suffix.lower() in LOGS]
    return sorted(found, key=lambda path: [int(x) if x.isdigit() else x for x in re.split(r"(\d+)", path.name)])


def read_log(
    path: Path, model: Model, topics: Mapping[str, Any], columns: Mapping[str, Any], automatic: bool = True,
    resampled: bool = True,
) -> Table:  # fmt: skip
    """Read the columns of a log, resampled to the clock of the stream with the most positions.

    Columns are called "<topic>/<joint>/<quantity>", such as "/joint_states/elbow/position", or "<topic>/<number>" for
    messages without joint names. Unreadable messages are skipped and listed in the findings.

    Args:
        path: An MCAP file, a ``.db3`` or ``.bag`` file, or the folder of a bag.
        model: The model, whose joints and frames determine the relevant topics.
        topics: Entries of the map by topic.
        columns: Entries of the map by column.
        automatic: True to read topics that are not in the map.
        resampled: False for the times of all streams, with NaN where a stream has no message.

    Raises:
        TopicFault: a topic of the map does not exist or cannot be read.
        ValueError: the log contains none of the model's joints.
        ModuleNotFoundError: a package of the extra ``logs`` is not installed.
    """
    package("mcap", "logs", "a log")
    package("rosbags", "logs", "a log")
    given = read_topics(topics, model)
    files = _log_files(path) if path.is_dir() else [path]
    gathered = _gather(files, given, columns, automatic)
    for name, topic in given.items():
        if name not in gathered.channels:
            raise TopicFault(
                name, "", f"the log has no such topic; it has {listed(sorted(gathered.channels)) or 'none'}"
            )
        kind = gathered.channels[name].type
        if not topic.ignored and kind not in MESSAGE_TYPES:
            raise TopicFault(name, "", f"its messages are {kind}; supported types are {', '.join(MESSAGE_TYPES)}")
    findings = _damage_findings(path, gathered)
    chosen = _choose(gathered, given, columns, model)
    if not any((slot is not None and slot.channel == "q") or name in columns for one in chosen
               for name, _, slot in one.columns):  # fmt: skip
        raise ValueError(f"{path}: {_nothing(gathered, model, findings)}")
    return _table(path, gathered, chosen, given, findings, resampled)


def _messages(files: list[Path], wanted: Any) -> Iterator[tuple[Path, RawMessage | Damage]]:
    for file in files:
        with file.open("rb") as opened:
            head = opened.read(16)
        # the content determines the type of a file, not its name
        kind = LOGS[file.suffix.lower()]
        kind = McapFile if head.startswith(MCAP_MAGIC) else SqliteBag if head == SQLITE_MAGIC else kind
        kind = Ros1Bag if head.startswith(ROS1_MAGIC) else kind
        for message in kind(file, wanted).messages():
            yield file, message


def _gather(files: list[Path], given: dict[str, Topic], columns: Mapping[str, Any], automatic: bool) -> _Gathered:
    """Read the messages of all relevant channels into streams."""
    channels: dict[str, Channel] = {}

    def wanted(channel: Channel) -> bool:
        channels.setdefault(channel.topic, channel)
        topic = given.get(channel.topic)
        named = topic is not None or any(name.startswith(f"{channel.topic}/") for name in columns)
        ignored = topic is not None and topic.ignored
        return channel.type in MESSAGE_TYPES and not ignored and (automatic or named)

    decoder, streams, frames = Decoder(), {}, {}
    damages: list[Damage] = []
    more = 0
    labels: dict[tuple[str, object], tuple[list[str], Stream]] = {}
    for place, (file, message) in enumerate(_messages(files, wanted)):
        if isinstance(message, RawMessage):
            message = _take(message, place, decoder, labels, streams, frames)
        if place % _CHECKED == 0:
            held = sum(len(stream) * (len(stream.labels) + 3) for stream in streams.values())
            check_size(file, 8 * held, "holds numbers of")
        if isinstance(message, Damage):
            name = f"{file.name}, " if len(files) > 1 else ""
            if len(damages) < _MOST_DAMAGES:
                damages.append(message._replace(where=name + message.where))
            else:
                more += 1
    return _Gathered(list(streams.values()), channels, frames, damages, more)


def _take(
    raw: RawMessage, place: int, decoder: Decoder, labels: dict[tuple[str, object], tuple[list[str], Stream]],
    streams: dict[tuple[str, frozenset[str]], Stream], frames: dict[str, str],
) -> Damage | None:  # fmt: skip
    """Append the numbers of a message to its stream; returns the fault, if any."""
    topic, kind = raw.channel.topic, MESSAGE_TYPES[raw.channel.type]
    try:
        numbers: Numbers = decoder.numbers(raw)
    except ValueError as error:
        return Damage(raw.where, f"{topic}: {error}; the message is skipped")
    known = labels.get((topic, numbers.key))
    if known is None:
        own = list(kind.labels(numbers.key))
        # one topic may have several senders, each with other joints
        owners = frozenset(label.partition("/")[0] for label in own)
        stream = streams.get((topic, owners))
        if stream is None:
            if len(streams) >= _MOST_STREAMS:
                return Damage(raw.where, f"{topic}: too many different joint names; the message is skipped")
            stream = streams[topic, owners] = Stream(topic, own, kind.rank)
        stream.extend(own)
        known = labels[topic, numbers.key] = own, stream
    known[1].append(numbers, known[0], raw.log_time, place)
    if numbers.frame:
        frames.setdefault(topic, numbers.frame)
    return None


class _Chosen(NamedTuple):
    """A stream with its columns: (name, index among its components, slot in the recording or None)."""

    stream: Stream
    columns: list[tuple[str, int, Slot | None]]

    @property
    def positions(self) -> int:
        """The number of positions of the stream."""
        return sum(slot is not None and slot.channel == "q" for _, _, slot in self.columns)


def _choose(gathered: _Gathered, given: dict[str, Topic], columns: Mapping[str, Any], model: Model) -> list[_Chosen]:
    """The streams with usable quantities, each quantity once, the one with the most positions first."""
    found, most = [], {}
    for stream in gathered.streams:
        most[stream.topic] = max(most.get(stream.topic, 0), len(stream))
    for stream in gathered.streams:
        topic, channel = given.get(stream.topic, Topic(stream.topic)), gathered.channels[stream.topic]
        own = []
        for i, label in enumerate(stream.labels):
            name = f"{stream.topic}/{label}"
            slot = log_columns.slot_of(label, gathered.frames.get(stream.topic, ""), channel, topic, model)
            # streams that are always missing are not used
            if (slot is not None or name in columns) and (name in columns or np.isfinite(stream.values[:, i]).any()):
                own.append((name, i, None if name in columns else slot))
        if own and len(stream) >= min(_FEWEST, most[stream.topic]):
            found.append(_Chosen(stream, own))

    def order(one: _Chosen) -> tuple[bool, int, int]:
        return one.stream.topic not in given, one.stream.rank, -len(one.stream)

    taken: set[Slot] = set()
    kept = []
    for one in sorted(found, key=order):
        own = [entry for entry in one.columns if entry[2] is None or entry[2] not in taken]
        taken |= {slot for _, _, slot in own if slot is not None}
        if own:
            kept.append(_Chosen(one.stream, own))
    return sorted(kept, key=lambda one: (-one.positions, -len(one.stream)))


def _table(
    path: Path, gathered: _Gathered, chosen: list[_Chosen], given: dict[str, Topic], findings: list[Finding],
    resampled: bool,
) -> Table:  # fmt: skip
    """The columns of the chosen streams at the times of the first one, or of all."""
    streams = [one.stream for one in chosen]
    for _, back in set_back(streams)[:_MOST_DAMAGES]:
        seen = f"the clock of recording was set back by {back:.6g} s"
        findings.append(Finding("clock jump", "time", 0, seen, "later times shifted"))
    topics = [given.get(stream.topic, Topic(stream.topic)) for stream in streams]
    times = clocks(streams, [topic.by_log for topic in topics])
    own_times = [clock.time - topic.delay for clock, topic in zip(times, topics, strict=True)]
    time = own_times[0]
    if not resampled:
        time = np.unique(np.concatenate([own[np.isfinite(own)] for own in own_times]))
    columns: dict[str, Float[np.ndarray, " n"]] = {"time": time}
    slots: dict[str, Slot] = {"time": TIME}
    scales: dict[str, float] = {}
    for one, clock, topic, own in zip(chosen, times, topics, own_times, strict=True):
        findings += _clock_findings(one, clock, streams[0].topic)
        values = one.stream.values
        if not resampled:
            known, messages = np.isfinite(own), values
            values = np.full((len(time), messages.shape[1]), np.nan)
            values[np.searchsorted(time, own[known])] = messages[known]
        elif one is not chosen[0]:
            values = resample(time, own, values, _quaternion_columns(one))
            findings += _coverage(one, values, streams[0].topic)
        for name, i, slot in one.columns:
            columns[name] = np.array(values[:, i])
            if slot is not None:
                slots[name], scales[name] = slot, log_columns.unit_scale(slot, topic)
    findings += _unused(gathered, chosen, given) + _stray(gathered)
    digest = hashlib.sha256(b"".join(np.ascontiguousarray(x).tobytes() for x in columns.values())).hexdigest()[:16]
    used = listed(list(dict.fromkeys(stream.topic for stream in streams)))
    source = f"{path.name} ({used}; sha256 of what was read {digest})"
    return Table(columns, {}, tuple(findings), slots, scales, source=source)


def _quaternion_columns(one: _Chosen) -> list[Any]:
    """The columns of a stream's quaternion, if it has one."""
    labels = list(one.stream.labels)
    names = ["qx", "qy", "qz", "qw"]
    return [np.array([labels.index(name) for name in names])] if set(names) <= set(labels) else []


def _clock_findings(one: _Chosen, clock: Clock, base: str) -> list[Finding]:
    """Findings about the times of a stream."""
    found, topic = [], one.stream.topic
    if clock.offset:
        seen = f"its stamps are of another clock, with an offset of {-clock.offset:+.6g} s from {base}"
        done = "aligned by the times of recording; [delays] of a map can estimate the remaining delay"
        found.append(Finding("other clock", _where(one), 0, seen, done))
    if clock.without:
        found.append(Finding("invalid time", topic, clock.without, "messages without a stamp", "left out"))
    return found


def _where(one: _Chosen) -> str:
    """The channels of a stream."""
    channels = dict.fromkeys(
        f"imu {slot.owner}" if slot.channel in ("accelerometer", "gyroscope") else slot.channel
        for _, _, slot in one.columns if slot is not None
    )  # fmt: skip
    return f"{one.stream.topic} ({', '.join(channels)})"


def _coverage(one: _Chosen, values: Float[np.ndarray, "n k"], base: str) -> list[Finding]:
    """A finding for a stream without data at a large fraction of the times."""
    lost = np.all(np.isnan(values), axis=1)
    if not lost.any():
        return []
    seen = f"{100 * lost.mean():.2g} % of the times of {base} are outside its range or in its gaps"
    return [Finding("missing values", one.stream.topic, int(lost.sum()), seen, "taken as missing")]


def _unused(gathered: _Gathered, chosen: list[_Chosen], given: dict[str, Topic]) -> list[Finding]:
    """The readable topics that are not used."""
    used, found = {one.stream.topic for one in chosen}, []
    for name, channel in gathered.channels.items():
        topic = given.get(name)
        if name in used or channel.type not in MESSAGE_TYPES or (topic is not None and topic.ignored):
            continue
        count = sum(len(stream) for stream in gathered.streams if stream.topic == name)
        kind = channel.type.rpartition("/")[2]
        if "Pose" in kind or kind in ("Odometry", "JointControllerState"):
            seen, key = f"{kind} does not specify a joint", f'"{name}" = {{ joint = "..." }}'
        elif kind == "Imu":
            frame = gathered.frames.get(name, "")
            seen, key = f"the model has no frame {frame!r}", f'"{name}" = {{ frame = "..." }}'
        else:
            seen = "another topic provides its values, or none of its names is a joint name"
            key = f'"{name}" = {{ names = {{ ... }} }}'
        if not count:
            seen = "it has no readable message"
        found.append(Finding("unused topic", name, count, seen, f"not read; specify it in [topics] of a map: {key}"))
    return found


def _stray(gathered: _Gathered) -> list[Finding]:
    """Streams with too few messages, which indicate damaged names."""
    found = []
    for topic in dict.fromkeys(stream.topic for stream in gathered.streams):
        own = [stream for stream in gathered.streams if stream.topic == topic]
        few = sum(len(stream) for stream in own if len(stream) < _FEWEST)
        if few and any(len(stream) >= _FEWEST for stream in own):
            found.append(Finding("damaged file", topic, few, "messages with rare names", "left out"))
    return found


def _damage_findings(path: Path, gathered: _Gathered) -> list[Finding]:
    found = []
    for damage in gathered.damages:
        kind = "truncated file" if damage.truncated else "damaged file"
        what, _, done = damage.what.partition("; ")
        found.append(Finding(kind, path.name, 0, f"{damage.where}: {what}", done or "left out"))
    if gathered.more:
        seen = f"{counted(gathered.more, 'more damaged place')}"
        found.append(Finding("damaged file", path.name, 0, seen, "left out"))
    return found


def _nothing(gathered: _Gathered, model: Model, findings: list[Finding]) -> str:
    """The reason why a log has no positions, as a message."""
    damaged = f"; {findings[0].seen}; {findings[0].done}" if findings else ""
    if not gathered.channels:
        return f"expected an MCAP file or a ROS 2 bag with topics, got none that are readable{damaged}"
    joints = [name for name, part in model.v_slices.items() if part.stop > part.start]
    readable = {n: c for n, c in gathered.channels.items() if c.type in MESSAGE_TYPES}
    if not readable:
        kinds = listed([f"{name} ({channel.type})" for name, channel in gathered.channels.items()])
        return f"expected a topic of sensor_msgs/msg/JointState or another supported type, got {kinds}"
    names = list(dict.fromkeys(n for s in gathered.streams for n in log_columns.first_joints(s.labels)))
    if not names:
        return f"expected messages with positions on {listed(list(readable))}, got none{damaged}"
    return (
        f"expected positions of {listed(joints)}, got messages of {listed(names)}; a map can rename them:"
        f' [topics] "{next(iter(readable))}" = {{ names = {{ {names[0]} = "{joints[0]}" }} }}'
    )
