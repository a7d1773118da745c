"""What a URDF file means: joints of all types, frames, limits, order, what is merged, what is reported."""

import warnings
from pathlib import Path

import chex
import jax.numpy as jnp
import numpy as np
import pinocchio as pin
import pytest
from lxml import etree

from lgsim.dynamics.inverse_dynamics import inverse_dynamics
from lgsim.dynamics.mass_matrix import mass_matrix
from lgsim.formats import FileError, FileWarning, load_urdf, read_urdf
from lgsim.multibody import joints
from lgsim.multibody.inertia import defect, mass_center_inertia
from lgsim.scenarios.machine import read_machine
from tests.formats.robots import Twin
from tests.multibody.trees import state

pytestmark = pytest.mark.oracle

BODY = """<inertial><origin xyz="0.1 -0.2 0.3" rpy="0.4 -0.5 0.6"/><mass value="1.5"/>
<inertia ixx="0.02" ixy="0.001" ixz="-0.002" iyy="0.03" iyz="0.003" izz="0.025"/></inertial>"""


def robot(*joints, body=BODY, more=""):
    """A chain of links a, b, c, ... on joints of which the attributes and content are given."""
    links = [f'<link name="{chr(97 + i)}">{body}</link>' for i in range(len(joints) + 1)]
    for i, (kind, content) in enumerate(joints):
        ends = f'<parent link="{chr(97 + i)}"/><child link="{chr(98 + i)}"/>'
        links.append(f'<joint name="j{i}" type="{kind}">{ends}<origin xyz="1 2 3" rpy="0.3 0.2 0.1"/>{content}</joint>')
    return f'<robot name="chain">\n{chr(10).join(links)}\n{more}</robot>'


def agrees(text, path, floating=False):
    """Whether the inverse dynamics are those of Pinocchio."""
    path.write_text(text)
    model = load_urdf(path, floating, physical="report")
    twin = Twin(model, path, floating)
    q, v, a = state(model)
    theirs = twin.inverse_dynamics(q, v, a)
    ours = inverse_dynamics(model, *map(jnp.asarray, (q, v, a)))
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-12 * np.max(np.abs(theirs)))
    return model


@pytest.mark.quick
def test_all_types_of_joints_move_as_they_do_in_pinocchio(tmp_path):
    text = robot(
        ("revolute", '<axis xyz="1 -2 0.5"/><limit lower="-1" upper="1" effort="1" velocity="1"/>'),
        ("continuous", '<axis xyz="0 3 0"/>'),
        ("floating", ""),
        ("fixed", '<axis xyz="0 0 0"/>'),
        ("prismatic", '<axis xyz="0.1 0.2 -0.3"/><limit lower="-1" upper="1" effort="1" velocity="1"/>'),
        ("planar", '<axis xyz="0 0 1"/>'),
        ("continuous", ""),
    )
    model = agrees(text, tmp_path / "chain.urdf", floating=True)
    kinds = (
        joints.Free,
        joints.Revolute,
        joints.Continuous,
        joints.Free,
        joints.Prismatic,
        joints.Planar,
        joints.Continuous,
    )
    assert tuple(map(type, model.topology.joints)) == kinds
    assert (model.nq, model.nv) == (7 + 1 + 1 + 7 + 1 + 3 + 1, 6 + 1 + 1 + 6 + 1 + 3 + 1)
    assert model.joint_names == ("root_joint", "j0", "j1", "j2", "j4", "j5", "j6")
    assert model.frame_names == ("a", "b", "c", "d", "f", "g", "h", "e")
    assert model.axes[-1].tolist() == [1, 0, 0]


@pytest.mark.parametrize(
    "normal", [(1, 0, 0), (0, -2, 0), (0.3, 0.4, 0.5), (0.3, 0.4, -0.5), (0, 0, -1), (1e-9, 0, -1), (0, 0, 3)]
)
def test_the_axis_of_a_planar_joint_is_the_normal_of_the_plane(normal):
    model = load_urdf(text=robot(("planar", f'<axis xyz="{" ".join(map(str, normal))}"/>')))
    x, y, n = np.asarray(model.axes)
    R = np.array([x, y, n]).T
    np.testing.assert_allclose(R.T @ R, np.eye(3), atol=1e-15)
    np.testing.assert_allclose(n, normal / np.linalg.norm(normal), atol=1e-15)
    assert np.linalg.det(R) > 0
    # the shortest way: a turn by the angle between z and the normal, whose cosine the trace gives
    assert np.trace(R) == pytest.approx(1 + 2 * n[2], abs=1e-15)
    # Pinocchio has only the plane of x and y: its joint turned there, and its body turned back
    T, parts = np.asarray(model.placements[0]), [np.asarray(p) for p in mass_center_inertia(model.inertias[0])]
    other = pin.Model()
    joint = other.addJoint(0, pin.JointModelPlanar(), pin.SE3(T[:3, :3] @ R, T[:3, 3]), "j")
    other.appendBodyToJoint(joint, pin.Inertia(float(parts[0]), *parts[1:]), pin.SE3(R.T, np.zeros(3)))
    q, v, a = state(model)
    theirs = pin.rnea(
        other, other.createData(), np.array([*q[:2], np.cos(q[2]), np.sin(q[2])]), np.asarray(v), np.asarray(a)
    )
    ours = inverse_dynamics(model, *map(jnp.asarray, (q, v, a)))
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-12 * np.max(np.abs(theirs)))


def test_without_an_axis_the_normal_of_the_plane_is_x():
    np.testing.assert_allclose(
        load_urdf(text=robot(("planar", ""))).axes, [[0, 0, -1], [0, 1, 0], [1, 0, 0]], atol=1e-16
    )


@pytest.mark.parametrize("kind", ["spherical", "ball"])
def test_a_ball_turns_as_it_does_in_pinocchio(kind):
    model = load_urdf(text=robot((kind, "")))
    T, parts = np.asarray(model.placements[0]), [np.asarray(p) for p in mass_center_inertia(model.inertias[0])]
    other = pin.Model()
    joint = other.addJoint(0, pin.JointModelSpherical(), pin.SE3(T[:3, :3], T[:3, 3]), "j")
    other.appendBodyToJoint(joint, pin.Inertia(float(parts[0]), *parts[1:]), pin.SE3.Identity())
    q, v, a = state(model)
    theirs = pin.rnea(other, other.createData(), np.roll(q, -1), np.asarray(v), np.asarray(a))
    ours = inverse_dynamics(model, *map(jnp.asarray, (q, v, a)))
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-12 * np.max(np.abs(theirs)))


def test_mimic_of_a_mimic_is_reduced(tmp_path):
    text = robot(
        ("continuous", '<mimic joint="j2" multiplier="-0.5" offset="0.2"/>'),
        ("continuous", '<axis xyz="0 1 0"/>'),
        ("continuous", '<axis xyz="0 0 1"/><mimic joint="j1" multiplier="3" offset="0.1"/>'),
    )
    model = load_urdf(text=text)
    assert (model.nq, model.joint_names) == (1, ("j0", "j1", "j2"))
    np.testing.assert_allclose(model.mimic, [[-1.5, 0.15], [1, 0], [3, 0.1]], atol=1e-15)
    agrees(
        text.replace('joint="j2" multiplier="-0.5" offset="0.2"', 'joint="j1" multiplier="-1.5" offset="0.15"'),
        tmp_path / "chain.urdf",
    )


def test_damping_and_friction_of_a_joint_that_mimics_are_felt_by_the_one_it_follows():
    dynamics = '<dynamics damping="0.5" friction="0.2"/>'
    model = load_urdf(
        text=robot(("continuous", dynamics), ("continuous", f'<mimic joint="j0" multiplier="-3"/>{dynamics}'))
    )
    # power of the follower: 0.5 (3 v)^2 and 0.2 |3 v|
    np.testing.assert_allclose([model.damping, model.friction], [[0.5 + 9 * 0.5], [0.2 + 3 * 0.2]])


def test_links_on_fixed_joints_are_merged_and_their_frames_kept():
    model = load_urdf(text=robot(("fixed", ""), ("continuous", ""), ("fixed", ""), ("fixed", "")))
    assert (model.nv, model.body_names, model.frame_names) == (1, ("c",), ("c", "a", "b", "d", "e"))
    assert model.topology.frame_bodies == (-1, -1, 0, 0)
    assert float(model.inertias[0, 0]) == 4.5
    np.testing.assert_allclose(model.frames[3], model.frames[2] @ model.frames[2], atol=1e-15)
    np.testing.assert_allclose(model.frames[0], np.eye(4))


def test_tags_may_come_in_any_order():
    text = robot(("revolute", '<axis xyz="0 1 0"/><limit lower="-1" upper="2"/><dynamics damping="3"/>'))
    root = etree.fromstring(text)
    for element in list(root.iter()):
        element[:] = list(element)[::-1]
    one, two = load_urdf(text=text), load_urdf(text=etree.tostring(root, encoding="unicode"))
    assert one.topology == two.topology
    chex.assert_trees_all_equal(one, two)


def test_children_come_in_the_order_of_the_file():
    link, joint = (
        '<link name="{0}"/>',
        '<joint name="to_{0}" type="continuous"><parent link="{1}"/><child link="{0}"/></joint>',
    )
    order = (("z", "a"), ("b", "a"), ("y", "z"), ("x", "b"), ("c", "z"))
    branches = "".join((link + joint).format(*names) for names in order)
    model = load_urdf(text=f'<robot name="tree"><link name="a"/>{branches}</robot>', physical="report")
    assert model.joint_names == ("to_z", "to_y", "to_c", "to_b", "to_x")


def test_limits_and_dynamics_are_leaves_of_the_model():
    text = robot(
        (
            "revolute",
            '<limit lower="-0.5" upper="1.5" effort="7" velocity="3"/><dynamics damping="0.4" friction="0.6"/>',
        ),
        ("continuous", '<limit lower="-0.5" upper="0.5" effort="8" velocity="4"/>'),
        ("prismatic", '<limit lower="-0.25"/>'),
        ("revolute", '<limit upper="0.25" effort="inf" velocity="-1"/>'),
        ("revolute", '<limit effort="1" velocity="2"/>'),
        ("revolute", ""),
    )
    model, report = read_urdf(text=text)
    inf = np.inf
    assert model.lower.tolist() == [-0.5, -inf, -0.25, 0, -inf, -inf]
    assert model.upper.tolist() == [1.5, inf, 0, 0.25, inf, inf]
    assert model.velocity_limit.tolist() == [3, 4, inf, inf, 2, inf]
    assert model.effort_limit.tolist() == [7, 8, inf, inf, 1, inf]
    assert (model.damping.tolist(), model.friction.tolist()) == ([0.4, 0, 0, 0, 0, 0], [0.6, 0, 0, 0, 0, 0])
    assert [str(finding) for finding in report.assumed] == [
        "19: joint 'j3': <limit> has a negative velocity, -1; no limit is assumed",
        "20: joint 'j4': <limit> has neither lower nor upper; no limits are assumed",
        "21: joint 'j5' has no limits; no limits are assumed",
    ]
    assert [finding.text for finding in report.ignored] == ["lower and upper of a continuous joint"]


def test_a_turn_may_be_given_as_a_quaternion():
    angle = 0.7
    turned = robot(("continuous", "")).replace(
        'rpy="0.3 0.2 0.1"', f'quat_xyzw="0 0 {2 * np.sin(angle / 2)} {2 * np.cos(angle / 2)}"'
    )
    same = robot(("continuous", "")).replace('rpy="0.3 0.2 0.1"', f'rpy="0 0 {angle}"')
    np.testing.assert_allclose(load_urdf(text=turned).placements, load_urdf(text=same).placements, atol=1e-15)


def test_meshes_are_not_opened_and_tags_that_say_nothing_about_the_motion_are_passed_over(tmp_path):
    mesh = '<visual><geometry><mesh filename="package://nowhere/a.stl"/></geometry></visual>'
    mesh += '<collision><geometry><mesh filename="http://127.0.0.1:9/b.dae"/></geometry></collision>'
    more = '<material name="red"/><gazebo reference="a"><x/></gazebo><transmission name="t"/>'
    path = tmp_path / "robot.urdf"
    path.write_text(robot(("continuous", ""), body=BODY + mesh, more=more))
    model, report = read_urdf(path)
    assert (model.nv, len(report)) == (1, 0)
    assert str(report) == f"{path}: nothing to report"
    assert float(load_urdf(Path(path)).inertias[0, 0]) == 1.5 == float(load_urdf(str(path)).inertias[0, 0])


def test_what_is_not_known_is_reported_with_its_line():
    more = '<loop_joint name="l"/>\n<drake:bushing name="undeclared_prefix"/>\n<x:y xmlns:x="http://x"/>\n'
    content = '\n<origin xyz="0 0 1"/>\n<axis xyz="1 0 0" unit="m"/><calibration rising="1"/><limit effrt="1"/>'
    _, report = read_urdf(text=robot(("continuous", content), more=more))
    assert [str(finding) for finding in report.ignored] == [
        "7: in joint 'j0' a second <origin>",
        "8: joint 'j0': <axis> attribute 'unit' of <axis>",
        "8: joint 'j0': <limit> attribute 'effrt' of <limit>",
        "8: in joint 'j0' <calibration>",
        "9: in robot 'chain' <loop_joint>",
        "10: in robot 'chain' <drake:bushing>",
        "11: in robot 'chain' <{http://x}y>",
    ]


HEAVY = '<inertial><mass value="2"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="3"/></inertial>'
NEGATIVE = '<inertial><mass value="2"/><inertia ixx="-1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>'
NO_MASS = '<inertial><mass value="0"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>'


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (HEAVY, "principal moments 1, 1, 3 kg m^2 the largest exceeds the sum of the others (triangle inequality)"),
        (NEGATIVE, "an inertia that is not positive definite: principal moments -1, 1, 1 kg m^2"),
        (NO_MASS, "has no mass but an inertia"),
    ],
)
def test_an_inertia_that_no_body_has_is_kept_and_reported_with_the_nearest_one(body, text):
    source = robot(("continuous", '<axis xyz="0 0 1"/>'), body=body).replace(body, BODY, 1)
    model, report = read_urdf(text=source)
    (found,) = report.inertias
    assert (found.line, found.subject) == (4, "link 'b'") and text in found.text
    assert "non-physical inertias:\n    line 4: link 'b'" in str(report) and report.lines[0].startswith("<text>:4: ")
    np.testing.assert_array_equal(model.inertias[0], found.parameters)
    repaired, again = read_urdf(text=source, physical="nearest")
    np.testing.assert_allclose(repaired.inertias[0], found.nearest, atol=1e-15)
    assert len(again.inertias) == 1 and (body == NO_MASS or defect(found.nearest) is None)
    with pytest.warns(
        FileWarning, match=r"^<text>: 1 links have non-physical inertias; the first one: 4: link 'b' has"
    ):
        load_urdf(text=source)
    with pytest.raises(FileError, match=r"^<text>:4: link 'b': it has "):
        load_urdf(text=source, physical="error")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load_urdf(text=source, physical="report")
        load_urdf(text=source, physical="nearest")


def test_the_nearest_inertia_has_no_negative_moment_of_the_density():
    _, report = read_urdf(text=robot(("continuous", ""), body=HEAVY))
    # the density's principal moments are (1.5, 1.5, -0.5): the last one becomes 0
    np.testing.assert_allclose(report.inertias[0].nearest, [2, 0, 0, 0, 1.5, 0, 1.5, 0, 0, 3], atol=1e-15)


def test_moving_links_without_mass_are_reported():
    bodies = robot(("continuous", ""), ("continuous", ""), ("continuous", ""), ("fixed", ""), body="")
    with pytest.warns(
        FileWarning, match="3 moving links have no mass on them or on their descendants; the first one: 3: link 'b'"
    ):
        load_urdf(text=bodies)
    _, report = read_urdf(text=bodies.replace('<link name="e">', f'<link name="e">{BODY}'))
    assert [(found.line, found.text) for found in report.massless] == [
        (3, "moves without mass of its own"),
        (4, "moves without mass of its own"),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load_urdf(text=bodies.replace('<link name="e">', f'<link name="e">{BODY}'))


def test_a_mass_without_inertia_is_a_point():
    model, report = read_urdf(
        text=robot(("continuous", ""), body='<inertial><origin xyz="0 1 0"/><mass value="2"/></inertial>')
    )
    assert model.inertias[0].tolist() == [2, 0, 2, 0, 2, 0, 0, 0, 0, 2]
    assert "link 'b': <inertial> has no <inertia>; a point mass is assumed" in str(report)


def test_links_and_joints_may_share_names():
    _, report = read_urdf(text=robot(("continuous", "")).replace('"j0"', '"b"'))
    assert [str(found) for found in report.clashes] == ["6: joint 'b' has the name of a link"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "iso-8859-1"])
def test_files_and_texts_may_be_encoded_as_they_say(tmp_path, encoding):
    header = f'<?xml version="1.0" encoding="{encoding.removesuffix("-sig")}"?>'
    text, path = header + robot(("continuous", "")).replace('"b"', '"Gelenkstück"'), tmp_path / "robot.urdf"
    path.write_bytes(text.encode(encoding))
    assert load_urdf(path).body_names == load_urdf(text=text).body_names == ("Gelenkstück",)


@pytest.mark.float32
def test_numbers_follow_the_dtype(dtype):
    model = load_urdf(text=robot(("continuous", "")), gravity=(0, 0, -1.62), dtype=dtype)
    assert model.dtype == dtype and model.gravity.tolist() == [0, 0, dtype(-1.62)]
    assert load_urdf(text=robot(("continuous", ""))).dtype == jnp.zeros(()).dtype
    _, report = read_urdf(text=robot(("continuous", ""), body=HEAVY), dtype=dtype)
    np.testing.assert_allclose(report.inertias[0].nearest[4:], [1.5, 0, 1.5, 0, 0, 3], atol=1e-15)


def test_a_rigid_robot_moves_only_on_a_floating_base():
    text = f'<robot name="stone"><link name="a">{BODY}</link></robot>'
    model = load_urdf(text=text, floating_base=True)
    assert (model.nq, model.nv, model.joint_names, model.body_names) == (7, 6, ("root_joint",), ("a",))


def test_rotors_of_transmissions():
    """Armature is ratio^2 inertia, as the mass matrix of a drive in Drake; other joints keep theirs."""
    more = """<transmission><type>SimpleTransmission</type><joint name="j1"/><actuator name="a">
    <drake:rotor_inertia value="2e-5"/><drake:gear_ratio value="100"/></actuator></transmission>"""
    axis = ("revolute", '<axis xyz="0 0 1"/><limit lower="-1" upper="1" effort="1" velocity="1"/>')
    text = robot(axis, axis, more=more).replace("<robot ", '<robot xmlns:drake="http://drake.mit.edu" ')
    model, plain = load_urdf(text=text), load_urdf(text=robot(axis, axis))
    np.testing.assert_allclose(model.armature - plain.armature, [0.0, 0.2], rtol=1e-12)
    q = jnp.array([0.3, 0.4])
    np.testing.assert_allclose(mass_matrix(model, q) - mass_matrix(plain, q), np.diag([0, 0.2]), atol=1e-12)
    report = read_urdf(text=text.replace('name="j1"/><actuator', 'name="j7"/><actuator'))[1]
    assert "the rotor drives no joint of one degree of freedom" in str([*report])
    with pytest.raises(FileError, match=r"rotor_inertia>: value: expected a .* got '-1'"):
        load_urdf(text=text.replace("2e-5", "-1"))


def test_joints_from_the_world():
    """Drake's way: the parent "world" without a link of that name is the world, for one or several joints."""
    links = "".join(f'<link name="{name}">{BODY}</link>' for name in "ab")
    ends = "".join(
        f'<joint name="j{name}" type="continuous"><parent link="world"/><child link="{name}"/></joint>' for name in "ab"
    )
    model, report = read_urdf(text=f'<robot name="r">{links}{ends}</robot>')
    assert model.joint_names == ("ja", "jb") and model.nv == 2
    assert "has joints from 'world' without such a link; the world is assumed" in str(report)
    named = load_urdf(text=f'<robot name="r"><link name="world"/>{links}{ends}</robot>')
    chex.assert_trees_all_equal(model.placements, named.placements)


HINGE = ("revolute", '<axis xyz="0 0 1"/><limit lower="-1" upper="1" effort="1" velocity="1"/>')


@pytest.mark.parametrize(
    ("change", "remarks"),
    [
        (lambda text: '\n <?xml version="1.0"?>\n' + text, ["2: XML declaration is not at the start"]),
        (lambda text: '<!-- a\n -->\n<?xml version="1.0" ?>\n' + text, ["3: XML declaration is not at the start"]),
        (lambda text: '<?xml version="0.0" ?>\n' + text, ["1: XML declaration has no version 1.0"]),
        (lambda text: text.replace("<joint", "<!-- a -- b --->\n<!-- fine - -->\n<joint", 1),
         ['6: comment contains "--"']),
        (lambda text: text.replace("<robot", '<robot xmlns="http://drake.mit.edu"', 1),
         ["1: the namespace 'http://drake.mit.edu' is ignored"]),
        (lambda text: "\ufeff" + text, []),
        (lambda text: '<!-- <?xml version="1.0"?> -->' + text, []),
        (lambda text: '\ufeff<?xml version="1.1" encoding="utf-8"?>' + text, []),
    ],
)  # fmt: skip
def test_what_is_nearly_xml_is_read_with_a_remark(change, remarks, tmp_path):
    text = robot(HINGE)
    (tmp_path / "a.urdf").write_text(change(text), encoding="utf-8")
    model, report = read_urdf(tmp_path / "a.urdf")
    assert [str(finding) for finding in report.assumed] == remarks
    np.testing.assert_array_equal(model.inertias, load_urdf(text=text).inertias)
    assert read_machine(tmp_path / "a.urdf")[0].joint_names == ("j0",)


def test_errors_keep_their_lines_where_the_file_is_nearly_xml():
    text = '\n<?xml version="1.0"?>\n<!-- -- \n-->\n' + robot(HINGE, more="<joint/>")
    with pytest.raises(FileError, match="11: <joint>: "):
        read_urdf(text=text)


def test_limits_that_cross_are_none():
    model, report = read_urdf(text=robot(("revolute", '<limit lower="5" upper="1" effort="2" velocity="3"/>')))
    assert (float(model.lower[0]), float(model.upper[0]), float(model.effort_limit[0])) == (-np.inf, np.inf, 2)
    assert "has lower > upper, 5 and 1; no limits are assumed" in str(report)


def test_numbers_with_white_space_are_read_with_a_remark():
    """As urdfdom refuses them: a line break within the quotes of a number."""
    inertial = '<inertial><mass value="2\n"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>'
    text = f"""<robot name="r"><link name="a"/><link name="b">{inertial}</link><joint name="j" type="continuous">
<parent link="a"/><child link="b"/></joint></robot>"""
    model, report = read_urdf(text=text)
    assert float(model.inertias[0, 0]) == 2.0
    (finding,) = report.ignored
    assert str(finding).endswith("<mass> value: a number with white space around it, which other readers refuse")
    assert not read_urdf(text=text.replace("2\n", "2"))[1].ignored
