"""What an MJCF file means: accelerations, poses and names against MuJoCo, what is reported, what is refused."""

import sys
from pathlib import Path

import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from lgsim.dynamics.forward_dynamics import forward_dynamics
from lgsim.dynamics.kinematics import forward_kinematics
from lgsim.dynamics.passive_forces import passive_forces
from lgsim.formats import FileError, FileWarning, interop, load_mjcf, read_mjcf
from lgsim.multibody import joints

pytestmark = pytest.mark.oracle

GEOM = '<geom type="box" size=".1 .2 .3" pos=".1 -.2 .05" euler="10 20 30" contype="0" conaffinity="0"/>'
PLACE = 'pos=".3 -.2 .4" euler="20 -30 40"'


def body(content, inner="", place=PLACE, name="a"):
    return f'<body name="{name}" {place}>{content}{GEOM}{inner}</body>'


def robot(bodies, more=""):
    return f"<mujoco>{more}<worldbody>\n{bodies}\n</worldbody></mujoco>"


FORCES = 'armature=".3" damping=".7" stiffness="5" springref="20"'
HINGE = f'<joint type="hinge" axis="1 2 -1" pos=".1 .2 -.3" {FORCES}/>'
SLIDE = '<joint type="slide" axis="0 1 2" armature=".2" damping=".4" stiffness="3" springref=".1"/>'
BALL = '<joint type="ball" pos="-.1 .2 .1" armature=".1" damping=".3"/>'
FREE = '<joint type="free" damping=".5"/>'
THREE = "".join(f'<joint axis="{axis}" ref="{ref}"/>' for axis, ref in (("1 0 0", 10), ("0 1 1", -20), ("0 0 1", 0)))
BENT = (
    '<joint axis="1 0 1" pos=".1 0 .2" ref="25"/><joint type="slide" axis="1 1 0" ref=".2" armature=".4"/>'
    '<joint axis="0 1 0" pos="0 .3 0" ref="-40" damping=".2"/><joint axis="0 0 1" pos="0 .3 0"/>'
)
MOVING = {
    "a hinge, a slide and a ball": body(HINGE) + body(SLIDE, name="b") + body(BALL, name="c"),
    "free": body(FREE),
    "chain": body(HINGE, body(SLIDE, body(BALL, body("", body(HINGE, name="e"), name="d"), name="c"), name="b")),
    "floating tree": body(FREE, body(HINGE, name="b") + body(BALL, body(SLIDE, name="d"), name="c")),
    "three hinges that meet, with references": body(THREE, body(HINGE, name="b")),
    "axes that do not meet, with references": body(BENT, body(SLIDE, name="b")),
    "slides and a hinge before a ball, a slide behind": body(
        '<joint type="slide" axis="1 0 0" ref=".3"/><joint axis="0 0 1" ref="30"/>'
        '<joint type="ball" pos=".1 0 0"/><joint type="slide" axis="0 0 1" ref=".1"/>'
    ),
}


def state(theirs, seed=0):
    """Random qpos, qvel and forces."""
    rng = np.random.default_rng(seed)
    q, v, tau = rng.uniform(-1.5, 1.5, theirs.nq), *rng.normal(size=(2, theirs.nv))
    for j, kind in enumerate(theirs.jnt_type):
        at = theirs.jnt_qposadr[j] + 3 * (kind == mujoco.mjtJoint.mjJNT_FREE)
        if kind in (mujoco.mjtJoint.mjJNT_FREE, mujoco.mjtJoint.mjJNT_BALL):
            q[at : at + 4] = rng.normal(size=4)
            q[at : at + 4] /= np.linalg.norm(q[at : at + 4])
    return q, v, tau


def run(theirs, q, v, tau):
    data = mujoco.MjData(theirs)
    data.qpos[:], data.qvel[:], data.qfrc_applied[:] = q, v, tau
    mujoco.mj_forward(theirs, data)
    return data


def close(ours, theirs, tolerance):
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=tolerance * max(1, np.max(np.abs(theirs))))


@pytest.mark.repeats
@pytest.mark.parametrize("case", MOVING)
def test_accelerations_are_those_of_mujoco(case):
    text = robot(MOVING[case])
    model, theirs = load_mjcf(text=text), mujoco.MjModel.from_xml_string(text)
    x, xv, force = state(theirs)
    data = run(theirs, x, xv, force)
    q = interop.mujoco.q_from(model, x)
    np.testing.assert_array_equal(q, x)  # number by number
    v, tau = interop.mujoco.v_from(model, q, xv), interop.mujoco.tau_from(model, q, force)
    a = forward_dynamics(model, q, v, tau + passive_forces(model, q, v))
    close(interop.mujoco.a_to(model, q, v, a), data.qacc, 1e-10)


@pytest.mark.repeats
@pytest.mark.parametrize("case", [case for case in MOVING if len(case) > 20])
def test_poses_are_those_of_mujoco(case):
    text = robot(MOVING[case])
    model, theirs = load_mjcf(text=text), mujoco.MjModel.from_xml_string(text)
    data = run(theirs, *state(theirs))
    poses = np.asarray(forward_kinematics(model, jnp.asarray(data.qpos)))
    for i in range(1, theirs.nbody):
        T = poses[model.frame_names.index(theirs.body(i).name)]
        close(T[:3, 3], data.xpos[i], 1e-13)
        close(T[:3, :3], data.xmat[i].reshape(3, 3), 1e-13)


def test_joints_that_meet_are_one_and_others_are_not():
    meet = load_mjcf(text=robot(body(THREE)))
    assert [type(joint) for joint in meet.topology.joints] == [joints.Compound]
    assert (meet.joint_names, meet.body_names) == (("joint0+joint1+joint2",), ("a",))
    bent = load_mjcf(text=robot(body(BENT)))
    assert bent.joint_names == ("joint0+joint1", "joint2+joint3")
    assert bent.body_names == ("a:joint0+joint1", "a:joint2+joint3")
    assert bent.frame_names == (*bent.body_names, "a")
    assert not np.any(bent.inertias[0])


NAMED = """<mujoco>
<compiler angle="radian"/>
<default><joint armature="0.25" damping="1"/><default class="weak"><joint damping="0.125"/></default></default>
<option gravity="1 2 3"/>
<worldbody>
  <geom size="1 1 1" type="plane"/>
  <body name="body2"><geom size=".1"/>
    <body><joint range="-1 2" frictionloss=".5" actuatorfrcrange="-3 3" class="weak"/><geom size=".1"/>
      <site name="tip" pos="0 0 1"/><site name="body2"/><site/>
      <body name="hand"><geom size=".1"/></body>
    </body>
  </body>
  <body mocap="true" name="hook"/>
</worldbody>
<actuator><motor name="drive" joint="joint"/></actuator>
</mujoco>""".replace("<joint range", '<joint name="joint" range')


def test_numbers_names_and_frames_are_read():
    model, report = read_mjcf(text=NAMED)
    assert model.body_names == ("body2_",)
    assert set(model.frame_names) == {"body2", "body2_", "hand", "hook", "tip", "site:body2", "site2"}
    numbers = {"armature": 0.25, "damping": 0.125, "friction": 0.5, "lower": -1, "upper": 2, "effort_limit": 3}
    assert {key: float(getattr(model, key)[0]) for key in numbers} == numbers
    assert model.gravity.tolist() == [1, 2, 3]
    assert model.inertias[0, 0] == pytest.approx(2 * 1000 * 4 / 3 * np.pi * 0.1**3, rel=1e-12)  # hand is merged
    with pytest.warns(FileWarning, match="^<text>: 4 geoms can collide; contacts are not represented, body 'hook'"):
        assert load_mjcf(text=NAMED, dtype=jnp.float32).dtype == np.float32
    lines = str(report).splitlines()
    assert "    line 9: site 'body2' has the name of a body; its frame is 'site:body2'" in lines
    assert not any("'drive'" in line for line in lines)  # load_actuators reads it
    assert "    is a mocap body; it is fixed here: body 'hook', line 13" in lines
    assert "    4 geoms can collide; contacts are not represented; lines 6, 7, 8, 10" in lines


ODD = {
    '<joint type="ball" stiffness="1"/>': "stiffness of a joint with a quaternion is not represented",
    '<joint type="free" armature="1"/>': "armature of a free joint acts on the velocity in body axes",
    '<joint actuatorfrcrange="-1 3"/>': "actuatorfrcrange is not symmetric",
}


@pytest.mark.parametrize("joint", ODD)
def test_what_is_not_represented_is_reported(joint):
    _, report = read_mjcf(text=robot(body(joint)))
    (finding,) = report.ignored
    assert ODD[joint] in finding.text
    assert (finding.line, finding.subject) == (2, "joint 'joint0'")


def test_report_of_other_elements():
    more = """<option density="1.2"/><tendon><fixed name="t" range="0 1"><joint joint="j" coef="1"/></fixed>
<fixed><joint joint="j" coef="1"/></fixed></tendon><equality><joint joint1="j"/></equality>"""
    text = robot(body('<joint name="j"/>', place='gravcomp="1"'), more)
    _, report = read_mjcf(text=text, ignore_equalities=True)
    subjects = [finding.subject for finding in report.ignored]
    assert sorted(subjects) == ["body 'a'", "body 'a'", "equality 'equality0'", "tendon 't'"]
    _, report = read_mjcf(text=robot(body("<joint/>") + GEOM.replace('contype="0"', "")))
    assert [finding.subject for finding in report.ignored] == ["geom 'geom0'"]


def test_a_machine_with_ties_is_another_one_and_refused():
    """Ties that no loop stands for: a machine without them moves as another one, without a word."""
    ties = """
<equality><joint name="tie" joint1="j"/>
<joint joint1="j"/></equality>"""
    text = robot(body('<joint name="j"/>'), ties)
    for read in (read_mjcf, load_mjcf):
        with pytest.raises(
            FileError, match=r"equality 'tie': it fixes a single joint.*, and 1 more: .*ignore_equalities=True"
        ) as caught:
            read(text=text)
        assert caught.value.line == 2
    with pytest.warns(FileWarning, match="2 equalities are not represented"):
        assert load_mjcf(text=text, ignore_equalities=True).nv == 1
    off = '<option><flag equality="disable"/></option>'
    slack = ties.replace("<joint ", '<joint active="false" ')
    inactive = robot(body('<joint name="j"/>'), slack)
    for harmless in (robot(body('<joint name="j"/>'), off + ties), inactive):
        assert read_mjcf(text=harmless)[0].nv == 1


PROP = """<mujoco><worldbody><body name="cup" pos="1 2 3" euler="10 0 0"><geom type="box" size=".1 .2 .3"/>
<body name="ear" pos="0 .2 .1" euler="5 6 7"><geom size=".1" pos=".1 0 0"/></body></body></worldbody></mujoco>"""


def test_a_prop_without_joints_floats_on_request():
    with pytest.raises(FileError, match="or floating_base=True, got neither"):
        read_mjcf(text=PROP)
    model, report = read_mjcf(text=PROP, floating_base=True)
    free = PROP.replace('euler="10 0 0">', 'euler="10 0 0"><freejoint name="root_joint"/>')
    wanted = read_mjcf(text=free)[0]
    assert model.joint_names == ("root_joint",) and model.frame_names == wanted.frame_names
    np.testing.assert_array_equal(model.inertias, wanted.inertias)
    np.testing.assert_array_equal(model.frames, wanted.frames)
    assert "body 'cup' has a floating base 'root_joint'; its position in the file is (1, 2, 3) m" in str(report)
    two = PROP.replace("</worldbody>", '<body name="saucer"><geom size=".1"/></body></worldbody>')
    assert read_mjcf(text=two, floating_base=True)[0].joint_names == ("root_joint:cup", "root_joint:saucer")


def test_a_file_without_a_fixed_body_cannot_float():
    with pytest.raises(FileError, match="floating_base: expected a body of the world without a joint, got none"):
        read_mjcf(text=robot(body("<joint/>")), floating_base=True)


def test_what_a_file_has_more_of_is_counted_by_its_kind():
    cord = '<fixed range="0 1"><joint joint="j" coef="1"/></fixed>'
    cords = f"<tendon>{cord}{cord}</tendon>"
    _, report = read_mjcf(text=robot(body('<joint name="j"/>', place='gravcomp="1"'), cords))
    held = "body 'a' has gravity compensation, which load_actuators represents, not the model"
    limits = "have limits, which load_actuators represents with stops=, not the model"
    assert report.dropped == f"2 tendons {limits}, {held}"
    assert f"    2 tendons {limits}; lines 1, 1" in str(report).splitlines()


def test_flags_that_disable_forces_are_followed():
    flags = '<option><flag gravity="disable" spring="disable" damper="disable" frictionloss="disable"/></option>'
    model = load_mjcf(text=robot(body(f'<joint frictionloss="1" {FORCES}/>'), flags))
    assert not np.any(np.concatenate([model.gravity, model.damping, model.stiffness, model.friction]))
    assert model.armature[0] == 0.3


def test_included_files_are_read_and_have_no_lines(tmp_path):
    (tmp_path / "part.xml").write_text(f"<mujocoinclude>\n{body(THREE)}</mujocoinclude>")
    path = tmp_path / "main.xml"
    path.write_text('<mujoco><worldbody>\n<include file="part.xml"/></worldbody></mujoco>')
    model, report = read_mjcf(path)
    assert model.nv == 3
    assert [finding.line for finding in report] == [0]
    (tmp_path / "part.xml").write_text("<mujocoinclude>\n<bodi/></mujocoinclude>")
    with pytest.raises(FileError, match="unrecognized element") as caught:
        load_mjcf(path)
    assert caught.value.line is None


def simple(joint='<joint type="hinge"/>', content='<geom size="1"/>', attributes="", more=""):
    return f"<mujoco>{more}\n<worldbody>\n<body {attributes}>\n{joint}{content}</body></worldbody></mujoco>"


MALFORMED = {
    "empty": ("", None, "empty file"),
    "cut off": ("<mujoco>\n<worldbody><body>", 2, "XML_ERROR_MISMATCHED_ELEMENT"),
    "URDF": (
        "\n<robot name='a'/>",
        2,
        "expected <mujoco>, the root of an MJCF file, got <robot>; lgsim.formats.load_u",
    ),
    "other root": ("<sdf/>", 1, "expected <mujoco>, the root of an MJCF file, got <sdf>"),
    "nothing": ("<mujoco/>", None, "expected at least one <body>, got none"),
    "unknown element": (simple(content="<limb/>"), 4, "unrecognized element; Element 'limb'"),
    "unknown joint type": (simple('<joint type="helical"/>'), 4, "invalid keyword: 'helical'"),
    "no mass": (simple(content=""), 3, "mass and inertia of moving bodies must be larger than mjMINVAL"),
    "zero axis": (simple('<joint axis="0 0 0"/>'), 4, "axis too small in joint"),
    "missing class": (simple('<joint class="none"/>'), 4, "unknown default class name 'none'"),
    "missing number": (simple(attributes='pos="1 2"'), 3, "attribute 'pos' does not have enough data"),
    "no number": (simple(attributes='pos="1 2 x"'), 3, "bad format in attribute 'pos'"),
    "NaN": (simple(attributes='name="a" pos="1 2 nan"'), 4, "placement: expected finite numbers"),
    "seven degrees": (simple("<freejoint/><joint/>"), 3, "more than 6 dofs in body"),
    "free inside": (
        simple(content='<geom size="1"/><body><freejoint/><geom size="1"/></body>'),
        4,
        "free joint can only be used on top level",
    ),
    "hinge behind ball": (simple('<joint type="ball"/><joint/>'), 3, "ball followed by rotation in body"),
    "joint of the world": ("<mujoco><worldbody>\n<joint/></worldbody></mujoco>", 2, "World body cannot have joints"),
    "range": (simple('<joint limited="true" range="2 1"/>'), 4, "range[0] should be smaller than range[1]"),
    "name twice": (simple('<joint name="j"/><joint name="j"/>'), 4, "repeated name 'j' in joint"),
    "inertia": (
        simple(content='<inertial pos="0 0 0" mass="1" diaginertia="1 1 3"/>'),
        3,
        "inertia must satisfy A + B >= C",
    ),
    "missing mesh": (simple(content='<geom type="mesh" mesh="m"/>'), 4, "mesh 'm' not found in geom 0"),
    "negative damping": (
        simple('<joint damping="-1"/>'),
        4,
        "joint 'joint0': damping: expected a nonnegative n",
    ),
    "negative armature": (simple('<joint armature="-1"/>'), 4, "armature: expected a nonnegative number, got"),
}


@pytest.mark.parametrize("fault", MALFORMED)
def test_malformed_files_have_an_error_with_the_line(fault, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text, line, message = MALFORMED[fault]
    with pytest.raises(FileError) as caught:
        load_mjcf(text=text)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert (caught.value.file, caught.value.line) == ("<text>", line)
    assert not list(Path().iterdir())  # MuJoCo's own log


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(FileError, match=r"none\.xml: the file cannot be read: No such file"):
        load_mjcf(tmp_path / "none.xml")
    with pytest.raises(FileError, match="expected the path of a file, got XML; give it as text="):
        load_mjcf("<mujoco/>")
    for arguments in ({}, {"path": "a", "text": "b"}):
        with pytest.raises(TypeError, match="expected either a path or text"):
            load_mjcf(**arguments)


def test_without_mujoco_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(ImportError, match=r"pip install 'lgsim\[mjcf\]'"):
        load_mjcf(text="<mujoco/>")


def test_names_that_are_no_text(tmp_path):
    """MuJoCo takes any bytes for a name."""
    path = tmp_path / "x.xml"
    path.write_bytes(robot(body('<joint name="j" type="hinge"/>')).encode().replace(b'name="a"', b'name="\xdda"'))
    with pytest.raises(FileError, match=rf"^{path}: expected names in UTF-8$"):
        load_mjcf(path)
