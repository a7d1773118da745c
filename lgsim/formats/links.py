"""Links of URDF and SDF files: inertial parameters, non-physical inertias, moving links without mass."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float
from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]

from lgsim.formats.report import FileWarning, Finding, Inertia, Report
from lgsim.formats.xml import Element, is_size
from lgsim.multibody.builder import ten_parameters
from lgsim.multibody.inertia import EDGES, defect, directions_without_extent
from lgsim.multibody.model import Model
from lgsim.multibody.topology import WORLD
from lgsim.support.messages import counted

_ROTOR_INERTIA, _GEAR_RATIO = "rotor_inertia", "gear_ratio"
"""The elements, in any namespace: kg m^2 and the speed of the rotor over that of the joint."""


SINGULAR = "moves without mass on it or on its descendants: the mass matrix is singular"


@dataclass(frozen=True)
class Link:
    """Inertial parameters of a link.

    Attributes:
        mass: Mass, kg.
        center: Center of mass in the link's frame, (3,), m.
        inertia: Inertia about the center of mass in the link's axes, (3, 3), kg m^2.
    """

    name: str
    element: Element
    mass: float
    center: Float[np.ndarray, " 3"]
    inertia: Float[np.ndarray, "3 3"]


@dataclass(frozen=True)
class Mimic:
    """A mimic coordinate: ``q = multiplier q_joint + offset``.

    Attributes:
        joint: Name of the mimicked joint.
        offset: Offset, rad or m.
    """

    joint: str
    multiplier: float
    offset: float
    element: Element

    @property
    def numbers(self) -> tuple[str, float, float]:
        """The tuple (joint, multiplier, offset) for ``ModelBuilder.add_body``."""
        return self.joint, self.multiplier, self.offset


@dataclass
class Machine:
    """The links of a file and the findings in it.

    Attributes:
        element: The root element of the robot.
        links: Links by name, in the order of the file.
        assumed: Findings about assumed defaults.
        ignored: Findings about unread elements.
    """

    element: Element
    links: dict[str, Link] = field(default_factory=dict)
    assumed: list[Finding] = field(default_factory=list)
    ignored: list[Finding] = field(default_factory=list)


MOMENTS = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")


def inertia_matrix(moments: Sequence[float], rotation: Float[np.ndarray, "3 3"]) -> Float[np.ndarray, "3 3"]:
    """Rotate the ``MOMENTS`` of inertia, given in rotated axes, to the link's axes, kg m^2."""
    xx, xy, xz, yy, yz, zz = moments
    return rotation @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ rotation.T


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
"""Replacement for the parameters (10,) of a non-physical inertia, for each value of ``physical``."""


def link_parameters(
    links: Mapping[str, Link], treat: Callable[[Link, Inertia], Float[np.ndarray, " 10"]]
) -> tuple[dict[str, Float[np.ndarray, " 10"]], list[Inertia]]:
    """The ten inertial parameters of each link by name, and findings about non-physical inertias."""
    found, odd = {}, []
    for link in links.values():
        values = ten_parameters(np.array(link.mass), link.center, link.inertia)
        if not np.all(np.isfinite([*values, link.center @ link.center])):
            raise link.element.error("expected an inertial within the range of floats, got too large numbers")
        fault = defect(values)
        if fault is not None:
            inertia = Inertia(link.element.line, link.element.subject, fault, values)
            odd.append(inertia)
            values = treat(link, inertia)
        found[link.name] = values
    return found, odd


def massless(links: Mapping[str, Link], model: Model) -> Iterator[Finding]:
    """Findings about bodies without mass, including the links fixed to them."""
    inertias, parents = np.asarray(model.inertias), model.topology.parents
    loaded = np.any(inertias, axis=1).tolist()
    for body in reversed(range(len(parents))):  # children come after their parents
        if loaded[body] and parents[body] != WORLD:
            loaded[parents[body]] = True
    for body in np.flatnonzero(inertias[:, 0] == 0).tolist():
        text = "moves without mass of its own" if loaded[body] else SINGULAR
        yield links[model.body_names[body]].element.finding(text)


def thin(links: Mapping[str, Link], model: Model) -> Iterator[Finding]:
    """Findings about bodies with all of their mass in a plane, on a line or in a point, fixed links included."""
    for name, values in zip(model.body_names, np.asarray(model.inertias), strict=True):
        if values[0] > 0 and defect(values) is None and (lost := directions_without_extent(values)):
            yield links[name].element.finding(
                f"has all of its mass {EDGES[lost]}: identify fits its inertia only from a prior with extent, see"
                " lgsim identify --physical nearest"
            )


def warn_of_links(report: Report, reader: str) -> None:
    """Emit a ``FileWarning`` that counts non-physical inertias, links without mass and suspicious units.

    Args:
        reader: Name of the function of ``lgsim.formats`` that returns the report.
    """
    singular = [finding for finding in report.massless if SINGULAR in finding.text]
    odd = [f"{len(report.inertias)} links have non-physical inertias"] if report.inertias else []
    odd += [f"{len(singular)} moving links have no mass on them or on their descendants"] if singular else []
    odd += [f"{counted(len(report.units), 'number')} may be in other units"] if report.units else []
    if odd:
        first = next(iter((*report.inertias, *singular, *report.units)))
        warnings.warn(
            f"{report.file}: {' and '.join(odd)}; the first one: {first}. lgsim.formats.{reader} returns the full"
            ' report; physical="nearest" uses the nearest physical inertias, physical="report" suppresses the warning.',
            FileWarning,
            stacklevel=3,
        )


def armature(owner: Element, attribute: str | None) -> float | None:
    """The armature ``ratio^2 inertia`` of the rotor in an element, kg m^2 or kg; None without one.

    Args:
        attribute: The attribute that contains the number; None for the text between the tags.

    Raises:
        FileError: a number is invalid.

    Source: https://drake.mit.edu/doxygen_cxx/group__multibody__parsing.html, drake:rotor_inertia, drake:gear_ratio.
    """
    found = {}
    for name, node in _rotor_parts(owner):
        element = Element(owner.file, node, f"{owner.subject}: <{name}>")
        found[name] = element.value(is_size) if attribute is None else element.number(attribute, None, is_size)
    return found[_ROTOR_INERTIA] * found.get(_GEAR_RATIO, 1.0) ** 2 if _ROTOR_INERTIA in found else None


def rotor_tags(owner: Element) -> frozenset[str]:
    """The tags of the rotor's elements in an element, with their namespaces."""
    return frozenset(str(node.tag) for _, node in _rotor_parts(owner))


def _rotor_parts(owner: Element) -> Iterator[tuple[str, etree._Element]]:
    """The rotor's elements with their names without namespace."""
    for node in owner.node.iterchildren(etree.Element):
        name = str(node.tag).rpartition("}")[2].rpartition(":")[2]
        if name in (_ROTOR_INERTIA, _GEAR_RATIO):
            yield name, node
