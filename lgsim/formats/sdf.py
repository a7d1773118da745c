"""Models from SDF files."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from jax.typing import ArrayLike, DTypeLike
from jaxtyping import Float

from lgsim.formats.contacts.file_contacts import Names
from lgsim.formats.links import TREATMENTS, link_parameters, massless, thin, warn_of_links
from lgsim.formats.loop_files import add_loops
from lgsim.formats.poses import plane_axes
from lgsim.formats.poses import pose as pose_of
from lgsim.formats.report import Dropped, FileWarning, Finding, Report
from lgsim.formats.sdformat.elements import Axis, SdfJoint, SdfModel, collision_pose
from lgsim.formats.sdformat.models import sdf_model
from lgsim.formats.sdformat.tree import Frames, spanning_tree
from lgsim.formats.solids.collision_shapes import add_shapes
from lgsim.formats.solids.model_solids import SolidNames
from lgsim.formats.unit_checks import odd_length, odd_range
from lgsim.formats.urdf import ROOT_JOINT
from lgsim.formats.xml import Element, built, errors_at, read
from lgsim.multibody import joints
from lgsim.multibody.builder import GRAVITY, ModelBuilder
from lgsim.multibody.joint import GroupJoint
from lgsim.multibody.model import Model
from lgsim.multibody.topology import ROOT
from lgsim.support.unused_names import unused_name

ACTING = ("damping", "friction", "stiffness")
"""Joint parameters that a loop does not have."""

PARALLEL = 1e-6
"""Axes of a gearbox may differ by this much of a cosine from those of its joints: rounded numbers of files."""


def load_sdf(
    path: str | os.PathLike[str] | None = None,
    *,
    text: str | None = None,
    model: str | None = None,
    gravity: ArrayLike | Sequence[float | int] = GRAVITY,
    dtype: DTypeLike | None = None,
    physical: str = "warn",
    loops: str | os.PathLike[str] | None = None,
    contacts: Names = (),
    contact_law: Mapping[str, Any] | None = None,
    solids: SolidNames = (),
    solid_meshes: Mapping[str, int] | None = None,
) -> Model:
    """Load a model from an SDF file of the versions 1.0 to 1.12.

    Supported joints are revolute, continuous, prismatic, screw, universal, revolute2, ball, fixed and gearbox. They are
    ordered depth first, children in the order of the file. Their coordinates are zero at the poses of the file. A joint
    to a link that another joint of the tree already moves closes a kinematic loop, which has the joint's name and
    connects the frames "<joint>.a" on the parent and "<joint>.b" on the child. Such a joint is revolute, continuous,
    prismatic, ball or fixed; a hinge rotates about z of both frames. The tree grows from the world by the first joint
    of the file that reaches a new link. A gearbox is a coupling of the revolute joints between its parent, its child
    and its reference, ``q_child = -ratio q_parent``.

    Names in nested and included models are "<model>::<name>", without a scope for merge="true". An <include> names a
    file or a folder with a model.config or model.sdf: relative to the file, as model://<folder> above it or in the
    folders of GZ_SIM_RESOURCE_PATH, SDF_PATH and GAZEBO_MODEL_PATH. All models of a <world> become one model, static
    ones fixed to the world; the names of the only one that moves have no scope. The inertia of a link with
    <inertial auto="true"> is that of its collision geometry, of 1000 kg/m^3 by default.

    A link that no joint moves has a floating base, ``root_joint``, or "root_joint:<link>" if there are several such
    links. Its pose in the file is not part of the model. A joint of the parent "world" fixes its link there.

    The frame with a link's name is that of the file. If a joint is not at its child's frame, the moving body of the
    model has its frame at the joint and is named "<link>:<joint>". Frames of the file are frames of the model. Position
    limits are not enforced, see ``lgsim.with_stops``. Springs of joints are read. The report of ``read_sdf`` lists what
    is not represented, such as plugins.

    Args:
        text: The XML itself instead of a path.
        model: Name of the only model to load, of several in the file or its world; None for the whole world.
        gravity: Gravitational acceleration in world axes, (3,), m/s^2.
        dtype: float32 or float64; None for JAX's default float.
        physical: Treatment of non-physical inertias: "warn", "report", "nearest" or "error", as for ``load_urdf``.
        loops: A TOML file with additional loops; see ``lgsim.formats.loop_files.add_loops``.
        contacts: Names of links whose <collision> becomes contacts, as for ``load_urdf``.
        contact_law: Default contact parameters, as for ``load_urdf``.
        solids: Names of links whose <collision> becomes collision geometry, as for ``load_urdf``; a plane is the
            half-space below it, ``self_collide`` is not read.
        solid_meshes: Representation of meshes, as for ``load_urdf``.

    Returns:
        The model. A ``FileWarning`` lists features of the file that affect the motion and that the model does not
        represent, another one counts non-physical inertias and suspicious units.

    Raises:
        FileError: the file is missing, is not XML, has another version or several models, or describes no valid model;
            the message has the line.
        ValueError: ``physical`` has another value.
        TypeError: both or neither of ``path`` and ``text`` are given.

    Source: SDFormat specification, http://sdformat.org/spec.
    """
    found, report = read_sdf(
        path, text=text, model=model, gravity=gravity, dtype=dtype, physical=physical, loops=loops, contacts=contacts,
        contact_law=contact_law, solids=solids, solid_meshes=solid_meshes,
    )  # fmt: skip
    if report.dropped:
        warnings.warn(f"{report.file}: {report.dropped}", FileWarning, stacklevel=2)
    if physical == "warn":
        warn_of_links(report, "read_sdf")
    return found


def read_sdf(
    path: str | os.PathLike[str] | None = None,
    *,
    text: str | None = None,
    model: str | None = None,
    gravity: ArrayLike | Sequence[float | int] = GRAVITY,
    dtype: DTypeLike | None = None,
    physical: str = "report",
    loops: str | os.PathLike[str] | None = None,
    contacts: Names = (),
    contact_law: Mapping[str, Any] | None = None,
    solids: SolidNames = (),
    solid_meshes: Mapping[str, int] | None = None,
) -> tuple[Model, Report]:
    """Load a model as ``load_sdf`` does, and report findings in the file instead of warnings.

    Args:
        text: The XML itself instead of a path.
        model: Name of the only model to load; see ``load_sdf``.
        gravity: Gravitational acceleration in world axes, (3,), m/s^2.
        dtype: float32 or float64; None for JAX's default float.
        physical: "report", "nearest" or "error"; see ``load_urdf``.
        loops: A TOML file with additional loops.
        contacts: See ``load_urdf``; other <collision> elements are in the report.
        contact_law: See ``load_urdf``.
        solids: See ``load_urdf``; other <collision> elements are in the report.
        solid_meshes: See ``load_urdf``.

    Raises:
        FileError, ValueError, TypeError: see ``load_sdf``.
    """
    if physical not in TREATMENTS:
        raise ValueError(f"physical: expected one of {', '.join(TREATMENTS)}, got {physical!r}")
    file, node, remarks = read(path, text)
    sdf = sdf_model(file, Element(file, node), model)
    frames = Frames(sdf)
    tree, closing = spanning_tree(sdf, frames)
    # overflow of numbers near the largest float is detected by the checks below, without NumPy's warnings
    with np.errstate(all="ignore"):
        parameters, inertias = link_parameters(sdf.links, TREATMENTS[physical])
        writer = _Writer(sdf, frames, parameters, ModelBuilder(gravity, dtype, physical=False))
        found = writer.build(tree, closing)
    if loops is not None:
        found = add_loops(found, loops)
    joined = (frames.ends(joint) for joint in (*tree, *closing))
    found = add_shapes(
        found,
        sdf,
        lambda link: partial(collision_pose, link=link, out=sdf),
        joined,
        contacts,
        contact_law,
        solids,
        solid_meshes,
    )
    links = sdf.links | {name: sdf.links[link] for name, link in writer.carriers.items()}
    report = Report(
        file,
        inertias=tuple(inertias),
        massless=tuple(massless(links, found)),
        thin=tuple(thin(links, found)),
        units=tuple(_odd_units(sdf, frames, tree)),
        assumed=(*remarks, *sdf.assumed),
        ignored=tuple(sorted(sdf.ignored, key=lambda finding: finding.line)),
    )
    return found, report


class _Writer:
    """Passes the links and joints of a file to a builder.

    Attributes:
        carriers: Link of each body that has its frame at a joint, by the body's name.
    """

    def __init__(
        self, sdf: SdfModel, frames: Frames, parameters: dict[str, Float[np.ndarray, " 10"]], builder: ModelBuilder
    ) -> None:
        self.sdf, self.frames, self.parameters, self.builder = sdf, frames, parameters, builder
        self.carriers: dict[str, str] = {}
        self.taken = {ROOT, *sdf.links, *sdf.frames}

    def build(self, tree: list[SdfJoint], closing: list[SdfJoint]) -> Model:
        """Build the model."""
        self._add_roots({self.frames.ends(joint)[1] for joint in tree})
        for joint in tree:
            self._add_joint(joint)
        for name in self.sdf.frames:
            link = self.frames.link(name)
            with errors_at(self.sdf.places[name].element.error):
                self.builder.add_frame(name, link, self._within(link, self.frames.pose(name)))
        for joint in closing:
            self._add_loop(joint)
        gears = [joint for joint in self.sdf.joints.values() if joint.gearbox is not None]
        for joint in gears:
            self._add_coupling(joint, tree)
        loops = {joint.name: joint.element.error for joint in (*closing, *gears)}
        return built(self.builder, loops, self.sdf.element.error)

    def _add_roots(self, moved: set[str]) -> None:
        """Add the links that no joint moves."""
        roots = [link for link in self.sdf.links.values() if link.name not in moved]
        for link in roots:
            name = ROOT_JOINT if len(roots) == 1 else f"{ROOT_JOINT}:{link.name}"
            with errors_at(link.element.error):
                self.builder.add_body(
                    link.name, ROOT, joints.Free(), joint_name=name, parameters=self.parameters[link.name]
                )
            at = (self.frames.in_world @ self.frames.pose(link.name))[:3, 3]
            where = ", ".join(f"{x:g}" for x in at)
            self.sdf.assumed.append(
                link.element.finding(f"has a floating base {name!r}; its pose in the file is ({where}) m")
            )

    def _add_joint(self, joint: SdfJoint) -> None:
        """Add a joint of the tree and the link that it moves."""
        parent, child = self.frames.ends(joint)
        pose = self.frames.pose(joint.name)
        within = self._within(child, pose)
        off = joint.joint.nv and not np.array_equal(within, np.eye(4))
        numbers: dict = {}
        for key in {key for axis in joint.axes for key in axis.numbers} if not self._is_ball(joint) else ():
            usual = {"lower": -np.inf, "upper": np.inf, "effort_limit": np.inf, "velocity_limit": np.inf}.get(key, 0.0)
            numbers[key] = np.array([axis.numbers.get(key, usual) for axis in joint.axes])
        mimics = [axis.mimic for axis in joint.axes if axis.mimic is not None]
        body = unused_name(f"{child}:{joint.name}", self.taken) if off else child
        with errors_at((mimics[0] if mimics else joint).element.error):
            if mimics and len(joint.axes) > 1:
                raise mimics[0].element.error("only a joint of one degree of freedom can mimic")
            placement = self._within(parent, pose if joint.joint.nv else self.frames.pose(child))
            self.builder.add_body(
                body,
                parent,
                joint.joint,
                joint_name=joint.name,
                placement=placement,
                axis=self._axes(joint),
                pitch=joint.pitch,
                parameters=np.zeros(10) if off else self.parameters[child],
                mimic=mimics[0].numbers if mimics else None,
                **numbers,
            )
            if off:
                self.carriers[body] = child
                inverse = np.linalg.inv(within)
                self.builder.add_body(child, body, joints.Fixed(), placement=inverse, parameters=self.parameters[child])

    def _add_loop(self, joint: SdfJoint) -> None:
        """Add a joint that closes a loop."""
        pose = self.frames.pose(joint.name)
        axes = self._axes(joint)
        if axes is not None:
            pose = pose @ pose_of(np.zeros(3), plane_axes(axes[0]).T)
        a, b = (unused_name(f"{joint.name}.{mark}", self.taken) for mark in "ab")
        with errors_at(joint.element.error):
            for end, link in zip((a, b), self.frames.ends(joint), strict=True):
                self.builder.add_frame(end, link, self._within(link, pose))
            self.builder.add_loop(joint.name, a, b, joint.joint)
        acting = [key for axis in joint.axes for key in ACTING if axis.numbers.get(key)]
        if acting and not self._is_ball(joint):
            words = f"closes a loop, which has no {' and no '.join(acting)}"
            self.sdf.ignored.append(Dropped(joint.element.line, joint.element.subject, words))
        if any(axis.mimic for axis in joint.axes):
            raise joint.element.error("closes a loop, and cannot mimic another joint")

    def _add_coupling(self, joint: SdfJoint, tree: list[SdfJoint]) -> None:
        """Add a gearbox: the coupling of the joints that rotate its parent and its child relative to the reference."""
        gearbox, found = joint.gearbox, []
        assert gearbox is not None
        reference = self.frames.link(gearbox.reference, gearbox.element)
        for link, axis in zip(self.frames.ends(joint), joint.axes, strict=True):
            senses = ((other, self._sense(other, axis, reference, link)) for other in tree)
            driven = next(((other.name, sense) for other, sense in senses if sense), None)
            if driven is None:
                raise joint.element.error(
                    f"expected a revolute joint about <{axis.element.tag}> between {link!r} and the reference"
                    f" {reference!r}, got none"
                )
            found.append(driven)
        (a, sense_a), (b, sense_b) = found
        with errors_at(joint.element.error):
            self.builder.add_coupling(joint.name, a, b, [0.0, -gearbox.ratio * sense_a * sense_b])

    def _sense(self, joint: SdfJoint, axis: Axis, reference: str, link: str) -> float:
        """1 or -1 if a joint rotates a link relative to the reference about an axis or against it, else 0."""
        ends = self.frames.ends(joint)
        if {*ends} != {reference, link} or not isinstance(joint.joint, joints.Revolute):
            return 0.0
        own, other = (self.frames.pose(a.frame, a.element)[:3, :3] @ a.direction for a in (joint.axes[0], axis))
        cosine = own @ other / (np.linalg.norm(own) * np.linalg.norm(other))
        along = np.sign(cosine) if abs(cosine) > 1 - PARALLEL else 0.0
        return float(along if ends == (reference, link) else -along)

    def _axes(self, joint: SdfJoint) -> Float[np.ndarray, "k 3"] | None:
        """Axes of a joint in its own frame; None if it has none."""
        if isinstance(joint.joint, GroupJoint) or not joint.axes:
            return None
        own = self.frames.pose(joint.name)[:3, :3]
        return np.array([own.T @ self.frames.pose(a.frame, a.element)[:3, :3] @ a.direction for a in joint.axes])

    def _within(self, link: str, pose: Float[np.ndarray, "4 4"]) -> Float[np.ndarray, "4 4"]:
        """A pose in the model's frame, converted to the frame of a link or the world."""
        if link == ROOT:
            return self.frames.in_world @ pose
        at = self.frames.pose(link)
        if np.array_equal(at, pose):
            return np.eye(4)
        return pose_of(at[:3, :3].T @ (pose[:3, 3] - at[:3, 3]), at[:3, :3].T @ pose[:3, :3])

    @staticmethod
    def _is_ball(joint: SdfJoint) -> bool:
        return isinstance(joint.joint, joints.Spherical)


def _odd_units(sdf: SdfModel, frames: Frames, tree: list[SdfJoint]) -> Iterator[Finding]:
    """Findings about limits and lengths that look like other units."""
    for link in sdf.links.values():
        text = odd_length("has its center of mass at a distance of", link.center)
        if link.mass and text:
            yield link.element.finding(text)
    for joint in tree:
        parent, _ = frames.ends(joint)
        mounted = parent == ROOT and joint.joint.nv == 0
        apart = frames.pose(joint.name)[:3, 3] - (np.zeros(3) if parent == ROOT else frames.pose(parent)[:3, 3])
        limits = (joint.axes[0].numbers.get(key, np.inf) for key in ("lower", "upper")) if joint.joint.nv == 1 else ()
        for text in (
            "" if mounted else odd_length("has an offset from its parent of", apart),
            odd_range(joint.joint.rows[0].turns, *limits) if joint.joint.nv == 1 else "",
        ):
            if text:
                yield joint.element.finding(text)
