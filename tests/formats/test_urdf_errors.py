"""What a URDF file can get wrong: each fault has its place, its element, what was expected and what came."""

import re

import chex
import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from lgsim.formats import FileError, load_urdf, read_urdf
from lgsim.multibody.model import Model
from lgsim.multibody.topology import ModelError

ROBOT = """<?xml version="1.0"?>
<robot name="arm">
  <link name="base"/>
  <link name="upper">
    <inertial>
      <origin xyz="0 0 0.1" rpy="0 0 0.2"/>
      <mass value="2"/>
      <inertia ixx="0.02" ixy="0" ixz="0" iyy="0.03" iyz="0" izz="0.02"/>
    </inertial>
  </link>
  <joint name="shoulder" type="revolute">
    <parent link="base"/>
    <child link="upper"/>
    <origin xyz="0 0 1" rpy="0 0 0"/>
    <axis xyz="0 1 0"/>
    <limit lower="-1" upper="1" velocity="2" effort="3"/>
    <dynamics damping="0.1" friction="0.2"/>
  </joint>
  <link name="lower">
    <inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>
  </link>
  <joint name="elbow" type="continuous">
    <parent link="upper"/>
    <child link="lower"/>
    <mimic joint="shoulder" multiplier="2" offset="0.1"/>
  </joint>
</robot>
"""

# (what is replaced in ROBOT, by what, the line and message)
FAULTS = {
    "no robot": ("robot", "device", r"2: .*expected <robot>, the root of a URDF file, got <device>"),
    "another format": (ROBOT[22:], '<sdf version="1.6"/>', r"2: <sdf>: expected <robot>, .*, got <sdf>"),
    "tag not closed": ("</link>", "", r"27: not XML: .*mismatch"),
    "attribute without quotes": ('type="revolute"', "type=revolute", r"11: not XML: .*"),
    "attribute twice": ('<mass value="2"/>', '<mass value="2" value="3"/>', r"7: not XML: Attribute value redefined"),
    "text after the end": ("</robot>\n", "</robot>\nend", r"28: not XML: Extra content"),
    "undefined entity": ('"2"', '"&two;"', r"7: not XML: Entity 'two' not defined"),
    "entity": (
        '<?xml version="1.0"?>',
        '<!DOCTYPE robot [<!ENTITY two "2">]>',
        r"1: expected no entities in the document type",
    ),
    "macro": (
        '<link name="base"/>',
        '<xacro:link name="base"/>',
        r"3: <xacro:link>: expected URDF, got a macro; files with the suffix \.xacro are expanded",
    ),
    "macro with namespace": (
        '<link name="base"/>',
        '<x:if xmlns:x="http://www.ros.org/wiki/xacro"/>',
        r"3: <x:if>: expected URDF, got a macro",
    ),
    "unknown type": (
        "revolute",
        "hinge",
        r"11: joint 'shoulder': type: expected one of revolute, continuous, .*, got 'hinge'",
    ),
    "type in capitals": ("revolute", "Revolute", r"11: joint 'shoulder': type: expected .*, got 'Revolute'"),
    "no type": (' type="revolute"', "", r"11: joint 'shoulder': type: expected .*, got none"),
    "joint without a name": (
        'name="shoulder"',
        "",
        r"11: <joint>: expected an attribute 'name' that is a name, got none",
    ),
    "link without a name": ('<link name="base"/>', "<link/>", r"3: <link>: expected an attribute 'name' .*, got none"),
    "link with an empty name": ('<link name="base"/>', '<link name=""/>', r"3: link '': expected an attribute 'name'"),
    "no parent": ('<parent link="base"/>', "", r"11: joint 'shoulder': expected a <parent>, got none"),
    "no child": ('<child link="upper"/>', "", r"11: joint 'shoulder': expected a <child>, got none"),
    "parent without link": (
        'parent link="base"',
        "parent",
        r"12: joint 'shoulder': <parent>: expected an attribute 'link'",
    ),
    "two parents": (
        '<parent link="base"/>',
        '<parent link="base"/>\n<parent link="lower"/>',
        r"13: joint 'shoulder': <parent>: expected only one, there is another one in line 12",
    ),
    "missing parent link": (
        '<parent link="base"/>',
        '<parent link="bas"/>',
        r"12: joint 'shoulder': <parent>: there is no link 'bas'; links are 'base', 'upper', 'lower'",
    ),
    "missing child link": (
        '<child link="lower"/>',
        '<child link="hand"/>',
        r"24: joint 'elbow': <child>: there is no link",
    ),
    "missing link": ('<link name="base"/>', "", r"12: joint 'shoulder': <parent>: there is no link 'base'"),
    "link twice": ('name="upper"', 'name="base"', r"4: link 'base': the name is taken by the link in line 3"),
    "joint twice": (
        'name="elbow"',
        'name="shoulder"',
        r"22: joint 'shoulder': the name is taken by the joint in line 11",
    ),
    "child of two joints": (
        "</robot>",
        '<joint name="again" type="fixed"><parent link="base"/><child link="lower"/></joint></robot>',
        r"27: joint 'again': <child>: link 'lower' is already the child of the joint 'elbow' in line 22",
    ),
    "its own parent": (
        '<parent link="upper"/>',
        '<parent link="lower"/>',
        r"24: joint 'elbow': <child>: expected two different links, got 'lower' as parent and child",
    ),
    "circle without a root": (
        '<parent link="base"/>\n    <child link="upper"/>',
        '<parent link="lower"/>\n    <child link="upper"/>',
        r"11: joint 'shoulder': circular parents: 'upper', 'lower'; expected a tree",
    ),
    "two roots": (
        '<link name="base"/>',
        '<link name="base"/><link name="table"/>',
        r"3: link 'table': expected one root, got 2 links that no joint moves: 'base', 'table'",
    ),
    "no links": (ROBOT[22:], '<robot name="empty"/>', r"2: robot 'empty': expected at least one <link>, got none"),
    "nothing moves": (
        ROBOT[22:],
        '<robot name="stone"><link name="a"/></robot>',
        r"2: robot 'stone': expected at least one joint .*floating_base=True",
    ),
    "fixed to the world": (
        ROBOT[22:],
        '<robot name="stone"><link name="world"/></robot>',
        r"2: robot 'stone': expected at least one joint that is not fixed, got a robot that is fixed to the world",
    ),
    "negative mass": (
        'mass value="2"',
        'mass value="-2"',
        r"7: link 'upper': <inertial>: <mass>: value: expected a finite nonnegative number, got '-2'",
    ),
    "mass nan": (
        'mass value="2"',
        'mass value="nan"',
        r"7: .*<mass>: value: expected a finite nonnegative number, got 'nan'",
    ),
    "mass infinite": (
        'mass value="2"',
        'mass value="inf"',
        r"7: .*<mass>: value: expected a finite nonnegative number, got 'inf'",
    ),
    "mass too large": (
        'mass value="2"',
        'mass value="1e999"',
        r"7: .*<mass>: value: expected a finite .*, got '1e999'",
    ),
    "mass a word": ('mass value="2"', 'mass value="heavy"', r"7: .*<mass>: value: expected a finite .*, got 'heavy'"),
    "mass with a comma": ('mass value="2"', 'mass value="2,5"', r"7: .*<mass>: value: expected a finite .*, got '2,5'"),
    "mass with an underscore": ('mass value="2"', 'mass value="2_5"', r"7: .*<mass>: value: expected .*, got '2_5'"),
    "mass without value": (
        'mass value="2"',
        "mass",
        r"7: .*<mass>: value: expected a finite nonnegative number, got none",
    ),
    "no mass": ('<mass value="2"/>', "", r"5: link 'upper': <inertial>: expected a <mass>, got none"),
    "inertia without ixy": (
        ' ixy="0"',
        "",
        r"8: link 'upper': <inertial>: <inertia>: ixy: expected a finite number, got none",
    ),
    "inertia a word": ('iyy="0.03"', 'iyy="x"', r"8: .*<inertia>: iyy: expected a finite number, got 'x'"),
    "inertia too large": (
        'xyz="0 0 0.1" rpy="0 0 0.2"',
        'xyz="0 0 1e200"',
        r"4: link 'upper': expected an inertial within the range of floats, got too large numbers",
    ),
    "zero axis": (
        'axis xyz="0 1 0"',
        'axis xyz="0 0 0"',
        r"15: joint 'shoulder': <axis>: xyz: expected a nonzero vector, got '0 0 0'",
    ),
    "axis with two numbers": (
        'axis xyz="0 1 0"',
        'axis xyz="0 1"',
        r"15: joint 'shoulder': <axis>: xyz: expected 3 finite numbers, got '0 1'",
    ),
    "axis with four numbers": (
        'axis xyz="0 1 0"',
        'axis xyz="0 1 0 0"',
        r"15: .*<axis>: xyz: expected 3 finite numbers",
    ),
    "axis nan": (
        'axis xyz="0 1 0"',
        'axis xyz="0 nan 0"',
        r"15: .*<axis>: xyz: expected 3 finite numbers, got '0 nan 0'",
    ),
    "origin a word": (
        'xyz="0 0 1"',
        'xyz="0 0 one"',
        r"14: joint 'shoulder': <origin>: xyz: expected 3 finite numbers",
    ),
    "origin empty": (
        'rpy="0 0 0"',
        'rpy=""',
        r"14: joint 'shoulder': <origin>: rpy: expected 3 finite numbers, got ''",
    ),
    "origin with two turns": (
        'rpy="0 0 0"',
        'rpy="0 0 0" quat_xyzw="0 0 0 1"',
        r"14: joint 'shoulder': <origin>: expected either rpy or quat_xyzw, got both",
    ),
    "zero quaternion": (
        'rpy="0 0 0"',
        'quat_xyzw="0 0 0 0"',
        r"14: joint 'shoulder': <origin>: quat_xyzw: expected a nonzero quaternion",
    ),
    "origin of inertial": (
        'rpy="0 0 0.2"',
        'rpy="1"',
        r"6: link 'upper': <inertial>: <origin>: rpy: expected 3 finite num",
    ),
    "limit a word": (
        'lower="-1"',
        'lower="low"',
        r"16: joint 'shoulder': <limit>: lower: expected a number, got 'low'",
    ),
    "limit nan": (
        'velocity="2"',
        'velocity="nan"',
        r"16: joint 'shoulder': <limit>: velocity: expected a number, got 'nan'",
    ),
    "effort a word": (
        'effort="3"',
        'effort="3Nm"',
        r"16: joint 'shoulder': <limit>: effort: expected a number, got '3Nm'",
    ),
    "negative damping": (
        'damping="0.1"',
        'damping="-0.1"',
        r"17: joint 'shoulder': <dynamics>: damping: expected a finite nonnegative number, got '-0.1'",
    ),
    "friction infinite": (
        'friction="0.2"',
        'friction="inf"',
        r"17: .*<dynamics>: friction: expected a finite nonnegative number",
    ),
    "mimic of a missing joint": (
        'joint="shoulder"',
        'joint="wrist"',
        r"25: joint 'elbow': <mimic>: there is no joint 'wrist'; joints are 'shoulder', 'elbow'",
    ),
    "mimic of itself": (
        'joint="shoulder"',
        'joint="elbow"',
        r"25: joint 'elbow': <mimic>: expected an independent joint, got joints that mimic itself",
    ),
    "mimic in a circle": (
        "<axis",
        '<mimic joint="elbow"/><axis',
        r"25: joint 'elbow': <mimic>: expected an independent joint, got joints that mimic in a circle",
    ),
    "mimic of a fixed joint": (
        "revolute",
        "fixed",
        r"25: joint 'elbow': <mimic>: expected a joint of one degree of freedom, 'shoulder' has 0",
    ),
    "mimic of a ball": (
        "revolute",
        "ball",
        r"25: joint 'elbow': <mimic>: expected .* one degree of freedom, 'shoulder' has 3",
    ),
    "mimic by a plane": ("continuous", "planar", r"25: joint 'elbow': <mimic>: only a joint of one degree of freedom"),
    "mimic of nothing": ('joint="shoulder" ', "", r"25: joint 'elbow': <mimic>: expected an attribute 'joint'"),
    "multiplier a word": (
        'multiplier="2"',
        'multiplier="-"',
        r"25: .*<mimic>: multiplier: expected a finite number, got '-'",
    ),
    "offset infinite": ('offset="0.1"', 'offset="inf"', r"25: .*<mimic>: offset: expected a finite number, got 'inf'"),
    "a link in the middle is the world": (
        '"upper"',
        '"world"',
        r"4: link 'world': expected another name: this one is reserved for the world",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_named_with_its_line(tmp_path, fault):
    old, new, message = FAULTS[fault]
    assert old in ROBOT
    text, path = ROBOT.replace(old, new) if "world" in new else _replaced(old, new), tmp_path / "robot.urdf"
    path.write_text(text)
    with pytest.raises(FileError) as caught:
        load_urdf(path)
    assert re.match(f"{re.escape(str(path))}:{message}", str(caught.value)), str(caught.value)
    assert isinstance(caught.value, ModelError)
    assert str(caught.value).startswith(f"{caught.value.file}:{caught.value.line}: ")


def _replaced(old, new):
    """The first occurrence, of names of tags all."""
    return ROBOT.replace(old, new) if old == "robot" else ROBOT.replace(old, new, 1)


def test_there_are_at_least_40_faults():
    assert len(FAULTS) >= 60


@pytest.mark.parametrize("path", ["nowhere.urdf", "", ".", "a\0b"])
def test_a_file_that_cannot_be_read_is_named(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileError, match=r"the file cannot be read: \w+") as caught:
        load_urdf(path)
    shown = str(path).replace("\0", r"\x00")
    assert str(caught.value).startswith(f"{shown}: ") and caught.value.line is None


@pytest.mark.parametrize(
    "content", [b"", b"hello", b"\x00\x01\x02", b"\xff\xfe<", b"<!-- -->", b"solid mesh\n", b"<robot"]
)
def test_what_is_not_xml_is_refused(tmp_path, content):
    path = tmp_path / "robot.urdf"
    path.write_bytes(content)
    with pytest.raises(FileError, match=r"robot.urdf:1: not XML: "):
        load_urdf(path)


def test_either_a_path_or_a_text_is_expected():
    with pytest.raises(TypeError, match="expected either a path or text"):
        load_urdf()
    with pytest.raises(TypeError, match="expected either a path or text"):
        load_urdf("robot.urdf", text=ROBOT)
    with pytest.raises(FileError, match=r"expected the path of a file, got XML; give it as text=\.\.\."):
        load_urdf(ROBOT)
    with pytest.raises(ValueError, match="physical: expected one of warn, report, nearest, error, got 'maybe'"):
        load_urdf(text=ROBOT, physical="maybe")


def test_a_text_is_named_in_the_message():
    with pytest.raises(FileError, match=r"^<text>:11: joint 'shoulder': type"):
        load_urdf(text=ROBOT.replace("revolute", "hinge"))


def test_lines_beyond_the_range_of_16_bits_are_right_within_one():
    text = ROBOT.replace("<mass", "\n" * 70000 + "<mass", 1).replace("revolute", "hinge")
    with pytest.raises(FileError, match=r"^<text>:7001[12]: joint 'shoulder': type"):
        load_urdf(text=text)


def test_entities_are_neither_expanded_nor_fetched(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("<link name='secret'/>")
    laughs = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 30))
    for dtd in (f'<!ENTITY l0 "ha">{laughs}', f'<!ENTITY l29 SYSTEM "file://{secret}">', '<!ENTITY % l29 "">'):
        for use in ("&l29;", '<link name="&l29;"/>', ""):
            text = f"<!DOCTYPE robot [{dtd}]><robot>{use}<link name='a'/></robot>"
            with pytest.raises(FileError, match=r"^<text>:1: ") as caught:
                load_urdf(text=text, floating_base=True)
            assert "secret'" not in str(caught.value)


def test_a_root_that_is_the_world_cannot_float():
    text = ROBOT.replace('"base"', '"world"')
    assert load_urdf(text=text).joint_names == ("shoulder", "elbow")
    with pytest.raises(FileError, match=r"^<text>:3: link 'world': this root is the world, so it cannot be a floating"):
        load_urdf(text=text, floating_base=True)


def test_numbers_that_float32_cannot_hold_are_refused():
    text = ROBOT.replace('xyz="0 0 1"', 'xyz="0 0 1e39"')
    assert load_urdf(text=text).nv == 1
    with pytest.raises(FileError, match=r"^<text>:2: robot 'arm': placements of the model as float32: expected finite"):
        load_urdf(text=text, dtype=np.float32)


@pytest.mark.parametrize("axis", ["1e200 0 1e200", "1e-200 0 1e-200"])
@pytest.mark.parametrize("kind", ["revolute", "planar"])
def test_an_axis_may_have_any_length(axis, kind):
    text = (
        ROBOT.replace("revolute", kind).replace('axis xyz="0 1 0"', f'axis xyz="{axis}"').replace("<mimic", "<mimics")
    )
    axes = load_urdf(text=text).axes
    np.testing.assert_allclose(axes[0 if kind == "revolute" else 2], np.array([1, 0, 1]) / np.sqrt(2), atol=1e-15)


def test_the_joint_of_the_floating_base_needs_its_name():
    text = ROBOT.replace('"shoulder"', '"root_joint"')
    assert load_urdf(text=text).joint_names == ("root_joint", "elbow")
    with pytest.raises(FileError, match=r"^<text>:11: joint 'root_joint': expected another name"):
        load_urdf(text=text, floating_base=True)


JUNK = [
    "",
    " ",
    "nan",
    "-1",
    "inf",
    "1e400",
    "1e300",
    "-1e300",
    "1e-320",
    "0",
    "0 0 0",
    "1 2 3",
    "x",
    "1e",
    "0x1",
    "1_0",
]
JUNK += ["\u0663", "\U0001f916", "base", "upper", "lower", "world", "elbow", "shoulder", "root_joint"]
JUNK += ["fixed", "planar", "ball", "floating", "prismatic"]
TAGS = [
    "robot",
    "link",
    "joint",
    "inertial",
    "mass",
    "inertia",
    "origin",
    "axis",
    "limit",
    "mimic",
    "parent",
    "child",
    "foo",
]
ATTRIBUTES = ["name", "type", "xyz", "rpy", "value", "link", "joint", "ixx", "lower", "quat_xyzw", "foo"]


@st.composite
def mutations(draw):
    """A robot of which some elements were dropped, doubled, moved or renamed, and some attributes made junk."""
    root = etree.fromstring(ROBOT.encode())
    for _ in range(draw(st.integers(1, 5))):
        nodes = list(root.iter(etree.Element))
        node = nodes[draw(st.integers(0, len(nodes) - 1))]
        kind = draw(st.sampled_from("drop double rename move junk remove add".split()))
        parent = node.getparent()
        if kind in ("junk", "remove") and node.attrib:
            key = draw(st.sampled_from(sorted(node.attrib)))
            if kind == "junk":
                node.set(key, draw(st.sampled_from(JUNK)))
            else:
                del node.attrib[key]
        elif kind == "add":
            node.set(draw(st.sampled_from(ATTRIBUTES)), draw(st.sampled_from(JUNK)))
        elif kind == "rename":
            node.tag = draw(st.sampled_from(TAGS))
        elif kind == "drop" and parent is not None:
            parent.remove(node)
        elif kind == "double" and parent is not None:
            parent.append(etree.fromstring(etree.tostring(node, with_tail=False)))
        elif kind == "move" and parent is not None:
            root.append(node)
    return etree.tostring(root, encoding="unicode")


def _loads_or_says_why(text, **options):
    try:
        model, report = read_urdf(text=text, **options)
    except ModelError as error:
        assert re.match(r"<text>:\d+: .", str(error)), str(error)
        return None
    assert isinstance(str(report), str) and len(report.lines) == len(report)
    chex.assert_tree_all_finite([model.placements, model.axes, model.inertias, model.frames, model.mimic])
    assert model.nv == len(model.damping) and isinstance(model, Model)
    return model


@pytest.mark.slow
@settings(max_examples=300)
@given(mutations(), st.booleans(), st.sampled_from(["report", "nearest", "error"]))
def test_a_mutated_file_loads_or_says_why(text, floating, physical):
    _loads_or_says_why(text, floating_base=floating, physical=physical)


@pytest.mark.slow
@settings(max_examples=150)
@given(st.data())
def test_a_file_with_characters_replaced_loads_or_says_why(data):
    text = ROBOT
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(text)))
        size = data.draw(st.integers(0, 12))
        text = text[:at] + data.draw(st.text(max_size=6)) + text[at + size :]
    _loads_or_says_why(text)


def test_the_file_of_these_tests_is_sound():
    model = _loads_or_says_why(ROBOT)
    assert model is not None and (model.nq, model.nv) == (1, 1)
    with jax.numpy_dtype_promotion("strict"):
        assert load_urdf(text=ROBOT, floating_base=True).nq == 8
