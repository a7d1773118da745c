"""An arm of seven joints reaches around obstacles, several scenes in one call; every motion is clear by coal too."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim import geometry
from lgsim.actions import Translation
from lgsim.optimize import (
    ILQR,
    ControlEffort,
    DiscreteDynamics,
    FramePosition,
    JointVelocity,
    ObstacleCost,
    Problem,
    solve,
)

STEPS, DURATION, FINER = 20, 2.0, 10
DT = DURATION / STEPS
START = jnp.array([-0.8, -0.1, 0.0, -2.0, 0.0, 1.9, 0.8])
GOAL = START.at[0].set(0.8)
SCENES = 6


def arm():
    """The shipped arm with a ball and a post in the world, and the pairs of them with its last links."""
    model, _ = lgsim.formats.read_urdf(lgsim.data.arm7(), solids=True)
    model = model.add_solid("ball", "world", geometry.Sphere(0.1)).add_solid(
        "post", "world", geometry.Capsule(0.06, 0.5)
    )
    near = [name for name in model.solid_names if name[:5] in ("link4", "link5", "link6", "link7")]
    kept = [(a, b) for a, b in zip(*model.solid_pairs(["ball", "post"]), strict=True) if a in near]
    return model, (tuple(a for a, _ in kept), tuple(b for _, b in kept))


def step(t, y, u, args):
    """Joint accelerations, held for a step."""
    return jnp.concatenate([y[:7] + DT * y[7:] + DT * DT / 2 * u, y[7:] + DT * u])


def placed(model, ball, post):
    return model.replace(solid_poses=model.solid_poses.at[-2, :3, 3].set(ball).at[-1, :3, 3].set(post))


def finer(ys):
    """The configurations at ten times as many times, exactly between the nodes."""
    q, v, s = ys[:, :7], ys[:, 7:], np.arange(FINER)[:, None] / FINER * DT
    a = (v[1:] - v[:-1]) / DT
    between = q[:-1, None] + v[:-1, None] * s + a[:, None] * s**2 / 2
    return np.concatenate([between.reshape(-1, 7), q[-1:]])


def solid(coal, model, name):
    place = model.solid_names.index(name)
    sizes = np.asarray(model.solids[place])
    kind = model.topology.solids[place].geometry
    return coal.Sphere(sizes[0]) if isinstance(kind, geometry.Sphere) else coal.Capsule(sizes[0], sizes[1])


@pytest.mark.slow
@pytest.mark.oracle
def test_an_arm_reaches_around_obstacles_in_many_scenes():
    coal = pytest.importorskip("coal")
    model, pairs = arm()
    flange = model.frame_names.index("flange")
    target = lgsim.forward_kinematics(model, GOAL)[flange, :3, 3]
    dynamics = DiscreteDynamics(Translation(14), step, 7, DT)

    def plan(ball, post):
        near = ObstacleCost(placed(model, ball, post), 0.06, 1e4, pairs)
        problem = Problem(
            dynamics, jnp.concatenate([START, jnp.zeros(7)]), horizon=STEPS, running=ControlEffort(1e-2) + near,
            terminal=FramePosition(model, "flange", target, 1e4) + JointVelocity(model, 1e2) + near,
        )  # fmt: skip
        return solve(problem, solver=ILQR(max_iterations=40)).ys

    rng = np.random.default_rng(3)
    low, high = np.array([[0.42, -0.1, 0.4], [0.35, -0.2, 0.0]]), np.array([[0.55, 0.1, 0.55], [0.5, 0.2, 0.15]])
    places = rng.uniform(low, high, (SCENES, 2, 3))
    found = np.asarray(jax.jit(jax.vmap(plan))(*jnp.moveaxis(jnp.asarray(places), 1, 0)))

    def least(model, q):
        """By coal, of all pairs at all times."""
        poses = np.asarray(lgsim.forward_kinematics(model, jnp.asarray(q)))
        smallest = np.inf
        for a, b in zip(*pairs, strict=True):
            one, other = solid(coal, model, a), solid(coal, model, b)
            i, j = (model.solid_names.index(name) for name in (a, b))
            frame = model.frame_names.index(model.topology.solids[i].frame)
            own, still = np.asarray(model.solid_poses[i]), np.asarray(model.solid_poses[j])
            for T in poses[:, frame] @ own:
                ways = [coal.Transform3s(X[:3, :3], X[:3, 3]) for X in (T, still)]
                smallest = min(smallest, coal.distance(one, ways[0], other, ways[1], coal.DistanceRequest(),
                                                       coal.DistanceResult()))  # fmt: skip
        return smallest

    straight = np.asarray(START) + np.asarray(GOAL - START) * np.linspace(0, 1, 41)[:, None]
    blocked = 0
    for ys, (ball, post) in zip(found, places, strict=True):
        scene = placed(model, jnp.asarray(ball), jnp.asarray(post))
        assert least(scene, finer(ys)) > 0
        tip = lgsim.forward_kinematics(scene, jnp.asarray(ys[-1, :7]))[flange, :3, 3]
        assert np.linalg.norm(tip - target) < 0.01
        blocked += least(scene, straight) < 0
    assert blocked >= SCENES // 2, "the obstacles are in the way"
