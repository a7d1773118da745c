"""What a log consists of: messages as they were stored, and the places where it is damaged."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class Channel(NamedTuple):
    """Messages of one topic.

    Attributes:
        type: The type of its messages, such as "sensor_msgs/msg/JointState".
        encoding: How they are stored: "cdr", "ros1", ...
        schema: The language of the definition: "ros2msg", "ros2idl", "ros1msg", or "" for none.
        definition: The definition of the type, "" for none.
    """

    topic: str
    type: str
    encoding: str
    schema: str
    definition: str


class RawMessage(NamedTuple):
    """A message as it was stored.

    Attributes:
        channel: What it is a message of.
        log_time: The time at which it was recorded, ns.
        where: Its place in the file.
    """

    channel: Channel
    log_time: int
    data: bytes
    where: str


class Damage(NamedTuple):
    """A part of a log that could not be read as it was written.

    Attributes:
        where: The place in the file.
        what: What is wrong there, and what was done about it.
        truncated: Whether the file ends too early.
    """

    where: str
    what: str
    truncated: bool = False


Wanted = Callable[[Channel], bool]
"""Whether the messages of a channel are to be read."""


def type_name(name: str) -> str:
    """A type's name in the form of ROS 2: "sensor_msgs/JointState" and "sensor_msgs::msg::JointState" are the same."""
    parts = [part for part in name.replace("::", "/").split("/") if part]
    return "/".join([parts[0], "msg", parts[-1]]) if len(parts) > 1 else name
