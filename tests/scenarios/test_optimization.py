"""Scenarios of trajectory optimization: the problems that files describe, and what is refused at which line and key."""

import re
import shutil

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from lgsim import data, load_urdf
from lgsim.dynamics import gravity_forces
from lgsim.integrators.methods import METHODS
from lgsim.lie import so3
from lgsim.optimize import (
    ILQR,
    RESULTS,
    AugmentedLagrangian,
    ControlEffort,
    EndConstraint,
    FramePose,
    FramePosition,
    FreeTime,
    InteriorPoint,
    JointVelocity,
    MultibodyDynamics,
    Posture,
    Problem,
    Solution,
    joint_limits,
)
from lgsim.optimize.cost import Sum
from lgsim.optimize.optimality import Optimality
from lgsim.optimize.solver import History
from lgsim.optimize.standard_costs import FramePath
from lgsim.scenarios import ScenarioError, load_scenario
from lgsim.simulation import Trajectory, VariationalTree, with_stops
from tests.scenarios.machines import BALL

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


EXACT = """
machine = { file = "arm.urdf", gravity = [0, 0, 0] }
start.q = { elbow = 0.5 }
time = { dt = 0.1, duration = 0.6 }
posture = { q = { shoulder = 0.3 }, weight = 10, exact = true }
weights = { final_velocity = 0 }
limits = { position = true, velocity = true }
"""


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


def refused(path):
    with pytest.raises(ScenarioError) as caught:
        load_scenario(path)
    assert "\n" not in str(caught.value)
    return caught.value


def problem_of(model, q, dt, horizon, running, terminal, torque, *, driven=None, substeps=1, constraints=()):
    """A problem from rest by the library's own words."""
    selection, torque = None if driven is None else np.eye(model.nv)[:, driven], np.asarray(torque)
    dynamics = MultibodyDynamics(model, dt, METHODS["MK4"], selection, substeps)
    return Problem(
        dynamics, dynamics.state(jnp.asarray(q), jnp.zeros(model.nv)), horizon=horizon, running=Sum(tuple(running)),
        terminal=Sum(tuple(terminal)), constraints=list(constraints), lower=-torque, upper=torque,
    )  # fmt: skip


def arm_start(model):
    q = np.zeros(7)
    for joint, value in {"joint2": -0.4, "joint4": -2.0, "joint6": 1.6, "joint7": 0.8}.items():
        q[model.q_slices[joint]] = value
    return q


def by_hand(name):
    """(problem, solver, guess) of a scenario that comes with lgsim, made from Python."""
    if name == "swing_up":
        model = load_urdf(data.cart_pole())
        final = Posture(model=model, target=jnp.array([0.0, 3.14159265358979]), weight=1e3 * jnp.ones(2))
        running = (ControlEffort(weight=1e-2), JointVelocity(model=model, weight=1e-2))
        problem = problem_of(
            model, [0.0, 0.0], 0.05, 50, running, (JointVelocity(model=model, weight=1e3), final), [20.0], driven=[0]
        )
        return problem, ILQR(max_iterations=300, gradient_tolerance=1e-3), None
    model = load_urdf(data.arm7())
    q = arm_start(model)
    effort, speed = (1e-5, 1e-3) if name == "reach" else (5e-6, 5e-4)
    running = (ControlEffort(weight=effort), JointVelocity(model=model, weight=speed))
    slow = JointVelocity(model=model, weight=1e2)
    if name == "reach":
        T = jnp.eye(4).at[:3, :3].set(so3.exp(jnp.array([3.14159, 0.0, 0.0]))).at[:3, 3].set(jnp.array([0.4, 0.3, 0.4]))
        pose = FramePose(model=model, frame="flange", target=T, weight=1e4)
        steps, terminal, solver = 250, (slow, pose), ILQR(max_iterations=200)
    else:
        points = jnp.array([[0.427, 0.0, 0.62], [0.45, -0.15, 0.55], [0.45, 0.15, 0.55], [0.45, 0.0, 0.75]])
        times = jnp.array([0.0, 0.4, 0.8, 1.2])
        path = FramePath(model=model, frame="flange", times=times, points=points, weight=1e4)
        steps, running, terminal, solver = 600, (*running, path), (slow, path), ILQR(max_iterations=300)
    free = model.replace(lower=jnp.full(7, -jnp.inf), upper=jnp.full(7, jnp.inf))
    speeds = [joint_limits(free, velocities=True)]
    dt = 0.004 if name == "reach" else 0.002
    problem = problem_of(model, q, dt, steps, running, terminal, model.effort_limit, constraints=speeds)
    return problem, AugmentedLagrangian(solver), jnp.broadcast_to(gravity_forces(model, jnp.asarray(q)), (steps, 7))


@pytest.mark.slow
@pytest.mark.parametrize("name", data.SCENARIOS)
def test_shipped_scenarios_are_the_problems_made_by_hand(name):
    """Every number, every static field and the structure of problem, solver and guess."""
    found = load_scenario(data.scenario(name))
    problem, solver, us = by_hand(name)
    assert eqx.tree_equal(found.problem, problem)
    assert eqx.tree_equal(found.solver, solver)
    assert eqx.tree_equal(found.us, us)
    assert found.solver_kind == "ilqr" and len(found.tasks) == 1
    assert found.machine.path.is_absolute() and found.machine.path.suffix == ".urdf"
    assert eqx.tree_equal(found.machine.model, problem.dynamics.model) and not found.machine.floating_base


def test_conditions_make_an_augmented_lagrangian(write):
    """An exact posture and the limits of the joints, with everything that the solver can be told."""
    more = "solver = { max_iterations = 7, outer_iterations = 3, constraint_tolerance = 1e-4, penalty = 2.0 }\n"
    found = load_scenario(write(EXACT + more))
    model = found.machine.model
    task = Posture(model=model, target=jnp.array([0.3, 0.0]), weight=jnp.array([10.0, 0.0]))
    assert eqx.tree_equal(found.tasks[0].cost, task) and found.tasks[0].exact
    limits = joint_limits(model, velocities=True)
    assert [type(c) for c in found.problem.constraints] == [EndConstraint, type(limits)]
    assert eqx.tree_equal(found.problem.constraints[1], limits)
    assert eqx.tree_equal(found.solver, AugmentedLagrangian(ILQR(max_iterations=7), 3, 1e-4, 2.0))
    y = found.problem.dynamics.state(jnp.array([0.5, 0.2]), jnp.zeros(2))
    # the joint without a weight is free
    np.testing.assert_allclose(found.problem.constraints[0].function(0.0, y, None), [0.2, 0.0], atol=1e-15)


def test_an_interior_point_takes_conditions_by_itself(write):
    kind = 'solver = { kind = "interior_point", max_iterations = 31 }\n'
    assert eqx.tree_equal(load_scenario(write(EXACT + kind)).solver, InteriorPoint(max_iterations=31))
    error = refused(write(EXACT + kind.replace("max_iterations", "outer_iterations")))
    assert error.key == "solver.outer_iterations"


def test_a_free_time(write):
    """Bounds and price of the duration; what a step costs is paid by the second; a path keeps its times."""
    timed = EXACT.replace("time = {", "time = { shortest = 0.2, price = 3.0,")
    fixed, found = load_scenario(write(EXACT)).problem, load_scenario(write(timed)).problem
    duration = fixed.horizon * float(fixed.dynamics.dt)
    (time,) = found.free
    assert isinstance(time, FreeTime)
    assert (time.lower, time.upper, time.weight) == (0.2, pytest.approx(10 * duration), 3.0)
    y, u = fixed.y0, jnp.ones(fixed.controls)
    paid = found.running_rate.value(0.0, y, u, None) * found.dynamics.dt
    np.testing.assert_allclose(paid, fixed.running.value(0.0, y, u, None), rtol=1e-12)
    error = refused(write(timed.replace("shortest = 0.2", "shortest = 0.2, longest = 0.1")))
    assert error.key == "time.longest" and "at least the shortest duration" in error.reason
    error = refused(write(timed.replace("shortest = 0.2, ", "")))
    assert error.key == "time.price"
    error = refused(write(FOLLOW.replace("[time]\n", "[time]\nlongest = 3.0\n")))
    assert "with [[follow]]" in error.reason


def test_names_of_files_are_beside_the_scenario(folder, tmp_path, monkeypatch):
    """From another working directory, by a relative path: the machine and the file of points are found."""
    there = tmp_path / "there"
    there.mkdir()
    shutil.copy(folder / "arm.urdf", there)
    (there / "path.csv").write_text("t,x,y,z\n0,0,0,0.5\n0.5,0.1,0,0.5\n")
    (there / "a.toml").write_text(FOLLOW)
    other = tmp_path / "other"
    other.mkdir()
    monkeypatch.chdir(other)
    found = load_scenario("../there/a.toml")
    np.testing.assert_array_equal(found.tasks[0].cost.points, [[0, 0, 0.5], [0.1, 0, 0.5]])
    assert found.machine.path.samefile(there / "arm.urdf")
    monkeypatch.chdir(tmp_path)
    assert found.machine.path.is_file()
    (there / "arm.urdf").unlink()
    error = refused(there / "a.toml")
    assert (error.line, error.key) == (3, "machine.file")
    assert "arm.urdf: the file cannot be read: No such file" in error.reason


def test_odd_machines_are_reported_not_printed(write, capfd):
    """A link with an inertia that no body has is in the report of the machine's file; nothing is written or warned."""
    text = """
machine = { file = "ball.urdf" }
time = { dt = 0.1, horizon = 2 }
posture = { q = { wheel = 0.3 } }
"""
    found = load_scenario(write(text))
    assert [finding.line for finding in found.machine.report.inertias] and "odd" in BALL
    assert capfd.readouterr() == ("", "")


def test_stops_of_the_machine(write):
    """They are in the dynamics too."""
    text = REACH.replace("[machine]", "[machine]\nstops = true")
    plain, found = load_scenario(write(REACH)), load_scenario(write(text))
    wanted = with_stops(plain.machine.model, max(0.02, 10 * float(plain.problem.dynamics.dt)))
    for model in (found.machine.model, found.problem.dynamics.model):
        np.testing.assert_allclose(model.drives, wanted.drives, rtol=1e-12)
    assert np.any(np.asarray(wanted.limit_stiffness) > 0)


def test_a_trajectory_as_the_guess(write, folder):
    """Its forces are the guess; other machines, other times and other files are refused at the key."""
    scenario = load_scenario(write(REACH))
    model, time = scenario.machine.model, 0.1 * np.arange(9)
    tau = np.arange(18.0).reshape(9, 2)
    Trajectory(model, time, np.zeros((9, 2)), np.zeros((9, 2)), tau).save(folder / "run.npz")
    guess = '[guess]\nrun = "run.npz"\n'
    np.testing.assert_array_equal(load_scenario(write(REACH + guess)).us, tau[:-1])
    wrong = {
        guess + "torque = 0\n": "guess.torque: expected either torques or a run",
        guess.replace("run.npz", "none.npz"): r"guess.run: .*none.npz: no such file",
        guess.replace("run.npz", "run.csv"): r"guess.run: .*a .csv file contains no model; expected a run that ends in",
        guess.replace("run.npz", "arm.urdf"): r"guess.run: .*arm.urdf: expected a run that ends in .npz or .parquet",
    }
    for text, message in wrong.items():
        assert re.search(message, str(refused(write(REACH + text, "bad.toml"))))
    heavier = Trajectory(model.replace(gravity=jnp.zeros(3)), time, np.zeros((9, 2)), np.zeros((9, 2)), tau)
    heavier.save(folder / "other.npz")
    Trajectory(model, time[:5], np.zeros((5, 2)), np.zeros((5, 2)), tau[:5]).save(folder / "short.npz")
    error = refused(write(REACH + '[guess]\nrun = "short.npz"\n', "b.toml"))
    assert error.reason == "expected a run of 9 states to 0.8 s, got 5 to 0.4 s"
    error = refused(write(REACH + '[guess]\nrun = "other.npz"\n', "b.toml"))
    assert error.reason == "expected a run of this scenario's robot, got a run of another robot"
    (folder / "part.npz").write_bytes((folder / "run.npz").read_bytes()[:200])
    error = refused(write(REACH + '[guess]\nrun = "part.npz"\n', "b.toml"))
    assert "got an incomplete file or one of another kind" in error.reason and error.line == 28


@pytest.mark.quick
def test_errors_of_a_task_are_distances(write):
    """A reached position at the end and a posture, by hand; only what has a weight counts."""
    scenario = load_scenario(write(REACH))
    position = scenario.tasks[0]

    ys = jnp.stack([scenario.problem.dynamics.state(jnp.zeros(2), jnp.zeros(2))] * 2)
    zero, none = jnp.zeros(()), jnp.array(-1)
    found = Solution(
        jnp.array([0.0, 0.1]), ys, jnp.zeros((1, 2)), zero, zero, zero, zero, None,
        Optimality(zero, zero, zero, zero), History.empty(1, jnp.float64), jnp.array(0), RESULTS.successful, none, none,
    )  # fmt: skip
    # all links point up: 0.7 m above the base
    ((size, unit),) = position.errors(scenario.problem, found)
    assert unit == "m" and size == pytest.approx(np.hypot(0.35, 0.25), rel=1e-12)
    assert isinstance(position.cost, FramePosition)


@pytest.mark.float32
def test_numbers_have_the_default_float(write, request):
    """In the lane of float32 the machine, the start and the guess are of float32."""
    dtype = np.float32 if request.config.getoption("--float32") else np.float64
    found = load_scenario(write(REACH + '[guess]\ntorque = "gravity"\n'))
    assert found.machine.model.dtype == found.problem.dtype == found.us.dtype == dtype
    assert found.problem.upper.dtype == dtype


def changed(old, new):
    """The scenario with one place changed, which is there."""
    assert old in REACH, old
    return REACH.replace(old, new)


REFUSED = {
    "no TOML": ("[machine]\nfile = \n", ":2: not TOML: Invalid value"),
    "no end": ("[machine", ":1: not TOML: "),
    "twice": ("[time]\ndt = 1\ndt = 2\n", ":3: not TOML: Cannot overwrite a value"),
    "empty": ("", ": time: the key 'dt' is missing"),
    "unknown table": (changed("[weights]", "[wieghts]"), ":18: wieghts: there is no such key; did you mean 'weights'?"),
    "unknown key": (changed("frame =", "fram ="), ":14: reach[1].fram: there is no such key; did you mean 'frame'?"),
    "far key": (changed("dt =", "xyz ="), ":10: time.xyz: there is no such key; there are duration, dt, horizon"),
    "no such file": (changed("arm.urdf", "none.urdf"), ":3: machine.file: "),
    "shipped": (changed("arm.urdf", "lgsim:arm"), "expected a robot that is part of lgsim, got 'arm'; did you mean"),
    "gravity of two": (changed("[0, 0, -5]", "[0, -5]"), ":4: machine.gravity: expected 3 numbers, got 2"),
    "degrees": (
        changed("weight = 1e5", "rotation = [180, 0, 0]"),
        ":16: reach[1].rotation: expected a rotation vector in rad, got a norm of 180: looks like degrees",
    ),
    "joint": (
        changed("elbow = 0.5", "elbw = 0.5"),
        ":7: start.q.elbw: expected the name of a joint, got 'elbw'; did you mean 'elbow'?",
    ),
    "joint of two": (changed("elbow = 0.5", "elbow = [1, 2]"), ":7: start.q.elbow: expected 1 numbers, got 2"),
    "list of three": (
        changed("{ shoulder = 0.4, elbow = 0.5 }", "[1, 2, 3]"),
        ":7: start.q: expected 2 numbers (shoulder 1, elbow 1), got 3; or name the joints",
    ),
    "a text": (changed("shoulder = 0.4", "shoulder = '0.4'"), ":7: start.q.shoulder: expected a number, got '0.4'"),
    "nan": (changed("shoulder = 0.4", "shoulder = nan"), ":7: start.q.shoulder: expected a finite number, got nan"),
    "dt 0": (changed("dt = 0.1", "dt = 0"), ":10: time.dt: expected a positive number, got 0"),
    "no dt": (changed("dt = 0.1", ""), ":9: time: the key 'dt' is missing"),
    "horizon 0": (changed("horizon = 8", "horizon = 0"), ":11: time.horizon: expected a whole number from 1 on, got 0"),
    "horizon 1.5": (changed("horizon = 8", "horizon = 1.5"), ":11: time.horizon: expected a whole number, got 1.5"),
    "both": (changed("horizon = 8", "horizon = 8\nduration = 1"), ":9: time: expected either a duration, s, or a hor"),
    "part of a step": (
        changed("horizon = 8", "duration = 0.25"),
        ":11: time.duration: expected a whole number of steps of 0.1 s, got 2.5 steps",
    ),
    "long": (changed("horizon = 8", "duration = 1e9"), ":11: time.duration: expected at most 1000000 steps, got 1e+10"),
    "infinite": (
        changed("horizon = 8", "duration = 1e300").replace("dt = 0.1", "dt = 1e-300"),
        ":11: time.duration: expected at most 1000000 steps, got inf",
    ),
    "many": (changed("horizon = 8", "horizon = 2000000"), ":11: time.horizon: expected at most 1000000 steps, got 2e"),
    "method": (changed("dt = 0.1", 'dt = 0.1\nmethod = "RK4"'), ":11: time.method: expected one of "),
    "no task": (REACH[: REACH.index("[[reach]]")], "expected a task: a table [[reach]], [[posture]], [[follow]]"),
    "frame": (changed('"tip"', '"tp"'), ":14: reach[1].frame: expected the name of a frame, got 'tp'; did you mean"),
    "no frame": (changed('frame = "tip"', ""), ":13: reach[1]: the key 'frame' is missing"),
    "out of reach": (
        changed("[0.35,", "[0.65,"),
        ":15: reach[1].position: out of reach: 0.7906 m from the joint 'shoulder', and the total length of the links"
        " from there to the frame 'tip' is 0.7 m",
    ),
    "nothing to reach": (changed("position =", "# "), ":13: reach[1]: expected a position, or a rotation or quater"),
    "quaternion": (
        changed("weight = 1e5", "quaternion = [2, 0, 0, 0]"),
        ":16: reach[1].quaternion: expected a unit quaternion (w, x, y, z), got a norm of 2",
    ),
    "weight": (changed("weight = 1e5", "weight = -1"), ":16: reach[1].weight: expected zero or more, got -1"),
    "weights": (changed("weight = 1e5", "weight = [1, 2]"), ":16: reach[1].weight: expected 3 numbers, got 2"),
    "exact": (changed("weight = 1e5", "exact = 1"), ":16: reach[1].exact: expected true or false, got 1"),
    "effort": (changed("effort = 1e-3", "effort = true"), ":19: weights.effort: expected a number, got true"),
    "torque": (
        changed("shoulder = 30", "shoulder = -30"),
        ":23: limits.torque.shoulder: infeasible bounds: expected a nonnegative force, got -30",
    ),
    "no torque": (
        changed("shoulder = 30, elbow = 12", "shoulder = 0, elbow = 0"),
        "infeasible bounds: all forces are zero",
    ),
    "torque word": (
        changed("{ shoulder = 30, elbow = 12 }", '"modl"'),
        ":23: limits.torque: expected one of model, none, got 'modl'; did you mean 'model'?",
    ),
    "outside at start": (
        changed("elbow = 0.5", "elbow = 1.7").replace("[limits]", "[limits]\nposition = true"),
        ":7: start.q: the joint 'elbow' starts at 1.7, outside of its limits, -2 to 1.5",
    ),
    "solver": (changed("gradient", 'kind = "sqp"\ngradient'), ":26: solver.kind: expected one of ilqr, adam, lbfgs"),
    "not of the kind": (
        changed("gradient", "learning_rate = 1\ngradient"),
        "learning_rate: not a key of the solver 'ilqr'",
    ),
    "no conditions": (changed("gradient", "penalty = 1\ngradient"), ":26: solver.penalty: expected constraints: exact"),
    "tolerance": (
        changed("tolerance = 1e-3", "tolerance = -1"),
        ":26: solver.gradient_tolerance: expected a positive number, got -1",
    ),
    "driven": (changed("gravity", 'driven = ["elbo"]\ngravity'), ":4: machine.driven[1]: expected the name of a joint"),
    "guess": (REACH + '[guess]\nrun = "none.npz"\n', ":28: guess.run: "),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_before_anything_is_compiled(case, write):
    text, message = REFUSED[case]
    error = refused(write(text, "bad.toml"))
    assert error.file.name == "bad.toml"
    assert (f"bad.toml{message}" if message.startswith(":") else message) in str(error), error


PATHS = {
    "one point": ("points = [[0, 0, 0, 0.5]]", ":12: follow[1].points: expected two points or more, got 1"),
    "falling times": (
        "points = [\n  [0.2, 0, 0, 0.5],\n  [0.1, 0, 0, 0.5],\n]",
        ":14: follow[1].points[2]: expected increasing times, got 0.1 s",
    ),
    "too late": ("points = [[0, 0, 0, 0.5], [9, 0, 0, 0.5]]", "expected times from 0 to the duration, 0.5 s, got 0 to"),
    "three": ("points = [[0, 0, 0.5]]", "follow[1].points[1]: expected a list of 4 or 8 numbers, got [0, 0, 0.5]"),
    "far": ("points = [[0, 0, 0, 0.5], [0.5, 0, 0, 5]]", "follow[1].points[2]: out of reach: 5 m from the joint 'sho"),
    "no file": ('file = "none.csv"', ":12: follow[1].file: "),
    "bad file": ('file = "bad.csv"', "bad.csv:3: expected 4 numbers, got 3"),
    "words": ('file = "words.csv"', "words.csv:2: expected numbers, got 'a' in '0,0,a,1'"),
    "no points": ('file = "empty.csv"', ":12: follow[1].file: expected two points or more, got 0"),
    "not UTF-8": ('file = "latin.csv"', "latin.csv cannot be read: 'utf-8' codec can't decode"),
    "a folder": ('file = "."', ":12: follow[1].file: "),
    "both": ('file = "a.csv"\npoints = []', ":10: follow[1]: expected either points or a file of them"),
}


@pytest.mark.parametrize("case", PATHS)
def test_paths_are_refused(case, write, folder):
    (folder / "bad.csv").write_text("t,x,y,z\n0,0,0,0.5\n0.1,0,0\n")
    (folder / "words.csv").write_text("0,0,0,1\n0,0,a,1\n")
    (folder / "empty.csv").write_text("t,x,y,z\n")
    (folder / "latin.csv").write_bytes(b"0,0,0,1\n\xfc")
    given, message = PATHS[case]
    assert message in str(refused(write(FOLLOW.replace('file = "path.csv"', given), "bad.toml")))


def test_lines_of_a_file_of_points_are_named(write, folder):
    """The error is about that file, not about the scenario."""
    (folder / "bad.csv").write_text("t,x,y,z\n0,0,0,0.5\n0.1,0,0\n")
    error = refused(write(FOLLOW.replace("path.csv", "bad.csv"), "bad.toml"))
    assert (error.file, error.line, error.key) == (folder / "bad.csv", 3, "")


def test_postures_are_refused(write):
    error = refused(write(EXACT.replace("{ shoulder = 0.3 }", "{ elbow = -2.5 }")))
    assert (error.line, error.key) == (5, "posture.q.elbow")
    assert error.reason.startswith(
        "expected the joint 'elbow' within its limits, -2 to 1.5, got -2.5; change it, or set"
    )
    error = refused(write(EXACT.replace("{ shoulder = 0.3 }", "{}")))
    assert (error.key, error.reason) == ("posture.q", "expected at least one joint")


def test_variational_steps(write):
    """By the name that the command has, and what other names there are."""
    asked = REACH.replace("dt = 0.1", 'dt = 0.1\nmethod = "variational"\nsubsteps = 2')
    dynamics = load_scenario(write(asked)).problem.dynamics
    assert isinstance(dynamics, MultibodyDynamics)
    assert (dynamics.method, dynamics.substeps) == (VariationalTree(), 2)
    assert "did you mean 'variational'" in str(refused(write(asked.replace('"variational"', '"variatonal"'))))
