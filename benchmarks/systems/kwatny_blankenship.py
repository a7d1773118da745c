"""The examples of a paper on symbolic modeling: a thin disk in a ball joint or on three turns, an arm of six joints.

H. G. Kwatny, G. L. Blankenship, Symbolic construction of models for multibody dynamics, IEEE Transactions on Robotics
and Automation 11(2), 1995, Sections III and IV. A compound joint of the paper lists its turns from the child to the
parent, one of lgsim from the parent to the child: the coordinates of the disk are (t3, t2, t1) of the paper, those of
the arm (s2, s1, e, t3, t2, t1). Gravity is 1 m/s^2.
"""

from __future__ import annotations

import numpy as np

from lgsim.multibody import Model, ModelBuilder, joints
from lgsim.multibody.joint import Joint, Row
from lgsim.systems.validation import Dtype

DISK = {"mass": 5.0, "radius": 2.0}
"""The thin disk, kg and m."""

BAR = {"mass": 1.0, "length": 3.0}
"""The slender bar of the upper and of the lower arm."""

GRIPPER = {"mass": 0.5, "length": 0.7, "radius": 0.35}
"""The gripper. Its moment of inertia about its axis is ``m R^2/12``, as printed; a cylinder has ``m R^2/2``."""

_TURNS = {"x": Row(True, 0), "y": Row(True, 1), "z": Row(True, 2)}


def thin_disk(dtype: Dtype | None = None) -> Model:
    """The disk in a ball joint at its center, without gravity: a unit quaternion and body rates, valid globally."""
    return _disk(joints.Spherical(), dtype)


def thin_disk_on_turns(dtype: Dtype | None = None) -> Model:
    """The disk on the universal joint of three turns about z, y and x, without gravity: singular where cos t2 = 0."""
    return _disk(joints.Compound(tuple(_TURNS[axis] for axis in "zyx")), dtype)


def _disk(joint: Joint, dtype: Dtype | None) -> Model:
    m, r = DISK["mass"], DISK["radius"]
    inertia = m * r**2 / 4 * np.diag([1.0, 1.0, 2.0])
    builder = ModelBuilder(gravity=(0.0, 0.0, 0.0), dtype=dtype)
    return builder.add_body("disk", "world", joint, mass=m, inertia=inertia).build()


def six_joint_arm(dtype: Dtype | None = None) -> Model:
    """The arm: shoulder of two turns about z and y, elbow about y, wrist about x, z and y; all stand up."""
    return _arm(joints.Compound(tuple(_TURNS[axis] for axis in "xzy")), dtype)


def six_joint_arm_with_ball(dtype: Dtype | None = None) -> Model:
    """The arm with a ball for its wrist: a unit quaternion and body rates there."""
    return _arm(joints.Spherical(), dtype)


def _arm(wrist: Joint, dtype: Dtype | None) -> Model:
    shoulder = joints.Compound(tuple(_TURNS[axis] for axis in "zy"))
    m, length = BAR["mass"], BAR["length"]
    bar = {"mass": m, "center": (0, 0, length / 2), "inertia": m * length**2 / 12 * np.diag([1.0, 1.0, 0.0])}
    m, h, r = (GRIPPER[name] for name in ("mass", "length", "radius"))
    across = m * (h**2 + 3 * r**2) / 12
    inertia = np.diag([across, across, m * r**2 / 12])
    return (
        ModelBuilder(gravity=(0.0, 0.0, -1.0), dtype=dtype)
        .add_body("upper_arm", "world", shoulder, joint_name="shoulder", **bar)
        .add_body("lower_arm", "upper_arm", joints.Revolute(), joint_name="elbow", placement=_above(length),
                  axis=(0, 1, 0), **bar)
        .add_body("gripper", "lower_arm", wrist, joint_name="wrist", placement=_above(length), mass=m,
                  center=(0, 0, h / 2), inertia=inertia)
        .add_frame("end", "gripper", _above(h))
        .build()
    )  # fmt: skip


def _above(height: float) -> np.ndarray:
    pose = np.eye(4)
    pose[2, 3] = height
    return pose
