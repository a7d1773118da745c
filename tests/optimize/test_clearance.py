"""Costs, conditions and inverse kinematics that keep solids apart, against closed forms of balls and segments."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lgsim import geometry
from lgsim.multibody import ModelBuilder, ModelError, joints
from lgsim.optimize import (
    ILQR,
    AugmentedLagrangian,
    Clearance,
    ControlEffort,
    MultibodyDynamics,
    ObstacleCost,
    Problem,
    SelfCollision,
    StateDistance,
    inverse_kinematics,
    solve,
)
from lgsim.optimize.cost import Residual
from lgsim.support.verdict import Outcome

R, BALL = 0.3, 0.1
LENGTHS, TUBE = (0.4, 0.3, 0.3), 0.03


def puck(dtype=None):
    """A ball that moves freely in space without weight, another one that it carries on a slide, and two obstacles."""
    builder = ModelBuilder(gravity=(0, 0, 0), dtype=dtype)
    builder.add_body("puck", "world", joints.Translational(), mass=1.0, inertia=np.eye(3))
    builder.add_body("tail", "puck", joints.Prismatic(), joint_name="slide", axis=(1, 0, 0), mass=0.1,
                     inertia=np.eye(3))  # fmt: skip
    builder.add_body("tip", "tail", joints.Prismatic(), joint_name="lift", axis=(0, 0, 1), mass=0.1, inertia=np.eye(3))
    builder.add_solid("ball", "puck", geometry.Sphere(BALL)).add_solid("end", "tip", geometry.Sphere(BALL))
    builder.add_solid("post", "world", geometry.Sphere(R)).add_solid("floor", "world", geometry.HalfSpace(), pose(-2.0))
    return builder.build()


def pose(z):
    T = np.eye(4)
    T[2, 3] = z
    return T


def arm(dtype=None):
    """Three links in the x-z plane, each a capsule, and a ball to go around."""
    builder = ModelBuilder(dtype=dtype)
    at = "world"
    for i, length in enumerate(LENGTHS):
        placement = pose(0.0 if i == 0 else LENGTHS[i - 1])
        builder.add_body(f"link{i}", at, joints.Revolute(), joint_name=f"joint{i}", axis=(0, 1, 0), placement=placement,
                         mass=1.0, inertia=np.eye(3), lower=-2.5, upper=2.5)  # fmt: skip
        builder.add_solid(f"tube{i}", f"link{i}", geometry.Capsule(TUBE, length), pose(length / 2))
        at = f"link{i}"
    builder.add_frame("tip", at, pose(LENGTHS[-1]))
    return builder.add_solid("post", "world", geometry.Sphere(0.1)).build()


def placed(model, x, z):
    return model.replace(solid_poses=model.solid_poses.at[-1, :3, 3].set(jnp.stack([x, jnp.zeros_like(x), z])))


def gap(q, x, z):
    """The least distance of the three segments from the ball, by numpy."""
    turns = np.cumsum(q)
    joint, least = np.zeros(2), np.inf
    for turn, length in zip(turns, LENGTHS, strict=True):
        along = np.array([np.sin(turn), np.cos(turn)])
        share = np.clip((np.array([x, z]) - joint) @ along, 0, length)
        least = min(least, np.linalg.norm(joint + share * along - [x, z]))
        joint = joint + length * along
    return least - TUBE - 0.1


def test_pairs_are_those_with_the_world_and_those_of_the_machine():
    model = puck()
    assert ObstacleCost(model, 0.1).solid_pairs == (
        ("ball", "ball", "end", "end"), ("post", "floor", "post", "floor"),
    )  # fmt: skip
    assert SelfCollision(model, 0.1).solid_pairs == (("ball",), ("end",))
    assert len(Clearance(model).solid_pairs[0]) == 5
    assert Clearance(model, pairs=(["ball"], ["post"])).solid_pairs == (("ball",), ("post",))


@pytest.mark.slow
def test_costs_are_those_of_the_distances_of_balls():
    """Value and gradient, in and out of the margin; the derivative in closed form is that of automatic modes."""
    model, margin = puck(), 0.25
    y = jnp.array([0.4, 0.2, 0.1, -0.3, 0.1, *np.zeros(5)])
    p = np.array(y[:3])
    cost = ObstacleCost(model, margin, 3.0, (("ball", "ball"), ("post", "floor")))
    short = margin - (np.linalg.norm(p) - R - BALL)
    assert 0 < short < margin
    np.testing.assert_allclose(cost.value(0.0, y, None, None), 1.5 * short**2, rtol=1e-12)
    slope = jax.grad(lambda y: cost.value(0.0, y, None, None))(y)
    np.testing.assert_allclose(slope[:3], -3 * short * p / np.linalg.norm(p), rtol=1e-12)
    own = SelfCollision(model, 0.5, 2.0)
    apart = np.hypot(0.3, 0.1)
    np.testing.assert_allclose(own.value(0.0, y, None, None), (0.5 - (apart - 2 * BALL)) ** 2, rtol=1e-12)
    action = MultibodyDynamics(model, 0.1).action
    for each in (cost, own):
        found = each.linear(action, 0.0, y, None, None)
        right = Residual.linear(each, action, 0.0, y, None, None)
        chex.assert_trees_all_close(found, right, rtol=1e-7, atol=1e-13)
    far = y.at[0].set(3.0)
    assert float(cost.value(0.0, far, None, None)) == 0 and not np.any(jax.grad(cost.value, 1)(0.0, far, None, None))


@pytest.mark.slow
def test_a_ball_goes_around_a_ball():
    """Through the middle without the condition; with it at its distance at the nearest node."""
    model = puck()
    dynamics = MultibodyDynamics(model, 0.1)
    start, goal = (jnp.zeros(10).at[0].set(x).at[1].set(0.05) for x in (-1.0, 1.0))
    problem = Problem(
        dynamics, start, horizon=20, running=ControlEffort(1.0),
        terminal=StateDistance(dynamics.action, goal, 1e4),
        constraints=[Clearance(model, 0.05, (("ball",), ("post",)))],
    )  # fmt: skip
    result = solve(problem, solver=AugmentedLagrangian(ILQR(max_iterations=60), tolerance=1e-7, penalty=100.0))
    assert result.message == ""
    distances = np.linalg.norm(np.asarray(result.ys)[:, :3], axis=1) - R - BALL
    assert np.min(distances) == pytest.approx(0.05, abs=2e-7)
    straight = np.linalg.norm(np.linspace(start[:3], goal[:3], 21), axis=1) - R - BALL
    assert np.min(straight) < -0.3


@pytest.fixture(scope="module")
def arms():
    """(an arm, a search of it with an obstacle at (x, z), compiled once, guesses)."""
    model, pairs = arm(), (("tube0", "tube1", "tube2"), ("post",) * 3)

    def search(x, z, margin, target, guesses):
        clear = Clearance(placed(model, x, z), margin, pairs)
        return inverse_kinematics(clear.model, "tip", target, guesses, clearance=clear)

    guesses = jnp.array([[0.3, 0.8, 0.4], [-0.4, 1.4, 1.0], [1.0, -0.5, 0.5]])
    return model, jax.jit(search), guesses


def tip_of(q):
    return np.array([np.sum(np.array(LENGTHS) * f(np.cumsum(q))) for f in (np.sin, np.cos)])


@pytest.mark.slow
def test_inverse_kinematics_keeps_its_clearance(arms):
    """With a ball in the way of what is found without it."""
    model, search, guesses = arms
    x, z, target = jnp.array(0.25), jnp.array(0.45), jnp.array([0.55, 0.0, 0.45])
    free = inverse_kinematics(model, "tip", target, guesses)
    assert gap(np.asarray(free.q), 0.25, 0.45) < -0.01
    found = search(x, z, 0.02, target, guesses)
    q = np.asarray(found.q)
    np.testing.assert_allclose(tip_of(q), [0.55, 0.45], atol=1e-9)
    assert gap(q, 0.25, 0.45) >= 0.02 - 1e-9 and float(found.shortfall) < 1e-9
    assert found.verdict(model).outcome == Outcome.NOT_DETERMINED


@pytest.mark.exhaustive
def test_a_solution_that_touches_stays_touching_in_its_derivative(arms):
    """By the place of the obstacle, which comes nearer: against differences of whole searches."""
    _, search, guesses = arms
    z, target = jnp.array(0.45), jnp.array([0.55, 0.0, 0.45])
    q = search(jnp.array(0.25), z, 0.02, target, guesses).q
    margin, still = gap(np.asarray(q), 0.25, 0.45), jnp.tile(q, (3, 1))
    J = jax.jit(jax.jacfwd(lambda x: search(x, z, margin, target, still).q))(jnp.array(0.25))
    h = 1e-6 if gap(np.asarray(q), 0.25 + 1e-6, 0.45) < margin else -1e-6
    moved = search(jnp.array(0.25 + h), z, margin, target, still).q
    assert float(jnp.max(jnp.abs(J))) > 0.1
    np.testing.assert_allclose((moved - q) / h, J, atol=1e-4)
    assert gap(np.asarray(q + h * J), 0.25 + h, 0.45) == pytest.approx(margin, abs=1e-10)


@pytest.mark.slow
def test_a_clearance_that_cannot_be_kept_is_told(arms):
    """The target is inside of the obstacle."""
    model, search, guesses = arms
    found = search(jnp.array(0.5), jnp.array(0.5), 0.01, jnp.array([0.5, 0.0, 0.5]), guesses)
    verdict = found.verdict(model)
    assert verdict.outcome == Outcome.FAILED and "the clearance is violated by" in str(verdict)
    # between the two the compromise is the mean
    assert float(found.shortfall) == pytest.approx((0.1 + TUBE + 0.01) / 2, rel=0.2)


@pytest.mark.slow
def test_single_precision_stays():
    model = puck(jnp.float32)
    y = jnp.zeros(10, jnp.float32).at[0].set(0.45)
    for cost in (ObstacleCost(model, 0.2), SelfCollision(model, 0.2)):
        assert cost.residual(0.0, y, None, None).dtype == jnp.float32
        assert jax.grad(cost.value, 1)(jnp.float32(0), y, None, None).dtype == jnp.float32
    assert Clearance(model, 0.2).value(0.0, y, None, None).dtype == jnp.float32


def test_bad_input():
    model = puck()
    bare = ModelBuilder().add_body("a", "world", joints.Free(), mass=1.0, inertia=np.eye(3)).build()
    with pytest.raises(ModelError, match="Clearance: the model has no geometry pair that could collide"):
        Clearance(bare)
    with pytest.raises(ModelError, match="did you mean 'post'"):
        ObstacleCost(model, 0.1, pairs=(("ball",), ("posts",)))
    with pytest.raises(
        ValueError, match=r"margin: expected a scalar or one value for each of 5 pairs, got shape \(2,\)"
    ):
        Clearance(model, jnp.zeros(2))
    with pytest.raises(ValueError, match="SelfCollision: margin: expected finite numbers"):
        SelfCollision(model, jnp.nan)
    with pytest.raises(ValueError, match="weight: ObstacleCost expected finite nonnegative numbers"):
        ObstacleCost(model, 0.1, -1.0)
    dynamics = MultibodyDynamics(model, 0.1)
    with pytest.raises(ValueError, match=r"constraints\[0\]: infeasible, y0 is outside .* by 0\.45"):
        Problem(dynamics, jnp.zeros(10).at[0].set(0.05), horizon=2, constraints=[
            Clearance(model, 0.1, (("ball",), ("post",)))])  # fmt: skip
    with pytest.raises(ModelError, match="the model has no geometry pair"):
        inverse_kinematics(bare, "a", jnp.eye(4), clearance=0.1)


@pytest.mark.parametrize("between", [5, *(pytest.param(n, marks=pytest.mark.slow) for n in (0, 1, 2))])
def test_points_between_nodes_are_those_of_the_motion(between):
    """A ball that flies straight by a post: the distances at equal shares of the step, each asked for once."""
    model, dt = puck(), 0.2
    clear = Clearance(model, 0.05, (("ball",), ("post",)), between=between)
    v = np.array([3.0, 0.4, 0, 0, 0])
    ys = [jnp.array([*(np.array([-1.0, 0.3, 0, 0, 0]) + k * dt * v), *v]) for k in range(4)]
    problem = Problem(MultibodyDynamics(model, dt), ys[0], horizon=3, running=ControlEffort(1.0), constraints=[clear])
    clear, u = problem.constraints[0], jnp.zeros(problem.controls)
    rows = [clear.value(0.0, y, None if k == 3 else u, None) for k, y in enumerate(ys)]
    # what the first one looks back to is before the motion
    rows[0] = rows[0][: 1 + (between + 1) // 2]
    steps = np.arange(3 * (between + 1) + 1) / (between + 1)
    places = np.array([-1.0, 0.3, 0]) + steps[:, None] * dt * v[:3]
    right = 0.05 - (np.linalg.norm(places, axis=1) - R - BALL)
    np.testing.assert_allclose(np.sort(np.concatenate(rows)), np.sort(right), atol=1e-12)
    assert len(clear.state_value(ys[0])) == 1


@pytest.mark.slow
def test_a_motion_is_clear_between_its_nodes():
    """Few nodes around a ball: between them the motion under constant forces is known, and so is its least distance."""
    model, dt = puck(), 0.4
    dynamics = MultibodyDynamics(model, dt)
    start, goal = (jnp.zeros(10).at[0].set(x).at[1].set(0.05) for x in (-1.0, 1.0))
    shares = np.linspace(0, 1, 101)[:, None]
    least = {}
    for between in (0, 3):
        problem = Problem(
            dynamics, start, horizon=6, running=ControlEffort(1.0),
            terminal=StateDistance(dynamics.action, goal, 1e4),
            constraints=[Clearance(model, 0.05, (("ball",), ("post",)), between=between)],
        )  # fmt: skip
        found = solve(problem)
        assert found.message == ""
        ys = np.asarray(found.ys)
        before, after = ys[:-1, None], ys[1:, None]
        a = (after[..., 5:8] - before[..., 5:8]) / dt
        path = before[..., :3] + shares * dt * before[..., 5:8] + (shares * dt) ** 2 / 2 * a
        np.testing.assert_allclose(path[:, -1], after[:, 0, :3], atol=1e-9)
        least[between] = np.min(np.linalg.norm(path, axis=-1)) - R - BALL
        shift = np.max(np.linalg.norm(a, axis=-1)) * dt**2 / 8
    assert least[0] < 0.03 and least[3] > 0.05 - shift
    # the points themselves are 0.1 s apart
    assert least[3] > least[0] + 0.01


def test_points_between_nodes_are_counted():
    with pytest.raises(ValueError, match="between"):
        Clearance(puck(), between=-1)
