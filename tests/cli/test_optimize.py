"""``lgsim optimize``: what is found, saved and shown, what goes on after Ctrl-C, and what is refused."""

import re
import signal
from importlib.util import find_spec

import numpy as np
import pytest

from lgsim.simulation import Trajectory
from tests.cli.machines import LENGTH, lgsim, refused

TIP = 0.3
GOAL = (0.35, 0.0, 0.45)

REACH = f"""
[machine]
file = "arm.urdf"
gravity = [0, 0, -5]

[start]
q = {{ shoulder = 0.4, elbow = 0.5 }}

[time]
dt = 0.1
horizon = 8

[[reach]]
frame = "tip"
position = {list(GOAL)}
weight = 1e5

[weights]
effort = 1e-3
final_velocity = 1e3

[limits]
torque = {{ shoulder = 30, elbow = 12 }}

[solver]
gradient_tolerance = 1e-3
"""


def tip(q):
    """Of the plane arm, whose links point up at zero."""
    both = q[..., 0] + q[..., 1]
    return np.stack([LENGTH * np.sin(q[..., 0]) + TIP * np.sin(both), 0 * both,
                     LENGTH * np.cos(q[..., 0]) + TIP * np.cos(both)], axis=-1)  # fmt: skip


def squeezed(text):
    return " ".join(text.split())


@pytest.fixture
def write(files):
    """A function that writes a scenario beside the machines."""

    def write(text, name="scenario.toml"):
        (files / name).write_text(text)
        return files / name

    return write


@pytest.fixture(scope="module")
def solved(files, tmp_path_factory):
    """(result of the command, folder with ``run.npz`` and its pictures)."""
    folder = tmp_path_factory.mktemp("optimized")
    (files / "reach.toml").write_text(REACH)
    shown = ["--plot", *(["--html"] if find_spec("viser") else [])]
    return lgsim("optimize", files / "reach.toml", "--out", folder / "run.npz", *shown), folder


@pytest.mark.slow
def test_the_motion_does_what_the_scenario_asks_for(solved):
    """The flange by hand-written kinematics, the start, the end at rest, the torques within their limits."""
    result, folder = solved
    assert result.exit_code == 0, result.output
    run = Trajectory.load(folder / "run.npz")
    assert run.result == "" and run.method == "MK4"
    np.testing.assert_allclose(run.time, 0.1 * np.arange(9), rtol=1e-14)
    np.testing.assert_array_equal(run.q[0], [0.4, 0.5])
    np.testing.assert_array_equal(run.model.gravity, [0, 0, -5])
    assert np.linalg.norm(tip(run.q[-1]) - GOAL) < 1e-3
    assert np.abs(run.v[-1]).max() < 1e-2 < np.abs(run.v).max()
    assert np.all(np.abs(run.tau) <= [30, 12])


def test_summary_table_and_files(solved):
    result, folder = solved
    text = squeezed(result.stdout)
    off = float(re.search(r"tip to a position final error (\S+) m", text)[1])
    found = Trajectory.load(folder / "run.npz").q[-1]
    assert off == pytest.approx(np.linalg.norm(tip(found) - GOAL), rel=0.06)
    assert re.search(r"position limits \S+ % used: elbow \S+ rad at \S+ s speed limits \S+ % used: elbow", text)
    assert "% of their limits" in text and "compilation and the first iteration" in text
    assert "reach.toml: tip to a position; arm.urdf, 2 controls, 8 steps of 0.1 s, by ilqr" in squeezed(result.stderr)
    assert "iteration cost gradient feasibility step regularization" in squeezed(result.stderr)
    names = {"run.npz", "run-joints.png", "run-energy.png", "run-momentum.png"}
    names |= {"run.html"} if find_spec("viser") else set()
    assert {path.name for path in folder.iterdir()} == names
    assert all(str(folder / name) in text for name in names)


def test_interrupted_is_kept_and_goes_on_to_the_same_motion(solved, files, tmp_path, monkeypatch):
    """Ctrl-C at the second iteration, then the same command again: bit for bit the motion without a break."""
    from lgsim.cli.work import optimization

    class Pressed(optimization.IterationWatch):
        def __call__(self, row):
            if row.number == 2:
                signal.raise_signal(signal.SIGINT)
            super().__call__(row)

    out = tmp_path / "part.npz"
    with monkeypatch.context() as patch:
        patch.setattr(optimization, "IterationWatch", Pressed)
        result = lgsim("optimize", files / "reach.toml", "--out", out)
    assert result.exit_code == 130
    assert "note: interrupted after" in result.stderr and "the same command continues" in result.stderr
    part, whole = Trajectory.load(out), Trajectory.load(solved[1] / "run.npz")
    assert part.result.startswith("The solver was interrupted") and len(part) == 9
    assert np.any(part.q != whole.q)
    kept = tmp_path / "part.checkpoint.npz"
    assert kept.exists()

    other = files / "other.toml"
    other.write_text(REACH.replace("weight = 1e5", "weight = 2e5"))
    result = lgsim("optimize", other, "--out", out)
    assert result.exit_code == 2
    message = result.stderr.strip().splitlines()[-1]
    assert "this checkpoint is of another problem" in message and message.endswith("--restart starts again")

    result = lgsim("optimize", files / "reach.toml", "--out", out)
    assert result.exit_code == 0, result.output
    assert f"note: continuing from {kept}; --restart starts again" in result.stderr
    again = Trajectory.load(out)
    for name in ("time", "q", "v", "tau"):
        np.testing.assert_array_equal(getattr(again, name), getattr(whole, name))
    assert not kept.exists()


EXACT = """
machine = { file = "arm.urdf", gravity = [0, 0, 0] }
start.q = { elbow = 0.5 }
time = { dt = 0.1, duration = 0.6 }
posture = { q = { shoulder = 0.3 }, weight = 10, exact = true }
weights = { final_velocity = 0 }
limits = { position = true, velocity = true }
"""


@pytest.mark.slow
def test_conditions_are_met(write, tmp_path):
    """An exact posture of one joint, and limits of positions and velocities; the other joint is free."""
    result = lgsim("optimize", write(EXACT), "--out", tmp_path / "run.npz")
    assert result.exit_code == 0, result.output
    run = Trajectory.load(tmp_path / "run.npz")
    assert abs(run.q[-1, 0] - 0.3) < 1e-6
    assert np.all((run.q[:, 1] > -2 - 1e-6) & (run.q[:, 1] < 1.5 + 1e-6)) and np.all(np.abs(run.v[:, 1]) < 5 + 1e-6)
    assert "outer iteration cost gradient violation inner iterations penalty" in squeezed(result.stderr)
    assert "of the constraints" in result.stdout and "posture final error" in squeezed(result.stdout)


FOLLOW = """
[machine]
file = "arm.urdf"
gravity = [0, 0, 0]
[start]
q = [0.4, 0.5]
[time]
dt = 0.1
duration = 0.5
[[follow]]
frame = "tip"
file = "path.csv"
weight = 1e6
[weights]
final_velocity = 0
[solver]
kind = "ilqr"
max_iterations = 60
gradient_tolerance = 1e-2
[guess]
torque = "gravity"
"""


@pytest.mark.slow
@pytest.mark.parametrize("poses", [False, pytest.param(True, marks=pytest.mark.exhaustive)], ids=["positions", "poses"])
def test_a_path_from_a_file(poses, write, files, tmp_path):
    """The tip on the way of the joints from (0.4, 0.5) to (0.6, 0.4): the joints that are found."""
    q = np.linspace([0.4, 0.5], [0.6, 0.4], 6)
    rows = ["t,x,y,z,qw,qx,qy,qz" if poses else "t,x,y,z"]
    for i, (p, angle) in enumerate(zip(tip(q), q.sum(axis=1), strict=True)):
        turn = (np.cos(angle / 2), 0, np.sin(angle / 2), 0) if poses else ()
        rows.append(",".join(f"{x:.16g}" for x in (0.1 * i, *p, *turn)))
    (files / "path.csv").write_text("\n".join(rows) + "\n\n")
    result = lgsim("optimize", write(FOLLOW), "--out", tmp_path / "run.npz")
    assert result.exit_code in (0, 3), result.output
    run = Trajectory.load(tmp_path / "run.npz")
    np.testing.assert_allclose(run.q, q, rtol=0, atol=2e-3)
    text = squeezed(result.stdout)
    name = "tip along a path of poses" if poses else "tip along a path"
    assert re.search(rf"{name} largest error \S+ m" + (rf" {name} largest error \S+ rad" if poses else ""), text)


@pytest.mark.parametrize("name", ["reach", "swing_up", "follow"])
def test_examples_are_right(name, tmp_path):
    (tmp_path / "example.toml").write_text(lgsim("optimize", "--example", name).stdout)
    result = lgsim("optimize", tmp_path / "example.toml", "--check", "--out", tmp_path / "run.npz")
    assert result.exit_code == 0, result.output
    assert " steps of 0.0" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["example.toml"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["swing_up", *(pytest.param(name, marks=pytest.mark.exhaustive) for name in ("reach", "follow"))]
)
def test_examples_are_solved(name, tmp_path):
    """As they come: a solver that does not get there leaves with another status."""
    (tmp_path / "example.toml").write_text(lgsim("optimize", "--example", name).stdout)
    result = lgsim("optimize", tmp_path / "example.toml", "--out", tmp_path / "run.npz")
    assert result.exit_code == 0, result.output
    motion = Trajectory.load(tmp_path / "run.npz")
    assert motion.step_error.resolved
    speeds = np.abs(motion.v) / np.asarray(motion.model.velocity_limit)
    assert name == "swing_up" or speeds.max() < 1 + 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["adam", pytest.param("lbfgs", marks=pytest.mark.exhaustive)])
def test_other_solvers_and_a_run_as_the_guess(kind, solved, write, tmp_path):
    """Two iterations from the motion that was found find no worse one, but no optimum: it is said, and all is saved."""
    guess = f'[guess]\nrun = "{solved[1] / "run.npz"}"\n'
    rate = "learning_rate = 1e-8\n" if kind == "adam" else ""
    text = REACH.replace("gradient_tolerance = 1e-3", f'kind = "{kind}"\nmax_iterations = 2\n{rate}')
    result = lgsim("optimize", write(text + guess), "--out", tmp_path / "run.npz")
    assert result.exit_code == 3, result.output
    assert "note: The maximum number of iterations was reached" in result.stderr
    assert Trajectory.load(tmp_path / "run.npz").result.startswith("The maximum number of iterations was reached")
    assert [entry.name for entry in tmp_path.iterdir()] == ["run.npz"]
    costs = [float(re.search(r"cost (\S+)", squeezed(each.stdout))[1]) for each in (solved[0], result)]
    assert costs[1] < 1.001 * costs[0]


def test_starts_beyond_limits_and_joints_without_inertia(write):
    """A note for what is odd about the start, and no search for a machine that cannot move."""
    result = lgsim("optimize", write(REACH.replace("elbow = 0.5", "elbow = 80")), "--check")
    assert result.exit_code == 0
    odd = "joint 'elbow' starts at 80 rad, beyond its position limit (-2 to 1.5 rad): looks like degrees"
    assert f"note: {odd}" in result.stderr
    scenario = write(REACH.replace("arm.urdf", "light.urdf"), "light.toml")
    result = lgsim("optimize", scenario, "--check")
    assert result.exit_code == 2
    assert f"error: {scenario}: joint 'elbow' moves without inertia: give the link behind it mass" in result.stderr


def test_refused_before_anything_is_compiled(write, tmp_path):
    """One line with file, line and key, also of a file that the scenario names; nothing is written."""
    bad = write(REACH.replace('"tip"', '"tp"'), "bad.toml")
    line = refused("optimize", bad, "--out", tmp_path / "run.npz")
    assert line == f"{bad}:14: reach[1].frame: expected the name of a frame, got 'tp'; did you mean 'tip'?"
    (bad.parent / "bad.csv").write_text("t,x,y,z\n0,0,0,0.5\n0.1,0,0\n")
    line = refused("optimize", write(FOLLOW.replace("path.csv", "bad.csv"), "bad.toml"), "--out", tmp_path / "run.npz")
    assert line == f"{bad.parent / 'bad.csv'}:3: expected 4 numbers, got 3"
    assert not list(tmp_path.iterdir())


def test_words_of_the_command(tmp_path, write):
    assert "SCENARIO: expected a TOML file; create one with `lgsim optimize --example reach" in refused("optimize")
    assert "--example: expected one of reach, swing_up, follow, got 'rech'; did you mean 'reach'?" in refused(
        "optimize", "--example", "rech"
    )
    assert "--example: expected no SCENARIO" in refused("optimize", "a.toml", "--example", "reach")
    assert f"{tmp_path / 'no.toml'}: the file cannot be read: No such file" in refused("optimize", tmp_path / "no.toml")
    assert "--out: expected a name that ends in .npz" in refused("optimize", write(REACH), "--out", "run.mat")
