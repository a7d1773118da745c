"""Checkpoints: what is read as it was written, and what is refused."""

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
