"""A model of lgsim as the files that other libraries read: URDF, SDF and MJCF of the same bodies, joint by joint.

Only what moves is written: no shapes, contacts, limits, damping or rotor inertias. A robot with a fixed base stands on
a link ``fixed_base`` of unit mass, which some readers require and which has no effect. SDF is for readers whose URDF
goes through programs that pip does not install.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import jax.numpy as jnp
import numpy as np

from lgsim.lie.conversions import quaternion_from_matrix
from lgsim.multibody.inertia import mass_center_inertia

BASE = "fixed_base"
GRAVITY = (0.0, 0.0, -9.81)
MOMENTS = (("ixx", 0, 0), ("iyy", 1, 1), ("izz", 2, 2), ("ixy", 0, 1), ("ixz", 0, 2), ("iyz", 1, 2))


@dataclass(frozen=True)
class Body:
    """One body and its parent joint; the free joint has no `axis`."""

    name: str
    joint: str
    parent: int
    turns: bool
    axis: np.ndarray | None
    pose: np.ndarray
    mass: float
    center: np.ndarray
    inertia: np.ndarray


def bodies(model):
    """The bodies of a model of revolute and prismatic joints on a free root or a fixed one."""
    if not np.array_equal(np.asarray(model.gravity, float), GRAVITY):
        raise ValueError(f"expected gravity {GRAVITY}, which the peers have built in, got {model.gravity}")
    tree, found = model.topology, []
    for i, joint in enumerate(tree.joints):
        free = joint.nv == 6
        pose = np.asarray(model.placements[i], float)
        if free and (i or not np.array_equal(pose, np.eye(4))):
            raise ValueError(f"joint {tree.joint_names[i]}: expected a free joint only at the root, unplaced")
        if tree.mimics[i] is not None or not (free or (joint.nv == 1 and joint.nq == 1)):
            raise ValueError(f"joint {tree.joint_names[i]}: expected free, revolute or prismatic, got {joint}")
        axis = None if free else np.asarray(model.axes[tree.row_starts[i]], float)
        mass, center, inertia = (np.asarray(x, float) for x in mass_center_inertia(model.inertias[i]))
        names = f"link{i}", f"joint{i}"  # readers refuse a link and a joint of one name
        turns = joint.rows[0].turns
        found.append(Body(*names, tree.parents[i], turns, axis, pose, float(mass), center, inertia))
    return found


def write(folder, name, model):
    """Write `folder` with the three files and robot.json, which maps the peers' coordinates to lgsim's by name."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    machine = bodies(model)
    floats = machine[0].axis is None
    for suffix, text in {"urdf": urdf(machine), "sdf": sdf(machine), "xml": mjcf(machine)}.items():
        (folder / f"robot.{suffix}").write_text(text, encoding="utf-8")
    joints = [body.joint for body in machine if body.axis is not None]
    about = {"name": name, "floats": floats, "joints": joints}
    (folder / "robot.json").write_text(json.dumps(about), encoding="utf-8")
    return folder


def urdf(machine):
    """URDF; links and joints in lgsim's order."""
    robot = ElementTree.Element("robot", name="robot")
    if machine[0].axis is not None:
        _urdf_link(robot, BASE, 1.0, np.zeros(3), np.eye(3))
    for body in machine:
        _urdf_link(robot, body.name, body.mass, body.center, body.inertia)
    for body in machine:
        if body.axis is None:
            continue
        joint = _add(robot, "joint", name=body.joint, type="continuous" if body.turns else "prismatic")
        _add(joint, "origin", xyz=_text(body.pose[:3, 3]), rpy=_text(_roll_pitch_yaw(body.pose)))
        _add(joint, "parent", link=_parent(machine, body))
        _add(joint, "child", link=body.name)
        _add(joint, "axis", xyz=_text(body.axis))
        _add(joint, "limit", lower="-1e6", upper="1e6", effort="1e6", velocity="1e6")
    return _written(robot)


def sdf(machine):
    """SDF; every pose relative to the parent, as URDF has them."""
    root = ElementTree.Element("sdf", version="1.10")
    robot = _add(root, "model", name="robot")
    if machine[0].axis is not None:
        _sdf_link(robot, BASE, None, 1.0, np.zeros(3), np.eye(3))
        fixed = _add(robot, "joint", name=f"{BASE}_joint", type="fixed")
        _add(fixed, "parent", "world")
        _add(fixed, "child", BASE)
    for body in machine:
        _sdf_link(robot, body.name, body.axis is not None and body.joint, body.mass, body.center, body.inertia)
    for body in machine:
        if body.axis is None:
            continue
        joint = _add(robot, "joint", name=body.joint, type="continuous" if body.turns else "prismatic")
        place = _text([*body.pose[:3, 3], *_roll_pitch_yaw(body.pose)])
        _add(joint, "pose", place, relative_to=_parent(machine, body))
        _add(joint, "parent", _parent(machine, body))
        _add(joint, "child", body.name)
        axis = _add(joint, "axis")
        _add(axis, "xyz", _text(body.axis))
        limit = _add(axis, "limit")
        _add(limit, "lower", "-1e6")
        _add(limit, "upper", "1e6")
        dynamics = _add(axis, "dynamics")  # without all four, rod drops the joints
        for zero in ("damping", "friction", "spring_reference", "spring_stiffness"):
            _add(dynamics, zero, "0")
    return _written(root)


def mjcf(machine):
    """MJCF for smooth dynamics: constraints, contacts and joint limits are switched off."""
    root = ElementTree.Element("mujoco", model="robot")
    _add(root, "compiler", angle="radian", autolimits="false")
    option = _add(root, "option", gravity=_text(GRAVITY), integrator="Euler")
    _add(option, "flag", contact="disable", constraint="disable")
    parents = {-1: _add(root, "worldbody")}
    for i, body in enumerate(machine):
        turn = np.asarray(quaternion_from_matrix(jnp.asarray(body.pose[:3, :3])))
        element = _add(parents[body.parent], "body", name=body.name, pos=_text(body.pose[:3, 3]), quat=_text(turn))
        if body.axis is None:
            _add(element, "joint", name=body.joint, type="free")
        else:
            kind = "hinge" if body.turns else "slide"
            _add(element, "joint", name=body.joint, type=kind, axis=_text(body.axis), limited="false")
        moments = _text([body.inertia[row, column] for _, row, column in MOMENTS])
        _add(element, "inertial", pos=_text(body.center), mass=_text([body.mass]), fullinertia=moments)
        parents[i] = element
    return _written(root)


def _urdf_link(robot, name, mass, center, inertia):
    inertial = _add(_add(robot, "link", name=name), "inertial")
    _add(inertial, "origin", xyz=_text(center), rpy="0 0 0")
    _add(inertial, "mass", value=_text([mass]))
    _add(inertial, "inertia", **{key: _text([inertia[row, column]]) for key, row, column in MOMENTS})


def _sdf_link(robot, name, joint, mass, center, inertia):
    link = _add(robot, "link", name=name)
    if joint:
        _add(link, "pose", "0 0 0 0 0 0", relative_to=joint)
    inertial = _add(link, "inertial")
    _add(inertial, "pose", _text([*center, 0.0, 0.0, 0.0]))
    _add(inertial, "mass", _text([mass]))
    values = _add(inertial, "inertia")
    for key, row, column in MOMENTS:
        _add(values, key, _text([inertia[row, column]]))


def _parent(machine, body):
    return BASE if body.parent < 0 else machine[body.parent].name


def _roll_pitch_yaw(pose):
    """Roll, pitch and yaw about the fixed x, y and z axes."""
    R = pose[:3, :3]
    level = np.hypot(R[0, 0], R[1, 0])
    pitch = np.arctan2(-R[2, 0], level)
    if level < 1e-9:  # x points up or down: yaw and roll have the same axis
        return np.array([np.arctan2(-R[1, 2], R[1, 1]), pitch, 0.0])
    return np.array([np.arctan2(R[2, 1], R[2, 2]), pitch, np.arctan2(R[1, 0], R[0, 0])])


def _add(parent, tag, text=None, **attributes):
    element = ElementTree.SubElement(parent, tag, attributes)
    element.text = text
    return element


def _text(numbers):
    """Exact decimal numbers."""
    return " ".join(repr(float(number)) for number in numbers)


def _written(root):
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode") + "\n"
