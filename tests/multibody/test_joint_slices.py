"""The parts of a joint that a file has as several are found by their own names."""

import numpy as np
import pytest

import lgsim
from lgsim.multibody.joint import Row
from lgsim.scenarios.states import configuration, velocities


def model():
    two = lgsim.joints.Compound((Row(True, 2), Row(True, 1)))
    body = {"mass": 1.0, "inertia": np.eye(3)}
    builder = lgsim.ModelBuilder().add_body("torso", "world", lgsim.joints.Free(), joint_name="root", **body)
    builder.add_body("abdomen", "torso", two, joint_name="abdomen_z+abdomen_y", **body)
    return builder.add_body("leg", "abdomen", lgsim.joints.Revolute(), joint_name="hip+knee", **body).build()


def test_parts_are_found_and_not_counted():
    slices = model().q_slices
    assert list(slices) == ["root", "abdomen_z+abdomen_y", "hip+knee"] and len(slices) == 3
    assert slices["abdomen_y"] == slice(8, 9) and slices["abdomen_z+abdomen_y"] == slice(7, 9)
    assert "abdomen_z" in slices and "hip" not in slices  # one number: the plus is part of its name
    with pytest.raises(KeyError):
        slices["hip"]


def test_words_name_parts():
    q, v = configuration("abdomen_y=0.3", model(), 0), velocities("abdomen_z=2,hip+knee=-1", model())
    np.testing.assert_array_equal(q[7:], [0, 0.3, 0])
    np.testing.assert_array_equal(v[6:], [2, 0, -1])
