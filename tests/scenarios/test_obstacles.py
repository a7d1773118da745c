"""Obstacles and clearances of scenario and study files, against machines with solids made from Python."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim import geometry
from lgsim import montecarlo as mc
from lgsim.lie import so3
from lgsim.multibody import ModelBuilder, joints
from lgsim.optimize import RESULTS, AugmentedLagrangian, Clearance, ObstacleCost, Solution
from lgsim.optimize.optimality import Optimality
from lgsim.optimize.solver import History
from lgsim.scenarios import ScenarioError, load_scenario, load_study

TUBE = '<collision><origin xyz="0 0 .2"/><geometry><capsule radius="0.03" length="0.34"/></geometry></collision>'

SCENARIO = """
[machine]
file = "tubes.urdf"
solids = true
apart = [["upper", "ball"]]

[[machine.obstacles]]
name = "ball"
sphere = 0.1
position = [0.6, 0, 0.5]

[[machine.obstacles]]
name = "wall"
half_space = true
position = [-2, 0, 0]
rotation = [0, 1.5707963267948966, 0]

[[machine.obstacles]]
name = "plate"
frame = "tip"
box = [0.1, 0.02, 0.1]

[time]
dt = 0.1
horizon = 4
"""
REACH = (
    SCENARIO
    + """
[[reach]]
frame = "tip"
position = [0.2, 0, 0.5]

[[clear]]
margin = 0.05
solids = ["fore"]
weight = 300.0
"""
)
STUDY = (
    SCENARIO.replace("horizon", "steps")
    + """
[dispersions]
q = { std = 0.01 }

[[outputs.least_clearance]]
name = "gap"
solids = ["plate", "fore"]

[[failures]]
name = "hit"
output = "gap"
entry = 0
below = 0.0

[sampling]
samples = 50
"""
)


@pytest.fixture(scope="module")
def machine(folder):
    """A file of an arm whose links are tubes, and the same machine with what the scenario puts about it."""
    text = (
        (folder / "arm.urdf").read_text().replace('</link>\n<link name="fore">', TUBE + '</link>\n<link name="fore">')
    )
    text = text.replace("<visual>", TUBE + "<visual>")
    (folder / "tubes.urdf").write_text(text)
    model = lgsim.load_urdf(folder / "tubes.urdf", solids=True)
    assert model.solid_names == ("upper", "fore")
    wall, ball = np.eye(4), np.eye(4)
    wall[:3, :3], wall[:3, 3] = so3.exp(jnp.array([0, np.pi / 2, 0])), (-2, 0, 0)
    ball[:3, 3] = (0.6, 0, 0.5)
    return model.add_solids([
        ("ball", "world", geometry.Sphere(0.1), ball), ("wall", "world", geometry.HalfSpace(), wall),
        ("plate", "tip", geometry.Box((0.1, 0.02, 0.1)), None),
    ]).exclude([("upper", "ball")])  # fmt: skip


@pytest.mark.slow
def test_a_scenario_has_obstacles_and_a_clearance(machine, write):
    scenario = load_scenario(write(REACH))
    model = scenario.machine.model
    assert model.topology == machine.topology
    for leaf in ("solids", "solid_poses"):
        np.testing.assert_allclose(getattr(model, leaf), getattr(machine, leaf), atol=1e-12)
    task = scenario.tasks[-1]
    assert isinstance(task.cost, ObstacleCost) and task.along and not scenario.problem.constraints
    assert task.cost.solid_pairs == (("fore", "fore"), ("ball", "wall")) and float(task.cost.weight) == 300
    exact = load_scenario(write(REACH + "exact = true\n"))
    assert isinstance(exact.solver, AugmentedLagrangian) and isinstance(exact.problem.constraints[0], Clearance)


@pytest.mark.slow
def test_errors_of_a_clearance_are_what_it_lacks(machine, write):
    scenario = load_scenario(write(REACH.replace("margin = 0.05", "margin = 0.5")))
    ys = jnp.zeros((5, 4)).at[:, 0].set(jnp.linspace(0, 0.5, 5))
    zero, none = jnp.zeros(()), jnp.array(-1)
    result = Solution(
        jnp.arange(5.0), ys, jnp.zeros((4, 2)), zero, zero, zero, zero, None,
        Optimality(zero, zero, zero, zero), History.empty(1, jnp.float64), jnp.array(0), RESULTS.successful, none, none,
    )  # fmt: skip
    ((found, unit),) = scenario.tasks[-1].errors(scenario.problem, result)
    d = lgsim.distance(machine, ys[:, :2], ["fore", "fore"], ["ball", "wall"])
    assert unit == "m" and found == pytest.approx(float(jnp.max(jnp.linalg.norm(jnp.maximum(0.5 - d, 0), axis=1))))


@pytest.mark.slow
def test_a_study_keeps_the_least_clearance(machine, write):
    study = load_study(write(STUDY)).study
    output = study.outputs["gap"]
    assert set(zip(*output.pairs, strict=True)) == {
        ("fore", "ball"), ("fore", "wall"), ("ball", "plate"), ("wall", "plate"),
    }  # fmt: skip
    result = mc.run(study, step_check=False)
    assert result.column("gap").shape == (50, 2)
    assert np.all(result.column("gap")[:, 1] >= 0) and np.all(result.column("gap")[:, 1] <= 0.4 + 1e-12)


def test_the_least_clearance_of_a_motion_is_that_of_a_throw():
    """A ball above a floor, and one beside a post, in closed form at the saved states."""
    builder = ModelBuilder().add_body("ball", "world", joints.Translational(), mass=1.0, inertia=np.eye(3))
    model = builder.add_solid("shell", "ball", geometry.Sphere(0.1)).add_solid(
        "floor", "world", geometry.HalfSpace()).add_solid("post", "world", geometry.Sphere(0.2)).build()  # fmt: skip
    time = jnp.linspace(0, 1, 11)
    q = jnp.stack([2 + 0 * time, 0 * time, 0.9 - 2 * time + 2.2 * time**2], axis=1)
    motion = mc.SampledMotion(model, time, q, jnp.zeros_like(q), jnp.zeros_like(q))
    heights = np.asarray(q[:, 2]) - 0.1
    found = jax.jit(mc.outputs.LeastClearance())(motion)
    np.testing.assert_allclose(found, [heights.min(), time[heights.argmin()]], atol=1e-14)
    far = jax.jit(mc.outputs.LeastClearance((("shell",), ("post",))))(motion)
    beside = np.linalg.norm(q, axis=1) - 0.3
    np.testing.assert_allclose(far, [beside.min(), time[beside.argmin()]], atol=1e-14)
    rollout = mc.Rollout(model, dt=0.1, steps=2)
    assert {"model.solids", "model.solid_poses"} <= set(rollout.names())


@pytest.mark.parametrize(
    "old, new, message",
    [
        ("sphere = 0.1\n", "", "expected one of sphere, capsule, cylinder, box, half_space, got none"),
        ("sphere = 0.1\n", "sphere = 0.1\nbox = [1, 1, 1]\n", "got sphere and box"),
        ("sphere = 0.1\n", "sphere = -0.1\n", "sphere"),
        ('"ball"]]', '"bal"]]', "expected the name of a solid or of its link, got 'bal'; did you mean 'ball'"),
        ('"ball"]]', "]]", "expected two names of solids or links"),
        ("solids = true\n", 'solids = ["for"]\n', "did you mean 'fore'"),
        ('frame = "tip"\nbox', 'frame = "tipp"\nbox', "tipp"),
        ('name = "wall"', 'name = "ball"', "the name is taken"),
        ("margin = 0.05", 'margin = "x"', "margin"),
        ('solids = ["fore"]', 'solids = ["forr"]', "did you mean 'fore'"),
    ],
)
def test_what_is_refused(machine, write, old, new, message):
    text = REACH.replace(old, new)
    assert text != REACH
    with pytest.raises(ScenarioError) as caught:
        load_scenario(write(text))
    assert message in str(caught.value) and caught.value.line
