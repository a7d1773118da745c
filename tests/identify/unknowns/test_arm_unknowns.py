"""The ready set of an arm."""

import numpy as np
import pytest

import lgsim
from lgsim import identify
from tests.identify import arms


def test_an_arm_without_rotors():
    blocks = identify.arm_unknowns(arms.planar())
    names = identify.Parameters(arms.planar(), blocks).names
    assert len(names) == 2 * 10 + 2 + 2 and names[20:] == [
        "friction of shoulder", "friction of elbow", "damping of shoulder", "damping of elbow"
    ]  # fmt: skip
    # bodies that can exist, with the weak prior
    assert isinstance(blocks[0], identify.Inertias) and blocks[0].prior_deviation == 1


def test_rotors_are_unknown_where_the_model_has_them():
    model = arms.planar(armature=np.array([0.0, 0.2]))
    assert identify.Parameters(model, identify.arm_unknowns(model)).names[24:] == ["armature of elbow"]


def test_a_floating_base_has_no_friction():
    text = arms.PLANAR.replace('<link name="base"/>', f'<link name="base">{HEAVY}</link>')
    model, _ = lgsim.formats.read_urdf(text=text, floating_base=True)
    names = identify.Parameters(model, identify.arm_unknowns(model)).names
    assert [name for name in names if "friction" in name] == ["friction of shoulder", "friction of elbow"]
    assert sum(" of base" in name for name in names) == 10


HEAVY = '<inertial><mass value="5"/><inertia ixx=".1" iyy=".1" izz=".1" ixy="0" ixz="0" iyz="0"/></inertial>'


def test_bodies_that_cannot_be_are_named():
    model = arms.planar()
    with pytest.raises(ValueError, match="got upper, which has neither mass nor inertia; start from the nearest"):
        identify.arm_unknowns(model.replace(inertias=model.inertias.at[0].set(0.0)))


def test_locked_at_zero_by_default():
    model = arms.planar()
    locked, wanted = model.lock(["elbow"]), model.lock(["elbow"], np.zeros(2))
    np.testing.assert_array_equal(locked.inertias, wanted.inertias)
    assert locked.joint_names == ("shoulder",)
