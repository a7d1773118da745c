"""Files as labs have them: headerless, without times, side by side, mixed columns; all that is missing at once."""

import numpy as np
import pytest

import lgsim
from lgsim.identify import read_recording
from tests.identify.recording.motions import arm, single

ROWS = np.array([[0.0, 10.0, 1.0, 4.0], [0.5, 20.0, 2.0, 6.0], [1.0, 40.0, 3.0, 8.0]])
"""Times, s, and three columns of numbers."""


@pytest.fixture(scope="module")
def pair():
    """Two revolute joints, j1 and j2."""
    build = lgsim.ModelBuilder()
    build.add_body("a", "world", lgsim.joints.Revolute(), joint_name="j1", mass=1.0, inertia=np.eye(3))
    build.add_body("b", "a", lgsim.joints.Revolute(), joint_name="j2", mass=1.0, inertia=np.eye(3))
    return build.build()


def text(path, lines):
    path.write_text("\n".join(lines) + "\n")
    return path


def rows(values, between=","):
    return [between.join(repr(float(x)) for x in row) for row in values]


def read(path, model, map=None):
    return read_recording(path, model, map, checked=False)


def test_offset_and_scale_of_a_column(tmp_path):
    """value = sign scale cell + offset, in the unit: an encoder of 4096 counts per turn, at 2048 in the zero pose."""
    path = text(tmp_path / "run.csv", ["t,enc", *rows(ROWS[:, :2])])
    entry = {"joint": "body", "quantity": "q", "unit": "rev", "sign": -1, "scale": 1 / 4096, "offset": 0.5}
    found = read(path, single(lgsim.joints.Revolute()), {"enc": entry})
    np.testing.assert_allclose(found.q[:, 0], 2 * np.pi * (0.5 - ROWS[:, 1] / 4096), rtol=1e-15)
    # 180 degrees are added after the scale, not scaled with it
    degrees = {"joint": "body", "quantity": "q", "unit": "deg", "scale": 3.0, "offset": 180.0}
    found = read(path, single(lgsim.joints.Revolute()), {"enc": degrees})
    np.testing.assert_allclose(found.q[:, 0], np.deg2rad(3 * ROWS[:, 1] + 180), rtol=1e-15)


def test_a_joint_is_a_sum_of_columns(pair, tmp_path):
    """Motors that move two joints: an entry with a name of its own, or of a column that it replaces."""
    path = text(tmp_path / "run.csv", ["t,m1,m2,q j2", *rows(ROWS)])
    mixes = {
        "q j1 [deg]": {"columns": {"m1": 1.0, "m2": -0.5}},
        "q j2": {"columns": {"q j2": 2.0, "m2": 0.25}, "joint": "j2", "quantity": "q", "offset": 0.125},
    }
    found = read(path, pair, mixes)
    np.testing.assert_allclose(found.q[:, 0], np.deg2rad(ROWS[:, 1] - 0.5 * ROWS[:, 2]), rtol=1e-15)
    np.testing.assert_allclose(found.q[:, 1], 2 * ROWS[:, 3] + 0.25 * ROWS[:, 2] + 0.125, rtol=1e-15)
    assert len(found.report) == 0, str(found.report)


@pytest.mark.parametrize("ending", [".csv", ".txt", ".dat", ".tsv"])
@pytest.mark.parametrize("between", [",", ";", "\t", " ", "   "])
def test_names_of_a_file_without_a_header(pair, between, ending, tmp_path):
    """In place of a header as well, or from the comment that ``numpy.savetxt`` writes."""
    names = {"options": {"names": ["t", "q j1", "ignored", "q j2 [deg]"]}}
    for header in ([], [between.join("abcd")]):
        found = read(text(tmp_path / f"run{ending}", [*header, *rows(ROWS, between)]), pair, names)
        np.testing.assert_array_equal(found.time, ROWS[:, 0])
        np.testing.assert_allclose(found.q, np.stack([ROWS[:, 1], np.deg2rad(ROWS[:, 3])], 1), rtol=1e-15)
    title = between.strip(" ").join if between.strip(" ") else " ".join
    np.savetxt(tmp_path / "saved.txt", ROWS, delimiter=between, header=title(["t", "q_j1", "x", "q_j2 [deg]"]))
    found = read(tmp_path / "saved.txt", pair)
    np.testing.assert_allclose(found.q, np.stack([ROWS[:, 1], np.deg2rad(ROWS[:, 3])], 1), rtol=1e-15)


def test_white_space_with_a_header(pair, tmp_path):
    found = read(text(tmp_path / "run.txt", ["  t [ms]  q_j1   q_j2 [deg]", *rows(ROWS[:, :3], "  ")]), pair)
    np.testing.assert_allclose(found.time, ROWS[:, 0] / 1000, rtol=1e-15)
    np.testing.assert_allclose(found.q, np.stack([ROWS[:, 1], np.deg2rad(ROWS[:, 2])], 1), rtol=1e-15)


def test_a_file_without_times_has_a_rate(tmp_path):
    model, path = single(lgsim.joints.Revolute()), text(tmp_path / "run.csv", ["q body", "1", "2", "5"])
    found = read(path, model, {"options": {"rate": 250.0}})
    np.testing.assert_allclose(found.time, [0, 0.004, 0.008], rtol=1e-15)
    np.testing.assert_array_equal(found.q[:, 0], [1, 2, 5])
    timed = text(tmp_path / "timed.csv", ["t,q body", *rows(ROWS[:, :2])])
    with pytest.raises(ValueError, match=r'timed\.csv: rate: expected a file without times.*map it to "ignore"'):
        read(timed, model, {"options": {"rate": 250.0}})
    found = read(timed, model, {"t": "ignore", "options": {"rate": 250.0}})
    np.testing.assert_allclose(found.time, [0, 0.004, 0.008], rtol=1e-15)


def test_files_side_by_side(pair, tmp_path):
    """Columns of the same names in each file; torques on a clock of their own, in ms, are interpolated."""
    text(tmp_path / "q.csv", ["t,j1,j2", *rows(ROWS[:, :3])])
    clock = np.array([0, 250, 500, 750, 1000])
    forces = np.stack([clock, 3.0 * clock, 7 - 2.0 * clock], axis=1)
    text(tmp_path / "tau.csv", ["time [ms],j1,j2", *rows(forces)])
    positions = {name: {"joint": name, "quantity": "q"} for name in ("j1", "j2")}
    found = read(tmp_path / "q.csv", pair, {**positions, "options": {"files": ["tau.csv"]}})
    np.testing.assert_array_equal(found.q, ROWS[:, 1:3])
    np.testing.assert_allclose(found.tau, np.stack([3e3 * ROWS[:, 0], 7 - 2e3 * ROWS[:, 0]], 1), rtol=1e-12)
    assert "q.csv (sha256 " in found.source and "tau.csv (sha256 " in found.source
    # headerless, with a clock that the map names, on fewer times: nothing is invented outside of them
    text(tmp_path / "more.txt", rows(forces[1:4], " "))
    files = {"files": {"more.txt": ["ms", "a", "b"]}}
    forces = {"more/ms": {"quantity": "time", "unit": "ms"}, "more/a": "tau j1", "more/b": "ignore"}
    found = read(tmp_path / "q.csv", pair, {**positions, **forces, "options": files})
    np.testing.assert_allclose(found.tau[1, 0], 1500.0, rtol=1e-12)
    assert found.valid("tau")[:, 0].tolist() == [False, True, False]
    # a common rate for files without times
    text(tmp_path / "p.csv", ["q j1,q j2", *rows(ROWS[:, 1:3])])
    text(tmp_path / "effort.csv", ["tau j1", "1", "2", "3"])
    found = read(tmp_path / "p.csv", pair, {"options": {"files": ["effort.csv"], "rate": 10}})
    np.testing.assert_array_equal(found.tau[:, 0], [1, 2, 3])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"files": ["none.csv"]}, r"none\.csv: no such file"),
        ({"files": "tau.csv"}, r"map: files: expected a list of strings, got 'tau\.csv'"),
        (
            {"files": ["late.csv"]},
            r"late\.csv: expected times that overlap with those of q\.csv, got 900 to 901 s and 0",
        ),
        ({"files": ["tau.npz"]}, r"tau\.npz: expected named columns, in a file of another name, got 0 columns"),
        ({"files": ["f.csv", "f.txt"]}, r"f\.txt: expected named columns, in a file of another name, got 1 columns"),
        ({"files": ["bare.csv"]}, r"bare\.csv: expected a column for the time"),
        ({"names": ["t", "q j1"]}, r"q\.csv: names: expected 3 names of columns, got 2"),
        ({"names": ["t", "x", "t"]}, r"map: names: expected distinct names, got 't' twice"),
        ({"rate": -1}, r"map: rate: expected a positive number of samples per second, got -1"),
        ({"rate": True}, r"map: rate: expected a positive number"),
        ({"rate": float("nan")}, r"map: rate: expected a positive number"),
    ],
)
def test_options_that_are_refused(pair, options, message, tmp_path):
    text(tmp_path / "q.csv", ["t,q j1,q j2", *rows(ROWS[:, :3])])
    text(tmp_path / "late.csv", ["t,tau j1", "900,1", "901,2"])
    np.savez(tmp_path / "tau.npz", t=ROWS[:, 0], tau=ROWS[:, 1:3])
    for name in ("f.csv", "f.txt"):
        text(tmp_path / name, ["t,tau j1", "0,1", "1,2"])
    text(tmp_path / "bare.csv", ["tau j1", "1", "2"])
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        read(tmp_path / "q.csv", pair, {"options": options})


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"columns": {"m1": "x"}}, "'q j2': columns: expected a finite number, got 'x'"),
        ({"columns": {}}, "'q j2': columns: expected a table such as"),
        ({"columns": {"m3": 1.0}}, "the map has column 'm3'; the file has t, q j1, m1"),
        ({"columns": {"m1": 1.0}, "quantity": "q"}, "joint: expected one of j1, j2"),
        ({"columns": {"m1": 1.0}, "offset": "x"}, "offset: expected a finite number, got 'x'"),
    ],
)
def test_sums_that_are_refused(pair, entry, message, tmp_path):
    path = text(tmp_path / "run.csv", ["t,q j1,m1", *rows(ROWS[:, :3])])
    with pytest.raises(ValueError, match=message):
        read(path, pair, {"q j2": entry})


def test_all_that_is_missing_is_named_at_once(tmp_path):
    """Of the file and of the map, in one error each; what a missing column would bring is not missing twice."""
    path = text(tmp_path / "run.csv", ["q joint3,x", "0,1"])
    with pytest.raises(ValueError) as caught:
        read(path, arm())
    wanted = ", ".join(f"q joint{i}" for i in (1, 2, 4, 5, 6, 7))
    assert f"expected columns for the time, {wanted}, got none" in str(caught.value)
    assert "option rate" in str(caught.value) and "not read: x" in str(caught.value)
    map = {"a": "q joint1", "b": "q joint2", "q joint5": {"columns": {"x": 1.0, "c": 2.0}}}
    with pytest.raises(ValueError) as caught:
        read(path, arm(), map)
    assert "the map has columns 'c', 'a', 'b'; the file has q joint3, x" in str(caught.value)
    assert str(caught.value).endswith("; there is no column either for the time, q joint4, q joint6, q joint7")


def test_a_file_of_numbers_without_names(tmp_path):
    path = text(tmp_path / "run.txt", rows(ROWS, " "))
    with pytest.raises(ValueError, match=r"run\.txt:1: expected column names, got numbers.*the option names of a map"):
        read(path, arm())
