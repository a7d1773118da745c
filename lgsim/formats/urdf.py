"""Models from URDF files."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from jax.typing import ArrayLike, DTypeLike
from jaxtyping import Float

from lgsim.formats import urdf_elements, urdf_tree
from lgsim.formats.report import FileWarning, Finding, Inertia, Report
from lgsim.formats.unit_checks import odd_length, odd_range
from lgsim.formats.urdf_elements import Link, Robot
from lgsim.formats.urdf_tree import MOVES_BY_ITSELF
from lgsim.formats.xml import Element, read
from lgsim.multibody import joints
from lgsim.multibody.builder import GRAVITY, ModelBuilder, ten_parameters
from lgsim.multibody.inertia import defect
from lgsim.multibody.model import Model
from lgsim.multibody.topology import ROOT, ModelError
from lgsim.support.messages import counted

ROOT_JOINT = "root_joint"
"""The joint of a floating base."""

SINGULAR = "moves, and neither it nor what it carries has mass: the mass matrix is singular"


def load_urdf(
    path: str | os.PathLike[str] | None = None,
    floating_base: bool = False,
    *,
    text: str | None = None,
    gravity: ArrayLike | Sequence[float | int] = GRAVITY,
    dtype: DTypeLike | None = None,
    physical: str = "warn",
    missing_mimic: str = "error",
) -> Model:
    """The model of a robot from a URDF file.

    Joints are ordered depth first, children in the file's order. Links on fixed joints are merged into the link that
    carries them, and their frames are kept, that of a root that does not float among them. Joints of the types
    revolute, continuous, prismatic, fixed, floating, planar and, as an extension, spherical or ball; a planar joint's
    ``axis`` is the plane's normal, and its x and y are those of the joint's frame, turned by the shortest way that
    takes z to the normal. A joint with <mimic> has no number in q and v. Position limits are numbers of the model at
    which nothing stops, see ``lgsim.with_stops``. Meshes are not opened.

    Args:
        path: The file.
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

    Returns:
        The model.

    Raises:
        FileError: the file is missing, is not XML, or describes no tree of bodies; the message has the line.
        ValueError: ``physical`` is none of the four, or ``missing_mimic`` none of the two.
        TypeError: not just one of ``path`` and ``text`` is given.
    """
    model, report = read_urdf(
        path, floating_base, text=text, gravity=gravity, dtype=dtype, physical=physical, missing_mimic=missing_mimic
    )
    freed = [finding for finding in report.assumed if MOVES_BY_ITSELF in finding.text]
    if freed:
        warnings.warn(f"{report.file}: {'; '.join(map(str, freed))}", FileWarning, stacklevel=2)
    singular = [finding for finding in report.massless if SINGULAR in finding.text]
    if physical == "warn" and (report.inertias or singular or report.units):
        odd = [f"{len(report.inertias)} links have inertias that no body has"] if report.inertias else []
        odd += [f"{len(singular)} moving links have no mass on and behind them"] if singular else []
        odd += [f"{counted(len(report.units), 'number')} may be in other units"] if report.units else []
        first = next(iter((*report.inertias, *singular, *report.units)))
        warnings.warn(
            f"{report.file}: {' and '.join(odd)}; the first one: {first}. lgsim.formats.read_urdf gives the whole"
            ' report; physical="nearest" takes the nearest physical inertias, physical="report" is silent.',
            FileWarning,
            stacklevel=2,
        )
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
) -> tuple[Model, Report]:
    """(model, report): ``load_urdf`` with what was odd in the file; it gives no warnings.

    Args:
        path: The file.
        floating_base: Whether the root link moves freely.
        text: The XML itself instead of a path.
        gravity: Acceleration of free fall in world axes, (3,), m/s^2.
        dtype: float32 or float64; None for JAX's default float.
        physical: "report", "nearest" or "error"; see ``load_urdf``.
        missing_mimic: "error" or "free"; see ``load_urdf``.

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
        parameters, inertias = _parameters(robot, TREATMENTS[physical])
        builder = ModelBuilder(gravity, dtype, physical=False)
        model = _build(robot, root, floating_base, parameters, builder)
    report = Report(
        file,
        inertias=tuple(inertias),
        massless=tuple(_massless(robot, model)),
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


def _as_given(link: Link, inertia: Inertia) -> Float[np.ndarray, " 10"]:
    del link
    return inertia.parameters


def _nearest_physical(link: Link, inertia: Inertia) -> Float[np.ndarray, " 10"]:
    del link
    return inertia.nearest


def _refuse(link: Link, inertia: Inertia) -> Float[np.ndarray, " 10"]:
    raise link.element.error(f"it {inertia.text}")


TREATMENTS: dict[str, Callable[[Link, Inertia], Float[np.ndarray, " 10"]]] = {
    "warn": _as_given,
    "report": _as_given,
    "nearest": _nearest_physical,
    "error": _refuse,
}
"""What gives, for each word of ``physical``, the parameters (10,) in place of an inertia that no body has."""


def _parameters(
    robot: Robot, treat: Callable[[Link, Inertia], Float[np.ndarray, " 10"]]
) -> tuple[dict[str, Float[np.ndarray, " 10"]], list[Inertia]]:
    """(the ten parameters of each link by its name, remarks on those that no body has)."""
    found, odd = {}, []
    for link in robot.links.values():
        values = ten_parameters(np.array(link.mass), link.center, link.inertia)
        if not np.all(np.isfinite([*values, link.center @ link.center])):
            raise link.element.error("expected an inertial that can be computed with, got too large numbers")
        fault = defect(values)
        if fault is not None:
            inertia = Inertia(link.element.line, link.element.subject, fault, values)
            odd.append(inertia)
            values = treat(link, inertia)
        found[link.name] = values
    return found, odd


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
        with _errors_at(root.element):
            builder.add_body(root.name, ROOT, kind, joint_name=name, parameters=parameters[root.name])
    for joint in robot.joints.values():
        mimic = joint.mimic
        with _errors_at(joint.element):
            builder.add_body(
                joint.child,
                joint.parent,
                joint.joint,
                joint_name=joint.name,
                placement=joint.placement,
                axis=joint.axis,
                parameters=parameters[joint.child],
                mimic=None if mimic is None else (mimic.joint, mimic.multiplier, mimic.offset),
                **joint.numbers,
            )
    if not floating and all(joint.joint.nv == 0 for joint in robot.joints.values()):
        raise robot.element.error("nothing moves: expected at least one joint that is not fixed, or floating_base=True")
    with _errors_at(robot.element):
        return builder.build()


@contextmanager
def _errors_at(element: Element) -> Iterator[None]:
    """Raises the errors of the builder at the element that caused them."""
    try:
        yield
    except ModelError as error:
        raise element.error(str(error)) from error


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


def _massless(robot: Robot, model: Model) -> Iterator[Finding]:
    """Remarks on the bodies without mass, links on their fixed joints counted in."""
    inertias, carried = np.asarray(model.inertias), model.topology.carried
    for body, name in enumerate(model.body_names):
        if inertias[body, 0] == 0:
            alone = not np.any(inertias[carried[:, body]])
            yield robot.links[name].element.finding(SINGULAR if alone else "moves without mass of its own")
