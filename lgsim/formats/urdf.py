"""Models from URDF files."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from jax.typing import ArrayLike, DTypeLike
from jaxtyping import Float

from lgsim.formats import urdf_elements, urdf_tree
from lgsim.formats.contacts.file_contacts import Names
from lgsim.formats.links import TREATMENTS, Link, link_parameters, massless, thin, warn_of_links
from lgsim.formats.loop_files import add_loops
from lgsim.formats.report import FileWarning, Finding, Report
from lgsim.formats.solids.collision_shapes import add_shapes
from lgsim.formats.solids.model_solids import SolidNames
from lgsim.formats.unit_checks import odd_length, odd_range
from lgsim.formats.urdf_elements import Robot
from lgsim.formats.urdf_tree import MOVES_BY_ITSELF
from lgsim.formats.xml import Element, errors_at, read
from lgsim.multibody import joints
from lgsim.multibody.builder import GRAVITY, ModelBuilder
from lgsim.multibody.model import Model
from lgsim.multibody.topology import ROOT

ROOT_JOINT = "root_joint"
"""Joint of a floating base."""
NOTHING_MOVES = "expected at least one joint that is not fixed"
FLOATS = ", or floating_base=True, got neither; Model.attach and Model.lock then fix a static one to a robot's frame"
"""Beginning and end of the error about a file without a moving joint that may have a floating base."""


def load_urdf(
    path: str | os.PathLike[str] | None = None,
    floating_base: bool = False,
    *,
    text: str | None = None,
    gravity: ArrayLike | Sequence[float | int] = GRAVITY,
    dtype: DTypeLike | None = None,
    physical: str = "warn",
    missing_mimic: str = "error",
    loops: str | os.PathLike[str] | None = None,
    contacts: Names = (),
    contact_law: Mapping[str, Any] | None = None,
    solids: SolidNames = (),
    solid_meshes: Mapping[str, int] | None = None,
) -> Model:
    """Load a model from a URDF file.

    Joints are ordered depth first, children in the order of the file. Links on fixed joints are merged into their
    parents, and their frames are kept, including that of a fixed root. Supported joints are revolute, continuous,
    prismatic, fixed, floating, planar and, as an extension, spherical or ball. The ``axis`` of a planar joint is the
    plane's normal; x and y are those of the joint's frame under the shortest rotation of z to the normal. A joint with
    <mimic> has no coordinate in q and v. Position limits are not enforced, see ``lgsim.with_stops``. Meshes are not
    read by default.

    Args:
        floating_base: True connects the root link to the world by the free joint ``root_joint``, False fixes it.
        text: The XML itself instead of a path.
        gravity: Gravitational acceleration in world axes, (3,), m/s^2.
        dtype: float32 or float64; None for JAX's default float.
        physical: Treatment of non-physical inertias. "warn" keeps the values and emits a ``FileWarning`` that counts
            them, moving links without mass on them or on their descendants, and values that look like degrees or
            millimeters; "report" keeps them without a warning (``read_urdf`` returns the report); "nearest" uses the
            nearest physical inertia with the same mass and center of mass; "error" raises.
        missing_mimic: Treatment of joints that mimic a missing joint: "error" raises, "free" makes them independent,
            with a ``FileWarning`` that names them.
        loops: A TOML file with closed kinematic loops, which URDF cannot describe; see
            ``lgsim.formats.loop_files.add_loops``.
        contacts: Names of links whose <collision> touches the ground, or contact parameters by link name; none by
            default. Spheres, capsules, boxes, cylinders by points on their rims and meshes (.stl, .obj) by some of
            their vertices; see ``lgsim.formats.contacts.file_contacts.add_file_contacts`` for the names of contacts.
        contact_law: Default contact parameters, as in ``Model.add_contact``.
        solids: True, or names of links whose <collision> becomes collision geometry for ``lgsim.distance``, or a
            mapping from such names to settings that differ from ``solid_meshes``; none by default. Names follow those
            of contacts. Pairs of links connected by a joint are excluded; see
            ``lgsim.formats.solids.model_solids.add_file_solids``.
        solid_meshes: Representation of meshes (.stl, .obj): ``{"vertices": n}``, the convex hull of n vertices, 20 by
            default, with a radius that covers the omitted ones, or ``{"capsules": n}``.

    Raises:
        FileError: the file is missing, is not XML, does not describe a tree of bodies, or ``loops`` is invalid; the
            message has the line.
        ValueError: another value of ``physical`` or ``missing_mimic``.
        TypeError: both or neither of ``path`` and ``text`` are given.
    """
    model, report = read_urdf(
        path,
        floating_base,
        text=text,
        gravity=gravity,
        dtype=dtype,
        physical=physical,
        missing_mimic=missing_mimic,
        loops=loops,
        contacts=contacts,
        contact_law=contact_law,
        solids=solids,
        solid_meshes=solid_meshes,
    )
    freed = [finding for finding in report.assumed if MOVES_BY_ITSELF in finding.text]
    if freed:
        warnings.warn(f"{report.file}: {'; '.join(map(str, freed))}", FileWarning, stacklevel=2)
    if physical == "warn":
        warn_of_links(report, "read_urdf")
    return model


def read_urdf(
    path: str | os.PathLike[str] | None = None,
    floating_base: bool = False,
    *,
    text: str | None = None,
    gravity: ArrayLike | Sequence[float | int] = GRAVITY,
    dtype: DTypeLike | None = None,
    physical: str = "report",
    missing_mimic: str = "error",
    loops: str | os.PathLike[str] | None = None,
    contacts: Names = (),
    contact_law: Mapping[str, Any] | None = None,
    solids: SolidNames = (),
    solid_meshes: Mapping[str, int] | None = None,
) -> tuple[Model, Report]:
    """Load a model as ``load_urdf`` does, and report findings in the file instead of warnings.

    Args:
        floating_base: True connects the root link to the world by a free joint.
        text: The XML itself instead of a path.
        gravity: Gravitational acceleration in world axes, (3,), m/s^2.
        dtype: float32 or float64; None for JAX's default float.
        physical: "report", "nearest" or "error"; see ``load_urdf``.
        missing_mimic: "error" or "free"; see ``load_urdf``.
        loops: A TOML file with closed kinematic loops.
        contacts: See ``load_urdf``; other <collision> elements are in the report.
        contact_law: See ``load_urdf``.
        solids: See ``load_urdf``; other <collision> elements are in the report.
        solid_meshes: See ``load_urdf``.

    Raises:
        FileError, ValueError, TypeError: see ``load_urdf``.
    """
    if physical not in TREATMENTS:
        raise ValueError(f"physical: expected one of {', '.join(TREATMENTS)}, got {physical!r}")
    if missing_mimic not in ("error", "free"):
        raise ValueError(f"missing_mimic: expected error or free, got {missing_mimic!r}")
    file, node, remarks = read(path, text)
    robot = urdf_elements.robot(file, Element(file, node))
    if missing_mimic == "free":
        urdf_tree.free_missing_mimics(robot)
    root = urdf_tree.root(robot)
    # overflow of numbers near the largest float is detected by the checks below, without NumPy's warnings
    with np.errstate(all="ignore"):
        parameters, inertias = link_parameters(robot.links, TREATMENTS[physical])
        builder = ModelBuilder(gravity, dtype, physical=False)
        model = _build(robot, root, floating_base, parameters, builder)
    if loops is not None:
        model = add_loops(model, loops)
    poses = partial(urdf_elements.origin, out=robot)
    joined = ((joint.parent, joint.child) for joint in robot.joints.values())
    model = add_shapes(model, robot, lambda _: poses, joined, contacts, contact_law, solids, solid_meshes)
    report = Report(
        file,
        inertias=tuple(inertias),
        massless=tuple(massless(robot.links, model)),
        thin=tuple(thin(robot.links, model)),
        units=tuple(_odd_units(robot, root)),
        clashes=tuple(
            joint.element.finding("has the name of a link")
            for joint in robot.joints.values()
            if joint.name in robot.links
        ),
        assumed=(*remarks, *robot.assumed),
        ignored=tuple(sorted(robot.ignored, key=lambda finding: finding.line)),
    )
    return model, report


def _build(
    robot: Robot, root: Link, floating: bool, parameters: dict[str, Float[np.ndarray, " 10"]], builder: ModelBuilder
) -> Model:
    """Build the model; an error of the builder has the line of the element that caused it."""
    if ROOT in robot.links and root.name != ROOT:
        raise robot.links[ROOT].element.error("expected another name: this one is reserved for the world")
    if floating and root.name == ROOT:
        raise root.element.error(
            "this root is the world, so it cannot be a floating base; load the file without floating_base, or rename"
            " the link"
        )
    if floating:
        clash = robot.joints.get(ROOT_JOINT)
        if clash is not None and clash.joint.nv:
            raise clash.element.error("expected another name: this one is reserved for the joint of the floating base")
    if root.name != ROOT:
        kind, name = (joints.Free(), ROOT_JOINT) if floating else (joints.Fixed(), None)
        with errors_at(root.element.error):
            builder.add_body(root.name, ROOT, kind, joint_name=name, parameters=parameters[root.name])
    for joint in robot.joints.values():
        with errors_at(joint.element.error):
            builder.add_body(
                joint.child,
                joint.parent,
                joint.joint,
                joint_name=joint.name,
                placement=joint.placement,
                axis=joint.axis,
                parameters=parameters[joint.child],
                mimic=None if joint.mimic is None else joint.mimic.numbers,
                **joint.numbers,
            )
    if not floating and all(joint.joint.nv == 0 for joint in robot.joints.values()):
        mounted = ", got a robot that is fixed to the world"
        raise robot.element.error(NOTHING_MOVES + (mounted if root.name == ROOT else FLOATS))
    with errors_at(robot.element.error):
        return builder.build()


def _odd_units(robot: Robot, root: Link) -> Iterator[Finding]:
    """Findings about limits and lengths that look like other units."""
    for link in robot.links.values():
        text = odd_length("has its center of mass at a distance of", link.center)
        if link.mass and text:
            yield link.element.finding(text)
    for joint in robot.joints.values():
        # the mounting position in the world may be far from its origin
        mounted = joint.parent == root.name and joint.joint.nv == 0
        offset = "" if mounted else odd_length("has an offset from its parent of", joint.placement[:3, 3])
        limits = (joint.numbers.get(key, math.inf) for key in ("lower", "upper"))
        ranged = joint.joint.nv == 1 and joint.mimic is None
        for text in (offset, odd_range(joint.joint.rows[0].turns, *limits) if ranged else ""):
            if text:
                yield joint.element.finding(text)
