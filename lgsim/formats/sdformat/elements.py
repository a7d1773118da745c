"""Links, joints and frames of an SDF file, each element checked on its own."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float

from lgsim.formats.links import MOMENTS, Link, Machine, Mimic, armature, inertia_matrix, rotor_tags
from lgsim.formats.poses import pose, rotation_from_quaternion, rotation_from_rpy
from lgsim.formats.report import Dropped
from lgsim.formats.solids.element_solids import element_solids
from lgsim.formats.solids.solid_inertia import solid_parameters
from lgsim.formats.xml import Element, FileError, is_bound, is_size
from lgsim.multibody import joints
from lgsim.multibody.inertia import central_inertia
from lgsim.multibody.joint import Joint
from lgsim.support.unused_names import unused_name

_OLD = ("1.3", "1.4")
"""Versions whose axes are given in the frame of the model."""
_EITHER = ("1.5", "1.6")
"""Versions whose axes may be given in the frame of the model."""

TYPES: dict[str, Joint] = {
    "revolute": joints.Revolute(),
    "continuous": joints.Continuous(),
    "prismatic": joints.Prismatic(),
    "screw": joints.Helical(),
    "universal": joints.Universal(),
    "revolute2": joints.Universal(),
    "ball": joints.Spherical(),
    "fixed": joints.Fixed(),
    "gearbox": joints.Universal(),
}
"""Joint of each supported type; a gearbox has two axes and couples two other joints."""

MODEL = "__model__"
"""Name of the model's own frame."""

_UNLIMITED = 1e16
"""Limits of at least this size mean no limit."""

DENSITY = 1000.0
"""Default density of collision geometry, kg/m^3."""
DEFAULT_MOMENTS = (1.0, 0.0, 0.0, 1.0, 0.0, 1.0)
"""Default ``MOMENTS`` of inertia, kg m^2."""

Inertial = tuple[float, Float[np.ndarray, " 3"], Float[np.ndarray, "3 3"]]
"""Mass, kg; center of mass, m; inertia about it, kg m^2, in the link's axes."""

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
class Gearbox:
    """A gearbox: ``angle of the child = -ratio * angle of the parent``, both relative to a reference.

    Attributes:
        element: The element <gearbox_reference_body>.
        reference: Name of the link or frame of reference.
    """

    element: Element
    reference: str
    ratio: float


@dataclass(frozen=True)
class SdfJoint:
    """A joint of the file.

    Attributes:
        parent: Name of the parent link or frame.
        child: Name of the child link or frame.
        ends: The elements <parent> and <child>.
        pitch: Pitch of a screw, m/rad.
        gearbox: The gearbox, or None for a joint that moves its child.
    """

    name: str
    element: Element
    joint: Joint
    parent: str
    child: str
    ends: tuple[Element, Element]
    axes: tuple[Axis, ...]
    pitch: float
    gearbox: Gearbox | None = None


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


def dropped(element: Element, text: str) -> Dropped:
    """A finding about a feature that affects the motion and is not represented."""
    return Dropped(element.line, element.subject, text)


def _take_name(element: Element, out: SdfModel) -> str:
    """The name of an element, which must be unique."""
    name = element.name()
    if name in out.places:
        raise element.error(f"the name is taken by the element in line {out.places[name].element.line}")
    if name in ("world", MODEL):
        raise element.error("expected another name: this one is reserved")
    return name


def _joint_name(element: Element, version: str, out: SdfModel) -> str:
    """The name of a joint; up to version 1.6 it may be that of a link, and then ends with "_joint"."""
    name = element.name()
    if version not in _OLD + _EITHER or not (name in out.links or name in ("world", MODEL)):
        return _take_name(element, out)
    name = unused_name(f"{name}_joint", {*out.places, *out.links})
    out.assumed.append(element.finding(f"has the name of a link or the world; the name is {name!r}"))
    return name


def add_link(element: Element, out: SdfModel) -> None:
    """Read a <link>."""
    name, inertial = _take_name(element, out), element.child("inertial")
    if inertial is None:
        out.assumed.append(element.finding("has no <inertial>; a mass of 1 kg and inertias of 1 kg m^2 are assumed"))
        mass, center, inertia = 1.0, np.zeros(3), np.eye(3)
    elif (inertial.text("auto") or "false").lower() in ("true", "1"):
        mass, center, inertia = _solid_inertial(element, inertial, name, out)
    else:
        mass, center, inertia = _inertial(inertial, name, out)
    out.places[name] = Place(element, *pose_in(element, MODEL, out), name)
    out.links[name] = Link(name, element, mass, center, inertia)
    weightless, kinematic = element.child("gravity"), element.child("kinematic")
    if weightless is not None and not weightless.flag():
        out.ignored.append(dropped(element, "has no gravity in the file"))
    if kinematic is not None and kinematic.flag():
        out.ignored.append(dropped(element, "is kinematic in the file"))
    decay = element.child("velocity_decay")
    if decay is not None and any(x.value() for x in (decay.child("linear"), decay.child("angular")) if x is not None):
        out.ignored.append(dropped(element, "has a velocity_decay, which is not represented"))
    element.child("must_be_base_link")
    out.ignored.extend(element.unread(QUIET))


def _inertial(inertial: Element, name: str, out: SdfModel) -> Inertial:
    """The inertia of a link as in the file."""
    weight, moments = inertial.child("mass"), inertial.child("inertia")
    if weight is None:
        out.assumed.append(inertial.finding("has no <mass>; 1 kg is assumed"))
    mass = 1.0 if weight is None else weight.value(is_size)
    at, relative_to = pose_in(inertial, name, out)
    if relative_to != name:
        raise inertial.error("<pose>: expected the pose in the link's own frame, without relative_to")
    numbers = DEFAULT_MOMENTS
    if moments is None:
        out.assumed.append(inertial.finding("has no <inertia>; inertias of 1 kg m^2 are assumed"))
    else:
        given = zip([moments.child(key) for key in MOMENTS], DEFAULT_MOMENTS, strict=True)
        numbers = [usual if x is None else x.value() for x, usual in given]
        out.ignored.extend(moments.unread())
    out.ignored.extend(inertial.unread())
    return mass, at[:3, 3], inertia_matrix(numbers, at[:3, :3])


def _solid_inertial(element: Element, inertial: Element, name: str, out: SdfModel) -> Inertial:
    """The inertia of a link's collision geometry of constant density, or of a given mass."""
    usual, weight = inertial.child("density"), inertial.child("mass")
    density = DENSITY if usual is None else usual.value(is_size)
    total, collisions = np.zeros(10), element.children("collision")
    solids = element_solids(name, element, lambda owner: collision_pose(owner, name, out))
    for collision, solid in zip(collisions, solids, strict=True):
        own = collision.child("density")
        if solid.geometry is None:
            raise solid.error(f"expected a shape whose inertia is known, got {solid.kind}")
        try:
            total += solid_parameters(solid.geometry(), density if own is None else own.value(is_size), solid.pose)
        except ValueError as fault:
            raise fault if isinstance(fault, FileError) else solid.error(str(fault)) from fault
    if not total[0] > 0:
        raise inertial.error("expected collision geometry with a volume and a density, got none")
    total *= 1 if weight is None else weight.value(is_size) / total[0]
    out.ignored.extend(inertial.unread(frozenset({"pose", "inertia"})))
    return float(total[0]), *central_inertia(total)


def add_frame(element: Element, out: SdfModel) -> None:
    """Read a <frame>."""
    name = _take_name(element, out)
    attached_to = element.text("attached_to") or MODEL
    out.places[name] = Place(element, *pose_in(element, attached_to, out), attached_to)
    out.frames.append(name)
    out.ignored.extend(element.unread())


def add_joint(element: Element, version: str, out: SdfModel) -> None:
    """Read a <joint> of a version."""
    name, kind = _joint_name(element, version, out), element.choice("type", TYPES, ", which lgsim does not represent")
    ends = element.required("parent"), element.required("child")
    parent, child = (end.words for end in ends)
    for end in ends:
        if not end.words:
            raise end.error("expected the name of a link, got none")
    tags = ("axis", "axis2")[: TYPES[kind].nv] if kind != "ball" else ("axis",)
    axes = tuple(_axis(element, tag, name, version, out) for tag in tags)
    rotor = armature(element, None)
    if rotor is not None and len(axes) == 1 and kind != "ball":
        axes[0].numbers["armature"] = rotor
    elif rotor is not None:
        out.ignored.append(element.finding("the rotor drives no joint of one degree of freedom"))
    out.places[name] = Place(element, *pose_in(element, child, out), child)
    gearbox = _gearbox(element) if kind == "gearbox" else None
    out.joints[name] = SdfJoint(name, element, TYPES[kind], parent, child, ends, axes, _pitch(element, kind), gearbox)
    if gearbox is not None and any(set(axis.numbers) - {"lower", "upper"} for axis in axes):
        out.ignored.append(
            dropped(element, "is a gearbox with forces or limits of its axes, which are not represented")
        )
    if kind == "ball":
        acting = [key for axis in axes for key in ("damping", "friction", "stiffness") if axis.numbers.get(key)]
        if acting:
            out.ignored.append(dropped(element, f"is a ball with {', '.join(acting)}, which is not represented"))
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
        direction, frame = np.array(xyz.content(3)), xyz.text("expressed_in") or (MODEL if version in _OLD else joint)
        if not np.any(direction):
            raise xyz.error(f"expected a nonzero vector, got {xyz.words!r}")
        out.ignored.extend(xyz.unread())
    old = axis.child("use_parent_model_frame")
    if old is not None:
        if version not in _OLD + _EITHER:
            raise old.error(f"version {version} has no such element; expected <xyz expressed_in='{MODEL}'>")
        frame = MODEL if old.flag() else joint
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
        out.assumed.append(limit.finding(f"has lower > upper, {lower:g} and {upper:g}; no limits are assumed"))
        lower, upper = -math.inf, math.inf
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


def _gearbox(element: Element) -> Gearbox:
    """The gearbox of a <joint>."""
    ratio, reference = element.child("gearbox_ratio"), element.required("gearbox_reference_body")
    return Gearbox(reference, reference.words, 1.0 if ratio is None else ratio.value())


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
    at, frame = pose_in(owner, link, out)
    if frame not in (link, link.rpartition("::")[2]):
        raise owner.error(f"<pose>: expected a pose in the frame of the link {link!r}, got one in {frame!r}")
    return at


def pose_in(owner: Element, usual: str, out: SdfModel) -> tuple[Float[np.ndarray, "4 4"], str]:
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
