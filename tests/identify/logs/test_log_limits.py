"""Logs that would never end, or unpack to more than they may, are refused at once, in one sentence."""

import io
import sqlite3
import tracemalloc

import pytest

pytest.importorskip("rosbags")
pytest.importorskip("mcap_ros2")

import lz4.frame
import zstandard
from mcap.writer import CompressionType
from mcap.writer import Writer as McapWriter

from lgsim.identify import read_recording
from lgsim.identify.logs import sqlite_bags
from lgsim.identify.logs.decompression import unlz4, unzstd
from lgsim.support.reading.size_limits import VARIABLE, FileSizeError
from tests.identify.logs import bags
from tests.identify.recording.motions import arm, clean

STATE = "sensor_msgs/msg/JointState"
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"


@pytest.fixture(scope="module")
def bag(tmp_path_factory):
    """The bytes of a bag of 100 messages."""
    topics = {"/joint_states": (STATE, bags.joint_states(clean()[:100]))}
    folder = bags.write_rosbag(tmp_path_factory.mktemp("bags") / "bag", topics)
    return next(folder.glob("*.db3")).read_bytes()


def changed(path, bag, *statements):
    path.write_bytes(bag)
    base = sqlite3.connect(path)
    for statement in statements:
        base.execute(statement)
    base.commit()
    base.close()
    return path


@pytest.mark.parametrize(
    ("statements", "name", "what"),
    [
        (
            ("DROP TABLE messages",
             f"CREATE VIEW messages AS {ENDLESS} SELECT i AS id, 1 AS topic_id, i AS timestamp, x'00' AS data FROM n"),
            "messages", "'CREATE VIEW messages AS WITH",
        ),
        (
            ("DROP TABLE topics",
             f"CREATE VIEW topics AS {ENDLESS} SELECT i AS id, '/joint_states' AS name, 'sensor_msgs/msg/JointState' "
             "AS type, 'cdr' AS serialization_format FROM n"),
            "topics", "'CREATE VIEW topics",
        ),
        (("DROP TABLE messages", "CREATE VIRTUAL TABLE messages USING fts5(id, topic_id, timestamp, data)"),
         "messages", "'CREATE VIRTUAL TABLE messages"),
        (("ALTER TABLE messages RENAME COLUMN data TO d",
          "ALTER TABLE messages ADD COLUMN data BLOB GENERATED ALWAYS AS (zeroblob(900000000)) VIRTUAL"),
         "data", "a computed one"),
    ],
    ids=["endless messages", "endless topics", "virtual", "computed"],
)  # fmt: skip
def test_bags_that_are_more_than_tables(statements, name, what, bag, tmp_path):
    path = changed(tmp_path / "x.db3", bag, *statements)
    with pytest.raises(ValueError, match=rf"^{path}: {name}: expected .* of a ROS 2 bag, got {what}[^\n]*$"):
        read_recording(path, arm())


def test_a_bag_whose_queries_take_too_long_is_read_in_part(bag, tmp_path, monkeypatch):
    path = changed(tmp_path / "x.db3", bag)
    whole = read_recording(path, arm(), checked=False)
    monkeypatch.setattr(sqlite_bags, "_LEAST_WORK", 0)
    monkeypatch.setattr(sqlite_bags, "_WORK", 0)
    monkeypatch.setattr(sqlite_bags, "_STEPS", 500)
    read = read_recording(path, arm(), checked=False)
    assert 0 < len(read) < len(whole) == 100
    (finding,) = (f for f in read.report if f.kind == "truncated file")
    assert "its queries take more steps than its size explains" in finding.seen


def big(compression, count=1, size=4_000_000):
    """An MCAP file of chunks of messages that are all zeros."""
    file = io.BytesIO()
    writer = McapWriter(file, compression=compression, chunk_size=1)
    writer.start()
    schema = writer.register_schema(STATE, "ros2msg", bags.DEFINITIONS[STATE].encode())
    channel = writer.register_channel("/joint_states", "cdr", schema)
    for i in range(count):
        writer.add_message(channel, i, bytes(size), i)
    writer.finish()
    return file.getvalue()


@pytest.mark.parametrize("kind", [CompressionType.ZSTD, CompressionType.LZ4])
def test_a_chunk_that_unpacks_to_more_than_the_limit(kind, monkeypatch, tmp_path):
    monkeypatch.setenv(VARIABLE, "1e6")
    path = tmp_path / "x.mcap"
    path.write_bytes(big(kind))
    assert path.stat().st_size < 50_000
    with pytest.raises(FileSizeError, match=rf"{path}: has a chunk of 4000\d\d\d bytes, .* set {VARIABLE} to more"):
        read_recording(path, arm())


def test_chunks_that_unpack_together_to_more_than_the_limit(monkeypatch, tmp_path):
    monkeypatch.setenv(VARIABLE, "5e6")
    path = tmp_path / "x.mcap"
    path.write_bytes(big(CompressionType.ZSTD, count=3))
    with pytest.raises(FileSizeError, match=rf"{path}: unpacks to 8000\d\d\d bytes, .* set {VARIABLE}"):
        read_recording(path, arm())


def test_a_large_log_may_unpack_to_more_than_the_limit(monkeypatch, tmp_path):
    """The limit is one of memory: messages of a log are not held together."""
    whole = clean()[:300]
    path = tmp_path / "x.mcap"
    path.write_bytes(
        bags.write_mcap({"/joint_states": (STATE, bags.joint_states(whole))}, compression=CompressionType.ZSTD,
                        chunk_size=8192)
    )  # fmt: skip
    monkeypatch.setenv(VARIABLE, "35000")
    with pytest.raises(FileSizeError, match="holds numbers of"):
        read_recording(path, arm(), checked=False)
    monkeypatch.setenv(VARIABLE, "60000")
    assert len(read_recording(path, arm(), checked=False)) == 300


def test_frames_that_have_more_than_they_may_take_no_memory():
    much = bytes(50_000_000)
    frames = (
        zstandard.ZstdCompressor().compress(much),
        zstandard.ZstdCompressor(write_content_size=False).compress(much),
    )
    packed = lz4.frame.compress(much)
    tracemalloc.start()
    for call in (lambda: unzstd(frames[0], 1000), lambda: unzstd(frames[1], 1000), lambda: unlz4(packed, 1000)):
        with pytest.raises((ValueError, zstandard.ZstdError)):
            call()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 5_000_000


def test_frames_come_back_as_they_were():
    data = bytes(range(256)) * 100
    assert unzstd(zstandard.ZstdCompressor().compress(data), len(data)) == data
    assert unlz4(lz4.frame.compress(data), len(data)) == data
    cut = lz4.frame.compress(data * 50)[:-200]
    with pytest.raises(ValueError, match="incomplete"):
        unlz4(cut, len(data) * 50)
