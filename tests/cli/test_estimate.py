"""``lgsim estimate``: states and deviations against a filter by hand, the verdict, and what is refused."""

import json
import re
from importlib.util import find_spec

import numpy as np
import pytest

pytest.importorskip("scipy")

from tests.cli.machines import lgsim as command
from tests.cli.machines import refused
from tests.cli.test_identify import write

MASS, FORCE, READING, DT, COUNT = 2.0, 0.1, 2e-3, 0.02, 300
CART = f"""<robot name="cart"><link name="base"/>
<link name="cart"><inertial><mass value="{MASS}"/>
  <inertia ixx=".1" iyy=".1" izz=".1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="rail" type="prismatic"><parent link="base"/><child link="cart"/><axis xyz="1 0 0"/>
  <limit lower="-9" upper="9" effort="99" velocity="9"/>%s</joint></robot>"""
STATED = f"[sensors]\nposition = {READING}\n[estimation]\nforce_noise = {FORCE}\nstart_velocity = 0.5\n"
STEP = np.array([[1, DT], [0, 1]])
NOISE = (FORCE / MASS) ** 2 * np.array([[DT**3 / 3, DT**2 / 2], [DT**2 / 2, DT]])
"""Of a mass under white force noise, exactly."""


def pushed(time):
    """The force on the cart, N."""
    return 3 * np.cos(2 * time) + 4 * np.sin(5 * time)


def drawn(seed=0):
    """(time, true states, readings, forces) of the cart; ten readings are missing."""
    rng = np.random.default_rng(seed)
    time = DT * np.arange(COUNT)
    force, state, truth = pushed(time), np.zeros(2), []
    root = np.linalg.cholesky(NOISE)
    for mean in (force[1:] + force[:-1]) / 2:
        truth.append(state)
        state = STEP @ state + np.array([DT**2 / 2, DT]) * mean / MASS + root @ rng.normal(size=2)
    truth = np.array([*truth, state])
    readings = truth[:, 0] + READING * rng.normal(size=COUNT)
    readings[100:110] = np.nan
    return time, truth, readings, force


def kalman(readings, force):
    """Filtered and smoothed means and covariances, and normalized squared residuals, by the textbook."""
    x, P = np.array([readings[0], (readings[1] - readings[0]) / DT]), np.diag([0.1**2, 0.5**2])
    inputs = np.append((force[1:] + force[:-1]) / 2, force[-1])
    means, spreads, nis = [], [], []
    for k, z in enumerate(readings):
        if k:
            x = STEP @ x + np.array([DT**2 / 2, DT]) * inputs[k - 1] / MASS
            P = STEP @ P @ STEP.T + NOISE
        nis.append(np.nan)
        if np.isfinite(z):
            S = P[0, 0] + READING**2
            nis[-1] = (z - x[0]) ** 2 / S
            x, P = x + P[:, 0] * (z - x[0]) / S, P - np.outer(P[:, 0], P[:, 0]) / S
        means.append(x)
        spreads.append(P)
    smooth, wide = [means[-1]], [spreads[-1]]
    for k in range(COUNT - 2, -1, -1):
        ahead = STEP @ means[k] + np.array([DT**2 / 2, DT]) * inputs[k] / MASS
        P = STEP @ spreads[k] @ STEP.T + NOISE
        G = spreads[k] @ STEP.T @ np.linalg.inv(P)
        smooth.append(means[k] + G @ (smooth[-1] - ahead))
        wide.append(spreads[k] + G @ (wide[-1] - P) @ G.T)
    return [np.array(a) for a in (means, spreads, smooth[::-1], wide[::-1], nis)]


def deviations(spreads):
    return np.sqrt(np.diagonal(spreads, axis1=1, axis2=2))


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    """(robot, record, map) as files."""
    folder = tmp_path_factory.mktemp("estimates")
    (folder / "cart.urdf").write_text(CART % "")
    (folder / "map.toml").write_text(STATED)
    time, _, readings, force = drawn()
    record = write(folder / "log.csv", {"time [s]": time, "rail_position": readings, "rail_effort": force})
    return folder / "cart.urdf", record, folder / "map.toml"


def words(case):
    return ("estimate", case[0], case[1], "--map", case[2])


@pytest.fixture(scope="module")
def found(case, tmp_path_factory):
    """(result of the command, folder with its files)."""
    folder = tmp_path_factory.mktemp("found")
    plots = ["--plot", "--report", folder / "out.html"] if find_spec("matplotlib") else []
    return command(*words(case), "--out", folder / "estimate.npz", *plots), folder


def test_the_states_are_those_of_a_kalman_filter(found):
    result, folder = found
    assert result.exit_code == 0, result.output
    _, truth, readings, force = drawn()
    means, spreads, _, _, nis = kalman(readings, force)
    with np.load(folder / "estimate.npz") as file:
        np.testing.assert_allclose(file["q"][:, 0], means[:, 0], atol=1e-11)
        np.testing.assert_allclose(file["v"][:, 0], means[:, 1], atol=1e-10)
        np.testing.assert_allclose(file["deviations"], deviations(spreads), rtol=1e-9)
        np.testing.assert_allclose(file["nis"][:, 0], nis, rtol=1e-6, atol=1e-9)
        assert file["names"].tolist() == ["q of rail", "v of rail"] and file["streams"].tolist() == ["q rail [m]"]
        errors = np.abs(np.stack([file["q"][:, 0], file["v"][:, 0]], axis=1) - truth) / file["deviations"]
        assert json.loads(str(file["about"]))["verdict"].startswith("consistent")
    assert 0.9 < np.mean(errors[20:] < 2) <= 1


def test_the_verdict_comes_first_and_tables_follow(found):
    result, folder = found
    assert result.stdout.splitlines()[0] == "verdict: consistent"
    said, table = " ".join(result.stderr.split()), " ".join(result.stdout.split())
    assert "300 samples in 5.98 s, of q, v, tau" in said and "missing values, q rail: 3.3 % are missing" in said
    assert "2 states from 1 stream of readings, EKF" in said
    assert re.search(r"q rail \[m\] 290 0 0\.002 [01](\.\d+)? 0\.7\d+ to 1\.2", table)
    assert all(str(path) in table for path in folder.iterdir())


def test_the_page_has_everything(found):
    pytest.importorskip("matplotlib")
    _, folder = found
    page = (folder / "out.html").read_text()
    assert "<script" not in page and page.count('src="data:image/png;base64,') == 2
    for text in ("<h2>Recording</h2>", "<h2>States</h2>", "<h2>Residuals</h2>", "Consistent.", "q rail [m]"):
        assert text in page
    assert {path.name for path in folder.glob("*.png")} == {"estimate-states.png", "estimate-residuals.png"}


@pytest.mark.parametrize("method", ["ekf", "unscented"])
def test_the_smoother_and_other_filters(case, tmp_path, method):
    """All filters agree where everything is linear."""
    result = command(*words(case), "--smooth", "--method", method, "--out", tmp_path / "estimate.npz")
    assert result.exit_code == 0, result.output
    _, _, readings, force = drawn()
    _, _, smooth, wide, _ = kalman(readings, force)
    with np.load(tmp_path / "estimate.npz") as file:
        np.testing.assert_allclose(np.stack([file["q"][:, 0], file["v"][:, 0]], axis=1), smooth, atol=1e-10)
        np.testing.assert_allclose(file["deviations"], deviations(wide), rtol=1e-8)


def test_noises_that_are_not_given_are_found(case, tmp_path):
    """300 readings resolve them to some ten percent."""
    result = command("estimate", case[0], case[1], "--out", tmp_path / "estimate.npz")
    assert result.exit_code == 0, result.output
    with np.load(tmp_path / "estimate.npz") as file:
        np.testing.assert_allclose(file["force_noise"], FORCE, rtol=0.3)
        np.testing.assert_allclose(file["reading_noise"], READING, rtol=0.15)
    assert "× " in result.stderr and "noises not given, of the largest likelihood: force, q [m]" in result.stdout


def test_a_deviation_that_is_too_small_is_named(case, tmp_path):
    (tmp_path / "map.toml").write_text(STATED.replace(f"{READING}", f"{READING / 3}"))
    result = command("estimate", case[0], case[1], "--map", tmp_path / "map.toml", "--out", tmp_path / "e.npz")
    assert result.exit_code == 3, result.output
    first, second = result.stdout.splitlines()[:2]
    assert first == "verdict: not consistent" and "'q rail [m]': mean squared residual" in second
    assert "the deviations are too small" in result.stdout and (tmp_path / "e.npz").exists()


def test_outliers_are_gated(case, tmp_path):
    """Six readings of thrice the largest noise, which are too small for the checks of the record."""
    time, truth, readings, force = drawn()
    readings[50:290:40] += 8 * READING
    record = write(tmp_path / "log.csv", {"time [s]": time, "rail_position": readings, "rail_effort": force})
    given = ("estimate", case[0], record, "--map", case[2], "--out", tmp_path / "estimate.npz", "--gate", 0.999)
    result = command(*given)
    with np.load(tmp_path / "estimate.npz") as file:
        assert np.flatnonzero(file["gated"][:, 0]).tolist() == list(range(50, 290, 40))
        assert np.max(np.abs(file["q"][:, 0] - truth[:, 0])[20:]) < 5 * READING
    assert re.search(r"q rail \[m\] +290 +6 ", result.stdout)


def test_a_mass_without_forces_is_not_observed(case, tmp_path):
    time, _, readings, _ = drawn()
    record = write(tmp_path / "log.csv", {"time [s]": time, "rail_position": readings})
    given = ("--force-noise", 3, "--unknown", "masses", "--out", tmp_path / "estimate.npz")
    result = command("estimate", case[0], record, "--map", case[2], *given)
    assert "not observed: log mass of cart" in result.stdout
    assert "note: the record has no joint forces" in result.stderr
    assert re.search(r"m of cart, kg +2 +2 +2 ", result.stdout)


def test_an_estimate_that_diverges_says_so(case, tmp_path):
    """The steps are too long for the damping."""
    (tmp_path / "cart.urdf").write_text(CART % '<dynamics damping="1e5"/>')
    line = command("estimate", tmp_path / "cart.urdf", *words(case)[2:], "--out", tmp_path / "e.npz")
    assert line.exit_code == 3 and not (tmp_path / "e.npz").exists()
    assert "log.csv: the estimate diverged; try a smaller --dt" in line.stderr


def test_streams_of_a_log_keep_their_times(case, tmp_path):
    """Positions at 50 Hz and forces at 40 Hz: readings are not interpolated, forces are."""
    pytest.importorskip("rosbags")
    pytest.importorskip("mcap_ros2")
    from tests.identify.logs import bags

    kind = "sensor_msgs/msg/JointState"

    def message(t, field, value):
        ns, arrays = bags.START + round(t * 1e9), {"position": [], "velocity": [], "effort": []}
        return ns, {"header": bags.header(ns), "name": ["rail"], **arrays, field: [value]}

    time, _, readings, force = drawn()
    there = np.isfinite(readings)
    late = np.arange(0, time[-1], 0.025) + 0.001
    topics = {
        "/encoder": (kind, [message(t, "position", z) for t, z in zip(time[there], readings[there], strict=True)]),
        "/drive": (kind, [message(t, "effort", pushed(t)) for t in late]),
    }
    (tmp_path / "run.mcap").write_bytes(bags.write_mcap(topics))
    given = ("estimate", case[0], tmp_path / "run.mcap", "--map", case[2], "--out", tmp_path / "e.npz")
    result = command(*given)
    assert result.exit_code == 0, result.output
    assert re.search(r"q rail \[m\] +290 +0 ", result.stdout)
    means, *_ = kalman(readings, force)
    with np.load(tmp_path / "e.npz") as file:
        np.testing.assert_allclose(file["time"], np.unique(np.round(np.append(time[there], late), 6)), atol=1e-9)
        places = np.searchsorted(file["time"], time[there] - 1e-6)
        # forces are interpolated between other times
        np.testing.assert_allclose(file["q"][places, 0], means[there, 0], atol=0.1 * READING)


def test_the_example_is_the_map_of_a_record(case, tmp_path):
    result = command("estimate", case[0], case[1], "--example")
    assert result.exit_code == 0 and '"rail_position" = { joint = "rail", quantity = "q" }' in result.stdout
    assert command("estimate", "--example").stdout == command("identify", "--example").stdout


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--gate", "2"], "--gate: expected a fraction between 0 and 1, such as 0.999, got 2"),
        (["--dt", "0"], "--dt: expected a positive number, got 0"),
        (["--force-noise", "-1"], "--force-noise: expected a positive number, got -1"),
        (["--out", "e.txt"], "--out: expected a name that ends in .npz, got 'e.txt'"),
        (["--report", "e.pdf"], "--report: expected a name that ends in .html, got 'e.pdf'"),
        (["--method", "kalman"], "'kalman' is not one of 'ekf', 'iterated', 'unscented'"),
        (["--unknown", "mases"], "--unknown: expected names of unknowns, got 'mases'; did you mean 'masses'?"),
        (["--unknown", "offsets"], "--unknown: unknown: expected parameters of the model, but TorqueOffset changes"),
        (["other.csv"], "MOTION: expected one recording, got 2; estimate them one by one"),
    ],
)
def test_words_that_are_refused(case, more, message):
    result = command(*words(case), *more)
    assert result.exit_code == 2, result.output
    assert message in result.stderr.strip().splitlines()[-1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '"rail_position" = { joint = "rial", quantity = "q" }',
            "1: rail_position.joint: joint: expected one of rail, got",
        ),
        ('"enc" = { joint = "rail", quantity = "q" }', "1: enc: the map has column 'enc'; the file has time [s]"),
        (
            '"rail_position" = { joint = "rail", quantity = "q", unit = "deg" }',
            "1: rail_position.unit: expected a unit",
        ),
        ("[sensors]\nposition = -1", "2: sensors.position: expected"),
        ("[sensors]\nposition = { rial = 1 }", "2: sensors.position.rial: expected the name of a joint"),
        ("[estimation]\ngate = 1.5", "2: estimation.gate: expected a fraction below 1, such as 0.999, got 1.5"),
        ("[estimation]\nforce_nois = 1", "2: estimation.force_nois"),
        ("[estimation]\nforce_noise = {}", "2: estimation.force_noise: expected a number above 0 for each joint, got"),
        (
            "[estimation]\nstart_position = { rail = 0 }",
            "2: estimation.start_position: expected a number above 0 for each joint",
        ),
        ("[delays]\ncurrent = 0.1", "2: delays.current: the record has no channel 'current'"),
    ],
)
def test_faults_of_maps_have_their_line(case, tmp_path, text, message):
    (tmp_path / "map.toml").write_text(text + "\n")
    result = command("estimate", case[0], case[1], "--map", tmp_path / "map.toml", "--out", tmp_path / "e.npz")
    assert result.exit_code == 2, result.output
    line = result.stderr.strip().splitlines()[-1]
    assert line.startswith(f"error: {tmp_path / 'map.toml'}:{message}"), line
    assert not (tmp_path / "e.npz").exists()


def test_records_that_are_refused(case, tmp_path):
    """Without positions, of two lengths, and with a shuffled clock, whose rows are put in order."""
    time, _, readings, force = drawn()
    record = write(tmp_path / "log.csv", {"time [s]": time, "rail_effort": force})
    assert "log.csv: expected a column for q rail, got none" in refused("estimate", case[0], record)
    (tmp_path / "bad.csv").write_text("time [s],rail_position\n0,0\n0.1,x\n")
    assert "bad.csv:3: column 'rail_position': expected a number, got 'x'" in refused(
        "estimate", case[0], tmp_path / "bad.csv"
    )
    assert "expected a URDF, SDF or MJCF file and a recorded motion" in refused("estimate", case[0])
    order = np.arange(COUNT)
    order[[40, 41]] = 41, 40
    columns = {"time [s]": time[order], "rail_position": readings[order], "rail_effort": force[order]}
    given = ("estimate", case[0], write(tmp_path / "mixed.csv", columns), "--map", case[2])
    result = command(*given, "--out", tmp_path / "estimate.npz")
    assert result.exit_code == 0 and "rows" in result.stderr, result.output
    with np.load(tmp_path / "estimate.npz") as file:
        np.testing.assert_allclose(file["q"][:, 0], kalman(readings, force)[0][:, 0], atol=1e-11)
