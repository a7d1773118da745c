"""How much of its limits a motion uses, and what is said of a start outside of them."""

import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim.multibody import joints
from lgsim.simulation import Trajectory, limits
from lgsim.simulation.limits import LimitUse, limit_parts, limit_rows, limit_uses, limit_warnings, start_warnings
from tests.scenarios.machines import ARM


@pytest.fixture(scope="module")
def arm():
    """Two links; the shoulder has no limits, the elbow goes from -2 to 1.5 at up to 5 rad/s and 10 N m."""
    return lgsim.load_urdf(text=ARM)


def slide(**numbers):
    return lgsim.ModelBuilder().add_body("cart", "world", joints.Prismatic(), mass=2.0, **numbers).build()


@pytest.mark.quick
def test_largest_parts_by_hand(arm):
    """1 rad is 1.25 from the middle of -2 and 1.5, whose half length is 1.75; -2 rad/s of 5, 5 N m of 10."""
    q = np.array([[9.0, 0.0], [9.0, 1.0], [9.0, -0.5]])
    v = np.array([[7.0, 0.0], [7.0, 1.0], [7.0, -2.0]])
    tau = np.array([[3.0, 5.0], [3.0, 4.0], [3.0, 0.0]])
    found = limit_uses(arm, q, v, tau, np.array([0.0, 0.1, 0.2]))
    assert found == (
        LimitUse("position", "elbow", 1.25 / 1.75, 1.0, (-2.0, 1.5), "rad", 0.1),
        LimitUse("speed", "elbow", 0.4, -2.0, (-5.0, 5.0), "rad/s", 0.2),
        LimitUse("torque", "elbow", 0.5, 5.0, (-10.0, 10.0), "N m", 0.0),
    )
    assert limit_rows(found) == [
        ("position limits", "71.4 % used: elbow 1 rad at 0.1 s"),
        ("speed limits", "40 % used: elbow -2 rad/s at 0.2 s"),
        ("torque limits", "50 % used: elbow 5 N m at 0 s"),
    ]
    assert limit_warnings(found) == []
    assert [use.kind for use in limit_uses(arm, v=v)] == ["speed"]
    assert limit_parts(arm, q).speed is None
    np.testing.assert_array_equal(np.isnan(limit_parts(arm, q, v, tau).torque), [[True, False]] * 3)


def test_beyond_limits_is_said_worst_first():
    builder = lgsim.ModelBuilder()
    for i in range(7):
        builder.add_body(f"b{i}", f"b{i - 1}" if i else "world", joints.Revolute(), joint_name=f"j{i}", mass=1.0,
                         lower=-1.0, upper=1.0, velocity_limit=2.0)  # fmt: skip
    model = builder.build()
    q = np.array([[0.5, -1.1, 1.2, 1.3, 1.4, 1.5, 1.6]])
    (text,) = limit_warnings(limit_uses(model, q, 0 * q))
    assert text.startswith(
        "beyond position limits: j6 1.6 rad (limit 1 rad, exceeded by 0.6), j5 1.5 rad (limit 1 rad,"
    )
    assert text.endswith("j2 1.2 rad (limit 1 rad, exceeded by 0.2) and 1 more joint")
    assert limit_warnings(limit_uses(model, q / 1.6 * (1 + 1e-9))) == []


@pytest.mark.parametrize("numbers", [
    {"velocity_limit": 0.0, "effort_limit": 0.0},
    {"velocity_limit": np.inf, "effort_limit": np.inf},
    {"lower": 0.3, "upper": 0.3},
    {"lower": 0.0, "upper": 0.0},
])  # fmt: skip
def test_no_limits(numbers):
    """Infinite ones, those that files write for none, and ranges of length zero."""
    x = np.array([[5.0]])
    assert limit_uses(slide(**numbers), x, x, x) == ()
    assert start_warnings(slide(**numbers), x[0], x[0], x[0]) == []


def test_a_range_with_one_end():
    """There is no part of it, but an outside."""
    model = slide(lower=0.5)
    assert limit_uses(model, np.array([[0.7], [100.0]])) == ()
    (use,) = limit_uses(model, np.array([[0.7], [0.4]]), time=np.array([0.0, 2.0]))
    assert (use.part, use.value, use.time) == (np.inf, 0.4, 2.0)
    assert limit_rows([use]) == [("position limits", "exceeded: cart 0.4 m at 2 s")]
    assert limit_warnings([use]) == ["beyond position limits: cart 0.4 m at 2 s (0.5 to infinity m, exceeded by 0.1)"]


def test_numbers_that_are_not_finite_count_for_nothing(arm):
    q = np.array([[0.0, 1.0], [0.0, np.nan], [0.0, np.inf]])
    (use,) = limit_uses(arm, q, time=np.arange(3.0))
    assert (use.value, use.time) == (1.0, 0.0)
    assert limit_uses(arm, q[1:]) == () and limit_uses(arm, q[:0], q[:0], q[:0]) == ()


def test_swing_angle_and_twist_of_a_ball():
    """A ball turned by a known twist and then a known swing, also by the other quaternion of the same rotation."""
    swing, twist = 0.6, 0.5
    a, b = np.array([np.cos(0.3), np.sin(0.3), 0, 0]), np.array([np.cos(0.25), 0, 0, np.sin(0.25)])
    q = np.array([a[0] * b[0], a[1] * b[0], -a[1] * b[3], a[0] * b[3]])
    # the angle of the whole by the trace of the product of the two rotation matrices
    angle = np.arccos((np.cos(swing) + np.cos(twist) + np.cos(swing) * np.cos(twist) - 1) / 2)
    limit = {"lower": [0, 0, -1.0], "upper": [1.0, 2.0, 0.2]}
    model = lgsim.ModelBuilder().add_body("ball", "world", joints.Spherical(), mass=1.0, **limit).build()
    for sign in (1, -1):
        found = limit_uses(model, sign * q[None])
        assert [use.joint for use in found] == ["ball swing", "ball angle", "ball twist"]
        np.testing.assert_allclose([use.value for use in found], [swing, angle, twist], rtol=1e-14)
        np.testing.assert_allclose([use.part for use in found], [swing, angle / 2, (0.5 + 0.4) / 0.6], rtol=1e-14)
    assert [use.passed for use in found] == [False, False, True]
    free = model.replace(lower=jnp.array([0.0, 0.0, -jnp.pi]), upper=jnp.array([jnp.pi, jnp.inf, jnp.pi]))
    assert limit_uses(free, q[None]) == ()


def test_twist_across_half_a_turn():
    """A range about half a turn: what is just past -pi is inside."""
    limit = {"lower": [0, 0, 2.0], "upper": [4.0, 4.0, 4.0 - 1e-9]}
    model = lgsim.ModelBuilder().add_body("ball", "world", joints.Spherical(), mass=1.0, **limit).build()
    twist = 3.0
    (use,) = limit_uses(model, np.array([[np.cos(twist / 2), 0, 0, np.sin(twist / 2)]]))
    # lower and upper are cut at half a turn, as the stops cut them
    middle, half = (2 + np.pi) / 2, (np.pi - 2) / 2
    np.testing.assert_allclose(use.part, (twist - middle) / half, rtol=1e-12)


def test_summary_of_a_trajectory(arm):
    time = np.array([0.0, 0.5])
    q, v, tau = np.array([[0.0, 0.0], [0.0, 3.0]]), np.array([[0.0, 1.0], [0.0, 6.0]]), np.zeros((2, 2))
    motion = Trajectory(arm, time, q, v, tau)
    summary = motion.summary()
    assert [name for name, _ in summary.rows] == [
        "final time", "energy drift", "position limits", "speed limits", "torque limits"
    ]  # fmt: skip
    assert summary.warnings == (
        "beyond position limits: elbow 3 rad at 0.5 s (-2 to 1.5 rad, exceeded by 1.5)",
        "beyond speed limits: elbow 6 rad/s at 0.5 s (limit 5 rad/s, exceeded by 1)",
    )
    text = str(summary).splitlines()
    assert text[0] == "final time       0.5 s" and text[2] == "position limits  186 % used: elbow 3 rad at 0.5 s"
    assert text[-1] == f"warning: {summary.warnings[1]}"
    assert motion.limit_uses is motion.limit_uses
    with pytest.raises(ValueError, match="trajectory: expected at least one state, got none"):
        motion[:0].summary()


def test_starts(arm):
    """Beyond limits, degrees in place of radians, torques, speeds; a joint without limits that turned twice."""
    assert start_warnings(arm, np.array([0.3, 1.4]), np.array([9.0, 4.0]), np.array([0.0, 10.0])) == []
    assert start_warnings(arm, np.array([0.0, 80.0]), np.array([0.0, -100.0]), np.array([0.0, 1000.0])) == [
        "joint 'elbow' starts at 80 rad, beyond its position limit (-2 to 1.5 rad): looks like degrees",
        "joint 'elbow' starts at -100 rad/s, beyond its speed limit (limit 5 rad/s): looks like degrees",
        "joint 'elbow' is given 1000 N m, beyond its torque limit (limit 10 N m)",
    ]
    assert start_warnings(arm, np.array([90.0, 2.0])) == [
        "joint 'shoulder' starts at 90 rad, 14.3 turns: looks like degrees",
        "joint 'elbow' starts at 2 rad, beyond its position limit (-2 to 1.5 rad)",
    ]
    far = start_warnings(arm, np.array([0.0, 5000.0]))
    assert far == ["joint 'elbow' starts at 5000 rad, beyond its position limit (-2 to 1.5 rad)"]
    assert start_warnings(slide(lower=-1.0, upper=1.0), np.array([30.0])) == [
        "joint 'cart' starts at 30 m, beyond its position limit (limit 1 m)"
    ]


def test_every_joint_has_as_many_names_as_numbers():
    """Joints of several degrees of freedom, groups and followers."""
    builder = lgsim.ModelBuilder().add_body("base", "world", joints.Free(), mass=1.0, inertia=np.eye(3))
    builder.add_body("cross", "base", joints.Universal(), mass=1.0, inertia=np.eye(3), lower=-1.0, upper=1.0)
    builder.add_body("disc", "base", joints.Planar(), mass=1.0, inertia=np.eye(3), lower=-1.0, upper=1.0)
    builder.add_body("wheel", "base", joints.Revolute(), mass=1.0, inertia=np.eye(3))
    builder.add_body("mate", "base", joints.Revolute(), mass=1.0, inertia=np.eye(3), mimic=("wheel", 1.0, 0.0),
                     lower=-0.1, upper=0.1)  # fmt: skip
    model = builder.build().replace(velocity_limit=4.0)
    q = np.asarray(model.neutral())[None]
    found = limit_uses(model, q, np.ones((1, model.nv)))
    assert [use.joint for use in found if use.kind == "position"] == [
        "cross[0]", "cross[1]", "disc[0]", "disc[1]", "disc[2]"
    ]  # fmt: skip
    assert [use.unit for use in found if use.joint.startswith("disc")] == ["m", "m", "rad", "m/s", "m/s", "rad/s"]
    assert sum(use.kind == "speed" for use in found) == model.nv


def test_what_is_limited():
    model = slide(lower=-1.0, upper=1.0)
    np.testing.assert_array_equal(limits.limited_joints(model), [True])
    np.testing.assert_array_equal(limits.limited_joints(slide()), [False])
