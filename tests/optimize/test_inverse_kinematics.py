"""Inverse kinematics against the closed form of a planar arm, and on an arm of seven joints."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim.optimize import inverse_kinematics
from lgsim.optimize.inverse_kinematics import INVERSE_KINEMATICS_RESULTS
from lgsim.support.verdict import Outcome

ARM = """<robot name="arm"><link name="base"/><link name="upper"/><link name="fore"/>
<joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/><axis xyz="0 1 0"/>
  <limit lower="-2" upper="2" effort="1" velocity="1"/></joint>
<joint name="elbow" type="revolute"><parent link="upper"/><child link="fore"/><origin xyz="0 0 .4"/>
  <axis xyz="0 1 0"/><limit lower="0" upper="2.5" effort="1" velocity="1"/></joint></robot>"""
A, B = 0.4, 0.3


@pytest.fixture(scope="module")
def arm():
    tip = jnp.eye(4).at[2, 3].set(B)
    return lgsim.formats.read_urdf(text=ARM)[0].add_frame("tip", "fore", tip)


def closed(x, z):
    """(shoulder, elbow) with a positive elbow."""
    elbow = np.arccos((x * x + z * z - A * A - B * B) / (2 * A * B))
    return np.array([np.arctan2(x, z) - np.arctan2(B * np.sin(elbow), A + B * np.cos(elbow)), elbow])


POINTS = np.array([[0.3, 0, 0.4], [0.5, 0, 0.2], [-0.2, 0, 0.3], [0.1, 0, 0.5]])
FAR, BACK = [0.6, 0.0, 0.8], [-0.65, 0.0, -0.1]
START = jnp.array([0.1, 0.8])


@pytest.fixture(scope="module")
def batch(arm):
    """The answers for four points in reach, one out of reach, one to which the elbow would have to bend backwards and
    300 others, and the configurations of these; of four guesses one bends the wrong way and reaches few."""
    rng = np.random.default_rng(0)
    q = np.stack([rng.uniform(-1.8, 1.8, 300), rng.uniform(0.3, 2.3, 300)], axis=1)
    x = A * np.sin(q[:, 0]) + B * np.sin(q.sum(axis=1))
    z = A * np.cos(q[:, 0]) + B * np.cos(q.sum(axis=1))
    points = np.stack([x, 0 * x, z], axis=1)
    points[::50] = [[2 * np.sin(a), 0, 2 * np.cos(a)] for a in np.linspace(-1.5, 1.5, 6)]
    guesses = jnp.array([[2.0, 2.5], [1.0, 1.0], [-1.0, 1.0], [0.0, 0.5]])
    found = inverse_kinematics(arm, "tip", jnp.array([*POINTS, FAR, BACK, *points]), guesses)
    parts = (slice(0, 4), 4, 5, slice(6, None))
    return *(jax.tree.map(lambda x, i=i: np.asarray(x)[i], found) for i in parts), q


@pytest.mark.slow
def test_a_batch_of_positions_is_that_of_the_closed_form(batch):
    found, *_ = batch
    assert found.q.shape == (4, 2) and np.max(found.error) < 1e-9
    assert np.all(np.asarray(found.result == INVERSE_KINEMATICS_RESULTS.successful))
    np.testing.assert_allclose(found.q, [closed(x, z) for x, _, z in POINTS], atol=1e-8)
    assert np.max(found.iterations) < 30


@pytest.mark.slow
def test_more_targets_than_run_side_by_side(batch):
    """Each gets its own answer, from whichever guess reaches it."""
    *_, found, q = batch
    far = np.arange(300) % 50 == 0
    reached = np.asarray(found.result == INVERSE_KINEMATICS_RESULTS.successful)
    np.testing.assert_array_equal(reached, ~far)
    np.testing.assert_allclose(np.asarray(found.q)[~far], q[~far], atol=1e-7)
    np.testing.assert_allclose(np.asarray(found.error)[far, 0], 2.0 - (A + B), atol=1e-6)


@pytest.mark.slow
def test_derivatives_are_those_of_the_closed_form_in_both_modes(arm):
    """By the target; across the plane nothing moves."""
    point = jnp.array(POINTS[0])

    @jax.jit
    def slopes(point):
        """In forward and in reverse mode, of one linearization."""
        _, push = jax.linearize(lambda point: inverse_kinematics(arm, "tip", point, START).q, point)
        return jax.vmap(push, 0, 1)(jnp.eye(3)), jax.vmap(jax.linear_transpose(push, point))(jnp.eye(2))[0]

    h = 1e-6
    by_x = (closed(0.3 + h, 0.4) - closed(0.3 - h, 0.4)) / (2 * h)
    by_z = (closed(0.3, 0.4 + h) - closed(0.3, 0.4 - h)) / (2 * h)
    wanted = np.stack([by_x, by_z], axis=1)
    for slope in map(np.asarray, slopes(point)):
        np.testing.assert_allclose(slope[:, [0, 2]], wanted, atol=1e-7)
        np.testing.assert_allclose(slope[:, 1], 0, atol=1e-7)


@pytest.mark.slow
def test_limits_hold_and_what_is_out_of_reach_is_told(arm, batch):
    """The nearest point of the reach; an elbow that would have to bend backwards."""
    _, far, back, *_ = batch
    assert bool(far.result == INVERSE_KINEMATICS_RESULTS.out_of_reach)
    np.testing.assert_allclose(far.error[0], 1.0 - (A + B), atol=1e-6)
    q = np.asarray(back.q)
    assert np.all(q >= np.asarray(arm.lower)) and np.all(q <= np.asarray(arm.upper))
    assert bool(back.result == INVERSE_KINEMATICS_RESULTS.out_of_reach)
    assert float(inverse_kinematics(arm, "tip", jnp.array(BACK), START, limits=False).error[0]) < 1e-9


@pytest.mark.slow
def test_a_stretched_arm_reaches_inward(arm):
    """There the slope vanishes; limits keep the elbow from bending to the other side."""
    found = inverse_kinematics(arm, "tip", jnp.array([0.0, 0.0, 0.5]), jnp.zeros(2))
    assert found.result == INVERSE_KINEMATICS_RESULTS.successful and float(found.error[0]) < 1e-9
    np.testing.assert_allclose(found.q, closed(0.0, 0.5), atol=1e-8)


def test_the_posture_decides_between_two_frames_that_disagree(arm):
    """Two targets with weights: the gradient of the weighted squares, by differences, is zero."""
    targets, weights = [jnp.array([0.3, 0.0, 0.4]), jnp.array([0.2, 0.0, 0.2])], [1.0, 0.5]
    home = jnp.array([0.3, 0.5])
    found = inverse_kinematics(arm, ["tip", "fore"], targets, START, weight=weights, posture=home, posture_weight=0.01)
    assert bool(found.result == INVERSE_KINEMATICS_RESULTS.successful) and found.error.shape == (2,)

    def cost(q):
        tip = np.array([A * np.sin(q[0]) + B * np.sin(q.sum()), 0, A * np.cos(q[0]) + B * np.cos(q.sum())])
        fore = np.array([A * np.sin(q[0]), 0, A * np.cos(q[0])])
        gaps = (tip - np.asarray(targets[0]), fore - np.asarray(targets[1]))
        return sum(w * g @ g for w, g in zip(weights, gaps, strict=True)) / 2 + 0.005 * np.sum(
            (q - np.asarray(home)) ** 2
        )

    q, h = np.asarray(found.q), 1e-5
    slope = [(cost(q + h * e) - cost(q - h * e)) / (2 * h) for e in np.eye(2)]
    np.testing.assert_allclose(slope, 0, atol=1e-8)


def test_bad_input_is_told(arm):
    with pytest.raises(ValueError, match=r"frame: expected one of .*tip, got 'hand'"):
        inverse_kinematics(arm, "hand", jnp.zeros(3))
    with pytest.raises(ValueError, match=r"target of 'tip': expected a pose .* got shape \(5,\)"):
        inverse_kinematics(arm, "tip", jnp.zeros(5))
    with pytest.raises(ValueError, match="got 1 targets"):
        inverse_kinematics(arm, ["tip", "fore"], [jnp.zeros(3)])


def arm3():
    """Three joints about different axes."""
    builder, before = lgsim.ModelBuilder(), "world"
    for i, axis in enumerate(np.eye(3)):
        lift = np.eye(4)
        lift[:3, 3] = [0.1, 0.05, 0.3]
        builder.add_body(f"link{i}", before, lgsim.joints.Revolute(), axis=axis, placement=lift, lower=-2.0, upper=2.0)
        before = f"link{i}"
    return builder.add_frame("flange", before, lift).build()


@pytest.mark.slow
@pytest.mark.parametrize(
    "arm",
    [arm3, pytest.param(lambda: lgsim.load_urdf(lgsim.data.arm7()), marks=pytest.mark.exhaustive)],
    ids=["three joints", "seven joints"],
)
def test_poses_of_an_arm_in_space(arm):
    """Poses that the arm has, from four guesses: nearly all are found, all within the limits."""
    model = arm()
    kinematics = jax.jit(jax.vmap(lambda q: lgsim.forward_kinematics(model, q)[model.frame_names.index("flange")]))
    random = jax.jit(lambda key: model.random(key, (40,)))
    poses = kinematics(random(jax.random.key(0)))
    guesses = jnp.concatenate([((model.lower + model.upper) / 2)[None], random(jax.random.key(5))[:3]])
    found = inverse_kinematics(model, "flange", poses, guesses)
    reached = np.asarray(found.result == INVERSE_KINEMATICS_RESULTS.successful)
    assert np.mean(reached) >= 0.95
    gaps = np.linalg.inv(poses) @ np.asarray(kinematics(found.q))
    assert np.max(np.abs(gaps - np.eye(4))[reached]) < 1e-9
    assert np.all(found.q >= model.lower[None]) and np.all(found.q <= model.upper[None])


@pytest.mark.slow
def test_each_search_ends_with_a_verdict(arm, batch):
    """Converged, at a limit, with what nothing decides, or failed, each with its names."""
    reached, *_ = batch
    met = reached.verdict(arm, 0)
    assert met.outcome is Outcome.CONVERGED and met.sentence == "converged" and not met.undetermined
    with pytest.raises(ValueError, match=r"index: expected an index into the targets of shape \(4,\), got \(\)"):
        reached.verdict(arm)

    stretched = jnp.array([0.0, 0.0, A + B - 1e-12])
    at = inverse_kinematics(arm, "tip", stretched, jnp.array([0.0, 0.0]), tolerance=1e-6).verdict(arm)
    assert at.outcome is Outcome.AT_BOUND and at.bounds == ("lower limit of elbow",)
    assert at.sentence.startswith("converged at 1 limit (lower limit of elbow)")

    # the point where the joints' axes meet the plane of the elbow: the elbow's angle moves nothing
    free = inverse_kinematics(arm, "fore", jnp.array([A * np.sin(0.3), 0.0, A * np.cos(0.3)]), START)
    assert free.verdict(arm).outcome is Outcome.NOT_DETERMINED
    assert [name for name, _ in free.verdict(arm).undetermined] == ["elbow"]
    assert free.verdict(arm).sentence == "converged; elbow is not determined by the targets"
    np.testing.assert_allclose(free.slack, [0, 1], atol=1e-9)
    decided = inverse_kinematics(
        arm, "fore", jnp.array([A * np.sin(0.3), 0.0, A * np.cos(0.3)]), START, posture=START, posture_weight=1e-3
    )
    assert decided.verdict(arm).outcome is Outcome.CONVERGED

    lost = inverse_kinematics(arm, "tip", jnp.array(BACK), START).verdict(arm)
    assert lost.outcome is Outcome.FAILED and not lost.converged
    assert "No configuration near the guesses" in lost.sentence and "The error of target 0 of 1 is 0." in lost.sentence
    short = inverse_kinematics(arm, "tip", jnp.array(POINTS[0]), jnp.array([1.0, 1.0]), max_iterations=1).verdict(arm)
    assert short.outcome is Outcome.FAILED and "maximum number of iterations" in short.sentence
