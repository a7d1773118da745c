"""Runs whose header or arrays say what cannot be are refused with their name, in one line."""

import io
import json

import numpy as np
import pytest

pytest.importorskip("pyarrow")

from lgsim.simulation import Trajectory
from tests import valid_files


@pytest.fixture(scope="module")
def run():
    """The content of a run, by name."""
    with np.load(io.BytesIO(valid_files.READERS["trajectory npz"]().files["x.npz"])) as file:
        return dict(file)


def refused(path, run, fault, **changed):
    arrays = {name: x for name, x in {**run, **changed}.items() if x is not None}
    np.savez(path, **arrays)
    with pytest.raises(ValueError, match=f"^{path}: expected a trajectory that lgsim wrote, got something") as caught:
        Trajectory.load(path)
    text = str(caught.value)
    assert type(caught.value) is ValueError and "\n" not in text
    # of arrays of other shapes the checks of types in tests speak first
    assert fault in text or "Type-check error" in text


@pytest.mark.parametrize(
    ("key", "value", "fault"),
    [
        ("places", -5, "an integration error with -5 places"),
        ("places", float("inf"), "an integration error with inf places"),
        ("places", 100, "an integration error with 100 places"),
        ("claimed", float("inf"), "places and order inf"),
        ("names", ["x"], "an integration error of shape"),
        ("units", [], "an integration error of shape"),
        ("size", [1.0], "an integration error of shape"),
        ("order", "high", "could not convert"),
        ("rate", None, "float()"),
    ],
)
def test_an_error_of_the_steps_that_cannot_be(key, value, fault, run, tmp_path):
    about = json.loads(str(run["about"]))
    about["step_error"][key] = value
    refused(tmp_path / "x.npz", run, fault, about=np.array(json.dumps(about)))


@pytest.mark.parametrize(("key", "fault"), [("method", "'method'"), ("dt", "'dt'"), ("topology", "'topology'")])
def test_a_header_without_a_key(key, fault, run, tmp_path):
    about = json.loads(str(run["about"]))
    del about[key]
    refused(tmp_path / "x.npz", run, fault, about=np.array(json.dumps(about)))


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({"about": np.array("[" * 10_000)}, "recursion"),
        ({"about": np.array("[1]")}, "indices"),
        ({"q": None}, "'q'"),
        ({"q": np.zeros((3, 5))}, "q: expected shape"),
        ({"q": np.full((8, 6), "x")}, "not numeric"),
        ({"time": np.zeros((8, 1))}, "time"),
        ({"time": np.array(1.0)}, ""),
        ({"step_error": np.zeros((3, 10))}, "an integration error of shape (3, 10)"),
        ({"model.drives": np.zeros((2, 2))}, "drives"),
        ({"model.gravity": None}, "gravity"),
    ],
)
def test_arrays_that_cannot_be(changed, fault, run, tmp_path):
    refused(tmp_path / "x.npz", run, fault, **changed)
