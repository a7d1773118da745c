"""Loops from TOML files beside URDF and SDF files."""

import re

import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim.dynamics.kinematics import forward_kinematics
from lgsim.formats import FileError, read_sdf
from lgsim.multibody import ModelError, joints
from lgsim.multibody.loops import Coupling, JointTie, Loop, Rod
from tests.cli.test_loop_machines import ARMS, SDF
from tests.multibody.loop_machines import every_kind

LOOPS = """
[[loop]]
name = "pin"
frame_a = "a"
placement_a = { xyz = [0, 0, 0.5], rpy = [1.5707963267948966, 0, 0] }
frame_b = "b"
joint = "hinge"

[[loop]]
name = "bar"
frame_a = "world"
frame_b = "pin.a"
length = 0.7

[[loop]]
name = "gear"
joint_a = "ja"
joint_b = "jb"
coefficients = [0.1, -2]
"""


def read(tmp_path, text, **options):
    file = tmp_path / "loops.toml"
    file.write_text(text)
    return lgsim.load_urdf(text=ARMS, loops=file, **options)


def test_loops_beside_a_urdf_file(tmp_path):
    model = read(tmp_path, LOOPS)
    assert model.topology.loops == (
        Loop("pin", "pin.a", "b", JointTie(joints.Revolute())),
        Loop("bar", "world", "pin.a", Rod()),
        Loop("gear", "ja", "jb", Coupling(1, turns=True)),
    )
    np.testing.assert_array_equal(model.loops, [0.7, 0.1, -2.0])
    pose = np.asarray(forward_kinematics(model, jnp.zeros(2)))[model.frame_names.index("pin.a")]
    np.testing.assert_allclose(pose, [[1, 0, 0, 0], [0, 0, -1, 0], [0, 1, 0, 0.5], [0, 0, 0, 1]], atol=1e-15)


@pytest.mark.parametrize(("word", "joint"), [
    ("revolute", joints.Revolute()), ("ball", joints.Spherical()), ("spherical", joints.Spherical()),
    ("weld", joints.Fixed()), ("fixed", joints.Fixed()), ("prismatic", joints.Prismatic()),
    ("cylindrical", joints.Cylindrical()), ("planar", joints.Planar()), ("translational", joints.Translational()),
])  # fmt: skip
def test_words_of_joints(tmp_path, word, joint):
    model = read(tmp_path, f'[[loop]]\nname = "x"\nframe_a = "a"\nframe_b = "b"\njoint = "{word}"')
    assert model.topology.loops[0].kind == JointTie(joint)


def test_loops_beside_an_sdf_file(tmp_path):
    file = tmp_path / "loops.toml"
    file.write_text('[[loop]]\nname = "bar"\nframe_a = "world"\nframe_b = "arm"\nlength = 2')
    model, _ = read_sdf(text=SDF, loops=file)
    assert model.loop_names == ("bar",) and float(model.loops[0]) == 2


ERRORS = {
    "no table": ("", "expected tables [[loop]], got none"),
    "another table": ("[[loops]]", "loops: there is no such key; did you mean 'loop'?"),
    "no name": ("[[loop]]\nlength = 1", "1: loop[1]: the key 'name' is missing"),
    "no kind": ('[[loop]]\nname = "x"\nframe_a = "a"\nframe_b = "b"', "1: loop[1]: expected one of joint, length and"),
    "an unknown joint": (
        '[[loop]]\nname = "x"\nframe_a = "a"\nframe_b = "b"\njoint = "universal"',
        "5: loop[1].joint: expected one of revolute, hinge",
    ),
    "no frame": ('[[loop]]\nname = "x"\nframe_a = "a"\nlength = 1', "1: loop[1]: the key 'frame_b' is missing"),
    "an unknown frame": (
        '[[loop]]\nname = "x"\nframe_a = "a"\nframe_b = "c"\nlength = 1',
        "1: loop[1]: loop 'x': expected the name of a frame, got 'c'",
    ),
    "a rod without length": (
        '[[loop]]\nname = "x"\nframe_a = "a"\nframe_b = "b"\nlength = 0',
        "5: loop[1].length: expected a positive number, got 0",
    ),
    "a key of another kind": (
        '[[loop]]\nname = "x"\njoint_a = "ja"\njoint_b = "jb"\ncoefficients = [1]\nlength = 1',
        "6: loop[1].length: there is no such key",
    ),
    "a joint that is not there": (
        '[[loop]]\nname = "x"\njoint_a = "ja"\njoint_b = "jc"\ncoefficients = [1]',
        "1: loop[1]: loop 'x': expected the name of a joint, got 'jc'",
    ),
    "a pose of two numbers": (
        '[[loop]]\nname = "x"\nframe_a = "a"\nplacement_a = { xyz = [0, 1] }\nframe_b = "b"\nlength = 1',
        "4: loop[1].placement_a.xyz: expected 3 numbers, got 2",
    ),
    "no TOML": ("[[loop", "1: not TOML"),
}  # fmt: skip


@pytest.mark.parametrize("case", ERRORS)
def test_errors_name_file_and_line(tmp_path, case):
    text, message = ERRORS[case]
    with pytest.raises(FileError, match=re.escape(message)) as found:
        read(tmp_path, text)
    assert found.value.file.endswith("loops.toml")
    with pytest.raises(FileError, match=r"missing\.toml: the file cannot be read"):
        lgsim.load_urdf(text=ARMS, loops=tmp_path / "missing.toml")


def test_loops_are_added_to_models():
    model = every_kind()
    more = model.add_loop("ball", "tip", "wheel", joints.Spherical()).add_rod("bar", "body0", "wheel", 0.3)
    more = more.add_coupling("cam", "joint1", "hub", [0.0, 1.0, 2.0])
    assert more.loop_names == (*model.loop_names, "ball", "bar", "cam")
    assert more.topology.loops[-1].kind == Coupling(2, turns=True)
    np.testing.assert_array_equal(more.loops, [*model.loops, 0.3, 0, 1, 2])
    for wrong in (
        lambda: model.add_rod("bar", "tip", "wheel", 0.0),
        lambda: model.add_rod("rod", "tip", "wheel", 1.0),
        lambda: model.add_loop("x", "tip", "tipp", joints.Spherical()),
        lambda: model.add_loop("x", "tip", "body2", joints.Spherical()),
        lambda: model.add_coupling("x", "hub", "hub", [1.0]),
    ):
        with pytest.raises(ModelError, match=r"^loop "):
            wrong()
