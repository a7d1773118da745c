"""Links and joints of a URDF file, each element checked on its own."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float

from lgsim.formats.links import MOMENTS, Link, Machine, Mimic, armature, inertia_matrix
from lgsim.formats.poses import plane_axes, pose, rotation_from_quaternion, rotation_from_rpy
from lgsim.formats.unit_checks import odd_limit
from lgsim.formats.xml import Element, is_bound, is_size
from lgsim.multibody import joints
from lgsim.multibody.joint import Joint
from lgsim.multibody.topology import ROOT

TYPES: dict[str, Joint] = {
    "revolute": joints.Revolute(),
    "continuous": joints.Continuous(),
    "prismatic": joints.Prismatic(),
    "fixed": joints.Fixed(),
    "floating": joints.Free(),
    "planar": joints.Planar(),
    "spherical": joints.Spherical(),
    "ball": joints.Spherical(),
}
"""Joint of each type; the last two types are a common extension."""

QUIET = frozenset({"transmission", "gazebo", "visual", "collision", "material"})
"""Tags of elements that do not affect the motion."""

_MACRO = "xacro"


@dataclass(frozen=True)
class Connection:
    """A joint of the file.

    Attributes:
        ends: The elements <parent> and <child>.
        placement: Pose of the joint's frame, and of the child's at zero, in the parent's, (4, 4).
        axis: Axis (3,), for a planar joint three axes (3, 3); None without an axis.
        numbers: Limits, damping and friction, by the names of ``ModelBuilder.add_body``.
        mimic: The mimicked joint, or None.
    """

    name: str
    element: Element
    joint: Joint
    parent: str
    child: str
    ends: tuple[Element, Element]
    placement: Float[np.ndarray, "4 4"]
    axis: Float[np.ndarray, " 3"] | Float[np.ndarray, "3 3"] | None
    numbers: dict[str, float]
    mimic: Mimic | None


@dataclass
class Robot(Machine):
    """The links and joints of a file.

    Attributes:
        joints: Joints by name, in the order of the file.
    """

    joints: dict[str, Connection] = field(default_factory=dict)


def robot(file: str, root: Element) -> Robot:
    """The links and joints of a file.

    Raises:
        FileError: a missing or invalid value, or two links or joints with one name.
    """
    if root.tag != "robot":
        hints = {"sdf": ": an SDF file, which lgsim.load_sdf reads"}
        hints["gazebo"] = ": an SDF file of the versions 1.0 to 1.2, which lgsim.load_sdf reads"
        hints["mujoco"] = ": an MJCF file, which lgsim.load_mjcf reads"
        raise root.error(f"expected <robot>, the root of a URDF file, got <{root.tag}>{hints.get(root.tag, '')}")
    for node in root.node.iter("{*}*"):
        if _MACRO not in node.tag:
            continue
        prefix, _, local = str(node.tag).rpartition("}")
        if _MACRO in prefix or local.startswith(f"{_MACRO}:"):
            raise Element(file, node, f"<{node.prefix or _MACRO}:{local.rpartition(':')[2]}>").error(
                "expected URDF, got a macro; files with the suffix .xacro are expanded where the package xacro is"
                " (pip install 'lgsim[xacro]'), others by xacro robot > robot.urdf"
            )
    out = Robot(root)
    for element in root.children("link"):
        link = _link(element, out)
        if link.name in out.links:
            raise element.error(f"the name is taken by the link in line {out.links[link.name].element.line}")
        out.links[link.name] = link
    for element in root.children("joint"):
        joint = _joint(element, out)
        if joint.name in out.joints:
            raise element.error(f"the name is taken by the joint in line {out.joints[joint.name].element.line}")
        out.joints[joint.name] = joint
    if ROOT not in out.links and any(joint.parent == ROOT for joint in out.joints.values()):
        # Drake's files name the world without a link
        out.links = {ROOT: Link(ROOT, root, 0.0, np.zeros(3), np.zeros((3, 3))), **out.links}
        out.assumed.append(root.finding(f"has joints from {ROOT!r} without such a link; the world is assumed"))
    for transmission in root.children("transmission"):
        _add_rotor(transmission, out)
    for attribute in ("name", "version"):
        root.text(attribute)
    out.ignored.extend(root.unread(QUIET))
    return out


def _add_rotor(transmission: Element, out: Robot) -> None:
    """Add the rotor of a <transmission> to the armature of its joint."""
    joint = transmission.child("joint")
    name = None if joint is None else joint.text("name")
    for actuator in transmission.children("actuator"):
        own = armature(actuator, "value")
        if own is None:
            continue
        if name not in out.joints or out.joints[name].joint.nv != 1:
            out.ignored.append(actuator.finding("the rotor drives no joint of one degree of freedom"))
        else:
            numbers = out.joints[name].numbers
            numbers["armature"] = numbers.get("armature", 0.0) + own


def _link(element: Element, out: Robot) -> Link:
    """Read a <link>."""
    name, mass, center, inertia = element.name(), 0.0, np.zeros(3), np.zeros((3, 3))
    inertial = element.child("inertial")
    if inertial is not None:
        weight = inertial.required("mass")
        mass = weight.number("value", holds=is_size)
        at = origin(inertial, out)
        center = at[:3, 3]
        moments = inertial.child("inertia")
        if moments is None:
            out.assumed.append(inertial.finding("has no <inertia>; a point mass is assumed"))
        else:
            inertia = inertia_matrix([moments.number(key) for key in MOMENTS], at[:3, :3])
            out.ignored.extend(moments.unread())
        out.ignored.extend([*weight.unread(), *inertial.unread()])
    out.ignored.extend(element.unread(QUIET))
    return Link(name, element, mass, center, inertia)


def _joint(element: Element, out: Robot) -> Connection:
    """Read a <joint>."""
    name, joint = element.name(), TYPES[element.choice("type", TYPES)]
    parent, child = element.required("parent"), element.required("child")
    placement = origin(element, out)
    axis, mimic = _axis(element, joint, out), _mimic(element, joint, out)
    numbers = _limit(element, joint, out) | _dynamics(element, joint, out)
    names = parent.name("link"), child.name("link")
    out.ignored.extend([*parent.unread(), *child.unread(), *element.unread(QUIET)])
    return Connection(name, element, joint, *names, (parent, child), placement, axis, numbers, mimic)


def origin(owner: Element, out: Robot) -> Float[np.ndarray, "4 4"]:
    """The pose of the <origin> of an element; the identity by default."""
    element = owner.child("origin")
    if element is None:
        return np.eye(4)
    position, quaternion = element.numbers("xyz", 3, (0.0, 0.0, 0.0)), element.text("quat_xyzw")
    if quaternion is None:
        rotation = rotation_from_rpy(*element.numbers("rpy", 3, (0.0, 0.0, 0.0)))
    elif element.text("rpy") is not None:
        raise element.error("expected either rpy or quat_xyzw, got both")
    else:
        x = np.array(element.numbers("quat_xyzw", 4, ()))
        if not np.any(x):
            raise element.error(f"quat_xyzw: expected a nonzero quaternion, got {quaternion!r}")
        rotation = rotation_from_quaternion(x)
    out.ignored.extend(element.unread())
    return pose(position, rotation)


def _axis(element: Element, joint: Joint, out: Robot) -> Float[np.ndarray, " 3"] | Float[np.ndarray, "3 3"] | None:
    """The axis (3,), for a planar joint three axes (3, 3) of which the last is the normal; None without one."""
    given = element.child("axis")
    if not isinstance(joint, joints.Revolute | joints.Prismatic | joints.Planar):
        return None
    axis = np.array([1.0, 0.0, 0.0] if given is None else given.numbers("xyz", 3, (1.0, 0.0, 0.0)))
    if given is not None:
        out.ignored.extend(given.unread())
        if not np.any(axis):
            raise given.error(f"xyz: expected a nonzero vector, got {given.text('xyz')!r}")
    return plane_axes(axis) if isinstance(joint, joints.Planar) else axis


def _limit(element: Element, joint: Joint, out: Robot) -> dict[str, float]:
    """The values of a <limit> by the names of ``ModelBuilder.add_body``, in SI units."""
    limit = element.child("limit")
    if limit is None or joint.nv == 0:
        bounded = isinstance(joint, joints.Revolute | joints.Prismatic) and not isinstance(joint, joints.Continuous)
        if bounded:
            out.assumed.append(element.finding("has no limits; no limits are assumed"))
        return {}
    numbers = {f"{key}_limit": limit.number(key, math.inf, is_bound) for key in ("velocity", "effort")}
    for key, value in numbers.items():
        if value < 0:
            out.assumed.append(limit.finding(f"has a negative {key.split('_')[0]}, {value:g}; no limit is assumed"))
            numbers[key] = math.inf
        elif joint.nv == 1 and element.child("mimic") is None and (odd := odd_limit(key.split("_")[0], value)):
            out.assumed.append(limit.finding(odd))
    lower, upper = limit.number("lower", -math.inf, is_bound), limit.number("upper", math.inf, is_bound)
    given = [key for key in ("lower", "upper") if limit.text(key) is not None]
    out.ignored.extend(limit.unread())
    if joint.nv > 1:
        out.ignored.append(element.finding("<limit> of a joint of several degrees of freedom"))
        return {}
    if isinstance(joint, joints.Continuous):
        if given:
            out.ignored.append(limit.finding("lower and upper of a continuous joint"))
        return numbers
    if len(given) == 1:
        # the specification assumes zero for the other one
        lower, upper = (lower, 0.0) if given == ["lower"] else (0.0, upper)
    elif not given:
        out.assumed.append(limit.finding("has neither lower nor upper; no limits are assumed"))
    if lower > upper:
        out.assumed.append(limit.finding(f"has lower > upper, {lower:g} and {upper:g}; no limits are assumed"))
        return numbers
    return numbers | {"lower": lower, "upper": upper}


def _dynamics(element: Element, joint: Joint, out: Robot) -> dict[str, float]:
    """The damping and friction of a <dynamics>, in SI units."""
    dynamics = element.child("dynamics")
    if dynamics is None or joint.nv == 0:
        return {}
    numbers = {key: dynamics.number(key, 0.0, is_size) for key in ("damping", "friction")}
    out.ignored.extend(dynamics.unread())
    if joint.nv > 1 and any(numbers.values()):
        # one value cannot have the units of translation and rotation
        out.ignored.append(element.finding("<dynamics> of a joint of several degrees of freedom"))
    return numbers if joint.nv == 1 else {}


def _mimic(element: Element, joint: Joint, out: Robot) -> Mimic | None:
    """The joint that a <mimic> names; None without the element, or for a fixed joint."""
    mimic = element.child("mimic")
    if mimic is None:
        return None
    found = Mimic(mimic.name("joint"), mimic.number("multiplier", 1.0), mimic.number("offset", 0.0), mimic)
    out.ignored.extend(mimic.unread())
    if joint.nv == 0:
        out.ignored.append(element.finding("<mimic> of a fixed joint"))
        return None
    if joint.nv > 1:
        raise mimic.error(f"only a joint of one degree of freedom can mimic, this one has {joint.nv}")
    return found
