"""Limits and lengths of files that look like other units, and limits that are not given."""

import warnings

import numpy as np
import pytest

import lgsim
from lgsim.formats import load_mjcf, load_urdf, read_mjcf, read_urdf
from lgsim.formats.report import FileWarning
from lgsim.formats.unit_checks import odd_length, odd_limit, odd_range
from tests.formats.test_urdf_errors import ROBOT


def texts(report):
    return [f"{finding}" for finding in report.units]


def changed(*pairs):
    text = ROBOT
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    return text


@pytest.mark.quick
@pytest.mark.parametrize("pairs, expected", [
    ([('lower="-1" upper="1"', 'lower="-180" upper="180"')],
     "11: joint 'shoulder' has limits of -180 to 180 rad: looks like degrees"),
    ([('lower="-1" upper="1"', 'lower="0" upper="13"')],
     "11: joint 'shoulder' has limits of 0 to 13 rad: looks like degrees"),
    ([('<origin xyz="0 0 1"', '<origin xyz="0 0 -400"')],
     "11: joint 'shoulder' has an offset from its parent of 400 m: millimeters?"),
    ([('<origin xyz="0 0 0.1"', '<origin xyz="30 40 0"')],
     "4: link 'upper' has its center of mass at a distance of 50 m: millimeters?"),
    ([('name="shoulder" type="revolute"', 'name="shoulder" type="prismatic"'), ('upper="1"', 'upper="850"'),
      ('<mimic joint="shoulder" multiplier="2" offset="0.1"/>', "")],
     "11: joint 'shoulder' has limits of -1 to 850 m: millimeters?"),
])  # fmt: skip
def test_numbers_of_a_urdf_file(pairs, expected):
    _, report = read_urdf(text=changed(*pairs))
    assert texts(report) == [expected]
    assert "numbers that look like other units:\n    line " + expected in str(report)
    with pytest.warns(FileWarning, match="1 number may be in other units; the first one"):
        load_urdf(text=changed(*pairs))
    load_urdf(text=changed(*pairs), physical="report")


@pytest.mark.parametrize("pairs", [
    [],
    [('lower="-1" upper="1"', 'lower="-6.2832" upper="6.2832"')],  # two turns, as arms have
    [('lower="-1" upper="1"', 'lower="-12.56" upper="12.56"')],
    [('lower="-1" upper="1"', 'lower="-1e9" upper="1e9"')],  # no limit, as exporters write it
    [('lower="-1" upper="1"', 'lower="-1000" upper="1000"')],
    [('<origin xyz="0 0 1"', '<origin xyz="0 0 19"')],
])  # fmt: skip
def test_numbers_that_are_what_they_are(pairs):
    assert texts(read_urdf(text=changed(*pairs))[1]) == []


def test_where_a_machine_is_mounted_may_be_far():
    """A fixed joint on the root is a place in the world; the same offset of a joint that moves is a length."""
    mount = '<link name="map"/><joint name="mount" type="fixed"><parent link="map"/><child link="base"/>' \
            '<origin xyz="500 200 0"/></joint>'  # fmt: skip
    text = changed(('<link name="base"/>', '<link name="base"/>' + mount))
    assert texts(read_urdf(text=text)[1]) == []
    assert len(texts(read_urdf(text=text.replace('type="fixed"', 'type="continuous"'))[1])) == 1


def test_limits_that_are_not_given():
    """Zero, of joints that move by themselves; a follower's limits count for nothing anyway."""
    none = [('velocity="2" effort="3"', 'velocity="0" effort="0"')]
    _, report = read_urdf(text=changed(*none))
    assert [str(finding) for finding in report.assumed] == [
        "16: joint 'shoulder': <limit> has a velocity limit of 0: not given? It counts as none",
        "16: joint 'shoulder': <limit> has an effort limit of 0: not given? It counts as none, in optimize as a joint"
        " without an actuator",
    ]
    follower = changed(('<mimic joint="shoulder"', '<limit velocity="0" effort="0"/>\n    <mimic joint="shoulder"'))
    assert read_urdf(text=follower)[1].assumed == ()
    # the numbers stay in the model, and no summary counts them
    model = load_urdf(text=changed(*none))
    assert model.velocity_limit[0] == 0
    x = np.ones((1, model.nv))
    assert lgsim.simulation.limits.limit_uses(model, v=x, tau=x) == ()


MJCF = """<mujoco><compiler angle="radian"/><default><geom contype="0" conaffinity="0"/></default><worldbody>
<body name="far" pos="900 0 0"><geom size=".1"/>
  <body name="arm" pos="0 0 1">
    <joint name="hinge" axis="0 1 0" range="-180 90" limited="true"/>
    <geom size=".1" pos="0 0 .2"/>
    <body name="hand" pos="0 0 400">
      <joint name="slide" type="slide" axis="1 0 0" range="0 250" limited="true"/>
      <geom size=".1" pos="0 0 .1"/>
    </body>
  </body>
</body>
<body name="stone" pos="100 0 0"><freejoint/><geom size=".1"/></body>
</worldbody></mujoco>"""


def test_numbers_of_an_mjcf_file():
    """The world's own bodies and what moves freely may stand anywhere."""
    pytest.importorskip("mujoco")
    _, report = read_mjcf(text=MJCF)
    assert texts(report) == [
        "6: body 'hand' has an offset from its parent of 400 m: millimeters?",
        "4: joint 'hinge' has limits of -180 to 90 rad: looks like degrees",
        "7: joint 'slide' has limits of 0 to 250 m: millimeters?",
    ]
    with pytest.warns(FileWarning, match="3 numbers may be in other units; the first one: 6: body 'hand'"):
        load_mjcf(text=MJCF)
    degrees = MJCF.replace('angle="radian"', 'angle="degree"').replace("400", "0.4").replace("250", "2")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load_mjcf(text=degrees)


def test_words_for_nothing():
    assert (odd_range(True, -np.inf, np.inf), odd_range(False, -np.inf, 5.0)) == ("", "")
    assert odd_length("is", np.zeros(3)) == "" and odd_limit("effort", 1.0) == "" and odd_limit("effort", np.inf) == ""
