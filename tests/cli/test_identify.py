"""``lgsim identify``: what is found, saved and shown, what goes on after Ctrl-C, and what is refused."""

import csv
import re
import signal
import tomllib
from importlib.util import find_spec

import jax.numpy as jnp
import numpy as np
import pytest

pytest.importorskip("scipy")

import lgsim
from lgsim.formats import read_urdf
from lgsim.identify import load_plant
from tests.cli.machines import CENTERS, INERTIAS, LENGTH, LIGHT, refused
from tests.cli.machines import lgsim as command

G, TRUE, DAMPING, FRICTION = 9.81, (2.4, 0.8), (0.3, 0.1), (0.4, 0.2)
CHANGEOVER = 0.05
DT, COUNT, NOISE = 0.01, 500, (0.05, 0.02)

MAP = """\
"ms" = { quantity = "time", unit = "ms" }
"enc 1" = { joint = "shoulder", quantity = "q", unit = "deg" }
"enc 2" = { joint = "elbow", quantity = "q", unit = "deg", sign = -1 }
"drive 1" = { joint = "shoulder", quantity = "tau" }
"drive 2" = { joint = "elbow", quantity = "tau", unit = "mNm" }
"note" = "ignore"
"""
"""Lines 1 to 6."""


def motion(time):
    """(q, v, a) of two joints."""
    rates, sizes = np.array([[1.7, 2.9], [4.1, 3.3]]), np.array([[1.2, 0.8], [0.3, 0.4]])
    angle = time[:, None, None] * rates
    return tuple(np.sum(sizes * x, axis=1) for x in (np.sin(angle), rates * np.cos(angle), -(rates**2) * np.sin(angle)))


def torques(q, v, a, masses=TRUE):
    """Of the plane arm whose links' inertias go with their masses: Lagrange's equations by hand, with friction."""
    m, n = masses
    (c, d), (i, j) = CENTERS, (INERTIAS[0] * m / 2.0, INERTIAS[1] * n)
    cos, sin = np.cos(q[:, 1]), np.sin(q[:, 1])
    cross = n * LENGTH * d
    first = i + m * c**2 + n * LENGTH**2 + j + n * d**2 + 2 * cross * cos
    both, last = j + n * d**2 + cross * cos, j + n * d**2
    fore = n * d * np.sin(q[:, 0] + q[:, 1])
    tau = np.stack([
        first * a[:, 0] + both * a[:, 1] - cross * sin * (2 * v[:, 0] + v[:, 1]) * v[:, 1]
        - G * ((m * c + n * LENGTH) * np.sin(q[:, 0]) + fore),
        both * a[:, 0] + last * a[:, 1] + cross * sin * v[:, 0] ** 2 - G * fore,
    ], axis=1)  # fmt: skip
    return tau + np.array(DAMPING) * v + np.array(FRICTION) * np.tanh(v / CHANGEOVER)


def recorded(late=0.0):
    """Columns by name: angles in degrees, the second one turned round, with noise and ten samples missing."""
    time, rng = DT * np.arange(COUNT), np.random.default_rng(0)
    q, _, _ = motion(time)
    tau = torques(*motion(time - late)) + np.array(NOISE) * rng.normal(size=q.shape)
    q = np.rad2deg(q + 1e-5 * rng.normal(size=q.shape))
    q[200:210, 0] = np.nan
    return {"ms": 1e3 * time, "drive 2": 1e3 * tau[:, 1], "enc 2": -q[:, 1], "enc 1": q[:, 0], "note": 0 * time,
            "drive 1": tau[:, 0]}  # fmt: skip


def write(path, columns):
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(columns)
        for row in zip(*columns.values(), strict=True):
            rows.writerow(["" if np.isnan(x) else repr(float(x)) for x in row])
    return path


@pytest.fixture(scope="module")
def case(files, tmp_path_factory):
    """(machine, record, map) as files."""
    folder = tmp_path_factory.mktemp("records")
    (folder / "map.toml").write_text(MAP)
    return files / "arm.urdf", write(folder / "motion.csv", recorded()), folder / "map.toml"


def words(case):
    return ("identify", case[0], case[1], "--map", case[2])


@pytest.fixture(scope="module")
def found(case, tmp_path_factory):
    """(result of the command, folder with its files)."""
    folder = tmp_path_factory.mktemp("identified")
    result = command(
        *words(case), "--fit", "masses,friction,damping", "--out", folder / "fit.npz", "--write", folder / "new.urdf",
        *(["--plot", "--report", folder / "out.html"] if find_spec("matplotlib") else []),
    )  # fmt: skip
    return result, folder


def numbers(folder):
    with np.load(folder / "fit.npz") as file:
        names = file["names"].tolist()
        return {n: (v, d) for n, v, d in zip(names, file["values"], file["deviations"], strict=True)}


@pytest.mark.slow
def test_the_numbers_of_the_machine_that_was_recorded(found):
    """Of hand-written equations: within four reported deviations, which are small."""
    result, folder = found
    assert result.exit_code == 0, result.output
    true = {"m of upper, kg": TRUE[0], "m of fore, kg": TRUE[1]}
    for i, joint in enumerate(("shoulder", "elbow")):
        true[f"friction of {joint}, N m"] = FRICTION[i]
        true[f"damping of {joint}, N m s/rad"] = DAMPING[i]
        true[f"friction_speed of {joint}, rad/s"] = CHANGEOVER
    values = numbers(folder)
    assert set(values) == set(true)
    for name, (value, deviation) in values.items():
        assert abs(value - true[name]) < 4 * deviation + 0.01 * true[name], name
        # few samples are within the changeover
        assert 0 < deviation < (0.3 if name.startswith("friction_speed") else 0.15) * true[name], name


def test_the_choice_of_smoothing_is_stated_once(found):
    """Positions have 1e-5 rad of noise."""
    (line,) = [line for line in found[0].stderr.splitlines() if "note: smoothing" in line]
    noise = [float(x) for x in re.findall(r"noise (\S+) rad", line)]
    np.testing.assert_allclose(noise, [1e-5, 1e-5], rtol=0.1)
    assert re.search(r"Spline\(spacing=[\d.]+\)", line)


def test_the_urdf_loads_elsewhere(found):
    """lgsim and Pinocchio read the numbers of the fit, and have the same inverse dynamics."""
    _, folder = found
    plant = load_plant(folder / "fit.npz")
    model, report = read_urdf(folder / "new.urdf")
    assert not report.inertias
    for name in ("damping", "friction"):
        np.testing.assert_array_equal(getattr(model, name), getattr(plant.model, name))
    np.testing.assert_array_equal(model.inertias[:, 0], plant.model.inertias[:, 0])
    np.testing.assert_allclose(model.inertias, plant.model.inertias, rtol=1e-13, atol=1e-16)
    assert "<visual>" in (folder / "new.urdf").read_text()
    pinocchio = pytest.importorskip("pinocchio")
    peer = pinocchio.buildModelFromUrdf(str(folder / "new.urdf"))
    q, v, a = np.array([0.3, -0.8]), np.array([1.0, 0.4]), np.array([-0.2, 2.0])
    # the shoulder is continuous: Pinocchio has its cosine and sine
    theirs = pinocchio.rnea(peer, peer.createData(), np.array([np.cos(q[0]), np.sin(q[0]), q[1]]), v, a)
    ours = lgsim.inverse_dynamics(plant.model, *map(jnp.asarray, (q, v, a)))
    np.testing.assert_allclose(theirs, ours, rtol=1e-12)


def test_repairs_iterations_and_a_table_are_shown(found):
    result, folder = found
    said, table = " ".join(result.stderr.split()), " ".join(result.stdout.split())
    assert "500 samples in 4.99 s, of q, v, tau" in said
    assert "missing values, q shoulder: 2 % are missing (10 samples); interpolated, weight 0" in said
    assert "missing velocity, v: no joint was measured" in said
    assert "8 parameters of masses, friction, friction_speed, damping, by TorqueFit" in said
    assert "iteration cost falls by damping round" in said
    assert "8 of 8 combinations" in table and "held-out (rms)" in table
    assert all(str(path) in table for path in folder.iterdir())
    assert not list(folder.glob("*.checkpoint.npz"))


def test_the_page_needs_no_network_and_has_everything(found):
    pytest.importorskip("matplotlib")
    _, folder = found
    page = (folder / "out.html").read_text()
    assert "<script" not in page and not re.findall(r"""(?:src|href)\s*=\s*["'](?!data:|\#)""", page)
    assert "default-src 'none'" in page
    assert page.count('src="data:image/png;base64,') == 5
    for heading in ("Summary", "Recording", "Parameters", "Identifiability", "Residuals", "Files"):
        assert f"<h2>{heading}</h2>" in page
    texts = "missing values", "m of upper", "friction of elbow", "held-out / training", "base parameters", "lag 1"
    for text in texts:
        assert text in page
    value, _ = numbers(folder)["m of upper, kg"]
    assert f"{value:.5g}" in page
    assert {path.name for path in folder.glob("*.png")} == {
        f"fit-{name}.png" for name in ("record", "residuals", "whiteness", "singular-values", "changes")
    }


def test_interrupted_is_kept_and_goes_on_to_the_same_numbers(found, case, tmp_path, monkeypatch):
    """Ctrl-C in the second iteration, then the same command again: bit for bit the numbers without a break."""
    from lgsim.cli.work import identification

    class Pressed(identification.FitWatch):
        def __call__(self, row):
            if row.number == 2:
                signal.raise_signal(signal.SIGINT)
            super().__call__(row)

    given = (*words(case), "--fit", "masses,friction,damping", "--out", tmp_path / "fit.npz")
    with monkeypatch.context() as patch:
        patch.setattr(identification, "FitWatch", Pressed)
        result = command(*given)
    assert result.exit_code == 130, result.output
    assert "interrupted after 2 iterations" in result.stderr and "the same command continues" in result.stderr
    kept = tmp_path / "fit.checkpoint.npz"
    assert [path.name for path in tmp_path.iterdir()] == [kept.name]

    result = command(*words(case), "--fit", "masses,friction", "--out", tmp_path / "fit.npz")
    assert result.exit_code == 2
    message = result.stderr.strip().splitlines()[-1]
    assert "this checkpoint is of another problem" in message and message.endswith("--restart starts again")

    result = command(*given)
    assert result.exit_code == 0, result.output
    assert f"note: continuing from {kept}; --restart starts again" in result.stderr
    with np.load(tmp_path / "fit.npz") as part, np.load(found[1] / "fit.npz") as whole:
        assert set(part) == set(whole)
        for name in part:
            np.testing.assert_array_equal(part[name], whole[name], err_msg=name)
    assert not kept.exists()


@pytest.mark.slow
def test_a_fixed_changeover_speed(case, tmp_path):
    result = command(*words(case), "--fit", "masses,friction", "--friction-speed", "0.02", "--out", tmp_path / "f.npz")
    assert result.exit_code == 0, result.output
    assert "4 parameters of masses, friction, by TorqueFit" in result.stderr
    np.testing.assert_array_equal(load_plant(tmp_path / "f.npz").model.friction_speed, 0.02)


def test_delays_are_found(case, tmp_path):
    """Torques that come 25 ms late."""
    late = write(tmp_path / "late.csv", recorded(late=0.025))
    (tmp_path / "map.toml").write_text(MAP + '[delays]\ntau = "estimate"\n')
    result = command("identify", case[0], late, "--map", tmp_path / "map.toml", "--check")
    assert result.exit_code == 0, result.output
    assert 24 < float(re.search(r"note: tau: estimated delay (\S+) ms", result.stderr)[1]) < 26


def test_a_delay_beyond_the_search_is_refused(case, tmp_path):
    """Not stated as the end of the search."""
    late = write(tmp_path / "late.csv", recorded(late=0.22))
    (tmp_path / "map.toml").write_text(MAP + '[delays]\ntau = "estimate"\n')
    result = command("identify", case[0], late, "--map", tmp_path / "map.toml", "--check")
    assert result.exit_code != 0
    assert "it is at least 200 ms, where the search ends" in " ".join(result.output.split())


@pytest.mark.slow
def test_linear_least_squares_of_base_parameters(case, tmp_path):
    result = command(*words(case), "--fit", "standard,damping,friction", "--out", tmp_path / "fit.npz")
    assert result.exit_code == 0, result.output
    assert "24 parameters of standard, damping, friction, by LinearFit" in result.stderr
    assert "10 of 24 combinations" in result.stdout
    value, deviation = numbers(tmp_path)["damping of elbow, N m s/rad"]
    assert abs(value - DAMPING[1]) < 4 * deviation


HANGING = """<robot name="pendulum"><link name="base"/>
<link name="rod"><inertial><origin xyz="0 0 -.5"/><mass value="1"/>
  <inertia ixx=".1" iyy=".1" izz=".1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="hinge" type="continuous"><parent link="base"/><child link="rod"/><axis xyz="0 1 0"/></joint></robot>"""


DAMPED = 0.12


def swing(folder, dt, count, damping=DAMPED):
    """(machine, record) of a pendulum that swings out, by scipy's solution of its equation."""
    from scipy.integrate import solve_ivp

    time = dt * np.arange(count)

    def field(t, y):
        return y[1], (-G * 0.5 * np.sin(y[0]) - damping * y[1]) / (0.1 + 0.25)

    angle = solve_ivp(field, (0, time[-1]), [1.2, 0.0], "DOP853", time, rtol=1e-10, atol=1e-10).y[0]
    angle = angle + 1e-3 * np.random.default_rng(0).normal(size=angle.shape)
    (folder / "rod.urdf").write_text(HANGING)
    return folder / "rod.urdf", write(folder / "swing.csv", {"time [s]": time, "hinge_position": angle})


@pytest.mark.slow
def test_positions_alone(tmp_path):
    """A pendulum that swings out: its damping from angles alone; the steps bring no error that counts."""
    result = command("identify", *swing(tmp_path, 0.02, 201), "--fit", "damping", "--out", tmp_path / "fit.npz")
    assert result.exit_code == 0, result.output
    assert "by SimulationFit" in result.stderr
    value, deviation = numbers(tmp_path)["damping of hinge, N m s/rad"]
    assert abs(value - DAMPED) < 4 * deviation < 0.1 * DAMPED
    table = " ".join(result.stdout.split())
    assert re.search(
        r"steps at most \S+ of the noise \(position hinge\), which shifts the parameters by at most 0\.0", table
    )


@pytest.mark.slow
def test_steps_that_are_too_long(tmp_path):
    """Five angles in a swing: the numbers are moved by more than they are known, which the exit code says."""
    machine, record = swing(tmp_path, 0.3, 100, damping=0.02)
    words = ("identify", machine, record, "--fit", "damping", "--held-out", 0, "--out", tmp_path / "fit.npz")
    plots = find_spec("matplotlib") is not None
    result = command(*words, *(["--report", tmp_path / "out.html"] if plots else []))
    assert result.exit_code == 3, result.output
    assert "note: not resolved: with dt = 0.3 s and MK4 the integration error is" in " ".join(result.stderr.split())
    assert "steps not converged, see below" in " ".join(result.stdout.split())
    if plots:
        assert '<p class="remark bad">Not resolved: with dt = 0.3 s and MK4' in (tmp_path / "out.html").read_text()
    result = command(*words, "--no-step-check", "--restart")
    assert result.exit_code == 0 and "resolved" not in result.output


def test_the_example_is_a_map(case, tmp_path):
    """It is TOML that names what it says, and reads a record with its columns."""
    result = command("identify", "--example")
    assert result.exit_code == 0 and set(tomllib.loads(result.stdout)) >= {"t", "enc_1", "options", "unknowns"}
    (tmp_path / "map.toml").write_text(result.stdout)
    old = recorded()
    columns = {"t": old["ms"], "enc_1": old["enc 1"], "enc_2": old["enc 2"], "drive_1": old["drive 1"],
               "drive_2": old["drive 2"] / 1e3, "comment": old["note"]}  # fmt: skip
    record = write(tmp_path / "motion.csv", columns)
    result = command("identify", case[0], record, "--map", tmp_path / "map.toml", "--check")
    assert result.exit_code == 0, result.output


def test_the_example_of_a_file_is_read_at_once(case, tmp_path):
    """Columns by their number, with the robot's joints in order."""
    old = recorded()
    columns = {"t_ms": old["ms"], "q_1 [deg]": old["enc 1"], "q_2 [deg]": -old["enc 2"], "tau_1": old["drive 1"],
               "tau_2": old["drive 2"] / 1e3}  # fmt: skip
    record = write(tmp_path / "motion.csv", columns)
    result = command("identify", case[0], record, "--example")
    assert result.exit_code == 0, result.output
    (tmp_path / "map.toml").write_text(result.stdout)
    result = command("identify", case[0], record, "--map", tmp_path / "map.toml", "--check")
    assert result.exit_code == 0, result.output
    assert "none.csv: no such file" in refused("identify", case[0], tmp_path / "none.csv", "--example")
    (tmp_path / "log.mcap").write_text("")
    assert "expected a name that ends in .csv" in refused("identify", case[0], tmp_path / "log.mcap", "--example")


def test_faults_of_maps_have_their_line(case, tmp_path):
    """Of a column, which only the record shows, and of a delay; nothing is written."""
    faults = {
        '"enc 3" = { joint = "elbow", quantity = "q" }': (
            f"7: enc 3: the map has column 'enc 3'; the file has {', '.join(recorded())}"
        ),
        "[delays]\ncurrent = 0.1": "8: delays.current: the record has no channel 'current'; it has q, v, tau",
    }
    for text, message in faults.items():
        (tmp_path / "map.toml").write_text(MAP + text)
        given = ("identify", case[0], case[1], "--map", tmp_path / "map.toml", "--out", tmp_path / "fit.npz")
        result = command(*given)
        assert result.exit_code == 2, result.output
        assert result.stderr.strip().splitlines()[-1] == f"error: {tmp_path / 'map.toml'}:{message}"
        assert not (tmp_path / "fit.npz").exists()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--fit", "mases"], "--fit: expected names of unknowns, got 'mases'; did you mean 'masses'?"),
        (["--fit", "masses,bodies"], "--fit: expected one of masses and bodies, which change the same parameters"),
        (["--fit", "masses,masses"], "--fit: expected distinct names, got 'masses' twice"),
        (["--fit", ","], "--fit: expected names of unknowns"),
        (["--method", "torqe"], "--method: expected one of auto, torque, linear, simulation, got 'torqe'"),
        (["--held-out", "1"], "--held-out: expected a fraction from 0 to less than 1, got 1"),
        (["--lags", "2", "--method", "simulation"], "--lags: expected joint forces or currents"),
        (
            ["--method", "linear", "--fit", "mass,friction"],
            "--method linear: expected parameters among standard",
        ),
        (["--friction-speed", "0"], "--friction-speed: expected a positive number, got 0"),
        (["--friction-speed", "nan"], "--friction-speed: expected a positive number, got nan"),
        (
            ["--friction-speed", "0.1", "--fit", "friction,friction_speed"],
            "--friction-speed: expected no unknown friction_speed, got one in --fit or in the map",
        ),
        (["--out", "fit.csv"], "--out: expected a name that ends in .npz, got 'fit.csv'"),
        (["--report", "out.htm"], "--report: expected a name that ends in .html"),
        (["--write", "no/new.urdf"], "--write: there is no folder 'no'"),
    ],
)
def test_words_that_are_refused(case, more, message):
    result = command(*words(case), *more)
    assert result.exit_code == 2, result.output
    assert message in result.stderr.strip().splitlines()[-1]


def test_files_that_are_refused(case, files, tmp_path):
    assert "expected a URDF, SDF or MJCF file and a recorded motion" in refused("identify")
    assert "none.csv: no such file" in refused("identify", case[0], tmp_path / "none.csv")
    (tmp_path / "motion.xls").write_text("")
    message = refused("identify", case[0], tmp_path / "motion.xls")
    assert "expected a name that ends in .csv or " in message and " or .npz" in message
    (tmp_path / "bad.csv").write_text("time [s],q shoulder,q elbow\n0,0,0\n0.1,x,0\n")
    message = refused("identify", case[0], tmp_path / "bad.csv")
    assert "bad.csv:3: column 'q shoulder': expected a number, got 'x'" in message
    (tmp_path / "few.csv").write_text("time [s],q shoulder\n0,0\n0.1,0\n")
    assert "few.csv: expected a column for q elbow, got none" in refused("identify", case[0], tmp_path / "few.csv")


def test_a_link_without_inertia_is_named_before_the_record_is_read(case, tmp_path):
    """The default unknowns need bodies that can exist; on request the nearest ones are the prior."""
    (tmp_path / "light.urdf").write_text(LIGHT)
    given = ("identify", tmp_path / "light.urdf", case[1], "--map", case[2], "--check")
    result = command(*given)
    assert result.exit_code == 2 and str(case[1]) not in result.stderr
    assert "got fore, which has neither mass nor inertia;" in result.stderr.replace("\n", " ")
    assert "--physical nearest" in result.stderr
    result = command(*given, "--physical", "nearest")
    assert result.exit_code == 0, result.output
    # a ball of water as wide as the frame of the tip is far from the joint: 0.3 m
    assert "the prior is the nearest body that can exist for fore (14.1 kg)" in result.stderr.replace("\n", " ")
    assert command(*given, "--physical", "nearer").exit_code == 2


def test_currents_need_torque_constants(case, tmp_path):
    """One A is no N m: the constants are given in the map, or fitted."""
    columns = recorded()
    currents = {
        "time [ms]": columns["ms"], "q shoulder [deg]": columns["enc 1"], "q elbow [deg]": -columns["enc 2"],
        "current shoulder [A]": columns["drive 1"] / 8, "current elbow [A]": columns["drive 2"] / 4e3,
    }  # fmt: skip
    given = ("identify", case[0], write(tmp_path / "currents.csv", currents), "--check")
    message = command(*given)
    assert message.exit_code == 2
    (last,) = message.stderr.strip().splitlines()[-1:]
    assert "the record has currents in A, and the torque constants of shoulder, elbow are missing" in last
    assert "scale = { shoulder = 8.2 }" in last and "--fit bodies,friction,damping,scales" in last
    (tmp_path / "map.toml").write_text("[drives]\nscale = { shoulder = 8 }\n")
    message = command(*given, "--map", tmp_path / "map.toml")
    assert message.exit_code == 2 and "the torque constants of elbow are missing" in message.stderr
    assert command(*given, "--fit", "masses,scales").exit_code == 0
    (tmp_path / "map.toml").write_text("[drives]\nscale = { shoulder = 8, elbow = 4 }\n")
    assert command(*given, "--map", tmp_path / "map.toml").exit_code == 0


def test_records_without_forces_have_no_torque_method(case, tmp_path):
    columns = recorded()
    record = write(tmp_path / "q.csv", {"time [ms]": columns["ms"], "q shoulder [deg]": columns["enc 1"],
                                        "q elbow [deg]": columns["enc 2"]})  # fmt: skip
    result = command("identify", case[0], record, "--method", "torque")
    assert result.exit_code == 2
    assert "--method torque: the record contains neither joint forces nor currents" in result.stderr


@pytest.mark.parametrize(("package", "extra"), [("scipy", "identify"), ("matplotlib", "plot")])
def test_a_package_that_is_missing_is_named_at_once(case, tmp_path, monkeypatch, package, extra):
    from lgsim.cli import errors

    real = errors.find_spec
    monkeypatch.setattr(errors, "find_spec", lambda name: None if name == package else real(name))
    message = refused(*words(case), "--report", tmp_path / "out.html", code=1)
    assert f"needs the package {package}, which is missing: pip install 'lgsim[{extra}]'" in message


def backwards(folder, case):
    """The record with the first drive's torques turned round, and the map."""
    columns = recorded()
    columns["drive 1"] = -columns["drive 1"]
    (folder / "map.toml").write_text(MAP)
    return "identify", case[0], write(folder / "back.csv", columns), "--map", folder / "map.toml"


@pytest.mark.slow
def test_a_record_with_findings_to_answer_is_fitted_by_force_only(case, tmp_path):
    """A torque of the wrong sign: refused before anything is compiled, and looked at without a fit."""
    given = (*backwards(tmp_path, case), "--fit", "masses,friction", "--out", tmp_path / "fit.npz")
    refused_now = command(*given)
    assert refused_now.exit_code == 2 and "wrong sign" in refused_now.stderr
    assert "1 unresolved issue in the record, listed above" in refused_now.stderr and "--force" in refused_now.stderr
    assert not (tmp_path / "fit.npz").exists()
    assert command(*given, "--check").exit_code == 0
    forced = command(*given, "--force")
    assert forced.stdout.splitlines()[0].startswith("verdict: ")
    # friction that would drive the joint is at its bound, and nobody knows it exactly
    assert "friction of shoulder at its lower bound" in forced.stdout.replace("\n", " ")
    row = next(line for line in forced.stdout.splitlines() if line.strip().startswith("friction of shoulder, N m"))
    assert "at bound, <" in row and not row.rstrip().endswith(" 0")


def test_the_first_line_is_the_verdict(found):
    first = found[0].stdout.splitlines()[0]
    assert first.startswith("verdict: converged")
    with np.load(found[1] / "fit.npz") as file:
        assert file["intervals"].shape == (len(file["names"]), 2)
        assert np.all(file["intervals"][:, 0] < file["values"]) and np.all(file["values"] < file["intervals"][:, 1])


@pytest.mark.slow
def test_linear_least_squares_by_its_own_defaults(case, tmp_path):
    """Bodies that can exist are the usual unknowns, but not linear ones."""
    result = command(*words(case), "--method", "linear", "--out", tmp_path / "fit.npz")
    assert result.exit_code == 0, result.output
    assert "24 parameters of standard, friction, damping, by LinearFit" in result.stderr


def test_values_that_stay_are_written_as_they_were(files, tmp_path):
    """Rounding of a fit changes no link of the file: of two bodies and dampings one each differs by more."""
    from lgsim.cli.work.identification import _changed
    from lgsim.formats import write_urdf

    before, _ = read_urdf(files / "arm.urdf")
    rounded = before.inertias * (1 + 1e-14)
    after = before.replace(inertias=rounded.at[1].multiply(1.1), damping=before.damping + jnp.array([0, 0.3]))
    write_urdf(files / "arm.urdf", _changed(before, after), tmp_path / "new.urdf")
    old, new = ((folder / name).read_text() for folder, name in ((files, "arm.urdf"), (tmp_path, "new.urdf")))
    upper = re.search(r'<link name="upper">.*?</link>', old, re.DOTALL)[0]
    assert 'mass value="2.0"' in upper and upper in new
    model, _ = read_urdf(tmp_path / "new.urdf")
    np.testing.assert_array_equal(model.inertias[0], before.inertias[0])
    np.testing.assert_allclose(model.inertias[1], 1.1 * before.inertias[1], rtol=1e-12)
