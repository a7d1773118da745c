"""SDF files: Cassie against Pinocchio and a reading of its own, each feature against poses by hand, every error."""

import re

import jax.numpy as jnp
import numpy as np
import pinocchio as pin
import pytest

import lgsim
from lgsim.dynamics.kinematics import forward_kinematics
from lgsim.dynamics.mass_matrix import mass_matrix
from lgsim.formats import FileError, FileWarning, read_sdf
from lgsim.lie import se3, so3
from lgsim.multibody import joints
from lgsim.multibody.loops import Coupling, JointTie
from tests.dynamics.machines import close
from tests.formats.cassie import CASSIE, euler, pinocchio_of_cassie


@pytest.mark.slow
def test_cassie_equals_pinocchio():
    with pytest.warns(FileWarning, match="2 joints are a ball with damping, which is not represented, plugin 'Cassie"):
        model = lgsim.load_sdf(CASSIE)
    assert (model.nv, model.topology.loop_rows) == (28, 12)
    assert all(loop.kind == JointTie(joints.Spherical()) for loop in model.topology.loops)
    twin, balls = pinocchio_of_cassie(model)
    data, rng = twin.createData(), np.random.default_rng(0)
    for _ in range(3):
        q = np.concatenate([rng.normal(size=7), rng.uniform(-1, 1, 22)])
        q[3:7] /= np.linalg.norm(q[3:7])
        theirs = q.copy()
        theirs[3:7] = q[[4, 5, 6, 3]]
        M = pin.crba(twin, data, theirs)
        close(mass_matrix(model, jnp.asarray(q)), np.triu(M) + np.triu(M, 1).T)
        pin.forwardKinematics(twin, data, theirs)
        poses = dict(zip(model.frame_names, np.asarray(forward_kinematics(model, jnp.asarray(q))), strict=True))
        assert set(balls) == set(model.loop_names)
        for name, ends in balls.items():
            for mark, (joint, pose) in zip("ab", ends, strict=True):
                close(poses[f"{name}.{mark}"], (data.oMi[joint] * pose).homogeneous)


def test_cassie_keeps_limits_damping_and_springs():
    model, report = read_sdf(CASSIE)
    at = model.v_slices["left-knee-shin-joint"].start
    assert (float(model.stiffness[at]), float(model.rest[at]), float(model.damping[at])) == (1500, 0, 0.1)
    roll = model.v_slices["left-roll-op"].start
    assert (float(model.lower[roll]), float(model.upper[roll]), float(model.damping[roll])) == (-0.2618, 0.3491, 1)
    assert float(model.effort_limit[roll]) == np.inf
    assert "has a floating base 'root_joint'; its pose in the file is (0, 0, 1.01) m" in str(report)
    assert model.replace(stiffness=0.0).nv == 28 and not report.inertias


# The links of Cassie's other files make two rings of rods with springs, and one has gears.
@pytest.mark.parametrize(("file", "shape"), [("cassie_wo_gearbox_spring", (27, 16)), ("cassie_reduced", (23, 12))])
def test_other_files_of_cassie(file, shape):
    model, _ = read_sdf(CASSIE.with_name(f"{file}.sdf"))
    assert (model.nv, model.topology.loop_rows) == shape


@pytest.mark.slow
def test_the_rings_of_cassies_toes():
    """Hinges parallel to the file's digits close as nearly as they can, and singular postures are named."""
    legs = read_sdf(CASSIE)[0].replace(damping=0.0)
    legs = legs.lock(["root_joint"], legs.neutral())
    toes = [f"{side}-foot-op" for side in ("left", "right")]
    cranks = [legs.q_slices[f"{side}-tarsus-crank-joint"].start for side in ("left", "right")]
    q = legs.neutral()
    for side in ("left", "right"):
        for joint, angle in (("foot-op", -1.0), ("tarsus-crank-joint", -1.0), ("crank-rod-joint", 1.0)):
            q = q.at[legs.q_slices[f"{side}-{joint}"]].set(angle)
    found = lgsim.close_loops(legs, q, hold=toes)
    verdict = found.verdict(legs)
    assert verdict.converged and "'right-plantar-foot-joint' to " in str(verdict)
    # parallelograms: cranks go with the toes, and axes 7.4e-8 rad apart leave that by the length of the rod, 0.41 m
    assert np.abs(found.q[np.array(cranks)] + 1).max() < 0.05
    assert np.abs(found.residual).max() < 7.4e-8 * 0.41
    J, r = np.asarray(lgsim.loop_jacobian(legs, found.q)), np.asarray(found.residual)
    U, s, _ = np.linalg.svd(J)
    assert np.sum(s > 1e-6) == 10 and np.abs(U[:, :10].T @ r).max() < 1e-12
    # flat toes are singular: a leg that is let go passes there
    lifted = {"left-pitch-op": 1.0, "left-roll-op": 0.5}
    q = legs.neutral()
    for name, angle in lifted.items():
        q = q.at[legs.q_slices[name]].set(angle)
    start = lgsim.close_loops(legs, q, hold=list(lifted)).q
    motion = lgsim.simulate(legs, start, duration=4.0, dt=2e-3)
    assert motion.result.startswith("diverged") and np.isfinite(motion.q).all()
    assert re.search(r"the loop '(left|right)-plantar-foot-joint' was near a singular posture", motion.result)
    assert "lgsim.with_stops or model.lock" in motion.result


@pytest.mark.exhaustive
def test_toes_of_a_free_cassie_are_closed():
    """Nothing is held: rows that almost depend on each other do not keep the search from its end."""
    model, _ = read_sdf(CASSIE)
    q = model.neutral()
    for side in ("left", "right"):
        for joint, angle in (("foot-op", -1.0), ("tarsus-crank-joint", -1.0), ("crank-rod-joint", 1.0)):
            q = q.at[model.q_slices[f"{side}-{joint}"]].set(angle)
    found = lgsim.close_loops(model, q)
    assert found.verdict(model).converged and int(found.iterations) < 20
    # the nearest one: in the metric, what is left of the way stands on all directions that keep the loops closed
    J, M = np.asarray(lgsim.loop_jacobian(model, found.q)), np.asarray(lgsim.mass_matrix(model, q))
    away = M @ np.asarray(model.difference(q, found.q))
    along = np.linalg.svd(J)[2][11:]
    assert np.abs(along @ away).max() < 1e-8 * np.abs(away).max()


def test_cassie_with_gears():
    """Each of ten gears couples the input and the output of its axis."""
    model, report = read_sdf(CASSIE.with_name("cassie.sdf"))
    gears = {loop.name: loop for loop in model.topology.loops if isinstance(loop.kind, Coupling)}
    assert len(gears) == 10
    gear = gears["left-roll-joint"]
    assert (gear.a, gear.b, gear.kind) == ("left-roll-ip", "left-roll-op", Coupling(1, turns=True))
    assert "gear" not in report.dropped


INERTIAL = """<inertial><pose>0.1 0 0.2 0.3 0 0</pose><mass>2</mass>
  <inertia><ixx>0.1</ixx><iyy>0.2</iyy><izz>0.25</izz><ixy>0.01</ixy></inertia></inertial>"""


def sdf(body, version="1.9", **attributes):
    more = "".join(f' {key}="{value}"' for key, value in attributes.items())
    return f'<sdf version="{version}"><model name="m"{more}>{body}</model></sdf>'


def link(name, pose="", more=""):
    return f'<link name="{name}">{pose}{INERTIAL}{more}</link>'


def joint(name, kind, parent, child, inside="<axis/>"):
    return f'<joint name="{name}" type="{kind}"><parent>{parent}</parent><child>{child}</child>{inside}</joint>'


def model_of(body, version="1.9", **attributes):
    return read_sdf(text=sdf(body, version, **attributes))[0]


def poses_of(model, *q):
    found = forward_kinematics(model, jnp.asarray(q, float))
    return dict(zip(model.frame_names, np.asarray(found), strict=True))


def exp(*u):
    return np.asarray(se3.exp(jnp.asarray(u, float)))


def test_poses_lie_in_each_other():
    """A chain whose poses are given in frames, in joints, in degrees and as quaternions."""
    body = f"""<pose>0 0 5 0 0 0</pose>{link("base")}
    <frame name="mount" attached_to="base"><pose degrees="true">1 2 3 0 0 90</pose></frame>
    {link("arm", '<pose relative_to="mount">0 0 1 0 0.5 0</pose>')}
    {link("hand", '<pose relative_to="wrist" rotation_format="quat_xyzw">0.2 0 0 0 0 1 1</pose>')}
    {joint("world", "fixed", "world", "base", "").replace('name="world"', 'name="anchor"')}
    {joint("shoulder", "revolute", "mount", "arm", "<pose>0 0.1 0 0 0 0</pose><axis><xyz>1 1 0</xyz></axis>")}
    {
        joint(
            "wrist",
            "prismatic",
            "arm",
            "tool",
            '<pose relative_to="arm">0.5 0 0 0 0 0</pose><axis><xyz expressed_in="__model__">0 0 2</xyz></axis>',
        )
    }
    <frame name="tool" attached_to="hand"/>"""
    model = model_of(body)
    assert model.joint_names == ("shoulder", "wrist") and model.body_names == ("arm:shoulder", "hand:wrist")
    base = euler(0, 0, 5, 0, 0, 0)
    mount = base * euler(1, 2, 3, 0, 0, np.pi / 2)
    arm = mount * euler(0, 0, 1, 0, 0.5, 0)
    shoulder = arm * euler(0, 0.1, 0, 0, 0, 0)
    turned = shoulder * pin.SE3(exp(0, 0, 0, *(0.7 * np.array([1, 1, 0]) / np.sqrt(2)))) * shoulder.inverse()
    hand = arm * euler(0.5, 0, 0, 0, 0, 0) * euler(0.2, 0, 0, 0, 0, np.pi / 2)
    # the wrist slides along the model's z at rest, which the arm has turned since
    slid = euler(0, 0, -0.3, 0, 0, 0)
    expected = {
        "base": base, "mount": mount, "arm": turned * arm, "hand": turned * slid * hand, "tool": turned * slid * hand
    }  # fmt: skip
    found = poses_of(model, 0.7, -0.3)
    for name, pose in expected.items():
        close(found[name], pose.homogeneous)


def test_inertias_lie_in_their_links():
    model = model_of(
        link("base") + link("arm") + joint("j", "revolute", "base", "arm", "<pose>0 0.3 0 0 0 0</pose><axis/>")
    )
    own = np.array([[0.1, 0.01, 0], [0.01, 0.2, 0], [0, 0, 0.25]])
    expected = euler(0.1, 0, 0.2, 0.3, 0, 0).act(pin.Inertia(2.0, np.zeros(3), own))
    at_joint = euler(0, -0.3, 0, 0, 0, 0).act(expected)
    for body, inertia in (("base", expected), ("arm:j", at_joint)):
        found = np.asarray(model.inertias[model.body_names.index(body)])
        theirs = inertia.toDynamicParameters()
        close(found, theirs, 1e-14)


def test_every_type_of_joint():
    axes = "<axis><xyz>0 1 0</xyz></axis>"
    kinds = {
        "revolute": (axes, joints.Revolute, (0.3,), exp(0, 0, 0, 0, 0.3, 0)),
        "continuous": (axes, joints.Continuous, (0.3,), exp(0, 0, 0, 0, 0.3, 0)),
        "prismatic": (axes, joints.Prismatic, (0.3,), exp(0, 0.3, 0, 0, 0, 0)),
        "ball": ("", joints.Spherical, (np.cos(0.2), np.sin(0.2), 0, 0), exp(0, 0, 0, 0.4, 0, 0)),
        "universal": (
            "<axis><xyz>1 0 0</xyz></axis><axis2><xyz>0 1 0</xyz></axis2>", joints.Universal, (0.3, -0.5),
            exp(0, 0, 0, 0.3, 0, 0) @ exp(0, 0, 0, 0, -0.5, 0),
        ),
        # a right-handed thread of 0.1 m for each turn; the old word is rad/m and left-handed
        "screw": (
            f"{axes}<screw_thread_pitch>0.1</screw_thread_pitch>", joints.Helical, (0.3,),
            exp(0, 0.3 * 0.1 / (2 * np.pi), 0, 0, 0.3, 0),
        ),
        "screw of old": (
            f"{axes}<thread_pitch>4</thread_pitch>", joints.Helical, (0.3,), exp(0, -0.3 / 4, 0, 0, 0.3, 0)
        ),
    }  # fmt: skip
    for name, (inside, kind, q, expected) in kinds.items():
        body = link("base") + link("arm") + joint("anchor", "fixed", "world", "base", "")
        model = model_of(body + joint("j", name.split()[0], "base", "arm", inside))
        assert [type(x) for x in model.topology.joints] == [kind], name
        close(poses_of(model, *q)["arm"], expected, 1e-14)


def test_numbers_of_axes():
    inside = """<axis><limit><lower>-1</lower><upper>2</upper><effort>10</effort><velocity>-1</velocity></limit>
        <dynamics><damping>0.1</damping><friction>0.2</friction><spring_reference>0.3</spring_reference>
        <spring_stiffness>4</spring_stiffness></dynamics></axis>"""
    second = "<axis2><xyz>1 0 0</xyz><dynamics><damping>0.7</damping></dynamics></axis2>"
    model = model_of(link("a") + link("b") + joint("j", "universal", "a", "b", inside + second))
    at = model.v_slices["j"]
    names = ("lower", "upper", "effort_limit", "velocity_limit", "damping", "friction", "rest", "stiffness")
    found = {name: getattr(model, name)[at].tolist() for name in names}
    assert found == {
        "lower": [-1, -np.inf], "upper": [2, np.inf], "effort_limit": [10, np.inf], "velocity_limit": [np.inf] * 2,
        "damping": [0.1, 0.7], "friction": [0.2, 0], "rest": [0.3, 0], "stiffness": [4, 0],
    }  # fmt: skip
    endless = "<axis><limit><lower>-1e16</lower><upper>1e16</upper></limit></axis>"
    free = model_of(link("a") + link("b") + joint("j", "revolute", "a", "b", endless))
    assert float(free.lower[-1]) == -np.inf and float(free.upper[-1]) == np.inf


def test_mimics():
    inside = """<axis><mimic joint="j"><multiplier>2</multiplier><offset>0.5</offset><reference>0.1</reference></mimic>
        </axis>"""
    body = link("a") + link("b") + link("c") + joint("anchor", "fixed", "world", "a", "")
    model = model_of(body + joint("j", "revolute", "a", "b") + joint("k", "revolute", "b", "c", inside), "1.11")
    assert model.nv == 1
    close(poses_of(model, 0.4)["c"], exp(0, 0, 0, 0, 0, 0.4 + 2 * (0.4 - 0.1) + 0.5), 1e-14)


def test_axes_of_version_1_6_may_be_those_of_the_model():
    turned = "<pose>0 0 0 1.5707963267948966 0 0</pose>"
    inside = "<axis><xyz>0 0 1</xyz><use_parent_model_frame>{}</use_parent_model_frame></axis>"
    for flag, axis in (("1", (0, 1, 0)), ("0", (0, 0, 1))):
        body = link("a") + link("b", turned) + joint("j", "revolute", "a", "b", inside.format(flag))
        close(np.asarray(model_of(body, "1.6").axes[-1]), np.array(axis), 1e-15)


RING = link("a") + link("b", "<pose>1 0 0 0 0 0</pose>") + link("c", "<pose>1 1 0 0 0 0</pose>")
LEGS = (
    joint("anchor", "fixed", "world", "a", "") + joint("ab", "revolute", "a", "b") + joint("bc", "revolute", "b", "c")
)


def test_a_second_joint_to_a_link_closes_a_loop():
    inside = "<pose>0 0.2 0 0 0 0</pose><axis><xyz>0 1 0</xyz><dynamics><damping>0.3</damping></dynamics></axis>"
    for kind, tie in (("revolute", joints.Revolute()), ("prismatic", joints.Prismatic())):
        model, report = read_sdf(text=sdf(RING + LEGS + joint("close", kind, "world", "c", inside)))
        assert model.loop_names == ("close",) and model.topology.loops[0].kind == JointTie(tie)
        poses = poses_of(model, 0, 0)
        close(poses["close.a"], poses["close.b"])
        close(poses["close.b"][:3, 2], np.array([0, 1, 0]), 1e-15)
        close(poses["close.b"][:3, 3], np.array([1, 1.2, 0]), 1e-15)
        assert "closes a loop, which has no damping" in report.dropped
    for kind, tie in (("ball", joints.Spherical()), ("fixed", joints.Fixed())):
        model = model_of(RING + LEGS + joint("close", kind, "a", "c", ""))
        assert model.topology.loops[0].kind == JointTie(tie) and model.topology.loops[0].a == "close.a"


GEAR = """<gearbox_reference_body>r</gearbox_reference_body><gearbox_ratio>0.4</gearbox_ratio>
<axis><xyz expressed_in="__model__">0 0 2</xyz></axis><axis2><xyz expressed_in="__model__">0 1 0</xyz></axis2>"""
WHEELS = [
    joint("in", "revolute", "r", "p", "<axis><xyz>0 0 1</xyz></axis>"),
    joint("in", "revolute", "r", "p", "<axis><xyz>0 0 -1</xyz></axis>"),
    joint("in", "continuous", "p", "r", "<axis><xyz>0 0 1</xyz></axis>"),
]


@pytest.mark.parametrize("wheel", WHEELS)
def test_gears_couple_rotations_relative_to_their_reference(wheel):
    """SDFormat: theta_2 = -ratio theta_1, the angles from the reference to the parent and to the child."""
    first = "p" if "continuous" in wheel else "r"
    body = link("r") + link("p", "<pose>0 0 1 0 0 0</pose>") + link("c", "<pose>0 1 0 0 0 0.7</pose>")
    body += joint("mount", "revolute", "world", first) + wheel
    body += joint("out", "revolute", "r", "c", '<axis><xyz expressed_in="__model__">0 1 0</xyz></axis>')
    model = model_of(body + joint("gear", "gearbox", "p", "c", GEAR))
    (loop,) = model.topology.loops
    assert (loop.name, loop.a, loop.b, loop.kind) == ("gear", "in", "out", Coupling(1, turns=True))
    x = 0.3
    q = {"mount": 0.2, "in": x, "out": float(model.loops[0] + model.loops[1] * x)}
    poses, rest = (poses_of(model, *(q[name] * scale for name in model.joint_names)) for scale in (1, 0))

    def turned(link, axis):
        """The angle about an axis, at which a link stands relative to r, from its place at zero."""
        R, R0 = (np.linalg.inv(at["r"])[:3, :3] @ at[link][:3, :3] for at in (poses, rest))
        u = np.asarray(so3.log(jnp.asarray(R @ R0.T)))
        close(u, u @ axis * np.array(axis), 1e-14)
        return u @ axis

    theta = turned("p", [0, 0, 1])
    assert abs(theta) == pytest.approx(x)
    assert turned("c", [0, 1, 0]) == pytest.approx(-0.4 * theta)


def test_the_tree_grows_from_the_world():
    """The first joint of the file whose link it reaches is one of the tree, whatever stands before."""
    model = model_of(RING + joint("cb", "ball", "c", "b", "") + LEGS)
    assert model.joint_names == ("ab", "bc") and model.loop_names == ("cb",)


def test_bases():
    model = model_of(link("a") + link("b", "<pose>1 0 0 0 0 0</pose>"))
    assert model.joint_names == ("root_joint:a", "root_joint:b")
    assert [type(x) for x in model.topology.joints] == [joints.Free] * 2
    lone = model_of(link("a"))
    assert lone.joint_names == ("root_joint",) and lone.nv == 6
    ground = model_of(
        "<pose>0 0 1 0 0 0</pose>" + link("a") + joint("j", "revolute", "world", "a"), placement_frame="a"
    )
    close(poses_of(ground, 0.0)["a"], exp(0, 0, 1, 0, 0, 0))


def test_what_is_left_unread_is_in_the_report():
    body = """<link name="a"><inertial><mass>1</mass></inertial><gravity>false</gravity><visual name="v"/>
      <velocity_decay><linear>0.1</linear></velocity_decay><odd/></link><link name="b"/>"""
    body += joint("j", "revolute", "a", "b", '<axis odd="1"><limit><stiffness>5</stiffness></limit></axis><physics/>')
    model, report = read_sdf(text=sdf(body + '<plugin name="p" filename="p.so"/><static>0</static>'))
    text = str(report)
    for part in (
        "has no gravity in the file", "has a velocity_decay", "plugin 'p'", "<odd>", "<stiffness>", "<physics>",
        "attribute 'odd'", "has no <inertia>; inertias of 1 kg m^2 are assumed", "has no <inertial>; a mass of 1 kg",
    ):  # fmt: skip
        assert part in text, part
    assert "<visual>" not in text
    np.testing.assert_allclose(model.inertias[:, 0], 1.0)


TWO = link("a") + link("b", "<pose>0 0 1 0 0 0</pose>")

ERRORS = {
    "no SDF": ("<robot name='r'/>", "1: robot 'r': expected <sdf>, the root of an SDF file, got <robot>: a URDF file"),
    "no version": ("<sdf><model name='m'/></sdf>", "1: <sdf>: version: expected one of 1.3, 1.4, 1.5, 1.6,"),
    "a version of old": (sdf("", "1.2"), "1.8, 1.9, 1.10, 1.11, 1.12, got '1.2'"),
    "an empty world": ('<sdf version="1.9"><world name="w"/></sdf>', "world 'w': expected at least one model"),
    "two models": (
        '<sdf version="1.9"><model name="a"/>\n<model name="b"/></sdf>',
        "<sdf>: expected one <model> or one <world>, got 2, the second one in line 2",
    ),
    "no model": ('<sdf version="1.9"/>', "<sdf>: expected one <model> or one <world>, got 0"),
    "a nested model": (sdf("\n<model name='n'/>" + TWO), "2: model 'n': expected at least one <link>, got none"),
    "an include": (sdf("<include><uri>x</uri></include>" + TWO), "<include>: there is no file or folder 'x'"),
    "no link": (sdf(""), "model 'm': expected at least one <link>, got none"),
    "a name twice": (sdf(TWO + "\n" + link("a")), "4: link 'a': the name is taken by the element in line 1"),
    "a kept name": (sdf(link("world")), "link 'world': expected another name: this one is reserved"),
    "no parent": (
        sdf(TWO + '<joint name="j" type="revolute"><child>b</child></joint>'), "joint 'j': expected a <parent>"
    ),
    "an empty parent": (sdf(TWO + joint("j", "ball", "", "b")), "<parent>: expected the name of a link, got none"),
    "a missing link": (
        sdf(TWO + "\n" + joint("j", "revolute", "a", "bb")),
        "4: joint 'j': expected the name of a link, joint or frame, got 'bb'; did you mean 'b'?",
    ),
    "a joint to itself": (
        sdf(TWO + joint("j", "revolute", "a", "a")), "<child>: expected two different links, got 'a'"
    ),
    "a joint that moves the world": (
        sdf(TWO + joint("j", "revolute", "a", "world")), "<child>: expected a link as child, got the world"
    ),
    "an unknown type": (
        sdf(TWO + joint("j", "revolute3", "a", "b")), "type: expected one of revolute, continuous, prismatic, screw,"
    ),
    "a gear without a reference": (
        sdf(TWO + joint("j", "gearbox", "a", "b")), "joint 'j': expected a <gearbox_reference_body>, got none"
    ),
    "a gear about other axes than its joints": (
        sdf(link("r") + link("p") + link("c") + joint("in", "revolute", "r", "p") + joint("out", "revolute", "r", "c")
            + joint("gear", "gearbox", "p", "c", GEAR)),
        "joint 'gear': expected a revolute joint about <axis2> between 'c' and the reference 'r', got none",
    ),
    "a circle of parents": (
        sdf(RING + joint("ab", "ball", "a", "b") + joint("bc", "ball", "b", "c") + joint("ca", "ball", "c", "a")),
        "joint 'ab': circular parents: 'c', 'a', 'b'",
    ),
    "a circle of poses": (
        sdf(link("a", '<pose relative_to="b"/>') + link("b", '<pose relative_to="a"/>')),
        "link 'a': <pose>: circular references between frames: 'a', 'b'",
    ),
    "a circle of frames": (
        sdf(TWO + '<frame name="f" attached_to="g"><pose relative_to="a"/></frame>'
            '<frame name="g" attached_to="f"><pose relative_to="a"/></frame>'),
        "frame 'f': circular attachments of frames: 'f', 'g'",
    ),
    "an unknown frame": (
        sdf(link("a", '<pose relative_to="c"/>')), "link 'a': expected the name of a link, joint or frame, got 'c'"
    ),
    "a pose of five numbers": (
        sdf(link("a", "<pose>0 0 0 0 0</pose>")), "link 'a': <pose>: expected 6 finite numbers, got '0 0 0 0 0'"
    ),
    "a frame of version 1.6": (
        sdf(link("a", '<pose frame="b">0 0 0 0 0 0</pose>'), "1.6"), "<pose>: frame: expected relative_to"
    ),
    "a rotation of another form": (
        sdf(link("a", '<pose rotation_format="axis">0 0 0 0 0 0</pose>')), "expected 'euler_rpy' or 'quat_xyzw', got"
    ),
    "a quaternion of zero": (
        sdf(link("a", '<pose rotation_format="quat_xyzw">0 0 0 0 0 0 0</pose>')), "expected a nonzero quaternion"
    ),
    "a negative mass": (
        sdf("<link name='a'><inertial><mass>-1</mass></inertial></link>"),
        "link 'a': <inertial>: <mass>: expected a finite nonnegative number, got '-1'",
    ),
    "inertias from geometry": (
        sdf("<link name='a'><inertial auto='true'/></link>", "1.11"), "expected collision geometry with a volume"
    ),
    "an axis of zero": (
        sdf(TWO + joint("j", "revolute", "a", "b", "<axis><xyz>0 0 0</xyz></axis>")),
        "<xyz>: expected a nonzero vector, got '0 0 0'",
    ),
    "an axis of old in a new version": (
        sdf(TWO + joint("j", "revolute", "a", "b", "<axis><use_parent_model_frame>1</use_parent_model_frame></axis>")),
        "version 1.9 has no such element; expected <xyz expressed_in='__model__'>",
    ),
    "a flag that is no boolean": (sdf(TWO + "<static>maybe</static>"), "<static>: expected true or false, got 'maybe'"),
    "a static model": (sdf(TWO + "<static>true</static>"), "<static>: expected a model that"),
    "nothing moves": (
        sdf(link("a") + joint("j", "fixed", "world", "a", "")),
        "model 'm': expected at least one joint that is not fixed",
    ),
    "a canonical link": (sdf(TWO, canonical_link="c"), "canonical_link: there is no link 'c'"),
    "a universal loop": (
        sdf(RING + LEGS + joint("close", "universal", "a", "c", "<axis/><axis2/>")),
        "joint 'close': loop 'close': joint: expected one of Spherical, Revolute",
    ),
    "a loop that mimics": (
        sdf(RING + LEGS + joint("close", "revolute", "a", "c", "<axis><mimic joint='ab'/></axis>"), "1.11"),
        "joint 'close': closes a loop, and cannot mimic another joint",
    ),
    "a mimic of nothing": (
        sdf(TWO + joint("j", "revolute", "a", "b", "<axis><mimic joint='k'/></axis>"), "1.11"), "it mimics 'k'"
    ),
    "a loop on one body": (
        sdf(TWO + joint("f", "fixed", "a", "b", "") + "\n" + joint("j", "fixed", "a", "b", "")),
        "4: joint 'j': loop 'j': both ends, 'j.a' and 'j.b', are on 'a'",
    ),
    "a screw without a thread": (
        sdf(TWO + joint("j", "screw", "a", "b", "<thread_pitch>0</thread_pitch>")),
        "<thread_pitch>: expected a nonzero number, got 0",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", ERRORS)
def test_errors_name_their_lines(case):
    text, message = ERRORS[case]
    with pytest.raises(FileError, match=re.escape(message)) as found:
        read_sdf(text=text)
    assert found.value.file == "<text>" and found.value.line is not None


def test_arguments():
    with pytest.raises(ValueError, match="physical: expected one of warn, report, nearest, error, got 'all'"):
        read_sdf(text=sdf(TWO), physical="all")
    with pytest.raises(TypeError, match="expected either a path or text"):
        read_sdf()
    with pytest.raises(FileError, match="the file cannot be read"):
        read_sdf("missing.sdf")
    bad = sdf("<link name='a'><inertial><inertia><ixx>9</ixx></inertia></inertial></link>")
    with pytest.warns(FileWarning, match="1 links have non-physical inertias"):
        lgsim.load_sdf(text=bad)
    with pytest.raises(FileError, match="triangle inequality"):
        read_sdf(text=bad, physical="error")


def test_rotors_of_joints():
    """Armature is ratio^2 inertia of Drake's elements, whose prefix is declared by the root."""
    own = "<drake:rotor_inertia>2e-5</drake:rotor_inertia><drake:gear_ratio>100</drake:gear_ratio>"
    axis, links = "<axis/>", link("a") + link("b")
    text = sdf(links + joint("j", "revolute", "a", "b", axis + own))
    model, report = read_sdf(text=text.replace("<sdf ", '<sdf xmlns:drake="drake.mit.edu" ', 1))
    plain = model_of(links + joint("j", "revolute", "a", "b", axis))
    assert "rotor" not in str([*report]) and "drake" not in str([*report])
    at = model.v_slices["j"].start
    np.testing.assert_allclose((model.armature - plain.armature)[at], 0.2, rtol=1e-12)
