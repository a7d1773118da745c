"""Logs that are cut, flipped or holed: what is whole before the damage is read, its place is named; no other error."""

import warnings

import numpy as np
import pytest

pytest.importorskip("rosbags")
pytest.importorskip("mcap_ros2")

from mcap.writer import CompressionType
from mcap.writer import Writer as McapWriter

from lgsim.identify import read_recording
from tests.identify.logs import bags
from tests.identify.recording.motions import arm, clean

JOINT_STATE = "sensor_msgs/msg/JointState"
SAMPLES = 300


@pytest.fixture(scope="module")
def motion():
    return clean()[:SAMPLES]


@pytest.fixture(scope="module")
def logs(motion, tmp_path_factory):
    """The bytes of logs of one motion, by name."""
    topics = {"/joint_states": (JOINT_STATE, bags.joint_states(motion))}
    found = {
        f"{kind.name}.mcap": bags.write_mcap(topics, compression=kind, chunk_size=8192)
        for kind in (CompressionType.NONE, CompressionType.LZ4, CompressionType.ZSTD)
    }
    found["no chunks.mcap"] = without_chunks(found["NONE.mcap"])
    folder = bags.write_rosbag(tmp_path_factory.mktemp("bags") / "bag", topics)
    found["bag.db3"] = next(folder.glob("*.db3")).read_bytes()
    return found


def without_chunks(data):
    """The same messages without chunks and index, which microcontrollers write."""
    import io

    from mcap.reader import make_reader

    file = io.BytesIO()
    writer, ids = McapWriter(file, use_chunking=False), None
    writer.start()
    for schema, channel, message in make_reader(io.BytesIO(data)).iter_messages():
        if ids is None:
            number = writer.register_schema(schema.name, schema.encoding, schema.data)
            ids = writer.register_channel(channel.topic, channel.message_encoding, number)
        writer.add_message(ids, message.log_time, message.data, message.publish_time)
    writer.finish()
    return file.getvalue()


NAMES = ["NONE.mcap", "LZ4.mcap", "ZSTD.mcap", "no chunks.mcap", "bag.db3"]


def outcome(path, data):
    """The recording, or the text of its error; no other error, no warning."""
    path.write_bytes(data)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            return read_recording(path, arm(), checked=False)
        except ValueError as error:
            assert str(error).startswith(str(path)) and "\n" not in str(error) and len(str(error)) < 700
            return str(error)


def share_right(read, motion):
    """The share of samples whose positions are those of the motion at their time, by the nearest sample."""
    at = np.clip(np.round((read.time + offset(read, motion)) / 2e-3).astype(int), 0, SAMPLES - 1)
    return np.mean(np.all(read.q == motion.q[at], axis=1))


def offset(read, motion):
    """The time of the first sample that was read."""
    first = np.flatnonzero(np.all(motion.q == read.q[0], axis=1))
    return motion.time[first[0]] if len(first) else 0.0


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_cut_at_each_thousandth_byte(logs, motion, name, tmp_path):
    """What lies before the cut is read, and the place of the cut is named; a database may need all its pages."""
    data, path = logs[name], tmp_path / name
    whole = outcome(path, data)
    assert len(whole) == SAMPLES and len(whole.report) == 0
    for size in range(0, len(data), 1000 if len(data) < 120_000 else 3000):
        read = outcome(path, data[:size])
        if isinstance(read, str):
            # a few chunks are needed for anything
            assert name == "bag.db3" or size < 0.2 * len(data) + 10_000
            assert name != "bag.db3" or size == 0 or ".recover" in read
            continue
        assert share_right(read, motion) == 1 and len(read.report) >= 1
        # the chunk that is cut is lost, and the index is a small part at the end
        assert name == "bag.db3" or len(read) >= np.floor(SAMPLES * (size - 20_000) / len(data))
        assert {"truncated file", "damaged file"} & {finding.kind for finding in read.report}
        assert any("byte" in finding.seen or "message" in finding.seen for finding in read.report)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_flipped_bytes(logs, motion, name, tmp_path):
    """One byte is wrong: what is read is right, and where there are checksums it is named."""
    data, path, rng = logs[name], tmp_path / name, np.random.default_rng(3)
    for at in rng.integers(0, len(data), 40).tolist():
        damaged = bytearray(data)
        damaged[at] ^= int(rng.integers(1, 256))
        read = outcome(path, bytes(damaged))
        if isinstance(read, str):
            continue
        changed = len(read) != SAMPLES or any(
            not np.array_equal(getattr(read, channel), getattr(motion, channel)) for channel in ("q", "v", "tau")
        )
        # databases and files without chunks have no checksums: a wrong number in them is a number
        assert not changed or len(read.report) or name in ("bag.db3", "no chunks.mcap")
        assert share_right(read, motion) > 0.95 and (len(read) > 0.8 * SAMPLES or len(read.report))


@pytest.mark.parametrize("name", NAMES)
def test_holes(logs, motion, name, tmp_path):
    """Some thousand bytes are missing in the middle, or zero: what lies before them is read."""
    data, path, rng = logs[name], tmp_path / name, np.random.default_rng(4)
    for at in rng.integers(0.3 * len(data), 0.7 * len(data), 6).tolist():
        for hole in (b"", bytes(3000)):
            read = outcome(path, data[:at] + hole + data[at + 3000 :])
            if isinstance(read, str):
                assert name == "bag.db3"  # pages that moved are no database any more
                continue
            # a page of a database has no checksum, and zeros are numbers
            assert (len(read.report) or name == "bag.db3") and share_right(read, motion) > 0.9
            if name.endswith(".mcap"):
                assert len(read) > SAMPLES * (at - 20_000) / len(data)


def test_one_damaged_chunk_is_all_that_is_lost(logs, motion, tmp_path):
    """The place of the chunk is named, and the samples of it alone are missing."""
    data = bytearray(logs["ZSTD.mcap"])
    places = [at for at in range(len(data)) if data[at : at + 8] == b"\x04\x00\x00\x00zstd"]
    chunk = places[3] - 37  # behind opcode, length, two times, size and checksum
    data[places[3] + 16 : places[3] + 80] = bytes(64)
    read = outcome(tmp_path / "run.mcap", bytes(data))
    (finding,) = read.report
    assert finding.kind == "damaged file" and f"byte {chunk}: a chunk cannot be decompressed" in finding.seen
    assert SAMPLES - 60 < len(read) < SAMPLES and share_right(read, motion) == 1


def test_lengths_that_lie_take_no_memory(logs, tmp_path):
    """A length of 2^60 bytes, of a record or of a list, is no reason to wait or to ask for memory."""
    import tracemalloc

    data = bytearray(logs["NONE.mcap"])
    data = data[: -8 - 29 - 400]  # without the index
    # a chunk without compression: behind its length two times, size and checksum, and a name of no letters
    half, zero = range(len(data) // 2, len(data)), bytes(4)
    chunk = next(at for at in half if data[at] == 6 and data[at + 37 : at + 41] == zero == data[at + 5 : at + 9])
    data[chunk + 1 : chunk + 9] = (2**60).to_bytes(8, "little")
    tracemalloc.start()
    read = outcome(tmp_path / "run.mcap", bytes(data))
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(read) > 0.4 * SAMPLES and most < 50e6


def test_only_the_chunks_of_wanted_topics_are_read(motion, tmp_path, monkeypatch):
    """A camera's chunks are skipped: of a file of 30 MB less than 2 MB is read."""
    picture = {"data": "x" * 100_000}
    camera = [(bags.START + k * 2 * 10**6 + 10**9, picture) for k in range(300)]
    path = tmp_path / "run.mcap"
    topics = {"/joint_states": (JOINT_STATE, bags.joint_states(motion)), "/camera": ("std_msgs/msg/String", camera)}
    path.write_bytes(bags.write_mcap(topics, compression=CompressionType.NONE, chunk_size=2**19))
    assert path.stat().st_size > 3e7
    count, original = [0], type(path).open

    def opened(self, *arguments, **named):
        file = original(self, *arguments, **named)
        if self == path:
            read = file.read

            class Counted:
                def __getattr__(self, name):
                    return getattr(file, name)

                def __enter__(self):
                    return self

                def __exit__(self, *error):
                    file.close()

                def read(self, size=-1):
                    data = read(size)
                    count[0] += len(data)
                    return data

            return Counted()
        return file

    monkeypatch.setattr(type(path), "open", opened)
    assert len(read_recording(path, arm(), checked=False)) == SAMPLES
    assert 0 < count[0] < 2e6
