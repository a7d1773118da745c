"""Real robots: the same dynamics as Pinocchio's from the same file."""

import jax
import numpy as np
import pinocchio as pin
import pytest

from lgsim.dynamics.inverse_dynamics import inverse_dynamics
from lgsim.formats import FileError, load_urdf, read_urdf
from lgsim.multibody import joints
from tests.formats.robots import BROKEN, FILES, FOLDER, RIGID, Twin, file
from tests.multibody.trees import state

pytestmark = pytest.mark.oracle

FAST = {
    (file("panda.urdf"), False),
    (file("baxter"), True),
    (file("anymal_b"), True),
    (file("double_pendulum_cont"), False),
}
CASES = [(name, floating) for name in FILES for floating in (False, True)]
CASES = [(name, floating) for name, floating in CASES if not (name in RIGID and not floating)]


def fixes_itself(name):
    """Its root is the link `world`."""
    return b'<link name="world"' in (FOLDER / name).read_bytes()


def at_rest(model):
    """The pose of every link in the world, all joints at rest."""
    tree, poses = model.topology, [np.eye(4)]
    for body, parent in enumerate(tree.parents):
        poses.append(poses[parent + 1] @ np.asarray(model.placements[body]))
    frames = zip(tree.frame_names, tree.frame_bodies, np.asarray(model.frames), strict=True)
    fixed = {name: poses[body + 1] @ pose for name, body, pose in frames}
    return dict(zip(tree.body_names, poses[1:], strict=True)) | fixed


CASES = [(name, floating) for name, floating in CASES if not (floating and fixes_itself(name))]


def test_the_folder_has_the_robots_that_the_tests_promise():
    wanted = "panda ur5 ur10 anymal talos tiago icub hyq solo kinova laikago g1 go2 a1 pr2 baxter romeo centauro human"
    assert all(any(robot in name for name in FILES) for robot in wanted.split())
    assert len({name.split("/")[0] for name, _ in CASES}) >= 30


@pytest.mark.repeats(
    "*/anymal.urdf-*",
    "*baxter*",
    "*g1_29dof_rev*",
    "*human.urdf*",
    "*icub.urdf*",
    "*panda.urdf*",
    "*quadrotor*",
    "*tiago.urdf*",
    "*ur5_robot*",
)
@pytest.mark.parametrize(
    ("name", "floating"), [case for case in CASES if not case[1] or case[0] in RIGID or case in FAST]
)
def test_has_the_joints_and_numbers_that_pinocchio_finds(name, floating):
    model = load_urdf(FOLDER / name, floating, physical="report")
    twin = Twin(model, FOLDER / name, floating)
    assert set(model.joint_names) == set(twin.pin.names) - {"universe"}
    mimics = {model.joint_names[i] for i, source in enumerate(model.topology.mimics) if source is not None}
    assert mimics == set(twin.tied)
    assert model.nv == twin.pin.nv - len(mimics)
    unbounded = sum(there.stop - there.start == 2 for *_, there, _, _, _ in twin.places)
    assert model.nq == twin.pin.nq - len(mimics) - unbounded
    moving = sum(twin.pin.inertias[j].mass for j in range(1, twin.pin.njoints))
    np.testing.assert_allclose(np.sum(model.inertias[:, 0]), moving, rtol=1e-13)
    links = {frame.name for frame in twin.pin.frames if frame.type == pin.FrameType.BODY} - {"universe", "world"}
    assert links == set(model.frame_names)
    if not np.any(model.mimic[:, 1]):
        pin.framesForwardKinematics(twin.pin, twin.data, twin.q(model.neutral()))
        for link, pose in at_rest(model).items():
            theirs = twin.data.oMf[twin.pin.getFrameId(link, pin.FrameType.BODY)].homogeneous
            np.testing.assert_allclose(pose, theirs, rtol=0, atol=1e-13)
    for joint, _, here, there_q, there, *_ in twin.places:
        if joint.nv > 1 or mimics:
            continue
        if isinstance(joint, joints.Continuous):
            assert np.isinf(model.lower[here]) and np.isinf(model.upper[here])
        elif np.isfinite(model.lower[here]):
            assert model.lower[here] == twin.pin.lowerPositionLimit[there_q]
            assert model.upper[here] == twin.pin.upperPositionLimit[there_q]
        for ours, theirs in (
            (model.velocity_limit, twin.pin.velocityLimit),
            (model.effort_limit, twin.pin.effortLimit),
        ):
            assert ours[here] == theirs[there] or theirs[there] > 1e300
        assert model.damping[here] == twin.pin.damping[there]
        assert model.friction[here] == twin.pin.friction[there]


@pytest.mark.repeats
@pytest.mark.parametrize(
    ("name", "floating"),
    [case if case in FAST else pytest.param(*case, marks=pytest.mark.exhaustive) for case in CASES],
)
def test_has_the_inverse_dynamics_that_pinocchio_has(name, floating):
    model = load_urdf(FOLDER / name, floating, physical="report")
    twin = Twin(model, FOLDER / name, floating)
    q, v, a = state(model, batch=(3,))
    ours = jax.jit(inverse_dynamics)(model, *map(jax.numpy.asarray, (q, v, a)))
    theirs = np.array([twin.inverse_dynamics(*at) for at in zip(q, v, a, strict=True)])
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-12 * np.max(np.abs(theirs)))


def test_mimic_reduces_the_coordinates_as_it_does_in_pinocchio():
    model, path = load_urdf(FOLDER / file("panda.urdf")), FOLDER / file("panda.urdf")
    twin = pin.buildModelFromUrdf(str(path), True)
    assert (model.nq, model.nv) == (twin.nq, twin.nv) == (8, 8)
    q, v, a = state(model)
    order = [twin.joints[twin.getJointId(name)].idx_v for name in model.joint_names[:8]]
    theirs = np.zeros((3, 8))
    theirs[:, order] = q, v, a
    tau = pin.rnea(twin, twin.createData(), *theirs)[order]
    ours = inverse_dynamics(model, *map(jax.numpy.asarray, (q, v, a)))
    np.testing.assert_allclose(ours, tau, rtol=0, atol=1e-12 * np.max(np.abs(tau)))


def test_joints_are_ordered_depth_first_with_children_in_the_files_order():
    model = load_urdf(FOLDER / file("hyq"), floating_base=True, physical="report")
    legs = [f"{leg}_{joint}_joint" for leg in ("lf", "rf", "lh", "rh") for joint in ("haa", "hfe", "kfe")]
    assert model.joint_names == ("root_joint", *legs)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "alex_description/urdf/alex_psyonic_hands.urdf",
            r":1037: joint 'Left_index_q2': <mimic>: there is no joint 'ind",
        ),
        ("ur_description/urdf/ur3.urdf", r":6: <robot>: expected at least one <link>, got none"),
    ],
)
def test_files_that_are_broken_are_refused_with_the_place(name, message):
    assert name in BROKEN
    with pytest.raises(FileError, match=f"{name}{message}"):
        load_urdf(FOLDER / name)


def test_reports_the_inertias_of_a_robot_that_no_body_has():
    _, report = read_urdf(FOLDER / file("pr2"))
    assert [(inertia.line, inertia.subject) for inertia in report.inertias] == [
        (781, "link 'sensor_mount_link'"),
        (872, "link 'double_stereo_link'"),
    ]
    assert "0.001, 0.001, 0.01 kg m^2" in str(report)
