"""Runs as MCAP files: what rosbags and mcap read in them, against the run itself and MuJoCo's poses."""

import mujoco
import numpy as np
import pytest

pytest.importorskip("rosbags")
pytest.importorskip("mcap_ros2")

from mcap.reader import make_reader
from mcap_ros2.decoder import DecoderFactory
from rosbags.highlevel import AnyReader
from scipy.spatial.transform import Rotation

import lgsim
from lgsim.identify import read_recording
from lgsim.simulation import Trajectory
from tests.identify.recording.motions import arm, clean

_LINK = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
MIMIC = f"""<robot name="gripper">
<link name="base"/>
<link name="left">{_LINK}</link>
<link name="right">{_LINK}</link>
<joint name="l" type="prismatic"><parent link="base"/><child link="left"/><axis xyz="1 0 0"/>
<limit lower="-1" upper="1" effort="1" velocity="1"/></joint>
<joint name="r" type="prismatic"><parent link="base"/><child link="right"/><axis xyz="1 0 0"/>
<limit lower="-1" upper="1" effort="1" velocity="1"/><mimic joint="l" multiplier="-2" offset="0.1"/></joint>
</robot>"""


def run():
    motion = clean()[:20]
    return Trajectory(arm(), motion.time + 0.25, motion.q, motion.v, motion.tau, method="test")


def decoded(path):
    """(topic, type, stamp, message) of each message by mcap-ros2-support."""
    with path.open("rb") as file:
        reader = make_reader(file, decoder_factories=[DecoderFactory()])
        return [(c.topic, s.name, m.log_time, x) for s, c, m, x in reader.iter_decoded_messages()]


def test_joint_states_and_transforms(tmp_path):
    """Each number of the run, and the poses of MuJoCo's forward kinematics of the same file."""
    motion = run()
    path = motion.save(tmp_path / "run.mcap", lgsim.data.arm7())
    messages = decoded(path)
    states = [(time, x) for topic, _, time, x in messages if topic == "/joint_states"]
    np.testing.assert_array_equal([x.position for _, x in states], motion.q)
    np.testing.assert_array_equal([x.velocity for _, x in states], motion.v)
    np.testing.assert_array_equal([x.effort for _, x in states], motion.tau)
    assert all(tuple(x.name) == arm().joint_names for _, x in states)
    np.testing.assert_allclose([time * 1e-9 for time, _ in states], motion.time, rtol=0, atol=1e-9)
    assert all(x.header.stamp.sec * 10**9 + x.header.stamp.nanosec == time for time, x in states)
    (described,) = [x.data for topic, _, _, x in messages if topic == "/robot_description"]
    assert described == lgsim.data.arm7().read_text()

    machine = mujoco.MjModel.from_xml_path(str(lgsim.data.arm7()))
    machine.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT  # lgsim's arm has none
    data = mujoco.MjData(machine)
    moving = [x for topic, kind, _, x in messages if topic == "/tf" and kind == "tf2_msgs/msg/TFMessage"]
    (fixed,) = [x for topic, _, _, x in messages if topic == "/tf_static"]
    assert len(moving) == len(motion)
    for i in (0, 7, 19):
        data.qpos = motion.q[i]
        mujoco.mj_forward(machine, data)
        poses = {"world": np.eye(4)}
        for transform in [*moving[i].transforms, *fixed.transforms]:
            T = np.eye(4)
            x, q = transform.transform.translation, transform.transform.rotation
            T[:3, 3], T[:3, :3] = [x.x, x.y, x.z], Rotation.from_quat([q.x, q.y, q.z, q.w]).as_matrix()
            poses[transform.child_frame_id] = poses[transform.header.frame_id] @ T
        for name in arm().body_names:
            body = data.body(name)
            np.testing.assert_allclose(poses[name][:3, 3], body.xpos, rtol=0, atol=1e-12)
            np.testing.assert_allclose(poses[name][:3, :3], body.xmat.reshape(3, 3), rtol=0, atol=1e-12)


def test_rosbags_reads_it_too(tmp_path):
    """The other reader, which checks hashes and lengths of its own."""
    motion = run()
    (tmp_path / "bag").mkdir()
    path = motion.save(tmp_path / "bag" / "run.mcap")
    with AnyReader([path]) as reader:
        kinds = {connection.topic: connection.msgtype for connection in reader.connections}
        assert kinds == {"/joint_states": "sensor_msgs/msg/JointState", "/tf": "tf2_msgs/msg/TFMessage"} | (
            {"/tf_static": "tf2_msgs/msg/TFMessage"} if arm().topology.frame_names else {}
        )
        rows = [reader.deserialize(raw, c.msgtype) for c, _, raw in reader.messages() if c.topic == "/joint_states"]
    np.testing.assert_array_equal([row.position for row in rows], motion.q)


def test_a_run_is_a_recording(tmp_path):
    """Read back by the map that says nothing; of a free body the odometry has pose and twist."""
    motion = run()
    read = read_recording(motion.save(tmp_path / "run.mcap"), arm(), checked=False)
    for name in ("q", "v", "tau"):
        np.testing.assert_array_equal(getattr(read, name), getattr(motion, name))
    np.testing.assert_allclose(read.time, motion.time - 0.25, rtol=0, atol=1e-9)
    drone = lgsim.load_urdf(lgsim.data.quadrotor(), floating_base=True)
    rng, n = np.random.default_rng(0), 6
    q = rng.standard_normal((n, 7))
    q[:, 3:] /= np.linalg.norm(q[:, 3:], axis=1, keepdims=True)
    flight = Trajectory(drone, 0.01 * np.arange(n), q, rng.standard_normal((n, 6)), np.zeros((n, 6)))
    back = read_recording(flight.save(tmp_path / "flight.mcap"), drone, checked=False)
    np.testing.assert_array_equal(back.q, flight.q)
    np.testing.assert_array_equal(back.v, flight.v)


def test_joints_that_follow_others(tmp_path):
    """Their positions and velocities are in the joint states, for viewers know no mimic."""
    (tmp_path / "gripper.urdf").write_text(MIMIC)
    model = lgsim.load_urdf(tmp_path / "gripper.urdf")
    motion = Trajectory(model, np.arange(2.0) - 1, np.array([[0.2], [0.3]]), np.ones((2, 1)), np.full((2, 1), 5.0))
    states = [x for topic, _, _, x in decoded(motion.save(tmp_path / "run.mcap")) if topic == "/joint_states"]
    assert states[0].name == ["l", "r"]
    np.testing.assert_allclose([x.position for x in states], [[0.2, -0.3], [0.3, -0.5]], rtol=1e-15)
    np.testing.assert_allclose([x.velocity for x in states], [[1, -2], [1, -2]], rtol=0)
    np.testing.assert_allclose([x.effort for x in states], [[5, 0], [5, 0]], rtol=0)
    # stamps have no sign: times before 0 are counted from the first
    assert [x.header.stamp.sec for x in states] == [0, 1]
