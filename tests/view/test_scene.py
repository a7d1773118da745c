"""The file that plays a motion holds the machine's poses, whole and by itself.

Oracles: Pinocchio's kinematics of the same file, and what the player's own format says.
"""

import base64
import io
import os
import re
import sys
import threading
import time
from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim.data import arm7
from lgsim.view import Box, Shape, live, motion, read_visuals, scene, skeleton, stage, to_html
from tests.view import motions

pytest.importorskip("viser")
msgspec = pytest.importorskip("msgspec")
zstandard = pytest.importorskip("zstandard")

FRAMES, SECONDS = 300, 10.0


@pytest.fixture(scope="module")
def arm():
    return motions.of_the_arm(101, SECONDS)


@pytest.fixture(scope="module")
def page(arm, tmp_path_factory):
    """(path, text) of 300 pictures of the arm."""
    path = tmp_path_factory.mktemp("page") / "arm.html"
    rate = (FRAMES - 1) / SECONDS
    text = to_html(arm, path, arm7(), frames_per_second=rate, trace=["flange"], title="<arm> & co")
    return path, text


def recording(text):
    """What the player is given."""
    data = base64.b64decode(re.search(r'__VISER_EMBED_DATA__="([^"]*)"', text)[1])
    inner = zstandard.ZstdDecompressor().stream_reader(io.BytesIO(data[8:])).read()
    length = int.from_bytes(inner[:8], "little")
    return msgspec.msgpack.decode(inner[8 : 8 + length])


def poses(text, name):
    """(times, positions, quaternions) that the player gives to a node."""
    found = {"SetPositionMessage": {}, "SetOrientationMessage": {}}
    for moment, message in recording(text)["messages"]:
        if message["type"] in found and message["name"] == name:
            found[message["type"]][moment] = message.get("position", message.get("wxyz"))
    positions, quaternions = found.values()
    return np.array([*positions]), np.array([*positions.values()]), np.array([*quaternions.values()])


def test_file_is_what_was_returned_and_small(page):
    path, text = page
    assert path.read_text(encoding="utf-8") == text
    assert path.stat().st_size < 5_000_000
    assert "<title>&lt;arm&gt; &amp; co</title>" in text
    assert os.listdir(path.parent) == ["arm.html"]


def test_page_loads_nothing(page):
    assert not re.findall(r"""(?:src|href|url|import)\s*[=(]?\s*["']?\s*(?:https?:)?//[^\s"')]+""", page[1])


def test_recording_has_each_picture_at_its_time(page):
    found = recording(page[1])
    assert found["durationSeconds"] == pytest.approx(SECONDS * FRAMES / (FRAMES - 1))
    times, _, _ = poses(page[1], "/machine/link7")
    np.testing.assert_allclose(times, np.arange(FRAMES) * SECONDS / (FRAMES - 1), atol=1e-9)
    # what stands still is set once
    assert len(poses(page[1], "/machine/link0")[0]) <= 1


def test_poses_are_those_of_pinocchio(page, arm):
    pin = pytest.importorskip("pinocchio")
    model = pin.buildModelFromUrdf(str(arm7()))
    data = model.createData()
    times, positions, quaternions = poses(page[1], "/machine/link7")
    # every thirtieth picture; between the motion's own times angles run straight
    for index in range(0, FRAMES, 30):
        q = np.array([np.interp(times[index], arm.time, column) for column in arm.q.T])
        pin.framesForwardKinematics(model, data, q)
        pose = data.oMf[model.getFrameId("link7")]
        np.testing.assert_allclose(positions[index], pose.translation, atol=1e-12)
        w, x, y, z = quaternions[index]
        np.testing.assert_allclose(pin.Quaternion(w, x, y, z).matrix(), pose.rotation, atol=1e-12)


@pytest.mark.slow
def test_slow_motion_and_uneven_times():
    free = motions.of_a_free_body()
    uneven = [0, 1, 4, 5, 10]
    part = motions.of(free.model, free.time[uneven], np.asarray(free.q)[uneven])
    text = to_html(part, frames_per_second=20.0, speed=0.5)
    times, positions, _ = poses(text, "/machine/body")
    assert times[-1] == pytest.approx(2.0)
    # along one twist the shortest way between two states is the motion itself
    at = np.searchsorted(times, 0.4 / 0.5 - 1e-9)
    np.testing.assert_allclose(positions[at], np.asarray(free.q)[4, :3], atol=1e-9)
    at = np.searchsorted(times, 0.3 / 0.5 - 1e-9)
    np.testing.assert_allclose(positions[at], np.asarray(free.q)[3, :3], atol=1e-9)


@pytest.mark.float32
def test_nothing_is_left_running(arm, capsys):
    before = threading.active_count()
    to_html(motions.of(arm.model, arm.time[:2], arm.q[:2]))
    assert threading.active_count() == before
    assert capsys.readouterr().out == ""


def test_picture_of_one_moment_is_a_scene_without_a_timeline(arm):
    assert recording(to_html(motions.of(arm.model, arm.time[:1], arm.q[:1])))["durationSeconds"] == 0


def test_camera_sees_all_and_the_ground_lies_below(arm):
    moments = np.linspace(0.0, SECONDS, 40)
    places = motion.frame_poses(arm, moments)
    shapes = {name: [(s, s.geometry.triangles()) for s in found] for name, found in read_visuals(arm7()).items()}
    names = arm.model.frame_names
    place, target, _ = stage.camera_view(stage.corners(names, shapes, places))
    forward = (target - place) / np.linalg.norm(target - place)
    right = np.cross(forward, [0.0, 0.0, 1.0]) / np.linalg.norm(np.cross(forward, [0.0, 0.0, 1.0]))
    reach = []
    for index in range(40):
        poses = np.asarray(lgsim.forward_kinematics(arm.model, jnp.asarray(motion_at(arm, moments[index]))))
        for name, parts in shapes.items():
            pose = poses[names.index(name)]
            for shape, mesh in parts:
                points = mesh.vertices @ (pose @ shape.pose)[:3, :3].T + (pose @ shape.pose)[:3, 3] - place
                depth = points @ forward
                reach.append(np.max(np.abs(points @ np.cross(right, forward)) / depth))
    # all of it within the vertical field of view, and not lost in it
    assert 0.7 * np.tan(stage.FIELD / 2) < max(reach) < np.tan(stage.FIELD / 2)


def motion_at(arm, moment):
    return np.array([np.interp(moment, arm.time, column) for column in arm.q.T])


@pytest.mark.parametrize(("size", "expected"), [(1.0, 0.1), (1.9, 0.1), (2.0, 0.2), (6.0, 0.5), (30.0, 2.0)])
def test_cells_of_the_ground_are_round(size, expected):
    assert stage.grid_cell(size) == pytest.approx(expected)


def test_file_is_written_whole_or_not_at_all(tmp_path, monkeypatch, arm):
    path = tmp_path / "a.html"
    path.write_text("before")

    def broken(*_):
        raise OSError("no")

    monkeypatch.setattr(scene.os, "replace", broken)
    with pytest.raises(OSError, match="no"):
        to_html(motions.of(arm.model, arm.time[:1], arm.q[:1]), path)
    assert path.read_text() == "before"
    assert os.listdir(tmp_path) == ["a.html"]
    with pytest.raises(FileNotFoundError):
        to_html(motions.of(arm.model, arm.time[:1], arm.q[:1]), tmp_path / "nowhere" / "a.html")


def faulty(arm, **change):
    return SimpleNamespace(**{**vars(arm), **change})


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ({"q": np.zeros((3, 7))}, {}, r"motion.q: expected shape \(101, 7\)"),
        ({"q": np.full((101, 7), np.nan)}, {}, "motion.q: expected finite values, got others from row 0 on, t = 0 s"),
        ({"time": np.zeros(101)}, {}, "motion.time: expected finite times that increase"),
        ({}, {"frames_per_second": 0.0}, "frames_per_second: expected a positive number, got 0.0"),
        ({}, {"speed": -1.0}, "speed: expected a positive number, got -1.0"),
        ({}, {"speed": 1e-6}, "frames_per_second: expected at most 20000 frames in one file, got 300000001"),
        ({}, {"visuals": {"hand": [Shape(Box((1.0, 1.0, 1.0)), np.eye(4))]}}, "visuals: .*got 'hand'; the model has"),
        ({}, {"trace": ["hand"]}, "trace: expected names of frames, .*; got 'hand'"),
    ],
)
def test_fault_is_named(change, options, message, arm):
    with pytest.raises(ValueError, match=message):
        to_html(faulty(arm, **change), **options)


def test_missing_viser_names_its_extra(arm, monkeypatch):
    monkeypatch.setitem(sys.modules, "viser", None)
    for call in (to_html, live):
        with pytest.raises(ImportError, match=r"package viser, which is missing: pip install 'lgsim\[view\]'"):
            call(arm)


def test_missing_trimesh_names_its_extra(tmp_path, monkeypatch):
    (tmp_path / "t.stl").write_text("")
    monkeypatch.setitem(sys.modules, "trimesh", None)
    text = '<robot><link name="a"><visual><geometry><mesh filename="{}"/></geometry></visual></link></robot>'
    with pytest.raises(ImportError, match=r"package trimesh, which is missing: pip install 'lgsim\[view\]'"):
        read_visuals(text=text.format(tmp_path / "t.stl"))


def test_live_motion_has_a_slider_for_its_time(arm):
    with live(arm, arm7(), port=0) as shown:
        assert re.fullmatch(r"http://localhost:\d+", shown.url)
        camera = shown.server.initial_camera
        assert camera.fov == pytest.approx(stage.FIELD)
        # between near and far lies all that is seen from where the camera stands
        distance = np.linalg.norm(np.asarray(camera.position) - np.asarray(camera.look_at))
        assert camera.near < 0.1 * distance and 10 * distance < camera.far
        # with the size of the machine
        assert camera.far == pytest.approx(1e4 * camera.near)
        handles = {handle.label: handle for handle in shown.server.gui._gui_input_handle_from_uuid.values()}
        assert {"time (s)", "play", "speed"} <= set(handles)
        handles["play"].value = False
        assert (handles["time (s)"].min, handles["time (s)"].max) == (0.0, pytest.approx(SECONDS))
        time.sleep(0.2)
        handles["time (s)"].value = SECONDS
        assert attitude(shown, "link1") == pytest.approx(turn(arm.q[-1, 0]))


def test_live_model_has_a_slider_for_each_joint(arm):
    with live(arm.model, skeleton(arm.model), port=0) as shown:
        handles = {handle.label: handle for handle in shown.server.gui._gui_input_handle_from_uuid.values()}
        assert list(handles) == list(arm.model.joint_names)
        assert handles["joint4"].min == pytest.approx(-3.0718)
        handles["joint1"].value = 0.5
        assert attitude(shown, "link1") == pytest.approx(turn(0.5))
        shown.show(arm.q[20])
        assert attitude(shown, "link1") == pytest.approx(turn(arm.q[20, 0]))


def attitude(shown, name):
    """The quaternion of a body in the scene."""
    node = shown.server.scene._handle_from_node_name[f"/machine/{name}"]
    return [float(part) for part in node.wxyz]


def turn(angle):
    """The quaternion of a turn about z."""
    return [np.cos(angle / 2), 0.0, 0.0, np.sin(angle / 2)]
