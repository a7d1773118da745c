"""Raw content of a log: stored messages and damaged places."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class Channel(NamedTuple):
    """The channel of a topic.

    Attributes:
        type: The type of the messages, such as "sensor_msgs/msg/JointState".
        encoding: Their serialization: "cdr", "ros1", ...
        schema: The language of the definition: "ros2msg", "ros2idl", "ros1msg", or "" for none.
        definition: The definition of the type, "" for none.
    """

    topic: str
    type: str
    encoding: str
    schema: str
    definition: str


class RawMessage(NamedTuple):
    """A stored message.

    Attributes:
        channel: The channel of the message.
        log_time: The time of recording, ns.
        where: Its position in the file.
    """

    channel: Channel
    log_time: int
    data: bytes
    where: str


class Damage(NamedTuple):
    """A damaged part of a log.

    Attributes:
        where: The position in the file.
        what: The fault and the action taken.
        truncated: True if the file ends too early.
    """

    where: str
    what: str
    truncated: bool = False


Wanted = Callable[[Channel], bool]
"""Decides if the messages of a channel are read."""


def type_name(name: str) -> str:
    """Normalize a type name to ROS 2: "sensor_msgs/JointState" and "sensor_msgs::msg::JointState" are equal."""
    parts = [part for part in name.replace("::", "/").split("/") if part]
    return "/".join([parts[0], "msg", parts[-1]]) if len(parts) > 1 else name
