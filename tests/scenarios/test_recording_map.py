"""Maps of recordings: what they say of columns, smoothing and unknowns, and what is refused at which line and key."""

import re

import numpy as np
import pytest

from lgsim import data, load_urdf
from lgsim.identify import CentersOfMass, Inertias, JointParameter, Masses, Plant, TotalMass
from lgsim.identify.recording.filters import Butterworth, Spline
from lgsim.identify.unknowns import DirectionalParameter, LoadFriction
from lgsim.identify.unknowns.coupled_plant import MotorParameter
from lgsim.scenarios import ScenarioError, load_recording_map

pytest.importorskip("scipy")

MAP = """\
"ms" = { quantity = "time", unit = "ms" }
"enc 1" = { joint = "shoulder", quantity = "q", unit = "deg" }
"enc 2" = { joint = "elbow", quantity = "q", unit = "deg", sign = -1 }
"drive 1" = { joint = "shoulder", quantity = "tau" }
"drive 2" = { joint = "elbow", quantity = "tau", unit = "mNm" }
"note" = "ignore"
"""
"""Lines 1 to 6."""


@pytest.fixture(scope="module")
def model(folder):
    return load_urdf(folder / "arm.urdf")


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    """Two seconds of a slow motion, in a hundred samples."""
    time = 0.02 * np.arange(101)
    columns = [1e3 * time, 1e3 * np.cos(time), -np.rad2deg(np.sin(time)), np.rad2deg(np.cos(time)), 0 * time, time]
    path = tmp_path_factory.mktemp("records") / "motion.csv"
    rows = "\n".join(",".join(repr(float(x)) for x in row) for row in zip(*columns, strict=True))
    path.write_text(f"ms,drive 2,enc 2,enc 1,note,drive 1\n{rows}\n")
    return path


def refused(call, *arguments):
    with pytest.raises(ScenarioError) as caught:
        call(*arguments)
    return caught.value


def test_columns_have_their_units_and_signs(model, record, write):
    """The numbers of the file in SI units, by joint."""
    found = load_recording_map(write(MAP, "map.toml"), model).read(str(record), model)
    time = 0.02 * np.arange(101)
    np.testing.assert_allclose(found.time, time, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(found.q, np.stack([np.cos(time), np.sin(time)], axis=1), rtol=0, atol=1e-13)
    np.testing.assert_allclose(found.tau, np.stack([time, np.cos(time)], axis=1), rtol=0, atol=1e-13)


def test_the_shipped_map(model, tmp_path):
    """It names what its comments say, and reads a record with its columns."""
    given = load_recording_map(data.recording_map(), model)
    assert set(given.columns) == {"t", "enc_1", "enc_2", "drive_1", "drive_2", "comment", "options"}
    assert given.columns["enc_2"] == {"joint": "elbow", "quantity": "q", "unit": "deg", "sign": -1}
    assert given.columns["options"] == {"automatic": True}
    assert (given.delays, given.smoother, given.rate, given.slowest, given.priors) == ({}, None, None, None, ())
    assert given.deviations["q"].tolist() == [1e-3, 1e-3] and given.deviations["v"].tolist() == [1e-2, 1e-2]
    assert (given.deviations["accelerometer"], given.deviations["gyroscope"]) == (0.1, 1e-2) and not given.stated
    assert np.array_equal(given.scale, [1, 1]) and given.estimation["force_noise"] is given.estimation["gate"] is None
    rows = "\n".join(f"{20 * i},{i},{-i},{i / 2},{i / 3},0" for i in range(30))
    (tmp_path / "motion.csv").write_text(f"t,enc_1,enc_2,drive_1,drive_2,comment\n{rows}\n")
    found = given.read(tmp_path / "motion.csv", model)
    np.testing.assert_allclose(found.q, np.deg2rad(np.arange(30))[:, None] * [1, 1], rtol=1e-12)


def test_all_that_a_map_can_say(model, write):
    text = """
[delays]
tau = 0.004
v = "estimate"
[smoothing]
method = "butterworth"
cutoff = 10
rate = 200.0
slowest = 0.02
[sensors]
position = 2e-3
velocity = 3e-2
[drives]
scale = { shoulder = 8.2 }
[known]
total_mass = 12.3
total_mass_deviation = 0.01
[unknowns]
masses = { bodies = ["fore"], prior = 0.5 }
friction = { joints = ["elbow"] }
"""
    given = load_recording_map(write(text, "map.toml"), model)
    assert given.delays == {"tau": 0.004, "v": None}
    assert given.smoother == Butterworth(10.0) and (given.rate, given.slowest) == (200.0, 0.02)
    assert given.deviations["q"].tolist() == [2e-3, 2e-3] and given.deviations["v"].tolist() == [3e-2, 3e-2]
    np.testing.assert_array_equal(given.scale, [8.2, 1.0])
    assert given.priors == (TotalMass(12.3, 0.01),)
    plant = Plant(model, scale=given.scale)
    masses, friction = Masses(bodies=["fore"], prior_deviation=0.5), JointParameter("friction", joints=["elbow"])
    speed = JointParameter("friction_speed", joints=["elbow"])
    wanted = {"masses": masses, "friction": friction, "friction_speed": speed}
    assert given.blocks(plant) == wanted
    assert given.blocks(plant, ["friction", "centres"]) == {
        "friction": friction, "friction_speed": speed, "centers": CentersOfMass(),
    }  # fmt: skip
    text = """
[sensors]
position = { elbow = 1e-4 }
[estimation]
force_noise = { shoulder = 0.5, elbow = 0.2 }
walk = 0.01
start_position = 0.3
start_velocity = [2, 3]
gate = 0.99
"""
    given = load_recording_map(write(text, "map.toml"), model)
    assert given.stated == {"q"} and given.estimation["walk"] == 0.01 and given.estimation["gate"] == 0.99
    np.testing.assert_array_equal(given.deviations["q"], [1e-3, 1e-4])
    elbow = given.of_dofs(np.array([1]))
    assert {key: x.tolist() for key, x in elbow.estimation.items() if isinstance(x, np.ndarray)} == {
        "force_noise": [0.2], "start_position": [0.3], "start_velocity": [3],
    }  # fmt: skip
    assert elbow.deviations["q"].tolist() == [1e-4] and elbow.deviations["gyroscope"] == 1e-2
    spline = load_recording_map(write("[smoothing]\nspacing = 0.05\n", "map.toml"), model)
    assert spline.smoother == Spline(0.05)


def test_without_a_map(model):
    """Columns with clear names are read, and the usual numbers are unknown."""
    given = load_recording_map(None, model)
    assert given.columns == {"options": {}} and given.smoother is None
    blocks = given.blocks(Plant(model))
    assert list(blocks) == ["bodies", "friction", "friction_speed", "damping"] and blocks["bodies"] == Inertias()


def test_friction_in_a_map(model, write):
    """Its changeover speed is unknown unless it is declined, of the same joints, or of its own; shared on request."""
    plant = Plant(model)
    assert "friction_speed" not in load_recording_map(None, model).blocks(plant, ["friction"], with_speed=False)
    assert "friction_speed" not in load_recording_map(None, model).blocks(plant, ["standard", "friction"])
    text = """[unknowns]
friction = { by_direction = true, joints = ["elbow"] }
damping = { by_direction = true }
friction_speed = { shared = true, joints = ["shoulder", "elbow"], prior = 0.7 }
load_friction = {}
"""
    blocks = load_recording_map(write(text, "map.toml"), model).blocks(plant)
    assert blocks["friction"] == DirectionalParameter("friction", ["elbow"])
    assert blocks["damping"] == DirectionalParameter("damping") and blocks["load_friction"] == LoadFriction()
    speed = blocks["friction_speed"]
    assert speed.labels(plant) == ["friction_speed of shoulder and friction_speed of elbow"]
    assert speed.prior_deviation == 0.7
    for line in ("armature = { by_direction = true }", "friction = { shared = true }"):
        given = load_recording_map(write(f"[unknowns]\n{line}\n", "map.toml"), model)
        assert "there is no such key" in refused(given.blocks, plant).reason


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["mases"], "expected names of unknowns, got 'mases'; did you mean 'masses'?"),
        (["masses", "bodies"], "expected one of masses and bodies, which change the same parameters"),
        (["masses", "masses"], "expected distinct names, got 'masses' twice"),
        ([], "expected names of unknowns, masses, centers, "),
    ],
)
def test_names_of_unknowns_that_are_refused(model, write, names, message):
    """Names from Python are a ValueError; the same names in a map are one of its table."""
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        load_recording_map(None, model).blocks(Plant(model), names)
    assert not isinstance(caught.value, ScenarioError)
    if names == ["masses", "bodies"]:
        given = load_recording_map(write("[unknowns]\nmasses = {}\nbodies = {}\n", "map.toml"), model)
        error = refused(given.blocks, Plant(model))
        assert (error.line, error.key, error.reason) == (1, "unknowns", message)


@pytest.mark.parametrize(
    ("line", "text", "message"),
    [
        (2, '"enc 1" = { joint = "shoulder", quantity = "q", unit = "degg" }',
         r"enc 1.unit: expected a unit of angle for q shoulder: rad, mrad, deg, .*got 'degg'"),
        (4, '"drive 1" = { joint = "shoulder", quantity = "tau", unit = "deg" }', "expected a unit of torque"),
        (3, '"enc 2" = { joint = "elbw", quantity = "q" }', "joint: expected one of shoulder, elbow, got 'elbw'"),
        (3, '"enc 2" = { joint = "elbow", quantity = "angle" }', "quantity: expected one of time, q, v"),
        (3, '"enc 2" = { joint = "elbow", quantity = "q", index = 1 }', "index: expected 0 to 0, got 1"),
        (3, '"enc 2" = { joint = "elbow", quantity = "q", sign = 2 }', "enc 2.sign: expected 1 or -1, got 2"),
        (3, '"enc 2" = { joint = "elbow", quantity = "q", units = "deg" }', "no such key; did you mean 'unit'"),
        (3, '"enc 2" = { joint = 2, quantity = "q" }', "enc 2.joint: expected a string, got 2"),
        (3, '"enc 2" = 5', "expected a name, \"ignore\", or a table"),
        (3, '"enc 3" = { joint = "elbow", quantity = "q" }', "the map has column 'enc 3'; the file has ms, drive 2"),
        (3, '"enc 2" = "q elbow x"', "expected a name with one joint and one quantity"),
        (2, '"enc 1" = { joint = "elbow", quantity = "q" }', "both mean q elbow; map one to \"ignore\""),
        (7, '[options]\nquaternion = "zyx"', "options.quaternion: expected one of wxyz, xyzw, got 'zyx'"),
        (7, '[delays]\nq = 0.1', "delays.q: there is no such key"),
        (7, '[delays]\ntau = "guess"', "delays.tau: expected a time in s or 'estimate'"),
        (7, '[smoothing]\nmethod = "butterworth"', "the key 'cutoff' is missing"),
        (7, '[smoothing]\ncutoff = 3.0', "smoothing.cutoff: not a key of the method 'spline'"),
        (7, '[smoothing]\nspacing = -3.0', "smoothing.spacing: expected a positive number, got -3"),
        (7, '[known]\ntotal_mass = 3.0', "the key 'total_mass_deviation' is missing"),
        (7, '[unknowns]\nmases = {}', "unknowns.mases: there is no such key; did you mean 'masses'"),
        (7, '[unknowns]\nmasses = { bodies = ["for"] }', "expected names of bodies, got 'for'; did you mean 'fore'"),
        (7, '[unknowns]\nmasses = { joints = ["elbow"] }', "unknowns.masses.joints: there is no such key"),
        (7, '[drives]\nscale = { shoulder = 0 }', "drives.scale: expected nonzero numbers"),
    ],
)  # fmt: skip
def test_faults_of_maps_have_their_line(model, record, write, line, text, message):
    lines = MAP.splitlines()
    lines[line - 1 : line] = text.splitlines()
    path = write("\n".join(lines), "map.toml")

    def all_of_it():
        given = load_recording_map(path, model)
        given.blocks(Plant(model))
        given.read(record, model)

    error = refused(all_of_it)
    assert error.file == path and error.line in (line, line + 1) and error.key
    assert re.search(message, str(error)), error


def test_records_that_cannot_be_read(model, tmp_path):
    """They are a ValueError with their own place: no line of a map is wrong."""
    given = load_recording_map(None, model)
    (tmp_path / "few.csv").write_text("time [s],q shoulder\n0,0\n0.1,0\n")
    for name, message in (
        ("none.csv", "none.csv: no such file"),
        ("few.csv", "few.csv: expected a column for q elbow"),
    ):
        with pytest.raises(ValueError, match=message) as caught:
            given.read(tmp_path / name, model)
        assert not isinstance(caught.value, ScenarioError)


def test_maps_that_are_no_files(model, tmp_path):
    assert "Is a directory" in str(refused(load_recording_map, tmp_path, model))
    assert "No such file" in str(refused(load_recording_map, tmp_path / "none.toml", model))


def test_files_as_labs_have_them(model, tmp_path, write):
    """No header, no times, a second file, an offset and a sum of columns, through a TOML file."""
    (tmp_path / "run.txt").write_text("".join(f"{i} {2 * i}\n" for i in range(30)))
    (tmp_path / "forces.csv").write_text("drive\n" + "".join(f"{3 * i}\n" for i in range(30)))
    text = """
"forces/drive" = { joint = "elbow", quantity = "tau", offset = 0.5 }
"q shoulder [deg]" = { columns = { a = 1.0, b = -0.25 }, offset = 90 }
"b" = { joint = "elbow", quantity = "q", unit = "deg" }
[options]
names = ["a", "b"]
rate = 50.0
files = ["forces.csv"]
"""
    found = load_recording_map(write(text, "map.toml"), model).read(tmp_path / "run.txt", model)
    i = np.arange(30.0)
    np.testing.assert_allclose(found.time, i / 50, rtol=1e-15)
    np.testing.assert_allclose(found.q, np.deg2rad(np.stack([90 + i / 2, 2 * i], axis=1)), rtol=1e-14)
    np.testing.assert_allclose(found.tau[:, 1], 3 * i + 0.5, rtol=1e-15)


@pytest.mark.parametrize(
    ("text", "line", "key", "reason"),
    [
        ('x = { joint = "elbow", quantity = "q", offset = "far" }', 1, "x.offset", "expected a number, got 'far'"),
        ('"q elbow" = { columns = { a = "b" } }', 1, "q elbow.columns.a", "expected a number, got 'b'"),
        ("[options]\nrate = 0", 2, "options.rate", "expected a positive number, got 0"),
        ('[options]\nnames = ["a", "a"]', 2, "options.names", "map: names: expected distinct names, got 'a' twice"),
        ("[options]\nfiles = [1]", 2, "options.files", "map: files: expected a list of strings, got [1]"),
        ('[options.files]\n"a.csv" = [1]', 1, "options.files", "map: names: expected a list of strings, got [1]"),
        ("[options]\nfiles = 1", 2, "options.files", "map: files: expected a list of strings, got 1"),
    ],
)
def test_faults_of_options_of_files_have_their_line(model, write, text, line, key, reason):
    error = refused(load_recording_map, write(text, "map.toml"), model)
    assert (error.line, error.key, error.reason) == (line, key, reason)


def test_motors_that_turn_with_several_joints(model, write):
    """The table [coupling] gives the plant its motors, and the unknowns are theirs; faults have their line."""
    text = """
[coupling]
drive = { shoulder = 1.0, elbow = -0.5 }
[unknowns]
motor_friction = { motors = ["drive"], prior = 0.5 }
motor_inertia = {}
"""
    given = load_recording_map(write(text, "map.toml"), model)
    plant = given.plant(model)
    assert plant.motors == ("drive",) and np.array_equal(plant.coupling, [[1.0, -0.5]])
    blocks = given.blocks(plant)
    friction = MotorParameter("motor_friction", ["drive"], 0.5)
    assert blocks == {"motor_friction": friction, "motor_inertia": MotorParameter("motor_inertia")}
    with pytest.raises(ScenarioError, match=r"map\.toml:3: coupling: coupling: expected names of degrees of freedom"):
        load_recording_map(write("\n\n[coupling]\nx = { knee = 1.0 }", "map.toml"), model).plant(model)
    error = refused(load_recording_map(write("[coupling]\nx = { elbow = 'a' }", "map.toml"), model).plant, model)
    assert (error.line, error.key) == (2, "coupling.x.elbow")
    with pytest.raises(ValueError, match=r"motor_damping: expected a plant with coupled motors.* \[coupling\] of"):
        load_recording_map(None, model).blocks(Plant(model), ["motor_damping"])
