"""Checkpoints: what is read as it was written, and what is refused."""

import os
import zipfile

import jax.numpy as jnp
import numpy as np
import pytest

from lgsim.support import checkpoint as checkpoints
from lgsim.support.checkpoint import Checkpoint, CheckpointError

STATE = {"x": jnp.array([1.5, -0.25]), "count": jnp.array(3), "flag": jnp.array(True)}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state.npz"


def test_arrays_come_back_as_they_were(path, dtype):
    state = STATE | {"x": jnp.asarray([0.1, np.nan], dtype), "none": None}
    Checkpoint(path, "mark").write(state)
    found = Checkpoint(path, "mark").read(state)
    assert found["none"] is None
    for name in ("x", "count", "flag"):
        assert found[name].dtype == state[name].dtype
        np.testing.assert_array_equal(found[name], state[name])
    assert Checkpoint(path.with_name("new.npz"), "mark").read(state) is state


def test_other_work_is_refused(path, monkeypatch):
    """Another mark, arrays of another number or shape, another version; the file stays as it is."""
    Checkpoint(path, "mark").write(STATE)
    kept = path.read_bytes()
    with pytest.raises(CheckpointError, match=r"of another guess \(fingerprint mark, expected other\); take another"):
        Checkpoint(path, "other", owner="guess").read(STATE)
    for other in (STATE | {"more": jnp.zeros(1)}, STATE | {"x": jnp.zeros(3)}, {"x": STATE["x"]}):
        with pytest.raises(CheckpointError, match=r"state\.npz: "):
            Checkpoint(path, "mark").read(other)
    monkeypatch.setattr(checkpoints, "own_version", lambda: "99.0")
    with pytest.raises(CheckpointError, match=r"of another version of lgsim \(.*, not 99\.0\)"):
        Checkpoint(path, "mark").read(STATE)
    assert path.read_bytes() == kept


@pytest.mark.parametrize("content", [b"", b"hello", "cut", "other"])
def test_what_is_no_checkpoint(content, path):
    if content == "cut":
        Checkpoint(path, "mark").write(STATE)
        path.write_bytes(path.read_bytes()[:300])
    elif content == "other":
        np.savez(path, a=np.zeros(2))
    else:
        path.write_bytes(content)
    with pytest.raises(CheckpointError, match=r"state\.npz: expected a checkpoint that lgsim wrote"):
        Checkpoint(path, "mark").read(STATE)


def test_places_where_no_file_can_be(tmp_path, monkeypatch):
    """Found before any work is done."""
    with pytest.raises(CheckpointError, match="there is no such folder for the checkpoint"):
        Checkpoint(tmp_path / "nowhere" / "state.npz", "mark")
    with pytest.raises(CheckpointError, match="expected a file for the checkpoint, got a folder"):
        Checkpoint(tmp_path, "mark")

    def locked(**_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(checkpoints.tempfile, "TemporaryFile", locked)
    with pytest.raises(CheckpointError, match=r"folder cannot be written \(Permission denied\)"):
        Checkpoint(tmp_path / "state.npz", "mark")


def test_what_is_no_file(tmp_path, path):
    """A pipe would be waited for, and a state written into it is not kept."""
    os.mkfifo(path)
    with pytest.raises(CheckpointError, match="expected a file for the checkpoint, got a pipe or a device"):
        Checkpoint(path, "mark")


def member(header):
    """The bytes of an array of numpy with a header of one's own."""
    text = header.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


DEEP = "(" * 500 + "1" + ")" * 500
HEADERS = {
    "tokens": "{'descr': '<f8', 'fortran_order': False, 'shape': (2,",
    "syntax": "{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }}",
    "deep": f"{{'descr': '<f8', 'fortran_order': False, 'shape': {DEEP}}}",
    "large": "{'descr': '<f8', 'fortran_order': False, 'shape': (10000000000000,), }",
    "negative": "{'descr': '<f8', 'fortran_order': False, 'shape': (-2,), }",
    "objects": "{'descr': '|O', 'fortran_order': False, 'shape': (2,), }",
    "records": "{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (2,), }",
    "nothing": "",
}


@pytest.mark.parametrize("header", HEADERS)
@pytest.mark.parametrize("name", ["about", "leaf2"])
def test_arrays_with_damaged_headers(header, name, path):
    Checkpoint(path, "mark").write(STATE)
    with zipfile.ZipFile(path) as archive:
        members = {each: archive.read(each) for each in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for each, content in members.items():
            archive.writestr(each, member(HEADERS[header]) if each == f"{name}.npy" else content)
    with pytest.raises(CheckpointError, match=r"state\.npz: ") as caught:
        Checkpoint(path, "mark").read(STATE)
    assert type(caught.value) is CheckpointError and len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("name", ["about", "leaf0", "more"])
def test_an_array_that_unpacks_to_much_more(name, path, monkeypatch):
    """A file of 1 MB with zeros that take 1 GB: nothing of them is read."""
    Checkpoint(path, "mark").write(STATE)
    with zipfile.ZipFile(path) as archive:
        members = {each: archive.read(each) for each in archive.namelist()} | {f"{name}.npy": b"\0" * 10_000_000}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for each, content in members.items():
            archive.writestr(each, content)
    monkeypatch.setattr(checkpoints.np, "load", lambda *_, **__: pytest.fail("it was read"))
    with pytest.raises(CheckpointError, match=r"state\.npz: "):
        Checkpoint(path, "mark").read(STATE)


def test_flipped_bytes(path):
    """Each byte of a small file in turn: what is read is what was written, or refused."""
    Checkpoint(path, "mark").write(STATE)
    content = path.read_bytes()
    for place in range(0, len(content), 3):
        path.write_bytes(content[:place] + bytes([content[place] ^ 0x55]) + content[place + 1 :])
        try:
            found = Checkpoint(path, "mark").read(STATE)
        except CheckpointError as error:
            assert len(str(error).splitlines()) == 1
        else:
            assert {name: x.shape for name, x in found.items()} == {name: x.shape for name, x in STATE.items()}
