"""LeRobot data sets of both layouts, written by pyarrow after the documentation of versions 2.1 and 3.0."""

import json
import shutil

import numpy as np
import pytest

pytest.importorskip("pyarrow")

import pyarrow as pa
import pyarrow.parquet as pq

import lgsim
from lgsim.identify import RecordingMapError, read_recording

FPS, FRAMES = 30, 60
NAMES = ["shoulder_pan.pos", "elbow_flex.pos"]


@pytest.fixture(scope="module")
def model():
    build = lgsim.ModelBuilder()
    build.add_body("upper", "world", lgsim.joints.Revolute(), joint_name="shoulder_pan", mass=1.0, inertia=np.eye(3))
    build.add_body("fore", "upper", lgsim.joints.Revolute(), joint_name="elbow_flex", mass=1.0, inertia=np.eye(3))
    return build.build()


def states(episode):
    """Positions in degrees, float32, of an episode."""
    time = np.arange(FRAMES) / FPS
    return np.stack([40 * np.sin(time + episode), 20 * np.cos(2 * time)], axis=1).astype(np.float32)


def table(episodes, **more):
    state = np.concatenate([states(k) for k in episodes])
    frame = np.tile(np.arange(FRAMES), len(episodes))
    columns = {
        "action": pa.FixedSizeListArray.from_arrays(pa.array((state + 1).ravel()), 2),
        "observation.state": pa.FixedSizeListArray.from_arrays(pa.array(state.ravel()), 2),
        "timestamp": pa.array((frame / FPS).astype(np.float32)),
        "frame_index": pa.array(frame),
        "episode_index": pa.array(np.repeat(episodes, FRAMES)),
        "index": pa.array(np.arange(len(frame))),
        "task_index": pa.array(np.zeros(len(frame), np.int64)),
    }
    return pa.table(columns | more)


def info(version, data_path, names=NAMES):
    feature = {"dtype": "float32", "shape": [2], "names": names}
    return {
        "codebase_version": version, "robot_type": "so100_follower", "total_episodes": 2, "fps": FPS,
        "data_path": data_path, "features": {"action": feature, "observation.state": feature},
    }  # fmt: skip


def old(root, names=NAMES):
    """Version 2.1: a file for each episode."""
    (root / "data" / "chunk-000").mkdir(parents=True)
    (root / "meta").mkdir()
    path = "data/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.parquet"
    (root / "meta" / "info.json").write_text(json.dumps(info("v2.1", path, names)))
    for episode in (0, 1):
        pq.write_table(table([episode]), root / "data" / "chunk-000" / f"episode_{episode:06d}.parquet")
    return root


def new(root, names=NAMES):
    """Version 3.0: the episodes in one file."""
    (root / "data" / "chunk-000").mkdir(parents=True)
    (root / "meta").mkdir()
    path = "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet"
    (root / "meta" / "info.json").write_text(json.dumps(info("v3.0", path, names)))
    pq.write_table(table([0, 1]), root / "data" / "chunk-000" / "file-000.parquet")
    return root


DEGREES = {"topics": {"observation.state": {"unit": "deg"}}}


@pytest.mark.parametrize("write", [old, new])
def test_episodes(model, write, tmp_path):
    """One of them by its number, or all one after the other; frames say the times exactly, float32 stamps do not."""
    root = write(tmp_path / "set")
    one = read_recording(root, model, DEGREES | {"options": {"episode": 1}}, checked=False)
    np.testing.assert_array_equal(one.time, np.arange(FRAMES) / FPS)
    np.testing.assert_allclose(one.q, np.deg2rad(states(1).astype(float)), rtol=1e-15)
    assert not len(one.report) and one.v is None
    both = read_recording(root, model, DEGREES, checked=False)
    assert [part.stop - part.start for part in both.segments] == [FRAMES, FRAMES]
    np.testing.assert_allclose(both.q[FRAMES:], one.q, rtol=0, atol=0)
    assert [f.kind for f in both.report] == ["clock jump"] and "2 episodes" in str(both.report)
    with pytest.raises(ValueError, match="no episode 7"):
        read_recording(root, model, DEGREES | {"options": {"episode": 7}})


def test_one_file_of_a_data_set(model, tmp_path):
    """Its meta/info.json is found from the file."""
    root = old(tmp_path / "set")
    read = read_recording(root / "data" / "chunk-000" / "episode_000001.parquet", model, DEGREES, checked=False)
    np.testing.assert_allclose(read.q, np.deg2rad(states(1).astype(float)), rtol=1e-15)


def test_names_as_older_data_sets_have_them(model, tmp_path):
    """Lists below a word, without quantities, or none at all."""
    for k, names in enumerate(({"motors": ["shoulder_pan", "elbow_flex"]}, None)):
        read = read_recording(new(tmp_path / str(k), names), model, DEGREES, checked=False)
        np.testing.assert_allclose(read.q[:FRAMES], np.deg2rad(states(0).astype(float)), rtol=1e-15)
    root = new(tmp_path / "other", ["main_shoulder_pan", "main_elbow"])
    with pytest.raises(ValueError, match=r"got action \(main_shoulder_pan, main_elbow\)"):
        read_recording(root, model)
    names = {"main_shoulder_pan": "shoulder_pan", "main_elbow": "elbow_flex"}
    read = read_recording(
        root, model, {"topics": {"observation.state": {"unit": "deg", "names": names}}}, checked=False
    )
    np.testing.assert_allclose(read.q[:FRAMES], np.deg2rad(states(0).astype(float)), rtol=1e-15)
    # commands are columns too: a map takes them for positions
    columns = {f"action/{old}": f"q {own} [deg]" for old, own in names.items()}
    commanded = read_recording(root, model, columns, checked=False)
    np.testing.assert_allclose(commanded.q[:FRAMES], np.deg2rad(states(0).astype(float) + 1), rtol=0, atol=1e-6)


def test_degrees_without_a_unit_are_named(model, tmp_path):
    """lerobot stores degrees or percent of the range; who says nothing gets a hint and no mended turns."""
    pytest.importorskip("scipy")
    read = read_recording(new(tmp_path / "set"), model)
    assert any("degrees" in finding.seen for finding in read.report.of_kind("implausible units"))
    assert not read.report.of_kind("wraparound")


def test_damaged_data_sets(model, tmp_path):
    """A file that is cut is left out and named, so is a broken info.json; a feature that is not there is an error."""
    root = old(tmp_path / "set")
    file = root / "data" / "chunk-000" / "episode_000000.parquet"
    file.write_bytes(file.read_bytes()[:1000])
    read = read_recording(root, model, DEGREES, checked=False)
    np.testing.assert_allclose(read.q, np.deg2rad(states(1).astype(float)), rtol=1e-15)
    (finding,) = read.report
    assert (finding.kind, finding.where) == ("damaged file", "episode_000000.parquet")
    (root / "meta" / "info.json").write_text('{"fps": 30, "features": ')
    read = read_recording(root, model, DEGREES, checked=False)
    assert {f.where for f in read.report} == {"meta/info.json", "episode_000000.parquet"} and len(read) == FRAMES
    with pytest.raises(RecordingMapError, match=r"topic 'observation.effort'.*no such feature; it has"):
        read_recording(root, model, {"topics": {"observation.effort": {}}})
    rng = np.random.default_rng(0)
    whole = (new(tmp_path / "new") / "data" / "chunk-000" / "file-000.parquet").read_bytes()
    for at in rng.integers(0, len(whole), 40).tolist():
        data = bytearray(whole)
        data[at] ^= int(rng.integers(1, 256))
        (tmp_path / "new" / "data" / "chunk-000" / "file-000.parquet").write_bytes(bytes(data))
        try:
            read_recording(tmp_path / "new", model, DEGREES, checked=False)
        except ValueError as error:
            assert str(tmp_path / "new") in str(error) and "\n" not in str(error)
    shutil.rmtree(root / "data")
    with pytest.raises(ValueError, match="expected a LeRobot data set"):
        read_recording(root, model)
