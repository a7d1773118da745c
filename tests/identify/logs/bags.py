"""Bags of an arm's motion as other programs write them: mcap-ros2-support, the writer of mcap, and rosbags."""

import io
import struct

import numpy as np
from rosbags.rosbag1 import Writer as Ros1Writer
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

START = 1_700_000_000 * 10**9
"""The first stamp, ns."""

_RULE = "=" * 80 + "\n"
HEADER = (
    f"{_RULE}MSG: std_msgs/Header\nbuiltin_interfaces/Time stamp\nstring frame_id\n"
    f"{_RULE}MSG: builtin_interfaces/Time\nint32 sec\nuint32 nanosec\n"
)
VECTOR = f"{_RULE}MSG: geometry_msgs/Vector3\nfloat64 x\nfloat64 y\nfloat64 z\n"
QUATERNION = f"{_RULE}MSG: geometry_msgs/Quaternion\nfloat64 x\nfloat64 y\nfloat64 z\nfloat64 w\n"
DEFINITIONS = {
    "sensor_msgs/msg/JointState": "std_msgs/Header header\nstring[] name\nfloat64[] position\nfloat64[] velocity\n"
    f"float64[] effort\n{HEADER}",
    "sensor_msgs/msg/Imu": "std_msgs/Header header\ngeometry_msgs/Quaternion orientation\n"
    "float64[9] orientation_covariance\ngeometry_msgs/Vector3 angular_velocity\n"
    "float64[9] angular_velocity_covariance\n"
    "geometry_msgs/Vector3 linear_acceleration\nfloat64[9] linear_acceleration_covariance\n"
    + HEADER + VECTOR + QUATERNION,
    "geometry_msgs/msg/PoseStamped": f"std_msgs/Header header\ngeometry_msgs/Pose pose\n{HEADER}"
    f"{_RULE}MSG: geometry_msgs/Pose\ngeometry_msgs/Point position\ngeometry_msgs/Quaternion orientation\n{QUATERNION}"
    f"{_RULE}MSG: geometry_msgs/Point\nfloat64 x\nfloat64 y\nfloat64 z\n",
    "control_msgs/msg/DynamicJointState": "std_msgs/Header header\nstring[] joint_names\n"
    f"control_msgs/InterfaceValue[] interface_values\n{HEADER}"
    f"{_RULE}MSG: control_msgs/InterfaceValue\nstring[] interface_names\nfloat64[] values\n",
    "std_msgs/msg/String": "string data\n",
}  # fmt: skip
CONTROLLER = (
    "std_msgs/Header header\nstring[] joint_names\ntrajectory_msgs/JointTrajectoryPoint desired\n"
    "trajectory_msgs/JointTrajectoryPoint actual\ntrajectory_msgs/JointTrajectoryPoint error\n"
)


def stamp(ns):
    return {"sec": int(ns) // 10**9, "nanosec": int(ns) % 10**9}


def header(ns, frame=""):
    return {"stamp": stamp(ns), "frame_id": frame}


def joint_states(
    motion, names=None, columns=slice(None), fields=("position", "velocity", "effort"), clock=0, late=10**6
):
    """(time of recording, message) of each sample of a recording, by a clock that is off by some ns."""
    names = list(motion.model.joint_names[columns] if names is None else names)
    arrays = {"position": motion.q, "velocity": motion.v, "effort": motion.tau}
    found = []
    for i, t in enumerate(motion.time):
        ns = START + round(t * 1e9)
        message = {"header": header(ns + clock), "name": names}
        message |= {f: arrays[f][i][columns].tolist() if f in fields else [] for f in arrays}
        found.append((ns + late, message))
    return found


def write_mcap(topics, **settings):
    """The bytes of an MCAP file by mcap-ros2-support: by topic (type, [(time of recording, message)])."""
    from mcap_ros2.writer import Writer as McapWriter

    file = io.BytesIO()
    writer = McapWriter(file, **settings)
    schemas = {}
    rows = []
    for topic, (kind, messages) in topics.items():
        if kind not in schemas:
            schemas[kind] = writer.register_msgdef(kind, DEFINITIONS[kind])
        rows += [(time, topic, kind, message) for time, message in messages]
    for time, topic, kind, message in sorted(rows, key=lambda row: row[0]):
        writer.write_message(topic, schemas[kind], message, log_time=time)
    writer.finish()
    return file.getvalue()


def typestore():
    store = get_typestore(Stores.ROS2_HUMBLE)
    store.register(get_types_from_msg(CONTROLLER, "control_msgs/msg/JointTrajectoryControllerState"))
    return store


def write_rosbag(path, topics, plugin=StoragePlugin.SQLITE3, version=9, compression=None):
    """The folder of a bag by rosbags: by topic (type, [(time of recording, message)])."""
    store = typestore()
    writer = Writer(path, version=version, storage_plugin=plugin)
    if compression is not None:
        writer.set_compression(*compression)
    with writer:
        for topic, (kind, messages) in topics.items():
            connection = writer.add_connection(topic, kind, typestore=store)
            for time, message in messages:
                writer.write(connection, time, store.serialize_cdr(build(store, kind, message), kind))
    return path


def build(store, kind, message):
    """A message of rosbags from one in dicts and lists."""
    definition = dict(store.fielddefs[kind][1])
    fields = {}
    for name, (category, detail) in definition.items():
        value = message[name]
        if int(category) == 2:
            value = build(store, detail, value)
        elif int(category) in (3, 4):
            inner, item = detail[0]
            if int(inner) == 2:
                value = [build(store, item, one) for one in value]
            elif item[0] != "string":
                value = np.array(value, item[0])
        fields[name] = value
    return store.types[kind](**fields)


def write_ros1(path, motion, compression=None):
    """A ROS 1 bag of joint states, by rosbags."""
    store = get_typestore(Stores.ROS1_NOETIC)
    kind, header = (store.types[f"{name}"] for name in ("sensor_msgs/msg/JointState", "std_msgs/msg/Header"))
    stamp = store.types["builtin_interfaces/msg/Time"]
    writer = Ros1Writer(path)
    if compression is not None:
        writer.set_compression(compression)
    with writer:
        connection = writer.add_connection("/joint_states", kind.__msgtype__, typestore=store)
        for i, time in enumerate(motion.time):
            stamped = START + round(1e9 * time)
            head = header(i, stamp(stamped // 10**9, stamped % 10**9), "")
            message = kind(head, list(motion.model.joint_names), motion.q[i], motion.v[i], motion.tau[i])
            writer.write(connection, stamped, store.serialize_ros1(message, kind.__msgtype__))
    return path


def write_ulog(path, topics):
    """A PX4 log by the definition of its format: header, flags, formats, subscriptions, and data in order of time."""

    def message(kind, body):
        return struct.pack("<HB", len(body), ord(kind)) + body

    parts = [b"ULog\x01\x12\x35\x01" + struct.pack("<Q", 0), message("B", bytes(40))]
    rows = []
    for number, (name, (stamps, fields)) in enumerate(topics.items()):
        plain, _, instance = name.partition(".")
        kinds = "".join(f"float[{x.shape[1]}] {k};" if x.ndim == 2 else f"float {k};" for k, x in fields.items())
        if not instance:
            parts.append(message("F", f"{plain}:uint64_t timestamp;{kinds}".encode()))
        rows.append((0, 0, message("A", struct.pack("<BH", int(instance or 0), number) + plain.encode())))
        for i, stamp in enumerate(stamps):
            values = np.concatenate([np.atleast_1d(x[i]) for x in fields.values()]).astype("<f4").tobytes()
            rows.append((1, int(stamp), message("D", struct.pack("<HQ", number, int(stamp)) + values)))
    path.write_bytes(b"".join(parts) + b"".join(row for _, _, row in sorted(rows, key=lambda row: row[:2])))
    return path
