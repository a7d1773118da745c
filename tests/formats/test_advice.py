"""Files that cannot be read as they are say what to do: SDF, MJCF, macros, joints that mimic nothing, lost meshes."""

import warnings

import numpy as np
import pytest

import lgsim
from lgsim.formats import FileError, FileWarning, read_urdf
from lgsim.multibody import ModelError

LINK = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
LOST = f"""<robot name="gripper">
<link name="base"/>
<link name="left">{LINK}</link>
<link name="right">{LINK}</link>
<joint name="l" type="revolute"><parent link="base"/><child link="left"/><axis xyz="1 0 0"/>
<limit lower="-1" upper="1" effort="1" velocity="1"/><origin xyz="1 2 3"/></joint>
<joint name="r" type="revolute"><parent link="base"/><child link="right"/><axis xyz="1 0 0"/>
<limit lower="-1" upper="1" effort="1" velocity="1"/><mimic joint="screw" multiplier="-2"/></joint>
</robot>"""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('<sdf version="1.7"><model name="a"/></sdf>', "got <sdf>: an SDF file, which lgsim.load_sdf reads"),
        ("<mujoco/>", "got <mujoco>: an MJCF file, which lgsim.load_mjcf reads"),
        (
            '<robot name="a" xmlns:xacro="http://www.ros.org/wiki/xacro"><xacro:include filename="b"/></robot>',
            "files with the suffix .xacro are expanded",
        ),
    ],
)
def test_other_files(text, message):
    with pytest.raises(FileError, match=message):
        lgsim.load_urdf(text=text)


def test_a_joint_that_mimics_nothing():
    """Refused with what to do, or free on request, with one warning that names it."""
    with pytest.raises(
        FileError, match=r"no joint 'screw'; joints are 'l', 'r'; load_urdf\(\.\.\., missing_mimic='free'"
    ):
        lgsim.load_urdf(text=LOST)
    with pytest.warns(FileWarning, match="no joint 'screw' that joint 'r' could mimic: it becomes independent"):
        model = lgsim.load_urdf(text=LOST, missing_mimic="free")
    assert model.nv == 2 and model.topology.mimics == (None, None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _, report = read_urdf(text=LOST, missing_mimic="free")
    assert [finding.line for finding in report.assumed if "screw" in finding.text] == [8]
    with pytest.raises(ValueError, match="missing_mimic: expected error or free, got 'drop'"):
        read_urdf(text=LOST, missing_mimic="drop")


def test_place_of_a_placement_by_name():
    with pytest.warns(FileWarning):
        model = lgsim.load_urdf(text=LOST, missing_mimic="free")
    assert model.placement_of("r") == 1
    np.testing.assert_array_equal(model.placements[model.placement_of("l")][:3, 3], [1, 2, 3])
    with pytest.raises(ModelError, match="expected the name of a joint, got 'lef'"):
        model.placement_of("lef")


def test_info_names_meshes_that_are_not_there(tmp_path):
    """Each once, the first five of them, with its line; those that are there are not named."""
    from tests.cli.machines import lgsim as command

    (tmp_path / "there.stl").write_text("solid")
    names = ["there.stl", "package://arm/meshes/hand.dae", *(f"lost{i}.stl" for i in range(6)), "lost0.stl"]
    shapes = "\n".join(
        f'<{kind}><geometry><mesh filename="{name}"/></geometry></{kind}>'
        for name in names
        for kind in ("visual", "collision")
    )
    text = LOST.replace('joint="screw"', 'joint="l"').replace(
        f'<link name="left">{LINK}', f'<link name="left">{LINK}{shapes}'
    )
    (tmp_path / "arm.urdf").write_text(text)
    result = command("info", tmp_path / "arm.urdf")
    assert result.exit_code == 0
    said = " ".join(result.stdout.split())
    assert "7 mesh files not found, searched next to the file and in ROS_PACKAGE_PATH" in said
    assert "line 5: there is no file 'package://arm/meshes/hand.dae'" in said and "and 2 more" in said
    assert "there.stl'" not in said
