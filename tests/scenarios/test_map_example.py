"""``example_map``: a map that the command reads at once, for the columns of files as programs write them."""

import numpy as np
import pytest

import lgsim
from lgsim.scenarios import load_recording_map
from lgsim.scenarios.map_example import example_map

TIME = 0.002 * np.arange(12)


@pytest.fixture(scope="module")
def arm():
    """Three joints as a vendor calls them, and a gripper."""
    build, parent = lgsim.ModelBuilder(), "world"
    for i in range(3):
        joint = lgsim.joints.Revolute()
        build.add_body(f"link{i}", parent, joint, joint_name=f"lab_joint_{i + 1}", mass=1.0, inertia=np.eye(3))
        parent = f"link{i}"
    build.add_body("finger", parent, lgsim.joints.Prismatic(), joint_name="gripper", mass=1.0, inertia=np.eye(3))
    return build.build()


def write(path, columns):
    rows = np.stack(list(columns.values()), axis=1)
    path.write_text(",".join(columns) + "\n" + "".join(",".join(map(repr, row.tolist())) + "\n" for row in rows))
    return path


def shown_and_read(path, model, folder):
    """The text of the map, and the recording that is read with it."""
    text = example_map(path, model)
    (folder / "map.toml").write_text(text)
    given = load_recording_map(folder / "map.toml", model)
    return text, given.read(path, model)


def signals(count, seed=0):
    return np.random.default_rng(seed).normal(size=(count, len(TIME))) / 10


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("pattern", ["actual_q_{}", "q{}", "Pos{}", "joint_pos[{}]"])
def test_columns_by_their_number(arm, pattern, first, tmp_path):
    """Three numbered columns are the three numbered joints, counted from 0 or 1; what commands say is left out."""
    q, target, effort = signals(3), signals(3, 1), signals(3, 2)
    numbers = [first + i for i in range(3)]
    columns = {"timestamp_ms": 1e3 * TIME} | {f"target_q_{n}": x for n, x in zip(numbers, target, strict=True)}
    columns |= {pattern.format(n): x for n, x in zip(numbers, q, strict=True)}
    columns |= {f"tau_{n}": x for n, x in zip(numbers, effort, strict=True)} | {"q gripper [mm]": 1e3 * TIME}
    text, found = shown_and_read(write(tmp_path / "run.csv", columns), arm, tmp_path)
    np.testing.assert_allclose(found.time, TIME, atol=1e-15)
    np.testing.assert_allclose(found.q, np.stack([*q, TIME], axis=1), atol=1e-15)
    np.testing.assert_allclose(found.tau[:, :3], effort.T, atol=1e-15)
    assert text.count("guessed by its number: check") == 6
    assert f'"target_q_{first}" = "ignore"   # a command' in text
    # another map has a comment for what could not be known, and says what to do
    columns.pop("q gripper [mm]")
    text = example_map(write(tmp_path / "less.csv", columns), arm)
    assert "# no column found for q gripper: name one above, lock the joint, or give a constant" in text


def test_columns_by_similar_names(arm, tmp_path):
    """Another case and other separators; the second column of a quantity is ignored, and texts and strangers stay."""
    q = signals(4)
    titles = ["LabJoint1Position", "LAB-1-2 position", "lab_joint_3/position", "Gripper_Pos_mm"]
    titles[1] = "labJoint2_pos"
    columns = {"t": np.round(TIME * 1e6)} | dict(zip(titles, [*q[:3], 1e3 * q[3]], strict=True))
    columns |= {"q lab_joint_3": q[0], "temp/motor": q[1]}
    text, found = shown_and_read(write(tmp_path / "run.csv", columns), arm, tmp_path)
    np.testing.assert_allclose(found.time, TIME, atol=1e-15)
    np.testing.assert_allclose(found.q, q.T, atol=1e-14)
    assert "unit by its usual step of 2000: check" in text
    assert '"q lab_joint_3" = "ignore"   # \'lab_joint_3/position\' is q lab_joint_3 already' in text
    assert '# "temp/motor" = {' in text
    assert [finding.where for finding in found.report.of_kind("unused column")] == ["temp/motor"]


def test_what_cannot_be_matched_is_a_comment(arm, tmp_path):
    """The map is read, and the reader names all that is missing; five columns are not four joints."""
    columns = {'we"ird\\ [°C]': TIME} | {f"q{i}": TIME for i in range(5)}
    path = write(tmp_path / "run.csv", {name.replace('"', ""): x for name, x in columns.items()})
    text = example_map(path, arm)
    assert text.count('# "q') == 5 and "# rate = 1000.0" in text
    (tmp_path / "map.toml").write_text(text)
    with pytest.raises(ValueError, match=r"expected columns for the time, q lab_joint_1, .*, q gripper, got none"):
        load_recording_map(tmp_path / "map.toml", arm).read(path, arm)


def test_columns_of_a_vendor(tmp_path):
    """Names as a UR logs them, with white space: forces and speeds of the tool are not those of joints."""
    build, parent = lgsim.ModelBuilder(), "world"
    for joint in ("shoulder_pan", "shoulder_lift", "elbow", "wrist_1", "wrist_2", "wrist_3"):
        build.add_body(joint, parent, lgsim.joints.Revolute(), joint_name=f"{joint}_joint", mass=1.0, inertia=np.eye(3))
        parent = joint
    kinds = ("actual_TCP_force", "actual_TCP_speed", "target_qd", "actual_q", "actual_qd", "actual_current", "tau_ext")
    columns = {"timestamp": TIME} | dict(zip([f"{k}_{i}" for k in kinds for i in range(6)], signals(42), strict=True))
    rows = [" ".join(columns), *(" ".join(map(repr, row)) for row in np.stack([*columns.values()], 1).tolist())]
    (tmp_path / "run.txt").write_text("\n".join(rows))
    text, found = shown_and_read(tmp_path / "run.txt", build.build(), tmp_path)
    for channel, kind in (("q", "actual_q"), ("v", "actual_qd"), ("current", "actual_current")):
        expected = np.stack([columns[f"{kind}_{i}"] for i in range(6)], axis=1)
        np.testing.assert_array_equal(found.channels[channel], expected)
    assert found.tau is None and text.count("   # guessed by its number: check") == 18


def test_a_floating_base(tmp_path):
    model = lgsim.ModelBuilder().add_body(
        "body", "world", lgsim.joints.Free(), joint_name="root_joint", mass=1.0, inertia=np.eye(3)
    ).build()  # fmt: skip
    columns = {"t": TIME} | {f"base_pos_{x}": TIME + i for i, x in enumerate("xyz")}
    columns |= {f"base_quat_{x}": np.full(len(TIME), float(x == "w")) for x in "xyzw"}
    _, found = shown_and_read(write(tmp_path / "run.csv", columns), model, tmp_path)
    np.testing.assert_allclose(found.q[:, :3], TIME[:, None] + np.arange(3), atol=1e-15)
    np.testing.assert_array_equal(found.q[:, 3:], np.tile([1.0, 0, 0, 0], (len(TIME), 1)))


def test_arrays_of_a_matlab_file(arm, tmp_path):
    """Matrices by the name of a channel are read; the others, and what is no column, are comments."""
    scipy_io = pytest.importorskip("scipy.io")
    q = signals(4).T
    stored = {"t": 1e3 * TIME, "q": q, "pose": q[:, :3], "gains": np.eye(3), "log": {"tau": q, "tau_gripper": q[:, 3]}}
    scipy_io.savemat(tmp_path / "run.mat", stored)
    text, found = shown_and_read(tmp_path / "run.mat", arm, tmp_path)
    np.testing.assert_allclose(found.time, TIME, atol=1e-15)
    np.testing.assert_array_equal(found.q, q)
    assert found.tau is not None
    np.testing.assert_array_equal(found.tau[:, 3], q[:, 3])
    assert '# "q": array of 4 columns, in the model\'s order' in text
    assert '# "pose": array of 3 columns, not read: rename it to one of q, v,' in text
    assert '# "log.tau": array of 4 columns, not read: ' in text
    assert '# "gains": an array of shape (3, 3) is not a column of 12 numbers' in text
