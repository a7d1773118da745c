"""ROS 1 bags, MATLAB files and PX4 logs that other programs, or their formats' definitions, write."""

import numpy as np
import pytest

pytest.importorskip("rosbags")

import scipy.io
import scipy.sparse
from rosbags.rosbag1 import Writer
from scipy.spatial.transform import Rotation

import lgsim
from lgsim.identify import read_recording
from tests.identify.logs import bags
from tests.identify.recording.motions import arm, clean


@pytest.fixture(scope="module")
def motion():
    return clean()[:50]


@pytest.mark.parametrize("compression", [None, Writer.CompressionFormat.BZ2, Writer.CompressionFormat.LZ4])
def test_a_ros1_bag(motion, tmp_path, compression):
    read = read_recording(bags.write_ros1(tmp_path / "run.bag", motion, compression), arm(), checked=False)
    np.testing.assert_allclose(read.time, motion.time - motion.time[0], atol=1e-9)
    for name in ("q", "v", "tau"):
        np.testing.assert_array_equal(getattr(read, name), getattr(motion, name))
    assert len(read.report) == 0


def test_a_ros1_bag_that_ends_early(motion, tmp_path):
    """It is damaged or refused, and never ends with another error."""
    whole = bags.write_ros1(tmp_path / "run.bag", motion).read_bytes()
    rng = np.random.default_rng(0)
    for size in [0, 5, 14, *rng.integers(20, len(whole), 12).tolist()]:
        (tmp_path / "cut.bag").write_bytes(whole[:size])
        with pytest.raises(ValueError, match=r"cut\.bag: "):
            read_recording(tmp_path / "cut.bag", arm(), checked=False)


def test_matlab_files(motion, tmp_path):
    """Vectors by name, matrices in the model's order, fields of a structure, and numbers that are no columns."""
    vectors = {"t": motion.time} | {f"q_{name}": motion.q[:, i] for i, name in enumerate(motion.model.joint_names)}
    others = {"Ts": 0.01, "gains": np.eye(3), "who": "me", "S": scipy.sparse.eye(3).tocsc()}
    scipy.io.savemat(tmp_path / "a.mat", vectors | others, do_compression=True)
    scipy.io.savemat(tmp_path / "b.mat", {"time": motion.time[:, None], "q": motion.q, "tau": motion.tau})
    scipy.io.savemat(tmp_path / "c.mat", {"log": {"t": motion.time, "m": motion.q[:, 0], **{"x": {"y": 1}}}})
    for name in ("a", "b"):
        read = read_recording(tmp_path / f"{name}.mat", arm(), checked=False)
        np.testing.assert_array_equal(read.time, motion.time)
        np.testing.assert_array_equal(read.q, motion.q)
    np.testing.assert_array_equal(read.tau, motion.tau)
    zero = {"constants": {f"q joint{i}": 0.0 for i in range(2, 8)}}
    map = {"log.t": "time", "log.m": {"joint": "joint1", "quantity": "q"}, "options": zero}
    read = read_recording(tmp_path / "c.mat", arm(), map, checked=False)
    np.testing.assert_array_equal(read.q[:, 0], motion.q[:, 0])
    for content in (b"", b"MATLAB 7.3 MAT-file" + bytes(105) + b"\x00\x02IM", b"x" * 300):
        (tmp_path / "d.mat").write_bytes(content)
        with pytest.raises(ValueError, match=r"d\.mat: expected a MATLAB file of version 7 or older, by save"):
            read_recording(tmp_path / "d.mat", arm())


QUATERNION = {f"vehicle_attitude/q[{i}]": {"joint": "root_joint", "quantity": "q", "index": 3 + i, "sign": s}
              for i, s in enumerate((1, 1, -1, -1))}  # fmt: skip
POSITION = {f"vehicle_local_position/{x}": {"joint": "root_joint", "quantity": "q", "index": i, "sign": s}
            for i, (x, s) in enumerate(zip("xyz", (1, -1, -1), strict=True))}  # fmt: skip


def test_a_px4_log(tmp_path):
    """A body that spins, on the clock of its position; north, east, down becomes north, west, up; the attitude, logged
    faster and with another sign at times, is interpolated.
    """
    pytest.importorskip("pyulog")
    model = lgsim.ModelBuilder().add_body(
        "body", "world", lgsim.joints.Free(), joint_name="root_joint", mass=1.0, inertia=np.eye(3)
    ).build()  # fmt: skip
    slow, fast = 20_000 * np.arange(40), 4_000 * np.arange(200) + 1_500
    axis = np.array([0.1, 0.7, -0.4])
    q = Rotation.from_rotvec(1e-6 * fast[:, None] * axis).as_quat()[:, [3, 0, 1, 2]]
    q[50:120] *= -1
    xyz = np.stack([1e-6 * slow, 2e-6 * slow, np.sin(1e-6 * slow)], axis=1)
    topics = {
        "vehicle_local_position": (slow, dict(zip("xyz", xyz.T, strict=True))),
        "vehicle_attitude": (fast, {"q": q}),
        "battery_status": (slow, {"voltage_v": xyz[:, 0]}),
    }
    path = bags.write_ulog(tmp_path / "flight.ulg", topics)
    read = read_recording(path, model, {**POSITION, **QUATERNION}, checked=False)
    np.testing.assert_allclose(read.time, 1e-6 * slow, atol=1e-12)
    np.testing.assert_allclose(read.q[:, :3], xyz * [1, -1, -1], rtol=1e-6, atol=1e-7)
    turn = np.diag([1.0, -1.0, -1.0])
    expected = turn @ Rotation.from_rotvec(1e-6 * slow[:, None] * axis).as_matrix() @ turn
    found = Rotation.from_quat(read.q[1:-1, [4, 5, 6, 3]]).as_matrix()
    np.testing.assert_allclose(found, expected[1:-1], atol=1e-5)
    with pytest.raises(ValueError, match=r"expected a map with columns such as .* log: battery_status, vehicle_att"):
        read_recording(path, model)
    with pytest.raises(ValueError, match="the map has column 'vehicle_attitude/p'"):
        read_recording(path, model, {**POSITION, "vehicle_attitude/p": "ignore", **QUATERNION})
    whole = path.read_bytes()
    path.write_bytes(whole[:-3000] + bytes(90) + whole[-2910:])
    read = read_recording(path, model, {**POSITION, **QUATERNION}, checked=False)
    assert [finding.kind for finding in read.report] == ["damaged file"]
    for size in (0, 7, 30, 200):
        path.write_bytes(whole[:size])
        with pytest.raises(ValueError, match=r"flight\.ulg: expected a "):
            read_recording(path, model, {**POSITION, **QUATERNION})


def test_a_px4_log_without_the_package(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyulog", None)
    (tmp_path / "flight.ulg").write_bytes(b"ULog")
    with pytest.raises(ModuleNotFoundError, match=r"a PX4 log needs the package pyulog.*pip install 'lgsim\[logs\]'"):
        read_recording(tmp_path / "flight.ulg", arm(), POSITION)
