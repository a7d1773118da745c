"""Decoding of log messages to labeled numbers, for the supported message types.

Each supported type has a `MessageType`, which defines the labels, such as "elbow/position", of a message's numbers. The
bytes are decoded by the definition in the log, or else by that of ROS 2.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from lgsim.identify.logs.raw_messages import Channel, RawMessage
from lgsim.support.packages import package

_POINTS = {"positions": "position", "velocities": "velocity", "accelerations": "acceleration", "effort": "effort"}
_POINTS |= {"efforts": "effort"}
_POSE = ("px", "py", "pz", "qx", "qy", "qz", "qw")
_TWIST = ("vx", "vy", "vz", "wx", "wy", "wz")
_IMU = tuple(f"{name}/{axis}" for name in ("accelerometer", "gyroscope") for axis in "xyz")


class Numbers(NamedTuple):
    """The numbers of one message.

    Attributes:
        stamp: The time of its header, ns; None if it has none.
        key: Determines the labels of the numbers.
        frame: The frame of the motion, or that of the header.
    """

    stamp: int | None
    key: Hashable
    values: Float[np.ndarray, " n"]
    frame: str = ""


class MessageType(NamedTuple):
    """A supported message type.

    Attributes:
        numbers: Extracts the numbers of a decoded message; raises ValueError for an inconsistent one.
        labels: The labels of these numbers from their key: "joint/quantity" or "quantity".
        rank: Priority of the type for a quantity that several topics have; the lowest rank is used.
    """

    numbers: Callable[[Any], tuple[Hashable, Float[np.ndarray, " n"]]]
    labels: Callable[[Any], Sequence[str]]
    rank: int


def _joint_state(message: Any) -> tuple[Hashable, Float[np.ndarray, " n"]]:
    return _by_name(message.name, {field: getattr(message, field) for field in ("position", "velocity", "effort")})


def _by_name(names: Sequence[str], fields: dict[str, Any]) -> tuple[Hashable, Float[np.ndarray, " n"]]:
    """Numbers of several joints, one list for each quantity; lists may be empty."""
    given = {field: np.asarray(values, float) for field, values in fields.items() if len(values)}
    for field, values in given.items():
        if values.shape != (len(names),):
            raise ValueError(f"{len(names)} names, but {len(values)} values of {field}")
    if len(set(names)) < len(names):
        raise ValueError("a name occurs twice")
    parts = list(given.values())
    return (tuple(names), tuple(given)), np.concatenate(parts) if parts else np.zeros(0)


def _named_labels(key: tuple[tuple[str, ...], tuple[str, ...]]) -> list[str]:
    names, fields = key
    return [f"{name}/{field}" for field in fields for name in names]


def _dynamic_joint_state(message: Any) -> tuple[Hashable, Float[np.ndarray, " n"]]:
    names, values = list(message.joint_names), list(message.interface_values)
    if len(names) != len(values):
        raise ValueError(f"{len(names)} names, but interfaces of {len(values)}")
    for name, one in zip(names, values, strict=True):
        if len(one.interface_names) != len(one.values):
            raise ValueError(f"{name}: {len(one.interface_names)} interfaces, but {len(one.values)} values")
    labels = tuple(
        f"{name}/{interface}" for name, one in zip(names, values, strict=True) for interface in one.interface_names
    )
    if len(set(labels)) < len(labels):
        raise ValueError("a name occurs twice")
    return labels, np.array([x for one in values for x in one.values], float)


def _trajectory_state(message: Any) -> tuple[Hashable, Float[np.ndarray, " n"]]:
    """Values of a controller: measured as "joint/position", reference and output as "joint/reference/position"."""
    fields: dict[str, Any] = {}
    for part, prefix in (
        ("actual", ""), ("feedback", ""), ("desired", "reference/"), ("reference", "reference/"), ("output", "output/"),
    ):  # fmt: skip
        point = getattr(message, part, None)
        for field, name in _POINTS.items():
            values = getattr(point, field, ())
            if len(values):
                fields[prefix + name] = values
    return _by_name(message.joint_names, fields)


def _joint_controller(message: Any) -> tuple[Hashable, Float[np.ndarray, " n"]]:
    pairs = {"position": "process_value", "velocity": "process_value_dot", "reference/position": "set_point",
             "output/effort": "command"}  # fmt: skip
    return tuple(pairs), np.array([getattr(message, field) for field in pairs.values()], float)


def _single_dof(message: Any) -> tuple[Hashable, Float[np.ndarray, " n"]]:
    return _dofs([message.dof_state])


def _multi_dof(message: Any) -> tuple[Hashable, Float[np.ndarray, " n"]]:
    return _dofs(message.dof_states)


def _dofs(states: Iterable[Any]) -> tuple[Hashable, Float[np.ndarray, " n"]]:
    states = list(states)
    pairs = {"position": "feedback", "velocity": "feedback_dot", "reference/position": "reference", "output": "output"}
    return _by_name([s.name for s in states], {k: [getattr(s, v) for s in states] for k, v in pairs.items()})


def _imu(message: Any) -> tuple[Hashable, Float[np.ndarray, " n"]]:
    a, w = message.linear_acceleration, message.angular_velocity
    values = np.array([a.x, a.y, a.z, w.x, w.y, w.z], float)
    # the first element of a covariance is -1 if the sensor does not measure the quantity: sensor_msgs/Imu
    for at, covariance in ((0, message.linear_acceleration_covariance), (3, message.angular_velocity_covariance)):
        if len(covariance) and covariance[0] == -1:
            values[at : at + 3] = np.nan
    return _IMU, values


def _pose_stamped(message: Any) -> tuple[Hashable, Float[np.ndarray, " n"]]:
    return _POSE, _pose(message.pose)


def _pose_with_covariance(message: Any) -> tuple[Hashable, Float[np.ndarray, " n"]]:
    return _POSE, _pose(message.pose.pose)


def _odometry(message: Any) -> tuple[Hashable, Float[np.ndarray, " n"]]:
    v, w = message.twist.twist.linear, message.twist.twist.angular
    return _POSE + _TWIST, np.array([*_pose(message.pose.pose), v.x, v.y, v.z, w.x, w.y, w.z], float)


def _pose(pose: Any) -> Float[np.ndarray, " 7"]:
    p, q = pose.position, pose.orientation
    return np.array([p.x, p.y, p.z, q.x, q.y, q.z, q.w], float)


def _labels(key: Sequence[str]) -> Sequence[str]:
    return key


MESSAGE_TYPES = {
    "sensor_msgs/msg/JointState": MessageType(_joint_state, _named_labels, 0),
    "control_msgs/msg/DynamicJointState": MessageType(_dynamic_joint_state, _labels, 1),
    "control_msgs/msg/JointTrajectoryControllerState": MessageType(_trajectory_state, _named_labels, 2),
    "control_msgs/msg/MultiDOFStateStamped": MessageType(_multi_dof, _named_labels, 3),
    "control_msgs/msg/SingleDOFStateStamped": MessageType(_single_dof, _named_labels, 3),
    "control_msgs/msg/JointControllerState": MessageType(_joint_controller, _labels, 3),
    "sensor_msgs/msg/Imu": MessageType(_imu, _labels, 0),
    "geometry_msgs/msg/PoseStamped": MessageType(_pose_stamped, _labels, 1),
    "geometry_msgs/msg/PoseWithCovarianceStamped": MessageType(_pose_with_covariance, _labels, 1),
    "nav_msgs/msg/Odometry": MessageType(_odometry, _labels, 0),
}
"""The supported message types by name."""

_POINT = "trajectory_msgs/JointTrajectoryPoint"
_MULTI = "trajectory_msgs/MultiDOFJointTrajectoryPoint"
_PARTS = ("reference", "feedback", "error", "output", "desired", "actual")
_OLD_PARTS = ("desired", "actual", "error")
# definitions for bags that do not contain them, newest first: control_msgs is not part of ROS itself
_DEFINITIONS = {
    "control_msgs/msg/InterfaceValue": ("string[] interface_names\nfloat64[] values\n",),
    "control_msgs/msg/DynamicJointState": (
        "std_msgs/Header header\nstring[] joint_names\ncontrol_msgs/InterfaceValue[] interface_values\n",
    ),
    "control_msgs/msg/JointTrajectoryControllerState": tuple(
        "std_msgs/Header header\nstring[] joint_names\n" + "".join(f"{_POINT} {part}\n" for part in parts) + more
        for parts, more in (
            (_PARTS, "string[] multi_dof_joint_names\n" + "".join(f"{_MULTI} multi_dof_{part}\n" for part in _PARTS)),
            (_PARTS, ""),
            (_OLD_PARTS, ""),
        )
    ),
    "control_msgs/msg/JointControllerState": (
        "std_msgs/Header header\nfloat64 set_point\nfloat64 process_value\nfloat64 process_value_dot\nfloat64 error\n"
        "float64 time_step\nfloat64 command\nfloat64 p\nfloat64 i\nfloat64 d\nfloat64 i_clamp\nbool antiwindup\n",
    ),
}  # fmt: skip


class Decoder:
    """Decoder of the messages of the channels of one log."""

    def __init__(self) -> None:
        self._typesys = package("rosbags.typesys", "logs")
        self._stores: dict[Channel, list[Any]] = {}

    def numbers(self, raw: RawMessage) -> Numbers:
        """Decode a message of one of ``MESSAGE_TYPES``.

        Raises:
            ValueError: the bytes are not such a message, or the message is inconsistent; the text gives the reason.
        """
        channel = raw.channel
        if channel.encoding not in ("cdr", "ros1"):
            raise ValueError(f"messages in {channel.encoding!r} are not supported, only cdr")
        if channel not in self._stores:
            self._stores[channel] = self._make_stores(channel)
        fault: Exception | None = None
        for place, store in enumerate(self._stores[channel]):
            try:
                message = _decoded(store, raw)
                header = getattr(message, "header", None)
                stamp = None if header is None else header.stamp.sec * 10**9 + header.stamp.nanosec
                key, values = MESSAGE_TYPES[channel.type].numbers(message)
            except ValueError as error:
                fault = fault or error
                continue
            except Exception as error:  # any exception that rosbags raises for damaged bytes
                fault = fault or error
                continue
            if place:  # the first matching definition probably fits the next message too
                self._stores[channel].insert(0, self._stores[channel].pop(place))
            frame = getattr(message, "child_frame_id", None) or getattr(header, "frame_id", "")
            return Numbers(stamp, key, values, str(frame))
        text = " ".join(str(fault).split())[:100]
        raise ValueError(text or type(fault).__name__)

    def _make_stores(self, channel: Channel) -> list[Any]:
        """The type collections that can decode the messages of a channel.

        Raises:
            ValueError: the definition in the log is damaged.
        """
        make, stores = self._typesys.get_typestore, self._typesys.Stores
        if channel.definition:
            store = make(stores.EMPTY)
            try:
                store.register(self._parsed(channel))
            except Exception as error:  # any exception that the parser raises for damaged text
                raise ValueError(f"the definition of {channel.type} is damaged") from error
            return [store]
        if channel.encoding == "ros1":
            return [make(stores.ROS1_NOETIC)]
        found = []
        for definition in _DEFINITIONS.get(channel.type, ("",)):
            store = make(stores.LATEST)
            for name, texts in _DEFINITIONS.items():
                text = definition if name == channel.type else texts[0]
                store.register(self._typesys.get_types_from_msg(text, name))
            found.append(store)
        return found

    def _parsed(self, channel: Channel) -> Any:
        """The types of a definition in a log."""
        if channel.schema in ("ros2idl", "omgidl"):
            separator, types = "=" * 80 + "\n", {}
            parts = channel.definition.split(separator) if separator in channel.definition else [channel.definition]
            for part in filter(str.strip, parts):
                text = part.split("\n", 1)[1] if part.startswith("IDL: ") else part
                # included definitions are in another part
                types |= self._typesys.get_types_from_idl(re.sub(r"(?m)^\s*#.*$", "", text))
            return types
        return self._typesys.get_types_from_msg(channel.definition, channel.type)


def _decoded(store: Any, raw: RawMessage) -> Any:
    if raw.channel.encoding == "ros1":
        return store.deserialize_ros1(raw.data, raw.channel.type)
    return store.deserialize_cdr(raw.data, raw.channel.type)
