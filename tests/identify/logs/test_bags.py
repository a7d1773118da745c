"""Recordings from MCAP files and ROS 2 bags that other packages wrote: numbers, clocks, topics, maps."""

import json

import numpy as np
import pytest

pytest.importorskip("rosbags")
pytest.importorskip("mcap_ros2")

from mcap.writer import CompressionType
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin
from scipy.spatial.transform import Rotation

import lgsim
from lgsim.identify import RecordingMapError, read_recording
from tests.identify.logs import bags
from tests.identify.recording.motions import arm, changed, clean

JOINT_STATE = "sensor_msgs/msg/JointState"
IMU, POSE = "sensor_msgs/msg/Imu", "geometry_msgs/msg/PoseStamped"


@pytest.fixture(scope="module")
def motion():
    return clean()[:200]


@pytest.fixture
def mcap(tmp_path):
    def write(topics, name="run.mcap", **settings):
        path = tmp_path / name
        path.write_bytes(bags.write_mcap(topics, **settings))
        return path

    return write


def same(read, motion, channels=("q", "v", "tau")):
    assert len(read) == len(motion)
    np.testing.assert_allclose(read.time, motion.time - motion.time[0], rtol=0, atol=1e-12)
    for name in channels:
        np.testing.assert_array_equal(getattr(read, name), getattr(motion, name))


@pytest.mark.parametrize("compression", [CompressionType.NONE, CompressionType.LZ4, CompressionType.ZSTD])
@pytest.mark.parametrize("chunk", [4096, 2**20])
def test_mcap_of_the_package(motion, mcap, compression, chunk):
    """Every bit of the numbers comes back, whatever the compression."""
    topics = {
        "/joint_states": (JOINT_STATE, bags.joint_states(motion)),
        "/rosout": ("std_msgs/msg/String", [(bags.START, {"data": "hello"})]),
    }
    read = read_recording(mcap(topics, compression=compression, chunk_size=chunk), arm(), checked=False)
    same(read, motion)
    assert len(read.report) == 0, str(read.report)
    assert read.source.startswith("run.mcap (/joint_states; sha256 of what was read ")


@pytest.mark.parametrize(
    ("plugin", "compression"),
    [
        (StoragePlugin.SQLITE3, None),
        (StoragePlugin.MCAP, None),
        (StoragePlugin.SQLITE3, (CompressionMode.MESSAGE, CompressionFormat.ZSTD)),
        (StoragePlugin.MCAP, (CompressionMode.STORAGE, CompressionFormat.ZSTD)),
    ],
)
def test_bags_of_rosbags(motion, tmp_path, plugin, compression):
    """A folder, and its file alone, for metadata.yaml is not needed."""
    folder = bags.write_rosbag(
        tmp_path / "bag", {"/joint_states": (JOINT_STATE, bags.joint_states(motion))}, plugin, compression=compression
    )
    same(read_recording(folder, arm(), checked=False), motion)
    (folder / "metadata.yaml").unlink()
    (file,) = folder.iterdir()
    read = read_recording(file, arm(), checked=False)
    same(read, motion)
    assert len(read.report) == 0


def test_bag_without_definitions(motion, tmp_path):
    """Bags before Iron bring none, and control_msgs is in no distribution's own types."""
    messages = []
    for time, message in bags.joint_states(motion):
        point = {"positions": message["position"], "velocities": message["velocity"], "accelerations": [],
                 "effort": message["effort"], "time_from_start": {"sec": 0, "nanosec": 0}}  # fmt: skip
        none = {"positions": [], "velocities": [], "accelerations": [], "effort": [],
                "time_from_start": {"sec": 0, "nanosec": 0}}  # fmt: skip
        wanted = {**none, "positions": [x + 0.5 for x in message["position"]]}
        messages.append((time, {"header": message["header"], "joint_names": message["name"], "desired": wanted,
                                "actual": point, "error": none}))  # fmt: skip
    kind = "control_msgs/msg/JointTrajectoryControllerState"
    folder = bags.write_rosbag(tmp_path / "bag", {"/arm_controller/state": (kind, messages)}, version=8)
    import sqlite3

    (file,) = folder.glob("*.db3")
    base = sqlite3.connect(file)
    base.execute("DROP TABLE IF EXISTS message_definitions")
    base.commit()
    base.close()
    same(read_recording(file, arm(), checked=False), motion)
    wanted = {f"/arm_controller/state/joint{i}/reference/position": f"q joint{i}" for i in range(1, 8)}
    wanted |= {f"/arm_controller/state/joint{i}/position": "ignore" for i in range(1, 8)}
    targets = read_recording(file, arm(), wanted, checked=False)
    np.testing.assert_array_equal(targets.q, motion.q + 0.5)


def test_dynamic_joint_states_and_the_rank_of_topics(motion, mcap):
    """JointState wins over what repeats it; without it the controller's manager gives the same numbers."""
    messages = []
    for time, message in bags.joint_states(motion):
        fields = ("position", "velocity", "effort")
        values = [
            {"interface_names": list(fields), "values": [message[field][i] for field in fields]} for i in range(7)
        ]
        found = {"header": message["header"], "joint_names": message["name"], "interface_values": values}
        messages.append((time, found))
    dynamic = {"/dynamic_joint_states": ("control_msgs/msg/DynamicJointState", messages)}
    same(read_recording(mcap(dynamic), arm(), checked=False), motion)
    both = read_recording(
        mcap(dynamic | {"/joint_states": (JOINT_STATE, bags.joint_states(motion))}), arm(), checked=False
    )
    same(both, motion)
    (finding,) = both.report
    assert (finding.kind, finding.where) == ("unused topic", "/dynamic_joint_states")


def test_several_senders_on_one_topic(motion, mcap):
    """Two drivers publish joints of their own, in another order, at other times: one clock for all."""
    early = bags.joint_states(motion, columns=slice(0, 5))
    late = motion.time + 0.4e-3
    other = changed(motion, time=late, q=motion.q + (late - motion.time)[:, None] * motion.v)
    rest = bags.joint_states(other, columns=slice(5, 7))
    for k, (_, message) in enumerate(rest):
        if k % 2:  # the order of names may change from one message to the next
            for field in ("name", "position", "velocity", "effort"):
                message[field] = message[field][::-1]
    read = read_recording(mcap({"/joint_states": (JOINT_STATE, early + rest)}), arm(), checked=False)
    np.testing.assert_array_equal(read.q[:, :5], motion.q[:, :5])
    # on straight lines between samples 2 ms apart, of curves with accelerations of some 10 rad/s^2
    assert np.max(np.abs(read.q[1:-1, 5:] - motion.q[1:-1, 5:])) < 1e-5
    assert np.isnan(read.q[0, 5:]).all() and [f.kind for f in read.report] == ["missing values"]


def test_units_names_and_currents_by_the_map(motion, mcap):
    """A driver with names of its own, degrees, and currents as efforts."""
    names = [f"axis_{i}" for i in range(1, 8)]
    degrees = changed(motion, q=np.rad2deg(motion.q), v=np.rad2deg(motion.v))
    path = mcap({"/robot/state": (JOINT_STATE, bags.joint_states(degrees, names=names))})
    with pytest.raises(ValueError, match=r"expected positions of joint1.*got messages of axis_1.*names = \{ axis_1 = "):
        read_recording(path, arm())
    topic = {"names": dict(zip(names, arm().joint_names, strict=True)), "unit": "deg", "effort": "current"}
    read = read_recording(path, arm(), {"topics": {"/robot/state": topic}}, checked=False)
    np.testing.assert_allclose(read.q, motion.q, rtol=0, atol=1e-14)
    np.testing.assert_allclose(read.v, motion.v, rtol=0, atol=1e-13)
    assert read.tau is None
    np.testing.assert_array_equal(read.current, motion.tau)
    # single columns are mapped as those of tables are
    by_column = {f"/robot/state/{name}/position": f"q {joint} [deg]" for name, joint in topic["names"].items()}
    read = read_recording(path, arm(), by_column, checked=False)
    np.testing.assert_allclose(read.q, motion.q, rtol=0, atol=1e-14)


def flying():
    """A body with an IMU whose frame is turned, and its motion in closed form."""
    build = lgsim.ModelBuilder().add_body(
        "trunk", "world", lgsim.joints.Free(), joint_name="root_joint", mass=1.0, inertia=np.eye(3)
    )
    return build.build().add_frame("imu_link", "trunk")


def imu_and_pose(time, imu_clock=0, pose_clock=0):
    R = Rotation.from_rotvec(np.outer(np.sin(2 * time), [0.0, 0.6, 0.8]))
    w = np.outer(2 * np.cos(2 * time), [0.0, 0.6, 0.8])
    p = np.stack([np.sin(time), time**2, np.cos(time)], axis=1)
    poses, imus = [], []
    for i, t in enumerate(time):
        ns = bags.START + round(t * 1e9)
        quat = dict(zip("xyzw", R[i].as_quat().tolist(), strict=True))
        sign = -1 if i % 3 else 1  # q and -q are one rotation, and trackers switch
        quat = {axis: sign * x for axis, x in quat.items()}
        pose = {"position": dict(zip("xyz", p[i].tolist(), strict=True)), "orientation": quat}
        poses.append((ns + 10**6, {"header": bags.header(ns + pose_clock, "map"), "pose": pose}))
        vectors = [dict(zip("xyz", x, strict=True)) for x in (w[i].tolist(), [0.1, 0.2, 9.8])]
        imus.append((ns + 10**6, {
            "header": bags.header(ns + imu_clock, "imu_link"), "orientation": quat, "orientation_covariance": [0.0] * 9,
            "angular_velocity": vectors[0], "angular_velocity_covariance": [0.0] * 9,
            "linear_acceleration": vectors[1], "linear_acceleration_covariance": [-1.0] + [0.0] * 8}))  # fmt: skip
    return poses, imus, p, R, w


@pytest.mark.parametrize("apart", [0, 12_345 * 10**9])
def test_pose_and_imu_on_clocks_of_their_own(mcap, apart):
    """A tracker at 50 Hz and an IMU at 200 Hz, whose computer was not set; the IMU measures no acceleration."""
    model, time = flying(), 0.02 * np.arange(100)
    fast = 0.005 * np.arange(420)
    poses, _, p, R, _ = imu_and_pose(time)
    _, imus, _, _, _ = imu_and_pose(fast, imu_clock=apart)
    path = mcap({"/mocap/trunk": (POSE, poses), "/imu/data": (IMU, imus)})
    with pytest.raises(ValueError, match="expected"):
        read_recording(path, model)
    topics = {"topics": {"/mocap/trunk": {"joint": "root_joint"}}}
    read = read_recording(path, model, topics, checked=False)
    np.testing.assert_allclose(read.time, time, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(read.q[:, :3], p)
    signs = np.sign(np.sum(read.q[:, 3:] * np.roll(R.as_quat(), 1, axis=1), axis=1))
    np.testing.assert_array_equal(signs[:, None] * read.q[:, 3:], np.roll(R.as_quat(), 1, axis=1))
    expected = np.outer(2 * np.cos(2 * time), [0.0, 0.6, 0.8])
    np.testing.assert_allclose(read.imu["imu_link"][:, 3:], expected, rtol=0, atol=2e-5)
    assert np.isnan(read.imu["imu_link"][:, :3]).all()
    kinds = [finding.kind for finding in read.report]
    assert kinds == (["other clock"] if apart else [])
    if apart:
        assert "/imu/data (imu imu_link)" == read.report.findings[0].where
        assert "with an offset of +12345 s from /mocap/trunk" in read.report.findings[0].seen
        by_log = {"/mocap/trunk": {"joint": "root_joint", "clock": "log"}, "/imu/data": {"clock": "log", "delay": 0.1}}
        moved = read_recording(path, model, {"topics": by_log}, checked=False)
        late = np.outer(2 * np.cos(2 * (time + 0.1)), [0.0, 0.6, 0.8])
        inside = time + 0.1 < fast[-1]
        np.testing.assert_allclose(moved.imu["imu_link"][inside, 3:], late[inside], rtol=0, atol=2e-5)


def test_pose_between_two_messages_is_a_rotation(mcap):
    """A tracker that is slower than the IMU: where both have positions, quaternions keep their norm and sign."""
    from lgsim.identify.logs.streams import resample

    time, fine = 0.02 * np.arange(50), 0.005 * np.arange(190)
    _, _, _, R, _ = imu_and_pose(time)
    q = R.as_quat() * np.where(np.arange(50) % 2, -1, 1)[:, None]
    found = resample(fine, time, q, [np.arange(4)])
    exact = Rotation.from_rotvec(np.outer(np.sin(2 * fine), [0.0, 0.6, 0.8]))
    assert np.max((exact.inv() * Rotation.from_quat(found)).magnitude()) < 2e-4
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, rtol=0, atol=1e-15)


def test_clock_of_recording_is_set_back(motion, mcap):
    """By 3600 s, as at the end of summer time; stamps and times of recording alike."""
    messages = bags.joint_states(motion)
    hour = 3600 * 10**9
    for k in range(100, len(messages)):
        time, message = messages[k]
        stamp = message["header"]["stamp"]
        messages[k] = time - hour, {**message, "header": bags.header(stamp["sec"] * 10**9 + stamp["nanosec"] - hour)}
    file = bags.write_mcap({"/a": (JOINT_STATE, messages[:100])})
    # written in the order in which they came, which mcap keeps
    from mcap_ros2.writer import Writer

    path = mcap({})
    with path.open("wb") as opened:
        writer = Writer(opened)
        schema = writer.register_msgdef(JOINT_STATE, bags.DEFINITIONS[JOINT_STATE])
        for time, message in messages:
            writer.write_message("/joint_states", schema, message, log_time=time)
        writer.finish()
    assert file
    read = read_recording(path, arm(), checked=False)
    assert [f.kind for f in read.report] == ["clock jump"] and "set back by 3600 s" in str(read.report)
    # the one step that the clock hid is lost
    expected = motion.time - motion.time[0] - np.where(np.arange(200) >= 100, 2e-3, 0)
    np.testing.assert_allclose(read.time, expected, rtol=0, atol=3e-3)
    np.testing.assert_array_equal(read.q, motion.q)


def test_senders_without_a_clock(motion, mcap):
    """Stamps of 0, as many simulators write: the times of recording count."""
    messages = [(time, {**m, "header": bags.header(0)}) for time, m in bags.joint_states(motion)]
    read = read_recording(mcap({"/joint_states": (JOINT_STATE, messages)}), arm(), checked=False)
    same(read, motion)


def test_messages_that_contradict_themselves_are_left_out(motion, mcap):
    """Lengths that differ, a name twice, NaN: each is named with its place, the others are read."""
    messages = bags.joint_states(motion)
    messages[50][1]["position"] = messages[50][1]["position"][:3]
    messages[60][1]["name"] = ["joint1"] * 7
    messages[70][1]["position"] = [float("nan")] * 7
    read = read_recording(mcap({"/joint_states": (JOINT_STATE, messages)}), arm(), checked=False)
    assert len(read) == 198
    lines = [str(finding) for finding in read.report]
    assert len(lines) == 2 and "7 names, but 3 values of position" in lines[0] and "byte " in lines[0]
    assert "a name occurs twice" in lines[1] and "in the chunk" in lines[1]
    assert np.isnan(read.q).all(axis=1).sum() == 1


@pytest.mark.parametrize(
    ("topics", "key", "message"),
    [
        ({"/joint_state": {}}, "", r"no such topic; it has /joint_states, /rosout"),
        (
            {"/rosout": {"joint": "joint1"}},
            "",
            r"its messages are std_msgs/msg/String; supported types are sensor_msgs",
        ),
        ({"/joint_states": {"joint": "joint9"}}, "joint", r"expected the name of a joint, got 'joint9'; did you mean"),
        ({"/joint_states": {"names": {"a": "jiont1"}}}, "names", r"got 'jiont1'; did you mean 'joint1'"),
        ({"/joint_states": {"frame": "imu"}}, "frame", "expected the name of a frame, got 'imu'"),
        ({"/joint_states": {"unit": "deg/s"}}, "unit", "expected a unit of positions, rad, mrad, deg"),
        ({"/joint_states": {"clock": "header"}}, "clock", "expected one of stamp, log, got 'header'"),
        ({"/joint_states": {"delay": "1 ms"}}, "delay", "expected a time in s, got '1 ms'"),
        ({"/joint_states": {"efort": "tau"}}, "efort", "did you mean 'effort'"),
        ({"/joint_states": 3}, "", 'or "ignore", got 3'),
        ({"/joint_states": "ignore"}, None, "expected"),
    ],
)
def test_topics_of_a_map_that_cannot_be(motion, mcap, topics, key, message):
    path = mcap({
        "/joint_states": (JOINT_STATE, bags.joint_states(motion[:5])),
        "/rosout": ("std_msgs/msg/String", [(bags.START, {"data": "hello"})]),
    })  # fmt: skip
    with pytest.raises(ValueError, match=message) as caught:
        read_recording(path, arm(), {"topics": topics})
    if key is not None:
        assert isinstance(caught.value, RecordingMapError)
        assert (caught.value.column, caught.value.key) == (next(iter(topics)), key)


IDL = """================================================================================
IDL: sensor_msgs/msg/JointState
// generated from rosidl_adapter/msg/resource/msg.idl.em
#include "std_msgs/msg/Header.idl"
module sensor_msgs {
  module msg {
    struct JointState {
      std_msgs::msg::Header header;
      sequence<string> name;
      sequence<double> position;
      sequence<double> velocity;
      sequence<double> effort;
    };
  };
};
================================================================================
IDL: std_msgs/msg/Header
#include "builtin_interfaces/msg/Time.idl"
module std_msgs { module msg { struct Header { builtin_interfaces::msg::Time stamp; string frame_id; }; }; };
================================================================================
IDL: builtin_interfaces/msg/Time
module builtin_interfaces { module msg { struct Time { int32 sec; uint32 nanosec; }; }; };
"""


@pytest.mark.parametrize("language", ["ros2idl", "ros1msg"])
def test_definitions_in_other_languages(motion, tmp_path, language):
    """IDL, which newer distributions may write, and the messages of ROS 1, serialized by rosbags."""
    from mcap.writer import Writer
    from rosbags.typesys import Stores, get_typestore

    old = language == "ros1msg"
    store = get_typestore(Stores.ROS1_NOETIC) if old else bags.typestore()
    text = store.generate_msgdef(JOINT_STATE)[0] if old else IDL
    path = tmp_path / "run.mcap"
    with path.open("wb") as file:
        writer = Writer(file)
        writer.start()
        name = "sensor_msgs/JointState" if old else JOINT_STATE
        schema = writer.register_schema(name, language, text.encode())
        channel = writer.register_channel("/joint_states", "ros1" if old else "cdr", schema)
        for time, message in bags.joint_states(motion):
            message["header"]["seq"] = 0
            built = bags.build(store, JOINT_STATE, message)
            data = store.serialize_ros1(built, JOINT_STATE) if old else store.serialize_cdr(built, JOINT_STATE)
            writer.add_message(channel, time, bytes(data), time)
        writer.finish()
    same(read_recording(path, arm(), checked=False), motion)


def test_other_encodings_and_files_are_named(motion, tmp_path):
    """JSON of Foxglove, a bag of ROS 1, a folder without a bag."""
    from mcap.writer import Writer

    path = tmp_path / "json.mcap"
    with path.open("wb") as file:
        writer = Writer(file)
        writer.start()
        schema = writer.register_schema(JOINT_STATE, "jsonschema", b"{}")
        channel = writer.register_channel("/joint_states", "json", schema)
        for time, message in bags.joint_states(motion[:5]):
            writer.add_message(channel, time, json.dumps(message).encode(), time)
        writer.finish()
    with pytest.raises(
        ValueError, match=r"on /joint_states, got none; .*messages in 'json' are not supported, only cdr"
    ):
        read_recording(path, arm())
    with pytest.raises(FileNotFoundError, match=r"old\.bag: no such file"):
        read_recording(tmp_path / "old.bag", arm())
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="expected a file, the folder of a ROS 2 bag, or a LeRobot data set"):
        read_recording(tmp_path / "empty", arm())
