"""``lgsim simulate``: what is computed, saved and shown, and what is refused before anything is."""

import os
import re
import signal

import numpy as np
import pytest

from lgsim.simulation import Trajectory
from tests.cli.machines import GRAVITY, TORQUE, Q, lgsim, refused, textbook_acceleration


def test_run_is_the_motion_that_was_asked_for(simulated):
    result, folder = simulated
    assert result.exit_code == 0, result.output
    run = Trajectory.load(folder / "run.npz")
    np.testing.assert_allclose(run.time, [0, 0.002, 0.004], rtol=1e-15)
    assert (run.method, run.dt, run.result, run.q.dtype) == ("MK4", 0.001, "", np.float64)
    np.testing.assert_array_equal(run.q[0], Q)
    np.testing.assert_array_equal(run.v[0], [0, 0])
    np.testing.assert_array_equal(run.tau, [TORQUE] * 3)
    np.testing.assert_array_equal(run.model.gravity, [0, 0, -GRAVITY])
    # from rest the rate of the acceleration is zero: v = a t + O(t^3)
    a = textbook_acceleration(Q, TORQUE, GRAVITY)
    np.testing.assert_allclose(run.v[1], 0.002 * a, rtol=1e-4)
    np.testing.assert_allclose(run.q[1] - Q, 0.002**2 / 2 * a, rtol=1e-4)


def test_table_and_files(simulated):
    result, folder = simulated
    text = " ".join(result.stdout.split())
    assert "final time 0.004 s" in text
    assert "of the largest kinetic energy" in text
    assert "the joint forces change it too" in text
    assert "constraint error" not in text  # no quaternion, nothing that could be off
    assert "compilation and the first 4 steps" in text
    assert result.stderr.strip().endswith("arm.urdf: 4 steps by auto")
    names = {"run.npz", "run-joints.png", "run-energy.png", "run-momentum.png"} | (
        {"run.html"} if "run.html" in text else set()
    )
    assert {path.name for path in folder.iterdir()} == names
    assert all(str(folder / name) in text for name in names)
    assert all((folder / name).read_bytes()[:4] == b"\x89PNG" for name in names if name.endswith(".png"))


def test_scene_beside_the_run(simulated):
    pytest.importorskip("viser")
    assert "<html" in (simulated[1] / "run.html").read_text().lower()


def test_divergence_is_saved_and_said(files, tmp_path):
    out = tmp_path / "far.npz"
    result = lgsim(
        "simulate", files / "arm.urdf", "--v", "shoulder=1e200", "--duration", 0.004, "--dt", 0.001, "--out", out
    )
    assert result.exit_code == 3
    assert "diverged: the state is not finite at 0.001 s (step 1), first at the joint 'shoulder'" in result.stderr
    assert f"1 state, is in {out}" in result.stderr
    assert "energy is too large for floats" in result.stdout
    np.testing.assert_array_equal(Trajectory.load(out).v, [[1e200, 0]])


@pytest.mark.slow
def test_variational_motion(files, tmp_path):
    """By name; its error is told, and without a word "auto" stays what it is."""
    asked = ("--q", "0.5,0.3", "--duration", 0.1, "--dt", 0.005, "--out", tmp_path / "run.npz")
    result = lgsim("simulate", files / "arm.urdf", *asked, "--method", "variational")
    assert result.exit_code == 0 and "400 steps" not in result.stderr and "20 steps by variational" in result.stderr
    assert "integration error" in result.stdout
    run = Trajectory.load(tmp_path / "run.npz")
    assert run.method == "variational"
    assert lgsim("simulate", files / "arm.urdf", *asked).exit_code == 0
    other = Trajectory.load(tmp_path / "run.npz")
    assert other.method == "MK4"
    np.testing.assert_allclose(run.q, other.q, rtol=0, atol=1e-4)


def test_divergence_is_looked_into(files, tmp_path):
    asked = ("--v", "shoulder=1e200", "--duration", 0.001, "--dt", 0.001, "--out", tmp_path / "far.npz")
    result = lgsim("simulate", files / "arm.urdf", *asked, "--check")
    assert result.exit_code == 3
    found = (
        r"diverged: not finite: step 0 \(t = 0 s\): the acceleration of joint '(shoulder|elbow)', body '(upper|fore)'"
    )
    assert re.search(found, result.stderr)
    assert "--check: expected no --adaptive" in refused("simulate", files / "arm.urdf", *asked, "--check", "--adaptive")


@pytest.mark.slow
def test_drives_that_lag(files, tmp_path):
    """A cart whose drive follows a constant command: force, speed and file."""
    out, T, u = tmp_path / "run.npz", 0.2, 3.0
    asked = ("--torque", u, "--actuator-time", f"rail={T}", "--duration", 0.1, "--dt", 0.01, "--out", out)
    result = lgsim("simulate", files / "slider.xml", *asked)
    assert result.exit_code == 0, result.output
    run = Trajectory.load(out)
    gone = np.exp(-run.time / T)
    np.testing.assert_allclose(run.tau[:, 0], u * (1 - gone), rtol=0, atol=1e-6)
    np.testing.assert_allclose(run.v[:, 0], u / 2 * (run.time - T * (1 - gone)), rtol=0, atol=1e-6)
    assert "--actuator-time: expected nonnegative seconds, got -1" in refused(
        "simulate", files / "slider.xml", "--actuator-time", "-1"
    )


def test_actuators_of_the_file_follow_commands(tmp_path):
    """A servo on a cart without gravity: an oscillator in closed form; commands by place and by name."""
    machine, out = tmp_path / "servo.xml", tmp_path / "run.npz"
    machine.write_text(
        """<mujoco><option gravity="0 0 0"/><worldbody><body><joint name="rail" type="slide"/>
        <inertial pos="0 0 0" mass="2" diaginertia="1 1 1"/></body></worldbody>
        <actuator><position name="servo" joint="rail" kp="50"/></actuator></mujoco>"""
    )
    for command in ("servo=0.3", "0.3"):
        result = lgsim(
            "simulate", machine, "--ctrl", command, "--duration", 0.2, "--dt", 0.002, "--out", out, "--no-step-check"
        )
        assert result.exit_code == 0, result.output
        run = Trajectory.load(out)
        np.testing.assert_allclose(run.q[:, 0], 0.3 * (1 - np.cos(5 * run.time)), rtol=0, atol=1e-8)
        np.testing.assert_allclose(run.tau[:, 0], 15.0 * np.cos(5 * run.time), rtol=0, atol=1e-6)
    said = "--ctrl: expected names of actuators, got 'sevo'; did you mean 'servo'?"
    assert said in refused("simulate", machine, "--ctrl", "sevo=1")
    assert "--ctrl: expected 1 number, for servo, got 2" in refused("simulate", machine, "--ctrl", "1,2")
    assert "not allowed with --torque" in refused("simulate", machine, "--ctrl", "1", "--torque", "1")


def test_adaptive_steps(files, tmp_path):
    """A cart that a constant force pushes moves by a t^2 / 2; ``--dt`` and ``--save-every`` say what is saved."""
    pytest.importorskip("diffrax")
    out, asked = tmp_path / "run.npz", ("--torque", "3", "--duration", 0.4, "--dt", 0.1, "--save-every", 2)
    result = lgsim("simulate", files / "slider.xml", *asked, "--adaptive", "--tolerance", 1e-7, "--out", out)
    assert result.exit_code == 0, result.output
    assert result.stderr.strip().endswith("slider.xml: adaptive steps, tolerance 1e-07, by MK54")
    text = " ".join(result.stdout.split())
    assert "compilation and the first 3 saved states" in text and "steps per second" not in text
    run = Trajectory.load(out)
    np.testing.assert_allclose(run.time, [0, 0.2, 0.4], rtol=1e-15)
    np.testing.assert_allclose(run.q[:, 0], 1.5 / 2 * run.time**2, rtol=1e-12, atol=1e-15)
    np.testing.assert_array_equal(run.tau, 3.0)
    assert (run.method, run.result) == ("MK54, rtol 1e-07, atol 1e-10", "") and np.isnan(run.dt)


@pytest.mark.slow
def test_float32_and_random(files, tmp_path):
    out = tmp_path / "single.npz"
    arguments = ("--duration", 0.004, "--dt", 0.001, "--float32", "--q", "random", "--seed", 3)
    assert lgsim("simulate", files / "arm.urdf", "--out", out, *arguments).exit_code == 0
    run = Trajectory.load(out)
    assert {array.dtype for array in (run.time, run.q, run.v, run.tau, run.model.inertias)} == {np.dtype("float32")}
    assert abs(run.q[0, 0]) <= np.pi
    assert -2 <= run.q[0, 1] <= 1.5
    assert np.any(run.q[0] != 0)


REFUSED = {
    "too long": (("--q", "1,2,3"), "--q: expected 2 numbers (shoulder 1, elbow 1), got 3"),
    "too short": (("--v", "1"), "--v: expected 2 numbers (shoulder 1, elbow 1), got 1"),
    "nan": (("--q", "1,nan"), "--q: expected finite numbers, got 'nan' in '1,nan'"),
    "infinite": (("--torque", "elbow=inf"), "--torque: elbow: expected finite numbers, got 'inf'"),
    "words": (("--q", "a,b"), "--q: expected numbers, got 'a' in 'a,b'"),
    "empty": (("--q", ""), "--q: expected numbers, got ''"),
    "near name": (("--q", "elbw=1"), "--q: expected the name of a joint, got 'elbw'; did you mean 'elbow'?"),
    "far name": (("--v", "xyz=1"), "--v: expected the name of a joint, got 'xyz'; there are shoulder, elbow"),
    "mixed": (("--q", "elbow=1,2"), "--q: expected joint=value, got '2'; numbers and names cannot be mixed"),
    "twice": (("--q", "elbow=1,elbow=2"), "--q: expected each joint once, got 'elbow' twice"),
    "two for one": (("--q", "elbow=1:2"), "--q: the joint 'elbow' takes one number, got 2"),
    "random v": (("--v", "random"), "--v: expected numbers, got 'random'"),
    "gravity of two": (("--gravity", "1,2"), "--gravity: expected three numbers such as 0,0,-9.81, got 2"),
    "gravity nan": (("--gravity", "0,0,nan"), "--gravity: expected finite numbers, got 'nan'"),
    "dt 0": (("--dt", "0"), "--dt: expected a positive number of seconds, got 0"),
    "dt negative": (("--dt", "-0.1"), "--dt: expected a positive number of seconds, got -0.1"),
    "dt nan": (("--dt", "nan"), "--dt: expected a positive number of seconds, got nan"),
    "dt long": (("--dt", "20"), "--dt: expected a step of 20 s to fit into the duration, 5 s"),
    "dt short": (("--dt", "1e-300"), "--dt: expected fewer than 1e+15 steps, got 5e+300"),
    "duration 0": (("--duration", "0"), "--duration: expected a positive number of seconds, got 0"),
    "duration infinite": (("--duration", "inf"), "--duration: expected a positive number of seconds, got inf"),
    "rare": (("--save-every", "9000"), "--save-every: expected 9000 steps of 0.001 s to fit into the duration, 5 s"),
    "method": (("--method", "RK4"), "variational4, got 'RK4'; did you mean 'MK4'?"),
    "no estimate": (
        ("--adaptive", "--method", "MK4"),
        "--method: MK4 has no error estimate, which --adaptive needs; use MK54, CF32a, CF32b, CF43",
    ),
    "steps of one length": (
        ("--adaptive", "--method", "variational"),
        "--adaptive: variational does not support step-size control: it preserves momenta, and the energy without",
    ),
    "states of drives": (
        ("--method", "variational", "--actuator-time", "0.1,0.1"),
        "--method: variational requires actuators without states of their own",
    ),
    "tolerance 0": (("--adaptive", "--tolerance", "0"), "--tolerance: expected a positive number, got 0"),
    "tolerance nan": (("--adaptive", "--tolerance", "nan"), "--tolerance: expected a positive number, got nan"),
    "tolerance below rounding": (
        ("--adaptive", "--tolerance", "1e-20"),
        "--tolerance: expected at least 8.9e-16, 4 unit round-offs of float64, got 1e-20",
    ),
    "tolerance below rounding of float32": (
        ("--adaptive", "--tolerance", "1e-7", "--float32"),
        "--tolerance: expected at least 4.8e-07, 4 unit round-offs of float32, got 1e-07",
    ),
    "tolerance alone": (("--tolerance", "1e-3"), "--tolerance: expected --adaptive"),
    "adaptive dt short": (("--adaptive", "--dt", "1e-10"), "--dt: expected fewer than 1e+08 saved states, got 5e+10"),
    "ending": (("--out", "run.mat"), "expected a name that ends in .npz or .parquet or .csv or .mcap, got 'run.mat'"),
    "no ending": (("--out", "run"), "got 'run' (no ending)"),
    "no folder": (("--out", "nowhere/run.npz"), "--out: there is no folder 'nowhere'"),
    "locked folder": (("--out", "/proc/run.npz"), "--out: the folder '/proc' cannot be written"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_before_anything_is_computed(case, files, tmp_path, monkeypatch):
    if case == "locked folder" and not os.path.isdir("/proc"):
        pytest.skip("there is no folder that not even root can write to")
    monkeypatch.chdir(tmp_path)
    arguments, message = REFUSED[case]
    assert message in refused("simulate", files / "arm.urdf", *arguments)
    assert not list(tmp_path.iterdir())


def test_folder_in_place_of_a_file(files, tmp_path):
    (tmp_path / "run.npz").mkdir()
    text = refused("simulate", files / "arm.urdf", "--out", tmp_path / "run.npz")
    assert text == f"--out: expected a file, got the folder '{tmp_path / 'run.npz'}'"


@pytest.mark.parametrize(
    "package, extra, arguments",
    [
        ("pyarrow", "data", ("--out", "run.parquet")),
        ("matplotlib", "plot", ("--plot",)),
        ("viser", "view", ("--html",)),
        ("diffrax", "adaptive", ("--adaptive",)),
    ],
)
def test_missing_packages_are_named_before_the_simulation(package, extra, arguments, files, tmp_path, monkeypatch):
    from lgsim.cli import errors

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(errors, "find_spec", lambda name: None if name == package else True)
    text = refused("simulate", files / "arm.urdf", *arguments, code=1)
    assert text.endswith(f"needs the package {package}, which is missing: pip install 'lgsim[{extra}]'")
    assert not list(tmp_path.iterdir())


def test_quaternions_and_followers(files):
    from lgsim.scenarios.machine import read_machine
    from lgsim.scenarios.states import configuration, velocities

    model, _ = read_machine(files / "ball.urdf")
    q = configuration("socket=0.7071:0:0.7071:0", model, 0)
    np.testing.assert_allclose(q, [np.sqrt(0.5), 0, np.sqrt(0.5), 0, 0], rtol=1e-15)
    np.testing.assert_array_equal(configuration(None, model, 0), [1, 0, 0, 0, 0])
    np.testing.assert_array_equal(velocities(" wheel = 4 , socket = 1:-2:3", model), [1, -2, 3, 4])
    first, second = (configuration("random", model, seed) for seed in (0, 1))
    assert np.all(first != second)
    np.testing.assert_array_equal(first, configuration("random", model, 0))

    arm = files / "ball.urdf"
    assert "a unit quaternion (w, x, y, z) in the last four values of the joint 'socket', got norm 2" in refused(
        "simulate", arm, "--q", "socket=2:0:0:0"
    )
    assert "the joint 'shadow' mimics another joint and has no value of its own" in refused(
        "simulate", arm, "--q", "shadow=1"
    )
    assert "the joint 'socket' takes 3 numbers, socket=a:b:c, got 2" in refused("simulate", arm, "--v", "socket=1:2")


def test_starts_beyond_limits_are_said(files, tmp_path):
    """Position, speed and torque of the start, and in the end what the motion used, with a way out."""
    out = tmp_path / "run.npz"
    asked = ("--duration", 0.002, "--dt", 0.001, "--out", out)
    result = lgsim("simulate", files / "arm.urdf", "--q", "elbow=80", "--torque", "elbow=1000", *asked)
    assert result.exit_code == 0
    for text in (
        "note: joint 'elbow' starts at 80 rad, beyond its position limit (-2 to 1.5 rad): looks like degrees",
        "note: joint 'elbow' is given 1000 N m, beyond its torque limit (limit 10 N m)",
        "note: beyond torque limits: elbow 1000 N m at 0 s (limit 10 N m, exceeded by 9.9e+02)",
        "note: position limits are not enforced by default; --stops turns them into stops",
    ):
        assert text in result.stderr
    text = " ".join(result.stdout.split())
    assert "position limits 4.59e+03 % used: elbow 80" in text and "torque limits 1e+04 % used: elbow 1000 N m" in text
    inside = lgsim("simulate", files / "arm.urdf", "--q", "elbow=0.3", *asked)
    notes = [line for line in inside.stderr.splitlines() if line.startswith("note: ")]
    assert notes == [f"note: replacing {out}"]
    text = " ".join(inside.stdout.split())
    assert "position limits 31.4 % used: elbow 0.3" in text and "torque limits none used" in text


def test_stops_hold_the_motion(files, tmp_path):
    """The elbow passes its limit by no more than its speed there and the inertia that it feels there let it."""
    asked = ("--q", "shoulder=3.1,elbow=1.4", "--v", "elbow=2", "--gravity", "0,0,0", "--duration", 0.2, "--out")
    free, held = tmp_path / "free.npz", tmp_path / "held.npz"
    assert lgsim("simulate", files / "arm.urdf", *asked, free).exit_code == 0
    result = lgsim("simulate", files / "arm.urdf", *asked, held, "--stops")
    assert result.exit_code == 0 and "--stops" not in result.stderr
    before, run = Trajectory.load(free), Trajectory.load(held)
    assert before.q[-1, 1] > 1.7
    # what a force of 1 on the elbow alone does: the inverse of the inertia that it feels
    at, neutral = (textbook_acceleration(q, np.array([0.0, 1.0]), 0.0)[1] for q in (run.q[60], np.zeros(2)))
    deepest = np.abs(before.v[:, 1]).max() * 0.02 / np.pi * np.sqrt(neutral / at)
    assert 1.5 + deepest / 2 < run.q[:, 1].max() < 1.5 + deepest and run.q[-1, 1] < 1.5
    np.testing.assert_array_equal(run.model.limit_stiffness > 0, [False, True])


def test_stops_without_use_or_from_the_start(files, capfd):
    from lgsim.cli.checks.starts import remark_stops
    from lgsim.scenarios.machine import read_machine

    for name, q, text in (
        ("arm.urdf", [0.0, 1.6], "note: --stops: joints that start beyond a position limit are pushed back\n"),
        ("ball.urdf", [1.0, 0.0, 0.0, 0.0, 9.0], "note: --stops: no joint has a position limit\n"),
        ("arm.urdf", [90.0, 1.4], ""),
    ):
        remark_stops(read_machine(files / name)[0], np.array(q))
        assert capfd.readouterr().err == text


MASSLESS = """<robot name="m"><link name="base"/>
<link name="arm"><inertial><mass value="1"/><origin xyz="0 0 .3"/>
  <inertia ixx=".1" iyy=".1" izz=".1" ixy="0" ixz="0" iyz="0"/></inertial></link><link name="end"/>
<joint name="hinge" type="continuous"><parent link="base"/><child link="arm"/><axis xyz="0 1 0"/></joint>
<joint name="tip" type="continuous"><parent link="arm"/><child link="end"/><axis xyz="0 1 0"/></joint></robot>"""


def test_a_joint_without_inertia_is_named(tmp_path):
    """Never a smaller step, which would not help."""
    (tmp_path / "m.urdf").write_text(MASSLESS)
    for more in ((), ("--adaptive",), ("--stops",)):
        text = refused("simulate", tmp_path / "m.urdf", "--out", tmp_path / "run.npz", *more)
        remedy = "give the link behind it mass and inertia, or the joint an armature"
        assert text == f"{tmp_path / 'm.urdf'}: joint 'tip' moves without inertia: {remedy}"
    assert not (tmp_path / "run.npz").exists()


def test_numbers_in_other_units_are_said(files, tmp_path):
    """In the note before the motion, with the line; all of them by info."""
    text = (files / "arm.urdf").read_text().replace('lower="-2" upper="1.5"', 'lower="-120" upper="90"')
    (tmp_path / "degrees.urdf").write_text(text)
    result = lgsim("simulate", tmp_path / "degrees.urdf", "--duration", 0.001, "--out", tmp_path / "run.npz")
    found = "joint 'elbow' has limits of -120 to 90 rad: looks like degrees"
    assert f"{found}; details: lgsim info {tmp_path / 'degrees.urdf'}" in " ".join(result.stderr.split())
    assert found in " ".join(lgsim("info", tmp_path / "degrees.urdf").stdout.split())


def test_watch_ends_between_pieces_and_at_once(capfd):
    from lgsim.cli.progress import Watch

    before = signal.getsignal(signal.SIGINT)
    with Watch(10) as watch:
        watch(4, 10)
        assert watch.rate is None
        watch(6, 10)
        assert watch.rate > 0
        assert watch.first_steps == 4
        signal.raise_signal(signal.SIGINT)
        assert watch.interrupted
        with pytest.raises(KeyboardInterrupt):
            watch(8, 10)
        watch(10, 10)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before
    assert "Ctrl-C again stops at once" in capfd.readouterr().err


def test_interrupted_simulation_is_saved(files, tmp_path, monkeypatch):
    """Ctrl-C while the first piece is computed: that piece is kept."""
    from lgsim.cli.work import simulation

    class Pressed(simulation.Watch):
        def __call__(self, done, steps):
            signal.raise_signal(signal.SIGINT)
            super().__call__(done, steps)

    monkeypatch.setattr(simulation, "Watch", Pressed)
    out = tmp_path / "part.npz"
    result = lgsim("simulate", files / "arm.urdf", "--q", "1,1", "--duration", 10, "--dt", 0.001, "--out", out)
    assert result.exit_code == 130
    run = Trajectory.load(out)
    end = 0.001 * (len(run) - 1)
    assert 0 < end < 10
    np.testing.assert_allclose(run.time, 0.001 * np.arange(len(run)), rtol=1e-14)
    assert run.result == f"interrupted at {end:g} s of 10 s"
    assert f"note: {run.result}; the motion so far, {len(run)} states, is in {out}" in result.stderr


def test_error_of_the_steps(files, tmp_path):
    """A line of the table, kept in the file; exit code 3 where the steps are too long; without the check neither."""
    asked = ("--q", "1,0.5", "--duration", 2, "--out", tmp_path / "run.npz")
    result = lgsim("simulate", files / "arm.urdf", *asked, "--dt", 0.02)
    error = Trajectory.load(tmp_path / "run.npz").step_error
    assert result.exit_code == 0 and error.resolved and 1e-9 < error.largest[0] < 1e-2
    assert f"integration error {error.largest[0]:.1g} rad (of" in " ".join(result.stdout.split())
    asked = (*asked, "--dt", 0.02, "--method", "LieEuler")
    result = lgsim("simulate", files / "arm.urdf", *asked)
    text = " ".join(result.stdout.split())
    assert result.exit_code == 3 and "not converged: " in text and "take a dt of " in text
    assert not Trajectory.load(tmp_path / "run.npz").step_error.resolved
    result = lgsim("simulate", files / "arm.urdf", *asked, "--no-step-check")
    assert result.exit_code == 0 and "integration error" not in result.stdout
    assert Trajectory.load(tmp_path / "run.npz").step_error is None
