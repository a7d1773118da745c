"""Files of xacro's macros."""

import copy
import pickle

import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim.formats import FileError, XacroFile, read_urdf, write_urdf
from lgsim.scenarios.machine import read_machine

pytest.importorskip("xacro")

SPACE = 'xmlns:xacro="http://www.ros.org/wiki/xacro"'
ARM = f"""<robot name="arm" {SPACE}>
  <xacro:arg name="prefix" default=""/>
  <xacro:arg name="mass" default="2"/>
  <xacro:include filename="$(find rods)/macros/rod.xacro"/>
  <link name="base"/>
  <xacro:rod name="$(arg prefix)rod" mass="${{float('$(arg mass)') / 2}}"/>
</robot>"""
ROD = f"""<robot {SPACE}>
  <xacro:macro name="rod" params="name mass">
    <link name="${{name}}"><inertial><origin xyz="0.5 0 0"/><mass value="${{mass}}"/>
      <inertia ixx="0.01" iyy="${{mass / 12}}" izz="${{mass / 12}}" ixy="0" ixz="0" iyz="0"/></inertial></link>
    <joint name="${{name}}_hinge" type="continuous">
      <parent link="base"/><child link="${{name}}"/><axis xyz="0 1 0"/></joint>
  </xacro:macro>
</robot>"""


@pytest.fixture(params=["above", "next to it", "listed"])
def arm(request, tmp_path, monkeypatch):
    """The path of a file that includes one of the package "rods" at several places."""
    package = tmp_path / "share" / "rods"
    file = {"above": package / "urdf", "next to it": package.parent, "listed": tmp_path / "other"}[request.param]
    if request.param == "listed":
        monkeypatch.setenv("ROS_PACKAGE_PATH", str(tmp_path / "share"))
    for folder in (package / "macros", file):
        folder.mkdir(parents=True, exist_ok=True)
    (package / "macros" / "rod.xacro").write_text(ROD)
    (file / "arm.urdf.xacro").write_text(ARM)
    return file / "arm.urdf.xacro"


def test_defaults_and_arguments(arm, tmp_path):
    """By hand: a rod of half the mass, with its center at 0.5 m, and the names of the prefix."""
    for path, prefix, mass in ((arm, "", 1.0), (XacroFile(arm, prefix="l_", mass=6), "l_", 3.0)):
        model = lgsim.load_urdf(path, dtype=jnp.float64)
        assert model.joint_names == (f"{prefix}rod_hinge",)
        # about the hinge: m / 12 of the rod itself and m / 4 by its center
        np.testing.assert_allclose(lgsim.mass_matrix(model, jnp.zeros(1)), [[mass / 3]], rtol=1e-15)
        assert read_machine(path)[0].joint_names == model.joint_names
    assert write_urdf(path, model, tmp_path / "found.urdf") == ()
    with pytest.raises(ValueError, match="path: expected the name of a URDF file, got"):
        write_urdf(path, model, arm)
    assert lgsim.load_urdf(tmp_path / "found.urdf").joint_names == ("l_rod_hinge",)


def test_the_path_keeps_its_arguments(arm):
    file = XacroFile(arm, prefix="l_", mass=6)
    for other in (pickle.loads(pickle.dumps(file)), copy.deepcopy(file), file.absolute()):
        assert other.arguments == {"prefix": "l_", "mass": "6"} and str(other) == str(arm)
    assert file.parent == arm.parent and file.parent.arguments == {} and file.suffix == ".xacro"


@pytest.mark.parametrize(
    ("change", "arguments", "said"),
    [
        ({}, {"prefx": "l_"}, r"arguments: expected names of the file's <xacro:arg> \(mass, prefix\), got 'prefx'"),
        ({}, {"mass": "x"}, "xacro: could not convert string to float: 'x'"),
        ({"find rods": "find bars"}, {}, r"\$\(find bars\): expected a folder 'bars' next to the file, above it or in"),
        ({"<xacro:rod": "<xacro:bar"}, {}, "xacro: unknown macro name: xacro:bar"),
        ({"</robot>": ""}, {}, "xacro: no element found"),
        ({'name="base"': "name=\"${__import__('os').getcwd()}\""}, {}, "xacro: .*__import__"),
    ],
)
def test_errors(tmp_path, change, arguments, said):
    (tmp_path / "rods" / "macros").mkdir(parents=True)
    (tmp_path / "rods" / "macros" / "rod.xacro").write_text(ROD)
    text = ARM
    for old, new in change.items():
        text = text.replace(old, new)
    (tmp_path / "arm.xacro").write_text(text)
    with pytest.raises(FileError, match=said):
        read_urdf(XacroFile(tmp_path / "arm.xacro", **arguments))
    # what failed leaves nothing behind
    (tmp_path / "arm.xacro").write_text(ARM)
    assert read_urdf(tmp_path / "arm.xacro")[0].joint_names == ("rod_hinge",)
