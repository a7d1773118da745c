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
from lgsim.formats.links import TREATMENTS, Link, link_parameters, massless, warn_of_links
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
"""The joint of a floating base."""


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
    """The model of a robot from a URDF file.

    Joints are ordered depth first, children in the file's order. Links on fixed joints are merged into the link that
    carries them, and their frames are kept, that of a root that does not float among them. Joints of the types
    revolute, continuous, prismatic, fixed, floating, planar and, as an extension, spherical or ball; a planar joint's
    ``axis`` is the plane's normal, and its x and y are those of the joint's frame, turned by the shortest way that
    takes z to the normal. A joint with <mimic> has no number in q and v. Position limits are numbers of the model at
    which nothing stops, see ``lgsim.with_stops``. Meshes are not opened.

    Args:
        floating_base: Whether the root link moves freely, by the joint ``root_joint``; else it is fixed to the world.
        text: The XML itself instead of a path.
        gravity: Acceleration of free fall in world axes, (3,), m/s^2.
        dtype: float32 or float64; None for JAX's default float.
        physical: What happens to links whose inertia no body has. "warn" keeps the numbers and gives a
            ``FileWarning`` that counts them, moving links without mass behind which nothing has mass, and numbers that
            look like degrees or millimeters; "report" keeps them without a word (``read_urdf`` gives the report);
            "nearest" takes the nearest inertia that a body can have, with the same mass and center of mass; "error"
            refuses them.
        missing_mimic: What happens to joints that mimic a joint which is not there: "error" refuses them, "free" lets
            them move by themselves, with a ``FileWarning`` that names them.
        loops: A TOML file with loops, which URDF has no word for; see ``lgsim.formats.loop_files.add_loops``.
        contacts: Names of links whose <collision> touches the ground, or numbers of the law by the name of the link;
            none by default. Spheres, capsules, boxes, cylinders by points on their rims and meshes (.stl, .obj) by some
            of their vertices; see ``lgsim.formats.contacts.file_contacts.add_file_contacts`` for the names of contacts.
        contact_law: The law's numbers for all of them, as ``Model.add_contact`` takes them.
        solids: True, names of links whose <collision> become solids for ``lgsim.distance``, or by such a name what of
            ``solid_meshes`` differs; none by default. Solids are named as contacts are, and two of links that a joint
            joins never meet; see ``lgsim.formats.solids.model_solids.add_file_solids``.
        solid_meshes: What meshes (.stl, .obj) become: ``{"vertices": n}``, the convex hull of n vertices, 20 by
            default, with a radius that takes in what is left out, or ``{"capsules": n}``.

    Raises:
        FileError: the file is missing, is not XML, or describes no tree of bodies, or ``loops`` no loops of it; the
            message has the line.
        ValueError: ``physical`` is none of the four, or ``missing_mimic`` none of the two.
        TypeError: not just one of ``path`` and ``text`` is given.
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
    """(model, report): ``load_urdf`` with what was odd in the file; it gives no warnings.

    Args:
        floating_base: Whether the root link moves freely.
        text: The XML itself instead of a path.
        gravity: Acceleration of free fall in world axes, (3,), m/s^2.
        dtype: float32 or float64; None for JAX's default float.
        physical: "report", "nearest" or "error"; see ``load_urdf``.
        missing_mimic: "error" or "free"; see ``load_urdf``.
        loops: A TOML file with loops.
        contacts: See ``load_urdf``; what was not named is in the report.
        contact_law: See ``load_urdf``.
        solids: See ``load_urdf``; what was not named is in the report.
        solid_meshes: See ``load_urdf``.

    Raises:
        FileError, ValueError, TypeError: see ``load_urdf``.
    """
    if physical not in TREATMENTS:
        raise ValueError(f"physical: expected one of {', '.join(TREATMENTS)}, got {physical!r}")
    if missing_mimic not in ("error", "free"):
        raise ValueError(f"missing_mimic: expected error or free, got {missing_mimic!r}")
    file, node = read(path, text)
    robot = urdf_elements.robot(file, Element(file, node))
    if missing_mimic == "free":
        urdf_tree.free_missing_mimics(robot)
    root = urdf_tree.root(robot)
    # what numbers near the largest float overflow to is found by checks: numpy need not warn
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
        units=tuple(_odd_units(robot, root)),
        clashes=tuple(
            joint.element.finding("has the name of a link")
            for joint in robot.joints.values()
            if joint.name in robot.links
        ),
        assumed=tuple(robot.assumed),
        ignored=tuple(sorted(robot.ignored, key=lambda finding: finding.line)),
    )
    return model, report


def _build(
    robot: Robot, root: Link, floating: bool, parameters: dict[str, Float[np.ndarray, " 10"]], builder: ModelBuilder
) -> Model:
    """The model; an error of the builder is raised with the line of the element that caused it."""
    if ROOT in robot.links and root.name != ROOT:
        raise robot.links[ROOT].element.error("expected another name: this one is kept for what does not move")
    if floating and root.name == ROOT:
        raise root.element.error(
            "this root does not move, and so it cannot be a floating base; load the file without floating_base, or name"
            " the link otherwise"
        )
    if floating:
        clash = robot.joints.get(ROOT_JOINT)
        if clash is not None and clash.joint.nv:
            raise clash.element.error("expected another name: this one is kept for the joint of the floating base")
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
        raise robot.element.error("nothing moves: expected at least one joint that is not fixed, or floating_base=True")
    with errors_at(robot.element.error):
        return builder.build()


def _odd_units(robot: Robot, root: Link) -> Iterator[Finding]:
    """Remarks on limits and lengths that look like other units."""
    for link in robot.links.values():
        text = odd_length("has its center of mass at a distance of", link.center)
        if link.mass and text:
            yield link.element.finding(text)
    for joint in robot.joints.values():
        # where a machine is mounted in the world may be far from the world's origin
        mounted = joint.parent == root.name and joint.joint.nv == 0
        offset = "" if mounted else odd_length("is off its parent by", joint.placement[:3, 3])
        limits = (joint.numbers.get(key, math.inf) for key in ("lower", "upper"))
        ranged = joint.joint.nv == 1 and joint.mimic is None
        for text in (offset, odd_range(joint.joint.rows[0].turns, *limits) if ranged else ""):
            if text:
                yield joint.element.finding(text)
