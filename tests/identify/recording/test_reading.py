"""Files of recorded motion: names, maps, units, and clear errors."""

import csv

import jax.numpy as jnp
import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from scipy.spatial.transform import Rotation

import lgsim
from lgsim.identify import Recording, read_recording
from lgsim.support.packages import package
from tests.identify.recording.motions import arm, clean, single

SAMPLES = 40


@pytest.fixture(scope="module")
def motion():
    return clean()[:SAMPLES]


@pytest.fixture(scope="module")
def robot():
    """A body that flies, with a ball, a slide, two joints whose names begin alike, and one that follows."""
    build, unit = lgsim.ModelBuilder(), jnp.eye(3)
    build.add_body("trunk", "world", lgsim.joints.Free(), joint_name="root_joint", mass=1.0, inertia=unit)
    build.add_body("a", "trunk", lgsim.joints.Revolute(), joint_name="arm", mass=1.0, inertia=unit)
    build.add_body("b", "trunk", lgsim.joints.Revolute(), joint_name="arm_left", mass=1.0, inertia=unit)
    build.add_body("c", "trunk", lgsim.joints.Spherical(), joint_name="hip", mass=1.0, inertia=unit)
    build.add_body("d", "trunk", lgsim.joints.Prismatic(), joint_name="rail", mass=1.0, inertia=unit)
    return build.build().add_frame("imu", "trunk")


def write(path, columns, digits=17):
    """A csv file as any program writes it."""
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(columns)
        rows.writerows([[f"{x:.{digits}g}" for x in row] for row in zip(*columns.values(), strict=True)])
    return path


def names(motion, q, v="", tau="", time="t"):
    """Columns of a recording under names with the joint in place of {}."""
    columns = {time: motion.time}
    for pattern, array in ((q, motion.q), (v, motion.v), (tau, motion.tau)):
        if pattern:
            columns |= {pattern.format(name): array[:, i] for i, name in enumerate(motion.model.joint_names)}
    return columns


STYLES = [
    {"q": "q_{}", "v": "v_{}", "tau": "tau_{}"},
    {"q": "{}_position", "v": "{}_velocity", "tau": "{}_effort", "time": "timestamp"},
    {"q": "pos.{}", "v": "vel.{}", "tau": "torque.{}", "time": "Time"},
    {"q": "/joint_states/{}/position", "v": "/joint_states/{}/velocity", "tau": "/joint_states/{}/effort"},
    {"q": "{} angle (rad)", "v": "{} dq [rad/s]", "tau": "measured_torque_{} [N m]", "time": "time [s]"},
    {"q": "q[{}]", "v": "qdot[{}]", "tau": "tau[{}]", "time": "time (s)"},
]


@pytest.mark.parametrize("style", STYLES, ids=lambda style: style["q"])
def test_usual_names_in_any_order(motion, style, tmp_path):
    columns = list(names(motion, **style).items())
    np.random.default_rng(0).shuffle(columns)
    recording = read_recording(write(tmp_path / "run.csv", dict(columns)), arm())
    for name in ("time", "q", "v", "tau"):
        np.testing.assert_array_equal(getattr(recording, name), getattr(motion, name))
    assert len(recording.report) == 0, str(recording.report)
    assert recording.source.startswith("run.csv (sha256 ")


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_what_a_recording_saves_is_read_without_a_map(robot, ending, tmp_path):
    """All channels, with holes, of joints of all kinds."""
    rng, n = np.random.default_rng(1), 30
    q = rng.standard_normal((n, robot.nq))
    for start in (3, 9):
        q[:, start : start + 4] /= np.linalg.norm(q[:, start : start + 4], axis=1, keepdims=True)
    q[4, 7], q[5, 9:13] = np.nan, np.nan
    channels = {name: rng.standard_normal((n, robot.nv)) for name in ("v", "a", "tau", "current")}
    channels["tau"][3:6, 8] = np.nan
    saved = Recording(robot, 0.01 * np.arange(n), q, imu={"imu": rng.standard_normal((n, 6))}, **channels)
    read = read_recording(saved.save(tmp_path / f"run{ending}"), robot, checked=False)
    np.testing.assert_array_equal(read.time, saved.time)
    assert read.channels.keys() == saved.channels.keys()
    for name, array in saved.channels.items():
        np.testing.assert_array_equal(read.channels[name], array, err_msg=name)
        np.testing.assert_array_equal(read.weights[name], saved.weights[name], err_msg=name)
    assert len(read.report) == 0


@pytest.mark.slow
def test_a_trajectory_saved_as_csv_is_a_recording(tmp_path):
    motion = lgsim.simulate(arm(), np.zeros(7), duration=0.02, dt=1e-3)
    read = read_recording(motion.save(tmp_path / "run.csv"), arm(), checked=False)
    for name in ("time", "q", "v", "tau"):
        np.testing.assert_array_equal(getattr(read, name), getattr(motion, name))
    unused = [finding.where for finding in read.report.of_kind("unused column")]
    assert unused == ["kinetic energy [J]", "potential energy [J]", *motion.step_error.columns]


MAP = """
stamp = "time [ms]"
nonsense = "ignore"
E1 = { joint = "joint1", quantity = "q", unit = "deg", sign = -1 }
E2 = "q joint2 [deg]"
W1 = { joint = "joint1", quantity = "v", unit = "rpm", sign = -1 }
M1 = { joint = "joint1", quantity = "tau", scale = 50.0, unit = "mNm" }
I2 = { joint = "joint2", quantity = "current", unit = "mA" }

[options.constants]
"q joint3" = 0.5
"q joint4 [deg]" = -90
"q joint5" = 0
"q joint6" = 1.5
"q joint7" = 0
"""


def test_a_map_says_units_signs_and_constants(motion, tmp_path):
    """The same by a TOML file and by a dict of the same shape."""
    (tmp_path / "map.toml").write_text(MAP)
    rng = np.random.default_rng(2)
    raw = {name: rng.standard_normal(SAMPLES) for name in ("nonsense", "E2", "W1", "M1", "E1", "I2", "extra")}
    path = write(tmp_path / "run.csv", raw | {"stamp": 1e3 * motion.time})
    read = read_recording(path, arm(), tmp_path / "map.toml", checked=False)
    np.testing.assert_allclose(read.time, motion.time, rtol=1e-15)
    np.testing.assert_allclose(read.q[:, 0], -np.deg2rad(raw["E1"]), rtol=1e-15)
    np.testing.assert_allclose(read.q[:, 1], np.deg2rad(raw["E2"]), rtol=1e-15)
    np.testing.assert_allclose(read.q[:, 2:], np.tile([0.5, -np.pi / 2, 0, 1.5, 0], (SAMPLES, 1)), rtol=1e-15)
    np.testing.assert_allclose(read.v[:, 0], -raw["W1"] * 2 * np.pi / 60, rtol=1e-15)
    np.testing.assert_allclose(read.tau[:, 0], raw["M1"] * 0.05, rtol=1e-14)
    np.testing.assert_allclose(read.current[:, 1], raw["I2"] * 1e-3, rtol=1e-15)
    assert not read.valid("tau")[:, 1:].any()
    assert [(f.kind, f.where) for f in read.report] == [("unused column", "extra")]


def base(time):
    """(position, rotations, world velocity, body angular velocity) of a body in flight, in closed form."""
    R = Rotation.from_rotvec(np.outer(2 * time, [0.0, 0.6, 0.8]))
    p = np.stack([np.sin(time), time**2, np.cos(time)], axis=1)
    dp = np.stack([np.cos(time), 2 * time, -np.sin(time)], axis=1)
    return p, R, dp, np.tile([0.0, 1.2, 1.6], (len(time), 1))


@pytest.mark.parametrize("style", ["letters", "scalar last, numbered"])
@pytest.mark.parametrize("twist", ["body", "world", "mixed"])
def test_floating_base(style, twist, tmp_path):
    """Position and quaternion in two spellings, and the twist in three kinds of axes: the same recording."""
    time = 0.01 * np.arange(50)
    p, R, dp, w = base(time)
    columns = {"t": time} | {f"base_pos_{x}": p[:, i] for i, x in enumerate("xyz")}
    numbered = style != "letters"
    columns |= {f"base_quat_{i if numbered else x}": R.as_quat()[:, i] for i, x in enumerate("xyzw")}
    linear = R.inv().apply(dp) if twist == "body" else dp
    angular = R.apply(w) if twist == "world" else w
    columns |= {f"base_linear_velocity_{x}": linear[:, i] for i, x in enumerate("xyz")}
    columns |= {f"base_w{x}": angular[:, i] for i, x in enumerate("xyz")}
    model = lgsim.ModelBuilder().add_body(
        "body", "world", lgsim.joints.Free(), joint_name="root_joint", mass=1.0, inertia=jnp.eye(3)
    ).build()  # fmt: skip
    options = {"twist": twist, "quaternion": "xyzw" if numbered else "wxyz"}
    read = read_recording(write(tmp_path / "run.csv", columns), model, {"options": options})
    np.testing.assert_array_equal(read.q[:, :3], p)
    np.testing.assert_allclose(read.q[:, 3:], np.roll(R.as_quat(), 1, axis=1), atol=1e-15)
    np.testing.assert_allclose(read.v, np.column_stack([R.inv().apply(dp), w]), atol=1e-14)
    assert len(read.report) == 0, str(read.report)


def test_names_of_joints_of_several_numbers_and_of_sensors(robot, tmp_path):
    """Letters, indices, names that begin alike, accelerometers and gyroscopes."""
    spellings = {
        "root_joint": ["base_x", "base_y", "base_z", "base_qw", "base_qx", "base_qy", "base_qz"],
        "arm": ["arm_pos"],
        "arm_left": ["arm_left_pos"],
        "hip": ["q hip[0]", "q hip[1]", "hip_quat_y", "hip_qz"],
        "rail": ["q_rail [mm]"],
    }
    order = [name for joint in robot.joint_names for name in spellings[joint]]
    sensors = [f"acc_imu_{x}" for x in "xyz"] + [f"gyro_imu_{x} [deg/s]" for x in "xyz"]
    values = np.random.default_rng(3).standard_normal((10, len(order) + 6))
    columns = {"time": np.arange(10.0)} | dict(zip(order + sensors, values.T, strict=True))
    read = read_recording(write(tmp_path / "run.csv", columns), robot, checked=False)
    scale = np.where(np.array(order) == "q_rail [mm]", 1e-3, 1)
    np.testing.assert_allclose(read.q, values[:, : len(order)] * scale, rtol=1e-15)
    turned = np.concatenate([np.ones(3), np.full(3, np.pi / 180)])
    np.testing.assert_allclose(read.imu["imu"], values[:, -6:] * turned, rtol=1e-15)


def test_npz_files(motion, tmp_path):
    """Named columns; tables with joint_names in any order; tables without, in the model's order."""
    order = np.random.default_rng(0).permutation(7)
    np.savez(tmp_path / "columns.npz", **names(motion, "q_{}", "v_{}", "tau_{}"))
    tables = {"time": motion.time, "position": motion.q[:, order], "velocity": motion.v[:, order]}
    np.savez(tmp_path / "named.npz", joint_names=np.array(arm().joint_names)[order], **tables)
    np.savez(tmp_path / "plain.npz", time=motion.time, q=motion.q, v=motion.v)
    for name in ("columns", "named", "plain"):
        read = read_recording(tmp_path / f"{name}.npz", arm())
        np.testing.assert_array_equal(read.q, motion.q)
        np.testing.assert_array_equal(read.v, motion.v)
        kinds = {finding.kind for finding in read.report}
        assert kinds == ({"unnamed columns"} if name == "plain" else set())


def test_parquet_files(motion, tmp_path):
    columns = {name: pyarrow.array(x) for name, x in names(motion, "{}_pos", "{}_vel").items()}
    columns["joint3_vel"] = pyarrow.array([None, *motion.v[1:, 2].tolist()])
    pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / "run.parquet")
    read = read_recording(tmp_path / "run.parquet", arm())
    np.testing.assert_array_equal(read.q, motion.q)
    assert [(f.kind, f.where, f.count) for f in read.report] == [("missing values", "v joint3", 1)]
    columns["joint1_pos"] = pyarrow.array(["x"] * SAMPLES)
    pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / "bad.parquet")
    with pytest.raises(ValueError, match=r"bad\.parquet: column 'joint1_pos': expected numbers, got string"):
        read_recording(tmp_path / "bad.parquet", arm())


def text(tmp_path, lines):
    path = tmp_path / "run.csv"
    path.write_text("\n".join(lines))
    return path


def test_csv_of_other_programs(tmp_path):
    """A byte-order mark, comments, semicolons, empty cells, and a last line that was cut off."""
    lines = ["\ufeff# logged", "t;q_body", "0.0;1", "0.1;", "0.2;3", "0.3;nan", "0.4; 5", "0.5"]
    read = read_recording(text(tmp_path, lines), single(lgsim.joints.Revolute()))
    np.testing.assert_array_equal(read.time, [0, 0.1, 0.2, 0.3, 0.4])
    np.testing.assert_allclose(read.q[:, 0], [1, 2, 3, 4, 5])
    assert read.valid("q")[:, 0].tolist() == [True, False, True, False, True]
    found = {f.kind: f for f in read.report}
    assert set(found) == {"truncated file", "missing values", "missing velocity"}
    assert "line 8" in found["truncated file"].seen


@pytest.mark.parametrize(
    ("lines", "map", "message"),
    [
        (["t,q_body", "0,1", "0.1,abc"], None, r"run\.csv:3: column 'q_body': expected a number, got 'abc'"),
        (["t;q_body", "0;1,5", "1;2"], None, r"run\.csv:2: column 'q_body'.*got '1,5'; use decimal points"),
        (["t,q_body", "0,1,2", "1,2"], None, r"run\.csv:2: expected 2 columns as in line 1, got 3"),
        (["0,1", "1,2"], None, r"run\.csv:1: expected column names, got numbers"),
        (["t,t", "0,1"], None, r"run\.csv:1: expected unique column names, got 't' twice"),
        ([""], None, r"run\.csv: expected column names in the first line, got an empty file"),
        (["q_body", "1"], None, "expected a column for the time"),
        (["t,body_temperature", "0,1"], None, "expected a column for q body, got none.*not read: body_temperature"),
        (["t,q_body,body_pos", "0,1,2"], None, "columns 'q_body' and 'body_pos' both mean q body"),
        (["t,q_body [kg]", "0,1"], {"q_body [kg]": "q body [kg]"}, "one joint and one quantity"),
        (["t,q_body [mm]", "0,1"], None, r"expected a unit of angle for q body: rad, mrad, deg, rev, got 'mm'"),
        (["t,x", "0,1"], {"x": "q elbow"}, "expected a name with one joint and one quantity, got 'q elbow'"),
        (["t,x", "0,1"], {"y": "q body"}, r"the map has column 'y'; the file has t, x"),
        (["t,x", "0,1"], {"x": {"joint": "elbow", "quantity": "q"}}, "joint: expected one of body, got 'elbow'"),
        (["t,x", "0,1"], {"x": {"joint": "body", "quantity": "heat"}}, "quantity: expected one of time, q, v"),
        (["t,x", "0,1"], {"x": {"joint": "body", "quantity": "q", "index": 1}}, "index: expected 0 to 0, got 1"),
        (["t,x", "0,1"], {"x": {"joint": "body", "kind": "q"}}, "expected a key of .*, got 'kind'"),
        (["t,x", "0,1"], {"options": {"order": "xyzw"}}, "expected an option of .*, got 'order'"),
        (["t,x", "0,1"], {"options": {"quaternion": "zyxw"}}, "expected one of wxyz, xyzw, got 'zyxw'"),
        (["t,x", "0,1"], {"options": 5}, "map: options: expected a table, got 5"),
        (["t,x", "0,1"], {"topics": "ignore"}, "map: topics: expected a table, got 'ignore'"),
        (["t,x", "0,1"], {"options": {"constants": [1]}}, r"map: constants: expected a table, got \[1\]"),
        (
            ["t,x", "0,1"],
            {"options": {"constants": {"q body": "far"}}},
            r"run\.csv: constant 'q body': value: expected a",
        ),
        (["t,x", "0,1"], {"options": {"episode": float("inf")}}, "map: episode: expected a nonnegative integer"),
        (["t,x", "0,1"], {"options": {"episode": 10**20}}, "map: episode: expected a nonnegative integer"),
        (["t,x", "0,1"], {"x": 5}, r"run\.csv: column 'x': expected a name or a table, got 5"),
        (["t,x", "0,1"], {"x": {"joint": "body", "quantity": "q", "scale": "big"}}, "'x': scale: expected a finite"),
        (
            ["t,x", "0,1"],
            {"x": {"joint": "body", "quantity": "q", "scale": float("inf")}},
            "'x': scale: expected a finite",
        ),
        (
            ["t,x", "0,1"],
            {"x": {"joint": "body", "quantity": "q", "scale": 10**400}},
            "scale: expected a finite number",
        ),
        (["t,x", "0,1"], {"x": {"joint": "body", "quantity": "q", "index": -5}}, "index: expected 0 to 0, got -5"),
        (["t,x", "0,1"], {"x": {"joint": "body", "quantity": "q", "index": "x"}}, "index: expected 0 to 0, got 'x'"),
        (["t,x", "0,1"], {"x": {"joint": ["body"], "quantity": "q"}}, r"joint: expected a string, got \['body'\]"),
        (["t,x", "0,1"], {"x": {"joint": "body", "quantity": "q", "unit": 5}}, "unit: expected a string, got 5"),
    ],
)
def test_errors_say_where_and_what(lines, map, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        read_recording(text(tmp_path, lines), single(lgsim.joints.Revolute()), map)


def test_a_time_that_is_far_off_is_a_gap(tmp_path):
    """The number of samples that are missing is then none that an integer can be made of."""
    rows = [f"{t},{t}" for t in [1e308, *np.arange(1, 40) / 8]]
    read = read_recording(text(tmp_path, ["t,q_body", *rows]), single(lgsim.joints.Revolute()))
    assert "gap" in {finding.kind for finding in read.report}


@pytest.mark.parametrize("content", [b"\xff", b"a = [" + b"[" * 5000, b"a", b"a = " + b"9" * 5000])
def test_maps_that_are_no_toml(content, tmp_path):
    (tmp_path / "map.toml").write_bytes(content)
    with pytest.raises(ValueError, match=rf"{tmp_path}/map.toml: expected a TOML file, got something else") as caught:
        read_recording(text(tmp_path, ["t,x", "0,1"]), single(lgsim.joints.Revolute()), tmp_path / "map.toml")
    assert type(caught.value) is ValueError


def test_numbers_without_a_joint_are_not_guessed(motion, tmp_path):
    """``q1`` may count from 0 or from 1: a map has to say it."""
    columns = {"t": motion.time} | {f"q{i}": motion.q[:, i] for i in range(7)}
    with pytest.raises(ValueError, match=r"expected columns for q joint1, q joint2, .*, got none.*not read: q0, q1"):
        read_recording(write(tmp_path / "run.csv", columns), arm())


def test_a_missing_package_names_its_extra():
    with pytest.raises(ImportError, match=r"the package nowhere, which is missing: pip install 'lgsim\[identify\]'"):
        package("nowhere.at_all", "identify")


def test_files_that_are_not_there(tmp_path):
    model = single(lgsim.joints.Revolute())
    with pytest.raises(FileNotFoundError, match="no such file"):
        read_recording(tmp_path / "run.csv", model)
    with pytest.raises(ValueError, match=r"ends in \.csv or .* or \.npz or .*\.mcap or .*, got '\.xls'"):
        read_recording(tmp_path / "run.xls", model)
    path = text(tmp_path, ["t,q_body", "0,1", "1,2"])
    with pytest.raises(FileNotFoundError, match=r"map\.toml: no such file"):
        read_recording(path, model, tmp_path / "map.toml")
    (tmp_path / "map.toml").write_text("x = = 1")
    with pytest.raises(ValueError, match=r"map\.toml: expected a TOML file"):
        read_recording(path, model, tmp_path / "map.toml")
