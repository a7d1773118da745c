"""Links, joints and frames of an SDF file, each element checked on its own."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float

from lgsim.formats.links import MOMENTS, Link, Machine, Mimic, armature, inertia_matrix, rotor_tags
from lgsim.formats.poses import pose, rotation_from_quaternion, rotation_from_rpy
from lgsim.formats.report import Dropped
from lgsim.formats.xml import Element, is_bound, is_size
from lgsim.multibody import joints
from lgsim.multibody.joint import Joint

_VERSIONS = ("1.6", "1.7", "1.8", "1.9", "1.10", "1.11")

TYPES: dict[str, Joint] = {
    "revolute": joints.Revolute(),
    "continuous": joints.Continuous(),
    "prismatic": joints.Prismatic(),
    "screw": joints.Helical(),
    "universal": joints.Universal(),
    "ball": joints.Spherical(),
    "fixed": joints.Fixed(),
}
"""Joint of each supported type."""

MODEL = "__model__"
"""Name of the model's own frame."""

_UNLIMITED = 1e16
"""Limits of at least this size mean no limit."""

DEFAULT_MOMENTS = (1.0, 0.0, 0.0, 1.0, 0.0, 1.0)
"""Default ``MOMENTS`` of inertia, kg m^2."""

QUIET = frozenset({"visual", "collision", "sensor", "light", "self_collide", "allow_auto_disable", "enable_wind"})
"""Tags of elements that do not affect the motion."""


@dataclass(frozen=True)
class Place:
    """Pose of an element.

    Attributes:
        pose: Pose, (4, 4), m.
        relative_to: Name of the reference frame of the pose.
        attached_to: Link or frame that the element is fixed to; its own name for a link.
    """

    element: Element
    pose: Float[np.ndarray, "4 4"]
    relative_to: str
    attached_to: str


@dataclass(frozen=True)
class Axis:
    """Axis of a joint.

    Attributes:
        direction: Direction, (3,).
        frame: Name of the frame of the direction.
        numbers: Limits, damping, friction and spring, by the names of ``ModelBuilder.add_body``.
        mimic: Mimicked coordinate, or None.
    """

    element: Element
    direction: Float[np.ndarray, " 3"]
    frame: str
    numbers: dict[str, float]
    mimic: Mimic | None


@dataclass(frozen=True)
class SdfJoint:
    """A joint of the file.

    Attributes:
        parent: Name of the parent link or frame.
        child: Name of the child link or frame.
        ends: The elements <parent> and <child>.
        pitch: Pitch of a screw, m/rad.
    """

    name: str
    element: Element
    joint: Joint
    parent: str
    child: str
    ends: tuple[Element, Element]
    axes: tuple[Axis, ...]
    pitch: float


@dataclass
class SdfModel(Machine):
    """The <model> of a file.

    Attributes:
        joints: Joints by name, in the order of the file.
        frames: Names of the frames, in the order of the file.
        places: Poses of links, joints and frames by name, and of the model in the world.
        canonical: Name of the link with the model's own frame.
    """

    joints: dict[str, SdfJoint] = field(default_factory=dict)
    frames: list[str] = field(default_factory=list)
    places: dict[str, Place] = field(default_factory=dict)
    canonical: str = ""


def sdf_model(file: str, root: Element) -> SdfModel:
    """The model of a file.

    Raises:
        FileError: not an SDF file of a supported version with one model, a missing or invalid value, or two elements
            with one name.
    """
    if root.tag != "sdf":
        hint = {"robot": ": a URDF file, which lgsim.load_urdf reads", "mujoco": ": an MJCF file, see lgsim.load_mjcf"}
        raise root.error(f"expected <sdf>, the root of an SDF file, got <{root.tag}>{hint.get(root.tag, '')}")
    version = root.choice("version", _VERSIONS)
    worlds, models = root.children("world"), root.children("model")
    if worlds:
        raise worlds[0].error("expected a <model>, got a world; put the model into a file of its own")
    if len(models) != 1:
        line = f", the second one in line {models[1].line}" if models else ""
        raise root.error(f"expected one <model>, got {len(models)}{line}")
    element = models[0]
    for tag in ("model", "include"):
        for nested in element.children(tag):
            raise nested.error("expected only links and joints, got a nested model, which is not supported")
    out = SdfModel(element)
    for link in element.children("link"):
        _add_link(link, out)
    if not out.links:
        raise element.error("expected at least one <link>, got none")
    out.canonical = element.text("canonical_link") or next(iter(out.links))
    if out.canonical not in out.links:
        raise element.error(f"canonical_link: there is no link {out.canonical!r}")
    for frame in element.children("frame"):
        _add_frame(frame, out)
    for joint in element.children("joint"):
        _add_joint(joint, version, out)
    static = element.child("static")
    if static is not None and static.flag():
        raise static.error("expected a model that is not static, got a static one")
    at, relative_to = _pose(element, "", out)
    if relative_to:
        raise element.error(f"<pose>: relative_to: there is no {relative_to!r} outside of the model")
    out.places[MODEL] = Place(element, at, "", out.canonical)
    for attribute in ("name", "placement_frame"):
        element.text(attribute)
    for plugin in element.children("plugin"):
        out.ignored.append(_dropped(plugin, "is not run"))
    for gripper in element.children("gripper"):
        out.ignored.append(_dropped(gripper, "is not represented"))
    out.ignored.extend([*root.unread(), *element.unread(QUIET)])
    return out


def _dropped(element: Element, text: str) -> Dropped:
    return Dropped(element.line, element.subject, text)


def _take_name(element: Element, out: SdfModel) -> str:
    """The name of an element, which must be unique."""
    name = element.name()
    if name in out.places:
        raise element.error(f"the name is taken by the element in line {out.places[name].element.line}")
    if name in ("world", MODEL):
        raise element.error("expected another name: this one is reserved")
    return name


def _add_link(element: Element, out: SdfModel) -> None:
    name, center, inertia = _take_name(element, out), np.zeros(3), np.eye(3)
    mass, inertial = 1.0, element.child("inertial")
    if inertial is None:
        out.assumed.append(element.finding("has no <inertial>; a mass of 1 kg and inertias of 1 kg m^2 are assumed"))
    else:
        if (inertial.text("auto") or "false").lower() in ("true", "1"):
            raise inertial.error("expected a mass and inertias, got inertias from geometry (auto), not supported")
        weight, moments = inertial.child("mass"), inertial.child("inertia")
        if weight is not None:
            mass = weight.value(is_size)
        else:
            out.assumed.append(inertial.finding("has no <mass>; 1 kg is assumed"))
        at, relative_to = _pose(inertial, name, out)
        if relative_to != name:
            raise inertial.error("<pose>: expected the pose in the link's own frame, without relative_to")
        center, turn, numbers = at[:3, 3], at[:3, :3], DEFAULT_MOMENTS
        if moments is None:
            out.assumed.append(inertial.finding("has no <inertia>; inertias of 1 kg m^2 are assumed"))
        else:
            given = zip([moments.child(key) for key in MOMENTS], DEFAULT_MOMENTS, strict=True)
            numbers = [usual if x is None else x.value() for x, usual in given]
            out.ignored.extend(moments.unread())
        inertia = inertia_matrix(numbers, turn)
        out.ignored.extend(inertial.unread())
    out.places[name] = Place(element, *_pose(element, MODEL, out), name)
    out.links[name] = Link(name, element, mass, center, inertia)
    weightless, kinematic = element.child("gravity"), element.child("kinematic")
    if weightless is not None and not weightless.flag():
        out.ignored.append(_dropped(element, "has no gravity in the file"))
    if kinematic is not None and kinematic.flag():
        out.ignored.append(_dropped(element, "is kinematic in the file"))
    decay = element.child("velocity_decay")
    if decay is not None and any(x.value() for x in (decay.child("linear"), decay.child("angular")) if x is not None):
        out.ignored.append(_dropped(element, "has a velocity_decay, which is not represented"))
    element.child("must_be_base_link")
    out.ignored.extend(element.unread(QUIET))


def _add_frame(element: Element, out: SdfModel) -> None:
    name = _take_name(element, out)
    attached_to = element.text("attached_to") or MODEL
    out.places[name] = Place(element, *_pose(element, attached_to, out), attached_to)
    out.frames.append(name)
    out.ignored.extend(element.unread())


def _add_joint(element: Element, version: str, out: SdfModel) -> None:
    name, kind = _take_name(element, out), element.choice("type", TYPES, ", which lgsim does not represent")
    ends = element.required("parent"), element.required("child")
    parent, child = (end.words for end in ends)
    for end in ends:
        if not end.words:
            raise end.error("expected the name of a link, got none")
    tags = {"universal": ("axis", "axis2"), "fixed": ()}.get(kind, ("axis",))
    axes = tuple(_axis(element, tag, name, version, out) for tag in tags)
    rotor = armature(element, None)
    if rotor is not None and len(axes) == 1 and kind != "ball":
        axes[0].numbers["armature"] = rotor
    elif rotor is not None:
        out.ignored.append(element.finding("the rotor drives no joint of one degree of freedom"))
    out.places[name] = Place(element, *_pose(element, child, out), child)
    out.joints[name] = SdfJoint(name, element, TYPES[kind], parent, child, ends, axes, _pitch(element, kind))
    if kind == "ball":
        acting = [key for axis in axes for key in ("damping", "friction", "stiffness") if axis.numbers.get(key)]
        if acting:
            out.ignored.append(_dropped(element, f"is a ball with {', '.join(acting)}, which is not represented"))
    physics = element.child("physics")
    if physics is not None:
        out.ignored.append(element.finding("<physics>"))
    out.ignored.extend(element.unread(QUIET | rotor_tags(element)))


def _axis(element: Element, tag: str, joint: str, version: str, out: SdfModel) -> Axis:
    """The axis of a joint; by default z of the joint's frame."""
    axis = element.child(tag)
    if axis is None:
        if element.text("type") != "ball":
            out.assumed.append(element.finding(f"has no <{tag}>; z of its own frame is assumed"))
        return Axis(element, np.array([0.0, 0.0, 1.0]), joint, {}, None)
    xyz, frame, direction = axis.child("xyz"), joint, np.array([0.0, 0.0, 1.0])
    if xyz is not None:
        direction, frame = np.array(xyz.content(3)), xyz.text("expressed_in") or joint
        if not np.any(direction):
            raise xyz.error(f"expected a nonzero vector, got {xyz.words!r}")
        out.ignored.extend(xyz.unread())
    old = axis.child("use_parent_model_frame")
    if old is not None:
        if version != "1.6":
            raise old.error(f"version {version} has no such element; expected <xyz expressed_in='{MODEL}'>")
        frame = MODEL if old.flag() else frame
    numbers = _limits(axis, out) | _dynamics(axis, out)
    mimic = _mimic(axis, out)
    out.ignored.extend(axis.unread())
    return Axis(axis, direction, frame, numbers, mimic)


def _limits(axis: Element, out: SdfModel) -> dict[str, float]:
    """Limits, by the names of ``ModelBuilder.add_body``."""
    limit = axis.child("limit")
    if limit is None:
        return {}
    given = {tag: limit.child(tag) for tag in ("lower", "upper", "effort", "velocity")}
    values = {tag: x.value(is_bound) for tag, x in given.items() if x is not None and x.words}
    out.ignored.extend(limit.unread())
    lower, upper = values.get("lower", -math.inf), values.get("upper", math.inf)
    lower, upper = (-math.inf if lower <= -_UNLIMITED else lower), (math.inf if upper >= _UNLIMITED else upper)
    if lower > upper:
        raise limit.error(f"expected lower <= upper, got {lower:g} and {upper:g}")
    # negative values mean no limit
    sizes = {f"{tag}_limit": values[tag] for tag in ("effort", "velocity") if 0 <= values.get(tag, -1) < _UNLIMITED}
    return {"lower": lower, "upper": upper} | sizes


def _dynamics(axis: Element, out: SdfModel) -> dict[str, float]:
    """Damping, friction and spring, by the names of ``ModelBuilder.add_body``."""
    dynamics = axis.child("dynamics")
    if dynamics is None:
        return {}
    numbers = {}
    for tag, name, holds in (
        ("damping", "damping", is_size),
        ("friction", "friction", is_size),
        ("spring_reference", "rest", math.isfinite),
        ("spring_stiffness", "stiffness", math.isfinite),
    ):
        found = dynamics.child(tag)
        if found is not None:
            numbers[name] = found.value(holds)
    out.ignored.extend(dynamics.unread())
    return numbers


def _mimic(axis: Element, out: SdfModel) -> Mimic | None:
    """``q = multiplier (q_joint - reference) + offset``."""
    mimic = axis.child("mimic")
    if mimic is None:
        return None
    if mimic.text("axis", "axis") != "axis":
        raise mimic.error("axis: expected 'axis', the first one of a joint of one degree of freedom")
    found = {tag: mimic.child(tag) for tag in ("multiplier", "offset", "reference")}
    values = {tag: 0.0 if x is None else x.value() for tag, x in found.items()}
    k = 1.0 if found["multiplier"] is None else values["multiplier"]
    joint = mimic.name("joint")
    out.ignored.extend(mimic.unread())
    return Mimic(joint, k, values["offset"] - k * values["reference"], mimic)


def _pitch(element: Element, kind: str) -> float:
    """Pitch of a screw, m/rad; zero for other joints."""
    new, old = element.child("screw_thread_pitch"), element.child("thread_pitch")
    if kind != "screw":
        return 0.0
    if new is not None:  # m per revolution, positive for a right-handed thread
        return new.value() / (2 * math.pi)
    if old is None:
        return -1.0
    turns = old.value()  # rad/m, positive for a left-handed thread
    if turns == 0:
        raise old.error("expected a nonzero number, got 0")
    return -1 / turns


def collision_pose(owner: Element, link: str, out: SdfModel) -> Float[np.ndarray, "4 4"]:
    """The pose of a <collision> in its link's frame.

    Raises:
        FileError: the pose is relative to another frame.
    """
    at, frame = _pose(owner, link, out)
    if frame != link:
        raise owner.error(f"<pose>: expected a pose in the frame of the link {link!r}, got one in {frame!r}")
    return at


def _pose(owner: Element, usual: str, out: SdfModel) -> tuple[Float[np.ndarray, "4 4"], str]:
    """The pose of an element and the name of its reference frame."""
    element = owner.child("pose")
    if element is None:
        return np.eye(4), usual
    frame = element.text("relative_to") or usual
    degrees = (element.text("degrees") or "false").lower() in ("true", "1")
    form = element.text("rotation_format", "euler_rpy")
    if not element.text("frame"):  # of version 1.6, where it had no effect
        out.ignored.extend(element.unread())
    else:
        raise element.error("frame: expected relative_to, of version 1.7 and later; the meaning of frame is undefined")
    if not element.words:
        return np.eye(4), frame
    if form == "euler_rpy":
        numbers = element.content(6)
        angles = np.deg2rad(numbers[3:]) if degrees else numbers[3:]
        rotation = rotation_from_rpy(*(float(angle) for angle in angles))
    elif form == "quat_xyzw":
        numbers = element.content(7)
        if not np.any(numbers[3:]):
            raise element.error(f"expected a nonzero quaternion, got {element.words!r}")
        rotation = rotation_from_quaternion(np.array(numbers[3:]))
    else:
        raise element.error(f"rotation_format: expected 'euler_rpy' or 'quat_xyzw', got {form!r}")
    return pose(numbers[:3], rotation), frame
