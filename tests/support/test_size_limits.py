"""Files that unpack to more than they may, or say so, are refused before memory is taken for them."""

import functools
import io
import json
import re
import struct
import subprocess
import sys
import tracemalloc
import zipfile

import numpy as np
import pytest

pytest.importorskip("pyarrow")

import pyarrow as pa
from pyarrow import parquet

import lgsim
from lgsim import identify
from lgsim.formats import FileError, read_urdf
from lgsim.formats.loop_files import add_loops
from lgsim.scenarios import ScenarioError
from lgsim.scenarios.study import load_motion
from lgsim.simulation import Trajectory
from lgsim.support import toml_table
from lgsim.support.files import read_json
from lgsim.support.reading.npz import open_npz, read_npz
from lgsim.support.reading.size_limits import VARIABLE, FileSizeError, check_size, read_bytes, size_limit

SMALL = 10**6
"""Bytes that a reader may take for a file that is refused."""
MESH = """<robot name="r"><link name="base"/><link name="a"><inertial><mass value="1"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
<collision><geometry><mesh filename="FILE"/></geometry></collision></link>
<joint name="j" type="revolute"><parent link="base"/><child link="a"/><axis xyz="0 0 1"/>
<limit lower="-1" upper="1" effort="1" velocity="1"/></joint></robot>"""


@functools.cache
def model():
    return read_urdf(text=MESH)[0]


@pytest.fixture
def small(monkeypatch):
    """A limit of a megabyte."""
    monkeypatch.setenv(VARIABLE, "1e6")


@pytest.fixture
def taken():
    """A function that gives the largest number of bytes that Python and numpy held since the test began."""
    model()
    tracemalloc.start()
    yield lambda: tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()


def test_the_limit(monkeypatch):
    """Above it the message has the variable."""
    monkeypatch.delenv(VARIABLE, raising=False)
    assert size_limit() == 2**31
    monkeypatch.setenv(VARIABLE, "4e9")
    assert size_limit() == 4 * 10**9
    check_size("a file", 4 * 10**9)
    with pytest.raises(
        FileSizeError, match=r"^a file: unpacks to 4000000001 bytes, expected at most 4000000000; .*set"
    ):
        check_size("a file", 4 * 10**9 + 1)


@pytest.mark.parametrize("text", ["much", "0", "-5", "inf", "nan"])
def test_a_limit_that_is_none(text, monkeypatch):
    monkeypatch.setenv(VARIABLE, text)
    with pytest.raises(ValueError, match=f"{VARIABLE}: expected a number such as 4e9, got '{text}'"):
        size_limit()


@pytest.mark.parametrize("reader", [read_bytes, lambda path: read_npz(path, "arrays"), toml_table.read, read_json])
def test_readers_name_a_limit_that_is_none(reader, tmp_path, monkeypatch):
    (tmp_path / "x.npz").write_bytes(b"PK")
    monkeypatch.setenv(VARIABLE, "many")
    with pytest.raises(ValueError, match=f"x.npz: {VARIABLE}: expected a number such as 4e9, got 'many'"):
        reader(npz(tmp_path / "x.npz", x=b""))


def test_json_above_the_limit_is_not_read(tmp_path, monkeypatch):
    path = tmp_path / "x.json"
    path.write_bytes(b" " * 1000)
    monkeypatch.setenv(VARIABLE, "999")
    with pytest.raises(FileSizeError, match=r"x\.json: has 1000 bytes, expected at most 999"):
        read_json(path)


def npz(path, **members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return path


def npy(header, content=b""):
    """A member with a header of one's own."""
    text = header.encode("latin1")
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + content


def floats(shape, content=b""):
    return npy(f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}}}", content)


READERS = {
    "trajectory": Trajectory.load,
    "recording": identify.Recording.load,
    "fit": identify.load_plant,
    "table": lambda path: identify.read_recording(path, model()),
    "archive": lambda path: read_npz(path, "arrays"),
}


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_an_archive_that_unpacks_to_more_than_the_limit(read, small, taken, tmp_path):
    """Four megabytes in four kilobytes, as four gigabytes in four megabytes."""
    content = io.BytesIO()
    np.lib.format.write_array(content, np.zeros(500_000))
    path = npz(tmp_path / "x.npz", about=content.getvalue())
    assert path.stat().st_size < 10_000
    start = taken()
    with pytest.raises(FileSizeError, match=rf"{path}: unpacks to 4000128 bytes, .* set {VARIABLE} to more"):
        read(path)
    assert taken() - start < SMALL


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
@pytest.mark.parametrize("shape", ["(1000000000,)", "(-5,)", "(3, 1e9)", "(True,)", "(99999999999999999999,)"])
def test_a_header_that_lies_takes_no_memory(read, shape, taken, tmp_path):
    path = npz(tmp_path / "x.npz", about=floats(shape, bytes(80)))
    start = taken()
    with pytest.raises(ValueError, match=f"^{path}: expected ") as caught:
        read(path)
    assert taken() - start < SMALL and type(caught.value) is ValueError


def test_an_archive_that_lies_about_sizes_takes_no_memory(tmp_path, taken):
    """The archive says 208 bytes; what it has unpacks to 200 MB."""
    member = floats("(10,)", bytes(80))
    path = npz(tmp_path / "x.npz", x=member + bytes(2 * 10**8))
    data, full = path.read_bytes(), struct.pack("<I", len(member) + 2 * 10**8)
    assert data.count(full) == 2
    path.write_bytes(data.replace(full, struct.pack("<I", len(member))))
    tracemalloc.reset_peak()
    start = taken()
    with pytest.raises(ValueError, match=rf"{path}: expected arrays, got something else \(Bad CRC-32"):
        read_npz(path, "arrays")
    assert taken() - start < SMALL


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (
            npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", bytes(8)),
            "pickled objects, which are not read",
        ),
        (npy("{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (1,)}", bytes(8)), "numbers of type"),
        (npy("{'descr': '<U0', 'fortran_order': False, 'shape': (1000000000000,)}"), "numbers of type <U0"),
        (
            npy("{'descr': '<U1', 'fortran_order': False, 'shape': (1,)}", b"\xff" * 4),
            "a string with invalid code points",
        ),
        (
            npy("{'descr': '>U2', 'fortran_order': False, 'shape': ()}", b"\0\0\0a\0\x11\0\0"),
            "a string with invalid code points",
        ),
        (npy("(" * 200), ""),
        (npy("-" * 5000 + "1"), ""),
        (npy("(" * 20_000), ""),
        (npy("{'descr': '<f8', 'fortran_order'"), ""),
        (b"\x93NUMPY\x09\x00\x00\x00", ""),
        (b"\x93NUM", ""),
        (b"", ""),
    ],
)
def test_members_that_are_no_arrays_of_numbers(content, fault, tmp_path):
    path = npz(tmp_path / "x.npz", x=content)
    with pytest.raises(ValueError, match=rf"{path}: expected arrays, got something else \({fault}") as caught:
        read_npz(path, "arrays")
    assert type(caught.value) is ValueError


def test_what_numpy_writes_is_read(tmp_path):
    rng = np.random.default_rng(0)
    given = {
        "a": rng.normal(size=(3, 4)), "b": np.asfortranarray(rng.normal(size=(3, 4, 2))), "c": np.array("text"),
        "d": np.array(["x", "yz"]), "e": np.zeros((0, 3)), "f": np.arange(5, dtype=">i4"), "g": np.array([True]),
        "h": np.float32(2.5), "i": np.array([1 + 2j]),
    }  # fmt: skip
    for write in (np.savez, np.savez_compressed):
        write(tmp_path / "x.npz", **given)
        read = read_npz(tmp_path / "x.npz", "arrays")
        with np.load(tmp_path / "x.npz") as other:
            assert list(read) == other.files
            for name, array in read.items():
                np.testing.assert_array_equal(array, other[name])
                assert array.shape == other[name].shape and array.dtype == other[name].dtype.newbyteorder("=")
        read["a"][0] = 0  # arrays may be written to
    with open_npz(tmp_path / "x.npz", "arrays") as file:
        assert "a" in file and "z" not in file
    with (
        pytest.raises(ValueError, match=r"expected arrays, got something else \('z'\)"),
        open_npz(tmp_path / "x.npz", "arrays") as file,
    ):
        file["z"]


def test_parquet_that_unpacks_to_more_than_the_limit(small, tmp_path):
    """A number that is repeated takes no bytes in a file: eight megabytes in a few kilobytes."""
    path = tmp_path / "x.parquet"
    parquet.write_table(pa.table({"time": np.zeros(10**6), "q j": np.ones(10**6)}), path)
    assert path.stat().st_size < 20_000
    before = pa.default_memory_pool().max_memory()
    for read in (Trajectory.load, lambda path: identify.read_recording(path, model())):
        with pytest.raises(FileSizeError, match=rf"{path}: unpacks to 16000000 bytes, .* set {VARIABLE}"):
            read(path)
    assert pa.default_memory_pool().max_memory() - before < 8 * 10**6


def test_a_long_text_that_is_repeated_is_in_memory_once(tmp_path):
    """A text of 20 kB in 20 000 rows would be 400 MB."""
    path = tmp_path / "x.parquet"
    texts = pa.array(["0." + "1" * 20_000] * 1000)
    schema = pa.schema([("time", pa.float64()), ("q j", pa.string())])
    with parquet.ParquetWriter(path, schema) as writer:
        for k in range(20):
            time = k + np.arange(1000) / 1000
            writer.write_table(pa.table({"time": time, "q j": texts}, schema))
    before = pa.default_memory_pool().max_memory()
    recording = identify.read_recording(path, model(), checked=False)
    np.testing.assert_allclose(recording.q, 1 / 9)
    assert len(recording) == 20_000 and pa.default_memory_pool().max_memory() - before < 10**8


def test_numbers_as_texts_are_read(tmp_path):
    path = tmp_path / "x.parquet"
    time, q = np.arange(40) / 50, np.sin(np.arange(40) / 50)
    parquet.write_table(pa.table({"time": list(map(str, time)), "q j": pa.array(q).dictionary_encode()}), path)
    recording = identify.read_recording(path, model(), checked=False)
    np.testing.assert_array_equal(recording.time, time)
    np.testing.assert_array_equal(recording.q[:, 0], q)


def test_a_data_set_of_lists_that_unpacks_to_more_than_the_limit(small, tmp_path):
    (tmp_path / "meta").mkdir()
    (tmp_path / "data").mkdir()
    (tmp_path / "meta" / "info.json").write_text(json.dumps({"fps": 30, "features": {}}))
    lists = pa.ListArray.from_arrays(pa.array([0, 10**6], pa.int32()), pa.array(np.zeros(10**6)))
    path = tmp_path / "data" / "file.parquet"
    parquet.write_table(pa.table({"timestamp": [0.0], "observation.state": lists}), path)
    with pytest.raises(FileSizeError, match=rf"{path}: unpacks to 80\d* bytes"):
        identify.read_recording(tmp_path, model())


@pytest.mark.parametrize("name", ["x.urdf", "x.sdf", "x.xml", "x.toml", "x.csv", "map.toml", "loops.toml"])
def test_texts_that_are_larger_than_the_limit(name, small, tmp_path):
    path = tmp_path / name
    path.write_bytes(b" " * (10**6 + 1))
    (tmp_path / "y.csv").write_text("time,q j\n0,1\n")
    readers = {
        "x.toml": load_motion, "x.csv": lambda path: identify.read_recording(path, model()),
        "map.toml": lambda path: identify.read_recording(tmp_path / "y.csv", model(), path),
        "loops.toml": lambda path: add_loops(model(), path), "x.xml": lgsim.load_mjcf, "x.sdf": lgsim.load_sdf,
    }  # fmt: skip
    if name == "x.xml":
        pytest.importorskip("mujoco")
    with pytest.raises((FileSizeError, FileError, ScenarioError), match=rf"{path}: .*has 1000001 bytes, .* {VARIABLE}"):
        readers.get(name, read_urdf)(path)


def test_a_pipe_is_read_to_the_limit(small, tmp_path):
    """A device has no size to look at."""
    with pytest.raises(FileSizeError, match=r"/dev/zero: has at least 1048576 bytes"):
        read_bytes("/dev/zero")


@pytest.mark.parametrize("name", ["n" * 5000, "a/" * 4000 + "x.stl", "package://" + "p" * 5000 + "/x.stl"])
def test_names_of_meshes_that_no_system_takes(name, tmp_path):
    path = tmp_path / "x.urdf"
    path.write_text(MESH.replace("FILE", name))
    with pytest.raises(
        FileError, match=rf"^{path}:3: .*the mesh '.* \.\.\. cannot be read: File name too long"
    ) as caught:
        read_urdf(path, solids=True)
    assert caught.value.line == 3 and len(str(caught.value)) < 400


def test_meshes_that_are_larger_than_the_limit(small, tmp_path):
    (tmp_path / "x.urdf").write_text(MESH.replace("FILE", "x.obj"))
    (tmp_path / "x.obj").write_bytes(b"\n" * (10**6 + 1))
    with pytest.raises(FileError, match=rf"x\.urdf:3: .*x\.obj: has 1000001 bytes, .* {VARIABLE}"):
        read_urdf(tmp_path / "x.urdf", solids=True)


def test_parquet_metadata_that_contradict_each_other(tmp_path):
    """By their histograms pyarrow ended the process: more levels than a column that is never null has."""
    arrow = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.parquet")
    made = tmp_path / "x.parquet"
    schema = arrow.schema([arrow.field("x", arrow.float64(), nullable=True)])
    arrow.parquet.write_table(arrow.table({"x": [1.0, 2.0]}, schema=schema), made)
    content, nullable = made.read_bytes(), b"\x25\x02\x18\x01x"  # OPTIONAL, name x; REQUIRED is 0
    assert content.count(nullable) == 1
    made.write_bytes(content.replace(nullable, b"\x25\x00\x18\x01x"))
    code = f"from lgsim.support.reading.parquet import open_parquet; open_parquet({str(made)!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    # the second by pyarrow 16
    assert done.returncode == 1 and re.search("histogram|Unexpected end of stream", done.stderr)
