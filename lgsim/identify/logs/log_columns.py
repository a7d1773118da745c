"""Assignment of log messages to columns of a recording, by the names of joints and frames and by a map of topics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from lgsim.identify.logs.raw_messages import Channel
from lgsim.identify.recording.columns import Slot, Unit, parse_name, parse_unit, units_of
from lgsim.identify.recording.coordinates import has_quaternion
from lgsim.multibody.model import Model
from lgsim.support.messages import unknown_name
from lgsim.support.toml_table import shown

_TOPIC_KEYS = ("joint", "frame", "names", "unit", "effort", "clock", "delay")
"""The keys of a topic's table in a map."""

_QUANTITIES = {"position": "q", "velocity": "v", "acceleration": "a", "effort": "tau", "current": "current"}
_SENSORS = ("accelerometer", "gyroscope")
_POSE = ("px", "py", "pz", "qw", "qx", "qy", "qz")
_TWIST = ("vx", "vy", "vz", "wx", "wy", "wz")
_LONGEST_DELAY = 1e9  # s
_RATES = {"q": "", "v": "/s", "a": "/s^2"}


class TopicFault(ValueError):
    """A topic's entry in a map is invalid.

    Attributes:
        key: The invalid key of its table; "" for the whole table.
        reason: The fault.
    """

    def __init__(self, topic: str, key: str, reason: str) -> None:
        super().__init__(f"topic {topic!r}: {f'{key}: ' if key else ''}{reason}")
        self.topic, self.key, self.reason = topic, key, reason


class Topic(NamedTuple):
    """The options of a topic in a map.

    Attributes:
        named: True if the map names the topic.
        ignored: True to skip the topic.
        joint: The joint of pose or state messages without a joint name; "" for none.
        frame: The frame of an IMU; "" for the frame in the messages.
        names: Joint names by the names in the messages.
        unit: Unit of positions; velocities and accelerations are per second and per second squared. None for SI.
        effort: Quantity of efforts: "tau" or "current".
        by_log: True to use the times of recording instead of those in the messages.
        delay: Delay of the messages, s.
    """

    name: str
    named: bool = False
    ignored: bool = False
    joint: str = ""
    frame: str = ""
    names: Mapping[str, str] = {}
    unit: str | None = None
    effort: str = "tau"
    by_log: bool = False
    delay: float = 0.0


def read_topics(given: Mapping[str, Any], model: Model) -> dict[str, Topic]:
    """Parse the topics of a map.

    Args:
        given: A table, or "ignore", by topic.

    Raises:
        TopicFault: a table is invalid.
    """
    return {name: _topic(name, table, model) for name, table in given.items()}


def _topic(name: str, table: Any, model: Model) -> Topic:
    if table == "ignore":
        return Topic(name, named=True, ignored=True)
    if not isinstance(table, Mapping):
        raise TopicFault(name, "", f'expected a table such as {{ joint = "..." }} or "ignore", got {table!r}')
    for key in table:
        if key not in _TOPIC_KEYS:
            raise TopicFault(name, key, unknown_name("expected a valid key", key, _TOPIC_KEYS))
    names, joints = table.get("names", {}), [name for name, part in model.v_slices.items() if part.stop > part.start]
    for key, kind in (("joint", str), ("frame", str), ("names", Mapping), ("unit", str), ("effort", str)):
        if not isinstance(table.get(key, kind() if kind is str else {}), kind):
            raise TopicFault(name, key, f"expected {'a table' if kind is Mapping else 'a string'}, got {table[key]!r}")
    delay = table.get("delay", 0.0)
    if isinstance(delay, bool) or not isinstance(delay, int | float) or not abs(delay) <= _LONGEST_DELAY:
        raise TopicFault(name, "delay", f"expected a time in s, got {shown(delay)}")
    for key, joint in [("joint", table.get("joint", joints[0])), *(("names", joint) for joint in names.values())]:
        if joint not in joints:
            raise TopicFault(name, key, unknown_name("expected the name of a joint", str(joint), joints))
    frame = table.get("frame", "")
    if frame and frame not in model.frame_names:
        raise TopicFault(name, "frame", unknown_name("expected the name of a frame", frame, model.frame_names))
    for key, choices, default in (("effort", ("tau", "current"), "tau"), ("clock", ("stamp", "log"), "stamp")):
        if table.get(key, default) not in choices:
            raise TopicFault(name, key, f"expected one of {', '.join(choices)}, got {table[key]!r}")
    unit = table.get("unit")
    if unit is not None and (parse_unit(unit) is None or parse_unit(unit).dimension not in ("angle", "length")):  # pyright: ignore[reportOptionalMemberAccess]
        raise TopicFault(name, "unit", f"expected a unit of positions, {units_of('angle')} or {units_of('length')},"
                         f" got {unit!r}")  # fmt: skip
    by_log = table.get("clock") == "log"
    return Topic(name, True, False, table.get("joint", ""), frame, dict(names), unit, table.get("effort", "tau"),
                 by_log, float(delay))  # fmt: skip


def slot_of(label: str, frame: str, channel: Channel, topic: Topic, model: Model) -> Slot | None:
    """The slot in a recording of a component of a message; None if it has none.

    Args:
        label: Label of the component: "elbow/position", "qw", "gyroscope/x".
        frame: The frame in the message.
        channel: The channel of the message.
        topic: The topic's options.
    """
    owner, _, field = label.rpartition("/")
    if owner in _SENSORS:
        frame = topic.frame or frame
        return Slot(owner, frame, "xyz".index(field)) if frame in model.frame_names else None
    if not owner and field in (*_POSE, *_TWIST):
        return _pose_slot(field, topic, frame, model)
    quantity = _QUANTITIES.get(field)
    if quantity is None:
        return None
    joint = topic.names.get(owner, owner) if owner else topic.joint
    part = model.v_slices.get(joint)
    quantity = topic.effort if quantity == "tau" else quantity
    if part is not None and part.stop - part.start == 1:
        return Slot(quantity, joint, 0)
    found = parse_name(f"{joint} {field}", model)
    return found[0] if len(found) == 1 else None


def _pose_slot(field: str, topic: Topic, frame: str, model: Model) -> Slot | None:
    """The slot of a component of a pose or twist: by the map, or of a free body named in the message."""
    names = {model.topology.body_names[i]: name for i, name in enumerate(model.joint_names)
             if (model.topology.joints[i].nq, model.topology.joints[i].nv) == (7, 6)}  # fmt: skip
    topic = topic if topic.joint else topic._replace(joint=names.get(frame, ""))
    if topic.joint not in model.v_slices:
        return None
    joint = model.topology.joints[model.topology.joint_names.index(topic.joint)]
    if not has_quaternion(joint):
        raise TopicFault(topic.name, "joint", f"expected a free or ball joint for pose messages, got {topic.joint!r}")
    if joint.nv == 3:
        turn = {"q": _POSE[3:], "v": _TWIST[3:]}
        return next((Slot(c, topic.joint, names.index(field)) for c, names in turn.items() if field in names), None)
    return Slot("q", topic.joint, _POSE.index(field)) if field in _POSE else Slot(
        "v", topic.joint, _TWIST.index(field)
    )  # fmt: skip


def unit_scale(slot: Slot, topic: Topic) -> float:
    """Factor to SI of the unit of a topic's positions."""
    if topic.unit is None or slot.channel not in _RATES:
        return 1.0
    unit: Unit | None = parse_unit(topic.unit + _RATES[slot.channel])
    return 1.0 if unit is None else unit.factor


def first_joints(labels: Sequence[str]) -> list[str]:
    """The joint names in labels, without duplicates."""
    return list(dict.fromkeys(label.rpartition("/")[0].split("/")[0] for label in labels if "/" in label))
