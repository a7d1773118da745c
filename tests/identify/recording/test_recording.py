"""Recordings: shapes, weights, pieces, splits, files."""

import chex
import numpy as np
import pytest

import lgsim
from lgsim.identify import Recording, smooth
from lgsim.identify.recording.plausibility import check_recording
from lgsim.identify.recording.report import Finding, Report
from tests.identify.recording.motions import arm, clean, single


@pytest.fixture(scope="module")
def small():
    """Fifty samples of all channels, three numbers missing."""
    motion = clean()[:50]
    model = arm().add_frame("imu", "flange")
    q = motion.q.copy()
    q[[3, 4, 5], 2] = np.nan
    rng = np.random.default_rng(0)
    return Recording(
        model, motion.time, q, motion.v, a=motion.v**2, tau=motion.tau, current=motion.tau / 3,
        imu={"imu": rng.standard_normal((50, 6))}, source="a bench",
    )  # fmt: skip


def same(a, b):
    chex.assert_trees_all_equal((a.time, a.weights, a.channels), (b.time, b.weights, b.channels))


def test_weights_are_one_where_there_is_a_number(small):
    assert set(small.channels) == {"q", "v", "a", "tau", "current", "imu imu"}
    assert np.argwhere(~small.valid("q")).tolist() == [[3, 2], [4, 2], [5, 2]]
    assert all(np.all(small.valid(name)) for name in small.channels if name != "q")


def test_weights_of_a_quaternion_go_together():
    """Of the seven numbers of a free joint, the last four are one rotation with three degrees of freedom."""
    q = np.tile([1.0, 2, 3, 1, 0, 0, 0], (3, 1))
    q[0, 1], q[1, 5] = np.nan, np.nan
    free = Recording(single(lgsim.joints.Free()), np.arange(3.0), q)
    expected = [[1, 0, 1, 1, 1, 1], [1, 1, 1, 0, 0, 0], [1, 1, 1, 1, 1, 1]]
    np.testing.assert_array_equal(free.weights["q"], expected)


@pytest.mark.usefixtures("without_import_hook")
def test_parts(small):
    part = small[10:20]
    assert len(part) == 10
    np.testing.assert_array_equal(part.imu["imu"], small.imu["imu"][10:20])
    np.testing.assert_array_equal(part.weights["tau"], small.weights["tau"][10:20])
    np.testing.assert_array_equal(small.joint("tau", "joint4"), small.tau[:, 3:4])
    same(small[np.arange(50) >= 10][:10], part)
    with pytest.raises(TypeError, match=r"slice such as \[10:20\]"):
        small["q"]


def test_pieces_end_at_long_gaps():
    time = np.concatenate([np.arange(20), 25 + np.arange(10), 200 + np.arange(5)]).astype(float)
    recording = Recording(arm(), time, np.zeros((35, 7)))
    assert recording.dt == 1
    assert recording.segments == [slice(0, 30), slice(30, 35)]


@pytest.mark.parametrize("blocks", [1, 5])
def test_split_keeps_stretches_for_validation(blocks):
    train, validation = clean().split(0.25, blocks)
    assert len(train) + len(validation) == len(clean())
    assert len(validation.segments) == blocks
    np.testing.assert_allclose(len(validation) / len(clean()), 0.25, atol=0.01)
    assert np.intersect1d(train.time, validation.time).size == 0
    np.testing.assert_array_equal(np.sort(np.concatenate([train.time, validation.time])), clean().time)
    assert "validation" in train.history[-1]


def test_split_that_leaves_nothing(small):
    with pytest.raises(ValueError, match="between 0 and 1"):
        small.split(1.0)
    with pytest.raises(ValueError, match="at least two samples"):
        small.split(0.1, blocks=10)


def test_a_file_keeps_all_of_it(small, tmp_path):
    checked = check_recording(small)
    loaded = Recording.load(checked.save(tmp_path / "run.npz"))
    same(loaded, checked)
    assert loaded.report == checked.report
    assert {finding.kind for finding in loaded.report} >= {"missing values"}
    assert (loaded.source, loaded.history) == ("a bench", ("checked",))
    assert loaded.model.frame_names == checked.model.frame_names
    np.testing.assert_array_equal(loaded.model.inertias, checked.model.inertias)


def test_other_files_are_refused(small, tmp_path):
    np.savez(tmp_path / "other.npz", a=np.zeros(3))
    with pytest.raises(ValueError, match="expected a recording that lgsim wrote"):
        Recording.load(tmp_path / "other.npz")
    with pytest.raises(FileNotFoundError, match="no such file"):
        Recording.load(tmp_path / "none.npz")
    with pytest.raises(ValueError, match=r"ends in \.npz or \.csv or \.parquet"):
        small.save(tmp_path / "run.mat")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"v": np.zeros((5, 6))}, r"v: expected shape \(5, 7\)"),
        ({"weights": {"tau": np.ones((5, 7))}}, "expected channels of q, got 'tau'"),
        ({"weights": {"q": -np.ones((5, 7))}}, "nonnegative values"),
        ({"imu": {"nose": np.zeros((5, 6))}}, "expected frames of the model, got 'nose'"),
    ],
)
def test_what_does_not_fit_the_machine(fields, message):
    with pytest.raises(ValueError, match=message):
        Recording(arm(), np.arange(5.0), np.zeros((5, 7)), **fields)


def test_a_computed_motion_as_a_recording():
    motion = lgsim.simulate(arm(), np.zeros(7), duration=0.01, dt=1e-3)
    recording = Recording.from_trajectory(motion)
    np.testing.assert_array_equal(recording.q, motion.q)
    np.testing.assert_array_equal(recording.tau, motion.tau)


def test_findings_have_known_kinds():
    with pytest.raises(ValueError, match="kind: expected one of"):
        Finding("gremlin", "q", 1, "seen", "done")
    with pytest.raises(ValueError, match="kind: expected one of"):
        Report().of_kind("gremlin")


def test_smoothing_is_noted():
    done = smooth(clean()[:200])
    assert done.history[0].startswith("smoothed by Spline(spacing=")
